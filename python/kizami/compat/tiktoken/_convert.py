"""Arguments of `Encoding` as Kizami takes them, and results as tiktoken gives them."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from itertools import pairwise
from typing import SupportsIndex, TypeVar

from kizami._batch import Batch
from kizami.errors import InputTypeError, InvalidValueError

__all__ = ["check_threads", "refuse_surrogates", "rows", "to_id", "to_ints"]


def rows(batch: Batch) -> list[list[int]]:
    """The ids as lists."""
    ids, ends = batch.ids.tolist(), batch.offsets.tolist()
    return [ids[start:end] for start, end in pairwise(ends)]


Key = TypeVar("Key", str, bytes)


def to_ints(ids: Mapping[Key, SupportsIndex]) -> dict[Key, int]:
    """Tokens with ids that are ints.

    Raises:
        TypeError: They are no integers, or `ids` is no mapping.
    """
    if not isinstance(ids, Mapping):
        raise InputTypeError(f"tokens must come as a dict, not {type(ids).__name__}")
    return {token: operator.index(id_) for token, id_ in ids.items()}


def to_id(token: SupportsIndex) -> int:
    """An id as tiktoken reads one.

    Raises:
        OverflowError, TypeError: It is none.
    """
    id_ = operator.index(token)
    if not 0 <= id_ < 1 << 32:
        raise OverflowError(f"{id_} is no token id: it has no place in 32 bits")
    return id_


def refuse_surrogates(text: str) -> None:
    """Raises `UnicodeEncodeError` where tiktoken does not replace them."""
    if not text.isascii():
        text.encode()


def check_threads(number: int | None) -> None:
    """The number of threads counts for nothing, but a wrong one is an error."""
    if number is not None and number <= 0:
        raise InvalidValueError(f"num_threads must be greater than 0, and is {number}")
