"""The result of `Tokenizer.encode_batch`."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Literal, overload

import numpy as np
import numpy.typing as npt

from kizami.errors import InputTypeError, InvalidValueError


class Batch:
    """The ids of several texts in one array, with the place of each.

    Attributes:
        ids: All ids, text after text; shape (n,), uint32.
        offsets: Where each text begins, and the end of the last; shape (len + 1,), int64.

    >>> import kizami
    >>> batch = kizami.load("kimi-k3").encode_batch(["one", "", "two words"])
    >>> len(batch), batch.offsets.tolist()
    (3, [0, 1, 1, 3])
    >>> batch[2].tolist() == batch.tolist()[2]
    True
    """

    __slots__ = ("ids", "offsets")

    ids: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int64]

    def __init__(self, ids: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64]) -> None:
        self.ids = ids
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> npt.NDArray[np.uint32]: ...

    @overload
    def __getitem__(self, index: slice) -> list[npt.NDArray[np.uint32]]: ...

    def __getitem__(
        self, index: int | slice
    ) -> npt.NDArray[np.uint32] | list[npt.NDArray[np.uint32]]:
        """The ids of one text, a view of `ids`; a list of such views for a slice."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        count = len(self)
        place = index + count if index < 0 else index
        if not 0 <= place < count:
            raise IndexError(f"text {index} of a batch of {count}")
        return self.ids[self.offsets[place] : self.offsets[place + 1]]

    def __iter__(self) -> Iterator[npt.NDArray[np.uint32]]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Batch({len(self)} texts, {len(self.ids)} ids)"

    def tolist(self) -> list[list[int]]:
        """The ids as lists of Python ints, one list a text. Slow for many ids."""
        return [ids.tolist() for ids in self]

    def padded(
        self, pad_id: int, side: Literal["right", "left"] = "right", length: int | None = None
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
        """The batch as a rectangle.

        Args:
            pad_id: The id that fills the rest of a row, such as `tokenizer.token_id("[PAD]")`.
            side: Where the filling goes.
            length: Row length in ids; None takes the longest text.

        Returns:
            ids, shape (len, length), uint32; and mask, same shape, uint8: 1 at ids, 0 at filling.

        Raises:
            InputTypeError: `pad_id` or `length` is no int.
            InvalidValueError: `side` is unknown, `pad_id` is no id, or a text is longer than
                `length` (nothing is cut silently: cut the ids, or give a greater length).

        >>> import kizami
        >>> ids, mask = kizami.load("kimi-k3").encode_batch(["a b c", "a"]).padded(0)
        >>> mask.tolist()
        [[1, 1, 1], [1, 0, 0]]
        """
        if side not in ("right", "left"):
            raise InvalidValueError(f"side must be 'right' or 'left', not {side!r}")
        try:
            pad_id = operator.index(pad_id)
            length = None if length is None else operator.index(length)
        except TypeError:
            raise InputTypeError(
                f"pad_id and length must be ints, not {pad_id!r} and {length!r}"
            ) from None
        if not 0 <= pad_id < 1 << 32:
            raise InvalidValueError(f"pad_id {pad_id} is no token id")
        lengths = np.diff(self.offsets)
        longest = int(lengths.max(initial=0))
        width = longest if length is None else length
        if width < 0:
            raise InvalidValueError(f"length must not be negative, and is {width}")
        if longest > width:
            index = int(lengths.argmax())
            raise InvalidValueError(
                f"text {index} has {longest} ids, more than length={width}; "
                "give a greater length, or cut the ids yourself"
            )
        columns = np.arange(width)
        filled = columns < lengths[:, None]
        if side == "left":
            filled = filled[:, ::-1]
        rows = np.full((len(self), width), pad_id, dtype=np.uint32)
        rows[filled] = self.ids
        return rows, filled.astype(np.uint8)
