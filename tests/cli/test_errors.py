"""Errors of the command line: exit code, wording, hint, empty standard output, no traceback."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# name: (command line, standard input, exit code, what the error says, what the hint says)
CASES: dict[str, tuple[list[str], bytes, int, str, str]] = {
    "no such command": (["foo"], b"", 2, "no such command `foo`", "kizami --help"),
    "no such option": (["encode", "--frm"], b"", 2, "no such option `--frm`", "encode --help"),
    "option before the command": (
        ["--model", "kimi-k2", "encode", "f"],
        b"",
        2,
        "no such option `--model`",
        "^`--model` goes after the command: `kizami COMMAND --model ...`$",
    ),
    "short option before the command": (["-f", "npy"], b"", 2, "`-f`", "goes after the command"),
    "no option of any command": (["--frm", "encode"], b"", 2, "no such option", "^run `kizami --h"),
    "text for a path": (
        ["encode", "Hello, world"],
        b"",
        2,
        "cannot read `Hello, world`: no such file",
        r"^check the path; .*`printf 'Hello, world' \| kizami encode`$",
    ),
    "long text for a path": (["count", "x" * 5000], b"", 2, "too long", r"\| kizami count`$"),
    "missing argument": (["chat"], b"", 2, "missing argument `FILE`", "chat --help"),
    "bad choice": (["encode", "-f", "xml"], b"", 2, "`xml` is not one of `text`", "encode --help"),
    "option without value": (["encode", "--out"], b"", 2, "`--out`", "--help"),
    "no such file": (
        ["encode", "gone"],
        b"",
        2,
        "cannot read `gone`: no such file",
        "check the path",
    ),
    "not utf-8": (
        ["encode"],
        b"ab\xff",
        2,
        "standard input is not UTF-8: byte 0xff at offset 2",
        "--errors replace",
    ),
    "cut utf-8": (["count"], b"ab\xe4\xb8", 2, "byte 0xe4 at offset 2", "--errors replace"),
    "no such model": (["encode", "-m", "gpt"], b"", 2, "no tokenizer `gpt`", "kizami models"),
    "a folder without ranks": (
        ["encode", "-m", "."],
        b"",
        2,
        "has no tokenizer that Kizami reads",
        "Kizami reads",
    ),
    "out and format": (["encode", "-f", "text", "-o", "i.npy"], b"", 2, "contradict", "leave out"),
    "out in no folder": (
        ["encode", "-o", "no/i.npy"],
        b"x",
        1,
        "cannot write to `no/i.npy`",
        "check the folder",
    ),
    "words are no ids": (
        ["decode"],
        b"1 2 x3\n",
        2,
        "holds `x3` at offset 4, which is no token id",
        "JSON array",
    ),
    "float": (["decode"], b"1.5", 2, "holds `1.5` at offset 0", "integers"),
    "underscore": (["decode"], b"1_0", 2, "holds `1_0`", "integers"),
    "minus alone": (["decode"], b"1 -", 2, "holds `-` at offset 2", "integers"),
    "other digits": (["decode"], "١".encode(), 2, "holds `١`", "integers"),
    "too many digits": (["decode"], b"9" * 5000, 2, "too long", "token ids"),
    "id too large": (
        ["decode"],
        b"1 163840",
        2,
        "token id 163840 at position 1 is outside",
        "ids of this",
    ),
    "id negative": (["decode"], b"-1", 2, "token id -1 at position 0", "ids of this"),
    "json cut": (["decode"], b"[1, 2", 2, "is not a valid JSON array", "one JSON array"),
    "json list in list": (["decode"], b"[1, [2]]", 2, "position 1 must be an int, not list", ""),
    "json text": (["decode"], b'["1"]', 2, "must be an int, not str", ""),
    "npy cut": (["decode"], b"\x93NUMPY\x01\x00", 2, "damaged `.npy`", "np.save"),
    "chat no json": (["chat", "-"], b"{,}", 2, "is not valid JSON", "^look at line 1 column 2, "),
    "chat place": (["chat", "-"], b"[1,\n  ,]", 2, "line 2 column 3", "^look at line 2 column 3, "),
    "chat nothing": (["chat", "-"], b" \n", 2, "standard input is empty", "messages"),
    "chat npy": (
        ["chat", "-"],
        b"\x93NUMPY\x01\x00",
        2,
        "standard input is a NumPy file, not JSON",
        "a JSON list of messages",
    ),
    "chat one message": (
        ["chat", "-"],
        b'{"role":"user","content":"Hi"}',
        2,
        "standard input holds a single message, not a list",
        r'put it in a list: \[\{"role": ',
    ),
    "chat choice": (
        ["chat", "-", "--tool-choice", "any"],
        b"[]",
        2,
        "`any` is not one of `required`, `none`, `auto`",
        "chat --help",
    ),
    "chat deep": (["chat", "-"], b"[" * 200_000, 2, "nested too deeply", "messages"),
    "chat digits": (["chat", "-"], b"[" + b"9" * 5000 + b"]", 2, "too long", "messages"),
    "chat not utf-8": (["chat", "-"], b'["\xff"]', 2, "byte 0xff at offset 2", "--errors replace"),
    "chat number": (["chat", "-"], b"5", 2, "holds no messages", "a JSON list of messages"),
    "chat no messages": (["chat", "-"], b'{"tools":[]}', 2, "holds no messages", "a JSON list"),
    "chat unknown keys": (
        ["chat", "-"],
        b'{"messages":[],"model":1,"top_p":2}',
        2,
        "unknown keys `model`, `top_p`",
        "known are messages, tools,",
    ),
    "chat one unknown key": (
        ["chat", "-"],
        b'{"messages":[],"n":1}',
        2,
        "unknown key `n`",
        "known",
    ),
    "chat word for boolean": (
        ["chat", "-"],
        b'{"messages":[],"thinking":"false"}',
        2,
        "`thinking` is neither",
        "boolean",
    ),
    "chat bad content": (
        ["chat", "-"],
        b'[{"role":"user","content":5}]',
        2,
        "message 0 has content of int 5",
        "give text",
    ),
    "chat no role": (["chat", "-"], b"[{}]", 2, "message 0 has no `role`", "give"),
    "chat effort": (
        ["chat", "-"],
        b'{"messages":[],"thinking_effort":"medium"}',
        2,
        "`thinking_effort`",
        "give",
    ),
    "chat model": (["chat", "-", "-m", "kimi-k2"], b"[]", 2, "no chat renderer", "kizami models"),
    "chat format of nothing": (
        ["chat", "-", "--stats", "-f", "npy"],
        b"[]",
        2,
        "`--stats` prints none",
        "--out",
    ),
    "chat two outputs": (["chat", "-", "--stats", "-o", "-"], b"[]", 2, "both want", "file"),
    "chat tools gone": (["chat", "-", "--tools", "gone"], b"[]", 2, "cannot read `gone`", "check"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_error(invoke: Any, case: tuple[list[str], bytes, int, str, str]) -> None:
    args, given, code, message, hint = case
    result = invoke(*args, input=given)

    assert result.exit_code == code, result.output
    assert result.stdout == ""
    check_form(result.stderr)
    error, _, way_out = result.stderr.partition("\n\nhint: ")
    assert message in error
    assert re.search(hint, way_out)


def check_form(text: str) -> None:
    """`error: ` in lower case without a final period, a blank line, `hint: `, all on two lines."""
    error, blank, hint = text.rstrip("\n").split("\n")
    assert blank == ""
    assert error.startswith("error: ")
    assert hint.startswith("hint: ")
    assert len(hint) > len("hint: ") + 5
    assert not error.endswith(".")
    first = error.removeprefix("error: ").split()[0]
    assert first == first.lower() or not first.isalpha()
    assert "Traceback" not in text


def test_an_environment_that_says_nothing_is_a_warning_like_others(run: Any) -> None:
    for args in (["count"], ["models"]):
        result = run(*args, input=b"x", KIZAMI_NUM_THREADS="two")
        assert result.returncode == 0
        assert result.stderr.decode().splitlines() == [
            "warning: KIZAMI_NUM_THREADS='two' is ignored; it must be a number from 1 to 65536"
        ]
    assert run("count", input=b"x", KIZAMI_NUM_THREADS="2").stderr == b""


def test_the_script_too_words_its_warning_about_the_environment(tmp_path: Path) -> None:
    script = tmp_path / "kizami"  # as pip writes it
    script.write_text("import sys\nfrom kizami.cli import main\nsys.exit(main())\n")
    result = subprocess.run(
        [sys.executable, str(script), "count"],
        input=b"x",
        env={**os.environ, "KIZAMI_NUM_THREADS": "two"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert result.stdout == b"1\n"
    assert result.stderr.startswith(b"warning: KIZAMI_NUM_THREADS='two' is ignored; ")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows words it in another way")
def test_a_folder_is_no_file(invoke: Any) -> None:
    result = invoke("encode", ".")
    assert result.exit_code == 2
    check_form(result.stderr)
    assert "cannot read `.`: is a directory" in result.stderr


def test_tools_must_be_a_list(invoke: Any, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text('{"name": "f"}')
    result = invoke("chat", "-", "--tools", "tools.json", input="[]")
    assert result.exit_code == 2
    assert "`tools.json` holds no list" in result.stderr


def test_npy_of_wrong_shape_or_type(invoke: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.zeros((2, 2), np.uint32))
    assert "one dimension" in invoke("decode", "ids.npy").stderr
    np.save(tmp_path / "ids.npy", np.zeros(2))
    assert "must be integers, not float64" in invoke("decode", "ids.npy").stderr
    np.save(tmp_path / "ids.npy", np.array([object()]), allow_pickle=True)
    result = invoke("decode", "ids.npy")
    assert result.exit_code == 2
    check_form(result.stderr)


def test_an_error_in_one_of_several_files_leaves_stdout_empty(invoke: Any, tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(b"x")
    result = invoke("count", "good", "gone")
    assert (result.exit_code, result.stdout) == (2, "")


def test_control_characters_in_names_do_not_reach_the_terminal(invoke: Any) -> None:
    evil = json.dumps({"messages": [], "\x1b]0;owned\x07\u202e": 1})
    result = invoke("chat", "-", input=evil)
    assert r"`\x1b]0;owned\x07\u202e`" in result.stderr
    assert result.stderr.replace("\n", "").isprintable()


def test_no_command_shows_the_help_and_fails(run: Any) -> None:
    result = run()
    assert b"kizami chat conversation.json --stats" in result.stdout + result.stderr


def test_errors_of_a_real_process(run: Any) -> None:
    result = run("encode", "gone")
    assert (result.returncode, result.stdout) == (2, b"")
    check_form(result.stderr.decode())


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGPIPE and no EPIPE")
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"word " * 400_000)
    process = subprocess.Popen(
        [sys.executable, "-m", "kizami", "encode", "big"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("args", [["encode"], ["models"], ["count"]])
def test_a_full_disk_is_said_once(args: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [sys.executable, "-m", "kizami", *args],
            input=b"text",
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert result.returncode == 1
    assert b"cannot write to standard output: no space left on device" in result.stderr
    check_form(result.stderr.decode())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_interrupt_exits_130_without_a_traceback(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        [sys.executable, "-m", "kizami", "encode", str(fifo)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A job in the background ignores interrupts, and its children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with fifo.open("wb"):  # opens as soon as the command reads, and it reads until this is closed
        for _ in range(30):
            process.send_signal(signal.SIGINT)
            # The first may come between the command's open and its read, and wait there unseen.
            with contextlib.suppress(subprocess.TimeoutExpired):
                stdout, stderr = process.communicate(timeout=2)
                break
        else:
            process.kill()
            pytest.fail("the command goes on after thirty interrupts")
    assert process.returncode == 130
    assert stdout == b""
    assert b"Traceback" not in stderr


def test_binary_output_does_not_go_to_a_terminal(on_terminal: Any, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"x")
    (tmp_path / "ids").write_bytes(b"1 2")
    for args in (["encode", "text", "-f", "npy"], ["decode", "ids", "--bytes"]):
        code, text = on_terminal(*args, NO_COLOR="1")
        assert code == 2
        assert "is binary, and standard output is a terminal" in text
        check_form(text)


def test_colour_only_on_a_terminal_and_never_with_no_color(on_terminal: Any, run: Any) -> None:
    assert "\x1b[31m" in on_terminal("encode", "gone")[1]
    assert "\x1b" not in on_terminal("encode", "gone", NO_COLOR="1")[1]
    assert b"\x1b" not in run("encode", "gone").stderr
