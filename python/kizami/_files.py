"""Reading the files of a tokenizer: plain or compressed, with errors that name the path."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from kizami.errors import SourceNotFoundError, VocabularyError

__all__ = ["GENERATION", "parse_json", "read_bytes", "read_json"]

GENERATION = "generation_config.json"
# Far above any vocabulary; what unpacks to more is no tokenizer but an attack.
_MAX_BYTES = 1 << 30


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if it is compressed by gzip."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise SourceNotFoundError(f"there is no file {str(path)!r}", source=str(path)) from None
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}"
        raise VocabularyError(message, path=str(path)) from None
    if data.startswith(b"\x1f\x8b"):
        try:
            with gzip.open(path) as file:
                data = file.read(_MAX_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            message = f"{path} is damaged: {error}"
            raise VocabularyError(message, path=str(path)) from None
    if len(data) > _MAX_BYTES:
        message = f"{path} holds more than {_MAX_BYTES >> 20} MB: no vocabulary does"
        raise VocabularyError(message, path=str(path))
    if data.startswith(b"version https://git-lfs"):
        message = f"{path} is a Git LFS pointer, not the file; run `git lfs pull` beside it"
        raise VocabularyError(message, path=str(path), line=1)
    return data


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
