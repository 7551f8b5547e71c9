"""What a worker can be asked for, once its engine is loaded. All times are nanoseconds."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any

import numpy as np

from .engines import Engine, Ids
from .inputs import Prompt, random_words, read_prompts
from .memory import rss

__all__ = ["TASKS", "digest"]


def digest(ids: Ids) -> str:
    """SHA-256 of ids as little-endian uint32."""
    return hashlib.sha256(np.ascontiguousarray(ids, "<u4").tobytes()).hexdigest()


@contextmanager
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _call(engine: Engine, prompt: Prompt) -> Ids:
    """A prompt that is one untrusted text is given as such."""
    if len(prompt) == 1 and not prompt[0][1]:
        return engine.encode(prompt[0][0])
    return engine.encode_segments(prompt)


def encode(engine: Engine, file: str, keep: str | None = None) -> dict[str, Any]:
    """Encode every prompt of a file, each timed on its own; `keep`: save the ids of the last."""
    times, lengths, digests = [], [], []
    prompts = read_prompts(file)
    # Once for all: a collection between two prompts would empty the caches of the processor.
    with _no_collector():
        for prompt in prompts:
            start = perf_counter_ns()
            ids = _call(engine, prompt)
            times.append(perf_counter_ns() - start)
            lengths.append(len(ids))
            digests.append(digest(ids))
            if keep:
                np.save(keep, ids)
            del ids  # as a server does, so that its memory can be used again
    return {"ns": times, "tokens": lengths, "digests": digests}


def grow(engine: Engine, file: str, renew: bool) -> dict[str, Any]:
    """Encode a prompt, then the same with one more turn behind it, and so on; turns are timed.

    The first prompt of the file is the beginning, the others are turns. `renew`: what is known is
    given as new objects with equal characters, as after reading a request. Answers also with the
    time of the first prompt, whose text the engine has not seen before; with the turns, an engine
    that encodes all reads it again.
    """
    times, lengths, digests = [], [], []
    prompt, *turns = read_prompts(file)
    with _no_collector():
        start = perf_counter_ns()
        engine.grow(prompt)
        first = perf_counter_ns() - start
    for turn in turns:
        if renew:
            # Not by a slice of the whole, which would be the same object.
            prompt = [("".join([text[:1], text[1:]]), special) for text, special in prompt]
        prompt = [*prompt, *turn]
        with _no_collector():
            start = perf_counter_ns()
            ids = engine.grow(prompt)
            times.append(perf_counter_ns() - start)
        lengths.append(len(ids))
        digests.append(digest(ids))
    return {"ns": times, "tokens": lengths, "digests": digests, "first_ns": first}


def decode(engine: Engine, file: str) -> dict[str, Any]:
    """Decode the ids of a file."""
    ids = np.load(file)
    return _timed_text(engine.decode, engine.prepare(ids), len(ids))


def stream(engine: Engine, file: str) -> dict[str, Any]:
    """Decode the ids of a file one by one, as a model gives them."""
    ids = np.load(file).tolist()
    return _timed_text(engine.stream, ids, len(ids))


def _timed_text(call: Callable[[Any], str], ids: Any, count: int) -> dict[str, Any]:
    with _no_collector():
        start = perf_counter_ns()
        text = call(ids)
        taken = perf_counter_ns() - start
    data = text.encode("utf-8", "surrogatepass")
    return {
        "ns": [taken],
        "tokens": [count],
        "digests": [hashlib.sha256(data).hexdigest()],
    }


def callers(engine: Engine, file: str, count: int) -> dict[str, Any]:
    """Encode every prompt of a file, by `count` threads that each take the next one left."""
    prompts = read_prompts(file)
    times = [0] * len(prompts)
    found: list[Ids | None] = [None] * len(prompts)
    faults: list[str] = []
    numbers = iter(range(len(prompts)))
    lock, gate = threading.Lock(), threading.Barrier(count + 1)

    def caller() -> None:
        gate.wait()
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            start = perf_counter_ns()
            try:
                found[number] = _call(engine, prompts[number])
            except Exception as error:
                faults.append(f"{type(error).__name__}: {error}")
            times[number] = perf_counter_ns() - start

    threads = [threading.Thread(target=caller) for _ in range(count)]
    for thread in threads:
        thread.start()
    with _no_collector():
        gate.wait()
        start = perf_counter_ns()
        for thread in threads:
            thread.join()
        total = perf_counter_ns() - start
    if faults:
        return {"fault": faults[0]}
    ids = [one for one in found if one is not None]
    return {
        "total_ns": total,
        "ns": times,
        "tokens": list(map(len, ids)),
        "digests": list(map(digest, ids)),
    }


def traffic(engine: Engine, calls: int, size: int, seed: int) -> dict[str, Any]:
    """Encode random words, call after call; how much memory is held then, how long calls took."""
    random_words(size, seed)  # what making the text takes is not the engine's
    before = rss()
    engine.encode(random_words(size, seed))
    times, most = [], 0
    together = hashlib.sha256()
    tokens = 0
    for number in range(calls):
        text = random_words(size, seed + 1 + number)
        with _no_collector():
            start = perf_counter_ns()
            ids = engine.encode(text)
            times.append(perf_counter_ns() - start)
        tokens += len(ids)
        together.update(digest(ids).encode())
        del ids, text
        most = max(most, rss())
    return {
        "ns": times,
        "tokens": [tokens],
        "digests": [together.hexdigest()],
        "rss": rss() - before,
        "rss_most": most - before,
    }


def ticker(engine: Engine, file: str) -> dict[str, Any]:
    """Encode each prompt in a thread beside an event loop that wants to wake every millisecond.

    Answers with the longest time for which each call held the loop up.
    """
    prompts = read_prompts(file)
    held: list[int] = []
    found: list[Ids] = []

    async def tick(stop: asyncio.Event) -> int:
        worst, last = 0, perf_counter_ns()
        while not stop.is_set():
            await asyncio.sleep(0.001)
            now = perf_counter_ns()
            worst, last = max(worst, now - last), now
        return worst

    async def run() -> None:
        for prompt in prompts:
            stop = asyncio.Event()
            ticking = asyncio.create_task(tick(stop))
            await asyncio.sleep(0.005)
            found.append(await asyncio.to_thread(_call, engine, prompt))
            stop.set()
            held.append(await ticking)

    with _no_collector():
        asyncio.run(run())
    return {"ns": held, "tokens": list(map(len, found)), "digests": list(map(digest, found))}


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "encode": encode,
    "grow": grow,
    "decode": decode,
    "stream": stream,
    "callers": callers,
    "traffic": traffic,
    "ticker": ticker,
}
