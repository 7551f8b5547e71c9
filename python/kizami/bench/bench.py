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
from kizami.bench.files import copy_tokenizer_json
from kizami.bench.lab.engines import WAYS
from kizami.bench.lab.inputs import Prompt, write_prompts
from kizami.bench.prompts import Prompts
from kizami.bench.table import OURS

__all__ = ["Bench"]

ORACLE = "tiktoken"
"""The published path of Kimi K3."""
JSON_ORACLE = "tokenizers"
"""That of models which are published as `tokenizer.json`."""


class Bench:
    """What the cases of a run share.

    Attributes:
        engines: Names of the engines that are there.
        absent: Why others are not.
        folder: A temporary folder, for inputs.
        models: Where the folders of models other than Kimi K3 are; None for nowhere.
        say: Shows a person what is going on.
    """

    def __init__(
        self,
        engines: list[str],
        absent: dict[str, str],
        prompts: Prompts,
        settings: WorkerSettings,
        say: Callable[[str], None],
        models: Path | None = None,
    ) -> None:
        self.engines = engines
        self.absent = absent
        self.prompts = prompts
        self.settings = settings
        self.folder = settings.folder
        self.models = models
        self.say = say
        self._oracle: Worker | None = None
        self._oracle_model = ""
        self._without_oracle = {""} if ORACLE in absent else set()
        self._shared: dict[str, Worker] = {}
        self._shared_key: tuple[str, str, int | None] | None = None
        self._warmed: set[tuple[str, str]] = set()

    def close(self) -> None:
        """End all processes."""
        self.drop_shared()
        self._end_oracle()

    def names(self, case: Case) -> list[str]:
        """The engines that a case measures now."""
        ways = WAYS.get(case.mode, ()) if OURS in self.engines else ()
        names = [*self.engines, *ways]
        return [name for name in names if name not in self.absent and case.takes(name)]

    def start(self, engine: str, case: Case, step: str = "load") -> Worker:
        """A fresh process for the engine, which takes this step.

        Raises:
            FaultError: It cannot be loaded; it counts as absent from now on.
        """
        try:
            return Worker(engine, self._settings(case.model), case.threads, step)
        except FaultError as fault:
            # What cannot load one of the other models may load the next.
            if not case.model:
                self.absent[engine] = str(fault)
            raise

    def _settings(self, model: str) -> WorkerSettings:
        """For the workers of a model, whose files are made now if they are not there."""
        if not model:
            return self.settings
        assert self.models is not None
        folder = self.folder / "models" / model
        if not folder.exists():
            folder.mkdir(parents=True)
            copy_tokenizer_json(self.models / model, folder)
        return WorkerSettings(folder, self.settings.cpus, self.settings.limit)

    def shared(self, engine: str, case: Case) -> tuple[Worker, bool]:
        """The engine's process for the cases that share one; is it new to this kind of text?"""
        key = (case.model, case.worker or f"{case.suite}/{case.name}", case.threads)
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
        self, answers: dict[str, dict[str, Any]], model: str, task: str, **facts: Any
    ) -> dict[str, Any] | None:
        """The right answer: the oracle's, if it was among those asked, else it is asked now."""
        oracle = JSON_ORACLE if model else ORACLE
        if oracle in answers:
            return answers[oracle]
        if model in self._without_oracle:
            return None
        try:
            if self._oracle is None or self._oracle_model != model:
                self._end_oracle()
                self._oracle_model = model
                self._oracle = Worker(oracle, self._settings(model))
            return self._oracle.ask(task, **facts)
        except FaultError as fault:
            self.say(f"ids are not compared: the published path failed: {fault}")
        if self._oracle is None:
            self._without_oracle.add(model)  # it cannot be loaded
        self._end_oracle()
        return None

    def _end_oracle(self) -> None:
        if self._oracle is not None:
            self._oracle.close()
            self._oracle = None
