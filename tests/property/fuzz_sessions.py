"""Random walks of sessions against full encodes, for as long as you like.

    python tests/property/fuzz_sessions.py --steps 200000 --seed 1 --jobs 2 --model kimi-k3

Not part of the test run, but for a few steps. Each step changes a prompt, encodes it with a
session, with a cache that several walks share, and from nothing, and compares the ids; arrays that
were given out before must not have changed. The same seed gives the same walks, whatever `--jobs`
is. The last line on stdout has the figures. The exit status is 1 if anything differed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import kizami
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.prompts import Talk, Walk

STEPS = 1_000
LONG_EVERY = 400


class Result(NamedTuple):
    """What one walk gave."""

    steps: int
    ids: int
    reused: int
    found: int
    differences: list[str]


@cache
def tokenizer() -> kizami.Tokenizer:
    return kizami.load(model)


model = "kimi-k3"


def begin(name: str) -> None:
    """In each process: walk with this model."""
    global model
    model = name


@cache
def shared(max_bytes: int) -> kizami.SessionCache:
    return kizami.SessionCache(tokenizer(), max_bytes=max_bytes)


class Check:
    """Compares, and remembers what was given out."""

    def __init__(self, rng: random.Random, name: str) -> None:
        self.rng = rng
        self.name = name
        self.session = tokenizer().session()
        self.given: list[tuple[Any, Any]] = []
        self.result = Result(0, 0, 0, 0, [])

    def compare(self, step: int, ids: Any, cached: Any, want: Any, what: Any) -> None:
        differences = self.result.differences
        for way, got in (("session", ids), ("cache", cached)):
            if not np.array_equal(got, want):
                differences.append(f"{way}, {self.name}, step {step}: {what!r:.3000}")
        for array, copy in self.given:
            if not np.array_equal(array, copy):
                differences.append(f"an array of an earlier step changed, {self.name}, step {step}")
        if self.rng.random() < 0.3:
            self.given.append((ids, want))
            self.given.append((cached, want))
        if len(self.given) > 8:
            del self.given[: self.rng.randint(1, len(self.given))]
        steps, all_ids, reused, found, _ = self.result
        counts = (steps + 1, all_ids + len(want), reused + self.session.reused, found)
        self.result = Result(*counts, differences)


def walk(job: tuple[int, int]) -> Result:
    """Walk `job[1]` of seed `job[0]`."""
    seed, number = job
    rng = random.Random(f"{seed}/{number}")
    kizami.set_num_threads(rng.choice([1, 2, 5]))
    store = shared(rng.choice([1 << 14, 1 << 18, 1 << 26]))
    before = store.statistics().reused
    warnings.simplefilter("ignore", kizami.errors.ChatWarning)
    check = Check(rng, f"walk {number} of seed {seed}")
    (talk if number % 4 == 3 else prompts)(rng, check, store)
    return check.result._replace(found=store.statistics().reused - before)


def prompts(
    rng: random.Random, check: Check, store: kizami.SessionCache, count: int = STEPS
) -> None:
    steps = Walk(rng)
    for step in range(count):
        if rng.randrange(LONG_EVERY) == 0:
            steps.long()
        prompt = steps.step()
        chunks = rng.random() < 0.95
        want = tokenizer().encode_segments(list(prompt), legacy_chunks=chunks)
        ids = check.session.encode_segments(prompt, legacy_chunks=chunks)
        cached = store.encode_segments(prompt, legacy_chunks=chunks)
        check.compare(step, ids, cached, want, prompt)
        if rng.randrange(300) == 0:
            check.session.reset()
        if rng.randrange(3000) == 0:
            store.clear()


def talk(rng: random.Random, check: Check, store: kizami.SessionCache, count: int = STEPS) -> None:
    steps = Talk(rng)
    options: dict[str, Any] = {}
    for step in range(count):
        messages = steps.step()
        if rng.random() < 0.05:
            options = {
                "thinking": rng.random() < 0.7,
                "tools": rng.choice([None, [{"name": "ls"}]]),
            }
        answers = []
        encoders = (tokenizer().encode_chat, check.session.encode_chat, store.encode_chat)
        for encode in encoders:
            try:
                answers.append(encode(messages, **options))
            except kizami.errors.KizamiError as error:
                answers.append(np.array([ord(char) for char in repr(error)], "uint32"))
        want, ids, cached = answers
        check.compare(step, ids, cached, want, messages)
        if rng.randrange(100) == 0:
            check.session.encode_segments([("something else", False)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20_000, help="how many, at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--model", default=model, help="what kizami.load takes")
    options = parser.parse_args()

    total = Result(0, 0, 0, 0, [])
    start = shown = time.monotonic()
    walks = -(-options.steps // STEPS)
    with ProcessPoolExecutor(options.jobs, initializer=begin, initargs=(options.model,)) as pool:
        jobs = ((options.seed, number) for number in range(walks))
        for done, result in enumerate(pool.map(walk, jobs), 1):
            total = Result(*(a + b for a, b in zip(total, result, strict=True)))
            if time.monotonic() - shown > 10 or done == walks:
                shown = time.monotonic()
                print(
                    f"{done}/{walks} walks, {shown - start:.0f} s, "
                    f"{len(total.differences)} differences",
                    file=sys.stderr,
                    flush=True,
                )
    for difference in total.differences[:5]:
        print(f"difference: {difference}")
    print(
        f"seed {options.seed}: {total.steps} steps, {total.ids} ids, {total.reused} taken over by "
        f"sessions, {total.found} by caches, {len(total.differences)} differences"
    )
    return 1 if total.differences else 0


if __name__ == "__main__":
    raise SystemExit(main())
