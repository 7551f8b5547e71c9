"""Post-processors: special tokens around texts, and trimmed offsets.

What each does is what `tokenizers` does, in the same order: truncation comes before, padding
behind. A post-processor is given one encoding or two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from kizami.compat.tokenizers._encoding import Encoding, fixed, merged
from kizami.compat.tokenizers._spans import Source, Span
from kizami.errors import UnknownFormatError, VocabularyError

__all__ = ["Frame", "Processor", "process", "read_processor"]


class Processor(Protocol):
    """A step that comes after encoding."""

    def added(self, is_pair: bool) -> int:
        """How many tokens it adds."""

    def process(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        """The encodings with its tokens."""


@dataclass(frozen=True)
class ByteLevel:
    """Trims white space from offsets, if it is asked to."""

    trim_offsets: bool
    add_prefix_space: bool

    def added(self, is_pair: bool) -> int:
        """None."""
        return 0

    def process(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        """Each encoding as a sequence of its own."""
        if self.trim_offsets:
            encodings = [_trimmed(encoding, self.add_prefix_space) for encoding in encodings]
        return [
            Encoding._of(e._spans, {**e._ranges, i: (0, len(e))}, e._overflowing)
            for i, e in enumerate(encodings)
        ]


def _trimmed(encoding: Encoding, spares_one: bool) -> Encoding:
    def trimmed(span: Span, at: int) -> Span:
        first = span.start if at == 0 else -1
        return span.changed(trims=(*span.trims, (spares_one, first)))

    def of(encoding: Encoding) -> tuple[Span, ...]:
        spans, at = [], 0
        for span in encoding._spans:
            spans.append(trimmed(span, at))
            at += len(span)
        return tuple(spans)

    overflowing = [
        Encoding._of(of(part), part._ranges, part._overflowing) for part in encoding._overflowing
    ]
    return Encoding._of(of(encoding), encoding._ranges, overflowing)


def _typed(encoding: Encoding, type_id: int) -> tuple[Span, ...]:
    return tuple(
        span if span.type_id == type_id else span.changed(type_id=type_id)
        for span in encoding._spans
    )


@dataclass(frozen=True)
class Template:
    """Special tokens at fixed places around the texts.

    A piece is the index of a text and its type, or an encoding of special tokens.
    """

    single: tuple[tuple[int, int] | Encoding, ...]
    pair: tuple[tuple[int, int] | Encoding, ...]

    def added(self, is_pair: bool) -> int:
        """The special tokens of the template."""
        pieces = self.pair if is_pair else self.single
        return sum(len(piece) for piece in pieces if isinstance(piece, Encoding))

    def process(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        """The pieces in order."""
        result = []
        encodings = list(encodings)
        for piece in self.pair if len(encodings) == 2 else self.single:
            if isinstance(piece, Encoding):
                if add_special_tokens:
                    result.append(piece)
                continue
            index, type_id = piece
            given = encodings[index]
            ranges = {**given._ranges, index: (0, len(given))}
            encodings[index] = Encoding._of(_typed(given, type_id), ranges, given._overflowing)
            result.append(encodings[index])
        return result

    @staticmethod
    def read(stated: dict[str, Any]) -> Template:
        """From a `tokenizer.json`."""
        tokens = stated["special_tokens"]

        def piece(stated: dict[str, Any]) -> tuple[int, int] | Encoding:
            if "Sequence" in stated:
                sequence = stated["Sequence"]
                return ("AB".index(sequence["id"]), int(sequence["type_id"]))
            special = stated["SpecialToken"]
            token = tokens[special["id"]]
            return fixed(token["ids"], token["tokens"], int(special["type_id"]))

        return Template(tuple(map(piece, stated["single"])), tuple(map(piece, stated["pair"])))


@dataclass(frozen=True)
class Ends:
    """A token at the beginning and one at the end, as RoBERTa and BERT have them."""

    cls: tuple[str, int]
    sep: tuple[str, int]
    roberta: bool
    trims: ByteLevel | None = None

    def added(self, is_pair: bool) -> int:
        """Both, and for a second text those that part it from the first."""
        return (4 if self.roberta else 3) if is_pair else 2

    def process(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        """Each text between its tokens."""
        if self.trims is not None:
            spares_one = self.trims.add_prefix_space
            encodings = [_trimmed(encoding, spares_one) for encoding in encodings]
        if self.roberta:
            encodings = [Encoding._of(_typed(e, 0), e._ranges, e._overflowing) for e in encodings]
        if not add_special_tokens:
            return encodings
        return [self._between(encoding, i) for i, encoding in enumerate(encodings)]

    def _between(self, encoding: Encoding, index: int) -> Encoding:
        type_id = 0 if self.roberta or index == 0 else 1
        left = self.cls if index == 0 else self.sep
        before = fixed([left[1]], [left[0]], 0)._spans
        if index == 1 and not self.roberta:
            before = ()
        behind = fixed([self.sep[1]], [self.sep[0]], type_id)._spans

        def between(part: Encoding) -> Encoding:
            spans = _typed(part, 0) if self.roberta else part._spans
            start = len(before)
            ranges = {index: (start, start + len(part))}
            return Encoding._of(before + spans + behind, ranges)

        result = between(encoding)
        result._overflowing = [between(part) for part in encoding._overflowing]
        return result


@dataclass(frozen=True)
class Sequence:
    """Several, one after the other."""

    parts: tuple[Processor, ...]

    def added(self, is_pair: bool) -> int:
        """What all add."""
        return sum(part.added(is_pair) for part in self.parts)

    def process(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        """What one gives goes to the next."""
        for part in self.parts:
            if len(encodings) > 2:
                raise UnknownFormatError(
                    "a post-processor behind one that adds special tokens gets too many parts; "
                    "Kizami cannot do this exactly: use the package `tokenizers` for this file"
                )
            encodings = part.process(encodings, add_special_tokens)
        return encodings


def read_processor(stated: Any) -> Processor | None:
    """The `post_processor` of a `tokenizer.json`.

    Raises:
        UnknownFormatError: It is of a kind that no byte-level model has.
        VocabularyError: It is not what its type says.
    """
    if stated is None:
        return None
    try:
        return _read(stated)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, UnknownFormatError):
            raise
        raise VocabularyError(f"post_processor is not as it should be: {error!r}") from None


def _read(stated: dict[str, Any]) -> Processor:
    kind = stated["type"]
    if kind == "ByteLevel":
        return ByteLevel(stated.get("trim_offsets", True), stated.get("add_prefix_space", True))
    if kind == "TemplateProcessing":
        return Template.read(stated)
    if kind in ("RobertaProcessing", "BertProcessing"):
        (sep, sep_id), (cls, cls_id) = stated["sep"], stated["cls"]
        roberta = kind == "RobertaProcessing"
        trims = None
        if roberta and stated["trim_offsets"]:
            trims = ByteLevel(True, stated["add_prefix_space"])
        return Ends((cls, cls_id), (sep, sep_id), roberta, trims)
    if kind == "Sequence":
        return Sequence(tuple(map(_read, stated["processors"])))
    raise UnknownFormatError(
        f"post_processor {kind!r} is none that Kizami knows; "
        "use the package `tokenizers` for this file",
        source=kind,
    )


@dataclass(frozen=True)
class Frame:
    """What a post-processor puts around one text of any length."""

    before: tuple[Span, ...]
    behind: tuple[Span, ...]
    type_id: int
    trims: tuple[tuple[bool, int], ...]
    # Sequence, and its range around a text of one token.
    ranges: tuple[tuple[int, int, int], ...]
    # Tokens before the text, and before and behind it.
    first: int
    added: int

    @staticmethod
    def of(processor: Processor | None, add_special_tokens: bool) -> Frame | None:
        """Found by processing one token; None if it comes out more than once, or not at all."""
        probe = fixed([0], [""], 0)
        result = process(processor, [probe], add_special_tokens)
        source = probe._spans[0].source
        places = [i for i, span in enumerate(result._spans) if span.source is source]
        if len(places) != 1:
            return None
        before, (span,), behind = (
            result._spans[: places[0]],
            result._spans[places[0] : places[0] + 1],
            result._spans[places[0] + 1 :],
        )
        ranges = tuple((i, *range_) for i, range_ in result._ranges.items())
        first = sum(map(len, before))
        return Frame(before, behind, span.type_id, span.trims, ranges, first, len(result) - 1)

    def around(self, source: Source, length: int) -> Encoding:
        """The encoding of a text."""
        spans = (
            *self.before,
            Span(source, 0, length, self.type_id, self.trims),
            *self.behind,
        )
        ranges = {}
        for sequence, start, stop in self.ranges:
            if start > self.first:
                start += length - 1
            if stop > self.first:
                stop += length - 1
            ranges[sequence] = (start, stop)
        return Encoding._of(spans, ranges)


def process(
    processor: Processor | None, encodings: list[Encoding], add_special_tokens: bool
) -> Encoding:
    """One encoding of one or two texts."""
    if processor is None:
        if len(encodings) == 1:
            return encodings[0]
        marked = [
            Encoding._of(e._spans, {**e._ranges, i: (0, len(e))}, e._overflowing)
            for i, e in enumerate(encodings)
        ]
    else:
        marked = []
        for i, encoding in enumerate(encodings):
            ranges = {**encoding._ranges, i: (0, len(encoding))}
            overflowing = [
                Encoding._of(part._spans, {**part._ranges, i: (0, len(part))}, part._overflowing)
                for part in encoding._overflowing
            ]
            marked.append(Encoding._of(_typed(encoding, i), ranges, overflowing))
        marked = processor.process(marked, add_special_tokens)
    if len(marked) == 1 and not marked[0]._overflowing:
        return marked[0]
    result = Encoding()
    for part in marked:
        result = merged(result, part, False)
    return result
