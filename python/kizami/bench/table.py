"""Tables for people, from the lines of a record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, TextIO

from kizami.bench._extras import need

__all__ = ["OURS", "duration", "print_results", "print_table"]

OURS = "kizami"


def duration(seconds: float) -> str:
    """Three digits and a unit.

    >>> duration(0.000_012_34), duration(0.0456), duration(2.0)
    ('12.3 µs', '45.6 ms', '2.00 s')
    """
    for unit, factor in (("µs", 1e6), ("ms", 1e3)):
        value = seconds * factor
        if value < 999.5:
            digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f"{value:.{digits}f} {unit}"
    return f"{seconds:.2f} s"


def print_results(lines: Iterable[dict[str, Any]], file: TextIO) -> None:
    """For each case: every engine's median, how it compares with Kizami, spread, and exactness."""
    columns = ("case", "engine", "median", "x kizami", "spread", "more", "ids")
    rows: list[tuple[str, ...] | None] = []
    for _, group in groupby(lines, key=lambda line: line["case"]):
        engines = list(group)
        ours = next((_median(line) for line in engines if line["engine"] == OURS), None)
        for number, line in enumerate(engines):
            rows.append((_title(line) if number == 0 else "", *_row(line, ours)))
        rows.append(None)
    print_table(columns, rows, file, right=("median", "x kizami", "spread"))


def print_table(
    columns: tuple[str, ...],
    rows: Sequence[tuple[str, ...] | None],
    file: TextIO,
    right: tuple[str, ...] = (),
) -> None:
    """A table; None is a line between."""
    rich_box, rich_console, rich_table = map(need, ("rich.box", "rich.console", "rich.table"))
    table = rich_table.Table(box=rich_box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(
            column, justify="right" if column in right else "left", no_wrap=column in right
        )
    for row in rows:
        if row is None:
            table.add_section()
        else:
            table.add_row(*row)
    console = rich_console.Console(file=file, highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 150
    console.print(table)


def _median(line: dict[str, Any]) -> float | None:
    return line["seconds"]["median"] if "seconds" in line else None


def _title(line: dict[str, Any]) -> str:
    tokens = f" ({line['tokens']:,} ids)" if "tokens" in line else ""
    return f"{line['case']}{tokens}"


def _row(line: dict[str, Any], ours: float | None) -> tuple[str, ...]:
    middle = _median(line)
    if middle is None:
        return line["engine"], "-", "-", "-", line.get("fault", ""), ""
    seconds = line["seconds"]
    ratio = f"{middle / ours:.2f}" if ours else "-"
    spread = f"±{100 * seconds['mad'] / middle:.0f} %" if middle else "-"
    return line["engine"], duration(middle), ratio, spread, _more(line), _ids(line)


def _more(line: dict[str, Any]) -> str:
    """What else a mode measured."""
    mode = line["definition"]["mode"]
    parts = []
    if "call_seconds" in line:
        calls = line["call_seconds"]
        parts += [f"p50 {duration(calls['median'])}", f"p99 {duration(calls['p99'])}"]
        parts.append(f"worst {duration(calls['max'])}")
    if mode in ("memory", "loop"):
        parts.append(f"worst {duration(line['seconds']['max'])}")
    if mode == "memory":
        parts.append(f"{line['rss_mb']:+.0f} MB, at most {line['rss_most_mb']:+.0f} MB")
    if mode in ("load", "load-file"):
        parts += [f"import {duration(line['import_seconds'])}", f"{line['rss_mb']:+.0f} MB"]
    if mode == "cold":
        parts.append(f"load {duration(line['load_seconds'])}")
    if line.get("fault"):
        parts.append(line["fault"])
    return ", ".join(parts)


def _ids(line: dict[str, Any]) -> str:
    if line["definition"]["mode"] in ("load", "load-file"):
        return ""
    return {True: "exact", False: "INEXACT", None: "not compared"}[line["exact"]]
