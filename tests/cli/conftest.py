"""Running the command in this process, in one of its own, and on a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kizami.cli import main

Invoke = Callable[..., Result]
Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """`invoke("encode", "-", input=b"...")` in this process; the working folder is `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    try:
        runner = CliRunner(mix_stderr=False)  # type: ignore[call-arg]  # click before 8.2
    except TypeError:
        runner = CliRunner()

    def call(*args: str, input: bytes | str | None = None) -> Result:
        return runner.invoke(main, args, input=input, prog_name="kizami")

    return call


def environment(**extra: str) -> dict[str, str]:
    """This process's environment without what changes how output looks."""
    ours = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS")}
    return {**ours, "TERM": "xterm", **extra}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """`run("encode", input=b"...")` as `python -m kizami`, in a process of its own."""

    def call(*args: str, input: bytes = b"", **extra: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "kizami", *args],
            input=input,
            capture_output=True,
            cwd=tmp_path,
            env=environment(**extra),
            timeout=60,
            check=False,
        )

    return call


@pytest.fixture
def on_terminal(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """`on_terminal("models")` with standard output and error on a terminal of 80 columns."""
    pty = pytest.importorskip("pty", reason="needs pseudo-terminals")

    def call(*args: str, **extra: str) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "kizami", *args],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            cwd=tmp_path,
            env=environment(COLUMNS="80", **extra),
        )
        os.close(theirs)
        blocks = []
        while True:
            try:
                block = os.read(ours, 1 << 16)
            except OSError:  # Linux says so when the last writer is gone
                break
            if not block:
                break
            blocks.append(block)
        os.close(ours)
        return process.wait(timeout=60), b"".join(blocks).decode().replace("\r\n", "\n")

    return call
