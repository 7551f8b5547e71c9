"""Errors of the Kimi K3 renderer: what they say, and about which place.

A place is the index of a message (0-based) or the name of an option in backticks. Every message
reads: place, what is wrong with the value shown, a semicolon, what to change.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from kizami.errors import ChatKeyError, ChatTypeError, ChatValueError

Place = int | str

FaultT = TypeVar("FaultT", ChatKeyError, ChatTypeError, ChatValueError)

_SHOWN: Final = 80  # characters of a wrong value that a message repeats


def fault(kind: type[FaultT], place: Place, problem: str, **facts: Any) -> FaultT:
    """An error about `place`; `problem` continues "message 3 ".

    >>> fault(ChatValueError, 3, "is empty; fill it").message_index
    3
    """
    if isinstance(place, int):
        return kind(f"message {place} {problem}", message_index=place, **facts)
    return kind(f"{place} {problem}", **facts)


def too_deep(place: Place) -> ChatValueError:
    """The error that replaces a `RecursionError`."""
    problem = "holds something that is nested too deeply or contains itself; make it flatter"
    return fault(ChatValueError, place, problem)


def show(value: Any) -> str:
    """Type and start of a wrong value.

    >>> show([1])
    'list [1]'
    """
    try:
        text = repr(value)
    except RecursionError:
        text = "nested too deeply to show"
    if len(text) > _SHOWN:
        text = f"{text[:_SHOWN]}..."
    return f"{type(value).__name__} {text}"
