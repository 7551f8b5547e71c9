"""Images of big vocabulary files, kept between processes so that the second load is a mapping.

`KIZAMI_CACHE=0` turns this off; `KIZAMI_CACHE_DIR` says where they lie. What cannot be written is
not kept, and what cannot be read is made again: nothing depends on the cache but time.

A key is a cryptographic hash of all that an image is made from: the whole content of the file, and
what the caller says of it. Times and sizes of files play no part, so that no image is ever stale.
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

__all__ = ["cache_directory", "find_image", "is_kept", "keep_image", "through_cache"]

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


def is_kept(size: int) -> bool:
    """Whether the image of a file of this size is kept."""
    return size >= _LEAST_BYTES and os.environ.get("KIZAMI_CACHE") != "0"


def find_image(key: str) -> tuple[_native.Tokenizer, str] | None:
    """The tokenizer kept under a key, and what was kept with it."""
    try:
        path = _path(key)
        native, about = _native.Tokenizer.open_saved(path, [])
    except (KizamiError, RuntimeError):
        # Not there, or damaged, or of another version; or there is no home directory.
        return None
    stated, _, text = about.partition("\n")
    if stated != key:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return native, text


def keep_image(key: str, native: _native.Tokenizer, text: str) -> None:
    """Keeps a tokenizer, and a text, under a key."""
    with contextlib.suppress(OSError, RuntimeError):
        path = _path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, native.saved(f"{key}\n{text}"))
        _tidy(path.parent)


def through_cache(
    key: str, size: int | None, build: Callable[[], _native.Tokenizer]
) -> _native.Tokenizer:
    """What `build` gives for the content that has this key, from the cache if it is there.

    `size` is that of a file, or None if building is known to take long.
    """
    if os.environ.get("KIZAMI_CACHE") == "0" or (size is not None and not is_kept(size)):
        return build()
    found = find_image(key)
    if found is not None:
        return found[0]
    native = build()
    keep_image(key, native, "")
    return native


def _path(key: str) -> Path:
    return cache_directory() / f"{key}-{__version__}.kizami"


def _tidy(directory: Path) -> None:
    images = sorted(directory.glob("*.kizami"), key=lambda path: path.stat().st_mtime)
    for image in images[:-_MOST]:
        image.unlink(missing_ok=True)
