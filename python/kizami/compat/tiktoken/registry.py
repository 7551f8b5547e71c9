"""`tiktoken.registry`: encodings by name. Plug-ins are found by an installed `tiktoken`."""

from __future__ import annotations

from typing import NoReturn

from kizami.compat.tiktoken._registry import get_encoding, list_encoding_names

__all__ = ["get_encoding", "list_encoding_names"]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"kizami.compat.tiktoken.registry has no {name}: it has get_encoding and "
        "list_encoding_names; take tables and plug-ins from tiktoken.registry"
    )
