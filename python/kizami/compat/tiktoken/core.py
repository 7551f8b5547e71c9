"""`tiktoken.core`, as far as it is public: the class `Encoding`."""

from __future__ import annotations

from typing import NoReturn

from kizami.compat.tiktoken._encoding import Encoding

__all__ = ["Encoding"]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"kizami.compat.tiktoken.core has no {name}: it has Encoding; "
        "take what else you need from tiktoken.core"
    )
