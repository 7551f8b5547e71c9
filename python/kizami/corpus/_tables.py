"""Rows of Parquet and Arrow files, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kizami.corpus._arrow import is_text, text_ranges
from kizami.corpus._inputs import STANDARD_INPUT, Input, need
from kizami.corpus._rows import (
    BLOCK,
    EMPTY,
    NOT_UTF8,
    NULL,
    TEXT,
    TOO_LONG,
    Place,
    Reading,
    Rows,
)
from kizami.errors import CorpusError

__all__ = ["pieces", "rows_of", "tables", "wrong_type"]


def tables(given: Input, reading: Reading, place: Place) -> Iterator[Rows]:
    """The rows of one file."""
    pa = need("pyarrow")
    if given.path == STANDARD_INPUT:
        message = f"{given.format} cannot be read from standard input; give the name of a file"
        raise CorpusError(message, path=given.path)
    columns = _parquet if given.format == "parquet" else _arrow
    row = 0
    try:
        for array, share in columns(pa, given, reading.field, place.row):
            packed = int((given.size or 0) * share)
            skipped = min(max(place.row - row, 0), len(array))
            row += skipped
            if wrong := wrong_type(array.type, reading.field):
                facts = {"path": given.path, "reason": "not-text"}
                message = f"{given.path}: {wrong}; choose another with field"
                raise CorpusError(message, **facts)
            for piece in pieces(array.slice(skipped)):
                yield rows_of(piece, reading, Place(place.input, row, row), packed)
                row += len(piece)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        message = f"{given.path} is damaged, or no {given.format} file: {reason}"
        facts = {"path": given.path, "reason": "damaged"}
        raise CorpusError(f"{message}; replace the file", **facts) from None


def _column(given: Input, names: list[str], field: str) -> None:
    if field not in names:
        has = ", ".join(f"`{name}`" for name in names[:8]) or "none"
        message = f"{given.path} has no column `{field}`; it has {has}; choose with field"
        raise CorpusError(message, path=given.path, reason="no-field")


def _is_binary(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def wrong_type(kind: Any, field: str) -> str | None:
    """What is wrong with a column of this type, in words; None if it can hold texts."""
    pa = need("pyarrow")
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(kind) or is_text(kind) or _is_binary(pa, value):
        return None
    return f"column `{field}` holds {kind}, not text"


def _parquet(pa: Any, given: Input, field: str, first: int) -> Iterator[tuple[Any, float]]:
    parquet = need("pyarrow.parquet")
    with parquet.ParquetFile(given.path, memory_map=False, pre_buffer=False) as file:
        facts = file.metadata
        _column(given, file.schema_arrow.names, field)
        done = 0
        for group in range(facts.num_row_groups):
            count = facts.row_group(group).num_rows
            if done + count <= first:
                # Stands for the rows that were done before.
                yield pa.nulls(count, pa.string()), 0.0
                done += count
                continue
            size = max(facts.row_group(group).total_byte_size // max(count, 1), 1)
            rows = min(max(BLOCK // size, 16), 1 << 16)
            for batch in file.iter_batches(rows, row_groups=[group], columns=[field]):
                done += len(batch)
                yield batch.column(0), done / facts.num_rows


def _arrow(pa: Any, given: Input, field: str, first: int) -> Iterator[tuple[Any, float]]:
    with pa.memory_map(given.path) as source:
        try:
            reader = pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            reader = pa.ipc.open_stream(source)
            _column(given, reader.schema.names, field)
            for batch in reader:
                yield batch.column(field), source.tell() / max(given.size or 0, 1)
            return
        _column(given, reader.schema.names, field)
        for index in range(reader.num_record_batches):
            share = (index + 1) / reader.num_record_batches
            yield reader.get_batch(index).column(field), share


def pieces(array: Any) -> Iterator[Any]:
    """The array in slices of about a block of text."""
    pa = need("pyarrow")
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.cast(kind.value_type)
    if pa.types.is_null(array.type):
        array = array.cast(pa.string())
    if not len(array):
        return
    rows = max(1, len(array) * BLOCK // max(array.nbytes, 1))
    for start in range(0, len(array), rows):
        yield array.slice(start, rows)


def rows_of(array: Any, reading: Reading, place: Place, packed: int = 0) -> Rows:
    """The rows of an array that holds texts, or bytes."""
    pa = need("pyarrow")
    kinds = np.full(len(array), TEXT, np.uint8)
    wrong: dict[int, str] = {}
    array = _as_text(pa, array, reading, kinds, wrong)
    data, starts, ends = text_ranges(array)
    kinds[(ends - starts > reading.max_bytes) & (kinds == TEXT)] = TOO_LONG
    if array.null_count:
        kinds[~np.asarray(array.is_valid()) & (kinds == TEXT)] = NULL
    if not reading.keep_empty:
        kinds[(ends == starts) & (kinds == TEXT)] = EMPTY
    nexts = place.offset + 1 + np.arange(len(array), dtype=np.int64)

    def describe(index: int) -> str:
        if index in wrong:
            return wrong[index]
        reasons = {
            NULL: f"its column `{reading.field}` is null",
            TOO_LONG: "it is longer than max_document_bytes",
        }
        return reasons.get(int(kinds[index]), "it is empty")

    return Rows(place, data, starts, ends, kinds, nexts, packed, describe)


def _as_text(pa: Any, array: Any, reading: Reading, kinds: Any, wrong: dict[int, str]) -> Any:
    """An array of strings, all UTF-8; bytes that are not are a null, or replaced."""
    try:
        if _is_binary(pa, array.type):
            return array.cast(pa.large_string())
        array.validate(full=True)
        return array
    except pa.ArrowInvalid:
        texts: list[str | None] = []
        for index, value in enumerate(array.cast(pa.large_binary()).to_pylist()):
            try:
                texts.append(None if value is None else value.decode())
            except UnicodeDecodeError as error:
                texts.append(value.decode(errors="replace") if reading.lossy else None)
                if not reading.lossy:
                    kinds[index] = NOT_UTF8
                    place = f"byte 0x{value[error.start]:02x} at offset {error.start}"
                    wrong[index] = f"{place} is not UTF-8"
        return pa.array(texts, pa.large_string())
