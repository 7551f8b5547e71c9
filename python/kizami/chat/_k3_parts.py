"""The fixed parts of a Kimi K3 prompt, and the two ways in which it writes JSON.

Every segment that does not depend on the messages is built once, here, and shared by all prompts
(`Segment` is immutable); a run of fixed segments is one tuple, so that a renderer adds it with one
`+=`. Nothing here looks at a message.

Notation: an open tag is `<|open|>` name (` key` `="` value `"`)* `<|sep|>`, a close tag is
`<|close|>` name `<|sep|>`; the three markers are control segments, all the rest is plain text, and
each piece is a segment of its own, because the model was trained on ids that never merge across
these borders.

Read next: `kimi_k3`, which puts the parts together.
"""

from __future__ import annotations

import json
from typing import Any, Final

from kizami.segments import Segment

Run = tuple[Segment, ...]

IMAGE_PLACEHOLDER: Final = "<|kimi_image_placeholder|>"
IMAGE_PLACEHOLDER_SEGMENT: Final = Segment(IMAGE_PLACEHOLDER, True)

_OPEN: Final = Segment("<|open|>", True)
_CLOSE: Final = Segment("<|close|>", True)
_SEP: Final = Segment("<|sep|>", True)
_END: Final = Segment("<|end_of_msg|>", True)
_EQUALS: Final = Segment('="')
_QUOTE: Final = Segment('"')


def _key(key: str) -> Run:
    """What stands before an attribute's value."""
    return (Segment(f" {key}"), _EQUALS)


def _attribute(key: str, value: str) -> Run:
    return (*_key(key), Segment(value), _QUOTE)


def _start(tag: str, *attributes: Run) -> Run:
    """An open tag up to, not including, its `<|sep|>`."""
    return (_OPEN, Segment(tag), *(part for run in attributes for part in run))


def _close(tag: str) -> Run:
    return (_CLOSE, Segment(tag), _SEP)


# Open tags end in QUOTE_SEP (after an attribute value) or in SEP (complete attributes).
SEP: Final[Run] = (_SEP,)
QUOTE_SEP: Final[Run] = (_QUOTE, _SEP)
NAME: Final[Run] = _key("name")
MESSAGE_END: Final[Run] = (*_close("message"), _END)

# Messages. The starts lack their `<|sep|>`, because a `name` may follow.
USER_START: Final = _start("message", _attribute("role", "user"))
SYSTEM_START: Final = _start("message", _attribute("role", "system"))
ASSISTANT_START: Final = _start("message", _attribute("role", "assistant"))

THINK_OPEN: Final[Run] = (*_start("think"), _SEP)
THINK_TO_RESPONSE: Final[Run] = (*_close("think"), *_start("response"), _SEP)
RESPONSE_OPEN: Final[Run] = (*_start("response"), _SEP)
RESPONSE_CLOSE: Final = _close("response")

# Generation prompts: a message that is left open. The last three segments (three ids) are the stub
# that a serving engine puts before the model's own tokens.
GENERATE_THINK: Final[Run] = (*ASSISTANT_START, _SEP, *THINK_OPEN)
GENERATE_RESPONSE: Final[Run] = (*ASSISTANT_START, _SEP, *RESPONSE_OPEN)

# Tool calls and results; each `*_TO_*` run goes between two values that depend on the message.
TOOLS_OPEN: Final[Run] = (*_start("tools"), _SEP)
TOOLS_CLOSE: Final = _close("tools")
CALL_TO_NAME: Final[Run] = _start("call", _key("tool"))
RESULT_TO_NAME: Final[Run] = _start("message", _attribute("role", "tool"), _key("tool"))
NAME_TO_INDEX: Final[Run] = (_QUOTE, *_key("index"))
CALL_CLOSE: Final = _close("call")
ARGUMENT_TO_KEY: Final[Run] = _start("argument", _key("key"))
ARGUMENT_CLOSE: Final = _close("argument")
UNPARSED_OPEN: Final[Run] = (*_start("json", _attribute("type", "object")), _SEP)
UNPARSED_CLOSE: Final = _close("json")


def _key_to_value(kind: str) -> Run:
    return (_QUOTE, *_attribute("type", kind), _SEP)


STRING: Final = _key_to_value("string")
NUMBER: Final = _key_to_value("number")
TRUE_VALUE: Final[Run] = (*_key_to_value("boolean"), Segment("true"))
FALSE_VALUE: Final[Run] = (*_key_to_value("boolean"), Segment("false"))
NULL_VALUE: Final[Run] = (*_key_to_value("null"), Segment("null"))
OBJECT: Final = _key_to_value("object")
ARRAY: Final = _key_to_value("array")


def _note_open(kind: str) -> Run:
    """Open a message that the renderer itself writes in the system's name."""
    return (*_start("message", _attribute("role", "system"), _attribute("type", kind)), _SEP)


def _note(kind: str, body: str) -> Run:
    return (*_note_open(kind), Segment(body), *MESSAGE_END)


TOOLS_NOTE_OPEN: Final = _note_open("tool-declare")
FORMAT_NOTE_OPEN: Final = _note_open("response-format")

TOOLS_TEXT: Final = (
    "# Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n{}\n```"
)
MORE_TOOLS_TEXT: Final = (
    "## New Tools Available\n"
    "The system dynamically extends the toolset via lazy-loading.\n"
    "You have access to all existing and extended tools.\n"
    "Here are the specs for the extended tools.\n"
    "\n"
    "```json\n"
    "{}\n"
    "```"
)
_FORMAT_TEXT: Final = (
    "The system is invoked with `response_format={}`.\n"
    "Your response must be raw JSON data without markdown code blocks (```json) or any additional"
    " formatting."
)
SCHEMA_TEXT: Final = (
    _FORMAT_TEXT.format("json_schema")
    + "\nThe JSON data must match the following schema:\n```json\n{}\n```"
)
_EFFORT_TEXT: Final = (
    "`thinking_effort` guides on how much to think in your thinking channel (not including the"
    " response channel), supported values include `low`, `medium`, `high`, and `max`.\n"
    "Now the system is invoked with `thinking_effort={}`."
)

# The text names `medium`; the published renderer refuses it all the same.
EFFORT_NOTES: Final[dict[Any, Run]] = {
    effort: _note("thinking-effort", _EFFORT_TEXT.format(effort))
    for effort in ("low", "high", "max")
}
CHOICE_NOTES: Final[dict[str, Run]] = {
    "required": _note(
        "tool-choice",
        "The system is invoked with `tool_choice=required`.\n"
        "You MUST call tools in the next message.",
    ),
    "none": _note(
        "tool-choice",
        "The system is invoked with `tool_choice=none`.\n"
        "You MUST NOT call any tools in the next message.",
    ),
}
JSON_OBJECT_NOTE: Final = _note("response-format", _FORMAT_TEXT.format("json_object"))

# Of argument values: Python's default separators, keys in the caller's order.
argument_json: Final = json.JSONEncoder(ensure_ascii=False).encode
# Of tool lists and schemas (through `sorted_keys`): no blanks.
compact_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def sorted_keys(value: Any) -> Any:
    """Copy `value` with the keys of every dict sorted, in dicts and lists at any depth.

    Not `json.dumps(sort_keys=True)`: the published renderer leaves tuples, and the dicts inside
    them, as they are.

    Raises:
        TypeError: Keys of one dict cannot be compared with each other.
        RecursionError: Nested deeper than the interpreter's limit, or inside itself.

    >>> sorted_keys({"b": [{"z": 1, "a": 2}], "a": ({"z": 1, "a": 2},)})
    {'a': ({'z': 1, 'a': 2},), 'b': [{'a': 2, 'z': 1}]}
    """
    if isinstance(value, dict):
        return {
            key: sorted_keys(item) if isinstance(item, (dict, list)) else item
            for key, item in sorted(value.items(), key=_first)
        }
    if isinstance(value, list):
        return [sorted_keys(item) if isinstance(item, (dict, list)) else item for item in value]
    return value


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def escape(value: Any) -> str:
    """Write `value` as an attribute value: only `&` and `"` are escaped.

    >>> escape('<|sep|>" & 5')
    '<|sep|>&quot; &amp; 5'
    """
    text = value if type(value) is str else str(value)
    if "&" in text:
        text = text.replace("&", "&amp;")
    if '"' in text:
        text = text.replace('"', "&quot;")
    return text
