"""Ray Data: a dataset of texts to the same dataset with ids, on all workers of a cluster.

`import kizami.corpus` does not load it; write `import kizami.corpus.ray`. Needs the extra `ray`.
"""

from __future__ import annotations

import os
from typing import Any, Literal

import kizami
from kizami._tokenizer import Tokenizer
from kizami.corpus._arguments import check_numbers
from kizami.corpus._columns import Columns, Totals, add, totals_of
from kizami.corpus._inputs import need
from kizami.errors import InputTypeError, InvalidValueError

__all__ = ["tokenize", "totals"]

_EXTRA = "ray"


def tokenize(
    dataset: Any,
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
    workers: int | tuple[int, int] | None = None,
    num_cpus: int = 1,
) -> Any:
    """The dataset with two columns more: the ids of each text, and why a row has none.

    The ids of a document are those of `kizami.corpus.tokenize`, whatever the number of workers.
    Each worker is an actor that loads the tokenizer once. If it dies, Ray starts another one, and
    does its part again.

    Args:
        dataset: A `ray.data.Dataset`. Its blocks are what workers share: `repartition` one that
            has fewer blocks than there are workers.
        tokenizer: From `kizami.load`, or what that takes. It is loaded here, and goes to the
            workers from here.
        field: The column that holds the text: strings, or bytes of UTF-8.
        column: The new column of ids, lists of uint32; null in a row that is no document.
        left_out: The new column that says why a row is no document: `null`, `empty`, `not-utf8` or
            `too-long`; null in a row that is one. No row is dropped.
        bos, eos, allow_special, errors, keep_empty, max_document_bytes: As in
            `kizami.corpus.tokenize`.
        broken: "stop" at a row that cannot be read; "skip" leaves it out. Nulls and empty texts are
            always left out.
        workers: How many actors; a pair is the least and the most. None: as many as the cluster has
            room for. Leave room: tasks that read the dataset wait if actors hold all CPUs.
        num_cpus: What a worker reserves of the cluster, and the number of its threads, unless
            `KIZAMI_NUM_THREADS` is set there.

    Returns:
        A lazy dataset, in the order of `dataset` if Ray is told to keep that
        (`ray.data.DataContext.get_current().execution_options.preserve_order`).

    Raises:
        CorpusError: The column is not there; or, when the dataset is read and wrapped by Ray, a row
            is broken or the column holds no text.
        InputTypeError, InvalidValueError: An argument is wrong.
        MissingExtraError: Ray Data or `pyarrow` is not installed.

    Cost: as `encode_arrow`, on every worker; no Python object for a text or an id.
    """
    data = need("ray.data", _EXTRA)
    if not isinstance(dataset, data.Dataset):
        kind = type(dataset).__name__
        raise InputTypeError(f"dataset must be a ray.data.Dataset, not {kind}")
    columns = Columns.new(
        tokenizer, field=field, column=column, left_out=left_out, bos=bos, eos=eos,
        allow_special=allow_special, errors=errors, broken=broken, keep_empty=keep_empty,
        max_document_bytes=max_document_bytes,
    )  # fmt: skip
    check_numbers(num_cpus=num_cpus)
    schema = dataset.schema(fetch_if_missing=False)
    if schema is not None:
        columns.check_names(schema.names)
    return dataset.map_batches(
        _Worker,
        fn_constructor_args=(columns, num_cpus),
        batch_format="pyarrow",
        batch_size=None,
        zero_copy_batch=True,
        compute=_pool(data, workers),
        num_cpus=num_cpus,
    )


def totals(dataset: Any, *, column: str = "input_ids", left_out: str = "left_out") -> Totals:
    """Counts rows, documents, ids, and rows that were left out, by reason.

    Args:
        dataset: What `tokenize` returned, or what was written of it and read again. A lazy dataset
            is tokenized for this: call `materialize` on it before, if it is used again.
        column, left_out: The names given to `tokenize`.

    Raises:
        CorpusError: A column is not there.
        MissingExtraError: Ray Data is not installed.
    """
    need("ray.data", _EXTRA)
    pa = need("pyarrow", _EXTRA)

    def count(table: Any) -> Any:
        rows, documents, tokens, reasons = totals_of(table, column, left_out)
        numbers = {"rows": [rows], "documents": [documents], "tokens": [tokens]}
        kind = pa.map_(pa.string(), pa.int64())
        return pa.table({**numbers, "left_out": pa.array([list(reasons.items())], kind)})

    # Only these two columns are needed.
    chosen = dataset.select_columns([column, left_out])
    parts = chosen.map_batches(count, batch_format="pyarrow", batch_size=None)
    tables = parts.iter_batches(batch_format="pyarrow", batch_size=None)
    return add(
        Totals(row["rows"], row["documents"], row["tokens"], dict(row["left_out"]))
        for table in tables
        for row in table.to_pylist()
    )


class _Worker:
    """An actor. The tokenizer comes with its arguments, so it is loaded once."""

    def __init__(self, columns: Columns, num_cpus: int) -> None:
        if not os.environ.get("KIZAMI_NUM_THREADS"):
            kizami.set_num_threads(num_cpus)
        self._columns = columns

    def __call__(self, table: Any) -> Any:
        return self._columns.add_to(table)


def _pool(data: Any, workers: int | tuple[int, int] | None) -> Any:
    if workers is None:
        return data.ActorPoolStrategy(min_size=1, max_size=None)
    least, most = workers if isinstance(workers, tuple) else (workers, workers)
    check_numbers(workers=least)
    check_numbers(workers=most)
    if most < least:
        raise InvalidValueError(f"workers must be the least and the most, not {workers}")
    return data.ActorPoolStrategy(min_size=least, max_size=most)
