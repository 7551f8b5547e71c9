"""Reading the files of a tokenizer: plain or compressed, with errors that name the path."""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from pathlib import Path
from typing import Any

from kizami.errors import SourceNotFoundError, VocabularyError

__all__ = ["GENERATION", "MAX_BYTES", "parse_json", "read_bytes", "read_json", "read_raw", "unpack"]

GENERATION = "generation_config.json"
# Far above any vocabulary; what unpacks to more is no tokenizer but an attack.
MAX_BYTES = 1 << 30


def read_raw(path: Path) -> bytes:
    """The content of a file, as it is."""
    try:
        with path.open("rb") as file:
            # To ask for more than there is would cost as much as reading it.
            size = min(os.fstat(file.fileno()).st_size, MAX_BYTES)
            data = file.read(size + 1)
            if len(data) > size:
                data += file.read(MAX_BYTES + 1 - len(data))
    except FileNotFoundError:
        raise SourceNotFoundError(f"there is no file {str(path)!r}", source=str(path)) from None
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}"
        raise VocabularyError(message, path=str(path)) from None
    return data


def unpack(data: bytes, path: Path) -> bytes:
    """The content of a file, unpacked if it is compressed by gzip; what is none is refused."""
    if data.startswith(b"\x1f\x8b"):
        try:
            with gzip.open(io.BytesIO(data)) as file:
                data = file.read(MAX_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            message = f"{path} is damaged: {error}"
            raise VocabularyError(message, path=str(path)) from None
    if len(data) > MAX_BYTES:
        message = f"{path} holds more than {MAX_BYTES >> 20} MB: no vocabulary does"
        raise VocabularyError(message, path=str(path))
    if data.startswith(b"version https://git-lfs"):
        message = f"{path} is a Git LFS pointer, not the file; run `git lfs pull` beside it"
        raise VocabularyError(message, path=str(path), line=1)
    return data


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if it is compressed by gzip."""
    return unpack(read_raw(path), path)


def parse_json(data: bytes, path: Path) -> dict[str, Any]:
    """An object from JSON."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"{path} is not JSON: {error}", path=str(path)) from None
    if not isinstance(value, dict):
        raise VocabularyError(f"{path} must hold a JSON object", path=str(path))
    return value


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None if there is no such file, plain or with `.gz` behind it."""
    for candidate in (path, path.with_name(path.name + ".gz")):
        if candidate.is_file():
            return parse_json(read_bytes(candidate), candidate)
    return None
