"""From pieces to a text: drawn at random, crossed, with some words that are new.

Real traffic repeats words and rarely sentences. So the head of one piece is joined to the tail of
another: at a space where the language has spaces, anywhere else where it has none, which makes long
runs of Han, kana or Thai new while what is in them stays natural. Every fortieth word or so is made
up; in code, every tenth block has a name changed.
"""

from __future__ import annotations

import re
from random import Random

from kizami.bench.texts.grammar import LANGUAGES, language
from kizami.bench.texts.sources import Sources

__all__ = ["LANGUAGES", "Mixer"]

_NEW_WORD_IN = 0.45  # of all sentences
_NAME = re.compile(r"\b[a-z_]{4,}\b")


class Mixer:
    """Draws texts from the pieces of some sources."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._pieces: dict[str, list[str]] = {}

    def text(self, kind: str, size: int, seed: int) -> str:
        """Exactly `size` characters of a language, of "code" or of "mixed"."""
        random = Random(f"{kind} {seed}")
        parts: list[str] = []
        length = 0
        while length < size:
            part = self.part(kind, random)
            parts.append(part)
            length += len(part)
        return "".join(parts)[:size]

    def part(self, kind: str, random: Random) -> str:
        """A sentence of a language, a block of "code"; of "mixed" three of either."""
        if kind == "mixed":
            kind = random.choice(("code", *LANGUAGES))
            return "".join(self.part(kind, random) for _ in range(3)) + "\n"
        pieces = self._pieces.get(kind)
        if pieces is None:
            pieces = self._pieces[kind] = self._sources.pieces(kind)
        one = pieces[int(random.random() * len(pieces))]
        if kind == "code":
            return _renamed(one, random) if random.random() < 0.1 else one
        two = pieces[int(random.random() * len(pieces))]
        return _crossed(one, two, kind, random)


def _crossed(one: str, two: str, kind: str, random: Random) -> str:
    words = language(kind)
    if words.space:
        at = one.find(" ", int(random.random() * len(one)))
        of = two.find(" ", int(random.random() * len(two)))
        if at < 0 or of < 0:
            return one
        if random.random() < _NEW_WORD_IN:
            return f"{one[:at]} {words.new_word(random)}{two[of:]}"
        return one[:at] + two[of:]
    at, of = int(random.random() * len(one)), int(random.random() * len(two))
    if random.random() < _NEW_WORD_IN / 2:
        return one[:at] + words.new_word(random) + two[of:]
    return one[:at] + two[of:]


def _renamed(block: str, random: Random) -> str:
    """The block with one of its names changed everywhere."""
    names = _NAME.findall(block)
    if not names:
        return block
    old = random.choice(names)
    new = language("english").new_word(random)
    return re.sub(rf"\b{old}\b", f"{new}_{old[:6]}", block)
