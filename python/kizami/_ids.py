"""Token ids as callers hold them -> what the native decoder takes, or a precise error."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from kizami.errors import InputTypeError, InvalidIdError

NativeIds = npt.NDArray[np.uint32] | list[int]
_LIMIT = 1 << 32


def native_ids(ids: Any, vocab_size: int) -> NativeIds:
    """A contiguous uint32 array, or a list of ints that the native side checks while it converts.

    Raises:
        InputTypeError: `ids` is no sequence of integers.
        InvalidIdError: an id is negative or above 32 bits (ids inside 32 bits are checked later).
    """
    if type(ids) is list:
        return ids
    if isinstance(ids, (str, bytes, bytearray, dict, set, frozenset)):
        raise InputTypeError(f"ids must be a sequence of ints, not {type(ids).__name__}")
    if not isinstance(ids, np.ndarray):
        if not hasattr(ids, "__array__"):
            if isinstance(ids, Iterable):
                return list(ids)
            hint = "; give [id] for one id" if hasattr(ids, "__index__") else ""
            raise InputTypeError(f"ids must be a sequence of ints, not {type(ids).__name__}{hint}")
        ids = np.asarray(ids)
    if ids.ndim != 1:
        raise InputTypeError(
            f"ids must have one dimension, not shape {ids.shape}; use decode_batch for rows"
        )
    if ids.dtype == np.uint32:
        aligned: NativeIds = np.require(ids, requirements=["C", "A"])
        return aligned
    if ids.size and ids.dtype.kind not in "iu":
        raise InputTypeError(f"ids must be integers, not {ids.dtype}")
    outside = (
        (ids < 0) | (ids >= _LIMIT) if ids.dtype.itemsize > 2 or ids.dtype.kind == "i" else None
    )
    if outside is not None and outside.any():
        position = int(outside.argmax())
        raise invalid_id(int(ids[position]), position, vocab_size)
    converted: NativeIds = ids.astype(np.uint32)
    return converted


def pushed_ids(ids: Any, vocab_size: int) -> NativeIds:
    """What a stream is given, one id or several, as `native_ids`; all ids are ints in range.

    >>> pushed_ids(np.int16(3), 4), pushed_ids((1, 2), 4)
    (array([3], dtype=uint32), [1, 2])

    Raises:
        InputTypeError, InvalidIdError: As `native_ids`.
    """
    if hasattr(ids, "__array__"):
        ids = np.atleast_1d(np.asarray(ids))
    elif hasattr(ids, "__index__"):
        ids = [ids]
    converted = native_ids(ids, vocab_size)
    if isinstance(converted, list):
        fault = explain(converted, vocab_size)
        if fault is not None:
            raise fault
        converted = [operator.index(id_) for id_ in converted]
    return converted


def invalid_id(id_: int, position: int, vocab_size: int) -> InvalidIdError:
    """The error for an id outside the vocabulary, worded as the native decoder words it."""
    where = f"is outside the vocabulary (0 to {vocab_size - 1})"
    if 0 <= id_ < vocab_size:
        where = "is in a gap of the vocabulary: no token has it"
    return InvalidIdError(
        f"token id {id_} at position {position} {where}; decode only ids of this tokenizer",
        id=id_,
        position=position,
        vocab_size=vocab_size,
    )


def explain(ids: list[Any], vocab_size: int) -> Exception | None:
    """Why the native side could not convert this list, or None if the list is not to blame."""
    for position, item in enumerate(ids):
        try:
            if isinstance(item, (bool, np.bool_)):
                raise TypeError
            value = operator.index(item)
        except TypeError:
            kind = type(item).__name__
            message = f"id at position {position} must be an int, not {kind}; give token ids"
            return InputTypeError(message, position=position)
        if not 0 <= value < vocab_size:
            return invalid_id(value, position, vocab_size)
    return None
