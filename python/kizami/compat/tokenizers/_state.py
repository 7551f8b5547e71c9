"""What a `Tokenizer` is at one time, and what it does with texts: encode, truncate, process, pad.

Immutable: a change of settings makes another one. Nearly always one text is framed by the same
special tokens, whatever its length; that frame is found once, and encoding is then one native call
and three small objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import kizami
from kizami import _native
from kizami.compat.tokenizers import _processors
from kizami.compat.tokenizers._encoding import Encoding, filling, padded, truncated
from kizami.compat.tokenizers._options import Padding, Truncation
from kizami.compat.tokenizers._processors import Frame, Processor
from kizami.compat.tokenizers._spans import Span, Text
from kizami.compat.tokenizers._vocabulary import Vocabulary
from kizami.errors import InputTypeError, InvalidValueError

__all__ = ["State", "batch_of", "sequence_of"]

Words = str | tuple[str, ...]


@dataclass(frozen=True)
class State:
    """What a tokenizer is at one time."""

    vocabulary: Vocabulary
    processor: Processor | None
    truncation: Truncation | None
    padding: Padding | None
    encode_special_tokens: bool = False

    @cached_property
    def native(self) -> _native.Tokenizer:
        """What encodes."""
        if self.encode_special_tokens:
            return self.vocabulary.without_special
        return self.vocabulary.tokenizer._native

    # Encoding

    def frame(self, add_special_tokens: bool) -> Frame | None:
        """What comes around a single text."""
        return self._frames[bool(add_special_tokens)]

    @cached_property
    def _frames(self) -> tuple[Frame | None, Frame | None]:
        return Frame.of(self.processor, False), Frame.of(self.processor, True)

    @cached_property
    def is_plain(self) -> bool:
        """Whether nothing is cut or filled up."""
        return self.truncation is None and self.padding is None

    def encode_plain(self, given: Any, add_special_tokens: bool) -> Encoding | None:
        """The encoding of one text, where nothing is cut or filled up; None if it needs more.

        The usual case, without detours.
        """
        frame = self.frame(add_special_tokens)
        if frame is None or type(given) is not str:
            return None
        native = self.native
        ids = native.encode(given, True, True)
        return frame.around(Text(self.vocabulary, native, given, ids, False), len(ids))

    def encode_all(
        self, inputs: list[list[Words]], add_special_tokens: bool, without: bool = False
    ) -> list[Encoding]:
        """The encodings of texts and pairs of texts; padding comes later."""
        native, vocabulary = self.native, self.vocabulary
        flat = [sequence for sequences in inputs for sequence in sequences]
        if len(flat) == 1 and isinstance(flat[0], str):
            all_ids: Iterable[Any] = [native.encode(flat[0], True, True)]
        elif all(isinstance(sequence, str) for sequence in flat):
            all_ids = kizami.Batch(*native.encode_batch(flat, True))  # type: ignore[arg-type]
        else:
            all_ids = [_encoded(native, sequence) for sequence in flat]
        ids_of = iter(all_ids)
        frame = self.frame(add_special_tokens)
        room = -1 if self.truncation is None else self.truncation.max_length
        encodings = []
        for sequences in inputs:
            if len(sequences) == 1 and frame is not None:
                ids = next(ids_of)
                source = Text(vocabulary, native, sequences[0], ids, without)
                if room < 0 or len(ids) + frame.added <= room:
                    encodings.append(frame.around(source, len(ids)))
                else:
                    part = Encoding._of((Span(source, 0, len(ids)),), {})
                    encodings.append(self.post_process([part], add_special_tokens))
                continue
            parts = []
            for i, sequence in enumerate(sequences):
                ids = next(ids_of)
                source = Text(vocabulary, native, sequence, ids, without)
                type_id = 0 if without else i
                parts.append(Encoding._of((Span(source, 0, len(ids), type_id),), {}))
            encodings.append(self.post_process(parts, add_special_tokens))
        return encodings

    def post_process(self, parts: list[Encoding], add_special_tokens: bool) -> Encoding:
        """One encoding, truncated and with special tokens."""
        if self.truncation is not None:
            parts = self._truncated(self.truncation, parts, add_special_tokens)
        return _processors.process(self.processor, parts, add_special_tokens)

    def added(self, is_pair: bool) -> int:
        """How many special tokens are put around a text, or a pair."""
        return 0 if self.processor is None else self.processor.added(is_pair)

    def _truncated(
        self, truncation: Truncation, parts: list[Encoding], add_special_tokens: bool
    ) -> list[Encoding]:
        room = truncation.max_length
        if add_special_tokens:
            added = self.added(len(parts) == 2)
            if added > room:
                raise InvalidValueError(
                    f"max_length {room} has no room for {added} special tokens; "
                    "raise it, or encode with add_special_tokens=False"
                )
            room -= added

        def cut(encoding: Encoding, length: int) -> Encoding:
            return truncated(encoding, length, truncation.stride, truncation.direction)

        lengths = [len(part) for part in parts]
        excess = sum(lengths) - room
        if room == 0:
            return [cut(part, 0) for part in parts]
        if excess <= 0:
            return parts
        if truncation.strategy == "longest_first":
            kept = [room] if len(parts) == 1 else _shared(room, lengths[0], lengths[1])
            return [cut(part, length) for part, length in zip(parts, kept, strict=True)]
        index = 0 if truncation.strategy == "only_first" else 1
        if index >= len(parts):
            raise InvalidValueError(
                "truncation only_second needs a pair of texts, and there is one; "
                "give a pair, or use longest_first"
            )
        if lengths[index] <= excess:
            raise InvalidValueError(
                f"{excess} tokens are too many for max_length {truncation.max_length}, and the "
                f"text that {truncation.strategy} cuts has {lengths[index]}; use longest_first"
            )
        parts = list(parts)
        parts[index] = cut(parts[index], lengths[index] - excess)
        return parts

    def padded(self, encodings: list[Encoding]) -> list[Encoding]:
        """All of one length, if padding is on."""
        padding = self.padding
        if padding is None:
            return encodings
        width = padding.width([len(encoding) for encoding in encodings])
        source = filling(width, padding.pad_id, padding.pad_token)
        type_id, side = padding.pad_type_id, padding.direction
        return [padded(encoding, width, source, type_id, side) for encoding in encodings]


def _shared(room: int, first: int, second: int) -> list[int]:
    """How many tokens two texts keep: the longer gives first, then both give.

    >>> _shared(10, 3, 20), _shared(10, 20, 3), _shared(11, 20, 30), _shared(11, 30, 20)
    ([3, 7], [7, 3], [5, 6], [6, 5])
    """
    short, long = min(first, second), max(first, second)
    long = short if short > room else max(short, room - short)
    if short + long > room:
        short, long = room // 2, room // 2 + room % 2
    return [long, short] if first > second else [short, long]


def _encoded(native: _native.Tokenizer, sequence: Words) -> Any:
    if isinstance(sequence, str):
        return native.encode(sequence, True, True)
    return native.encode_segments([(word, True) for word in sequence], True)


def sequence_of(given: Any, is_pretokenized: bool) -> Words:
    """One text, or the words of one."""
    if not is_pretokenized:
        if isinstance(given, str):
            return given
        kind = type(given).__name__
        raise InputTypeError(f"a text must be str, not {kind}; for words, say is_pretokenized=True")
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, (list, tuple)) and all(isinstance(word, str) for word in given):
        return tuple(given)
    kind = type(given).__name__
    raise InputTypeError(f"a pre-tokenized text must be a list of str, not {kind}")


def _item(given: Any, is_pretokenized: bool) -> list[Words]:
    """One item of a batch: a text, or a pair of texts."""
    if not is_pretokenized and isinstance(given, str):
        return [given]
    if isinstance(given, (list, tuple)) and len(given) == 2:
        words = is_pretokenized and all(isinstance(word, str) for word in given)
        if not words:
            return [sequence_of(part, is_pretokenized) for part in given]
    return [sequence_of(given, is_pretokenized)]


def batch_of(given: Any, is_pretokenized: bool) -> list[list[Words]]:
    if isinstance(given, (str, bytes)) or not hasattr(given, "__len__"):
        kind = type(given).__name__
        raise InputTypeError(f"a batch must be a list of texts or pairs, not {kind}")
    items = given.tolist() if isinstance(given, np.ndarray) else given
    inputs = []
    for position, item in enumerate(items):
        try:
            inputs.append(_item(item, is_pretokenized))
        except InputTypeError as error:
            message = f"item {position} of the batch: {error}"
            raise InputTypeError(message, position=position) from None
    return inputs
