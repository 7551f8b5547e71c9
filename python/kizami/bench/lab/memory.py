"""How much memory this process holds."""

from __future__ import annotations

from importlib import import_module

__all__ = ["rss"]

_process = import_module("psutil").Process()


def rss() -> int:
    """Resident bytes, now."""
    found: int = _process.memory_info().rss
    return found
