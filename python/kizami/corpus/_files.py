"""Files that are whole or not there: written aside, put on the disk, renamed."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["File", "aside", "sync_folder"]


# Bytes after which a file begins to go to the disk.
_BEGIN = 32 << 20


def aside(folder: Path, name: str) -> Path:
    """Where a file is written before it is whole."""
    return folder / f".{name}.part"


class File:
    """A file written aside, with its checksum."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._folder = folder
        self._path = aside(folder, name)
        self._file: BinaryIO = self._path.open("w+b")
        self._hash = hashlib.sha256()
        self._changed = False
        self._written = self._begun = 0

    closed = False  # for pyarrow

    def write(self, data: Any) -> int:
        """Appends bytes; returns their number."""
        view = memoryview(data).cast("B")
        self._hash.update(view)
        done = 0
        while done < len(view):
            done += self._file.write(view[done:])
        self._written += done
        if self._written - self._begun >= _BEGIN:
            self._begin_writing()
        return len(view)

    def _begin_writing(self) -> None:
        """Lets the system write to the disk now, so that `finish` has little to wait for."""
        if hasattr(os, "posix_fadvise"):
            self._file.flush()
            count = self._written - self._begun
            # Does not wait. What is on the disk later may leave the memory: nobody reads it soon.
            os.posix_fadvise(self._file.fileno(), self._begun, count, os.POSIX_FADV_DONTNEED)
        self._begun = self._written

    def tell(self) -> int:
        """Where the next byte goes."""
        return self._file.tell()

    def flush(self) -> None:
        """Gives what is buffered to the system."""
        self._file.flush()

    def put_head(self, head: bytes) -> None:
        """Writes over the beginning."""
        self._file.seek(0)
        self._file.write(head)
        self._changed = True

    def finish(self) -> dict[str, Any]:
        """Puts the file in place, on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        if self._changed:
            self._hash = hashlib.sha256()
            self._file.seek(0)
            while block := self._file.read(1 << 20):
                self._hash.update(block)
        size = self._file.seek(0, os.SEEK_END)
        self._file.close()
        os.replace(self._path, self._folder / self.name)
        return {"name": self.name, "bytes": size, "sha256": self._hash.hexdigest()}

    def drop(self) -> None:
        """Leaves no trace of it."""
        # What could not be written before cannot be written now.
        with contextlib.suppress(OSError):
            self._file.close()
        self._path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Puts the names in a folder on the disk, where the system can do that."""
    if os.name == "nt":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
