"""The optional packages of the benchmark, asked for where they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kizami.errors import MissingExtraError

__all__ = ["need"]


def need(module: str) -> Any:
    """The module, or a `MissingExtraError` that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"`{package}` is not installed: pip install 'kizami[bench]'", extra="bench"
        ) from error
