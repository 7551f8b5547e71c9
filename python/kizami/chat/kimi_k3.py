"""Kimi K3 chat messages -> typed segments, and the model's reply -> a message.

`render` is a pure function of its arguments: it decides which text is control and which is content,
and never encodes. Content is passed through character for character in segments with
`allow_special=False`, so nobody who writes a message, a name, a tool result or a schema can forge a
control token; the only control text from outside is `image_prompts`, which the caller's own code
makes. `parse` and `Parser` are the other direction.

Exact: the segments equal those of the renderer that Moonshot publishes with `moonshotai/Kimi-K3`
(revision c5d1dd4c), and where that raises, this raises a `kizami.errors.Chat*Error` of the same
built-in class (`ValueError` for its `AssertionError`). Where that one drops something without a
word, `ChatWarning` says so here; the segments stay the same.

Order of work, because it decides which of two errors is reported: arguments of tool calls and
tool lists of all messages, `tools`, `response_schema`, `thinking_effort`, then the messages as
they are written, the response format, the count of `image_prompts`.

Read next: `_k3_writer` for the messages, `_k3_parts` for the fixed segments and the notation,
`_k3_reader` for replies.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kizami.chat import _k3_parts as k3
from kizami.chat._k3_calls import read_ahead, sorted_copy
from kizami.chat._k3_faults import show, start_of, too_deep
from kizami.chat._k3_reader import Parser, parse
from kizami.chat._k3_reply import Event, Fault, ParsedReply
from kizami.chat._k3_writer import Writer
from kizami.errors import ChatTypeError, ChatValueError
from kizami.segments import Segment

__all__ = ["STUB_LENGTH", "Event", "Fault", "ParsedReply", "Parser", "parse", "render"]

STUB_LENGTH = len(k3.THINK_OPEN)
"""Segments, and ids, at the end of a generation prompt that open the reply's first channel.

An engine that puts this stub before the model's own output counts it as prompt, not as completion.
"""


def render(
    messages: Iterable[Any],
    *,
    tools: Any = None,
    add_generation_prompt: bool = True,
    thinking: bool = True,
    thinking_effort: str | None = "max",
    tool_choice: Any = None,
    response_format: Any = None,
    response_schema: Any = None,
    image_prompts: Sequence[str] | None = None,
    developer_as_system: bool = False,
) -> list[Segment]:
    """Render an OpenAI-style conversation as the segments of a Kimi K3 prompt.

    Args:
        messages: Dicts with `role` (system, user, assistant, tool) and what belongs to it:
            `content` (text, None, or a list of parts), `name`, `reasoning_content` (or
            `reasoning`), `tool_calls`, `tool_call_id`. Other roles, and items that are not dicts,
            are left out, as the published renderer does, with a `ChatWarning`. A run of tool
            results is put into the order of the calls that it answers if every result in it names
            one of them.
        tools: JSON-like tool list, declared before everything else. A system message may carry
            more in its own `tools`; its content is then left out (with a `ChatWarning`).
        add_generation_prompt: End with an open assistant message. Its last `STUB_LENGTH` segments
            (one id each) are the stub `<|open|>` `think` `<|sep|>`, or `response` without thinking.
        thinking: Write reasoning, and let the model think in the message to come.
        thinking_effort: "low", "high", "max", or None for no such note. Unused without `thinking`.
        tool_choice: "required" and "none" add a note; anything else (also a dict) adds nothing,
            and text other than "auto" gives a `ChatWarning`.
        response_format: `{"type": "json_object"}`, `{"type": "json_schema", "json_schema": ...}`,
            or the type alone. Anything else adds nothing, and gives a `ChatWarning` unless it is
            None or of the type "text".
        response_schema: JSON-like schema that wins over the one inside `response_format`. None
            means not given.
        image_prompts: One control text per image, in the order in which images are rendered: image
            parts, and `<|kimi_image_placeholder|>` inside any content. None (default): an image
            part becomes a trusted segment of that placeholder, and the same characters in text are
            untrusted. (The name is no token of the vocabulary: both give the same ordinary ids.)
        developer_as_system: Render the role `developer` as `system`. The default leaves such
            messages out, as the published renderer does, with a `ChatWarning`.

    Returns:
        A new list, in prompt order. No segment is empty; fixed segments are shared objects.

    Raises:
        ChatKeyError: A message has no `role`, a part no `type` or no `text`, a call no `name`.
            It has `.message_index` (0-based) and `.key`.
        ChatTypeError: `messages` is not a list of messages, content is neither text nor parts,
            arguments are neither a dict nor text, a tool list or schema is not JSON-like, or a
            yes-or-no option is no bool. `.message_index` where one message is at fault.
        ChatValueError: Arguments are JSON but no object, a tool result has no name and no call, the
            number of images differs from `image_prompts`, `thinking_effort` is unknown, or
            something is nested too deeply. It has `.message_index` where one message is at fault.

    Cost: O(characters + segments); text from messages is not copied. Thread-safe. The caller's
    objects are read, never changed.
    Law: text from `messages` and `tools` is in segments with `allow_special=False` only.
    Source: the published renderer at the revision named in this module's docstring.

    >>> segments = render([{"role": "user", "content": "<|sep|> hi"}], thinking_effort=None)
    >>> [(segment.text, segment.allow_special) for segment in segments[6:9]]
    [('<|sep|>', True), ('<|sep|> hi', False), ('<|close|>', True)]
    """
    options = {
        "tools": tools,
        "add_generation_prompt": add_generation_prompt,
        "thinking": thinking,
        "thinking_effort": thinking_effort,
        "tool_choice": tool_choice,
        "response_format": response_format,
        "response_schema": response_schema,
        "image_prompts": image_prompts,
        "developer_as_system": developer_as_system,
    }
    return render_from(as_list(messages), 0, **options).segments


RESUMABLE = frozenset(render.__kwdefaults__ or ()) - {"image_prompts"}
"""Options with which `render_from` may begin behind the first message."""


class Rendered(NamedTuple):
    """A prompt, or the end of one.

    Attributes:
        segments: In prompt order.
        marks: Where it may begin another time (see `render_from`): index of the message in the
            conversation, and index in `segments` of the first segment that is its own.
        warned: Whether there was something to warn of.
    """

    segments: list[Segment]
    marks: list[tuple[int, int]]
    warned: bool


def may_begin(message: Any) -> bool:
    """Whether what is before a message has no part in how it, and all behind it, is rendered.

    >>> may_begin({"role": "assistant", "content": "Hi"}), may_begin({"role": "tool"})
    (True, False)
    """
    return isinstance(message, dict) and message.get("role") == "assistant"


def render_from(
    messages: list[Any],
    first: int,
    *,
    tools: Any = None,
    add_generation_prompt: bool = True,
    thinking: bool = True,
    thinking_effort: str | None = "max",
    tool_choice: Any = None,
    response_format: Any = None,
    response_schema: Any = None,
    image_prompts: Sequence[str] | None = None,
    developer_as_system: bool = False,
) -> Rendered:
    """Render the messages of a conversation from the one with index `first` on, as `render` does.

    `messages` are those alone. What stands before the first message of a conversation is rendered
    if `first` is 0. Above 0 it needs a message that `may_begin`, no `image_prompts`, and that
    `render` accepts the messages before it.

    >>> from kizami.chat import kimi_k3
    >>> talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    >>> whole = kimi_k3.render_from(talk, 0)
    >>> message, segment = whole.marks[-1]
    >>> kimi_k3.render_from(talk[message:], message).segments == whole.segments[segment:]
    True
    """
    add_generation_prompt = _flag("add_generation_prompt", add_generation_prompt)
    thinking = _flag("thinking", thinking)
    developer_as_system = _flag("developer_as_system", developer_as_system)
    writer = Writer(_checked_prompts(image_prompts))
    ahead = read_ahead(messages, first)
    tool_list = sorted_copy("`tools`", tools) if tools else None
    schema_place, schema = _schema(response_format, response_schema)
    schema = sorted_copy(schema_place, schema)
    try:
        if first == 0:
            if tool_list:
                writer.tool_list("`tools`", k3.TOOLS_TEXT, tool_list)
            if thinking:
                writer.out += _effort_note(thinking_effort)
        writer.messages(messages, first, ahead, thinking, developer_as_system)
        writer.tool_choice(tool_choice)
        writer.response_format(response_format, schema_place, schema)
    except RecursionError:
        raise too_deep(writer.place) from None
    writer.check_images()
    if add_generation_prompt:
        writer.out += k3.GENERATE_THINK if thinking else k3.GENERATE_RESPONSE
    for note in writer.notes:
        warnings.warn(note, stacklevel=_level_of_caller())
    return Rendered(writer.out, writer.marks, bool(writer.notes))


def _level_of_caller() -> int:
    """The `stacklevel` with which `render` blames the first frame outside this package."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("kizami."):
        frame = frame.f_back
        level += 1
    return level


def _flag(name: str, value: Any) -> bool:
    """A bool, or the integer 0 or 1; not any truthy value, since `"no"` must not mean yes."""
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise ChatTypeError(f"`{name}` is {start_of(value)}; give True or False")


def as_list(messages: Any) -> list[Any]:
    """The messages as a new list, which no other thread shortens while it is rendered.

    Refused, because nothing of it would be rendered: one message alone, text, a list of
    conversations. (The published renderer gives an empty prompt for each of them.)
    """
    if not isinstance(messages, list) and (
        isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable)
    ):
        raise ChatTypeError(f"`messages` is {show(messages)}; give a list of message dicts")
    conversation = list(messages)
    if conversation and isinstance(conversation[0], list):
        raise ChatTypeError("`messages` is a list of conversations; render each one by itself")
    return conversation


def _checked_prompts(prompts: Any) -> Sequence[Any] | None:
    if prompts is None or isinstance(prompts, (list, tuple)):
        return prompts
    hint = "give a list of control texts, or None"
    raise ChatTypeError(f"`image_prompts` is {show(prompts)}; {hint}")


def _schema(response_format: Any, response_schema: Any) -> tuple[str, Any]:
    """The option that holds the schema, and the schema: the one given, else the one inside."""
    if response_schema is not None:
        return "`response_schema`", response_schema
    schema = None
    if isinstance(response_format, dict):
        schema = response_format.get("json_schema")
        if isinstance(schema, dict):
            if "schema" in schema:
                schema = schema["schema"]
            elif "json_schema" in schema:
                schema = schema["json_schema"]
    return "`response_format`", schema


def _effort_note(effort: Any) -> k3.Run:
    if effort is None:
        return ()
    hint = "give low, high, max or None"
    try:
        note = k3.EFFORT_NOTES.get(effort)
    except TypeError:  # not hashable
        raise ChatTypeError(f"`thinking_effort` is {start_of(effort)}; {hint}") from None
    if note is None:
        raise ChatValueError(f"`thinking_effort` is {start_of(effort)}; {hint}")
    return note
