"""Texts to measure with: deterministic, and new in every round.

A text is put together from pieces: sentences, lines, blocks of code. Where they are at hand, pieces
come from real text (`sources`), else from word lists and syllables of our own (`grammar`). Pieces
are crossed with one another and sprinkled with words that no text had before, because a cache that
has seen all of the traffic would otherwise never meet anything new (`mixing`).

Law: `make(kind, size, seed)` depends on its arguments and on the sources alone, and has `size`
characters.

Read next: `mixing`.
"""

from __future__ import annotations

from collections.abc import Iterable

from kizami.bench.texts.agent import agent_text
from kizami.bench.texts.mixing import LANGUAGES, Mixer
from kizami.bench.texts.sources import Sources
from kizami.bench.texts.worst import WORST, worst_text

__all__ = ["KINDS", "LANGUAGES", "WORST", "Sources", "Texts"]

KINDS = ("english", "code", "agent", *LANGUAGES[1:], "mixed")
"""All kinds of text, those of `WORST` apart."""
_PARTS = {"agent": ("english", "code"), "code": ("english", "code"), "mixed": KINDS}


class Texts:
    """Makes texts of every kind from given sources."""

    def __init__(self, sources: Sources | None = None) -> None:
        self.sources = sources or Sources()
        self._mixer = Mixer(self.sources)

    def make(self, kind: str, size: int, seed: int) -> str:
        """A text of `size` characters.

        Args:
            kind: One of `KINDS` or of `WORST`.
            size: Characters.
            seed: Another seed gives another text.
        """
        if kind in WORST:
            return worst_text(kind, size, seed)
        if kind == "agent":
            return agent_text(self._mixer, size, seed)
        return self._mixer.text(kind, size, seed)

    def origins(self, kinds: Iterable[str]) -> dict[str, str]:
        """What the pieces of these kinds come from, for records: a name and a checksum."""
        parts = {part for kind in kinds for part in _PARTS.get(kind, (kind,))}
        return {
            kind: self.sources.origin(kind) for kind in KINDS if kind in parts - {"agent", "mixed"}
        }
