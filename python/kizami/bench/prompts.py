"""Prompts of a wanted size: a text, or a conversation as the chat template renders it.

Two conversations are used, which give 54 and 118 segments: one question with a tool declared, and
one turn of an agent with a tool call and its result. They are rendered by Kizami, as every engine
takes the segments that come out. Sizes in tokens are met by counting, to within 2 %, with Kizami.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import kizami
from kizami.bench.lab.inputs import Prompt
from kizami.bench.texts import WORST, Texts

__all__ = ["SHAPES", "Prompts"]

_TOLERANCE = 0.02


class Prompts:
    """Makes prompts from texts; the same arguments give the same prompt."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self._tokenizer = kizami.load("kimi-k3")
        self._ratios: dict[str, float] = {}

    def of_tokens(self, shape: str, kind: str, tokens: int, seed: int) -> Prompt:
        """A prompt of about `tokens` ids.

        Args:
            shape: One of `SHAPES`.
            kind: Kind of the text in it.
            tokens: Wanted ids, of the markup too; from 300 on, conversations can be met.
            seed: Another seed gives another prompt.
        """
        make, markup = SHAPES[shape], _MARKUP[shape]
        least, most = 0, 0  # sizes known to be too small and too large; 0: none yet
        size = max(1, round((tokens - markup) * self._chars_per_token(kind)))
        while True:
            prompt = make(self.texts, kind, size, seed)
            found = self._tokenizer.count_segments(prompt)
            if abs(found - tokens) <= _TOLERANCE * tokens or most - least == 1:
                return prompt
            least, most = (size, most) if found < tokens else (least, size)
            size = max(1, round(size * (tokens - markup) / max(1, found - markup)))
            if not least < size < (most or size + 1):
                size = (least + most) // 2 if most else 2 * least

    def _chars_per_token(self, kind: str) -> float:
        """A first guess, the same whatever was made before."""
        if kind not in self._ratios:
            sample = self.texts.make(kind, 20_000, 0)
            self._ratios[kind] = len(sample) / self._tokenizer.count(sample)
        return self._ratios[kind]

    def of_bytes(self, kind: str, size: int, seed: int) -> Prompt:
        """One untrusted text of about `size` bytes of UTF-8."""
        sample = self.texts.make(kind, 2000, seed)
        per_char = len(sample.encode()) / len(sample)
        return [(self.texts.make(kind, round(size / per_char), seed), False)]

    def of_chars(self, kind: str, size: int, seed: int) -> Prompt:
        """One untrusted text of exactly `size` characters."""
        return [(self.texts.make(kind, size, seed), False)]


def _single(texts: Texts, kind: str, size: int, seed: int) -> Prompt:
    return [(texts.make(kind, size, seed), False)]


def _question(texts: Texts, kind: str, size: int, seed: int) -> Prompt:
    """54 segments: a tool is declared, the user asks."""
    described = min(size // 6, 20_000)
    tool: dict[str, object] = {
        "type": "function",
        "function": {
            "name": "search",
            "description": texts.make(_prose(kind), described, seed),
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
        },
    }
    content = texts.make(kind, max(1, size - described), seed + 1)
    return _rendered([{"role": "user", "content": content}], [tool])


def _turn(texts: Texts, kind: str, size: int, seed: int) -> Prompt:
    """118 segments: question, reasoning, response, tool call and result."""

    def part(share: float, number: int, as_prose: bool) -> str:
        text = texts.make(
            _prose(kind) if as_prose else kind, max(1, int(size * share)), seed + number
        )
        return text if text.strip() else f"{text}."

    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "run", "arguments": json.dumps({"code": part(0.1, 4, False)})},
    }
    assistant: dict[str, object] = {
        "role": "assistant",
        "reasoning_content": part(0.2, 2, True),
        "content": part(0.1, 3, True),
        "tool_calls": [call],
    }
    messages: list[dict[str, object]] = [
        {"role": "user", "content": part(0.2, 1, True)},
        assistant,
        {"role": "tool", "tool_call_id": "call_1", "content": part(0.4, 5, False)},
    ]
    return _rendered(messages, None)


def _rendered(messages: list[dict[str, object]], tools: list[dict[str, object]] | None) -> Prompt:
    tokenizer = kizami.load("kimi-k3")
    segments = tokenizer.render_chat(messages, tools=tools)
    return [(segment.text, segment.allow_special) for segment in segments]


def _prose(kind: str) -> str:
    """What people and models say around an agent's tools is English."""
    return "english" if kind in ("agent", "code") or kind in WORST else kind


SHAPES: dict[str, Callable[[Texts, str, int, int], Prompt]] = {
    "text": _single,
    "54": _question,
    "118": _turn,
}
"""Makers of prompts by name: one text, and conversations by their number of segments."""

_MARKUP = {"text": 0, "54": 150, "118": 160}
"""Ids of a conversation without content, about."""
