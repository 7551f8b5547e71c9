"""`DecodeStream` of `tokenizers` for both kinds of tokenizers: those of Kizami and its own."""

from __future__ import annotations

from typing import Any

from kizami.compat.tokenizers import Tokenizer
from kizami.compat.tokenizers.decoders import DecodeStream

__all__ = ["stream_class"]


def stream_class(original: type) -> type:
    """A class that does what `original` does, and takes tokenizers of Kizami, too."""

    class EitherStream:
        """A `DecodeStream` that belongs to the kind of tokenizer of its first step."""

        def __init__(self, ids: Any = None, skip_special_tokens: bool | None = False) -> None:
            self._given = (ids, skip_special_tokens)
            self._stream: Any = None

        def step(self, tokenizer: Any, id: Any) -> str | None:
            """The text that an id makes certain, or None."""
            if self._stream is None:
                kind = DecodeStream if isinstance(tokenizer, Tokenizer) else original
                ids, skip = self._given
                self._stream = kind(ids=[] if ids is None else ids, skip_special_tokens=skip)
            text: str | None = self._stream.step(tokenizer, id)
            return text

    EitherStream.__name__ = EitherStream.__qualname__ = original.__name__
    EitherStream.__module__ = original.__module__
    return EitherStream
