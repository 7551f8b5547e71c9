"""The stub of the native module says what the module has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import kizami
import pytest


def test_the_stub_equals_the_module(tmp_path: Path) -> None:
    pytest.importorskip("mypy.stubtest", reason="mypy is not installed (extra: lint)")
    # mypy looks for the package where it is imported from, and finds no settings in tmp_path.
    ran = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "kizami._native"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(Path(kizami.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
