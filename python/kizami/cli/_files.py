"""What commands read and write: text, JSON, ids in three formats.

Text is read as bytes and decoded as UTF-8: no newline is translated, nothing is normalised. Ids are
written as decimal text, as a JSON array or as `.npy`, and recognised by their content when read.
"""

from __future__ import annotations

import errno
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from kizami.cli._console import is_terminal, note, write
from kizami.cli._faults import CommandError, cannot

__all__ = ["format_for", "name_of", "read_bytes", "read_ids", "read_json", "read_text", "write_ids"]

Ids = npt.NDArray[np.uint32]

_NPY = b"\x93NUMPY"
# Why a text that was taken for a path cannot be opened.
_NO_PATH = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL)
# A word that is not an integer from its first to its last byte.
_NOT_AN_INTEGER = re.compile(rb"(?<![^\s,])(?!-?[0-9]+(?![^\s,]))[^\s,]+")
_BLOCK = 1 << 16  # ids turned into text at a time


def name_of(path: str) -> str:
    """A file as messages name it."""
    return "standard input" if path == "-" else f"`{path}`"


def read_bytes(path: str) -> bytes:
    """The whole file; `-` is standard input."""
    if path != "-":
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError as error:
            raise cannot("read", path, error) from error
    if sys.stdin is None:
        raise CommandError("standard input is closed", "give the name of a file")
    if is_terminal(sys.stdin):
        note("reading from the terminal; end with Ctrl-D on a line of its own")
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise cannot("read", None, error) from error


def read_text(path: str, errors: str, command: str) -> str:
    """The file as UTF-8, for `kizami command`.

    `errors`: "strict", or "replace" to read U+FFFD where it is not.
    """
    try:
        data = read_bytes(path)
    except CommandError as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno in _NO_PATH:
            pipe = f"`printf 'Hello, world' | kizami {command}`"
            error.hint = f"check the path; for a text instead of a file, {pipe}"
        raise
    return _decoded(data, path, errors)


def _decoded(data: bytes, path: str, errors: str) -> str:
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        place = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        raise CommandError(
            f"{name_of(path)} is not UTF-8: {place}",
            "convert it, or pass `--errors replace` to read such bytes as U+FFFD",
        ) from None


def read_json(path: str, errors: str, wanted: str) -> Any:
    """The one JSON value in the file; `wanted` says in the hint what it should be."""
    name = name_of(path)
    hint = f"give {wanted}"
    data = read_bytes(path)
    if data.startswith(_NPY):
        raise CommandError(f"{name} is a NumPy file, not JSON", hint)
    text = _decoded(data, path, errors).removeprefix("\ufeff")
    if not text.strip():
        raise CommandError(f"{name} is empty", hint)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        problem, place = _wrong_json(error)
        look = f"look at {place}, and at what comes just before it"
        raise CommandError(f"{name} is not valid JSON: {problem}", look) from None
    except RecursionError:
        raise CommandError(f"{name} is nested too deeply", hint) from None
    except ValueError as error:  # an integer of thousands of digits
        raise CommandError(f"{name} holds a number that is too long", hint) from error


def _wrong_json(error: json.JSONDecodeError) -> tuple[str, str]:
    """What is wrong, with its place; and the place alone."""
    place = f"line {error.lineno} column {error.colno}"
    reason = error.msg[:1].lower() + error.msg[1:]
    return f"{reason.removesuffix(' at')} at {place}", place


def format_for(given: str | None, out: str | None) -> str:
    """The format of ids: the one given, else the one that the suffix of `--out` says, else text."""
    suffix = PurePath(out).suffix.lower() if out else ""
    implied = {".npy": "npy", ".json": "json"}.get(suffix)
    if given and implied and given != implied:
        message = f"`--format {given}` and `--out {out}` contradict each other"
        raise CommandError(
            message, f"leave out `--format`, or choose a suffix other than `{suffix}`"
        )
    form = given or implied or "text"
    if form == "npy" and out in (None, "-") and is_terminal(sys.stdout):
        message = "`npy` is binary, and standard output is a terminal"
        raise CommandError(
            message, "pass `--out ids.npy`, or pipe the output into a program or a file"
        )
    return form


def write_ids(ids: Ids, form: str, out: str | None) -> None:
    """Write ids to the file `out`, or to standard output."""
    blocks = {"text": _as_text, "json": _as_json, "npy": _as_npy}[form](ids)
    if out in (None, "-"):
        write(blocks)
        return
    try:
        with open(out, "wb") as file:
            for block in blocks:
                file.write(block)
    except OSError as error:
        raise cannot("write to", out, error) from error


def _as_text(ids: Ids, separator: str = " ") -> Iterator[bytes]:
    for start in range(0, len(ids), _BLOCK):
        if start:
            yield separator.encode()
        yield separator.join(map(str, ids[start : start + _BLOCK].tolist())).encode()
    yield b"\n"


def _as_json(ids: Ids) -> Iterator[bytes]:
    yield b"["
    *body, end = _as_text(ids, ", ")
    yield from body
    yield b"]" + end


def _as_npy(ids: Ids) -> Iterator[bytes | memoryview]:
    # Not `np.save`: it writes through the file's descriptor, which fails on pipes.
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(ids))
    yield head.getvalue()
    yield ids.data


def read_ids(path: str) -> Any:
    """Ids from a file of any of the three formats. The tokenizer checks that they are its own."""
    data = read_bytes(path)
    if data.startswith(_NPY):
        return _from_npy(data, path)
    data = data.removeprefix(b"\xef\xbb\xbf")
    return _from_json(data, path) if data.lstrip()[:1] == b"[" else _from_text(data, path)


def _from_npy(data: bytes, path: str) -> Any:
    try:
        return np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, SyntaxError, OSError) as error:
        reason = " ".join(str(error).split())
        hint = "write it with `np.save` from a one-dimensional array of integers"
        raise CommandError(f"{name_of(path)} is a damaged `.npy` file: {reason}", hint) from error


def _from_json(data: bytes, path: str) -> Any:
    hint = "give one JSON array of integers, such as [19180, 2695]"
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        message = f"{name_of(path)} is not a valid JSON array: {_wrong_json(error)[0]}"
        raise CommandError(message, hint) from None
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{name_of(path)} is not a JSON array of token ids", hint) from error


def _from_text(data: bytes, path: str) -> list[int]:
    wrong = _NOT_AN_INTEGER.search(data)
    if wrong is None:
        try:
            return [int(word) for word in data.replace(b",", b" ").split()]
        except ValueError:  # thousands of digits
            raise CommandError(
                f"{name_of(path)} holds a number that is too long", "give token ids"
            ) from None
    word = wrong[0][:40].decode("utf-8", "backslashreplace")
    raise CommandError(
        f"{name_of(path)} holds `{word}` at offset {wrong.start()}, which is no token id",
        "give integers separated by spaces, newlines or commas, a JSON array, or a `.npy` file",
    )
