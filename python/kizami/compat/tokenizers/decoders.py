"""`tokenizers.decoders`, of which there is `DecodeStream`."""

from __future__ import annotations

from typing import Any

from kizami.compat.tokenizers._absent import absent
from kizami.compat.tokenizers._stream import DecodeStream as DecodeStream

__all__ = ["DecodeStream"]


def __getattr__(name: str) -> Any:
    raise absent(f"decoders.{name}", __name__, name)
