"""`kizami.corpus.dask` on a real local cluster: processes, and one of them killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kizami
import pytest
from kizami.errors import CorpusError, InputTypeError, InvalidValueError

from .conftest import FILES, OPTIONS, WORKERS, Corpus, Notes, check

pytest.importorskip("dask", reason="dask is not installed (extra: dask)")
dd = pytest.importorskip("dask.dataframe", reason="no dask[dataframe] (extra: dask)")
distributed = pytest.importorskip("distributed", reason="no distributed (extra: dask)")
pd = pytest.importorskip("pandas")

# Dask uses what others have deprecated.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def client(environment: dict[str, str]) -> Iterator[Any]:
    """A new cluster of processes with one thread each."""
    # `install` in every worker, also in one that takes the place of a dead one.
    plugin = _Install()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        with (
            distributed.LocalCluster(
                n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            client.register_plugin(plugin)
            yield client


class _Install(distributed.WorkerPlugin):
    name = "install"

    def setup(self, worker: Any) -> None:
        from tests.clusters import hook

        hook.install()


def rows(frame: Any) -> list[dict[str, Any]]:
    """Rows with None for what is missing."""
    names = ("n", "input_ids", "left_out")
    columns = [
        [None if value is None or value is pd.NA else value for value in frame[name].array]
        for name in names
    ]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("kill", [False, True], ids=["undisturbed", "killed"])
def test_ids_are_those_of_one_machine(
    tokenizer: Any, corpus: Corpus, notes: Notes, tmp_path: Path, kill: bool
) -> None:
    from kizami.corpus.dask import tokenize, totals

    frame = dd.read_parquet(corpus.files, split_row_groups=True)
    assert frame.npartitions == FILES
    notes.clear(kill)
    done = tokenize(frame, tokenizer, **OPTIONS)
    # Dask cannot tell what a column of bytes is in Parquet.
    done.drop(columns="body").to_parquet(tmp_path / "out")

    loads, tables = notes.count("load"), notes.count("table")
    killed = notes.killed()
    assert len(killed) == kill
    assert set(loads.values()) == {1}, "each worker loads the tokenizer once"
    assert set(tables) <= set(loads)
    assert WORKERS <= len(loads) <= WORKERS + len(killed)
    assert sum(tables.values()) >= FILES + len(killed)
    # Both from what was written.
    again = dd.read_parquet(tmp_path / "out", dtype_backend="pyarrow")
    check(corpus, rows(again.compute()), totals(again))


@pytest.mark.usefixtures("client")
@pytest.mark.filterwarnings("ignore:Sending large graph")
def test_a_tokenizer_from_a_file(corpus: Corpus, notes: Notes, tmp_path: Path) -> None:
    """It goes to each worker whole, and is loaded there once."""
    from kizami.corpus.dask import tokenize

    ranks = tmp_path / "other.tiktoken"
    k3 = kizami.load("kimi-k3")
    ranks.write_bytes(k3.to_tiktoken().rpartition(b"\n")[0].rpartition(b"\n")[0] + b"\n")
    tokenizer = kizami.load(ranks, pattern="kimi", special_tokens={"<end>": 163_583})
    notes.clear(False)
    frame = dd.read_parquet(corpus.files, split_row_groups=True)
    done = tokenize(frame, tokenizer, **{**OPTIONS, "eos": "<end>"}).compute()
    loads = notes.count("load")
    assert len(loads) == WORKERS
    assert set(loads.values()) == {1}
    kept = [row["left_out"] is None for row in rows(done)]
    texts = [text.decode() for text in done["body"][kept]]
    assert len(texts) == corpus.report.documents
    assert [list(ids) for ids in done["input_ids"][kept]] == [
        [*tokenizer.encode(text).tolist(), 163_583] for text in texts
    ]


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_other_schedulers(tokenizer: Any, scheduler: str) -> None:
    from kizami.corpus.dask import tokenize, totals

    texts = ["Hello, world", None, "", "two words"]
    threads = kizami.get_num_threads()
    frame = pd.DataFrame({"text": texts}, index=list("dcba"))
    done = tokenize(dd.from_pandas(frame, npartitions=2, sort=False), tokenizer)
    found = done.compute(scheduler=scheduler)
    assert found.index.tolist() == list("dcba")
    assert [None if row is pd.NA else list(row) for row in found["input_ids"].array] == [
        tokenizer.encode(text).tolist() if text else None for text in texts
    ]
    assert dict(found.dtypes) == dict(done.dtypes)
    if scheduler == "synchronous":
        assert totals(done) == (4, 2, 5, {"empty": 1, "null": 1})
    assert kizami.get_num_threads() == threads


def test_what_is_wrong_is_said(tokenizer: Any) -> None:
    from kizami.corpus.dask import tokenize, totals

    frame = dd.from_pandas(pd.DataFrame({"text": ["a", "b"], "n": [1, 2]}), npartitions=1)
    for options, error, message in (
        ({"field": "body"}, CorpusError, "no column `body`; there is `text`, `n`"),
        ({"field": "n"}, CorpusError, "column `n` holds int64, not text"),
        ({"column": "n"}, InvalidValueError, "there is a column `n` already"),
        ({"eos": "<eos>"}, InvalidValueError, "no control token"),
    ):
        with pytest.raises(error, match=message):
            tokenize(frame, tokenizer, **options)
    with pytest.raises(InputTypeError, match=r"must be a dask\.dataframe\.DataFrame, not list"):
        tokenize([], tokenizer)
    with pytest.raises(CorpusError, match="there is no column `input_ids`"):
        totals(frame)
    mixed = pd.DataFrame({"text": pd.Series(["a", 5], dtype="object")})
    import dask

    with dask.config.set({"dataframe.convert-string": False}):
        lazy = tokenize(dd.from_pandas(mixed, npartitions=1), tokenizer)
        with pytest.raises(CorpusError, match="column `text` holds other things than text"):
            lazy.compute(scheduler="synchronous")
    bad = pd.DataFrame({"text": [b"a", b"\xff"]})
    with dask.config.set({"dataframe.convert-string": False}):
        lazy = tokenize(dd.from_pandas(bad, npartitions=1), tokenizer)
        with pytest.raises(CorpusError, match="byte 0xff at offset 0 is not UTF-8"):
            lazy.compute(scheduler="synchronous")
