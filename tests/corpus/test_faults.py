"""What is broken is said, counted, and never silently lost."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kizami.corpus import _files, _rows, estimate, tokenize, verify
from kizami.errors import CorpusError, CorpusWriteError

from .conftest import contents, expected, json_lines, make_texts, read_documents

GOOD = b'{"text": "good"}\n'
BROKEN = {
    "not-json": (b'{"text": "a"\n', r"it is not JSON: expecting ',' delimiter"),
    "control character": (b'{"text": "a\tb"}\n', "it is not JSON: invalid control character"),
    "not a number": (b'{"text": "a", "x": NaN}\n', "it is not JSON: the number NaN is not allowed"),
    "not-object": (b'["text"]\n', "it holds a list, not an object"),
    "no-field": (b'{"body": "a", "lang": 1}\n', "no field `text`; it has `body`, `lang`"),
    "no field at all": (b"{}\n", "no field `text`; it has none"),
    "not-text": (b'{"text": 5}\n', "its field `text` is a number, not a text"),
    "not-utf8": (b'{"text": "a\xff"}\n', "byte 0xff at offset 11 is not UTF-8"),
    "too-long": (b'{"text": "' + b"x" * 3000 + b'"}\n', "it is longer than max_document_bytes"),
}
REASON = {
    "not a number": "not-json",
    "control character": "not-json",
    "no field at all": "no-field",
}


@pytest.fixture(params=[100, 1 << 20])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files in one block, and in many."""
    monkeypatch.setattr(_rows, "BLOCK", request.param)
    monkeypatch.setattr("kizami.corpus._run.BLOCK", request.param)


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_line_stops_or_is_counted(tokenizer: Any, tmp_path: Path, name: str) -> None:
    line, message = BROKEN[name]
    reason = REASON.get(name, name)
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD * 3 + line + b" \n" + GOOD + line)
    with pytest.raises(CorpusError, match=re.escape(f"{path}, line 4: ") + ".*" + message) as error:
        tokenize(path, tmp_path / "out", tokenizer, max_document_bytes=1000)
    assert (error.value.path, error.value.row, error.value.reason) == (str(path), 4, reason)

    report = tokenize(
        path, tmp_path / "out", tokenizer, max_document_bytes=1000, broken="skip", overwrite=True
    )
    assert report.left_out == {reason: 2, "blank": 1}
    assert (report.rows, report.documents) == (7, 4)
    assert [(one["row"], one["reason"]) for one in report.named] == [(4, reason), (7, reason)]
    assert read_documents(tmp_path / "out") == expected(tokenizer, ["good"] * 4)


def test_bytes_that_are_no_utf8_can_be_replaced(tokenizer: Any, tmp_path: Path) -> None:
    bad = b"\xff\xe4\xb8 \xed\xa0\x80 \xf0\x9f\x8e"
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "a' + bad + b'b"}\n')
    (tmp_path / "b.txt").write_bytes(bad)
    tokenize(
        [tmp_path / "a.jsonl", tmp_path / "b.txt"], tmp_path / "out", tokenizer, errors="replace"
    )
    texts = [(b"a" + bad + b"b").decode(errors="replace"), bad.decode(errors="replace")]
    assert read_documents(tmp_path / "out") == expected(tokenizer, texts)


def test_only_some_rows_are_named_and_all_counted(tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"5\n" * 1000)
    report = tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer, broken="skip")
    assert report.left_out == {"not-object": 1000}
    assert [one["row"] for one in report.named] == list(range(1, 21))
    assert verify(tmp_path / "out").faults == ()


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("separator", [None, "\n"])
def test_a_text_that_is_too_long(tokenizer: Any, tmp_path: Path, separator: str | None) -> None:
    (tmp_path / "a.txt").write_bytes(b"x" * 5000 + b"\nshort\n")
    (tmp_path / "b.txt").write_bytes(b"last")
    report = tokenize(
        tmp_path / "*.txt", tmp_path / "out", tokenizer, max_document_bytes=1000,
        separator=separator, broken="skip",
    )  # fmt: skip
    assert report.left_out == {"too-long": 1}
    kept = ["short", "last"] if separator else ["last"]
    assert read_documents(tmp_path / "out") == expected(tokenizer, kept)


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("cut", [5, 30, 2000, -9, -1])
def test_a_truncated_gzip_gives_what_is_in_it(tokenizer: Any, tmp_path: Path, cut: int) -> None:
    texts = make_texts(100)
    packed = gzip.compress(json_lines(texts))
    (tmp_path / "a.jsonl.gz").write_bytes(packed[:cut])
    (tmp_path / "b.jsonl").write_bytes(GOOD)
    inputs = [tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl"]
    with pytest.raises(CorpusError, match="in the middle of its compressed data") as error:
        tokenize(inputs, tmp_path / "stop", tokenizer)
    assert error.value.reason == "damaged"

    report = tokenize(inputs, tmp_path / "out", tokenizer, broken="skip", keep_empty=True)
    (damage,) = report.damaged
    *found, last = read_documents(tmp_path / "out")
    assert [last] == expected(tokenizer, ["good"])
    assert found == expected(tokenizer, texts)[: len(found)]
    assert damage["row"] == len(found) == report.rows - 1
    if cut < 0:
        assert len(found) >= 99


def test_damaged_gzip_and_no_gzip_behind_it(tokenizer: Any, tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(json_lines(["text " * 50])))
    for data in (bytes(packed[:-5]) + b"\x00\x01\x02\x03\x04", bytes(packed) + b"no gzip"):
        (tmp_path / "a.jsonl.gz").write_bytes(data)
        with pytest.raises(CorpusError, match="is damaged: "):
            tokenize(tmp_path / "a.jsonl.gz", tmp_path / "out", tokenizer, overwrite=True)


@pytest.mark.parametrize("errors", ["strict", "replace"])
@pytest.mark.parametrize("name", ["a.txt.gz", "a.jsonl.zst", "a.txt.ZSTD"])
def test_a_name_that_says_compressed(
    tokenizer: Any, tmp_path: Path, name: str, errors: Any
) -> None:
    (tmp_path / name).write_bytes(b"BZh91AY&SY\xad\xe1" * 9)
    (tmp_path / "b.txt").write_bytes(b"good")
    inputs = [tmp_path / name, tmp_path / "b.txt"]
    message = "says that it is compressed, its first bytes do not; replace the file, or rename it"
    with pytest.raises(CorpusError, match=message) as error:
        tokenize(inputs, tmp_path / "stop", tokenizer, errors=errors)
    assert (error.value.path, error.value.reason) == (str(tmp_path / name), "damaged")
    report = tokenize(inputs, tmp_path / "out", tokenizer, errors=errors, broken="skip")
    assert [(one["row"], one["reason"]) for one in report.damaged] == [(0, "damaged")]
    assert read_documents(tmp_path / "out") == expected(tokenizer, ["good"])


@pytest.mark.parametrize("size", [3, 4095, 4096, 9000])
def test_text_may_have_the_name_of_a_compressed_file(
    tokenizer: Any, tmp_path: Path, size: int
) -> None:
    text = "x" * (size - 2) + "é\nlast"  # the bytes that are looked at end within a character
    (tmp_path / "a.txt.gz").write_bytes(text.encode())
    options: dict[str, Any] = {"separator": "\n", "shard_tokens": 1}
    tokenize(tmp_path / "a.txt.gz", tmp_path / "out", tokenizer, **options)
    assert read_documents(tmp_path / "out") == expected(tokenizer, text.split("\n"))
    report = tokenize(tmp_path / "a.txt.gz", tmp_path / "out", tokenizer, resume=True, **options)
    assert report.documents == 2


def test_a_file_that_is_not_there(tokenizer: Any, tmp_path: Path) -> None:
    for name in ("gone.txt", "gone*.txt", ".", "a\0b.txt"):
        with pytest.raises(CorpusError):
            tokenize(str(tmp_path / name), tmp_path / "out", tokenizer)
    (tmp_path / "data.csv").write_text("x")
    with pytest.raises(CorpusError, match="does not say what it holds; pass input_format"):
        tokenize(tmp_path / "data.csv", tmp_path / "out", tokenizer)
    with pytest.raises(CorpusError, match="there is no input"):
        tokenize([], tmp_path / "out", tokenizer)


@pytest.fixture
def not_root() -> Iterator[Path]:
    """A folder for somebody who may not read everything; root is somebody else meanwhile."""
    if not hasattr(os, "geteuid"):
        pytest.skip("files are protected in another way here")
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        if root:
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            if root:
                os.seteuid(0)


def test_an_unreadable_file(tokenizer: Any, not_root: Path) -> None:
    (not_root / "a.txt").write_text("x")
    (not_root / "b.txt").write_text("good")
    (not_root / "a.txt").chmod(0)
    with pytest.raises(CorpusError, match="cannot be read: Permission denied"):
        tokenize(not_root / "a.txt", not_root / "stop", tokenizer)
    report = tokenize(not_root / "*.txt", not_root / "out", tokenizer, broken="skip")
    assert [one["reason"] for one in report.damaged] == ["unreadable"]
    assert (report.documents, report.tokens) == (1, len(tokenizer.encode("good")))
    (not_root / "mine").mkdir(0o500)
    with pytest.raises(CorpusWriteError, match="cannot be written: permission denied"):
        tokenize(not_root / "b.txt", not_root / "mine" / "out", tokenizer)


def test_a_file_that_fails_while_it_is_read(
    tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "b.txt").write_text("good")
    fails = str(tmp_path / "a.txt")
    real = open

    def opened(path: Any, *args: Any, **kwargs: Any) -> Any:
        if path == fails:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path, *args, **kwargs)

    monkeypatch.setattr("builtins.open", opened)
    with pytest.raises(CorpusError, match="Permission denied"):
        tokenize(tmp_path / "*.txt", tmp_path / "stop", tokenizer)
    report = tokenize(tmp_path / "*.txt", tmp_path / "out", tokenizer, broken="skip")
    assert [one["reason"] for one in report.damaged] == ["unreadable"]
    assert read_documents(tmp_path / "out") == expected(tokenizer, ["good"])


@pytest.mark.parametrize("after", [0, 1, 7, 20])
def test_a_full_disk_keeps_whole_shards(
    tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    (tmp_path / "a.jsonl").write_bytes(json_lines(make_texts(100)))
    options: dict[str, Any] = {"shard_tokens": 1000, "keep_empty": True}
    tokenize(tmp_path / "a.jsonl", tmp_path / "whole", tokenizer, **options)
    real, writes = _files.File.write, 0

    def write(self: Any, data: Any) -> int:
        nonlocal writes
        writes += 1
        if writes > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(self, data)

    monkeypatch.setattr(_files.File, "write", write)
    with pytest.raises(CorpusWriteError, match="no space left") as error:
        tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer, **options)
    assert isinstance(error.value, OSError)
    monkeypatch.undo()
    if after:
        seen = verify(tmp_path / "out")
        assert (seen.complete, seen.faults) == (False, ())
    assert not list((tmp_path / "out").glob(".*"))

    tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer, resume=True, **options)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 200 KB of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(folder)]
    try:
        ran = subprocess.run(mount, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        pytest.skip("there is no `mount` here")
    if ran.returncode:
        pytest.skip(f"no file system can be mounted here: {ran.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], timeout=60, check=True)


@pytest.mark.parametrize("form", ["bin", "parquet"])
def test_a_disk_that_is_really_full(tmp_path: Path, small_disk: Path, form: str) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    (tmp_path / "a.jsonl").write_bytes(json_lines(make_texts(2000)))

    def run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "kizami", "corpus", "a.jsonl", "-o", str(folder)]
        command += ["-f", form, "--shard-tokens", "20000", *more]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )

    assert run(tmp_path / "whole").returncode == 0
    full = run(small_disk / "out")
    assert (full.returncode, full.stdout) == (1, "")
    assert "cannot be written: no space left on device" in full.stderr
    assert "go on with `--resume`" in full.stderr
    seen = verify(small_disk / "out")
    assert (seen.complete, seen.faults) == (False, ())
    assert 0 < seen.shards < len(list((tmp_path / "whole").glob("shard-*")))

    more = ["mount", "-o", "remount,size=50m", str(small_disk)]
    subprocess.run(more, timeout=60, check=True)
    assert run(small_disk / "out", "--resume").returncode == 0
    assert contents(small_disk / "out") == contents(tmp_path / "whole")


def test_an_empty_corpus(tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"")
    (tmp_path / "b.jsonl").write_bytes(b"\n\n")
    report = tokenize(tmp_path / "*.jsonl", tmp_path / "out", tokenizer)
    assert (report.shards, report.documents, report.left_out) == (0, 0, {"blank": 2})
    assert verify(tmp_path / "out").complete


def test_verify_sees_every_change(tokenizer: Any, small: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(json_lines(make_texts(50)))
    out = tmp_path / "out"
    tokenize(tmp_path / "a.jsonl", out, tokenizer, shard_tokens=1000)
    assert verify(out, tokenizer).faults == ()
    (fault,) = verify(out, small).faults
    assert "another tokenizer" in fault
    for path in sorted(out.glob("shard-*")):
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        assert [f"{path.name} has another checksum than manifest.json says"] == list(
            verify(out).faults
        )
        path.write_bytes(data[:-1])
        assert "another size" in verify(out).faults[0]
        path.unlink()
        assert "cannot be read" in verify(out).faults[0]
        path.write_bytes(data)
    (out / "shard-09999.bin").write_bytes(b"")
    assert verify(out).faults == ("shard-09999.bin is not in manifest.json",)
    with pytest.raises(CorpusError, match=r"has no manifest\.json"):
        verify(tmp_path)
    for text in ("", "[]", '{"kind": "other"}', '{"kind": "kizami-corpus", "version": 1}'):
        (out / "manifest.json").write_text(text)
        with pytest.raises(CorpusError, match="no manifest of a corpus"):
            verify(out)


def test_verify_knows_ids_of_no_vocabulary(tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    out = tmp_path / "out"
    tokenize(tmp_path / "a.txt", out, tokenizer)
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["tokenizer"]["vocab_size"] = 5
    (out / "manifest.json").write_text(json.dumps(manifest))
    assert verify(out).faults == ("shard-00000.bin holds ids outside the vocabulary",)


def test_an_estimate_is_near(tokenizer: Any, tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.jsonl").write_bytes(json_lines(make_texts(40, number)))
    found = estimate(tmp_path / "*.jsonl", tokenizer, samples=5, shard_tokens=1000)
    report = tokenize(tmp_path / "*.jsonl", tmp_path / "out", tokenizer, shard_tokens=1000)

    assert found.tokens == pytest.approx(report.tokens, rel=0.2)
    assert found.output_bytes == found.tokens * 4
    assert len(found.inputs) == 20
    (tmp_path / "0.jsonl").write_bytes(b"5\n")
    with pytest.raises(CorpusError, match="line 1"):
        estimate(tmp_path / "*.jsonl", tokenizer)
