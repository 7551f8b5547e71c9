"""Differential fuzzing of every model against the engine that its ids come from.

    python tests/property/fuzz_models.py --model qwen3 --strings 200000 --seed 1
    python tests/property/fuzz_models.py --model all

`tests/parity/test_models.py` runs a few of the same texts. Every string, with the model's control
tokens among its parts, is encoded with and without trust, in batches and as segments; a share of
them alone, counted, and decoded again. The same model and seed give the same strings. Progress
goes to stderr; a line a model on stdout has the figures. The exit status is 1 if anything
differed. Files are found as in the tests, by `KIZAMI_SHARED`.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import kizami
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from kizami.reference import well_formed

from tests.models import CASES, Case, load, oracle
from tests.property.fuzz_long import shrink
from tests.texts import Writer

BATCH = 5_000
NAMES = 40
SHOWN = 5


class Result(NamedTuple):
    """What one batch gave."""

    strings: int
    comparisons: int
    ids: int
    differences: list[str]


def check(case: Case, seed: int, number: int, strings: int = BATCH) -> Result:
    """Compares batch `number` of a seed."""
    tokenizer, published = load(case.source), oracle(case.source)
    rng = random.Random(f"choices/{case.vectors}/{seed}/{number}")
    names = list(published.names)
    names = rng.sample(names, min(len(names), NAMES))
    # What combines with the end of a name, and what is lost by its flags.
    names += [name + rng.choice(["\u0338", " ", "  ", "\n"]) for name in names[:4]]
    writer = Writer(f"{case.vectors}/{seed}/{number}", names)
    texts = [writer.text() for _ in range(strings)]
    trust = [rng.random() < 0.5 for _ in texts]
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
                differences.append(explain(case, "encode_batch", text, trusted))

    segments = list(zip(texts, trust, strict=True))
    mixed = [expected[trusted][at] for at, trusted in enumerate(trust)]
    comparisons += 1
    if not np.array_equal(tokenizer.encode_segments(segments), np.concatenate(mixed)):
        differences.append(f"encode_segments of batch {number} of seed {seed}")
    for at in range(0, strings, 10):
        text, trusted = segments[at]
        ids = tokenizer.encode(text, allow_special=trusted)
        comparisons += 1
        if not np.array_equal(ids, mixed[at]):
            differences.append(explain(case, "encode", text, trusted))
        elif tokenizer.count(text, allow_special=trusted) != len(ids):
            differences.append(f"count({text!a}, allow_special={trusted})")
        elif not (published.normalizes or trusted) and tokenizer.decode(ids) != well_formed(text):
            differences.append(f"decode(encode({text!a}))")
    return Result(len(texts), comparisons, sum(map(len, mixed)), differences)


def explain(case: Case, call: str, text: str, trusted: bool) -> str:
    """The smallest text that still differs, or the text itself if it does not differ alone."""
    tokenizer, published = load(case.source), oracle(case.source)

    def ours(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, allow_special=trusted).tolist()
        return ids

    def differs(candidate: str) -> bool:
        return ours(candidate) != published.encode(candidate, trusted)

    if not differs(text):
        return f"{call}, but not encode: {text!a}, allow_special={trusted}"
    text = shrink(text, differs)
    got, must = ours(text), published.encode(text, trusted)
    return f"{call}({text!a}, allow_special={trusted}): {got[:50]}, must be {must[:50]}"


def fuzz(case: Case, strings: int, seed: int) -> int:
    """Compares so many strings of a model; the number of differences."""
    total = Result(0, 0, 0, [])
    start = shown = time.monotonic()
    for number in range(-(-strings // BATCH)):
        result = check(case, seed, number, min(BATCH, strings - total.strings))
        total = Result(*(a + b for a, b in zip(total, result, strict=True)))
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            print(
                f"{case.vectors}: {total.strings} strings, {shown - start:.0f} s, "
                f"{len(total.differences)} differences",
                file=sys.stderr,
                flush=True,
            )
    for difference in total.differences[:SHOWN]:
        print(f"difference: {difference}")
    print(
        f"{case.vectors}, seed {seed}: {total.strings} strings, {total.ids} ids, "
        f"{total.comparisons} comparisons, {len(total.differences)} differences",
        flush=True,
    )
    return len(total.differences)


def main() -> int:
    cases = {case.vectors: [case] for case in CASES}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=[*cases, "all"], default="all")
    parser.add_argument("--strings", type=int, default=200_000, help="how many to compare, a model")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    kizami.set_num_threads(2)
    chosen = {**cases, "all": CASES}[options.model]
    differences = sum(fuzz(case, options.strings, options.seed) for case in chosen)
    return 1 if differences else 0


if __name__ == "__main__":
    raise SystemExit(main())
