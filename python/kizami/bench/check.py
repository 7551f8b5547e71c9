"""The project's targets against a record: `python -m kizami.bench.check RECORD...`.

A target is a ratio of medians against the best rival of the same run, or a limit on a figure of
Kizami's own. The best rival counts whether its ids are right or not; where they are not, the ratio
against the best of those whose ids are right is told too. Targets are data, in `targets.json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from kizami.bench import record
from kizami.bench.table import OURS, duration, print_table

__all__ = ["Verdict", "check", "judge"]

Lines = dict[str, dict[str, Any]]


class Verdict(NamedTuple):
    """One target of one case.

    Attributes:
        measured, wanted: As people read them.
        state: "ok", "short", "inexact" (our ids are wrong) or "not measured".
        beside: What it was compared with.
    """

    what: str
    case: str
    measured: str
    wanted: str
    state: str
    beside: str


def check(paths: list[Path], file: TextIO) -> bool:
    """Print the verdicts of some records; is no target missed?"""
    verdicts = judge([line for path in paths for line in record.read(path)])
    rows = [tuple(verdict) for verdict in verdicts]
    print_table(("target", "case", "measured", "wanted", "state", "beside"), rows, file)
    return not any(verdict.state in ("short", "inexact") for verdict in verdicts)


def judge(lines: list[dict[str, Any]]) -> list[Verdict]:
    """All targets against the lines of records; of a case measured twice, the later run counts."""
    cases: dict[str, Lines] = {}
    runs: dict[str, str] = {}
    for line in lines:
        name = line["case"]
        if runs.get(name) != line["date"]:
            runs[name] = line["date"]
            cases[name] = {}
        cases[name][line["engine"]] = line
    targets = json.loads(files(__package__).joinpath("targets.json").read_text(encoding="utf-8"))
    return [verdict for target in targets for verdict in _verdicts(target, cases)]


def _verdicts(target: dict[str, Any], cases: dict[str, Lines]) -> Iterator[Verdict]:
    for pattern in _alternatives(target["case"]):
        matching = [
            name for name, lines in cases.items() if OURS in lines and fnmatchcase(name, pattern)
        ]
        for name in matching:
            yield _verdict(target, name, cases)
        if not matching:
            yield Verdict(target["what"], pattern, "", _wanted(target), "not measured", "")


def _alternatives(pattern: str) -> Iterator[str]:
    """`a-{b,c}` as `a-b`, `a-c`."""
    head, brace, rest = pattern.partition("{")
    if not brace:
        yield pattern
        return
    inside, _, tail = rest.partition("}")
    for word in inside.split(","):
        yield f"{head}{word}{tail}"


def _wanted(target: dict[str, Any]) -> str:
    if "times" in target:
        return f"{target['times']:g}x"
    return f"at most {_shown(target['most'], target.get('unit', ''))}"


def _shown(value: float, unit: str) -> str:
    if unit == "s":
        return duration(value)
    return f"{value:.3g} {unit}" if unit else f"{value:.2f}x"


def _verdict(target: dict[str, Any], name: str, cases: dict[str, Lines]) -> Verdict:
    ours = cases[name][OURS]
    if "times" in target:
        measured, met, beside = _against_rivals(target, cases[name])
    else:
        measured, met, beside = _own_figure(target, ours, cases)
    state = "not measured" if met is None else "ok" if met else "short"
    if ours.get("exact") is False:
        state = "inexact"
    return Verdict(target["what"], name, measured, _wanted(target), state, beside)


def _against_rivals(target: dict[str, Any], lines: Lines) -> tuple[str, bool | None, str]:
    engine = target.get("engine", OURS)
    ours = _figure(lines.get(engine, {}), "seconds.median")
    rivals = {
        name: middle
        for name, line in lines.items()
        if (name == target["rival"] if "rival" in target else not name.startswith(OURS))
        if (middle := _figure(line, "seconds.median")) is not None
    }
    if ours is None or not rivals:
        return "", None, "no rival" if ours is not None else "no figure of ours"
    best = min(rivals, key=rivals.__getitem__)
    beside = f"{best} {duration(rivals[best])}, ours {duration(ours)}"
    if lines[best].get("exact") is False:
        right = {name: rivals[name] for name in rivals if lines[name].get("exact") is not False}
        if right:
            second = min(right, key=right.__getitem__)
            beside += f"; {best} is inexact, {right[second] / ours:.2f}x against {second}"
    ratio = rivals[best] / ours
    return f"{ratio:.2f}x", ratio >= target["times"], beside


def _own_figure(
    target: dict[str, Any], ours: dict[str, Any], cases: dict[str, Lines]
) -> tuple[str, bool | None, str]:
    figure = _figure(ours, target["figure"])
    beside = target["figure"]
    if "over" in target:
        case, path = target["over"]
        below = _figure(cases.get(case, {}).get(OURS, {}), path)
        if figure is None or not below:
            return "", None, f"needs {case}"
        beside = f"{duration(figure)} over {duration(below)}"
        figure /= below
    if figure is None:
        return "", None, beside
    return _shown(figure, target.get("unit", "")), figure <= target["most"], beside


def _figure(line: dict[str, Any], path: str) -> float | None:
    """`seconds.median` of a line."""
    found: Any = line
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return None if found is None else float(found)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m kizami.bench.check RECORD...")
    sys.exit(0 if check([Path(name) for name in sys.argv[1:]], sys.stdout) else 1)
