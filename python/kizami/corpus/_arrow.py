"""Arrow arrays of strings to Arrow arrays of ids, without a Python string between.

The characters are read where Arrow holds them; validity and order are kept.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kizami._tokenizer import Tokenizer
from kizami.corpus._inputs import need
from kizami.errors import InputTypeError, InvalidValueError

__all__ = ["encode_arrow", "is_text", "lists", "text_ranges"]

Offsets = npt.NDArray[np.int64]

# Bytes of text a native call: what keeps all threads at work, and memory small.
_BLOCK = 8 << 20


def encode_arrow(array: Any, tokenizer: Tokenizer, *, allow_special: bool = False) -> Any:
    """The ids of an Arrow array of strings, as an Arrow array of lists.

    Args:
        array: A `pyarrow.Array` or `ChunkedArray` of type string, large_string or string_view, or
            a dictionary of these.
        tokenizer: From `kizami.load`.
        allow_special: As in `Tokenizer.encode`, for all texts. The default, False, is right for
            text that you did not write yourself.

    Returns:
        As many lists of uint32 as there are strings; null where a string is null. The type is
        list, or large_list if the input is large_string or the ids are more than 2**31. Chunks
        stay chunks.

    Raises:
        InputTypeError: `array` is no such array.
        InvalidValueError: The array holds bytes that are no UTF-8; `.position` is the index, of a
            chunked array within its chunk.
        MissingExtraError: `pyarrow` is not installed.

    Cost: one native call for each 8 MB of text; no Python object for a text or an id.

    >>> import kizami, kizami.corpus, pyarrow
    >>> texts = pyarrow.array(["Hello, world", None, ""])
    >>> kizami.corpus.encode_arrow(texts, kizami.load("kimi-k3")).to_pylist()
    [[19180, 11, 2695], None, []]
    """
    pa = need("pyarrow")
    if isinstance(array, pa.ChunkedArray):
        large = pa.types.is_large_string(array.type)
        chunks = [
            encode_arrow(chunk, tokenizer, allow_special=allow_special) for chunk in array.chunks
        ]
        wide = pa.large_list(pa.uint32())
        large = large or any(chunk.type == wide for chunk in chunks)
        kind = wide if large else pa.list_(pa.uint32())
        return pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind)
    if not isinstance(array, pa.Array):
        raise InputTypeError(f"array must be a pyarrow array, not {type(array).__name__}")
    if not is_text(array.type):
        raise InputTypeError(f"array must hold strings, not {array.type}; cast it first")
    data, starts, ends = text_ranges(array)
    ids, offsets = _encode(tokenizer, data, starts, ends, allow_special)
    large = pa.types.is_large_string(array.type) or len(ids) >= 1 << 31
    valid = np.asarray(array.is_valid()) if array.null_count else None
    return lists(ids, offsets, valid, large)


def lists(
    ids: npt.NDArray[np.uint32],
    offsets: Offsets,
    valid: npt.NDArray[np.bool_] | None,
    large: bool = False,
) -> Any:
    """An Arrow array of lists of ids; null where `valid` is False."""
    pa = need("pyarrow")
    validity, nulls = None, 0
    if valid is not None:
        validity, nulls = pa.array(valid).buffers()[1], int(len(valid) - valid.sum())
    kind = pa.large_list(pa.uint32()) if large else pa.list_(pa.uint32())
    places = pa.py_buffer(offsets if large else offsets.astype(np.int32))
    return pa.Array.from_buffers(
        kind, len(offsets) - 1, [validity, places], nulls, children=[pa.array(ids)]
    )


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of strings."""
    types = need("pyarrow").types
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    view = getattr(types, "is_string_view", lambda _: False)(kind)
    return bool(types.is_string(kind) or types.is_large_string(kind) or view)


def text_ranges(array: Any) -> tuple[memoryview, Offsets, Offsets]:
    """Where the texts are: one buffer of UTF-8, and start and end of each. A null is empty."""
    pa = need("pyarrow")
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        array = array.cast(pa.large_string())
    dtype = np.int64 if pa.types.is_large_string(array.type) else np.int32
    _, places, data = array.buffers()
    if not len(array) or places is None:
        empty = np.zeros(len(array), np.int64)
        return memoryview(b""), empty, empty
    offsets = np.frombuffer(places, dtype)[array.offset : array.offset + len(array) + 1]
    offsets = offsets.astype(np.int64)
    starts, ends = offsets[:-1], offsets[1:]
    if array.null_count:
        # What lies under a null is not defined.
        ends = np.where(np.asarray(array.is_valid()), ends, starts)
    view = memoryview(b"" if data is None else data).cast("B").toreadonly()
    return view, starts, ends


def _encode(
    tokenizer: Tokenizer, data: memoryview, starts: Offsets, ends: Offsets, allow_special: bool
) -> tuple[npt.NDArray[np.uint32], Offsets]:
    native = tokenizer._native
    total = np.cumsum(ends - starts)
    if not len(total) or total[-1] <= _BLOCK:
        return native.encode_utf8(data, starts, ends, allow_special, [], [])
    # Rows that begin in the same block go together.
    cuts = np.flatnonzero(np.diff((total - 1) // _BLOCK)) + 1
    borders = [0, *cuts.tolist(), len(starts)]
    parts, offsets, before = [], [np.zeros(1, np.int64)], 0
    for first, last in pairwise(borders):
        try:
            ids, ends_here = native.encode_utf8(
                data, starts[first:last], ends[first:last], allow_special, [], []
            )
        except InvalidValueError as error:
            position = getattr(error, "position", 0) + first
            message = f"text {position} is not UTF-8; convert it first"
            raise InvalidValueError(message, position=position) from None
        parts.append(ids)
        offsets.append(ends_here[1:] + before)
        before += len(ids)
    return np.concatenate(parts), np.concatenate(offsets)
