"""Texts on the disk, their ids by a run on this machine alone, and what workers note down."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import kizami
import kizami.corpus
import pytest

from tests.corpus.conftest import make_texts, read_documents

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = Path(kizami.__file__).parents[1]
WORKERS = 2
FILES = 12
OPTIONS: dict[str, Any] = {"field": "body", "eos": "[EOS]", "broken": "skip"}


class Corpus(NamedTuple):
    """Parquet files, and what must come of them."""

    files: list[Path]
    rows: int
    report: kizami.corpus.Report
    documents: list[list[int]]


class Notes:
    """The folder that `hook` writes to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def clear(self, kill: bool) -> None:
        """Begins anew; with `kill`, one worker will be killed."""
        for path in self.folder.iterdir():
            path.unlink()
        if kill:
            (self.folder / "kill").touch()

    def count(self, what: str) -> Counter[int]:
        """How often each process did it, by process id."""
        return Counter(int(path.name.split("-")[1]) for path in self.folder.glob(f"{what}-*-*"))

    def killed(self) -> list[int]:
        """The process that was killed."""
        return [int(path.name.split("-")[1]) for path in self.folder.glob("killed-*")]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Texts of several scripts in several files, some of them broken."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    folder = tmp_path_factory.mktemp("corpus")
    rows = 0
    for number in range(FILES):
        texts: list[bytes | None] = [text.encode() for text in make_texts(50, number)]
        texts[number::17] = [None] * len(texts[number::17])
        texts[5 + number] = b"bad \xff"
        numbers = range(rows, rows + len(texts))
        rows += len(texts)
        table = pa.table({"n": numbers, "body": pa.array(texts, pa.binary())})
        parquet.write_table(table, folder / f"{number:03}.parquet")
    files = sorted(folder.glob("*.parquet"))
    report = kizami.corpus.tokenize(files, folder / "out", "kimi-k3", **OPTIONS)
    return Corpus(files, rows, report, read_documents(folder / "out"))


@pytest.fixture(scope="session")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    """What workers note down."""
    return Notes(tmp_path_factory.mktemp("notes"))


@pytest.fixture(scope="session")
def environment(notes: Notes) -> dict[str, str]:
    """That of the workers, who must find `tests.clusters.hook` and this package."""
    path = f"{REPOSITORY}:{PACKAGE}"
    return {"PYTHONPATH": path, "KIZAMI_TEST_FOLDER": str(notes.folder)}


def check(corpus: Corpus, rows: list[dict[str, Any]], totals: kizami.corpus.Totals) -> None:
    """The same documents and counts as from the run on one machine, nothing lost or doubled."""
    assert [row["n"] for row in rows] == list(range(corpus.rows))
    found = [list(row["input_ids"]) for row in rows if row["left_out"] is None]
    assert found == corpus.documents
    assert all(row["input_ids"] is None for row in rows if row["left_out"] is not None)
    report = corpus.report
    assert totals == (report.rows, report.documents, report.tokens, totals.left_out)
    assert totals.left_out == report.left_out
    assert set(report.left_out) == {"null", "empty", "not-utf8"}
