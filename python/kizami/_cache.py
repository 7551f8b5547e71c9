"""Images of big vocabulary files, kept between processes so that the second load is a mapping.

`KIZAMI_CACHE=0` turns this off; `KIZAMI_CACHE_DIR` says where they lie. What cannot be written is
not kept, and what cannot be read is made again: nothing depends on the cache but time.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from kizami import _native
from kizami._version import __version__
from kizami._write import write_file
from kizami.errors import KizamiError

__all__ = ["cache_directory", "through_cache"]

# Smaller files are read in a few milliseconds.
_LEAST_BYTES = 1 << 20
# Images kept; the one not used for longest goes first.
_MOST = 16


def cache_directory() -> Path:
    """Where images are kept."""
    stated = os.environ.get("KIZAMI_CACHE_DIR")
    if stated:
        return Path(stated)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "kizami"


def through_cache(
    digest: str, size: int | None, build: Callable[[], _native.Tokenizer]
) -> _native.Tokenizer:
    """What `build` gives for a file with this SHA-256, from the cache if it is there.

    `size` is that of the file, or None if it is known to take long.
    """
    if (size is not None and size < _LEAST_BYTES) or os.environ.get("KIZAMI_CACHE") == "0":
        return build()
    try:
        path = cache_directory() / f"{digest}-{__version__}.kizami"
    except RuntimeError:
        # There is no home directory.
        return build()
    if path.is_file():
        try:
            native, about = _native.Tokenizer.open_saved(path, [])
        except KizamiError:
            about = ""
        if about == digest:
            with contextlib.suppress(OSError):
                os.utime(path)
            return native
    native = build()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, native.saved(digest))
        _tidy(path.parent)
    return native


def _tidy(directory: Path) -> None:
    images = sorted(directory.glob("*.kizami"), key=lambda path: path.stat().st_mtime)
    for image in images[:-_MOST]:
        image.unlink(missing_ok=True)
