"""Inputs to blocks of rows: texts in one buffer, and what each row is.

A row is a line of JSON Lines, a document of a text file, or a row of a table. No row is dropped
here: one without text says why, and whoever reads the rows counts it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kizami import _native
from kizami.corpus._inputs import Input, Stream

__all__ = ["REASONS", "TEXT", "Place", "Reading", "Rows", "read"]

Offsets = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.uint8]

TEXT = 0
# Why a row has no text, by the number that stands for it; the first eight are the core's.
REASONS = (
    "text",
    "blank",
    "not-utf8",
    "not-json",
    "not-object",
    "no-field",
    "null",
    "not-text",
    "too-long",
    "empty",
)
TOO_LONG = REASONS.index("too-long")
EMPTY = REASONS.index("empty")
NOT_UTF8 = REASONS.index("not-utf8")
NULL = REASONS.index("null")

# A byte order mark, which is no part of the JSON behind it.
_BOM = b"\xef\xbb\xbf"
# Bytes read at a time: what keeps all threads at work, and memory small.
BLOCK = 4 << 20


class Place(NamedTuple):
    """Where in the inputs the next row begins.

    `offset` counts unpacked bytes of a stream, rows of a table.
    """

    input: int = 0
    row: int = 0
    offset: int = 0


class Reading(NamedTuple):
    """How rows are read."""

    field: str
    separator: bytes
    lossy: bool
    keep_empty: bool
    max_bytes: int


class Rows(NamedTuple):
    """Rows of one input, in order.

    The text of row i is `data[starts[i]:ends[i]]`; after it, the next row begins at `nexts[i]`.
    """

    place: Place
    data: bytes | memoryview
    starts: Offsets
    ends: Offsets
    kinds: Kinds
    nexts: Offsets
    packed: int
    """Bytes of the file that were read so far."""
    describe: Callable[[int], str]
    """More about what is wrong with a row."""

    def after(self, index: int) -> Place:
        """The place after row `index`."""
        return Place(self.place.input, self.place.row + index + 1, int(self.nexts[index]))


def read(given: Input, reading: Reading, place: Place) -> Iterator[Rows]:
    """The rows of one input, from a place in it on."""
    blocks = {"text": _text, "jsonl": _json_lines}.get(given.format)
    if blocks is None:
        from kizami.corpus._tables import tables

        blocks = tables
    return blocks(given, reading, place)


def _json_lines(given: Input, reading: Reading, place: Place) -> Iterator[Rows]:
    def parse(block: bytes, last: bool) -> Any:
        whole = block if last else block[: block.rfind(b"\n") + 1]
        return _native.json_lines(whole, reading.field, reading.lossy)

    def describe(row: bytes) -> str:
        return _wrong_line(row, reading.field)

    return _parted(given, reading, place, b"\n", parse, describe)


def _text(given: Input, reading: Reading, place: Place) -> Iterator[Rows]:
    def parse(block: bytes, last: bool) -> Any:
        if reading.separator or last:
            return _native.pieces(block, reading.separator, last, reading.lossy)
        return _native.pieces(b"", b"\n", False, False)

    return _parted(given, reading, place, reading.separator, parse, _wrong_text)


def _parted(
    given: Input,
    reading: Reading,
    place: Place,
    separator: bytes,
    parse: Callable[[bytes, bool], Any],
    describe: Callable[[bytes], str],
) -> Iterator[Rows]:
    """Rows between separators. Without a separator the whole file is one."""
    with Stream(given) as stream:
        stream.skip(place.offset)
        start = place.offset  # where `rest` begins
        row = place.row
        rest = b""
        if not separator and place.row:
            return
        dropping = False
        while True:
            new = stream.read(BLOCK)
            last = not new
            if given.format == "jsonl" and not start and new.startswith(_BOM):
                new, start = new[len(_BOM) :], len(_BOM)
            block = rest + new if rest else new
            if dropping:
                cut = _after(block, separator)
                if cut is None and not last:
                    cut = max(0, len(block) - max(len(separator) - 1, 0))
                else:
                    cut = len(block) if cut is None else cut
                    dropping = False
                start += cut
                rest = block[cut:]
                if dropping:
                    continue
                yield _too_long(place._replace(row=row), start, stream.packed)
                row += 1
                block = rest
                if not separator:
                    return
            text, ends, kinds, nexts = parse(block, last)
            done = int(nexts[-1]) if len(nexts) else 0
            if len(nexts):
                yield _rows(
                    place._replace(row=row), reading, block, (text, ends, kinds, nexts), start,
                    stream.packed, describe,
                )  # fmt: skip
            row += len(nexts)
            start += done
            rest = block[done:]
            if last:
                return
            dropping = len(rest) > reading.max_bytes


def _after(block: bytes, separator: bytes) -> int | None:
    at = block.find(separator) if separator else -1
    return None if at < 0 else at + len(separator)


def _too_long(place: Place, next_row: int, packed: int) -> Rows:
    nothing = np.zeros(1, np.int64)
    kinds = np.full(1, TOO_LONG, np.uint8)
    nexts = np.full(1, next_row, np.int64)
    return Rows(place, b"", nothing, nothing, kinds, nexts, packed, lambda _: _LONG)


_LONG = "it is longer than max_document_bytes"


def _rows(
    place: Place,
    reading: Reading,
    block: bytes,
    parsed: tuple[bytes, Offsets, Kinds, Offsets],
    start: int,
    packed: int,
    describe: Callable[[bytes], str],
) -> Rows:
    text, ends, kinds, nexts = parsed
    starts = np.concatenate([[0], ends[:-1]])
    begins = np.concatenate([[0], nexts[:-1]])
    # Of the row, not of its text: only so is it the same however the file falls into blocks.
    kinds[(nexts - begins > reading.max_bytes) & (kinds == TEXT)] = TOO_LONG
    if not reading.keep_empty:
        kinds[(ends == starts) & (kinds == TEXT)] = EMPTY

    def tell(index: int) -> str:
        if kinds[index] == TOO_LONG:
            return _LONG
        return describe(block[begins[index] : nexts[index]])

    return Rows(place, text, starts, ends, kinds, nexts + start, packed, tell)


def _wrong_line(line: bytes, field: str) -> str:
    """What is wrong with a line of JSON Lines, in words."""
    try:
        value = json.loads(line.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        return f"byte 0x{line[error.start]:02x} at offset {error.start} is not UTF-8"
    except (ValueError, RecursionError) as error:
        text = str(error)
        text = text[:1].lower() + text[1:] if text[1:2].islower() else text
        return f"it is not JSON: {text}"
    if not isinstance(value, dict):
        return f"it holds {_kind(value)}, not an object"
    if field not in value:
        names = ", ".join(f"`{name}`" for name in list(value)[:8]) or "none"
        return f"it has no field `{field}`; it has {names}"
    if isinstance(value[field], str):
        return "it is not strict JSON"
    return f"its field `{field}` is {_kind(value[field])}, not a text"


def _no_constant(name: str) -> None:
    raise ValueError(f"the number {name} is not allowed")


def _kind(value: Any) -> str:
    kinds = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "a boolean",
        type(None): "null",
    }
    return kinds.get(type(value), "a number")


def _wrong_text(text: bytes) -> str:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return f"byte 0x{text[error.start]:02x} at offset {error.start} is not UTF-8"
    return "it is empty"
