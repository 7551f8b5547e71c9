"""`Encoding`: what encoding a text gives.

Ids are there at once; names, offsets, words and masks are made when they are asked for. The rules
of truncating, padding and merging are those of `tokenizers`, down to what they forget.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kizami.compat.tokenizers._added import ignored_option
from kizami.compat.tokenizers._options import count, direction_of
from kizami.compat.tokenizers._spans import Fixed, Span
from kizami.errors import InputTypeError, InvalidValueError, UnknownFormatError

__all__ = ["Encoding", "filling", "fixed", "merged", "padded", "truncated"]

Ints = npt.NDArray[np.int64]


class Encoding:
    """The tokens of a text, or of a pair of texts, with all that is known about each.

    Attributes: `ids`, `tokens`, `offsets`, `type_ids`, `attention_mask`, `special_tokens_mask`,
    `word_ids`, `sequence_ids` are lists of one length, `overflowing` the encodings that
    truncation cut off. Offsets count characters of the text given.

    Lists are made anew each time. An encoding keeps its text as long as it lives.

    `offsets`, and what is derived from them, raise `UnknownFormatError` for a text that a
    normalizer changes by more than composing and decomposing (NFC and its like), or in which two
    added tokens take the same white space; so do `tokens` of the second kind.
    """

    __slots__ = ("__dict__", "__weakref__", "_cached", "_overflowing", "_ranges", "_spans")

    _spans: tuple[Span, ...]
    # Sequence -> tokens from, to; empty where there is one sequence that is all.
    _ranges: dict[int, tuple[int, int]]
    _overflowing: list[Encoding]
    _cached: dict[str, Any]

    def __init__(self) -> None:
        self._spans = ()
        self._ranges = {}
        self._overflowing = []
        self._cached = {}

    @staticmethod
    def _of(
        spans: tuple[Span, ...],
        ranges: dict[int, tuple[int, int]],
        overflowing: list[Encoding] | None = None,
    ) -> Encoding:
        encoding = Encoding.__new__(Encoding)
        encoding._spans = spans
        encoding._ranges = ranges
        encoding._overflowing = [] if overflowing is None else overflowing
        encoding._cached = {}
        return encoding

    # Columns

    def _offsets(self) -> tuple[Ints, Ints]:
        pairs = self._cached.get("offsets")
        if pairs is None:
            none = np.empty(0, dtype=np.int64)
            columns = [(none, none), *(span.offsets for span in self._spans)]
            pairs = tuple(np.concatenate(column) for column in zip(*columns, strict=True))
            self._cached["offsets"] = pairs
        starts, ends = pairs
        return starts, ends

    def _words(self) -> Ints:
        words: Ints | None = self._cached.get("words")
        if words is None:
            none = np.empty(0, dtype=np.int64)
            words = np.concatenate([none, *(span.words for span in self._spans)])
            self._cached["words"] = words
        return words

    def _repeated(self, value_of: Callable[[Span], int]) -> list[int]:
        values: list[int] = []
        for span in self._spans:
            values += [value_of(span)] * len(span)
        return values

    @property
    def ids(self) -> list[int]:
        """Token ids."""
        spans = self._spans
        if len(spans) == 1:
            only: list[int] = spans[0].ids.tolist()
            return only
        ids: list[int] = []
        for span in spans:
            ids += span.ids.tolist()
        return ids

    @property
    def tokens(self) -> list[str]:
        """Names of the tokens, bytes spelled as letters."""
        return [token for span in self._spans for token in span.tokens]

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """Where each token begins and ends in its text, in characters."""
        starts, ends = self._offsets()
        return list(zip(starts.tolist(), ends.tolist(), strict=True))

    @property
    def type_ids(self) -> list[int]:
        """0 for the first text of a pair, 1 for the second, or what the template says."""
        return self._repeated(lambda span: span.type_id)

    @property
    def attention_mask(self) -> list[int]:
        """1 for tokens, 0 for padding."""
        return self._repeated(lambda span: span.source.attention)

    @property
    def special_tokens_mask(self) -> list[int]:
        """1 for tokens that a template or padding put there, 0 for those of the text."""
        return self._repeated(lambda span: span.source.special)

    @property
    def word_ids(self) -> list[int | None]:
        """The word that each token is from: a pre-token, or a word of a pre-tokenized text."""
        return [None if word < 0 else word for word in self._words().tolist()]

    @property
    def words(self) -> list[int | None]:
        """`word_ids`, by its old name."""
        warnings.warn("Encoding.words is now called word_ids", DeprecationWarning, stacklevel=2)
        return self.word_ids

    @property
    def sequence_ids(self) -> list[int | None]:
        """The text that each token is from: 0, or 1 for the second of a pair."""
        ids: list[int | None] = [None] * len(self)
        for sequence in range(self.n_sequences):
            start, stop = self._range(sequence)
            ids[start:stop] = [sequence] * (stop - start)
        return ids

    @property
    def n_sequences(self) -> int:
        """How many texts it is made of."""
        return len(self._ranges) or 1

    @property
    def overflowing(self) -> list[Encoding]:
        """What truncation cut off, in pieces of the same greatest length."""
        return list(self._overflowing)

    def _range(self, sequence: int) -> tuple[int, int]:
        return self._ranges.get(sequence, (0, len(self)))

    # From one to the other

    def token_to_sequence(self, token_index: int) -> int | None:
        """The text that a token is from."""
        token = count(token_index, "token_index")
        if token > len(self):
            return None
        if not self._ranges:
            return 0
        ranges = self._ranges.items()
        return next((i for i, (start, stop) in ranges if start <= token < stop), None)

    def token_to_chars(self, token_index: int) -> tuple[int, int] | None:
        """The offsets of a token."""
        token = count(token_index, "token_index")
        if token >= len(self) or self.token_to_sequence(token) is None:
            return None
        starts, ends = self._offsets()
        return int(starts[token]), int(ends[token])

    def token_to_word(self, token_index: int) -> int | None:
        """The word that a token is from."""
        token = count(token_index, "token_index")
        if token >= len(self) or self.token_to_sequence(token) is None:
            return None
        word = int(self._words()[token])
        return None if word < 0 else word

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The first token that covers a character of a text."""
        at = count(char_pos, "char_pos")
        first, stop = self._range(count(sequence_index, "sequence_index"))
        starts, ends = (column[first:stop] for column in self._offsets())
        found = np.flatnonzero((starts <= at) & (at < ends))
        return first + int(found[0]) if len(found) else None

    def char_to_word(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The word that a character of a text is in."""
        token = self.char_to_token(char_pos, sequence_index)
        return None if token is None else self.token_to_word(token)

    def word_to_tokens(self, word_index: int, sequence_index: int = 0) -> tuple[int, int] | None:
        """The tokens of a word: the first, and one past the last."""
        word = count(word_index, "word_index")
        first, stop = self._range(count(sequence_index, "sequence_index"))
        words = self._words()[first:stop]
        beyond = np.flatnonzero(words > word)
        found = np.flatnonzero(words[: beyond[0]] == word if len(beyond) else words == word)
        return (first + int(found[0]), first + int(found[-1]) + 1) if len(found) else None

    def word_to_chars(self, word_index: int, sequence_index: int = 0) -> tuple[int, int] | None:
        """Where a word begins and ends."""
        tokens = self.word_to_tokens(word_index, sequence_index)
        if tokens is None:
            return None
        starts, ends = self._offsets()
        return int(starts[tokens[0]]), int(ends[tokens[1] - 1])

    # Changes

    def _become(self, other: Encoding) -> None:
        self._spans, self._ranges = other._spans, other._ranges
        self._overflowing, self._cached = other._overflowing, {}

    def set_sequence_id(self, sequence_id: int) -> None:
        """Says that all tokens are from the text of this index."""
        self._ranges = {**self._ranges, count(sequence_id, "sequence_id"): (0, len(self))}

    def pad(self, length: int, **options: Any) -> None:
        """Fills it up to a length, and what overflows as well.

        Options: `direction` ("right" or "left"), `pad_id`, `pad_type_id`, `pad_token`.
        """
        side, token = "right", "[PAD]"
        ids = {"pad_id": 0, "pad_type_id": 0}
        for name, value in options.items():
            if name == "direction":
                side = direction_of(value)
            elif name == "pad_token":
                token = value
            elif name in ids:
                ids[name] = count(value, name)
            else:
                ignored_option(name)
        length = count(length, "length")
        source = filling(length, ids["pad_id"], token)
        self._become(padded(self, length, source, ids["pad_type_id"], side))

    def truncate(self, max_length: int, stride: int = 0, direction: str = "right") -> None:
        """Cuts it to a length; the rest is in `overflowing`, in pieces that share `stride` tokens.

        Raises:
            InvalidValueError: `stride` is not below `max_length`.
        """
        side = direction_of(direction)
        length = count(max_length, "max_length")
        self._become(truncated(self, length, count(stride, "stride"), side))

    @staticmethod
    def merge(encodings: Sequence[Encoding], growing_offsets: bool = True) -> Encoding:
        """One after the other as one; `growing_offsets` counts on from the end of the last."""
        result = Encoding()
        for encoding in encodings:
            if not isinstance(encoding, Encoding):
                raise InputTypeError(f"merge takes Encodings, not {type(encoding).__name__}")
            result = merged(result, encoding, growing_offsets)
        return result

    # As a Python object

    def __len__(self) -> int:
        return sum(map(len, self._spans))

    def __repr__(self) -> str:
        return (
            f"Encoding(num_tokens={len(self)}, attributes=[ids, type_ids, tokens, offsets, "
            "attention_mask, special_tokens_mask, overflowing])"
        )

    def __copy__(self) -> Encoding:
        copy = Encoding._of(self._spans, dict(self._ranges), list(self._overflowing))
        copy.__dict__.update(self.__dict__)
        return copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Encoding:
        # Spans are immutable.
        overflowing = [part.__deepcopy__(memo) for part in self._overflowing]
        copy = Encoding._of(self._spans, dict(self._ranges), overflowing)
        copy.__dict__.update(self.__dict__)
        return copy

    def __getstate__(self) -> tuple[Any, ...]:
        spans = [_columns_of(span) for span in self._spans]
        return spans, self._ranges, self._overflowing, self.__dict__

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        spans, self._ranges, self._overflowing, attributes = state
        self._spans = tuple(_span_of(columns) for columns in spans)
        self._cached = {}
        self.__dict__.update(attributes)


def _columns_of(span: Span) -> dict[str, Any]:
    offsets: Any
    try:
        offsets = span.offsets
    except UnknownFormatError:
        offsets = "unknown"
    return {
        "ids": span.ids,
        "tokens": span.tokens,
        "words": span.words,
        "offsets": offsets,
        "special": span.source.special,
        "attention": span.source.attention,
        "type_id": span.type_id,
    }


def _span_of(columns: dict[str, Any]) -> Span:
    columns = dict(columns)
    type_id = columns.pop("type_id")
    source = Fixed(columns.pop("ids"), columns.pop("tokens"), **columns)
    return Span(source, 0, len(source.ids), type_id)


def fixed(ids: Sequence[int], tokens: Sequence[str], type_id: int) -> Encoding:
    """Tokens of a template."""
    source = Fixed(ids, tokens)
    return Encoding._of((Span(source, 0, len(source.ids), type_id),), {})


def merged(left: Encoding, right: Encoding, growing_offsets: bool) -> Encoding:
    """Both as one. What overflows is each part of one with each part of the other."""
    overflowing = []
    for part in left._overflowing:
        overflowing.append(merged(part, right, growing_offsets))
        overflowing += [merged(part, other, growing_offsets) for other in right._overflowing]
    overflowing += [merged(left, other, growing_offsets) for other in right._overflowing]
    length = len(left)
    spans = right._spans
    if growing_offsets and length:
        shift = int(left._offsets()[1][-1])
        spans = tuple(span.changed(shift=span.shift + shift) for span in spans) if shift else spans
    ranges = {i: (start + length, stop + length) for i, (start, stop) in right._ranges.items()}
    return Encoding._of(left._spans + spans, {**left._ranges, **ranges}, overflowing)


def filling(length: int, id_: int, token: str) -> Fixed:
    """Padding for encodings up to a length."""
    return Fixed(np.full(length, id_, np.uint32), [token] * length, attention=0)


def padded(encoding: Encoding, length: int, source: Fixed, type_id: int, side: str) -> Encoding:
    """Filled up to a length from `filling`, and what overflows as well."""
    overflowing = [padded(part, length, source, type_id, side) for part in encoding._overflowing]
    missing = length - len(encoding)
    if missing <= 0:
        return Encoding._of(encoding._spans, encoding._ranges, overflowing)
    span = (Span(source, 0, missing, type_id),)
    if side == "right":
        return Encoding._of(encoding._spans + span, encoding._ranges, overflowing)
    ranges = encoding._ranges.items()
    moved = {i: (start + missing, stop + missing) for i, (start, stop) in ranges}
    return Encoding._of(span + encoding._spans, moved, overflowing)


def truncated(encoding: Encoding, length: int, stride: int, side: str) -> Encoding:
    """Cut to a length, with the rest in pieces; sequences are forgotten."""
    total = len(encoding)
    if length >= total:
        return encoding
    if length == 0:
        # A copy, for the encoding itself may be about to become this one.
        return Encoding._of((), {}, [encoding.__copy__()])
    if stride >= length:
        raise InvalidValueError(
            f"stride {stride} is not below the {length} tokens that a piece may have; "
            "lower the stride, or raise max_length (special tokens count, too)"
        )
    step = length - stride
    pieces = []
    if side == "right":
        for start in range(0, total, step):
            pieces.append((start, min(start + length, total)))
            if pieces[-1][1] == total:
                break
    else:
        for stop in range(total, 0, -step):
            pieces.append((max(stop - length, 0), stop))
            if pieces[-1][0] == 0:
                break
    first, *rest = (Encoding._of(_sliced(encoding._spans, *piece), {}) for piece in pieces)
    first._overflowing = rest
    return first


def _sliced(spans: tuple[Span, ...], start: int, stop: int) -> tuple[Span, ...]:
    result = []
    at = 0
    for span in spans:
        first, last = max(start - at, 0), min(stop - at, len(span))
        if first < last:
            result.append(span.cut(first, last))
        at += len(span)
    return tuple(result)
