"""`DecodeStream`: the text of ids that come one after the other."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from kizami.compat.tokenizers._options import IdOutOfRangeError
from kizami.errors import InputTypeError, InvalidIdError

if TYPE_CHECKING:
    from kizami import DecodeStream as Stream
    from kizami.compat.tokenizers._tokenizer import Tokenizer
    from kizami.compat.tokenizers._vocabulary import Vocabulary

__all__ = ["DecodeStream", "known_ids"]


class DecodeStream:
    """Turns ids into text as they come.

    Args:
        ids: What came before, a prompt for instance: `step` gives none of its text.
        skip_special_tokens: Leave out special tokens.

    It differs from the original where that is at fault. Text that is certain is given at once, also
    bytes that are no character, as U+FFFD; the original waits for the next whole character, and
    decodes all it waits for with each id. A prompt that ends inside a character is not given again
    with the rest of that character. A step costs what its own ids cost.

    The stream belongs to the tokenizer of its first step, as that was then.

    >>> import kizami
    >>> from kizami.compat.tokenizers import Tokenizer
    >>> tokenizer = Tokenizer.from_kizami(kizami.load("kimi-k3"))
    >>> ids = tokenizer.encode("Go 🎉").ids
    >>> stream = DecodeStream()
    >>> [stream.step(tokenizer, id) for id in ids]
    ['Go', ' ', None, '🎉']
    """

    __slots__ = ("_ids", "_skip", "_stream", "_vocabulary")

    def __init__(
        self, ids: Sequence[SupportsIndex] | None = None, skip_special_tokens: bool | None = False
    ) -> None:
        if isinstance(ids, (str, bytes, bool)) or not (ids is None or hasattr(ids, "__len__")):
            raise InputTypeError(f"ids must be a sequence of ints, not {type(ids).__name__}")
        self._ids: list[SupportsIndex] = [] if ids is None else list(ids)
        self._skip = bool(skip_special_tokens)
        self._stream: Stream | None = None
        self._vocabulary: Vocabulary | None = None

    def step(self, tokenizer: Tokenizer, id: SupportsIndex | Sequence[SupportsIndex]) -> str | None:
        """The text that these ids make certain; None if there is none.

        Raises:
            InputTypeError: `id` is neither an int nor a list of ints, or `tokenizer` is none of
                this module.
        """
        stream = self._stream
        if stream is None:
            stream = self._begin(tokenizer)
        try:
            return stream.push(id) or None
        except InvalidIdError:
            given = [id] if hasattr(id, "__index__") else list(id)
            assert self._vocabulary is not None
            return stream.push(known_ids(self._vocabulary, given)) or None

    def _begin(self, tokenizer: Tokenizer) -> Stream:
        state = getattr(tokenizer, "_state", None)
        if state is None:
            raise InputTypeError(
                "tokenizer must be a kizami.compat.tokenizers.Tokenizer, "
                f"not {type(tokenizer).__name__}"
            )
        tokenizer._check_decoder()
        vocabulary = state.vocabulary
        stream: Stream = vocabulary.tokenizer.stream(skip_special=self._skip)
        # A character has four bytes at most, so what came before needs no more than its end.
        tail: list[int] = []
        size = 0
        for given in reversed(self._ids):
            for id_ in known_ids(vocabulary, [given]):
                tail.append(id_)
                token = vocabulary.added.get(id_)
                skipped = self._skip and token is not None and token.content in vocabulary.special
                size += 0 if skipped else len(vocabulary.tokenizer.token_bytes(id_))
            if size >= 4:
                break
        if tail:
            stream.push(tail[::-1])
        self._ids, self._stream, self._vocabulary = [], stream, vocabulary
        return stream

    def __copy__(self) -> DecodeStream:
        copy = DecodeStream(self._ids, self._skip)
        if self._stream is not None:
            copy._stream = self._stream.__copy__()
        copy._vocabulary = self._vocabulary
        return copy

    def __deepcopy__(self, memo: dict[int, Any]) -> DecodeStream:
        return self.__copy__()


def known_ids(vocabulary: Vocabulary, ids: Any) -> list[int]:
    """The ids that are tokens; the original decodes others to nothing.

    Raises:
        IdOutOfRangeError: One is negative or has more than 32 bits.
    """
    known = []
    for position, given in enumerate(ids):
        try:
            id_ = operator.index(given)
        except TypeError:
            kind = type(given).__name__
            message = f"id at position {position} must be an int, not {kind}; give token ids"
            raise InputTypeError(message, position=position) from None
        if not 0 <= id_ < 1 << 32:
            raise IdOutOfRangeError(
                f"token id {id_} at position {position} is no number of 32 bits",
                id=id_,
                position=position,
                vocab_size=vocabulary.tokenizer.vocab_size,
            )
        if vocabulary.tokenizer._native.token_bytes(id_) is not None:
            known.append(id_)
    return known
