"""`kizami bench` and `kizami verify`: runs of one round, with made-up engines beside."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rich", reason="needs the extra bench")
pytest.importorskip("psutil", reason="needs the extra bench")
pytest.importorskip("tiktoken", reason="needs the oracle")

from kizami.bench.lab.engines import ModelFiles, engine_class

from tests.unit.test_save import tokenizer_json

ENGINES = """
import kizami

class Engine:
    package = "json"
    distribution = "numpy"
    way = "made up"
    wrong = False

    def bring(self):
        pass

    def load(self, files):
        self.tokenizer = kizami.load("kimi-k3")

    def set_threads(self, count):
        pass

    def encode_segments(self, segments):
        ids = self.tokenizer.encode_segments(segments)
        if self.wrong:
            ids[len(ids) // 2] += 1
        return ids

    def encode(self, text):
        print("engines may print")
        return self.encode_segments([(text, False)])

    def prepare(self, ids):
        return ids

    def decode(self, ids):
        return self.tokenizer.decode(ids)

class Wrong(Engine):
    wrong = True

class Broken(Engine):
    def load(self, files):
        raise RuntimeError("cannot be loaded")

class Crashing(Engine):
    def encode_segments(self, segments):
        import os
        os._exit(3)
"""


@pytest.fixture
def made_up(tmp_path: Path) -> dict[str, str]:
    """An environment in which the module `made_up` has engines."""
    (tmp_path / "made_up.py").write_text(ENGINES)
    return {"PYTHONPATH": str(tmp_path), "KIZAMI_SHARED": str(tmp_path)}


def test_list_shows_cases_and_engines(invoke: Any) -> None:
    result = invoke("bench", "--list")

    assert result.exit_code == 0
    assert "warm-118-1500-agent" in result.stdout
    assert "  tiktoken " in result.stdout
    quick = invoke("bench", "--list", "--quick").stdout
    assert "quick\n" in quick
    assert "scripts\n" not in quick


def test_a_run_gives_a_table_and_a_record(run: Any, tmp_path: Path, made_up: Any) -> None:
    engines = "kizami,tiktoken,made_up:Engine,made_up:Wrong,made_up:Broken,made_up:Crashing"
    command = ["bench", "--quick", "--cases", "warm-118-300-*", "--rounds", "1"]
    done = run(*command, "--engines", engines, "--out", "record.jsonl", **made_up)

    assert done.returncode == 0, done.stderr.decode()
    text = done.stdout.decode()
    assert "warm-118-300-agent" in text
    assert "INEXACT" in text
    assert "[1/1] warm-118-300-agent" in done.stderr.decode()
    rows = [json.loads(row) for row in (tmp_path / "record.jsonl").read_text().splitlines()]
    lines = {row["engine"]: row for row in rows}
    assert list(lines) == engines.split(",")
    assert [lines[name]["exact"] for name in list(lines)[:4]] == [True, True, True, False]
    assert "cannot be loaded" in lines["made_up:Broken"]["fault"]
    assert "code 3" in lines["made_up:Crashing"]["fault"]
    ours = lines["kizami"]
    assert ours["input_sha256"] == lines["tiktoken"]["input_sha256"]
    assert ours["ids_sha256"] == lines["tiktoken"]["ids_sha256"]
    assert ours["ids_sha256"] != lines["made_up:Wrong"]["ids_sha256"]
    assert ours["seconds"]["samples"] == 10
    seconds = ours["seconds"]
    assert 0 < seconds["min"] <= seconds["median"] <= seconds["p99"] <= seconds["max"]
    assert abs(ours["tokens"] - 300) <= 9
    expected = {
        "schema", "case", "engine", "engine_version", "exact", "definition", "cache", "threads",
        "callers", "rounds", "seconds", "tokens", "ids_sha256", "input_bytes", "input_sha256",
        "sources", "machine", "pinned", "commit", "command", "date",
    }  # fmt: skip
    assert set(ours) == expected

    shown = run("bench", "--from", "record.jsonl")
    assert shown.stdout.decode() == text
    checked = run("bench", "--check", "record.jsonl")
    assert "118 segments, 300 ids, warm" in checked.stdout.decode()
    assert "not measured" in checked.stdout.decode()


@pytest.mark.parametrize("mode", ["decode-*", "stream-*", "callers-2", "cold-118-1500-agent"])
def test_modes_run(run: Any, tmp_path: Path, mode: str) -> None:
    command = ["bench", "--quick", "--cases", mode, "--rounds", "1", "--engines", "kizami"]
    done = run(*command, "--out", "record.jsonl", KIZAMI_SHARED=str(tmp_path))

    assert done.returncode == 0, done.stderr.decode()
    [line] = map(json.loads, (tmp_path / "record.jsonl").read_text().splitlines())
    assert line["exact"] is True
    assert ("call_seconds" in line) == (mode == "callers-2")
    assert ("load_seconds" in line) == mode.startswith("cold")


def test_prompts_that_grow_are_measured_in_several_ways(run: Any, tmp_path: Path) -> None:
    command = ["bench", "--quick", "--cases", "grow-*", "--rounds", "1", "--engines", "kizami"]
    done = run(*command, "--out", "record.jsonl", KIZAMI_SHARED=str(tmp_path))

    assert done.returncode == 0, done.stderr.decode()
    lines = list(map(json.loads, (tmp_path / "record.jsonl").read_text().splitlines()))
    assert [line["engine"] for line in lines] == ["kizami", "kizami_session", "kizami_cache"]
    assert len({line["ids_sha256"] for line in lines}) == 1
    assert all(line["exact"] for line in lines)
    assert all(line["seconds"]["samples"] == 2 for line in lines)
    checked = run("bench", "--check", "record.jsonl")
    assert "a turn more" in checked.stdout.decode()


def test_loading_a_file_is_measured_in_several_ways(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    folder = tmp_path / "models" / "qwen3"
    folder.mkdir(parents=True)
    # Of more than a megabyte, or its image would not be kept.
    (folder / "tokenizer.json").write_text(tokenizer_json() + " " * (1 << 20), encoding="utf-8")
    command = ["bench", "--cases", "model-qwen3-load", "--rounds", "2", "--models", "models"]
    done = run(*command, "--engines", "kizami,tokenizers", "--out", "record.jsonl")

    assert done.returncode == 0, done.stderr.decode()
    lines = list(map(json.loads, (tmp_path / "record.jsonl").read_text().splitlines()))
    engines = ["kizami", "tokenizers", "kizami_image", "kizami_first", "kizami_second"]
    assert [line["engine"] for line in lines] == engines
    assert all(line["seconds"]["samples"] == 2 for line in lines), lines
    assert all(line["seconds"]["min"] > 0 for line in lines)
    assert {line["definition"]["mode"] for line in lines} == {"load-file"}


def test_each_way_to_load_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KIZAMI_CACHE", "KIZAMI_CACHE_DIR"):
        monkeypatch.setenv(name, "")
    (tmp_path / "tokenizer.json").write_text(tokenizer_json() + " " * (1 << 20), encoding="utf-8")
    files = ModelFiles(tmp_path)
    ids = []

    def load(engine: str, step: str = "load_file") -> None:
        under = engine_class(engine)()
        under.bring()
        getattr(under, step)(files)
        if step == "load_file":
            ids.append(under.encode("the abc <end>").tolist())

    images = lambda: sorted(path.parent.name for path in tmp_path.glob("*/*.kizami"))  # noqa: E731
    load("kizami_first")
    [fresh] = images()
    load("kizami_second", "make_files")
    assert images() == sorted([fresh, "cache"])
    load("kizami_image", "make_files")
    # From here on there is no file to read.
    (tmp_path / "tokenizer.json").rename(tmp_path / "hidden.json")
    load("kizami_image")
    (tmp_path / "hidden.json").rename(tmp_path / "tokenizer.json")
    load("kizami_second")
    assert images() == sorted([fresh, "cache"])
    load("kizami")
    assert images() == sorted([fresh, "cache"])
    assert os.environ["KIZAMI_CACHE"] == "0"
    assert len(ids) == 4
    assert ids.count(ids[0]) == 4


def test_own_texts_are_measured(run: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("a prompt of mine, 語\n", encoding="utf-8")
    command = ["bench", "--text", "mine.txt", "--rounds", "1", "--engines", "kizami"]
    done = run(*command)

    assert done.returncode == 0, done.stderr.decode()
    assert "cold-mine.txt" in done.stdout.decode()
    assert "again-mine.txt" in done.stdout.decode()
    assert "no record is kept" in done.stderr.decode()


def test_verify_says_the_same(run: Any, tmp_path: Path, made_up: Any) -> None:
    (tmp_path / "one.txt").write_text("Hello <|open|> 你好\n", encoding="utf-8")
    done = run("verify", "one.txt", "-", "--engines", "made_up:Wrong", input=b"other", **made_up)
    text = done.stdout.decode()

    assert done.returncode == 0, done.stderr.decode()
    assert "one.txt: 18 characters, " in text
    assert text.count("  kizami          the same\n") == 2
    assert "made_up:Wrong   differs from id 4 on, at byte 13;" in text
    assert r"b'Hello <|open|' | b'> \xe4\xbd\xa0" in text


def test_verify_fails_if_kizami_differs(run: Any, tmp_path: Path, made_up: Any) -> None:
    # Python runs this module at start: in workers it breaks Kizami.
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if 'lab.worker' in ' '.join(sys.orig_argv):\n"
        "    import kizami\n"
        "    right = kizami.Tokenizer.encode\n"
        "    def wrong(self, *args, **kwargs):\n"
        "        ids = right(self, *args, **kwargs)\n"
        "        ids[-1] += 1\n"
        "        return ids\n"
        "    kizami.Tokenizer.encode = wrong\n"
    )
    done = run("verify", "-", "--engines", "none", input=b"some text", **made_up)

    assert done.returncode == 1
    assert "kizami          differs from id 1 on" in done.stdout.decode()
    assert "error: kizami's ids differ from the published path's in 1 of 1 files" in (
        done.stderr.decode()
    )


@pytest.mark.parametrize(
    ("command", "module"),
    [
        (["bench", "--quick"], "rich"),
        (["bench", "--quick"], "psutil"),
        (["verify", "-"], "tiktoken"),
    ],
)
def test_a_missing_package_is_named(
    invoke: Any, monkeypatch: pytest.MonkeyPatch, command: list[str], module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    result = invoke(*command, input="text")

    assert result.exit_code == 1
    assert result.stdout == ""
    assert f"error: `{module}` is not installed\n" in result.stderr
    assert "hint: run `pip install 'kizami[bench]'`\n" in result.stderr


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (["bench", "--cases", "wurm"], "no case is called `wurm`"),
        (["bench", "--engines", "foo", "--quick"], "no engine is called `foo`"),
        (["bench", "--pin", "x"], "`--pin x` is no list of processors"),
        (["bench", "--pin", "9999"], "`--pin 9999` names processors that cannot be used"),
        (["bench", "--check", "gone"], "`gone` does not exist"),
        (["verify"], "missing argument `FILE...`"),
        (["verify", "gone"], "cannot read `gone`"),
    ],
)
def test_wrong_usage_is_told(invoke: Any, command: list[str], error: str) -> None:
    result = invoke(*command)

    assert result.exit_code == 2
    assert error in result.stderr
    assert "hint: " in result.stderr
