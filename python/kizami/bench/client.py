"""A worker process, seen from the harness.

Answers have a time limit: an engine that hangs, crashes or takes minutes for a megabyte becomes a
fault with a reason, and the others go on.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["FaultError", "Worker", "WorkerSettings"]

_BOOT = (
    "import sys; sys.path[:] = [{folder!r}, *filter(None, sys.path)]; "
    "from lab.worker import main; main()"
)
_KNOBS = ("KIZAMI_NUM_THREADS", "RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS", "FASTOKENS_BPE_THREADS")
_numbers = count()


class FaultError(Exception):
    """An engine could not do what it was asked; the text says why."""


class WorkerSettings:
    """What is the same for all workers of a run.

    Attributes:
        folder: The model's files.
        cpus: Processors that workers may use; None for all.
        limit: Seconds to wait for an answer.
    """

    def __init__(self, folder: Path, cpus: list[int] | None = None, limit: float = 120.0) -> None:
        self.folder = folder
        self.cpus = cpus
        self.limit = limit


class Worker:
    """One process with one engine, loaded, by the method of it that is called `step`.

    Attributes:
        number: Unique among the workers of this process.
        loaded: What loading took, and the version.
    """

    def __init__(
        self,
        engine: str,
        settings: WorkerSettings,
        threads: int | None = None,
        step: str = "load",
    ) -> None:
        self.engine = engine
        self.number = next(_numbers)
        self._limit = settings.limit
        self._answers: queue.Queue[str | None] = queue.Queue()
        boot = _BOOT.format(folder=str(Path(__file__).parent))
        self._process = subprocess.Popen(
            [sys.executable, "-c", boot],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(threads),
        )
        self._last_words: list[bytes] = []
        for read in (self._read_answers, self._read_talk):
            threading.Thread(target=read, daemon=True).start()
        try:
            self.loaded = self.ask(
                "load",
                engine=engine,
                folder=str(settings.folder),
                threads=threads,
                cpus=settings.cpus,
                step=step,
            )
        except BaseException:
            self.close()
            raise

    def ask(self, task: str, patience: float = 0.0, **facts: Any) -> dict[str, Any]:
        """Do a task and wait for its answer.

        Args:
            task: A name in `lab.tasks`.
            patience: Seconds to wait beyond the limit.
            facts: Arguments of the task.

        Raises:
            FaultError: The engine raised, died, or did not answer in time.
        """
        request = json.dumps({"task": task, **facts}) + "\n"
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(request.encode())
            self._process.stdin.flush()
        except OSError:
            raise FaultError(self._end()) from None
        try:
            line = self._answers.get(timeout=self._limit + patience)
        except queue.Empty:
            self.close()
            raise FaultError(f"no answer in {self._limit + patience:g} s") from None
        if line is None:
            raise FaultError(self._end())
        answer: dict[str, Any] = json.loads(line)
        if "fault" in answer:
            raise FaultError(answer["fault"])
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None and pipe is not self._process.stdout:
                with suppress(OSError):
                    pipe.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _end(self) -> str:
        code = self._process.wait()
        words = b"".join(self._last_words[-5:]).decode("utf-8", "replace").strip().splitlines()
        return f"the process ended with code {code}" + (f": {words[-1]}" if words else "")

    def _read_answers(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line.decode())
        self._answers.put(None)

    def _read_talk(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._last_words.append(line)
            del self._last_words[:-20]


def _environment(threads: int | None) -> dict[str, str]:
    """Ours, without what would change an engine's speed behind our back."""
    ours = {key: value for key, value in os.environ.items() if key not in _KNOBS}
    ours["TIKTOKEN_CACHE_DIR"] = ""  # it would copy the rank file into the temporary folder
    ours["PYTHONUNBUFFERED"] = "1"
    if threads is not None:
        ours.update(dict.fromkeys(_KNOBS, str(threads)))
    return ours
