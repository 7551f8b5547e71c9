"""What is measured: cases, read from the JSON files in `suites`.

A file is a list of entries. An entry names a mode and its sizes; `each` gives lists of values, and
the entry stands for all their combinations, with the values in its name. `"1..N"` stands for 1, 2,
4, ... and the number of processors.

Read next: `modes` for what the modes do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from importlib.resources import files
from itertools import product
from typing import Any

from kizami.errors import InvalidValueError

__all__ = ["Case", "select", "suites"]

QUICK = "quick"


@dataclass(frozen=True)
class Case:
    """One thing to measure, for every engine.

    Attributes:
        name: Unique in its suite; `suite/name` is unique.
        suite: The file that it comes from.
        model: The folder of its model, in the folder of models; empty for Kimi K3.
        mode: A name in `modes.MODES`.
        shape: A name in `prompts.SHAPES`.
        kind: A kind of text.
        tokens, bytes, chars: Size of one prompt; one of the three is given.
        prompts: Prompts in one round, each timed on its own.
        turn: In the mode "grow", ids of each turn that follows a prompt.
        renew: In the mode "grow", give what is known as new objects.
        rounds: How often each engine has its turn; every round has new text.
        threads: Threads that an engine may use; None leaves it to the engine.
        callers: Threads that call at the same time.
        engines: Engines to measure; empty for all.
        skip: Engines that would take too long.
        worker: Cases in a row with the same word here share their processes.
    """

    name: str
    suite: str
    mode: str
    model: str = ""
    shape: str = "text"
    kind: str = "agent"
    tokens: int | None = None
    bytes: int | None = None
    chars: int | None = None
    prompts: int = 1
    turn: int | None = None
    renew: bool = False
    rounds: int = 9
    threads: int | None = None
    callers: int = 1
    engines: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    worker: str = ""

    def takes(self, engine: str) -> bool:
        """Is the engine measured in this case?"""
        return (not self.engines or engine in self.engines) and engine not in self.skip


def suites() -> dict[str, list[Case]]:
    """All cases by suite."""
    folder = files(__package__).joinpath("suites")
    found = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        suite, _, ending = file.name.rpartition(".")
        if ending == "json":
            entries = json.loads(file.read_text(encoding="utf-8"))
            found[suite] = [case for entry in entries for case in _expanded(entry, suite)]
    return found


def _expanded(entry: dict[str, Any], suite: str) -> Iterator[Case]:
    entry = dict(entry)
    each: dict[str, Any] = entry.pop("each", {})
    lists = [_processors() if values == "1..N" else values for values in each.values()]
    for values in product(*lists):
        facts = {**entry, **dict(zip(each, values, strict=True))}
        for name in ("name", "worker"):
            facts[name] = facts.get(name, "").format(**facts)
        for name in ("engines", "skip"):
            facts[name] = tuple(facts.get(name, ()))
        yield Case(suite=suite, **facts)


def _processors() -> list[int]:
    most = os.cpu_count() or 1
    powers = [1 << shift for shift in range(most.bit_length())]
    return sorted({*powers, most} - {number for number in powers if number > most})


def select(patterns: Sequence[str], quick: bool) -> list[Case]:
    """The cases that patterns name: a suite, or a name with `*` in it.

    Without patterns: the quick suite, or all others.

    Raises:
        InvalidValueError: A pattern names nothing.
    """
    found = suites()
    if not patterns:
        chosen = [QUICK] if quick else [suite for suite in found if suite != QUICK]
        return [case for suite in chosen for case in found[suite]]
    all_cases = [
        case
        for suite, cases in found.items()
        if (suite == QUICK) == quick or suite in patterns
        for case in cases
    ]
    picked: dict[Case, None] = {}
    for pattern in patterns:
        matching = [
            case for case in all_cases if case.suite == pattern or fnmatchcase(case.name, pattern)
        ]
        if not matching:
            names = ", ".join(sorted(found))
            raise InvalidValueError(
                f"no case is called {pattern!r}, and no suite ({names});"
                " run `kizami bench --list` for all cases",
                source=pattern,
            )
        picked.update(dict.fromkeys(matching))
    return list(picked)


def facts(case: Case) -> dict[str, Any]:
    """The case as a record states it: what is not a default."""
    return {
        field.name: list(value) if isinstance(value, tuple) else value
        for field in fields(case)
        if (value := getattr(case, field.name)) not in (None, "", ())
    }
