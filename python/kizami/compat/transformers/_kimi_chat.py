"""Conversations of a Kimi K3 class: rendered by Kizami where that is known to be the same.

At a few thousand tokens, the class spends more time on rendering than on encoding. Before its
renderer is replaced, both render the conversations of `PROBES`, which use every rule that the
format has; a class that differs in one keeps its own. What a call asks beyond those rules, and what
cannot be rendered, goes to the class, whose errors are then its own.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

from kizami.chat.kimi_k3 import render
from kizami.errors import ChatWarning, KizamiError
from kizami.segments import Segment

__all__ = ["PROBES", "Options", "same_renderer"]

# Options of the class that its renderer takes, and those that shape what comes out.
_RENDERED = {
    "tools",
    "add_generation_prompt",
    "thinking",
    "thinking_effort",
    "tool_choice",
    "response_format",
    "response_schema",
    "image_prompts",
}
_SHAPING = {
    "padding",
    "truncation",
    "max_length",
    "return_tensors",
    "return_dict",
    "return_assistant_tokens_mask",
}
_KNOWN = _RENDERED | _SHAPING | {"tokenize"}


class Options:
    """Options of `apply_chat_template`, with the defaults of one class."""

    def __init__(self, method: Callable[..., Any]) -> None:
        parameters = inspect.signature(method).parameters
        names = (*_RENDERED, *_SHAPING, "tokenize")
        self.defaults = {name: parameters[name].default for name in names if name in parameters}

    def render(self, conversation: Any, given: dict[str, Any]) -> list[Segment] | None:
        """The segments of a conversation whose ids are asked for; None if the class must do it."""
        options = {**self.defaults, **given}
        if not options.get("tokenize") or not options.keys() <= _KNOWN:
            return None
        if any(options.get(name) for name in _SHAPING) or not _is_plain(conversation, options):
            return None
        rendered = {name: options[name] for name in _RENDERED if name in options}
        try:
            return render(conversation, **rendered)
        except (KizamiError, ChatWarning):
            return None


def _is_plain(conversation: Any, options: dict[str, Any]) -> bool:
    """Whether types are those for which both renderers were written."""
    return (
        type(conversation) is list
        and all(type(message) is dict for message in conversation)
        and (options.get("tools") is None or type(options["tools"]) is list)
        and options.get("image_prompts") is None
        # To the class, None is a schema.
        and not ("response_schema" in options and options["response_schema"] is None)
        and all(type(options[name]) is bool for name in ("add_generation_prompt", "thinking"))
    )


def same_renderer(
    method: Callable[..., Any],
    apply: Callable[..., Any],
    encode: Callable[[list[Segment]], Any],
) -> bool:
    """Whether a class renders all of `PROBES` as Kizami does.

    Args:
        method: Its `apply_chat_template`, with the defaults of its options.
        apply: The same, of one tokenizer.
        encode: The ids of segments.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ChatWarning)
        try:
            options = Options(method)
            for conversation, given in PROBES:
                segments = options.render(conversation, {"tokenize": True, **given})
                if segments is None:
                    return False
                if apply(conversation, tokenize=True, **given) != encode(segments):
                    return False
        except Exception:
            # Whatever code that we do not know raises, it is not the code that we know.
            return False
    return True


def _tool(name: str, **rest: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": 'ü "q" & <|sep|>', **rest},
    }


def _call(id_: Any, name: str, arguments: Any) -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


_SCHEMA = {"z": {"type": "number"}, "a": [{"y": 1.5, "b": None}]}
_VALUES = {
    "s": " text\n",
    "n": 1.5,
    "b": True,
    "none": None,
    "o": {"z": 1, "a": "é"},
    "l": [1, "2"],
}
_TOOLS = [_tool("look", parameters=_SCHEMA), {"function": {"name": "now"}, "type": "function"}]
_TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief. <|end_of_msg|>"},
    {"role": "system", "name": 'a"b&c', "content": [{"type": "text", "text": "part"}]},
    {"role": "system", "tools": [_tool("more")], "content": "left out", "name": "left out"},
    {"role": "developer", "content": "left out"},
    {"role": "user", "name": "me", "content": "<|open|>Hi\r\n\u3000 中文 🎉"},
    {"role": "user", "name": "", "content": None},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "see "},
            {"type": "image_url", "image_url": {"url": "x"}},
            {"type": "image"},
            {"type": "text", "text": ""},
            {"type": "text", "text": " <|kimi_image_placeholder|>"},
        ],
    },
    {"role": "assistant", "reasoning_content": " hm \n", "content": "So:"},
    {"role": "assistant", "name": "k", "reasoning_content": "  ", "content": ""},
    {"role": "assistant", "reasoning_content": "", "reasoning": "other", "content": None},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            _call("b", "look", _VALUES),
            _call(7, "now", '{"q": [1, 2], "a": "x"}'),
            _call("c", "now", "{bad"),
            _call("d", "now", " "),
            _call("e", "now", None),
        ],
    },
    {"role": "tool", "tool_call_id": "7", "content": "second"},
    {
        "role": "tool",
        "tool_call_id": "b",
        "name": "own",
        "content": [{"type": "text", "text": "1"}],
    },
    {"role": "user", "content": "go on"},
    {"role": "tool", "tool_call_id": "unknown", "tool": "own", "content": "kept"},
    {"role": "tool", "tool_call_id": "b", "content": "in order"},
]

PROBES: tuple[tuple[list[dict[str, Any]], dict[str, Any]], ...] = (
    ([], {}),
    (_TALK, {}),
    (_TALK, {"tools": _TOOLS, "add_generation_prompt": True}),
    (_TALK, {"tools": [], "thinking": False, "add_generation_prompt": True}),
    (_TALK[:5], {"thinking_effort": "low", "tool_choice": "required"}),
    (_TALK[:5], {"thinking_effort": "high", "tool_choice": "none", "add_generation_prompt": False}),
    (_TALK[:5], {"thinking_effort": None, "tool_choice": "auto", "response_format": None}),
    (_TALK[:5], {"thinking_effort": "max", "response_format": {"type": "json_object"}}),
    (_TALK[:5], {"thinking": False, "thinking_effort": "low", "response_format": "json_object"}),
    *(
        (_TALK[4:5], {"response_format": {"type": "json_schema", "json_schema": schema}})
        for schema in (_SCHEMA, {"schema": _SCHEMA}, {"json_schema": _SCHEMA, "name": "n"})
    ),
    (_TALK[4:5], {"response_format": "json_schema", "response_schema": _SCHEMA}),
    (_TALK[4:5], {"response_format": {"type": "text"}, "tool_choice": {"type": "function"}}),
)
"""Conversations and options, which together use every rule of the format."""
