"""Inputs that tokenizers are slow on: a megabyte without a place to split it, or all of places.

None is made against one engine; each has been a reported fault, or an obvious attack, of some.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from kizami.bench.lab.inputs import random_words

__all__ = ["WORST", "worst_text"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MARKS = "\u0300\u0301\u0302\u0303\u0308\u0323\u0327\u0338"
_EMOJI = "😀😂🥰👍🏽👩‍👩‍👧‍👦🇯🇵🇩🇪❤️🔥✨🎉🚀"
_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_SPACES = " \n\r\t"


def _drawn(alphabet: str) -> Callable[[int, Random], str]:
    return lambda size, random: "".join(random.choices(alphabet, k=size))


def _repeated(unit: str) -> Callable[[int, Random], str]:
    return lambda size, random: (unit * (size // len(unit) + 1))[:size]


def _han(size: int, random: Random) -> str:
    return "".join(map(chr, random.choices(range(0x4E00, 0x9FA6), k=size)))


def _marked(size: int, random: Random) -> str:
    return "".join(
        map(
            "".join,
            zip(
                random.choices(_LETTERS, k=size // 2 + 1),
                random.choices(_MARKS, k=size // 2 + 1),
                strict=True,
            ),
        )
    )[:size]


WORST: dict[str, Callable[[int, Random], str]] = {
    "one-letter": _repeated("a"),
    "two-letters": _repeated("ab"),
    "random-letters": _drawn(_LETTERS),
    "random-han": _han,
    "equals-signs": _repeated("="),
    "carets": _repeated("^"),
    "spaces": _repeated(" "),
    "newlines-and-spaces": _drawn(_SPACES),
    "digits": _drawn("0123456789"),
    "emoji": _drawn(_EMOJI),
    "combining-marks": _marked,
    "punctuation": _drawn(_PUNCTUATION),
    "random-words": lambda size, random: random_words(size, random.getrandbits(32)),
}
"""Makers by name: characters and a source of chance in, a text out."""


def worst_text(kind: str, size: int, seed: int) -> str:
    """Exactly `size` characters of one of `WORST`."""
    return WORST[kind](size, Random(f"{kind} {seed}"))
