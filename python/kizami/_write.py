"""Writing a file so that nobody ever sees half of it."""

from __future__ import annotations

import contextlib
import os
import secrets

__all__ = ["write_file"]


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Puts a new file in place at once; who has the older one open keeps that."""
    target = os.fspath(path)
    directory, base = os.path.split(target)
    temporary = os.path.join(directory, f".{base}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
