"""Input files: which there are, what they hold, and their bytes, unpacked.

Compression is told by the first bytes, never by the name (but a name that speaks of compression
makes bytes that are no text an error); what is inside a file that is neither Parquet nor Arrow is
told by its suffix, or by the caller.
"""

from __future__ import annotations

import codecs
import glob
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any, BinaryIO, NamedTuple

from kizami.errors import CorpusError, InputTypeError, MissingExtraError

__all__ = ["FORMATS", "STANDARD_INPUT", "Input", "Stream", "find_inputs", "need"]

STANDARD_INPUT = "-"
FORMATS = ("text", "jsonl", "parquet", "arrow")

_SUFFIXES = {
    ".txt": "text",
    ".text": "text",
    ".md": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
}
_PACKED = {".gz", ".zst", ".zstd"}
_GZIP = b"\x1f\x8b"
# A frame, or a skippable one, with which `pzstd` begins its files.
_ZSTD = (b"\x28\xb5\x2f\xfd", *(bytes([0x50 + n]) + b"\x2a\x4d\x18" for n in range(16)))
# Bytes of a file with the name of a compressed one that must be text if they are not compressed.
_LOOK = 4096


class Input(NamedTuple):
    """One file to read."""

    path: str
    format: str
    size: int | None
    modified: int | None

    @property
    def name(self) -> str:
        """As messages name it."""
        return "standard input" if self.path == STANDARD_INPUT else self.path

    def identity(self) -> dict[str, Any]:
        """What the manifest says of it; if that changes, a run cannot go on."""
        return {
            "path": self.path,
            "format": self.format,
            "bytes": self.size,
            "modified_ns": self.modified,
        }


def need(module: str, extra: str = "data") -> Any:
    """A module of an extra."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"`{package}` is not installed: pip install 'kizami[{extra}]'", extra=extra
        ) from error


def find_inputs(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], format: str | None
) -> list[Input]:
    """The files, in order; those that a pattern finds are sorted by name."""
    if isinstance(inputs, (str, os.PathLike)):
        inputs = [inputs]
    found: list[Input] = []
    for given in inputs:
        try:
            name: str | bytes = os.fspath(given)
        except TypeError:
            name = b""
        if not isinstance(name, str):
            kind = type(given).__name__
            raise InputTypeError(f"inputs must be paths, not {kind}")
        found.extend(_input(path, format) for path in _paths(name))
    if not found:
        raise CorpusError("there is no input; give files, patterns, or `-` for standard input")
    if sum(one.path == STANDARD_INPUT for one in found) > 1:
        raise CorpusError("standard input can be read only once; give `-` once", path="-")
    return found


def _paths(name: str) -> list[str]:
    if name == STANDARD_INPUT or os.path.exists(name) or not glob.has_magic(name):
        return [name]
    paths = sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path))
    if not paths:
        raise CorpusError(f"no file matches {name!r}; check the pattern", path=name)
    return paths


def _input(path: str, format: str | None) -> Input:
    size = modified = None
    if path != STANDARD_INPUT:
        try:
            facts = os.stat(path)
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from None
        if os.path.isdir(path):
            message = f"{path} is a folder; give a pattern, such as {path.rstrip('/')}/*.jsonl"
            raise CorpusError(message, path=path)
        if os.path.isfile(path):
            size, modified = facts.st_size, facts.st_mtime_ns
    return Input(path, format or _format(path), size, modified)


def _format(path: str) -> str:
    name = PurePath(path)
    if name.suffix.lower() in _PACKED:
        name = name.with_suffix("")
    known = _SUFFIXES.get(name.suffix.lower())
    if known is None:
        what = "standard input" if path == STANDARD_INPUT else path
        message = f"the name of {what} does not say what it holds"
        raise CorpusError(f"{message}; pass input_format, one of {', '.join(FORMATS)}", path=path)
    return known


def _unreadable(path: str, error: Exception) -> CorpusError:
    reason = getattr(error, "strerror", None) or str(error)
    name = "standard input" if path == STANDARD_INPUT else path
    message = f"{name} cannot be read: {reason}; check the file, or leave it out"
    return CorpusError(message, path=path, reason="unreadable")


class Stream:
    """The unpacked bytes of an input, from its beginning.

    Attributes:
        packed: Bytes of the file that were read so far.

    Errors of reading are `CorpusError`; they come only after all bytes that could be read.
    """

    def __init__(self, given: Input) -> None:
        self._given = given
        self.packed = 0
        try:
            if given.path == STANDARD_INPUT:
                self._file: BinaryIO = sys.stdin.buffer
            else:
                self._file = open(given.path, "rb", buffering=0)  # noqa: SIM115
            self._head = self._read_exactly(4)
            self._unpack = self._unpacking()
        except (OSError, ValueError, AttributeError) as error:
            raise _unreadable(given.path, error) from None
        if self._unpack is None:
            self._check_name()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        if self._given.path != STANDARD_INPUT:
            self._file.close()

    def _check_name(self) -> None:
        """Raises for what is named like a compressed file, and is neither gzip, zstd nor text."""
        path = self._given.path
        if PurePath(path).suffix.lower() not in _PACKED:
            return
        try:
            self._head += self._read_exactly(_LOOK - len(self._head))
            codecs.getincrementaldecoder("utf-8")().decode(self._head)
        except UnicodeDecodeError:
            self._file.close()
            message = f"the name of {path} says that it is compressed, its first bytes do not"
            hint = "replace the file, or rename it if it is text"
            raise CorpusError(f"{message}; {hint}", path=path, reason="damaged") from None
        except OSError as error:
            raise _unreadable(path, error) from None

    def _read_exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size and (more := self._file.read(size - len(data))):
            data += more
        self.packed += len(data)
        return data

    def _unpacking(self) -> _Unpacked | None:
        if self._head.startswith(_GZIP):
            return _Unpacked(self._raw, lambda: zlib.decompressobj(31), 16 << 10, zlib.error)
        if self._head.startswith(_ZSTD):
            new, error = _zstd()
            # A few bytes can become 128 KB each; so memory stays bounded.
            return _Unpacked(self._raw, new, 4 << 10, error)
        return None

    def _raw(self, size: int) -> bytes:
        data, self._head = self._head[:size], self._head[size:]
        if len(data) < size:
            more = self._file.read(size - len(data)) or b""
            self.packed += len(more)
            data += more
        return data

    def read(self, size: int) -> bytes:
        """About `size` bytes, fewer only at the end, where there are none."""
        try:
            if self._unpack is not None:
                return self._unpack.read(size)
            parts: list[bytes] = []
            have = 0
            while have < size and (part := self._raw(size - have)):
                parts.append(part)
                have += len(part)
            return parts[0] if len(parts) == 1 else b"".join(parts)
        except _DamageError as error:
            message = f"{self._given.name} is damaged: {error}; replace the file"
            facts = {"path": self._given.path, "reason": "damaged"}
            raise CorpusError(message, **facts) from None
        except OSError as error:
            raise _unreadable(self._given.path, error) from None

    def skip(self, count: int) -> None:
        """Goes forward by `count` unpacked bytes."""
        plain = self._unpack is None and self._given.path != STANDARD_INPUT
        if plain and count > len(self._head) and self._file.seekable():
            self.packed = self._file.seek(count)
            self._head = b""
            return
        while count > 0:
            data = self.read(min(count, 1 << 20))
            if not data:
                message = f"{self._given.name} is shorter than it was; start the run anew"
                raise CorpusError(message, path=self._given.path)
            if len(data) > count and self._unpack is not None:
                self._unpack.give_back(data[count:])
            count -= len(data)


class _DamageError(Exception):
    """Compressed data that does not unpack."""


def _zstd() -> tuple[Callable[[], Any], type[Exception]]:
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.ZstdDecompressor, zstd.ZstdError
    zstandard = need("zstandard")
    return lambda: zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError


class _Unpacked:
    """Members of a compressed file, one after the other; a member that does not end is damage."""

    def __init__(
        self,
        raw: Callable[[int], bytes],
        new: Callable[[], Any],
        chunk: int,
        error: type[Exception],
    ) -> None:
        self._raw, self._new, self._chunk, self._error = raw, new, chunk, error
        self._member: Any = None
        self._kept = b""
        self._damage: _DamageError | None = None

    def give_back(self, data: bytes) -> None:
        self._kept = data + self._kept

    def read(self, size: int) -> bytes:
        out = io.BytesIO()
        out.write(self._kept)
        self._kept = b""
        while out.tell() < size:
            try:
                data = self._next()
            except _DamageError as damage:
                self._damage = damage
                data = None
            if data is None:
                break
            out.write(data)
        if self._damage is not None and not out.tell():
            raise self._damage
        return out.getvalue()

    def _next(self) -> bytes | None:
        """What comes next; None at the end."""
        if self._damage is not None:
            raise self._damage
        while True:
            rest = b""
            if self._member is not None and self._member.eof:
                rest, self._member = self._member.unused_data, None
            data = rest or self._raw(self._chunk)
            if self._member is None:
                if not data:
                    return None
                data = data.lstrip(b"\0")  # what tapes and some tools put behind the last member
                if not data:
                    continue
                self._member = self._new()
            elif not data:
                raise _DamageError("it ends in the middle of its compressed data")
            try:
                unpacked: bytes = self._member.decompress(data)
            except self._error as error:
                raise _DamageError(str(error)) from None
            return unpacked
