"""What `corpus.py` runs: each engine's way from a file of texts to ids.

An engine is a function that gets ready (loads its tokenizer, starts its workers) and gives back one
that does the work, which alone is timed. Its result is arrays of ids, in order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import kizami
import numpy as np

__all__ = ["ENGINES", "SLOW", "Engine", "Job"]


class Job(NamedTuple):
    """A file, a folder to write to, and how many processes or threads to use."""

    path: str
    folder: Path
    workers: int

    @property
    def is_text(self) -> bool:
        """Whether documents are lines, not fields of JSON Lines."""
        return not self.path.endswith(".jsonl")


Run = Callable[[], Iterable[Any] | None]


class Engine(NamedTuple):
    """How to get ready, what the way is, and where ids are that are not returned."""

    ready: Callable[[Job], Run]
    way: str
    ids: Callable[[Path], Iterator[Any]] | None = None


def texts_of(job: Job, size: int = 4 << 20) -> Iterator[list[str]]:
    """The texts in lists of some MB, as one reads them without a library."""
    batch: list[str] = []
    have = 0
    with open(job.path, encoding="utf-8", newline="\n") as file:
        for line in file:
            batch.append(line.removesuffix("\n") if job.is_text else json.loads(line)["text"])
            have += len(line)
            if have > size:
                yield batch
                batch, have = [], 0
    yield batch


def _kizami(job: Job) -> Run:
    import kizami.corpus

    kizami.set_num_threads(job.workers)
    tokenizer = kizami.load("kimi-k3")
    separator = "\n" if job.is_text else None

    def run() -> None:
        out = job.folder / "out"
        kizami.corpus.tokenize(job.path, out, tokenizer, separator=separator, overwrite=True)

    return run


def _shards(folder: Path) -> Iterator[Any]:
    return (np.memmap(path, "<u4", "r") for path in sorted((folder / "out").glob("*.bin")))


def _kizami_batch(job: Job) -> Run:
    kizami.set_num_threads(job.workers)
    tokenizer = kizami.load("kimi-k3")
    return lambda: [tokenizer.encode_batch(texts).ids for texts in texts_of(job)]


def _gigatoken_backend(job: Job) -> Any:
    import gigatoken

    ranks = job.folder / "ranks.tiktoken"
    ranks.write_bytes(kizami.load("kimi-k3").to_tiktoken())
    return gigatoken.Tokenizer.from_tiktoken(ranks, "kimi", {}).backend


def _gigatoken(job: Job) -> Run:
    from gigatoken.gigatoken_rs import JsonlFileSource, TextFileSource

    tokenizer = _gigatoken_backend(job)
    if job.is_text:
        source = TextFileSource([job.path], separator="\n")
    else:
        source = JsonlFileSource([job.path])
    return lambda: [tokenizer.encode_files(source)]


def _gigatoken_batch(job: Job) -> Run:
    tokenizer = _gigatoken_backend(job)
    return lambda: [tokenizer.encode_batch(texts) for texts in texts_of(job)]


def _tokenizers(job: Job) -> Run:
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_str(kizami.load("kimi-k3").to_tokenizer_json())

    def run() -> list[Any]:
        return [
            np.array(encoding.ids, np.uint32)
            for texts in texts_of(job)
            for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        ]

    return run


def _datasets(job: Job) -> Run:
    """The usual recipe: `map` over batches with a fast tokenizer, in as many processes."""
    import datasets
    import tokenizers

    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # processes instead
    datasets.disable_progress_bars()
    tokenizer = tokenizers.Tokenizer.from_str(kizami.load("kimi-k3").to_tokenizer_json())

    def ids(batch: dict[str, list[str]]) -> dict[str, Any]:
        encodings = tokenizer.encode_batch_fast(batch["text"], add_special_tokens=False)
        return {"input_ids": [encoding.ids for encoding in encodings]}

    def run() -> Iterable[Any]:
        kind = "text" if job.is_text else "json"
        cache = str(job.folder / "cache")
        rows = datasets.load_dataset(kind, data_files=job.path, split="train", cache_dir=cache)
        done = rows.map(
            ids, batched=True, num_proc=job.workers, remove_columns=rows.column_names,
            features=datasets.Features({"input_ids": datasets.List(datasets.Value("uint32"))}),
        )  # fmt: skip
        return (chunk.flatten() for chunk in done.data.column("input_ids").chunks)

    return run


def _blocks(job: Job) -> list[Any]:
    """The texts as Arrow tables of some MB: what clusters share out."""
    import pyarrow

    return [
        pyarrow.table({"text": pyarrow.array(texts, pyarrow.large_string())})
        for texts in texts_of(job, 4 << 20)
    ]


def _ray(job: Job) -> Run:
    """Texts are in the object store before; one thread an actor.

    The time holds the start of the actors, some seconds: take 1 GB. Ray's processes have a low
    priority (nice 15), so other work on the machine slows them more than the other engines.
    """
    import kizami.corpus.ray
    import ray
    import ray.data

    # Room for Ray's own tasks besides the actors, which would wait for them.
    ray.init(
        num_cpus=job.workers + 1, include_dashboard=False, log_to_driver=False,
        logging_level="error", runtime_env={"env_vars": {"PYTHONPATH": package()}},
    )  # fmt: skip
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    dataset = ray.data.from_arrow(_blocks(job)).materialize()
    tokenizer = kizami.load("kimi-k3")

    def run() -> Iterable[Any]:
        done = kizami.corpus.ray.tokenize(dataset, tokenizer, workers=job.workers, broken="skip")
        done = done.select_columns(["input_ids"]).materialize()
        tables = done.iter_batches(batch_size=None, batch_format="pyarrow")
        return (table["input_ids"].combine_chunks().flatten() for table in tables)

    return run


def _dask(job: Job) -> Run:
    """Texts are in Parquet before, and ids go there; processes of one thread."""
    import dask.dataframe
    import kizami.corpus.dask
    import pyarrow.parquet
    from distributed import Client, LocalCluster

    os.environ["PYTHONPATH"] = package()
    cluster = LocalCluster(
        n_workers=job.workers, threads_per_worker=1, processes=True, dashboard_address=None
    )
    client = Client(cluster)
    folder = job.folder / "texts"
    folder.mkdir()
    for number, table in enumerate(_blocks(job)):
        pyarrow.parquet.write_table(table, folder / f"{number:06}.parquet")
    tokenizer = kizami.load("kimi-k3")
    frame = dask.dataframe.read_parquet(folder, split_row_groups=True)
    # Processes import what they need before the clock runs.
    kizami.corpus.dask.tokenize(frame.partitions[: job.workers], tokenizer).compute()

    def run() -> None:
        done = kizami.corpus.dask.tokenize(frame, tokenizer, broken="skip")
        done[["input_ids"]].to_parquet(job.folder / "out")
        client.close()

    return run


def _parquet(folder: Path) -> Iterator[Any]:
    from pyarrow import parquet

    # Dask's names have no leading zeros.
    def number(path: Path) -> int:
        return int(path.stem.split(".")[1])

    paths = sorted((folder / "out").glob("*.parquet"), key=number)
    for path in paths:
        yield parquet.read_table(path)["input_ids"].combine_chunks().flatten()


def package() -> str:
    """Where processes of a cluster find this package."""
    return str(Path(kizami.__file__).parents[1])


ENGINES: dict[str, Engine] = {
    "kizami": Engine(_kizami, "kizami.corpus.tokenize, shards on disk", _shards),
    "kizami-batch": Engine(_kizami_batch, "read + encode_batch, in memory"),
    "gigatoken": Engine(_gigatoken, "encode_files, in memory"),
    "gigatoken-batch": Engine(_gigatoken_batch, "read + encode_batch, in memory"),
    "tokenizers": Engine(_tokenizers, "read + encode_batch_fast, in memory"),
    "datasets": Engine(_datasets, "load_dataset + map, batched, in processes, on disk"),
    "kizami-ray": Engine(_ray, "kizami.corpus.ray, in the object store"),
    "kizami-dask": Engine(_dask, "kizami.corpus.dask, Parquet on disk", _parquet),
}
# Minutes where the others take seconds: one round is enough.
SLOW = {"tokenizers", "datasets"}
