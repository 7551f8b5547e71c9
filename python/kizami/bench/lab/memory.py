"""How much memory this process holds."""

from __future__ import annotations

from importlib import import_module

__all__ = ["rss"]


def rss() -> int:
    """Resident bytes, now."""
    # Not at import: only workers need it, and these have it.
    found: int = import_module("psutil").Process().memory_info().rss
    return found
