"""How many threads one request may use."""

from __future__ import annotations

import operator
import os
import warnings

from kizami import _native
from kizami.errors import InputTypeError, InvalidValueError

_ENVIRONMENT = "KIZAMI_NUM_THREADS"
_MOST = 1 << 16


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


def _from_environment() -> None:
    text = os.environ.get(_ENVIRONMENT)
    if not text:
        return
    if text.isdecimal() and 1 <= int(text) <= _MOST:
        _native.set_num_threads(int(text))
        return
    message = f"{_ENVIRONMENT}={text!r} is ignored; it must be a number from 1 to {_MOST}"
    warnings.warn(message, RuntimeWarning, stacklevel=2)


_from_environment()
