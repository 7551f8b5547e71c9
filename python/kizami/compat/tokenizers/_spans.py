"""What an `Encoding` is made of: spans of tokens that share a source.

A source holds the ids of one text, and finds out the rest (names, words, offsets) when it is asked
for. A span is a range of a source, with what truncation, templates and merges say of it, so that
these cost the same for a long text as for a short one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from kizami.errors import UnknownFormatError

if TYPE_CHECKING:
    from kizami import _native
    from kizami.compat.tokenizers._vocabulary import Vocabulary

__all__ = ["Fixed", "Source", "Span", "Text"]

Ids = npt.NDArray[np.uint32]
Ints = npt.NDArray[np.int64]

# White space in Unicode, and the letter that spells a space in a byte-level vocabulary.
_SPACES = frozenset(
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000Ġ"
)


class Source:
    """Tokens with the same masks; `words` are -1 where there is none."""

    __slots__ = ("attention", "ids", "special")

    ids: Ids
    special: int
    attention: int

    def tokens(self, start: int, stop: int) -> list[str]:
        """The names of some tokens."""
        raise NotImplementedError

    def words(self, start: int, stop: int) -> Ints:
        """The words that they are from."""
        raise NotImplementedError

    def offsets(self, start: int, stop: int) -> tuple[Ints, Ints]:
        """Where they begin and end."""
        raise NotImplementedError


class Fixed(Source):
    """Tokens of which all is known: those of a template, padding, or what was pickled."""

    __slots__ = ("_offsets", "_tokens", "_words")

    def __init__(
        self,
        ids: Sequence[int] | Ids,
        tokens: Sequence[str],
        *,
        special: int = 1,
        attention: int = 1,
        words: Ints | None = None,
        offsets: tuple[Ints, Ints] | Literal["unknown"] | None = None,
    ) -> None:
        self.ids = np.asarray(ids, dtype=np.uint32)
        self.special = special
        self.attention = attention
        self._tokens = list(tokens)
        self._words = np.full(len(self.ids), -1) if words is None else words
        nowhere = np.zeros(len(self.ids), dtype=np.int64)
        self._offsets = (nowhere, nowhere) if offsets is None else offsets

    def tokens(self, start: int, stop: int) -> list[str]:
        return self._tokens[start:stop]

    def words(self, start: int, stop: int) -> Ints:
        return self._words[start:stop]

    def offsets(self, start: int, stop: int) -> tuple[Ints, Ints]:
        if self._offsets == "unknown":
            raise _no_offsets("offsets")
        starts, ends = self._offsets
        return starts[start:stop], ends[start:stop]


class Text(Source):
    """The tokens of one text, or of one list of words."""

    __slots__ = ("_native", "_places", "_text", "_vocabulary", "_without")

    def __init__(
        self,
        vocabulary: Vocabulary,
        native: _native.Tokenizer,
        text: str | tuple[str, ...],
        ids: Ids,
        without: bool,
    ) -> None:
        self.ids = ids
        self.special = 0
        self.attention = 1
        self._vocabulary = vocabulary
        self._native = native
        self._text = text
        # Of `encode_batch_fast`, which does not tell.
        self._without = without
        self._places: tuple[Ints, tuple[Ints, Ints] | None] | None = None

    def places(self) -> tuple[Ints, tuple[Ints, Ints] | None]:
        """Words, and starts and ends if they are known."""
        if self._places is None:
            parts = (self._text,) if isinstance(self._text, str) else self._text
            words, parts_of, ranges = self._native.places([(part, True) for part in parts])
            self._places = (words if isinstance(self._text, str) else parts_of), ranges
        return self._places

    def tokens(self, start: int, stop: int) -> list[str]:
        ids = self.ids[start:stop].tolist()
        names = self._vocabulary.names
        tokens = [names[id_] for id_ in ids]
        stripping = self._vocabulary.stripping
        if not stripping.isdisjoint(ids):
            self._put_stripped(tokens, ids, start)
        return tokens

    def _put_stripped(self, tokens: list[str], ids: list[int], start: int) -> None:
        """A token that takes white space along is called by all of its text."""
        _, ranges = self.places()
        if ranges is None:
            raise _no_offsets("the names of tokens that take white space along")
        words, _ = self.places()
        for at, id_ in enumerate(ids):
            if id_ in self._vocabulary.stripping:
                first, last = ranges[0][start + at], ranges[1][start + at]
                text = self._text
                part = text if isinstance(text, str) else text[words[start + at]]
                tokens[at] = part[first:last]

    def words(self, start: int, stop: int) -> Ints:
        if self._without:
            return np.full(stop - start, -1)
        return self.places()[0][start:stop]

    def offsets(self, start: int, stop: int) -> tuple[Ints, Ints]:
        if self._without:
            nowhere = np.zeros(stop - start, dtype=np.int64)
            return nowhere, nowhere
        ranges = self.places()[1]
        if ranges is None:
            raise _no_offsets("offsets")
        return ranges[0][start:stop], ranges[1][start:stop]


def _no_offsets(what: str) -> UnknownFormatError:
    return UnknownFormatError(
        f"{what} are not known for this text: a normalizer changes it by more than composing and "
        "decomposing, or two added tokens take the same white space along; normalize it before, "
        "as unicodedata.normalize does"
    )


class Span:
    """A range of a source.

    `trims` says how a byte-level post-processor trimmed offsets: for each time, whether it spares
    a single space at the beginning, and the index of the token that was the first of all.
    """

    __slots__ = ("shift", "source", "start", "stop", "trims", "type_id")

    def __init__(
        self,
        source: Source,
        start: int,
        stop: int,
        type_id: int = 0,
        trims: tuple[tuple[bool, int], ...] = (),
        shift: int = 0,
    ) -> None:
        self.source = source
        self.start = start
        self.stop = stop
        self.type_id = type_id
        self.trims = trims
        self.shift = shift

    def __len__(self) -> int:
        return self.stop - self.start

    def changed(self, **changes: Any) -> Span:
        """The same span, but for some of its attributes."""
        span = Span(self.source, self.start, self.stop, self.type_id, self.trims, self.shift)
        for name, value in changes.items():
            setattr(span, name, value)
        return span

    def cut(self, start: int, stop: int) -> Span:
        """A part of it."""
        return self.changed(start=self.start + start, stop=self.start + stop)

    @property
    def ids(self) -> Ids:
        """Its token ids."""
        return self.source.ids[self.start : self.stop]

    @property
    def tokens(self) -> list[str]:
        """Their names."""
        return self.source.tokens(self.start, self.stop)

    @property
    def words(self) -> Ints:
        """The word of each, or -1."""
        return self.source.words(self.start, self.stop)

    @property
    def offsets(self) -> tuple[Ints, Ints]:
        """Where each begins and ends."""
        starts, ends = self.source.offsets(self.start, self.stop)
        for spares_one, first in self.trims:
            starts, ends = self._trimmed(starts, ends, spares_one, first - self.start)
        if self.shift:
            starts, ends = starts + self.shift, ends + self.shift
        return starts, ends

    def _trimmed(self, starts: Ints, ends: Ints, spares_one: bool, first: int) -> tuple[Ints, Ints]:
        starts, ends = starts.copy(), ends.copy()
        for at, token in enumerate(self.tokens):
            if token[:1] not in _SPACES and token[-1:] not in _SPACES:
                continue
            length = len(token)
            leading = next((i for i, char in enumerate(token) if char not in _SPACES), length)
            trailing = next(
                (i for i, char in enumerate(reversed(token)) if char not in _SPACES), length
            )
            if spares_one and leading == 1 and (at == first or starts[at] == 0):
                leading = 0
            starts[at] = min(starts[at] + leading, ends[at])
            if ends[at] >= trailing:
                ends[at] = max(ends[at] - trailing, starts[at])
        return starts, ends
