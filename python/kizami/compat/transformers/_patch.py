"""`patch`, `unpatch` and `adopt`: what is replaced in `transformers`, and when.

Two names are replaced: `from_pretrained` of the class that all tokenizers come from, so that what
it gives is adopted; and `tokenizers.decoders.DecodeStream`, which takes adopted tokenizers too.
"""

from __future__ import annotations

import importlib
import threading
import warnings
from types import TracebackType
from typing import Any

from kizami.compat.tokenizers import Tokenizer
from kizami.compat.transformers._kimi import Kimi, adopt_kimi, is_kimi
from kizami.compat.transformers._shared import share_tables
from kizami.compat.transformers._streams import stream_class
from kizami.errors import InputTypeError, KizamiError, MissingExtraError

__all__ = ["adopt", "is_adopted", "patch", "unpatch"]

_lock = threading.RLock()
# What was there before `patch`, by place; empty while nothing is patched.
_replaced: dict[tuple[Any, str], Any] = {}


class Patched:
    """What `patch` gives: as a context manager it puts back what it found."""

    def __init__(self, was_patched: bool) -> None:
        self._was_patched = was_patched

    def __enter__(self) -> Patched:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._was_patched:
            unpatch()

    def __repr__(self) -> str:
        return "<kizami.compat.transformers.patch()>"


def patch() -> Patched:
    """From now on, tokenizers that `transformers` loads run on Kizami.

    Also for the length of a `with` block. Tokenizers that were loaded before stay as they are; see
    `adopt`. Calling it again changes nothing.

    Raises:
        MissingExtraError: `transformers` is not installed.

    Cost: that of importing `transformers`. Each tokenizer that is loaded later is read twice.
    """
    with _lock:
        if _replaced:
            return Patched(True)
        base = _imported().PreTrainedTokenizerBase
        original = base.__dict__["from_pretrained"]

        def from_pretrained(cls: Any, *args: Any, **kwargs: Any) -> Any:
            loaded = original.__get__(None, cls)(*args, **kwargs)
            return _adopted(loaded)

        from_pretrained.__doc__ = original.__func__.__doc__
        from_pretrained.__wrapped__ = original.__func__  # type: ignore[attr-defined]
        _replace(base, "from_pretrained", classmethod(from_pretrained))
        import tokenizers.decoders

        _replace(
            tokenizers.decoders, "DecodeStream", stream_class(tokenizers.decoders.DecodeStream)
        )
        return Patched(False)


def unpatch() -> None:
    """Tokenizers that are loaded from now on are plain ones again.

    Those that run on Kizami go on doing so. Without a `patch` before, it does nothing.
    """
    with _lock:
        for (place, name), value in _replaced.items():
            setattr(place, name, value)
        _replaced.clear()


def _replace(place: Any, name: str, value: Any) -> None:
    _replaced[place, name] = place.__dict__[name]
    setattr(place, name, value)


def adopt(tokenizer: Any) -> Any:
    """Makes one tokenizer of `transformers`, already loaded, run on Kizami; the same object.

    Raises:
        UnknownFormatError, VocabularyError, UnsupportedError: It cannot be run exactly; the message
            says why. The tokenizer is as it was.
        InputTypeError: It is no tokenizer of `transformers`.

    Cost: writing the tokenizer to JSON and reading it: a second or less. For the Kimi line, a
    checksum of its file.
    """
    if not isinstance(tokenizer, _imported().PreTrainedTokenizerBase):
        kind = type(tokenizer).__name__
        raise InputTypeError(f"tokenizer must be one of transformers, not {kind}")
    if is_adopted(tokenizer):
        return tokenizer
    if is_kimi(tokenizer):
        return adopt_kimi(tokenizer)
    plain = getattr(tokenizer, "_tokenizer", None)
    if not hasattr(plain, "to_str"):
        raise InputTypeError(
            f"{type(tokenizer).__name__} is a slow tokenizer that Kizami does not know; "
            "load it with use_fast=True, or use it as it is"
        )
    # It needs `tokenizers`, which comes with transformers.
    from kizami.compat.transformers._backend import Backend

    tokenizer._tokenizer = Backend.of(plain)
    share_tables(tokenizer)
    return tokenizer


def is_adopted(tokenizer: Any) -> bool:
    """Whether a tokenizer of `transformers` runs on Kizami."""
    if isinstance(tokenizer, Kimi):
        return True
    return isinstance(getattr(tokenizer, "_tokenizer", None), Tokenizer)


def _adopted(loaded: Any) -> Any:
    try:
        return adopt(loaded)
    except KizamiError as error:
        name = type(loaded).__name__
        warnings.warn(f"{name} does not run on Kizami: {error}", UserWarning, stacklevel=3)
        return loaded


def _imported() -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError:
        raise MissingExtraError(
            "this needs transformers (the extra `transformers`): pip install 'transformers>=4.50'",
            extra="transformers",
        ) from None
