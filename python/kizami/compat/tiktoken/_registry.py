"""Encodings by name: those that the wheel bundles, then those of an installed `tiktoken`.

tiktoken has the patterns and special tokens of its encodings, and downloads the ranks when a name
is first asked for, into a cache of its own (`TIKTOKEN_CACHE_DIR`). Kizami uses all that as it is,
and downloads nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kizami import _native
from kizami._load import load
from kizami.compat.tiktoken._encoding import Encoding
from kizami.compat.tiktoken._models import encoding_name_for_model
from kizami.errors import InvalidValueError, SourceNotFoundError

__all__ = ["encoding_for_model", "get_encoding", "is_registered", "list_encoding_names"]

# Names that tiktoken is known by; asked for without it, they get an answer that says so.
_OF_TIKTOKEN = (
    "gpt2",
    "r50k_base",
    "p50k_base",
    "p50k_edit",
    "cl100k_base",
    "o200k_base",
    "o200k_harmony",
)
_OTHER_WAY = (
    "or load a rank file that you have: "
    "Encoding.from_tokenizer(kizami.load(path, pattern=..., special_tokens=...))"
)
_encodings: dict[str, Encoding] = {}


def get_encoding(encoding_name: str) -> Encoding:
    """The encoding of that name, made when it is first asked for.

    Args:
        encoding_name: One of `list_encoding_names()`.

    Raises:
        ValueError: There is no such name.
        SourceNotFoundError: The name is known, and its ranks are not here: tiktoken is not
            installed, or could not download them.

    Cost: milliseconds for what is bundled; else as the constructor of `Encoding`.

    >>> get_encoding("kimi-k3").n_vocab
    163840
    """
    if not isinstance(encoding_name, str):
        raise InvalidValueError(
            f"Expected a string in get_encoding, got {type(encoding_name)}: give a name"
        )
    found = _encodings.get(encoding_name)
    if found is None:
        # Two threads may both come here; one of their encodings counts for both.
        found = _encodings.setdefault(encoding_name, _make(encoding_name))
    return found


def _make(name: str) -> Encoding:
    if name in _native.bundled_names():
        return Encoding.from_tokenizer(load(name))
    constructor = _constructors().get(name)
    if constructor is not None:
        try:
            return Encoding(**constructor())
        # What it downloads with is tiktoken's business, and so is the class of the error.
        except OSError as error:
            raise SourceNotFoundError(
                f"tiktoken could not get the ranks of {name!r} ({error}): put the file in "
                f"the folder TIKTOKEN_CACHE_DIR, {_OTHER_WAY}",
                source=name,
            ) from error
    if name in _OF_TIKTOKEN:
        raise SourceNotFoundError(
            f"the ranks of {name!r} are not bundled: install tiktoken, which gets them, "
            f"{_OTHER_WAY}",
            source=name,
        )
    known = ", ".join(list_encoding_names())
    raise InvalidValueError(f"Unknown encoding {name}.\nKnown here: {known}")


def _constructors() -> dict[str, Callable[[], dict[str, Any]]]:
    """Name to the function of tiktoken, or of a plug-in of it, that gives the parts."""
    try:
        import tiktoken.registry
    except ImportError:
        return {}
    tiktoken.registry.list_encoding_names()
    return tiktoken.registry.ENCODING_CONSTRUCTORS or {}


def list_encoding_names() -> list[str]:
    """The names that `get_encoding` knows: those of an installed tiktoken, then what is bundled."""
    return list(dict.fromkeys([*_constructors(), *_native.bundled_names()]))


def encoding_for_model(model_name: str) -> Encoding:
    """The encoding of a model.

    Raises:
        KeyError: The model is not known.
        SourceNotFoundError: As `get_encoding`.
    """
    return get_encoding(encoding_name_for_model(model_name))


def is_registered(encoding: Encoding) -> bool:
    """Whether it is what `get_encoding` gives for its name."""
    return _encodings.get(encoding.name) is encoding
