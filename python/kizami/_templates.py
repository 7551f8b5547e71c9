"""Chat templates that come with a vocabulary: what is kept of them, and how they are run."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kizami._files import read_bytes
from kizami.errors import ChatValueError, ChatWarning, InputTypeError, VocabularyError
from kizami.segments import Segment

if TYPE_CHECKING:
    from kizami.chat.jinja import ChatTemplate

__all__ = ["read_template", "render_template", "template_variables"]


def read_template(directory: Path, config: Mapping[str, Any]) -> dict[str, Any] | None:
    """The template of a folder, and the names that it may print; None if there is no template."""
    file = directory / "chat_template.jinja"
    template = config.get("chat_template")
    if file.is_file():
        try:
            template = read_bytes(file).decode()
        except UnicodeDecodeError as error:
            raise VocabularyError(f"{file}: {error}", path=str(file)) from None
    if template is None:
        return None
    kept = {
        key: value
        for key, value in config.items()
        if key.endswith("_token") or key == "extra_special_tokens"
    }
    return {"chat_template": template, **kept}


def template_variables(
    options: Mapping[str, Any],
    *,
    thinking: bool,
    thinking_effort: str | None,
    developer_as_system: bool,
    **others: Any,
) -> dict[str, Any]:
    """The options of `render_chat` as variables of a template; `options` win."""
    if developer_as_system:
        raise InputTypeError("developer_as_system has no meaning for a model with a Jinja template")
    variables = {key: value for key, value in others.items() if value is not None}
    if thinking is not True:
        variables |= {"enable_thinking": thinking, "thinking": thinking}
    if thinking_effort != "max":
        variables["reasoning_effort"] = thinking_effort
    return {**variables, **options}


def render_template(
    template: ChatTemplate,
    name: str,
    messages: Sequence[Mapping[str, Any]],
    **variables: Any,
) -> list[Segment]:
    """The segments of a conversation, with a warning where trust was lost.

    Their text is what `apply_chat_template(tokenize=False)` of transformers 5 gives.
    """
    from kizami.chat.jinja import normalized

    messages = normalized(messages)
    if not messages:
        raise ChatValueError("the conversation is empty; give at least one message")
    rendered = template.render(messages, **variables)
    if rendered.untracked:
        what = ", ".join(sorted(set(rendered.untracked)))
        warnings.warn(
            f"the chat template of {name!r} does what trust cannot be followed through "
            f"({what}); text that came of it counts as untrusted",
            ChatWarning,
            stacklevel=3,
        )
    return rendered.segments
