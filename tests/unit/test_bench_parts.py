"""Parts of the benchmark that need no engine: cases, turns, statistics, verdicts, differences."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Any

import kizami
import numpy as np
import pytest
from kizami.bench import cases as known
from kizami.bench import record
from kizami.bench.cases import Case
from kizami.bench.check import judge
from kizami.bench.files import write_model_files
from kizami.bench.lab.engines import WAYS
from kizami.bench.lab.engines.tiktoken_engine import stretches
from kizami.bench.modes import MODES, in_turn
from kizami.bench.prompts import SHAPES
from kizami.bench.results import Result, Spread
from kizami.bench.runner import roll_call
from kizami.bench.texts import KINDS, WORST
from kizami.bench.verify import first_difference
from kizami.errors import InvalidValueError, MissingExtraError
from kizami.reference import cuts

CASES = [case for cases in known.suites().values() for case in cases]
BENCH = Path(known.__file__).parent


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.suite}/{case.name}")
def test_cases_name_what_there_is(case: Case) -> None:
    assert case.mode in MODES
    assert case.shape in SHAPES
    assert case.kind in (*KINDS, *WORST)
    sizes = [size for size in (case.tokens, case.bytes, case.chars) if size is not None]
    assert len(sizes) == (case.mode not in ("load", "load-file"))
    names = [name for name in (*case.engines, *case.skip) if name not in WAYS.get(case.mode, ())]
    if names:
        assert roll_call(names)


@pytest.mark.parametrize("suite", known.suites())
def test_names_are_unique_in_a_suite(suite: str) -> None:
    names = [case.name for case in known.suites()[suite]]
    assert len(names) == len(set(names))


def test_every_target_has_a_case() -> None:
    names = [case.name for case in known.select([], quick=False)]
    targets = json.loads(files("kizami.bench").joinpath("targets.json").read_text("utf-8"))
    for target in targets:
        pattern = target["case"].partition("{")[0] + "*"
        assert any(fnmatchcase(name, pattern) for name in names), target


def test_cases_are_chosen_by_suite_and_pattern() -> None:
    assert {case.suite for case in known.select([], quick=True)} == {"quick"}
    assert {case.suite for case in known.select(["cold"], quick=False)} == {"cold"}
    names = [case.name for case in known.select(["warm-118-*-agent", "load"], quick=False)]
    assert "load" in names
    assert "warm-118-1000000-agent" in names
    with pytest.raises(InvalidValueError, match="no case is called 'wurm'"):
        known.select(["wurm"], quick=False)
    with pytest.raises(InvalidValueError, match="no engine is called 'kizaml'"):
        roll_call(["kizaml"])


def test_every_engine_begins_equally_often() -> None:
    results = {name: Result(CASES[0], name) for name in ("a", "b", "c")}
    orders = [in_turn(results, number) for number in range(6)]

    assert sorted(order[0] for order in orders) == ["a", "a", "b", "b", "c", "c"]
    assert all(sorted(order) == ["a", "b", "c"] for order in orders)
    results["b"].fault = "gone"
    assert sorted(in_turn(results, 1)) == ["a", "c"]


def test_a_spread_is_that_of_the_samples() -> None:
    spread = Spread.of([5.0, 1.0, 2.0, 100.0, 3.0])

    assert spread == Spread(median=3.0, min=1.0, max=100.0, mad=2.0, p99=100.0, samples=5)


def test_a_worker_does_not_import_the_package() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(BENCH)!r}); import lab.worker, lab.engines;"
        "[lab.engines.engine_class(name) for name in lab.engines.NAMES];"
        "print([name for name in sys.modules if name.startswith(('kizami', 'tiktoken'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_the_package_imports_no_part_of_the_benchmark() -> None:
    code = (
        "import kizami, kizami.cli, sys;"
        "names = ('kizami.bench', 'rich', 'psutil', 'matplotlib', 'tiktoken');"
        "print([name for name in sys.modules if name.startswith(names)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "text",
    ["", "a b", "a" * 25_001, " " * 50_000, "ab " * 150_000, "a" * 30_000 + " " * 26_000 + "b"],
)
def test_the_cuts_of_the_oracle_are_those_of_the_reference(text: str) -> None:
    assert list(stretches(text)) == cuts(text)


def test_files_for_rivals_hold_the_vocabulary(tmp_path: Path) -> None:
    write_model_files(tmp_path, tokenizer_json=False)
    data = (tmp_path / "tiktoken.model").read_bytes()
    facts = json.loads((tmp_path / "facts.json").read_bytes())

    assert hashlib.sha256(data).hexdigest() == kizami._native.KIMI_RANK_FILE_SHA256
    assert facts["controls"] == dict(kizami.load("kimi-k3").control_tokens)


def test_the_first_difference_is_found() -> None:
    tokenizer = kizami.load("kimi-k3")
    right = tokenizer.encode("one two three four five")
    assert first_difference(right, right.copy()) is None

    found = right.copy()
    found[2] += 1
    difference = first_difference(right, found)
    assert difference is not None
    assert (difference.position, difference.byte) == (2, len("one two"))
    assert difference.after.startswith(b" three")
    shorter = first_difference(right, right[:-1])
    assert shorter is not None
    assert shorter.position == len(right) - 1
    longer = first_difference(right[:-1], right)
    assert longer is not None
    assert longer.found[-1] == right[-1]


def line(case: str, engine: str, median: float, **facts: Any) -> dict[str, Any]:
    """A line of a record, as far as verdicts read it."""
    seconds = {"median": median, "max": median}
    return {"case": case, "engine": engine, "seconds": seconds, "date": "d", "exact": True, **facts}


def test_verdicts_compare_with_the_best_rival() -> None:
    case = "warm-118-1500-agent"
    lines = [
        line(case, "kizami", 1.0),
        line(case, "gigatoken", 4.0, exact=False),
        line(case, "tiktoken", 9.0),
    ]
    verdict = next(verdict for verdict in judge(lines) if verdict.case == case)

    assert (verdict.measured, verdict.wanted, verdict.state) == ("4.00x", "5x", "short")
    assert "gigatoken is inexact, 9.00x against tiktoken" in verdict.beside
    later = [dict(one, date="e") for one in lines]
    later[1]["seconds"] = {"median": 6.0}
    assert next(v for v in judge([*lines, *later]) if v.case == case).state == "ok"
    later[0]["exact"] = False
    assert next(v for v in judge(later) if v.case == case).state == "inexact"


def test_verdicts_on_own_figures() -> None:
    lines = [
        line("callers-2", "kizami", 1.0),
        line("callers-32", "kizami", 1.05, call_seconds={"median": 1.0, "p99": 3.0}),
        line("load", "kizami", 0.001, rss_mb=31.0),
    ]
    states = {verdict.what: verdict.state for verdict in judge(lines)}

    assert states["200 requests, 32 callers against 2"] == "ok"
    assert states["p99 against p50, 32 callers"] == "short"
    assert states["load, time"] == "ok"
    assert states["load, memory"] == "short"
    assert states["load of the bundled model"] == "not measured"


def test_records_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "record.jsonl"
    result = Result(CASES[0], "kizami", seconds=[1.0])
    answer = {"tokens": [3], "digests": ["d"]}
    result.saw(b"text", 4, answer, answer)
    result.saw(b"text", 4, answer, {"tokens": [3], "digests": ["e"]})
    written = record.line(result, {"date": "d"})
    record.write(path, [written])

    assert record.read(path) == [written]
    assert written["exact"] is False
    path.write_text('{"schema": 99}\n')
    with pytest.raises(InvalidValueError, match="has schema 99"):
        record.read(path)
    path.write_text("no\n")
    with pytest.raises(InvalidValueError, match=r"line 1 of .* is no benchmark record"):
        record.read(path)


def test_plots_are_drawn(tmp_path: Path) -> None:
    try:
        from kizami.bench.plots import draw
    except MissingExtraError:
        pytest.skip("needs matplotlib")
    pytest.importorskip("matplotlib")
    shared = {"date": "2026-01-01T00:00:00Z", "machine": {"cpu": "x", "cpus": 2, "python": "3"}}
    lines = []
    for tokens in (300, 1500):
        case = Case(f"warm-118-{tokens}-agent", "s", "warm", shape="118", tokens=tokens)
        for engine in ("kizami", "tiktoken"):
            result = Result(case, engine, "1", seconds=[1.0, 2.0, 3.0], tokens=[tokens])
            lines.append(record.line(result, shared))

    assert [path.name for path in draw(lines, tmp_path / "plots")] == ["latency.png"]
    assert draw([], tmp_path) == []


def test_arrays_of_ids_have_one_digest() -> None:
    from kizami.bench.lab.tasks import digest

    ids = np.arange(10, dtype=np.uint32)
    assert digest(ids) == digest(np.arange(20, dtype=np.uint32)[::2] // 2)
