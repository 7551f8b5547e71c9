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
    return f"{type(value).__name__} {start_of(value)}"


def start_of(value: Any) -> str:
    """Start of a wrong value, where its type says nothing.

    >>> start_of("hi")
    "'hi'"
    """
    try:
        text = repr(value)
    except RecursionError:
        text = "nested too deeply to show"
    except Exception:  # a message about a value must not fail by that value
        text = "that cannot be shown"
    return f"{text[:_SHOWN]}..." if len(text) > _SHOWN else text


def kind_of(value: Any) -> str:
    """The type of a wrong value, with its article.

    >>> kind_of("hi"), kind_of(5), kind_of(None)
    ('a str', 'an int', 'None')
    """
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "image"), counted(0, "image")
    ('1 image', '0 images')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"
