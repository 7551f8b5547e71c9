"""Dask: a dataframe of texts to the same dataframe with ids, on all workers of a cluster.

`import kizami.corpus` does not load it; write `import kizami.corpus.dask`. Needs the extra `dask`.
"""

from __future__ import annotations

import os
from typing import Any, Literal

import kizami
from kizami._tokenizer import Tokenizer
from kizami.corpus._columns import Columns, Totals, add, totals_of
from kizami.corpus._inputs import need
from kizami.errors import CorpusError, InputTypeError, MissingExtraError

__all__ = ["tokenize", "totals"]

_EXTRA = "dask"


def tokenize(
    frame: Any,
    tokenizer: Tokenizer | str,
    *,
    field: str = "text",
    column: str = "input_ids",
    left_out: str = "left_out",
    bos: int | str | None = None,
    eos: int | str | None = None,
    allow_special: bool = False,
    errors: Literal["strict", "replace"] = "strict",
    broken: Literal["stop", "skip"] = "stop",
    keep_empty: bool = False,
    max_document_bytes: int = 64 << 20,
) -> Any:
    """The dataframe with two columns more: the ids of each text, and why a row has none.

    The ids of a document are those of `kizami.corpus.tokenize`, whatever the number of workers. A
    worker process loads the tokenizer once, and uses as many threads as Dask gives it, unless
    `KIZAMI_NUM_THREADS` is set there. If it dies, Dask does its part again.

    Args:
        frame: A `dask.dataframe.DataFrame`. Its partitions are what workers share.
        tokenizer: From `kizami.load`, or what that takes. It is loaded here, and goes to the
            workers from here.
        field: The column that holds the text: strings of Arrow (`string[pyarrow]`, which Dask takes
            by default) are read where they are; Python strings and bytes become that first.
        column: The new column of ids, lists of uint32 in Arrow; null in a row that is no document.
        left_out: The new column that says why a row is no document: `null`, `empty`, `not-utf8` or
            `too-long`; null in a row that is one. No row is dropped.
        bos, eos, allow_special, errors, keep_empty, max_document_bytes: As in
            `kizami.corpus.tokenize`.
        broken: "stop" at a row that cannot be read; "skip" leaves it out. Nulls and empty texts are
            always left out.

    Returns:
        A lazy dataframe with the index, the partitions and the order of `frame`.

    Raises:
        CorpusError: The column is not there; or, when the dataframe is computed, a row is broken or
            the column holds no text.
        InputTypeError, InvalidValueError: An argument is wrong.
        MissingExtraError: Dask's dataframes or `pyarrow` are not installed.

    Cost: as `encode_arrow`, on every worker; no Python object for a text or an id.
    """
    dask, dataframe = need("dask", _EXTRA), need("dask.dataframe", _EXTRA)
    if not isinstance(frame, dataframe.DataFrame):
        kind = type(frame).__name__
        raise InputTypeError(f"frame must be a dask.dataframe.DataFrame, not {kind}")
    columns = Columns.new(
        tokenizer, field=field, column=column, left_out=left_out, bos=bos, eos=eos,
        allow_special=allow_special, errors=errors, broken=broken, keep_empty=keep_empty,
        max_document_bytes=max_document_bytes,
    )  # fmt: skip
    columns.check_names(frame.columns)
    meta = _with_columns(frame._meta, columns)
    # A task of its own, so that workers get it once and not with every partition.
    shared = dask.delayed(columns, pure=True)
    return frame.map_partitions(_partition, shared, meta=meta)


def totals(frame: Any, *, column: str = "input_ids", left_out: str = "left_out") -> Totals:
    """Counts rows, documents, ids, and rows that were left out, by reason.

    Args:
        frame: What `tokenize` returned, or what was written of it and read again. A lazy dataframe
            is tokenized for this: call `persist` on it before, if it is used again.
        column, left_out: The names given to `tokenize`.

    Raises:
        CorpusError: A column is not there.
        MissingExtraError: Dask is not installed.
    """
    dask = need("dask", _EXTRA)
    for name in (column, left_out):
        if name not in frame.columns:
            message = f"there is no column `{name}`; give what tokenize returned, and its names"
            raise CorpusError(message, reason="no-field")
    parts = frame[[column, left_out]].to_delayed()
    return add(dask.compute(*(dask.delayed(_totals)(part, column, left_out) for part in parts)))


def _partition(frame: Any, columns: Columns) -> Any:
    """A partition, which is a dataframe of pandas, with the new columns."""
    _take_threads()
    return _with_columns(frame, columns)


def _with_columns(frame: Any, columns: Columns) -> Any:
    pa, pandas = need("pyarrow", _EXTRA), need("pandas", _EXTRA)
    field = columns.reading.field
    try:
        texts = pa.Table.from_pandas(frame[[field]], preserve_index=False).column(field)
    except pa.ArrowException as error:
        message = f"column `{field}` holds other things than text: {error.args[0]!s}"
        raise CorpusError(f"{message}; choose another with field", reason="not-text") from None
    ids, left_out = columns.encode(texts)

    def series(array: Any) -> Any:
        return pandas.Series(pandas.arrays.ArrowExtensionArray(array), index=frame.index)

    return frame.assign(**{columns.column: series(ids), columns.left_out: series(left_out)})


def _totals(frame: Any, column: str, left_out: str) -> Totals:
    pa = need("pyarrow", _EXTRA)
    table = pa.Table.from_pandas(frame[[column, left_out]], preserve_index=False)
    return totals_of(table, column, left_out)


def _take_threads() -> None:
    """In a worker process of Dask: as many threads as it has; others are somebody else's."""
    if os.environ.get("KIZAMI_NUM_THREADS"):
        return
    try:
        worker = need("distributed", _EXTRA).get_worker()
    except (MissingExtraError, ValueError):  # another scheduler
        return
    if worker.nanny is not None and kizami.get_num_threads() != worker.state.nthreads:
        kizami.set_num_threads(worker.state.nthreads)
