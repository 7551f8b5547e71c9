"""How many threads one request may use."""

from __future__ import annotations

import operator
import os
import sys
import warnings
from pathlib import PurePath
from types import FrameType

from kizami import _native
from kizami.errors import InputTypeError, InvalidValueError

_ENVIRONMENT = "KIZAMI_NUM_THREADS"
_MOST = 1 << 16

# What the command line has to say about the environment, since it words its warnings itself.
note_for_command_line: str | None = None


def set_num_threads(n: int) -> None:
    """Sets the most threads that one request may use, in this process, from now on.

    1 means that no thread is ever started. Small requests use the calling thread alone, whatever
    is set. The start value is the environment variable `KIZAMI_NUM_THREADS`, else the number of
    CPUs that the process may run on.

    Args:
        n: From 1 to 65,536.

    Raises:
        InputTypeError: `n` is no integer.
        InvalidValueError: `n` is out of range.

    >>> import kizami
    >>> before = kizami.get_num_threads()
    >>> kizami.set_num_threads(1)
    >>> kizami.get_num_threads()
    1
    >>> kizami.set_num_threads(before)
    """
    try:
        value = operator.index(n)
    except TypeError:
        kind = type(n).__name__
        raise InputTypeError(f"the number of threads must be an int, not {kind}") from None
    if not 1 <= value <= _MOST:
        message = f"the number of threads must be from 1 to {_MOST}, not {value}"
        raise InvalidValueError(message)
    _native.set_num_threads(value)


def get_num_threads() -> int:
    """The most threads that one request may use.

    >>> import kizami
    >>> kizami.get_num_threads() >= 1
    True
    """
    return _native.get_num_threads()


def _importer() -> FrameType:
    """The frame outside this package that imports it."""
    frame = sys._getframe()
    while frame.f_back is not None:
        name = frame.f_globals.get("__name__", "")
        if name.partition(".")[0] not in ("kizami", "importlib"):
            break
        frame = frame.f_back
    return frame


def _is_command_line(importer: FrameType) -> bool:
    """Is it the script `kizami`, or `python -m kizami`?"""
    name = importer.f_globals.get("__name__")
    script = sys.argv[0] if sys.argv else ""
    return name == "runpy" or (name == "__main__" and PurePath(script).stem == "kizami")


def _from_environment() -> None:
    global note_for_command_line
    text = os.environ.get(_ENVIRONMENT)
    if not text:
        return
    if text.isdecimal() and len(text) < 10 and 1 <= int(text) <= _MOST:
        _native.set_num_threads(int(text))
        return
    message = f"{_ENVIRONMENT}={text!r} is ignored; it must be a number from 1 to {_MOST}"
    importer = _importer()
    if _is_command_line(importer):
        note_for_command_line = message
        return
    facts = importer.f_globals
    warnings.warn_explicit(
        message,
        RuntimeWarning,
        importer.f_code.co_filename,
        importer.f_lineno,
        module=facts.get("__name__"),
        registry=facts.setdefault("__warningregistry__", {}),
    )


_from_environment()

if hasattr(os, "register_at_fork"):
    # A child has none of its parent's threads: nobody helps there, and nobody gives a turn back.
    os.register_at_fork(after_in_child=_native.forget_threads)
