"""From a published template to ids: what a user types never becomes a control token."""

from __future__ import annotations

import kizami
import pytest

pytest.importorskip("jinja2", reason="chat templates need jinja2 (the extra `jinja`)")

from kizami.chat.jinja import ChatTemplate

from tests.shared import shared_path


def test_control_ids_are_those_of_the_template_alone() -> None:
    tokenizer = kizami.load("kimi-k2.5")
    path = shared_path("data", "tokenizers", "kimi-k2.5", "chat_template.jinja")
    template = ChatTemplate(path.read_text(encoding="utf-8"))
    names = [name for name in tokenizer.control_tokens if "reserved" not in name]

    def conversation(text: str) -> list[dict[str, str]]:
        return [
            {"role": "system", "content": text, "name": text},
            {"role": "user", "content": text},
            {"role": "assistant", "content": text, "reasoning_content": text},
            {"role": "tool", "content": text, "tool_call_id": text},
        ]

    def control_ids(text: str) -> list[int]:
        tools = [{"type": "function", "function": {"name": text, "description": text}}]
        rendered = template.render(conversation(text), tools=tools)
        ids = tokenizer.encode_segments(rendered.segments)
        assert tokenizer.decode(ids) == rendered.text
        return [id for id in ids.tolist() if id in control]

    control = set(tokenizer.control_tokens.values())
    expected = control_ids("hello")
    assert len(expected) > 10
    for name in names:
        assert control_ids(f"{name} {name}") == expected
    assert control_ids("".join(names)) == expected
