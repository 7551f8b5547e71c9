"""Writing a Kimi K3 prompt: messages that are read already -> segments.

One `Writer` builds one prompt. Text from outside enters `Writer.out` in two methods only, `text`
and `attribute`, and both make segments with `allow_special=False`; `image` alone adds control text
that is not our own, from `image_prompts`.

Read next: `_k3_parts` for the fixed segments, `_k3_calls` for the pairing of tool results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kizami.chat import _k3_parts as k3
from kizami.chat._k3_calls import Call, ReadAhead, Results, ToolMessage
from kizami.chat._k3_faults import (
    FaultT,
    Place,
    counted,
    fault,
    kind_of,
    show,
    start_of,
)
from kizami.errors import ChatKeyError, ChatTypeError, ChatValueError, ChatWarning
from kizami.segments import Segment


class Writer:
    """The prompt under construction. Methods append to `out`.

    Attributes:
        out: The segments so far.
        marks: Of each assistant message, its index and where its segments begin.
        notes: The warnings to give.
        place: What is being written: index of a message (0-based), or name of an option.
        prompts: `image_prompts`, or None.
        used: How many of `prompts` have been taken.
    """

    __slots__ = ("marks", "notes", "out", "place", "prompts", "used")

    def __init__(self, prompts: Sequence[Any] | None) -> None:
        self.out: list[Segment] = []
        self.marks: list[tuple[int, int]] = []
        self.notes: list[ChatWarning] = []
        self.place: Place = "`messages`"
        self.prompts = prompts
        self.used = 0

    def error(self, kind: type[FaultT], problem: str, **facts: Any) -> FaultT:
        return fault(kind, self.place, problem, **facts)

    def messages(
        self,
        messages: list[Any],
        first: int,
        ahead: ReadAhead,
        thinking: bool,
        developer_as_system: bool,
    ) -> None:
        run: list[ToolMessage] = []
        results = Results([])
        for index, message in enumerate(messages, first):
            is_dict = isinstance(message, dict)
            role = message.get("role") if is_dict else None
            if role == "tool":
                run.append((index, message))
                continue
            if run:
                self.tool_results(run, results)
                run = []
            if not is_dict:
                hint = "give a dict with role and content"
                self.skip(index, f"is {kind_of(message)}, not a dict, and is left out; {hint}")
                continue
            self.place = index
            if role == "user":
                self.plain(message, k3.USER_START)
            elif role == "assistant":
                self.marks.append((index, len(self.out)))
                results = self.assistant(message, ahead.calls.get(index, []), thinking)
            elif role == "system":
                self.system(message, ahead.tools.get(index))
            elif role == "developer":
                if developer_as_system:
                    self.system(message, ahead.tools.get(index))
                else:
                    hint = "pass developer_as_system=True to render it as `system`"
                    self.skip_role(index, role, hint)
            elif role is None and "role" not in message:
                problem = "has no `role`; give system, user, assistant or tool"
                raise self.error(ChatKeyError, problem, key="role")
            else:
                self.skip_role(index, role, "use system, user, assistant or tool")
        if run:
            self.tool_results(run, results)

    def skip_role(self, index: int, role: Any, hint: str) -> None:
        problem = f"has the role {start_of(role)}, which Kimi K3 does not know, and is left out"
        self.skip(index, f"{problem}; {hint}")

    def skip(self, index: int, problem: str) -> None:
        self.notes.append(ChatWarning(f"message {index} {problem}", skipped_message=index))

    def plain(self, message: dict[Any, Any], start: k3.Run) -> None:
        out = self.out
        out += start
        if name := message.get("name"):
            out += k3.NAME
            self.attribute(name)
            out += k3.QUOTE_SEP
        else:
            out += k3.SEP
        self.content(message.get("content"))
        out += k3.MESSAGE_END

    def system(self, message: dict[Any, Any], tools: Any) -> None:
        if not tools:
            self.plain(message, k3.SYSTEM_START)
            return
        if message.get("content"):
            problem = "has both `tools` and `content`, and Kimi K3 renders the tools alone"
            hint = "put the content into a system message of its own"
            self.notes.append(ChatWarning(f"message {self.place} {problem}; {hint}"))
        self.tool_list(self.place, k3.MORE_TOOLS_TEXT, tools)

    def assistant(self, message: dict[Any, Any], calls: list[Call], thinking: bool) -> Results:
        out = self.out
        out += k3.ASSISTANT_START
        if name := message.get("name"):
            out += k3.NAME
            self.attribute(name)
            out += k3.QUOTE_SEP
        else:
            out += k3.SEP
        if thinking:
            out += k3.THINK_OPEN
            reasoning = message.get("reasoning_content") or message.get("reasoning")
            if reasoning is not None and not (reasoning := str(reasoning)).isspace():
                self.text(reasoning)
            out += k3.THINK_TO_RESPONSE
        else:
            out += k3.RESPONSE_OPEN
        self.content(message.get("content"))
        out += k3.RESPONSE_CLOSE
        # Published rule: results are matched by id only where the calls came as a list.
        results = Results(calls if isinstance(message.get("tool_calls"), list) else [])
        if calls:
            out += k3.TOOLS_OPEN
            for number, (call, arguments) in enumerate(calls, 1):
                name = self.call_name(call, number)
                results.names.append(name)
                self.call(name, number, arguments)
            out += k3.TOOLS_CLOSE
        out += k3.MESSAGE_END
        return results

    def call_name(self, call: Any, number: int) -> Any:
        function = call.get("function", call) if isinstance(call, dict) else None
        if not isinstance(function, dict):
            problem = f"has tool call {number} of {show(call)}; give a dict with a dict `function`"
            raise self.error(ChatTypeError, problem)
        if "name" not in function:
            problem = f"has tool call {number} without a `name`; give the name of the tool"
            raise self.error(ChatKeyError, problem, key="name")
        return function["name"]

    def call(self, name: Any, number: int, arguments: dict[Any, Any] | str) -> None:
        out = self.out
        out += k3.CALL_TO_NAME
        self.attribute(name)
        out += k3.NAME_TO_INDEX
        out.append(Segment(str(number)))
        out += k3.QUOTE_SEP
        if isinstance(arguments, str):
            out += k3.UNPARSED_OPEN
            self.text(arguments)
            out += k3.UNPARSED_CLOSE
        else:
            for key, value in arguments.items():
                out += k3.ARGUMENT_TO_KEY
                self.attribute(key)
                self.argument(value)
                out += k3.ARGUMENT_CLOSE
        out += k3.CALL_CLOSE

    def argument(self, value: Any) -> None:
        """Write the type of an argument and its value."""
        if isinstance(value, str):
            self.out += k3.STRING
            self.text(value)
            return
        if value is None:
            self.out += k3.NULL_VALUE
        elif value is True:  # before int, whose subclass bool is
            self.out += k3.TRUE_VALUE
        elif value is False:
            self.out += k3.FALSE_VALUE
        elif isinstance(value, (int, float)):
            self.out += k3.NUMBER
            # The encoder's own text for a plain int, without the cost of the encoder.
            plain = type(value) is int and value.bit_length() < 64
            self.text(str(value) if plain else self.json(k3.argument_json, value))
        else:  # the encoder refuses what is neither a dict nor a list or tuple
            self.out += k3.OBJECT if isinstance(value, dict) else k3.ARRAY
            self.text(self.json(k3.argument_json, value))

    def tool_results(self, run: list[ToolMessage], results: Results) -> None:
        """Write consecutive tool messages, in the order of their calls if all of them have one."""
        out = self.out
        for index, message, called in results.in_order(run):
            self.place = index
            name = called
            if name is None:  # a `tool` of None hides the `name`
                name = message["tool"] if "tool" in message else message.get("name")
            if name is None:
                name = results.name_in_turn()
            if name is None:
                problem = "is a tool result without a name and without a call that it answers; give"
                raise self.error(
                    ChatValueError, f"{problem} `name`, or `tool_call_id` of a call before it"
                )
            results.written += 1
            out += k3.RESULT_TO_NAME
            self.attribute(name)
            out += k3.NAME_TO_INDEX
            out.append(Segment(str(results.written)))
            out += k3.QUOTE_SEP
            self.content(message.get("content"))
            out += k3.MESSAGE_END

    def content(self, content: Any) -> None:
        if isinstance(content, str):
            self.text(content)
            return
        if content is None:
            return
        try:
            parts = enumerate(content)
        except TypeError:
            raise self.content_error(content) from None
        for number, part in parts:
            try:
                kind = part["type"]
                if kind in ("image", "image_url"):
                    self.image()
                    continue
                text = part["text"]
            except KeyError as error:
                missing = error.args[0]
                problem = f"has content part {number} without `{missing}`; give"
                hint = 'parts like {"type": "text", "text": ...} or {"type": "image"}'
                raise self.error(ChatKeyError, f"{problem} {hint}", key=missing) from None
            except TypeError:
                if isinstance(content, (dict, bytes)):  # iterable, and never a list of parts
                    raise self.content_error(content) from None
                raise self.content_error(part, f"content part {number}") from None
            self.text(text)

    def content_error(self, value: Any, what: str = "content") -> ChatTypeError:
        hint = 'give text, or a list of parts like {"type": "text", "text": ...}'
        return self.error(ChatTypeError, f"has {what} of {show(value)}; {hint}")

    def image(self) -> None:
        if self.prompts is None:
            self.out.append(k3.IMAGE_PLACEHOLDER_SEGMENT)
            return
        number = self.used
        self.used += 1
        if number >= len(self.prompts):
            problem = f"holds image {number + 1}, but `image_prompts` has only"
            given = counted(len(self.prompts), "prompt")
            raise self.error(ChatValueError, f"{problem} {given}; give one prompt per image")
        if prompt := str(self.prompts[number]):
            self.out.append(Segment(prompt, True))

    def text(self, value: Any) -> None:
        """Write text from outside; only here and in `attribute` does such text enter `out`."""
        text = value if type(value) is str else str(value)
        if self.prompts is not None and k3.IMAGE_PLACEHOLDER in text:
            first, *others = text.split(k3.IMAGE_PLACEHOLDER)
            if first:
                self.out.append(Segment(first))
            for other in others:
                self.image()
                if other:
                    self.out.append(Segment(other))
        elif text:
            self.out.append(Segment(text))

    def attribute(self, value: Any) -> None:
        if text := k3.escape(value):
            self.out.append(Segment(text))

    def tool_list(self, place: Place, text: str, tools: Any) -> None:
        self.place = place
        body = text.format(self.json(k3.compact_json, tools))
        self.out += (*k3.TOOLS_NOTE_OPEN, Segment(body), *k3.MESSAGE_END)

    def tool_choice(self, given: Any) -> None:
        for choice, run in k3.CHOICE_NOTES.items():
            if given == choice:
                self.out += run
        if isinstance(given, str) and given != "auto" and given not in k3.CHOICE_NOTES:
            problem = f"`tool_choice` is {start_of(given)}, which adds nothing to the prompt"
            self.notes.append(ChatWarning(f"{problem}; give required, none or auto"))

    def response_format(self, given: Any, place: Place, schema: Any) -> None:
        self.place = place
        kind = given.get("type") if isinstance(given, dict) else given
        if not isinstance(kind, str):
            kind = ""
        if kind == "json_object":
            self.out += k3.JSON_OBJECT_NOTE
        elif kind == "json_schema":
            body = k3.SCHEMA_TEXT.format(self.json(k3.compact_json, schema))
            self.out += (*k3.FORMAT_NOTE_OPEN, Segment(body), *k3.MESSAGE_END)
        elif given is not None and kind != "text":
            problem = f"`response_format` is {start_of(given)}, which adds nothing to the prompt"
            hint = "give a dict with the type text, json_object or json_schema"
            self.notes.append(ChatWarning(f"{problem}; {hint}"))

    def json(self, encode: Callable[[Any], str], value: Any) -> str:
        try:
            return encode(value)
        except TypeError as error:
            problem = f"holds a value that JSON cannot express ({error}); use dict, list, str,"
            raise self.error(ChatTypeError, f"{problem} int, float, bool, None") from error
        except ValueError as error:  # contains itself, or an integer of too many digits
            problem = f"holds a value that cannot be written as JSON ({error}); change it"
            raise self.error(ChatValueError, problem) from error

    def check_images(self) -> None:
        if self.prompts is not None and self.used != len(self.prompts):
            given, used = counted(len(self.prompts), "prompt"), counted(self.used, "image")
            hint = "give one prompt per image part and per placeholder in content"
            raise ChatValueError(
                f"`image_prompts` holds {given}, and the messages hold {used}; {hint}"
            )
