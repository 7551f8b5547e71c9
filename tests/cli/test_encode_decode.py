"""`kizami encode`, `decode` and `count`: data in, data out, byte for byte."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HELLO = [19180, 11, 2695]

TRICKY = {
    "empty": b"",
    "crlf": b"one\r\ntwo\r\n",
    "no final newline": b"one\ntwo",
    "lone carriage return": b"a\rb\r",
    "only newlines": b"\n\n\r\n",
    "emoji": "👩‍👩‍👧 naïve 中文 🎉".encode(),
    "byte order mark": "\ufefftext".encode(),
    "nul and escapes": b"\x00\x1b[31m\x07",
    "look-alikes": b"<|open|>system<|sep|> [EOS]",
    "decomposed": "e\u0301 \u00e9 \ufb01".encode(),
}


@pytest.mark.parametrize("form", ["text", "json", "npy"])
@pytest.mark.parametrize("data", TRICKY.values(), ids=TRICKY)
def test_encode_then_decode_gives_every_byte_back(invoke: Any, data: bytes, form: str) -> None:
    encoded = invoke("encode", "--format", form, input=data)
    decoded = invoke("decode", input=encoded.stdout_bytes)

    assert encoded.exit_code == decoded.exit_code == 0
    assert decoded.stdout_bytes == data


def test_a_real_pipe_gives_the_file_back(tmp_path: Path) -> None:
    data = b"".join(TRICKY.values()) * 50
    (tmp_path / "prompt.txt").write_bytes(data)
    command = [sys.executable, "-m", "kizami"]
    encode = subprocess.Popen(
        [*command, "encode", "prompt.txt"], cwd=tmp_path, stdout=subprocess.PIPE
    )
    assert encode.stdout is not None
    with encode.stdout:
        decode = subprocess.run(
            [*command, "decode"], stdin=encode.stdout, capture_output=True, timeout=60, check=True
        )

    assert encode.wait(timeout=60) == 0
    assert decode.stdout == data


def test_npy_passes_through_a_real_pipe(run: Any) -> None:
    encoded = run("encode", "--format", "npy", input=b"Hello, world")
    ids = np.load(io.BytesIO(encoded.stdout))

    assert ids.dtype == np.uint32
    assert ids.tolist() == HELLO
    assert run("decode", input=encoded.stdout).stdout == b"Hello, world"


def test_formats(invoke: Any) -> None:
    assert invoke("encode", input="Hello, world").stdout == "19180 11 2695\n"
    assert json.loads(invoke("encode", "-f", "json", input="Hello, world").stdout) == HELLO
    assert invoke("encode", "-f", "json", input="").stdout == "[]\n"
    assert invoke("encode", input="").stdout == "\n"


def test_text_is_one_line_however_long(invoke: Any) -> None:
    text = "word " * 70_000  # more than one block of output
    written = invoke("encode", input=text).stdout

    assert written.count("\n") == 1
    assert len(written.split()) == int(invoke("count", input=text).stdout)
    assert json.loads(invoke("encode", "-f", "json", input=text).stdout) == [
        int(word) for word in written.split()
    ]


def test_out_takes_its_format_from_the_suffix(invoke: Any, tmp_path: Path) -> None:
    for name in ("ids.npy", "ids.json", "ids.txt"):
        result = invoke("encode", "--out", name, input="Hello, world")
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")

    assert np.load(tmp_path / "ids.npy").tolist() == HELLO
    assert json.loads((tmp_path / "ids.json").read_bytes()) == HELLO
    assert (tmp_path / "ids.txt").read_bytes() == b"19180 11 2695\n"
    assert invoke("encode", "-f", "json", "--out", "-", input="Hello").stdout == "[19180]\n"


def test_special_text_is_text_unless_allowed(invoke: Any) -> None:
    assert invoke("encode", input="<|open|>").stdout == "27 91 4454 91 29\n"
    assert invoke("encode", "--allow-special", input="<|open|>").stdout == "163587\n"
    assert invoke("count", "--allow-special", input="<|open|>").stdout == "1\n"


def test_another_model(invoke: Any) -> None:
    text = "<|im_user|>"
    assert invoke("encode", "--allow-special", "-m", "kimi-k2", input=text).stdout == "163587\n"


@pytest.mark.parametrize(
    "given",
    [
        "19180 11 2695",
        "19180,11,2695",
        "19180, 11,\n\t2695\r\n",
        "[19180, 11,\n 2695]",
        "\n [19180,11,2695]",
    ],
)
def test_decode_reads_every_way_to_write_ids(invoke: Any, given: str) -> None:
    assert invoke("decode", input=given).stdout == "Hello, world"


@pytest.mark.parametrize("dtype", [np.uint32, np.int64, np.int32, np.uint8])
def test_decode_reads_arrays_of_any_integer_type(invoke: Any, dtype: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.array([11, 11], dtype))
    assert invoke("decode", "ids.npy").stdout == ",,"


def test_decode_nothing(invoke: Any) -> None:
    for nothing in ("", " \n", "[]"):
        result = invoke("decode", input=nothing)
        assert (result.exit_code, result.stdout_bytes) == (0, b"")


def test_decode_bytes_keeps_what_is_no_utf8(invoke: Any, tokenizer: Any) -> None:
    ids = tokenizer.encode("🎉").tolist()[:1]
    whole = tokenizer.decode_bytes(ids)
    given = " ".join(map(str, ids))

    assert invoke("decode", "--bytes", input=given).stdout_bytes == whole
    assert invoke("decode", input=given).stdout == whole.decode("utf-8", "replace")
    with_control = f"163586 {given}"
    skipped = invoke("decode", "--bytes", "--skip-special", input=with_control)
    assert skipped.stdout_bytes == whole


def test_skip_special_leaves_out_what_the_vocabulary_flags(invoke: Any) -> None:
    assert invoke("decode", input="163587 19180 163586").stdout == "<|open|>Hello<|end_of_msg|>"
    skipped = invoke("decode", "--skip-special", input="163587 19180 163586")
    assert skipped.stdout == "<|open|>Hello"


def test_count_one_is_a_number_and_several_are_a_table(invoke: Any, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_bytes(b"Hello, world")
    (tmp_path / "many.txt").write_bytes(b"Hello, world" * 5)

    assert invoke("count", "one.txt").stdout == "3\n"
    assert invoke("count", input="Hello, world").stdout == "3\n"
    many = invoke("count", "many.txt").stdout.strip()
    total = int(many) + 3
    assert invoke("count", "one.txt", "many.txt").stdout == (
        f" 3 one.txt\n{many} many.txt\n{total} total\n"
    )


def test_errors_replace_reads_what_is_no_utf8(invoke: Any, tokenizer: Any) -> None:
    wanted = tokenizer.encode("a\ufffdb").tolist()
    result = invoke("encode", "--errors", "replace", "-f", "json", input=b"a\xffb")
    assert json.loads(result.stdout) == wanted
    assert invoke("count", "--errors", "replace", input=b"a\xffb").stdout == f"{len(wanted)}\n"


def test_models_lists_names_that_load(invoke: Any) -> None:
    head, *lines = invoke("models").stdout.splitlines()
    assert head.split() == ["MODEL", "IDS", "CONTROL", "CHAT"]
    assert lines[0].split() == ["kimi-k3", "163840", "256", "yes"]
    for line in lines:
        assert invoke("count", "-m", line.split()[0], input="Hello, world").stdout == "3\n"


def test_version_is_that_of_the_package(invoke: Any) -> None:
    import kizami

    assert invoke("--version").stdout == f"kizami {kizami.__version__}\n"


def test_the_installed_command_is_the_same_program() -> None:
    from importlib.metadata import entry_points

    from kizami.cli import main

    (found,) = entry_points(group="console_scripts", name="kizami")
    assert found.load() is main
