"""Are the ids of a text those of the published path? For Kizami, and for every rival that is there.

Each engine runs in a process of its own, as in the benchmark; nothing is timed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import kizami
from kizami.bench._extras import need
from kizami.bench.client import FaultError, Worker, WorkerSettings
from kizami.bench.files import write_model_files
from kizami.bench.lab.engines import Ids
from kizami.bench.lab.inputs import write_prompts
from kizami.bench.runner import NEED_JSON, roll_call

__all__ = ["ORACLE", "Comparison", "Difference", "compare", "first_difference"]

ORACLE = "tiktoken"
_AROUND = 3  # ids shown before and after the first difference
_BYTES = 24


@dataclass(frozen=True)
class Difference:
    """Where the ids of an engine first leave the right ones.

    Attributes:
        position: Index of the first id that differs.
        byte: Bytes of text before it, in UTF-8.
        right, found: Ids from three before the difference on.
        before, after: Bytes of the text around it.
    """

    position: int
    byte: int
    right: list[int]
    found: list[int]
    before: bytes
    after: bytes


@dataclass(frozen=True)
class Comparison:
    """One engine on one text.

    Attributes:
        count: Ids that it gave.
        difference: None where all ids are right.
        fault: Why it gave none.
    """

    engine: str
    count: int = 0
    difference: Difference | None = None
    fault: str = ""


def compare(
    texts: Sequence[str], engines: Sequence[str], allow_special: bool, say: Callable[[str], None]
) -> Iterator[tuple[Ids, list[Comparison]]]:
    """For each text: its right ids, and how each engine did.

    Raises:
        MissingExtraError: tiktoken, or what the benchmark needs beside it, is not installed.
    """
    for module in (ORACLE, "psutil"):
        need(module)
    here, absent = roll_call([name for name in engines if name != ORACLE])
    here = [name for name in here if name != ORACLE]
    for name, reason in absent.items():
        say(f"{name} is absent: {reason}")
    with tempfile.TemporaryDirectory(prefix="kizami-verify-") as name, ExitStack() as stack:
        folder = Path(name)
        write_model_files(folder, tokenizer_json=any(engine in here for engine in NEED_JSON))
        settings = WorkerSettings(folder, limit=600.0)
        workers: dict[str, Worker | str] = {}
        for engine in (ORACLE, *here):
            try:
                workers[engine] = stack.enter_context(Worker(engine, settings))
            except FaultError as fault:
                workers[engine] = str(fault)
        for text in texts:
            write_prompts(folder / "prompts.json", [[(text, allow_special)]])
            right = _ids(workers[ORACLE], folder)
            if isinstance(right, str):
                raise FaultError(f"the published path failed: {right}")
            yield right, [_compared(engine, workers[engine], folder, right) for engine in here]


def _ids(worker: Worker | str, folder: Path) -> Ids | str:
    """The ids of the prompt in the folder, or why there are none."""
    if isinstance(worker, str):
        return worker
    keep = folder / f"{worker.number}.npy"
    try:
        worker.ask("encode", file=str(folder / "prompts.json"), keep=str(keep))
    except FaultError as fault:
        return str(fault)
    ids: Any = np.load(keep)
    return np.asarray(ids, np.uint32)


def _compared(engine: str, worker: Worker | str, folder: Path, right: Ids) -> Comparison:
    found = _ids(worker, folder)
    if isinstance(found, str):
        return Comparison(engine, fault=found)
    return Comparison(engine, len(found), first_difference(right, found))


def first_difference(right: Ids, found: Ids) -> Difference | None:
    """Where `found` leaves `right`; None if it does not."""
    shorter = min(len(right), len(found))
    unequal = np.flatnonzero(right[:shorter] != found[:shorter])
    if len(unequal) == 0 and len(right) == len(found):
        return None
    at = int(unequal[0]) if len(unequal) else shorter
    tokenizer = kizami.load("kimi-k3")
    before = tokenizer.decode_bytes(right[:at])
    after = tokenizer.decode_bytes(right[at : at + _BYTES])
    start = max(0, at - _AROUND)
    return Difference(
        position=at,
        byte=len(before),
        right=right[start : at + _AROUND].tolist(),
        found=found[start : at + _AROUND].tolist(),
        before=before[-_BYTES:],
        after=after[:_BYTES],
    )
