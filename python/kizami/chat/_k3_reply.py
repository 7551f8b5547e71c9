"""What reading a Kimi K3 reply gives: events while it comes, faults, and the message at the end.

`Draft` collects all three. It knows nothing of tags: `_k3_tags` tells it what belongs where.

Read next: `_k3_tags`, which reads the structure.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from kizami.chat import _k3_parts as k3
from kizami.chat._k3_calls import read_arguments
from kizami.chat._k3_faults import start_of
from kizami.errors import ChatValueError

__all__ = ["Event", "Fault", "ParsedReply"]

CallId = Callable[[int, str], str]
EventKind = Literal["reasoning", "content", "call", "arguments", "call_end", "end"]


class Event(NamedTuple):
    """A piece of a reply, as soon as it is certain.

    Attributes:
        kind: `reasoning`, `content`: more of that text. `call`: a tool call begins, `text` is the
            name of the tool. `arguments`: more of the call's arguments, which are JSON text when
            they are put together. `call_end`: the call is whole. `end`: the reply is over.
        text: See `kind`; always whole characters.
        call: Which call, counted from 0 in the order in which they begin; None where there is none.

    >>> Event("content", "Hello")
    Event(kind='content', text='Hello', call=None)
    """

    kind: EventKind
    text: str = ""
    call: int | None = None


class Fault(NamedTuple):
    """Something that a well-formed reply does not have.

    Attributes:
        position: Index, in all ids (or characters) pushed, of the marker or control token that it
            is about; for a text in a wrong place, of the marker before it.
        problem: What is wrong, in words.
    """

    position: int
    problem: str


class ParsedReply(NamedTuple):
    """A reply that has been read.

    Attributes:
        message: The assistant message, as OpenAI writes it and as `render` takes it: `role`,
            `content` (text, or None if there is none), and where there are any
            `reasoning_content`, `tool_calls` (each with `id`, `type`, and `function` with `name`
            and `arguments`, a JSON text) and `name`. Holds only what is certain: a tool call that
            is not closed is not in it.
        complete: Whether the reply closed all that it opened and then ended. False if it was cut
            off.
        faults: What is malformed, in order. Empty for a reply as `render` writes it.
        tail: The events that only the end of the input made certain; they follow those of `push`.
    """

    message: dict[str, Any]
    complete: bool
    faults: tuple[Fault, ...]
    tail: tuple[Event, ...]


def default_call_id(call: int, name: str) -> str:
    """The id of a tool call where the caller makes none: `call_1`, `call_2`, ...

    >>> default_call_id(0, "weather")
    'call_1'
    """
    return f"call_{call + 1}"


class _Call:
    """A tool call that is being read.

    Attributes:
        name: The tool.
        parts: The pieces of its arguments' JSON text.
        keys: Arguments seen so far.
        raw: Whether the arguments come as one block of text.
        kind, value: Type and pieces of the argument that is open.
    """

    __slots__ = ("keys", "kind", "name", "parts", "raw", "value")

    def __init__(self, name: str) -> None:
        self.name = name
        self.parts: list[str] = []
        self.keys: set[str] = set()
        self.raw = False
        self.kind = ""
        self.value: list[str] = []


class Draft:
    """The message under construction. Appending a text costs what the text is long, and no more.

    Attributes:
        position: Where the reader stands; faults are put there.
        faults: What was malformed so far.
    """

    __slots__ = (
        "_call",
        "_call_id",
        "_calls",
        "_content",
        "_events",
        "_open_event",
        "_reasoning",
        "_started",
        "_texts",
        "faults",
        "name",
        "position",
    )

    def __init__(self, call_id: CallId) -> None:
        self.faults: list[Fault] = []
        self.name = ""
        self.position = 0
        self._call_id = call_id
        self._reasoning: list[str] = []
        self._content: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._call = _Call("")
        self._started = 0
        self._events: list[Event] = []
        self._open_event: tuple[EventKind, int | None] | None = None
        self._texts: list[str] = []

    def fault(self, problem: str) -> None:
        self.faults.append(Fault(self.position, problem))

    # Texts

    def reasoning(self, text: str) -> None:
        self._reasoning.append(text)
        self._more("reasoning", text)

    def content(self, text: str) -> None:
        self._content.append(text)
        self._more("content", text)

    # Tool calls

    def start_call(self, name: str) -> None:
        self._call = _Call(name)
        self._started += 1
        self._single(Event("call", name, self._started - 1))

    def end_call(self) -> None:
        call, number = self._call, self._started - 1
        if call.raw:
            self._check_raw("".join(call.parts))
        else:
            self._arguments("}" if call.keys else "{}")
        function = {"name": call.name, "arguments": "".join(call.parts)}
        identity = self._call_id(number, call.name)
        self._calls.append({"id": identity, "type": "function", "function": function})
        self._single(Event("call_end", "", number))

    def _check_raw(self, text: str) -> None:
        """Text that is no JSON is what such a block is for; what `render` refuses is a fault."""
        try:
            read_arguments(0, {"arguments": text})
        except ChatValueError:
            self.fault(f"the tool call {self._started} has arguments that are no JSON object")

    @property
    def call_number(self) -> int:
        """The call that began last, counted from 1."""
        return self._started

    @property
    def has_arguments(self) -> bool:
        return bool(self._call.keys)

    @property
    def has_raw(self) -> bool:
        return self._call.raw

    def start_raw(self) -> None:
        self._call.raw = True

    def raw(self, text: str) -> None:
        self._arguments(text)

    def start_argument(self, key: str, kind: str) -> None:
        call = self._call
        if key in call.keys:
            self.fault(f"the argument {start_of(key)} stands there twice; the last one counts")
        if kind != "string" and kind not in _TYPES:
            problem = f"has the type {start_of(kind)}; it is read as a string"
            self.fault(f"the argument {start_of(key)} {problem}")
            kind = "string"
        self._arguments(f"{', ' if call.keys else '{'}{k3.argument_json(key)}: ")
        call.keys.add(key)
        call.kind = kind
        call.value = []
        if kind == "string":
            self._arguments('"')

    def argument(self, text: str) -> None:
        if self._call.kind == "string":
            self._arguments(k3.argument_json(text)[1:-1])
        else:  # certain only when it is whole
            self._call.value.append(text)

    def end_argument(self) -> None:
        call = self._call
        if call.kind == "string":
            self._arguments('"')
            return
        text = "".join(call.value)
        problem = _problem_of(call.kind, text)
        if problem:
            self.fault(f"an argument of the type {call.kind} {problem}")
        self._arguments(k3.argument_json(text) if problem == _NO_JSON else text)

    def _arguments(self, text: str) -> None:
        self._call.parts.append(text)
        self._more("arguments", text, self._started - 1)

    # Events

    def end(self) -> None:
        self._single(Event("end"))

    def take_events(self) -> list[Event]:
        """The events since the last time; neighbours of one kind are one event."""
        self._flush()
        events, self._events = self._events, []
        return events

    def _more(self, kind: EventKind, text: str, call: int | None = None) -> None:
        if self._open_event != (kind, call):
            self._flush()
            self._open_event = (kind, call)
        self._texts.append(text)

    def _single(self, event: Event) -> None:
        self._flush()
        self._events.append(event)

    def _flush(self) -> None:
        if self._open_event is not None:
            kind, call = self._open_event
            if text := "".join(self._texts):
                self._events.append(Event(kind, text, call))
            self._open_event, self._texts = None, []

    # The end

    def message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant"}
        if self.name:
            message["name"] = self.name
        message["content"] = "".join(self._content) or None
        if reasoning := "".join(self._reasoning):
            message["reasoning_content"] = reasoning
        if self._calls:
            message["tool_calls"] = self._calls
        return message


_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}
_NO_JSON: Final = "is no JSON; it is read as a string"


def _problem_of(kind: str, text: str) -> str:
    """What is wrong with the value of an argument that is no string; nothing if it is as it says.

    >>> _problem_of("number", "1.5"), _problem_of("number", "true")
    ('', 'holds another type')
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _NO_JSON
    fits = isinstance(value, _TYPES[kind]) and (kind != "number" or not isinstance(value, bool))
    return "" if fits else "holds another type"
