"""`kizami corpus`: options, messages and exit codes; what comes out is tested in tests/corpus."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GOOD = b'{"text": "Hello, world"}\n'
HELLO = [19180, 11, 2695]


@pytest.fixture(autouse=True)
def inputs(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_bytes(GOOD * 2)
    (tmp_path / "bad.jsonl").write_bytes(GOOD + b'{"body": "x"}\n' + GOOD)
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(GOOD * 1000)[:-20])
    (tmp_path / "text.txt").write_bytes(b"Hello, world\n\nHello, world")


def ids(folder: Path, name: str = "shard-00000.bin") -> list[int]:
    return np.fromfile(folder / name, "<u4").tolist()


def test_a_run(invoke: Any, tmp_path: Path) -> None:
    result = invoke("corpus", "good.jsonl", "--out", "out", "--eos", "[EOS]")
    assert result.exit_code == 0, result.output
    assert result.stdout == "out: 8 ids of 2 documents in 1 shard\n"
    assert result.stderr == ""
    assert ids(tmp_path / "out") == [*HELLO, 163585] * 2

    by_id = invoke("corpus", "good.jsonl", "-o", "out2", "--eos", "163585", "--bos", "0")
    assert by_id.exit_code == 0
    assert ids(tmp_path / "out2") == [0, *HELLO, 163585] * 2


def test_separators_have_escapes(invoke: Any, tmp_path: Path) -> None:
    result = invoke("corpus", "text.txt", "-o", "out", "--separator", r"\n\n", "-f", "npy")
    assert result.stdout == "out: 6 ids of 2 documents in 1 shard\n"
    assert np.load(tmp_path / "out" / "shard-00000.npy").tolist() == HELLO * 2
    (tmp_path / "back.txt").write_bytes(b"a\\nb\\n")
    result = invoke("corpus", "back.txt", "-o", "back", "--separator", r"\\n")
    assert result.stdout == "back: 2 ids of 2 documents in 1 shard\n"
    wrong = invoke("corpus", "text.txt", "-o", "out3", "--separator", r"\q")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "`--separator` holds `\\q`" in wrong.stderr


def test_shards_of_so_many_ids(invoke: Any, tmp_path: Path) -> None:
    for number, shards in (("1k", 4), ("2m", 1), ("2_000", 2)):
        (tmp_path / "a.jsonl").write_bytes(GOOD * 1333)
        result = invoke("corpus", "a.jsonl", "-o", "out", "--shard-tokens", number, "--overwrite")
        assert f"in {shards} shard" in result.stdout
    wrong = invoke("corpus", "a.jsonl", "-o", "out", "--shard-tokens", "1e6")
    assert wrong.exit_code == 2
    assert "`1e6` is no number such as" in wrong.stderr


def test_a_broken_row_stops(invoke: Any) -> None:
    result = invoke("corpus", "bad.jsonl", "-o", "out")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "error: bad.jsonl, line 2: it has no field `text`; it has `body`\n\n"
        "hint: choose another `--field`, or leave such rows out with `--broken skip`;"
        " then run with `--overwrite`\n"
    )
    dry = invoke("corpus", "bad.jsonl", "--dry-run")
    assert dry.stderr.endswith("leave such rows out with `--broken skip`\n")
    ran = invoke("corpus", "bad.jsonl", "-o", "out", "--broken", "skip", "--overwrite")
    assert ran.exit_code == 0


def test_a_wrong_field_is_told_though_broken_rows_are_skipped(invoke: Any, tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_bytes(b'{"body": "x"}\n')
    result = invoke("corpus", "one.jsonl", "-o", "out", "--broken", "skip")
    assert result.stdout == "out: 0 ids of 0 documents in 0 shards\n"
    assert result.stderr == (
        "note: left out 1 of 1 row: 1 no-field\n"
        "warning: one.jsonl, row 1: it has no field `text`; it has `body`\n"
        "note: no row gave a text; choose another `--field`, and run with `--overwrite`\n"
    )


def test_a_wrong_column_is_told_though_broken_files_are_skipped(
    invoke: Any, tmp_path: Path
) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"body": ["x"]}), tmp_path / "a.parquet")
    result = invoke("corpus", "a.parquet", "-o", "out", "--broken", "skip")
    assert result.exit_code == 1
    assert "it has `body`; choose with `--field`\n" in result.stderr
    hint = "choose another `--field`, and run with `--overwrite`"
    assert result.stderr.endswith(f"\n\nhint: {hint}\n")
    result = invoke(
        "corpus", "a.parquet", "cut.jsonl.gz", "-o", "out", "--broken", "skip", "--overwrite"
    )
    hint = "choose another `--field`, replace what is damaged, and run with `--overwrite`"
    assert result.stderr.endswith(f"\n\nhint: {hint}\n")


def test_broken_rows_are_left_out_and_told(invoke: Any, tmp_path: Path) -> None:
    result = invoke("corpus", "bad.jsonl", "-o", "out", "--broken", "skip")
    assert result.exit_code == 0
    assert result.stdout == "out: 6 ids of 2 documents in 1 shard\n"
    assert result.stderr == (
        "note: left out 1 of 3 rows: 1 no-field\n"
        "warning: bad.jsonl, row 2: it has no field `text`; it has `body`\n"
    )


def test_a_damaged_file_is_an_error_even_if_it_is_skipped(invoke: Any, tmp_path: Path) -> None:
    stopped = invoke("corpus", "cut.jsonl.gz", "good.jsonl", "-o", "out")
    assert (stopped.exit_code, stopped.stdout) == (2, "")
    assert "cut.jsonl.gz is damaged: it ends in the middle" in stopped.stderr
    assert stopped.stderr.endswith("hint: replace the file; then run with `--overwrite`\n")
    result = invoke(
        "corpus", "cut.jsonl.gz", "good.jsonl", "-o", "out", "--broken", "skip", "--overwrite"
    )
    assert result.exit_code == 1
    assert result.stdout.startswith("out: ")
    assert "warning: after " in result.stderr
    assert "error: 1 file could not be read to the end" in result.stderr
    assert ids(tmp_path / "out")[-6:] == HELLO * 2


def test_a_run_goes_on(invoke: Any, tmp_path: Path) -> None:
    assert invoke("corpus", "good.jsonl", "-o", "out", "--resume").exit_code == 0
    again = invoke("corpus", "good.jsonl", "-o", "out")
    assert again.exit_code == 2
    hint = "choose another folder, `--resume`, or `--overwrite`"
    assert again.stderr == f"error: out holds a whole run\n\nhint: {hint}\n"
    assert invoke("corpus", "good.jsonl", "-o", "out", "--resume").stdout == (
        "out: 6 ids of 2 documents in 1 shard\n"
    )
    other = invoke("corpus", "good.jsonl", "-o", "out", "--resume", "--keep-empty")
    assert "out was begun with other settings (keep_empty: False then, True now)" in other.stderr


def test_verify(invoke: Any, tmp_path: Path) -> None:
    invoke("corpus", "good.jsonl", "-o", "out")
    result = invoke("corpus", "--verify", "out")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "out: 6 ids of 2 documents in 1 shard, all sound\n"

    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    (tmp_path / "out" / "manifest.json").write_text(json.dumps({**manifest, "complete": False}))
    result = invoke("corpus", "--verify", "out")
    assert result.exit_code == 1
    assert "out is sound, and not complete" in result.stderr

    (tmp_path / "out" / "shard-00000.bin").write_bytes(bytes(24))
    result = invoke("corpus", "--verify", "out")
    assert result.exit_code == 1
    assert "another checksum" in result.stdout
    for args in (["--verify", "gone"], ["--verify", "out", "x"], ["--verify", "out", "-o", "x"]):
        assert invoke("corpus", *args).exit_code == 2


def test_dry_run_writes_nothing(invoke: Any, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    result = invoke("corpus", "good.jsonl", "*.txt", "--dry-run", "--out", "out")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0] == "good.jsonl  jsonl  50 bytes"
    assert "2 files, about 13 ids in 1 shard, 52 bytes; " in result.stdout
    assert sorted(tmp_path.iterdir()) == before
    assert invoke("corpus", "bad.jsonl", "--dry-run").exit_code == 2


def test_wrong_usage(invoke: Any) -> None:
    cases = [
        ([], "there is no input", "standard input"),
        (["good.jsonl"], "`--out` is missing", "--dry-run"),
        (["gone.txt", "-o", "out"], "gone.txt cannot be read", "check the file"),
        (["*.md", "-o", "out"], "no file matches '*.md'", "check the pattern"),
        (["-", "-o", "out"], "the name of standard input does not say", "pass `--input-format`"),
        (
            ["good.jsonl", "-o", "out", "--eos", "<e>"],
            "`--eos` '<e>' is no control token",
            "it has [BOS]",
        ),
        (["good.jsonl", "-o", "out", "--eos", "163840"], "`--eos` 163840 is outside", "to 163839"),
        (["good.jsonl", "-o", "out", "--bos", "9" * 30], "`--bos` 999", "to 163839, or the name"),
        (["good.jsonl", "-o", "out", "--shard-tokens", "0"], "`--shard-tokens` must be at", "num"),
        (
            ["good.jsonl", "-o", "out", "--max-document-bytes", "5g"],
            "`--max-document-bytes`",
            "num",
        ),
        (
            ["good.jsonl", "-o", "out", "--max-document-bytes", "5"],
            "line 1: it is longer than `--max-document-bytes`",
            "`--broken skip`; then run with `--overwrite`",
        ),
    ]
    for args, message, hint in cases:
        result = invoke("corpus", *args)
        assert (result.exit_code, result.stdout) == (2, "")
        error, _, way_out = result.stderr.partition("\n\nhint: ")
        assert message in error
        assert hint in way_out


def test_standard_input(run: Any, tmp_path: Path) -> None:
    result = run("corpus", "-", "--input-format", "jsonl", "-o", "out", input=GOOD)
    assert (result.returncode, result.stderr) == (0, b"")
    assert ids(tmp_path / "out") == HELLO


@pytest.mark.skipif(sys.platform == "win32", reason="folders are protected in another way")
def test_a_folder_that_cannot_be_written(invoke: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    result = invoke("corpus", "good.jsonl", "-o", "file/out")
    assert result.exit_code == 1
    assert "file/out cannot be written: not a directory" in result.stderr
    assert "go on with `--resume`" in result.stderr


def test_a_folder_that_is_a_file(invoke: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    result = invoke("corpus", "good.jsonl", "-o", "file")
    assert result.exit_code == 1
    assert result.stderr == "error: file is a file, not a folder\n\nhint: choose another name\n"


def test_one_is_not_many(invoke: Any, tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_bytes(b'{"text": "Hello"}\n')
    one = "1 id of 1 document in 1 shard"
    assert invoke("corpus", "one.jsonl", "-o", "out").stdout == f"out: {one}\n"
    assert invoke("corpus", "--verify", "out").stdout == f"out: {one}, all sound\n"
    assert "about 1 id in 1 shard" in invoke("corpus", "one.jsonl", "--dry-run").stdout


def test_progress_is_shown_on_a_terminal_only(on_terminal: Any, run: Any) -> None:
    code, text = on_terminal("corpus", "good.jsonl", "-o", "out")
    assert code == 0
    assert "100%" in text
    assert "2 documents, 6 ids" in text
    assert run("corpus", "good.jsonl", "-o", "out2").stderr == b""
    unknown = on_terminal("corpus", "/dev/stdin", "--input-format", "text", "-o", "out4")[1]
    assert "%" not in unknown
    assert "%" not in on_terminal("corpus", "good.jsonl", "-o", "out3", "--no-progress")[1]


@pytest.mark.skipif(sys.platform == "win32", reason="interrupts are sent in another way there")
def test_interrupt_leaves_whole_shards(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kizami", "corpus", "-", "--input-format", "jsonl", "-o", "out"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A job in the background ignores interrupts, and its children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdin is not None
    process.stdin.write(GOOD * 10_000)  # more than a pipe holds, so the run has begun
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert stdout == b""
    assert b"Traceback" not in stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["manifest.json"]
