"""A column of texts to a column of ids: what Ray and Dask do on each of their workers.

No row is dropped: one that is no document has no ids, and says why. So the counts are a sum over
the result, and stay true when a worker dies and its part is done again.

Read next: `ray` and `dask`, which hand tables to this.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

import kizami
from kizami._flags import flag
from kizami._tokenizer import Tokenizer
from kizami.corpus._arguments import (
    BROKEN,
    ERRORS,
    around,
    check_choices,
    check_numbers,
    check_texts,
)
from kizami.corpus._arrow import lists
from kizami.corpus._inputs import need
from kizami.corpus._manifest import fingerprint
from kizami.corpus._rows import REASONS, TEXT, Place, Reading, Rows
from kizami.corpus._tables import pieces, rows_of, wrong_type
from kizami.corpus._writer import HARMLESS, documents_of
from kizami.errors import CorpusError, InvalidValueError

__all__ = ["Columns", "Totals", "add", "totals_of"]

# Tokenizers that a worker holds, by fingerprint; a job has one.
_MOST_HELD = 4
_held: dict[str, Tokenizer] = {}
_lock = threading.Lock()


class Totals(NamedTuple):
    """What a dataset holds.

    Attributes:
        rows: Rows of the table.
        documents: Those that became documents. `rows == documents + sum(left_out.values())`.
        tokens: Ids of all documents, those around them too.
        left_out: Why rows are no documents, and how many: `null`, `empty`, `not-utf8`, `too-long`.
    """

    rows: int
    documents: int
    tokens: int
    left_out: dict[str, int]


@dataclass(frozen=True)
class Columns:
    """The arguments of a run over tables, checked."""

    tokenizer: Tokenizer
    reading: Reading
    allow_special: bool
    before: list[int]
    after: list[int]
    skip: bool
    column: str
    left_out: str

    @staticmethod
    def new(
        tokenizer: Tokenizer | str,
        *,
        field: str,
        column: str,
        left_out: str,
        bos: int | str | None,
        eos: int | str | None,
        allow_special: bool,
        errors: str,
        broken: str,
        keep_empty: bool,
        max_document_bytes: int,
    ) -> Columns:
        """Checks the arguments."""
        check_choices(errors=(errors, ERRORS), broken=(broken, BROKEN))
        check_numbers(max_document_bytes=max_document_bytes)
        check_texts(field=field, column=column, left_out=left_out)
        if len({field, column, left_out}) < 3:
            raise InvalidValueError("field, column and left_out must have three different names")
        if not isinstance(tokenizer, Tokenizer):
            tokenizer = kizami.load(tokenizer)
        keep_empty = flag(keep_empty, "keep_empty")
        return Columns(
            tokenizer,
            Reading(field, b"", errors == "replace", keep_empty, max_document_bytes),
            flag(allow_special, "allow_special"),
            around(tokenizer, bos, "bos"),
            around(tokenizer, eos, "eos"),
            broken == "skip",
            column,
            left_out,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        rest = tuple(getattr(self, one.name) for one in fields(self)[1:])
        return _rebuild, (fingerprint(self.tokenizer), pickle.dumps(self.tokenizer), rest)

    def check_names(self, names: Iterable[str]) -> None:
        """Raises unless the text is there, and the new columns are not."""
        names = list(names)
        if self.reading.field not in names:
            has = ", ".join(f"`{name}`" for name in names[:8]) or "none"
            message = f"there is no column `{self.reading.field}`; there is {has}"
            raise CorpusError(f"{message}; choose with field", reason="no-field")
        for argument in ("column", "left_out"):
            if (name := getattr(self, argument)) in names:
                message = f"there is a column `{name}` already; choose another with {argument}"
                raise InvalidValueError(message)

    def add_to(self, table: Any) -> Any:
        """The Arrow table with two columns more: the ids, and why a row has none."""
        self.check_names(table.column_names)
        ids, left_out = self.encode(table.column(self.reading.field))
        return table.append_column(self.column, ids).append_column(self.left_out, left_out)

    def encode(self, texts: Any) -> tuple[Any, Any]:
        """Both columns of a chunked Arrow array."""
        pa = need("pyarrow")
        if wrong := wrong_type(texts.type, self.reading.field):
            raise CorpusError(f"{wrong}; choose another with field", reason="not-text")
        words = pa.array(REASONS)
        ids, reasons = [], []
        for chunk in texts.chunks:
            for piece in pieces(chunk):
                rows = rows_of(piece, self.reading, Place())
                documents = documents_of(rows, self.reading.keep_empty)
                ids.append(self._ids(rows, documents))
                is_document = np.zeros(len(piece), np.bool_)
                is_document[documents] = True
                reasons.append(words.take(pa.array(rows.kinds, mask=is_document)))
        kind = pa.list_(pa.uint32())
        return pa.chunked_array(ids, kind), pa.chunked_array(reasons, pa.string())

    def _ids(self, rows: Rows, documents: Any) -> Any:
        if not self.skip:
            self._check(rows)
        ids, offsets = self.tokenizer._native.encode_utf8(
            rows.data, rows.starts[documents], rows.ends[documents], self.allow_special,
            self.before, self.after,
        )  # fmt: skip
        count = len(rows.kinds)
        if len(documents) == count:
            return lists(ids, offsets, None)
        valid = np.zeros(count, np.bool_)
        valid[documents] = True
        lengths = np.zeros(count, np.int64)
        lengths[documents] = np.diff(offsets)
        return lists(ids, np.concatenate([[0], np.cumsum(lengths)]), valid)

    def _check(self, rows: Rows) -> None:
        """Raises at the first row that is broken."""
        wrong = np.flatnonzero((rows.kinds != TEXT) & ~np.isin(rows.kinds, HARMLESS))
        if not len(wrong):
            return
        reason = REASONS[rows.kinds[wrong[0]]]
        way = "pass errors='replace', or " if reason == "not-utf8" else ""
        message = f"a row is broken: {rows.describe(int(wrong[0]))}"
        hint = f"{way}leave such rows out with broken='skip'"
        raise CorpusError(f"{message}; {hint}", reason=reason)


def _rebuild(key: str, pickled: bytes, rest: tuple[Any, ...]) -> Columns:
    """A process loads a tokenizer once, however many tasks it is given."""
    with _lock:
        tokenizer = _held.get(key)
        if tokenizer is None:
            tokenizer = _load(pickled)
            while len(_held) >= _MOST_HELD:
                del _held[next(iter(_held))]
            _held[key] = tokenizer
    return Columns(tokenizer, *rest)


def _load(pickled: bytes) -> Tokenizer:
    tokenizer: Tokenizer = pickle.loads(pickled)
    return tokenizer


def totals_of(table: Any, column: str, left_out: str) -> Totals:
    """What an Arrow table with the two columns holds."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    for name in (column, left_out):
        if name not in table.column_names:
            message = f"there is no column `{name}`; give what tokenize returned, and its names"
            raise CorpusError(message, reason="no-field")
    tokens = compute.sum(compute.list_value_length(table.column(column))).as_py() or 0
    reasons = table.column(left_out).cast(pa.string())
    counts = {
        pair["values"]: pair["counts"]
        for pair in reasons.value_counts().to_pylist()
        if pair["values"] is not None
    }
    documents = table.num_rows - sum(counts.values())
    return Totals(table.num_rows, documents, tokens, counts)


def add(parts: Iterable[Totals]) -> Totals:
    """The totals of all parts together."""
    rows = documents = tokens = 0
    left_out: dict[str, int] = {}
    for part in parts:
        rows += part.rows
        documents += part.documents
        tokens += part.tokens
        for reason, count in part.left_out.items():
            left_out[reason] = left_out.get(reason, 0) + count
    return Totals(rows, documents, tokens, dict(sorted(left_out.items())))
