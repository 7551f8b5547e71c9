"""Where tests find the vectors and model files that live outside the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[1]


def shared_path(*parts: str) -> Path:
    """Path of a shared file or folder; skips the running test if it is not there.

    The folder is `$KIZAMI_SHARED`, or `shared` beside the repository.
    """
    folder = Path(os.environ.get("KIZAMI_SHARED") or _REPOSITORY.parent / "shared")
    path = folder.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path} is not there; set KIZAMI_SHARED to the folder of shared test data")
    return path
