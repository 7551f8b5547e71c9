"""The loop of a worker process: requests in as JSON lines, answers out as JSON lines.

The first request loads the engine. Inputs come as files, so that a request is small and every
engine reads the same bytes; the `str` objects made from them are new, and hold no cached UTF-8.
Only the call itself is timed, with the garbage collector off.

Whatever an engine prints goes to standard error: the answers have a file descriptor of their own.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter_ns
from typing import Any, TextIO

from .engines import Engine, ModelFiles, engine_class
from .memory import rss
from .tasks import TASKS

__all__ = ["main"]


def main() -> None:
    """Answer requests until standard input ends."""
    answers = _own_output()
    engine: Engine | None = None
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        task = request.pop("task")
        try:
            if task == "load":
                engine, answer = _load(**request)
            else:
                run: Callable[..., dict[str, Any]] = TASKS[task]
                answer = run(engine, **request)
        except Exception as error:  # whatever a rival raises is its result, not our failure
            answer = {"fault": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _own_output() -> TextIO:
    number = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return os.fdopen(number, "w", encoding="utf-8")


def _load(
    engine: str, folder: str, threads: int | None, cpus: list[int] | None, step: str
) -> tuple[Engine, dict[str, Any]]:
    if cpus:
        os.sched_setaffinity(0, cpus)
    under = engine_class(engine)()
    files = ModelFiles(Path(folder))
    before = rss()
    start = perf_counter_ns()
    under.bring()
    brought = perf_counter_ns()
    getattr(under, step)(files)
    loaded = perf_counter_ns()
    after = rss()
    if threads is not None:
        under.set_threads(threads)
    return under, {
        "version": _version(under.distribution),
        "import_ns": brought - start,
        "load_ns": loaded - brought,
        "rss": after - before,
        "way": under.way,
    }


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"
