"""A run that was ended goes on, and gives what a run that was not ended gives."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kizami.corpus import tokenize
from kizami.errors import CorpusError

from .conftest import contents, json_lines, make_texts

REPOSITORY = Path(__file__).resolve().parents[2]
# Says after each block how far it is, and waits for a line before it goes on.
RUN = """
import sys, kizami
from kizami.corpus import tokenize, _rows, _run
_rows.BLOCK = _run.BLOCK = 2000
def show(progress):
    print(progress.documents, flush=True)
source, folder = sys.argv[1:]
tokenize(source, folder, "kimi-k3", shard_tokens=3000, broken="skip", resume=True, eos="[EOS]",
         progress=show)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks, which other systems do not like")
@pytest.mark.parametrize("form", ["bin", "npy", "parquet"])
def test_a_crash_at_any_step_on_the_disk(tmp_path: Path, form: str) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    lines = json_lines(make_texts(16)).splitlines(keepends=True)
    lines[7:7] = [b"broken\n", b"\n"]
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines[:10]))
    (tmp_path / "b.jsonl").write_bytes(b"".join(lines[10:]))
    command = [sys.executable, "-m", "tests.corpus.crash", str(tmp_path / "*.jsonl")]
    ran = subprocess.run(
        [*command, str(tmp_path), form],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 20


def test_kill_at_random_moments(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(json_lines(make_texts(400)))
    random = Random(1)
    whole, out = tmp_path / "whole", tmp_path / "out"
    command = [sys.executable, "-c", RUN, str(tmp_path / "a.jsonl")]
    reports = subprocess.run(
        [*command, str(whole)], stdout=subprocess.PIPE, timeout=120, check=True
    ).stdout.splitlines()
    assert len(reports) > 30

    killed = 0
    for _ in range(10):
        process = subprocess.Popen([*command, str(out)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        with process.stdout:
            for _ in range(random.randrange(len(reports) // 6)):
                process.stdout.readline()
            process.kill()
        killed += process.wait(timeout=60) != 0
    assert killed >= 5
    subprocess.run([*command, str(out)], stdout=subprocess.DEVNULL, timeout=120, check=True)
    assert contents(out) == contents(whole)


@pytest.mark.parametrize("separator", ["\n", None])
@pytest.mark.parametrize("packed", [False, True])
def test_every_place_to_go_on(
    tokenizer: Any, tmp_path: Path, separator: str | None, packed: bool
) -> None:
    import gzip

    for number in range(3):
        data = "\n".join(f"{n} line {'x' * n}" for n in range(number * 4)).encode()
        pack = gzip.compress if packed else bytes
        (tmp_path / f"{number}.txt").write_bytes(pack(data))
    options: dict[str, Any] = {"shard_tokens": 1, "separator": separator}
    tokenize(tmp_path / "*.txt", tmp_path / "whole", tokenizer, **options)
    wanted = contents(tmp_path / "whole")
    for stop in range(1, len(list((tmp_path / "whole").glob("*.bin"))) + 1):
        out = tmp_path / f"out{stop}"
        with pytest.MonkeyPatch.context() as patch:
            _stop_after(patch, stop)
            with pytest.raises(KeyboardInterrupt):
                tokenize(tmp_path / "*.txt", out, tokenizer, **options)
        tokenize(tmp_path / "*.txt", out, tokenizer, resume=True, **options)
        assert contents(out) == wanted


def test_standard_input_is_given_again(tokenizer: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"shard_tokens": 1000, "input_format": "jsonl"}

    def run(folder: str, stop: int | None, **more: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            data = io.BytesIO(json_lines(make_texts(50)))
            patch.setattr(sys, "stdin", io.TextIOWrapper(data))
            if stop is not None:
                _stop_after(patch, stop)
            tokenize("-", tmp_path / folder, tokenizer, **options, **more)

    run("whole", None)
    with pytest.raises(KeyboardInterrupt):
        run("out", 3)
    run("out", None, resume=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def _stop_after(patch: pytest.MonkeyPatch, shards: int) -> None:
    from kizami.corpus._manifest import Manifest

    real = Manifest.write

    def write(self: Manifest, folder: Path) -> None:
        real(self, folder)
        if len(self.shards) == shards:
            raise KeyboardInterrupt

    patch.setattr(Manifest, "write", write)


def test_a_whole_run_is_left_alone(tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    out = tmp_path / "out"
    first = tokenize(tmp_path / "a.txt", out, tokenizer, resume=True)
    before = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    again = tokenize(tmp_path / "a.txt", out, tokenizer, resume=True)

    assert {path.name: path.stat().st_mtime_ns for path in out.iterdir()} == before
    assert (again.tokens, again.documents) == (first.tokens, first.documents)


def test_another_run_is_not_gone_on_with(tokenizer: Any, small: Any, tmp_path: Path) -> None:
    path, out = tmp_path / "a.txt", tmp_path / "out"
    path.write_text("text")
    (tmp_path / "b.txt").write_text("text")
    tokenize(path, out, tokenizer)
    with pytest.raises(CorpusError, match="holds a whole run; choose another folder, resume"):
        tokenize(path, out, tokenizer)
    for inputs, model, options, message in (
        (path, tokenizer, {"eos": 5}, r"other settings \(eos: \[\] then, \[5\] now\)"),
        (path, small, {}, r"other tokenizer \(fingerprint"),
        ([path, tmp_path / "b.txt"], tokenizer, {}, r"other inputs \(1 then, 2 now\)"),
        (tmp_path / "b.txt", tokenizer, {}, r"other inputs \(number 1, .*a\.txt: path"),
    ):
        with pytest.raises(CorpusError, match=message):
            tokenize(inputs, out, model, resume=True, **options)
    path.write_text("changed text")
    with pytest.raises(CorpusError, match=r"a\.txt: bytes: 4 then, 12 now"):
        tokenize(path, out, tokenizer, resume=True)
    assert tokenize(path, out, tokenizer, overwrite=True).tokens == 2


def test_shards_without_a_manifest_are_not_touched(tokenizer: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "shard-00000.bin").write_bytes(b"mine")
    (out / "notes.txt").write_bytes(b"mine")
    (tmp_path / "a.txt").write_text("text")
    with pytest.raises(CorpusError, match=r"holds shards, but no manifest\.json"):
        tokenize(tmp_path / "a.txt", out, tokenizer, resume=True)
    assert (out / "shard-00000.bin").read_bytes() == b"mine"
    tokenize(tmp_path / "a.txt", out, tokenizer, overwrite=True)
    assert (out / "notes.txt").read_bytes() == b"mine"


def test_a_shard_that_was_changed_is_seen(tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    tokenize(tmp_path / "a.txt", tmp_path / "out", tokenizer)
    (tmp_path / "out" / "shard-00000.bin").write_bytes(b"")
    with pytest.raises(CorpusError, match="is not what"):
        tokenize(tmp_path / "a.txt", tmp_path / "out", tokenizer, resume=True)


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no locks there")
def test_two_runs_do_not_share_a_folder(tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    errors: list[str] = []

    def other(_: object) -> None:
        with pytest.raises(CorpusError, match="another run is writing") as error:
            tokenize(tmp_path / "a.txt", tmp_path / "out", tokenizer, overwrite=True)
        errors.append(str(error.value))

    tokenize(tmp_path / "a.txt", tmp_path / "out", tokenizer, progress=other)
    assert len(errors) == 1


@pytest.mark.parametrize("text", ["", "{", '{"kind": "kizami-corpus", "version": 2}', "\0" * 99])
def test_a_damaged_manifest_can_be_overwritten(tokenizer: Any, tmp_path: Path, text: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(json_lines(make_texts(50)))
    options: dict[str, Any] = {"shard_tokens": 1000}
    for name in ("whole", "out"):
        tokenize(tmp_path / "a.jsonl", tmp_path / name, tokenizer, **options)
    manifest = tmp_path / "out" / "manifest.json"
    manifest.write_text(text)
    (tmp_path / "out" / "shard-00099.bin").write_bytes(b"left")
    for resume in (False, True):
        with pytest.raises(CorpusError, match=r"choose another folder, or overwrite$"):
            tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer, resume=resume, **options)
    assert manifest.read_text() == text
    tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer, overwrite=True, **options)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


@pytest.mark.parametrize("text", ["[]", "5", "{}", '{"kind": "other", "version": 1}'])
def test_a_manifest_of_somebody_else_is_left_alone(
    tokenizer: Any, tmp_path: Path, text: str
) -> None:
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "out").mkdir()
    manifest = tmp_path / "out" / "manifest.json"
    manifest.write_text(text)
    with pytest.raises(CorpusError, match=r"it is of another kind; choose another folder$"):
        tokenize(tmp_path / "a.txt", tmp_path / "out", tokenizer, overwrite=True)
    assert manifest.read_text() == text
