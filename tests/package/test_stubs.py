"""The stub of the native module says what the module has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import kizami
import pytest

# PyO3 gives every module a list of its names; the stub needs none.
ALLOWED = "kizami._native.__all__\n"


def test_the_stub_equals_the_module(tmp_path: Path) -> None:
    pytest.importorskip("mypy.stubtest", reason="mypy is not installed (extra: lint)")
    allowlist = tmp_path / "allowed.txt"
    allowlist.write_text(ALLOWED)
    options = ["--allowlist", str(allowlist), "--ignore-unused-allowlist"]
    # mypy looks for the package where it is imported from, and finds no settings in tmp_path.
    ran = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "kizami._native", *options],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(Path(kizami.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
