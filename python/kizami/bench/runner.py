"""A whole run: from a choice of cases and engines to the lines of a record."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kizami.bench import record
from kizami.bench._extras import need
from kizami.bench.bench import Bench
from kizami.bench.cases import Case
from kizami.bench.client import WorkerSettings
from kizami.bench.files import write_model_files
from kizami.bench.lab.engines import NAMES, engine_class
from kizami.bench.machine import commit, machine, now
from kizami.bench.modes import own_text, run_case
from kizami.bench.prompts import Prompts
from kizami.bench.texts import Texts
from kizami.errors import InvalidValueError

__all__ = ["NEED_JSON", "Options", "own_cases", "roll_call", "run"]

OWN = "own"
"""The suite of a person's own texts."""
Say = Callable[[str], None]
NEED_JSON = ("basetenkenizer", "tokenizers")
"""Engines that read `tokenizer.json`, which takes some seconds to make."""


@dataclass(frozen=True)
class Options:
    """What a person can choose.

    Attributes:
        engines: Names; empty for all.
        rounds: Instead of what the cases say.
        cpus: Processors for the workers; None for all.
        texts: Own texts by name, for the cases of `own_cases`.
        command: How the run was started, for the record.
        limit: Seconds that an engine has for one answer.
        models: A folder with a folder for each model other than Kimi K3; without it, their cases
            are left out.
    """

    engines: Sequence[str] = ()
    rounds: int | None = None
    cpus: list[int] | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    limit: float = 120.0
    models: Path | None = None


def roll_call(wanted: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The engines that take part, and why others do not.

    Raises:
        InvalidValueError: There is no such engine.
    """
    names = list(wanted or NAMES)
    absent = {}
    for name in names:
        if ":" in name:
            continue
        if name not in NAMES:
            known = ", ".join(NAMES)
            raise InvalidValueError(
                f"no engine is called {name!r}; give some of {known}", source=name
            )
        if find_spec(engine_class(name).package) is None:
            distribution = engine_class(name).distribution
            absent[name] = f"not installed (pip install {distribution})"
    if "tiktoken" not in names and find_spec("tiktoken") is None:
        absent["tiktoken"] = "not installed (pip install tiktoken)"
    return [name for name in names if name not in absent], absent


def run(cases: Sequence[Case], options: Options, say: Say) -> list[dict[str, Any]]:
    """Measure; gives the lines of the record."""
    for module in ("rich", "psutil"):
        need(module)
    engines, absent = roll_call(options.engines)
    for name, reason in absent.items():
        say(f"{name} is absent: {reason}")
    here = machine()
    if (here["load_average"] or 0) > 0.3 * (here["cpus"] or 1):
        say(f"this machine is busy (load average {here['load_average']}): figures will be uneven")
    if options.models is None and any(case.model for case in cases):
        say("cases of other models are left out: `--models FOLDER` says where their files are")
        cases = [case for case in cases if not case.model]
    texts = Texts()
    facts = {
        "sources": texts.origins({case.kind for case in cases}),
        "machine": here,
        "pinned": options.cpus,
        "commit": commit(),
        "command": options.command,
        "date": now(),
    }
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="kizami-bench-") as folder:
        if any(not case.model for case in cases):
            with_json = any(name in engines for name in NEED_JSON)
            write_model_files(Path(folder), tokenizer_json=with_json)
        settings = WorkerSettings(Path(folder), options.cpus, options.limit)
        prompts = Prompts(texts)
        with closing(Bench(engines, absent, prompts, settings, say, options.models)) as bench:
            for number, case in enumerate(cases, 1):
                # A gigabyte of traffic is one round, whatever is asked of the others.
                if options.rounds and case.mode != "memory":
                    case = replace(case, rounds=options.rounds)
                say(f"[{number}/{len(cases)}] {case.name}")
                known = set(absent)
                if case.suite == OWN:
                    results = own_text(bench, case, options.texts[case.kind])
                else:
                    results = run_case(bench, case)
                for name in set(bench.absent) - known:
                    say(f"{name} is absent: {bench.absent[name]}")
                lines += [record.line(result, facts) for result in results]
    return lines


def own_cases(names: Iterable[str]) -> list[Case]:
    """The cases that own texts are measured in: first in a process, and again and again."""
    return [
        Case(f"{mode}-{name}", OWN, mode, kind=name, rounds=rounds, worker=OWN)
        for mode, rounds in (("cold", 5), ("again", 15))
        for name in names
    ]
