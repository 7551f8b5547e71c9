"""How each mode measures. A mode takes a case, and gives a result for each engine.

In every round the engines take turns on the same input, in an order that changes from round to
round; ids are compared with those of the published path each time. Making texts, starting processes
and comparing are outside what is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import kizami
from kizami.bench.bench import Bench
from kizami.bench.cases import Case
from kizami.bench.client import FaultError, Worker
from kizami.bench.lab.inputs import write_prompts
from kizami.bench.results import Result

__all__ = ["MODES", "run_case"]

Results = dict[str, Result]
Answers = dict[str, dict[str, Any]]
Truth = Callable[[Answers], "dict[str, Any] | None"]
"""The right answer, when the engines have given theirs."""
Given = Callable[[int], "tuple[bytes, int, Truth]"]
"""The input of a round: bytes for its checksum, size of its text, the way to its right answer."""
_WARM_TOKENS = 200_000


def run_case(bench: Bench, case: Case) -> list[Result]:
    """Measure a case: a result for each engine that takes part, faults included."""
    results = {name: Result(case, name) for name in bench.names(case)}
    MODES[case.mode](bench, case, results)
    for name, result in results.items():
        result.fault = result.fault or bench.absent.get(name, "")
    return list(results.values())


def in_turn(results: Results, number: int) -> list[str]:
    """The engines that still stand, in the order of a round.

    Each begins once in as many rounds, and every other round goes backwards.
    """
    names = [name for name, result in results.items() if not result.fault]
    if not names:
        return []
    at = number // 2 % len(names)
    turned = names[at:] + names[:at]
    return turned[::-1] if number % 2 else turned


def _rounds(
    bench: Bench,
    case: Case,
    results: Results,
    ask: Callable[[str, int], dict[str, Any]],
    given: Given,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The answers of all engines, round by round, with ids compared."""
    for number in range(case.rounds):
        data, size, truth_of = given(number)
        answers: Answers = {}
        for name in in_turn(results, number):
            try:
                answers[name] = ask(name, number)
            except FaultError as fault:
                results[name].fault = str(fault)
                bench.drop_shared(name)
        truth = truth_of(answers)
        for name, answer in answers.items():
            results[name].saw(data, size, answer, truth)
            yield name, answer


def _seconds(answer: dict[str, Any]) -> list[float]:
    return [ns / 1e9 for ns in answer["ns"]]


def _encode_input(bench: Bench, case: Case) -> Given:
    """Prompts of a round, and how to get their right ids."""

    def given(number: int) -> tuple[bytes, int, Truth]:
        path, data, size = bench.inputs(case, number)
        return (
            data,
            size,
            lambda answers: bench.truth(answers, case.model, "encode", file=str(path)),
        )

    return given


def _warm_up(bench: Bench, case: Case, results: Results) -> None:
    """Traffic of the same kind, not timed: 200,000 tokens once, then prompts as the case's."""
    general = replace(case, tokens=_WARM_TOKENS, bytes=None, chars=None, prompts=1)
    if case.shape == "text" and not case.model:
        general = replace(general, shape="118")
    for name in list(results):
        try:
            worker, new = bench.shared(name, case)
            results[name].version = worker.loaded["version"]
            for number, traffic in enumerate([general] * new + [case] * 2):
                path, _, _ = bench.inputs(traffic, -1 - number)
                worker.ask("encode", file=str(path))
        except FaultError as fault:
            results[name].fault = str(fault)
            bench.drop_shared(name)


def _warm(bench: Bench, case: Case, results: Results) -> None:
    """New text, after traffic of the same kind, in a process that lives on."""
    _warm_up(bench, case, results)

    def ask(name: str, number: int) -> dict[str, Any]:
        worker, _ = bench.shared(name, case)
        return worker.ask("encode", file=str(bench.folder / "prompts.json"))

    for name, answer in _rounds(bench, case, results, ask, _encode_input(bench, case)):
        results[name].seconds += _seconds(answer)


def _grow(bench: Bench, case: Case, results: Results) -> None:
    """A prompt that is known, and a turn more each time; ids are those of the whole."""
    _warm_up(bench, replace(case, turn=None, prompts=1), results)
    facts: dict[str, Any] = {"file": str(bench.folder / "prompts.json"), "renew": case.renew}

    def given(number: int) -> tuple[bytes, int, Truth]:
        _, data, size = bench.inputs(case, number)
        return data, size, lambda answers: bench.truth(answers, case.model, "grow", **facts)

    def ask(name: str, number: int) -> dict[str, Any]:
        worker, _ = bench.shared(name, case)
        return worker.ask("grow", **facts)

    for name, answer in _rounds(bench, case, results, ask, given):
        results[name].seconds += _seconds(answer)


def _cold(bench: Bench, case: Case, results: Results) -> None:
    """The first request of a fresh process; loading is told beside."""

    def ask(name: str, number: int) -> dict[str, Any]:
        with bench.start(name, case) as worker:
            _note_load(results[name], worker)
            return worker.ask("encode", file=str(bench.folder / "prompts.json"))

    for name, answer in _rounds(bench, case, results, ask, _encode_input(bench, case)):
        results[name].seconds += _seconds(answer)


def _note_load(result: Result, worker: Worker) -> None:
    result.version = worker.loaded["version"]
    for name, unit in (("load_ns", 1e9), ("import_ns", 1e9), ("rss", 1e6)):
        result.extra.setdefault(name, []).append(worker.loaded[name] / unit)


def _load_file(bench: Bench, case: Case, results: Results) -> None:
    """The same from a `tokenizer.json`, or from what was made of it before."""
    for name in list(results):
        try:
            with bench.start(name, case, "make_files"):
                pass
        except FaultError as fault:
            results[name].fault = str(fault)
    _load(bench, case, results, "load_file")


def _load(bench: Bench, case: Case, results: Results, step: str = "load") -> None:
    """From an imported package to a tokenizer; importing and memory are told beside."""
    for number in range(case.rounds):
        for name in in_turn(results, number):
            try:
                with bench.start(name, case, step) as worker:
                    _note_load(results[name], worker)
                    results[name].seconds.append(worker.loaded["load_ns"] / 1e9)
            except FaultError as fault:
                results[name].fault = str(fault)


def _decode(bench: Bench, case: Case, results: Results) -> None:
    """Ids to text, at once or one by one, in a process that lives on; the text is compared."""
    _warm_up(bench, case, results)
    tokenizer = kizami.load("kimi-k3")
    path = bench.folder / "ids.npy"
    assert case.tokens is not None
    longer = replace(case, tokens=case.tokens * 103 // 100)

    def given(number: int) -> tuple[bytes, int, Truth]:
        ids = tokenizer.encode_segments(bench.prompt(longer, number))[: case.tokens]
        np.save(path, ids)
        data = ids.tobytes()
        return (
            data,
            len(data),
            lambda answers: bench.truth(answers, case.model, case.mode, file=str(path)),
        )

    def ask(name: str, number: int) -> dict[str, Any]:
        worker, _ = bench.shared(name, case)
        return worker.ask(case.mode, file=str(path))

    for name, answer in _rounds(bench, case, results, ask, given):
        results[name].seconds += _seconds(answer)


def _callers(bench: Bench, case: Case, results: Results) -> None:
    """Threads that call at once: the time until all requests are served, and each one's wait."""
    _warm_up(bench, replace(case, prompts=min(case.prompts, 20)), results)

    def ask(name: str, number: int) -> dict[str, Any]:
        worker, _ = bench.shared(name, case)
        return worker.ask("callers", file=str(bench.folder / "prompts.json"), count=case.callers)

    for name, answer in _rounds(bench, case, results, ask, _encode_input(bench, case)):
        results[name].seconds.append(answer["total_ns"] / 1e9)
        results[name].calls += _seconds(answer)


def _memory(bench: Bench, case: Case, results: Results) -> None:
    """Random words, megabyte after megabyte: the memory held at the end, and how even calls are."""
    facts: dict[str, Any] = {"calls": case.prompts, "size": case.bytes, "patience": case.prompts}

    def ask(name: str, number: int) -> dict[str, Any]:
        with bench.start(name, case) as worker:
            results[name].version = worker.loaded["version"]
            return worker.ask("traffic", seed=number * 100_000, **facts)

    def given(number: int) -> tuple[bytes, int, Truth]:
        seed = number * 100_000
        data = f"random words: {case.prompts} times {case.bytes}, {seed}".encode()
        size = case.prompts * (case.bytes or 0)
        return (
            data,
            size,
            lambda answers: bench.truth(answers, case.model, "traffic", seed=seed, **facts),
        )

    for name, answer in _rounds(bench, case, results, ask, given):
        results[name].seconds += _seconds(answer)
        for fact in ("rss", "rss_most"):
            results[name].extra.setdefault(fact, []).append(answer[fact] / 1e6)


def _loop(bench: Bench, case: Case, results: Results) -> None:
    """The longest time for which a call in a thread holds up an event loop."""
    _warm_up(bench, case, results)

    def ask(name: str, number: int) -> dict[str, Any]:
        worker, _ = bench.shared(name, case)
        return worker.ask("ticker", file=str(bench.folder / "prompts.json"))

    for name, answer in _rounds(bench, case, results, ask, _encode_input(bench, case)):
        results[name].seconds += _seconds(answer)


MODES: dict[str, Callable[[Bench, Case, Results], None]] = {
    "warm": _warm,
    "grow": _grow,
    "cold": _cold,
    "load": _load,
    "load-file": _load_file,
    "decode": _decode,
    "stream": _decode,
    "callers": _callers,
    "memory": _memory,
    "loop": _loop,
}
"""Ways to measure by name."""


def own_text(bench: Bench, case: Case, text: str) -> list[Result]:
    """A text of the user's own: first request of a fresh process, or the same again and again."""
    results = {name: Result(case, name) for name in bench.names(case)}
    path = bench.folder / "prompts.json"
    data = write_prompts(path, [[(text, False)]])
    size = len(text.encode())

    def given(number: int) -> tuple[bytes, int, Truth]:
        return (
            data,
            size,
            lambda answers: bench.truth(answers, case.model, "encode", file=str(path)),
        )

    def ask(name: str, number: int) -> dict[str, Any]:
        if case.mode == "cold":
            with bench.start(name, case) as worker:
                _note_load(results[name], worker)
                return worker.ask("encode", file=str(path))
        worker, new = bench.shared(name, case)
        results[name].version = worker.loaded["version"]
        if new:
            worker.ask("encode", file=str(path))
        return worker.ask("encode", file=str(path))

    for name, answer in _rounds(bench, case, results, ask, given):
        results[name].seconds += _seconds(answer)
    for name, result in results.items():
        result.fault = result.fault or bench.absent.get(name, "")
    return list(results.values())
