"""Truncation and padding: what callers say of them, and how a `tokenizer.json` does."""

from __future__ import annotations

import operator
from dataclasses import asdict, dataclass
from typing import Any

from kizami.compat.tokenizers._added import ignored_option
from kizami.errors import InputTypeError, InvalidIdError, InvalidValueError, VocabularyError

__all__ = [
    "IdOutOfRangeError",
    "OutOfRangeError",
    "Padding",
    "Truncation",
    "count",
    "direction_of",
]

_STRATEGIES = {
    "longest_first": "LongestFirst",
    "only_first": "OnlyFirst",
    "only_second": "OnlySecond",
}
_STRATEGY_NAMES = {theirs: name for name, theirs in _STRATEGIES.items()}


class OutOfRangeError(InvalidValueError, OverflowError):
    """A number that is negative or too large; callers of the original catch `OverflowError`."""


class IdOutOfRangeError(InvalidIdError, OverflowError):
    """The same of a token id."""


def count(value: Any, name: str) -> int:
    """A number from 0 on.

    Raises:
        InputTypeError: It is no number.
        OutOfRangeError: It is negative, or has more than 64 bits.

    >>> count(True, "length")
    1
    """
    try:
        number = operator.index(value)
    except TypeError:
        kind = type(value).__name__
        raise InputTypeError(f"{name} must be an int, not {kind}") from None
    if not 0 <= number < 1 << 64:
        raise OutOfRangeError(f"{name} must be 0 to 2**64 - 1, and is {number}")
    return number


def direction_of(value: Any) -> str:
    """ "left" or "right"."""
    if value not in ("left", "right"):
        raise InvalidValueError(f"direction must be 'left' or 'right', not {value!r}")
    return str(value)


@dataclass(frozen=True)
class Truncation:
    """How texts are cut to a length."""

    max_length: int
    stride: int = 0
    strategy: str = "longest_first"
    direction: str = "right"

    @staticmethod
    def of(max_length: Any, options: dict[str, Any]) -> Truncation:
        """What a caller asks for."""
        stated: dict[str, Any] = {"max_length": count(max_length, "max_length")}
        for name, value in options.items():
            if name == "stride":
                stated[name] = count(value, name)
            elif name == "strategy":
                if value not in _STRATEGIES:
                    known = ", ".join(map(repr, _STRATEGIES))
                    raise InvalidValueError(f"strategy must be one of {known}, not {value!r}")
                stated[name] = value
            elif name == "direction":
                stated[name] = direction_of(value)
            else:
                ignored_option(name)
        return Truncation(**stated)

    @staticmethod
    def read(stated: Any) -> Truncation | None:
        """What a `tokenizer.json` says."""
        if stated is None:
            return None
        try:
            return Truncation(
                stated["max_length"],
                stated["stride"],
                _STRATEGY_NAMES[stated["strategy"]],
                stated.get("direction", "Right").lower(),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise VocabularyError(f"truncation is not as it should be: {error!r}") from None

    def written(self) -> dict[str, Any]:
        """The same for a `tokenizer.json`."""
        return {
            "direction": self.direction.capitalize(),
            "max_length": self.max_length,
            "strategy": _STRATEGIES[self.strategy],
            "stride": self.stride,
        }

    def as_dict(self) -> dict[str, Any]:
        """The same for a caller."""
        return asdict(self)


@dataclass(frozen=True)
class Padding:
    """How texts are filled up to a length; None is that of the longest of a batch."""

    length: int | None = None
    pad_to_multiple_of: int | None = None
    pad_id: int = 0
    pad_token: str = "[PAD]"
    pad_type_id: int = 0
    direction: str = "right"

    @staticmethod
    def of(options: dict[str, Any]) -> Padding:
        """What a caller asks for."""
        stated: dict[str, Any] = {}
        for name, value in options.items():
            if name == "direction":
                stated[name] = direction_of(value)
            elif name in ("length", "max_length", "pad_to_multiple_of"):
                key = "length" if name == "max_length" else name
                stated[key] = None if value is None else count(value, name)
            elif name in ("pad_id", "pad_type_id"):
                stated[name] = count(value, name)
                if stated[name] >= 1 << 32:
                    raise OutOfRangeError(f"{name} {value} is no token id")
            elif name == "pad_token":
                if not isinstance(value, str):
                    raise InputTypeError(f"pad_token must be str, not {type(value).__name__}")
                stated[name] = value
            else:
                ignored_option(name)
        return Padding(**stated)

    @staticmethod
    def read(stated: Any) -> Padding | None:
        """What a `tokenizer.json` says."""
        if stated is None:
            return None
        try:
            strategy = stated["strategy"]
            return Padding(
                strategy["Fixed"] if isinstance(strategy, dict) else None,
                stated["pad_to_multiple_of"],
                stated["pad_id"],
                stated["pad_token"],
                stated["pad_type_id"],
                stated["direction"].lower(),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise VocabularyError(f"padding is not as it should be: {error!r}") from None

    def written(self) -> dict[str, Any]:
        """The same for a `tokenizer.json`."""
        return {
            "strategy": "BatchLongest" if self.length is None else {"Fixed": self.length},
            "direction": self.direction.capitalize(),
            "pad_to_multiple_of": self.pad_to_multiple_of,
            "pad_id": self.pad_id,
            "pad_type_id": self.pad_type_id,
            "pad_token": self.pad_token,
        }

    def as_dict(self) -> dict[str, Any]:
        """The same for a caller."""
        return asdict(self)

    def width(self, lengths: list[int]) -> int:
        """The length to fill up to.

        >>> Padding(pad_to_multiple_of=8).width([3, 9])
        16
        """
        width = max(lengths, default=0) if self.length is None else self.length
        return width + -width % (self.pad_to_multiple_of or 1)
