"""Records: one line of JSON for each case and engine, with all that is needed to judge it.

Lines are never edited. A record tells how to make it again: command, commit, versions, checksums of
inputs and ids, and what the texts came from.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from kizami.bench.cases import facts
from kizami.bench.results import Result, Spread
from kizami.errors import InvalidValueError

__all__ = ["SCHEMA", "default_path", "line", "read", "write"]

SCHEMA = 1
_RECORDS = Path("benchmarks", "records")


def line(result: Result, run: dict[str, Any]) -> dict[str, Any]:
    """A result as a record states it; `run` is what all lines of a run share."""
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "case": result.case.name,
        "engine": result.engine,
        "engine_version": result.version,
        "exact": result.exact,
        "definition": facts(result.case),
        "cache": result.case.mode if result.case.mode in ("cold", "again") else "warm",
        "threads": result.case.threads,
        "callers": result.case.callers,
        "rounds": result.case.rounds,
    }
    if result.fault:
        found["fault"] = result.fault
    if result.seconds:
        found["seconds"] = asdict(result.spread)
    if result.calls:
        found["call_seconds"] = asdict(Spread.of(result.calls))
    if result.tokens:
        found["tokens"] = round(median(result.tokens))
        found["ids_sha256"] = result.ids_sha256
        found["input_bytes"] = result.input_bytes
        found["input_sha256"] = result.input_sha256
    for name, values in result.extra.items():
        unit = f"{name[:-3]}_seconds" if name.endswith("_ns") else f"{name}_mb"
        found[unit] = round(median(values), 6)
    return {**found, **run}


def default_path(run: dict[str, Any]) -> Path | None:
    """Where a record goes by default: `benchmarks/records`, if the working folder has that."""
    if not _RECORDS.is_dir():
        return None
    cpu = re.sub(r"[^a-z0-9]+", "-", str(run["machine"]["cpu"]).lower()).strip("-")[:40]
    stamp = re.sub(r"[-:]", "", str(run["date"]))
    commit = str(run["commit"]).rstrip("+") or "unknown"
    return _RECORDS / f"{cpu}-{run['machine']['cpus']}cpu" / f"{stamp}-{commit}.jsonl"


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    """Write a record; the folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = (json.dumps(row, ensure_ascii=False) for row in lines)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of a record.

    Raises:
        InvalidValueError: The file is none, or of another schema.
    """
    rows = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(text)
            schema = row["schema"]
        except (ValueError, TypeError, KeyError):
            raise InvalidValueError(
                f"line {number} of {path} is no benchmark record;"
                " give a file that `kizami bench` wrote"
            ) from None
        if schema != SCHEMA:
            raise InvalidValueError(
                f"{path} has schema {schema}, and this version reads {SCHEMA}; measure again"
            )
        rows.append(row)
    return rows
