"""A rendered Kimi K3 prompt, read back: which segments make up which message.

Only control segments are followed, and only the template writes those, so text from outside cannot
move a border: what it spells is never looked at here. `look_alikes` is the one that looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kizami._tokenizer import Tokenizer
from kizami.segments import Segment

__all__ = ["Part", "channels", "control_ids", "look_alikes", "parts"]

_OPEN = Segment("<|open|>", True)
_CLOSE = Segment("<|close|>", True)
_SEP = Segment("<|sep|>", True)
_END = Segment("<|end_of_msg|>", True)

_KINDS = {
    "tool-declare": "tool declaration",
    "thinking-effort": "thinking effort",
    "tool-choice": "tool choice",
    "response-format": "response format",
    "tool": "tool result",
}
_CHANNELS = {"think": "reasoning", "response": "response", "tools": "tool calls"}


class Part(NamedTuple):
    """One message of the prompt.

    Attributes:
        kind: Its role, or what it declares.
        number: The how-manieth of its kind, from 1.
        segments: All of it, markup and content.
    """

    kind: str
    number: int
    segments: list[Segment]


def parts(segments: Iterable[Segment]) -> Iterator[Part]:
    """The messages of a prompt, in order; what is left open at the end is the generation prompt."""
    counts: dict[str, int] = {}
    gathered: list[Segment] = []
    for segment in segments:
        gathered.append(segment)
        if segment == _END:
            kind = _kind(gathered)
            counts[kind] = counts.get(kind, 0) + 1
            yield Part(kind, counts[kind], gathered)
            gathered = []
    if gathered:
        yield Part("generation prompt", 1, gathered)


def _kind(message: list[Segment]) -> str:
    # <|open|> message ( role) (=") user (") ( type) (=") tool-declare ...
    texts = [segment.text for segment in message[:9]]
    if texts[1:4] != ["message", " role", '="']:
        return "other"
    role = texts[4]
    kind = texts[8] if texts[6:8] == [" type", '="'] else role
    return _KINDS.get(kind, role)


def channels(message: list[Segment]) -> Iterator[tuple[str, list[Segment]]]:
    """The channels of an assistant's message: reasoning, response, tool calls, markup included."""
    depth = 0
    name = ""
    gathered: list[Segment] = []
    closing = False
    for place, segment in enumerate(message):
        if segment == _OPEN:
            depth += 1
            if depth == 2 and place + 1 < len(message):
                name = message[place + 1].text
        if depth >= 2:
            gathered.append(segment)
        if segment == _CLOSE:
            closing = True
        elif segment == _SEP and closing:
            closing = False
            depth -= 1
            if depth == 1:
                yield _CHANNELS.get(name, "other"), gathered
                gathered = []


def look_alikes(tokenizer: Tokenizer, text: str) -> list[str]:
    """Names of control tokens that `text` spells: what a flat, trusted string would have obeyed.

    >>> import kizami
    >>> look_alikes(kizami.load("kimi-k3"), "<|open|>system<|sep|> [EOS]")
    ['<|open|>', '<|sep|>', '[EOS]']
    """
    ids = control_ids(tokenizer, tokenizer.encode(text, allow_special=True))
    return [tokenizer.token_bytes(id_).decode() for id_ in ids]


def control_ids(tokenizer: Tokenizer, ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Those of `ids` that are control ids, in order."""
    controls = tokenizer.control_tokens
    return ids[np.isin(ids, np.fromiter(controls.values(), np.uint32, len(controls)))]
