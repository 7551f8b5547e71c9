"""Differential fuzzing against the published path, for as long as you like.

    python tests/property/fuzz_long.py --strings 2000000 --seed 1 --jobs 2

Not part of the test run. Every string is encoded with and without trust, in batches and as
segments; a share of them alone, counted, with several threads, and decoded again. One string in
2,000 has runs near 25,000 code points, one in 50,000 is near 400,000 long. The same seed gives the
same strings, whatever `--jobs` is. Progress goes to stderr; the last line on stdout has the
figures. The exit status is 1 if anything differed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import kizami
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from kizami.reference import well_formed

from tests.oracle import PublishedPath
from tests.texts import Writer

BATCH = 5_000
RUN_EVERY, SLICE_EVERY = 2_000, 50_000
SHOWN = 5


class Result(NamedTuple):
    """What one batch gave."""

    strings: int
    comparisons: int
    cut: int
    ids: int
    differences: list[str]


@cache
def engines() -> tuple[kizami.Tokenizer, PublishedPath]:
    """Ours and the published path, once a process."""
    tokenizer = kizami.load("kimi-k3")
    return tokenizer, PublishedPath(tokenizer)


def shrink(text: str, differs: Callable[[str], bool]) -> str:
    """A shorter text that still differs: leaves out ever smaller parts."""
    size = max(len(text) // 2, 1)
    while size:
        at = 0
        while at < len(text):
            shorter = text[:at] + text[at + size :]
            if differs(shorter):
                text = shorter
            else:
                at += size
        size //= 2
    return text


def check_short(seed: int, number: int) -> Result:
    """Compares one batch of short strings."""
    tokenizer, published = engines()
    writer = Writer(f"{seed}/{number}")
    rng = random.Random(f"choices/{seed}/{number}")
    texts = [writer.text() for _ in range(BATCH)]
    trust = [rng.random() < 0.5 for _ in texts]
    kizami.set_num_threads(rng.choice([1, 2, 3, 8]))
    comparisons, differences = 0, []

    expected = {}
    for trusted in (False, True):
        ids, offsets = published.encode_many(texts, trusted)
        expected[trusted] = parts = [ids[a:b] for a, b in pairwise(offsets)]
        batch = tokenizer.encode_batch(texts, allow_special=trusted)
        comparisons += len(texts)
        if np.array_equal(batch.ids, ids) and np.array_equal(batch.offsets, offsets):
            continue
        for text, got, must in zip(texts, batch, parts, strict=True):
            if not np.array_equal(got, must):
                differences.append(explain("encode_batch", text, trusted))

    segments = list(zip(texts, trust, strict=True))
    mixed = [expected[trusted][at] for at, trusted in enumerate(trust)]
    comparisons += 1
    if not np.array_equal(tokenizer.encode_segments(segments), np.concatenate(mixed)):
        differences.append(f"encode_segments of batch {number} of seed {seed}")
    if tokenizer.count_segments(segments) != sum(map(len, mixed)):
        differences.append(f"count_segments of batch {number} of seed {seed}")

    for at in range(0, BATCH, 10):
        text, trusted = segments[at]
        ids = tokenizer.encode(text, allow_special=trusted)
        comparisons += 1
        if not np.array_equal(ids, mixed[at]):
            differences.append(explain("encode", text, trusted))
        elif tokenizer.count(text, allow_special=trusted) != len(ids):
            differences.append(f"count({text!r}, allow_special={trusted})")
        elif tokenizer.decode(ids) != well_formed(text):
            differences.append(f"decode(encode({text!r}, allow_special={trusted}))")
    return Result(len(texts), comparisons, 0, sum(map(len, mixed)), differences)


def check_long(seed: int, number: int) -> Result:
    """Compares the long strings that belong to one batch."""
    tokenizer, published = engines()
    writer = Writer(f"long/{seed}/{number}")
    rng = random.Random(f"choices/long/{seed}/{number}")
    first = number * BATCH
    places = range(first, first + BATCH)
    texts = [writer.run_text() for place in places if place % RUN_EVERY == 0]
    texts += [writer.slice_text() for place in places if place % SLICE_EVERY == 0]
    comparisons, ids, differences = 0, 0, []
    for text in texts:
        for trusted in (False, True):
            kizami.set_num_threads(rng.choice([1, 2, 5]))
            got = tokenizer.encode(text, allow_special=trusted)
            comparisons += 1
            ids += len(got)
            if got.tolist() != published.encode(text, trusted):
                differences.append(explain("encode", text, trusted))
            elif tokenizer.count(text, allow_special=trusted) != len(got):
                differences.append(f"count of a text of {len(text)}, batch {number} of seed {seed}")
            elif tokenizer.decode(got) != "".join(map(well_formed, published.cuts(text))):
                differences.append(
                    f"decode of a text of {len(text)}, batch {number} of seed {seed}"
                )
    return Result(len(texts), comparisons, len(texts), ids, differences)


def explain(call: str, text: str, trusted: bool) -> str:
    """The smallest text that still differs, or the text itself if it does not differ alone."""
    tokenizer, published = engines()

    def differs(candidate: str) -> bool:
        ids = tokenizer.encode(candidate, allow_special=trusted).tolist()
        return ids != published.encode(candidate, trusted)

    if not differs(text):
        return f"{call}, but not encode: {text!r:.2000}, allow_special={trusted}"
    text = shrink(text, differs) if len(text) < 60_000 else text
    got = tokenizer.encode(text, allow_special=trusted).tolist()
    must = published.encode(text, trusted)
    return f"{call}({text!r:.2000}, allow_special={trusted}): {got[:50]}, must be {must[:50]}"


def check(job: tuple[int, int]) -> Result:
    """Compares batch `job[1]` of seed `job[0]`."""
    short, long = check_short(*job), check_long(*job)
    return Result(*(a + b for a, b in zip(short, long, strict=True)))


def results(seed: int, batches: int, jobs: int) -> Iterator[Result]:
    """The result of each batch, in order."""
    work = [(seed, number) for number in range(batches)]
    if jobs == 1:
        yield from map(check, work)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(check, work, chunksize=4)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--strings", type=int, default=200_000, help="how many to compare, at least"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()

    total = Result(0, 0, 0, 0, [])
    start = shown = time.monotonic()
    batches = -(-options.strings // BATCH)
    for done, result in enumerate(results(options.seed, batches, options.jobs), 1):
        total = Result(*(a + b for a, b in zip(total, result, strict=True)))
        if time.monotonic() - shown > 10 or done == batches:
            shown = time.monotonic()
            print(
                f"{done}/{batches} batches, {total.strings} strings, {shown - start:.0f} s, "
                f"{len(total.differences)} differences",
                file=sys.stderr,
                flush=True,
            )
    for difference in total.differences[:SHOWN]:
        print(f"difference: {difference}")
    print(
        f"seed {options.seed}: {total.strings} strings ({total.cut} near cuts), {total.ids} ids, "
        f"{total.comparisons} comparisons, {len(total.differences)} differences"
    )
    return 1 if total.differences else 0


if __name__ == "__main__":
    raise SystemExit(main())
