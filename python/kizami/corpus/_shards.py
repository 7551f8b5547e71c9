"""Shards: whole files of ids, each written aside, then put in place.

One class a format. A shard takes documents one after the other and never holds a part of one. What
its files hold depends on the documents alone, not on how they came in.

Read next: docs/reference/corpus-format.md, which says what the files look like.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kizami.corpus._files import File, sync_folder
from kizami.corpus._inputs import need

__all__ = ["SHARD_FORMATS", "Shard", "shard_dtype"]

Ids = npt.NDArray[Any]
Offsets = npt.NDArray[np.int64]

# Ids of a row group of Parquet, of a record batch of Arrow.
_GROUP = 1 << 22
_NPY_HEAD = 128


def shard_dtype(vocab_size: int, format: str) -> np.dtype[Any]:
    """The type of ids in a shard: two bytes where they are enough. Little-endian."""
    if vocab_size <= 65_500:  # the border of Megatron's own tools
        return np.dtype("<u2")
    return np.dtype("<i4" if format == "megatron" else "<u4")


class Shard:
    """The ids one after the other in `.bin`; where each document begins in `.offsets.npy`."""

    def __init__(self, folder: Path, number: int, dtype: np.dtype[Any]) -> None:
        self._folder = folder
        self._stem = f"shard-{number:05}"
        self._dtype = dtype
        self._files: list[File] = []
        self._lengths: list[Offsets] = []
        self.documents = 0
        self.tokens = 0
        try:
            self._open()
        except BaseException:
            self.drop()
            raise

    def _open(self) -> None:
        self._body = self._file(".bin")

    def _file(self, suffix: str) -> File:
        file = File(self._folder, self._stem + suffix)
        self._files.append(file)
        return file

    def add(self, ids: npt.NDArray[np.uint32], lengths: Offsets) -> None:
        """Appends documents."""
        self.documents += len(lengths)
        self.tokens += len(ids)
        self._add(ids.astype(self._dtype, copy=False), lengths)

    def _add(self, ids: Ids, lengths: Offsets) -> None:
        self._body.write(np.ascontiguousarray(ids))
        self._lengths.append(lengths)

    def finish(self) -> list[dict[str, Any]]:
        """Puts the files in place: name, bytes and checksum of each."""
        self._finish()
        files = [file.finish() for file in self._files]
        sync_folder(self._folder)
        return files

    def _finish(self) -> None:
        write_npy(self._file(".offsets.npy"), self._offsets(), np.dtype("<i8"))

    def _all_lengths(self) -> Offsets:
        return np.concatenate([np.zeros(0, np.int64), *self._lengths])

    def _offsets(self) -> Offsets:
        return np.concatenate([[0], np.cumsum(self._all_lengths())])

    def drop(self) -> None:
        """Leaves no trace of a shard that will not be whole."""
        for file in self._files:
            file.drop()


def write_npy(file: File, array: Offsets, dtype: np.dtype[Any]) -> None:
    """A whole `.npy` file."""
    file.write(npy_head(len(array), dtype))
    file.write(np.ascontiguousarray(array.astype(dtype, copy=False)))


def npy_head(count: int, dtype: np.dtype[Any]) -> bytes:
    """The header of a `.npy` file of one dimension, 128 bytes whatever the count."""
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({count},), }}"
    body = text.ljust(_NPY_HEAD - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body.encode("ascii")


class NpyShard(Shard):
    """The same with the ids in a `.npy` file."""

    def _open(self) -> None:
        self._body = self._file(".npy")
        self._body.write(npy_head(0, self._dtype))

    def _finish(self) -> None:
        self._body.put_head(npy_head(self.tokens, self._dtype))
        super()._finish()


class MegatronShard(Shard):
    """The layout of Megatron's indexed datasets: ids in `.bin`, and an index `.idx`."""

    def _finish(self) -> None:
        codes = {"<u2": 8, "<i4": 4}
        lengths = self._all_lengths()
        # A sequence is a document here.
        pointers = (self._offsets() * self._dtype.itemsize)[:-1]
        head = struct.pack("<QBQQ", 1, codes[self._dtype.str], len(lengths), len(lengths) + 1)
        index = self._file(".idx")
        index.write(b"MMIDIDX\x00\x00" + head)
        index.write(lengths.astype("<i4"))
        index.write(pointers.astype("<i8"))
        index.write(np.arange(len(lengths) + 1, dtype="<i8"))


class _TableShard(Shard):
    """Documents as rows, their ids as lists in the column `input_ids`."""

    def _open(self) -> None:
        pa = need("pyarrow")
        kind = pa.list_(pa.from_numpy_dtype(self._dtype))
        self._schema = pa.schema([pa.field("input_ids", kind)])
        self._ids: list[Ids] = []
        self._waiting = 0
        self._writer = self._open_writer(pa)

    def _open_writer(self, pa: Any) -> Any:
        raise NotImplementedError

    def _add(self, ids: Ids, lengths: Offsets) -> None:
        # Groups end with the document that fills them, so they depend on nothing else.
        ends = np.cumsum(lengths)
        first, start = 0, 0
        while first < len(lengths):
            room = start + _GROUP - self._waiting
            last = min(int(np.searchsorted(ends, room)) + 1, len(lengths))
            end = int(ends[last - 1])
            self._ids.append(ids[start:end])
            self._lengths.append(lengths[first:last])
            self._waiting += end - start
            first, start = last, end
            if self._waiting >= _GROUP:
                self._write_group()

    def _write_group(self) -> None:
        pa = need("pyarrow")
        ids = np.concatenate([np.zeros(0, self._dtype), *self._ids])
        offsets = pa.array(self._offsets().astype(np.int32))
        lists = pa.ListArray.from_arrays(offsets, pa.array(ids))
        batch = pa.record_batch([lists], schema=self._schema)
        self._write_batch(batch)
        self._ids, self._lengths, self._waiting = [], [], 0

    def _write_batch(self, batch: Any) -> None:
        self._writer.write_batch(batch)

    def _finish(self) -> None:
        if self._lengths:
            self._write_group()
        self._writer.close()


class ParquetShard(_TableShard):
    """A Parquet file."""

    def _open_writer(self, pa: Any) -> Any:
        parquet = need("pyarrow.parquet")
        file = self._file(".parquet")
        return parquet.ParquetWriter(
            pa.PythonFile(file, "w"), self._schema, compression="zstd", use_dictionary=False
        )

    def _write_batch(self, batch: Any) -> None:
        self._writer.write_batch(batch, row_group_size=max(len(batch), 1))


class ArrowShard(_TableShard):
    """An Arrow file that can be mapped."""

    def _open_writer(self, pa: Any) -> Any:
        need("pyarrow.ipc")
        return pa.ipc.new_file(pa.PythonFile(self._file(".arrow"), "w"), self._schema)


SHARD_FORMATS: dict[str, type[Shard]] = {
    "bin": Shard,
    "npy": NpyShard,
    "megatron": MegatronShard,
    "parquet": ParquetShard,
    "arrow": ArrowShard,
}
