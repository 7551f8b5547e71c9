"""The parts of a tokenizer, to be looked at: its normalizer, pre-tokenizer, post-processor.

They say what they are, as `tokenizers` writes it; they cannot be built, changed or called, for
Kizami does their work in one piece.
"""

from __future__ import annotations

import json
from typing import Any

from kizami.errors import InputTypeError, UnsupportedError

__all__ = ["Decoder", "Part", "cannot_set", "is_byte_level"]


class Part:
    """What a `tokenizer.json` says of one step.

    `__getstate__` gives its JSON, as the original's does: some readers of tokenizers ask for it.
    """

    __slots__ = ("_kind", "_stated")

    def __init__(self, kind: str, stated: dict[str, Any]) -> None:
        self._kind = kind
        self._stated = stated

    def __getstate__(self) -> bytes:
        return json.dumps(self._stated, ensure_ascii=False, separators=(",", ":")).encode()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._kind, self._stated)

    def __repr__(self) -> str:
        return f"{self._kind}({json.dumps(self._stated, ensure_ascii=False)})"


class Decoder(Part):
    """The decoder of a byte-level vocabulary: names of tokens to text."""

    __slots__ = ()

    def decode(self, tokens: list[str]) -> str:
        """The text of tokens by their names.

        >>> Decoder("decoder", {"type": "ByteLevel"}).decode(["na", "Ã¯", "ve", "Ġ", "中"])
        'naïve 中'
        """
        from kizami.compat.tokenizers._vocabulary import unspelled

        if isinstance(tokens, (str, bytes)) or not all(isinstance(t, str) for t in tokens):
            raise InputTypeError("decode takes a list of names of tokens; for ids, ask Tokenizer")
        if not is_byte_level(self._stated):
            raise unsupported_decoder(self._stated)
        parts = (unspelled(token) for token in tokens)
        known = zip(parts, tokens, strict=True)
        return b"".join(
            name.encode("utf-8", "replace") if part is None else part for part, name in known
        ).decode("utf-8", "replace")


def is_byte_level(stated: Any) -> bool:
    """Whether a decoder of a `tokenizer.json` is ByteLevel, alone or with nothing that acts."""
    if not isinstance(stated, dict):
        return False
    if stated.get("type") == "Sequence":
        kinds = [part.get("type") for part in stated.get("decoders", [])]
        return kinds.count("ByteLevel") == 1 and set(kinds) <= {"ByteLevel", "Fuse"}
    return stated.get("type") == "ByteLevel"


def unsupported_decoder(stated: Any) -> UnsupportedError:
    """The error for another decoder."""
    kind = stated.get("type") if isinstance(stated, dict) else stated
    return UnsupportedError(
        f"decoder {kind!r} is not supported; use kizami.Tokenizer.decode for the bytes as they "
        "are, or the package `tokenizers`",
        name="decoder",
    )


def cannot_set(name: str) -> UnsupportedError:
    """The error for a caller who sets a part."""
    return UnsupportedError(
        f"Tokenizer.{name} cannot be set: Kizami runs all steps as one; change the tokenizer.json "
        "and load it anew, or use the package `tokenizers`",
        name=f"Tokenizer.{name}",
    )
