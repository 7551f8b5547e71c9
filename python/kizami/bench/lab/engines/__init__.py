"""The engines under test, one file each, behind one interface.

An engine is used as its authors mean it to be used, by its fastest documented call that can give
the ids of typed segments. Where it needs Python around it, that Python is part of its time.
"""

from __future__ import annotations

from importlib import import_module

from .base import Engine, Ids, ModelFiles

__all__ = ["NAMES", "WAYS", "Engine", "Ids", "ModelFiles", "engine_class"]

NAMES = (
    "kizami",
    "tiktoken",
    "basetenkenizer",
    "fastokens",
    "gigatoken",
    "splintr",
    "tokenizers",
)
"""All engines, in the order of tables."""

WAYS = {
    "grow": ("kizami_session", "kizami_cache"),
    "load-file": ("kizami_image", "kizami_first", "kizami_second"),
}
"""Other ways to use Kizami, by the mode that measures them beside it."""


def engine_class(name: str) -> type[Engine]:
    """The class of an engine; importing it does not import what it measures.

    Args:
        name: One of `NAMES`, or `MODULE:CLASS` for an engine of your own with the same methods.
    """
    module, _, kind = name.partition(":")
    found: type[Engine]
    if kind:
        found = getattr(import_module(module), kind)
    else:
        found = import_module(f".{name}_engine", __name__).Under
    return found
