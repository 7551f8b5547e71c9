"""A run: its workers, its oracle, its texts.

Read next: `modes`, which uses all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

from kizami.bench.cases import Case
from kizami.bench.client import FaultError, Worker, WorkerSettings
from kizami.bench.lab.engines import WAYS
from kizami.bench.lab.inputs import Prompt, write_prompts
from kizami.bench.prompts import Prompts
from kizami.bench.table import OURS

__all__ = ["Bench"]

ORACLE = "tiktoken"


class Bench:
    """What the cases of a run share.

    Attributes:
        engines: Names of the engines that are there.
        absent: Why others are not.
        folder: A temporary folder, for inputs.
        say: Shows a person what is going on.
    """

    def __init__(
        self,
        engines: list[str],
        absent: dict[str, str],
        prompts: Prompts,
        settings: WorkerSettings,
        say: Callable[[str], None],
    ) -> None:
        self.engines = engines
        self.absent = absent
        self.prompts = prompts
        self.settings = settings
        self.folder = settings.folder
        self.say = say
        self._oracle: Worker | None = None
        self._has_oracle = ORACLE not in absent
        self._shared: dict[str, Worker] = {}
        self._shared_key: tuple[str, int | None] | None = None
        self._warmed: set[tuple[str, str]] = set()

    def close(self) -> None:
        """End all processes."""
        self.drop_shared()
        if self._oracle is not None:
            self._oracle.close()
            self._oracle = None

    def names(self, case: Case) -> list[str]:
        """The engines that a case measures now."""
        ways = WAYS.get(case.mode, ()) if OURS in self.engines else ()
        names = [*self.engines, *ways]
        return [name for name in names if name not in self.absent and case.takes(name)]

    def start(self, engine: str, case: Case) -> Worker:
        """A fresh process for the engine.

        Raises:
            FaultError: It cannot be loaded; it counts as absent from now on.
        """
        try:
            return Worker(engine, self.settings, case.threads)
        except FaultError as fault:
            self.absent[engine] = str(fault)
            raise

    def shared(self, engine: str, case: Case) -> tuple[Worker, bool]:
        """The engine's process for the cases that share one; is it new to this kind of text?"""
        key = (case.worker or f"{case.suite}/{case.name}", case.threads)
        if key != self._shared_key:
            self.drop_shared()
            self._shared_key = key
        if engine not in self._shared:
            self._shared[engine] = self.start(engine, case)
        new = (engine, case.kind) not in self._warmed
        self._warmed.add((engine, case.kind))
        return self._shared[engine], new

    def drop_shared(self, engine: str | None = None) -> None:
        """End the shared processes, or the one of an engine that failed."""
        for name in [engine] if engine else list(self._shared):
            worker = self._shared.pop(name, None)
            if worker is not None:
                worker.close()
            self._warmed = {pair for pair in self._warmed if pair[0] != name}

    def inputs(self, case: Case, number: int) -> tuple[Path, bytes, int]:
        """A file with the prompts of a round, its content, and the bytes of text in it.

        Negative rounds are for warming up.
        """
        base = crc32(f"{case.shape} {case.kind}".encode()) % 10_000 * 1_000_000
        seeds = range(base + number * 1000, base + number * 1000 + case.prompts)
        path = self.folder / "prompts.json"
        prompts = [self.prompt(case, seed) for seed in seeds]
        if case.turn is not None:
            turn = replace(case, tokens=case.turn, turn=None)
            prompts[1:] = [self.prompt(turn, seed) for seed in seeds[1:]]
        size = sum(len(text.encode()) for prompt in prompts for text, _ in prompt)
        return path, write_prompts(path, prompts), size

    def prompt(self, case: Case, seed: int) -> Prompt:
        """One prompt of a case."""
        if case.tokens is not None:
            return self.prompts.of_tokens(case.shape, case.kind, case.tokens, seed)
        if case.bytes is not None:
            return self.prompts.of_bytes(case.kind, case.bytes, seed)
        assert case.chars is not None
        return self.prompts.of_chars(case.kind, case.chars, seed)

    def truth(
        self, answers: dict[str, dict[str, Any]], task: str, **facts: Any
    ) -> dict[str, Any] | None:
        """The right answer: the oracle's, if it was among those asked, else it is asked now."""
        if ORACLE in answers:
            return answers[ORACLE]
        if not self._has_oracle:
            return None
        try:
            if self._oracle is None:
                self._oracle = Worker(ORACLE, self.settings)
            return self._oracle.ask(task, **facts)
        except FaultError as fault:
            self.say(f"ids are not compared: the published path failed: {fault}")
        if self._oracle is None:
            self._has_oracle = False  # it cannot be loaded
        else:
            self._oracle.close()
            self._oracle = None
        return None
