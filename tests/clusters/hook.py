"""What a worker process of a test does besides: it notes what it loads, and one of them dies.

The cluster runs `install` in each worker. Files in the folder `KIZAMI_TEST_FOLDER`:

- `load-PID-N`: process PID loaded a tokenizer for the N-th time;
- `table-PID-N`: it began its N-th table;
- `killed-PID`: it was killed (kill -9) in the middle of a table. There is at most one such file,
  and none unless there is a file `kill`.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from kizami.corpus import _columns
from kizami.corpus._columns import Columns

# The table in which a worker dies: the second one, so that work that is done is lost, too.
DIES_IN = 2


def install() -> None:
    """Counts in this process from now on."""
    folder = Path(os.environ["KIZAMI_TEST_FOLDER"])
    pid = os.getpid()
    counts = {"load": 0, "table": 0}

    def note(what: str) -> int:
        counts[what] += 1
        Path(folder, f"{what}-{pid}-{counts[what]}").touch()
        return counts[what]

    load, ids = _columns._load, Columns._ids

    def noting(pickled: bytes) -> Any:
        note("load")
        return load(pickled)

    def dying(self: Columns, *args: Any) -> Any:
        result = ids(self, *args)
        if note("table") == DIES_IN and _first(folder):
            Path(folder, f"killed-{pid}").touch()
            os.kill(pid, signal.SIGKILL)
        return result

    _columns._load = noting
    Columns._ids = dying  # type: ignore[method-assign]


def _first(folder: Path) -> bool:
    """Whether a worker is to be killed, and this process is the first that asks."""
    try:
        os.rename(folder / "kill", folder / "kill-taken")
    except FileNotFoundError:
        return False
    return True
