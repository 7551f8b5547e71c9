"""Ids to shards, and the manifest after each of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kizami.corpus._manifest import MOST_NAMED, Manifest
from kizami.corpus._rows import REASONS, TEXT, Place, Rows
from kizami.corpus._shards import SHARD_FORMATS, Shard
from kizami.errors import CorpusWriteError

__all__ = ["HARMLESS", "Damage", "Encoded", "Writer", "cannot_write", "documents_of"]

Offsets = npt.NDArray[np.int64]

# Rows without text that are nobody's fault: always left out, and counted.
HARMLESS = tuple(REASONS.index(reason) for reason in ("blank", "null", "empty"))
_NULL = REASONS.index("null")


class Damage(NamedTuple):
    """The end of an input that cannot be read further."""

    place: Place
    path: str
    reason: str
    message: str


class Encoded(NamedTuple):
    """Rows, and the ids of their documents one after the other."""

    blocks: list[Rows | Damage]
    ids: npt.NDArray[np.uint32]
    offsets: Offsets


def cannot_write(folder: Path, error: OSError) -> CorpusWriteError:
    """What a run says if the system does not let it write."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    message = f"{folder} cannot be written: {reason[:1].lower()}{reason[1:]}"
    hint = "look at the permissions and the space left, then go on with resume"
    return CorpusWriteError(f"{message}; {hint}", path=str(folder))


def documents_of(rows: Rows, keep_empty: bool) -> npt.NDArray[np.intp]:
    """Indices of the rows that are documents."""
    kept = rows.kinds == TEXT
    return np.flatnonzero(kept | (rows.kinds == _NULL) if keep_empty else kept)


class Writer:
    """Writes shards of `limit` ids or a little more: a document is never parted."""

    def __init__(
        self, folder: Path, manifest: Manifest, limit: int, keep_empty: bool, names: list[str]
    ) -> None:
        self.manifest = manifest
        self._folder = folder
        self._limit = limit
        self._keep_empty = keep_empty
        self._names = names
        self._new = SHARD_FORMATS[manifest.settings["format"]]
        self._dtype = np.dtype(manifest.dtype)
        self._shard: Shard | None = None

    def add(self, encoded: Encoded) -> None:
        """Writes documents, in order."""
        self._guarded(lambda: self._add(encoded))

    def finish(self, end: Place) -> None:
        """Puts the last shard in place, and says in the manifest that all is done."""

        def finish() -> None:
            if self._shard is not None:
                self._close(end)
            self.manifest.complete = True
            self.manifest.write(self._folder)

        self._guarded(finish)

    def drop(self) -> None:
        """Leaves no trace of a shard that is not whole."""
        shard, self._shard = self._shard, None
        if shard is not None:
            shard.drop()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:
            raise cannot_write(self._folder, error) from error

    def _add(self, encoded: Encoded) -> None:
        first = 0
        for block in encoded.blocks:
            if isinstance(block, Damage):
                about = {"path": block.path, "row": block.place.row, "reason": block.reason}
                self.manifest.totals.damaged.append({**about, "message": block.message})
                continue
            documents = documents_of(block, self._keep_empty)
            last = first + len(documents)
            self._add_rows(block, documents, encoded.ids, encoded.offsets[first : last + 1])
            first = last

    def _add_rows(
        self,
        rows: Rows,
        documents: npt.NDArray[np.intp],
        ids: npt.NDArray[np.uint32],
        offsets: Offsets,
    ) -> None:
        lengths = np.diff(offsets)
        first = row = 0
        while first < len(documents):
            if self._shard is None:
                self._shard = self._new(self._folder, len(self.manifest.shards), self._dtype)
            room = offsets[first] + self._limit - self._shard.tokens
            fits = int(np.searchsorted(offsets[first + 1 :], room)) + 1
            last = min(first + fits, len(documents))
            self._shard.add(ids[offsets[first] : offsets[last]], lengths[first:last])
            self.manifest.totals.tokens += int(offsets[last] - offsets[first])
            first = last
            if self._shard.tokens >= self._limit:
                end = int(documents[last - 1])
                self._count(rows, row, end + 1)
                row = end + 1
                self._close(rows.after(end))
        self._count(rows, row, len(rows.kinds))

    def _count(self, rows: Rows, first: int, last: int) -> None:
        totals = self.manifest.totals
        kinds = rows.kinds[first:last]
        counts = np.bincount(kinds, minlength=len(REASONS)).tolist()
        if self._keep_empty:
            counts[TEXT] += counts[_NULL]
            counts[_NULL] = 0
        totals.rows += len(kinds)
        totals.documents += counts[TEXT]
        sizes = rows.ends[first:last] - rows.starts[first:last]
        totals.text_bytes += int(sizes[kinds == TEXT].sum())
        for kind, count in enumerate(counts):
            if kind != TEXT and count:
                reason = REASONS[kind]
                totals.left_out[reason] = totals.left_out.get(reason, 0) + count
        if sum(counts) != counts[TEXT] + sum(counts[kind] for kind in HARMLESS):
            self._name(rows, first, kinds)

    def _name(self, rows: Rows, first: int, kinds: npt.NDArray[np.uint8]) -> None:
        named = self.manifest.totals.named
        wrong = np.flatnonzero((kinds != TEXT) & ~np.isin(kinds, HARMLESS)) + first
        for index in wrong[: max(MOST_NAMED - len(named), 0)].tolist():
            about: dict[str, Any] = {
                "path": self._names[rows.place.input],
                "row": rows.place.row + index + 1,
                "reason": REASONS[rows.kinds[index]],
                "message": rows.describe(index),
            }
            named.append(about)

    def _close(self, place: Place) -> None:
        shard = self._shard
        assert shard is not None
        entry = {
            "documents": shard.documents,
            "tokens": shard.tokens,
            "files": shard.finish(),
            "next": place._asdict(),
        }
        self._shard = None
        self.manifest.shards.append(entry)
        self.manifest.write(self._folder)
