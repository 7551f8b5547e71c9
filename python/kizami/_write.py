"""Writing a file so that nobody ever sees half of it."""

from __future__ import annotations

import contextlib
import os
import secrets

__all__ = ["sync_folder", "write_file"]


def write_file(path: str | os.PathLike[str], data: bytes, *, durable: bool = False) -> None:
    """Puts a new file in place at once; who has the older one open keeps that.

    With `durable`, it is on the disk when this returns.
    """
    target = os.fspath(path)
    directory, base = os.path.split(target)
    temporary = os.path.join(directory, f".{base}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, target)
        if durable:
            sync_folder(directory or os.curdir)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Puts the names in a folder on the disk, where the system can do that."""
    if os.name == "nt":
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
