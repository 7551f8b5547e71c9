"""Every example runs from any folder, exits 0 and prints something."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))


def run(script: Path, folder: Path) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=folder,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr.decode()
    assert result.stderr == b""
    return result.stdout.decode()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_example_runs(script: Path, tmp_path: Path) -> None:
    assert len(run(script, tmp_path).splitlines()) >= 5


def test_there_are_examples() -> None:
    assert {script.name for script in SCRIPTS} >= {
        "count_batch.py",
        "first_prompt.py",
        "injection.py",
    }


def test_the_attack_works_on_a_string_and_not_on_segments(tmp_path: Path) -> None:
    text = run(FOLDER / "injection.py", tmp_path)
    flat, typed = text.split("typed segments:")
    assert "messages that the model sees: 2" in flat
    assert "messages that the model sees: 1" in typed
