"""`kizami.corpus.ray` on a real local cluster: processes, and one of them killed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kizami.errors import CorpusError, InputTypeError, InvalidValueError

from .conftest import FILES, OPTIONS, WORKERS, Corpus, Notes, check

ray = pytest.importorskip("ray", reason="ray is not installed (extra: ray)")
pq = pytest.importorskip("pyarrow.parquet")
data = pytest.importorskip("ray.data", reason="ray[data] is not installed (extra: ray)")

# Ray and Dask use what others have deprecated.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def cluster(environment: dict[str, str]) -> Iterator[None]:
    """A cluster with room for the actors, and for the tasks that read."""
    ray.init(
        num_cpus=WORKERS + 2,
        include_dashboard=False,
        logging_level="error",
        log_to_driver=False,
        runtime_env={
            "env_vars": environment,
            "worker_process_setup_hook": "tests.clusters.hook.install",
        },
    )
    context = data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    yield
    ray.shutdown()


def read(corpus: Corpus) -> Any:
    """A block for each file."""
    return data.from_arrow([pq.read_table(path) for path in corpus.files])


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("kill", [False, True], ids=["undisturbed", "killed"])
def test_ids_are_those_of_one_machine(
    tokenizer: Any, corpus: Corpus, notes: Notes, kill: bool
) -> None:
    from kizami.corpus.ray import tokenize, totals

    notes.clear(kill)
    done = tokenize(read(corpus), tokenizer, workers=WORKERS, **OPTIONS).materialize()

    loads, tables = notes.count("load"), notes.count("table")
    assert set(loads.values()) == {1}, "each worker loads the tokenizer once"
    assert set(tables) <= set(loads)
    assert sum(tables.values()) >= FILES + kill
    killed = notes.killed()
    assert len(killed) == kill
    assert len(loads) == WORKERS + len(killed), "another worker came in the place of the dead one"
    assert len(set(tables) - set(killed)) >= WORKERS - len(killed)
    check(corpus, done.take_all(), totals(done))


@pytest.mark.usefixtures("cluster")
def test_what_is_wrong_is_said(tokenizer: Any, corpus: Corpus) -> None:
    from kizami.corpus.ray import tokenize

    dataset = data.from_items([{"text": "a"}])
    for options, error, message in (
        ({"field": "body"}, CorpusError, "no column `body`; there is `text`"),
        ({"workers": 0}, InvalidValueError, "workers must be at least 1"),
        ({"workers": (3, 2)}, InvalidValueError, "the least and the most"),
        ({"num_cpus": 0.5}, InputTypeError, "num_cpus must be an int"),
        ({"eos": "<eos>"}, InvalidValueError, "no control token"),
    ):
        with pytest.raises(error, match=message):
            tokenize(dataset, tokenizer, **options)
    with pytest.raises(InputTypeError, match=r"must be a ray\.data\.Dataset, not list"):
        tokenize([], tokenizer)
    with pytest.raises(ray.exceptions.RayTaskError, match="byte 0xff at offset 4 is not UTF-8"):
        tokenize(read(corpus), tokenizer, workers=WORKERS, **{**OPTIONS, "broken": "stop"}).count()
