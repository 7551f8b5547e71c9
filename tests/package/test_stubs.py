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
    # mypy finds an installed package by itself, and refuses it in MYPYPATH; one that is imported
    # from a source tree it finds by MYPYPATH only. In tmp_path it finds no settings.
    place = Path(kizami.__file__).parents[1]
    environment = dict(os.environ)
    if place.name != "site-packages":
        environment["MYPYPATH"] = str(place)
    ran = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "kizami._native"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
