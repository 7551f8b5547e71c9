"""Parity of every model with the engine that its ids come from: all characters, random texts.

What runs here takes a minute: one model a family, and of the code points every one below U+3400
and in the other places where scripts are small, but of the rest (ideographs, Hangul, private and
unassigned) only every 61st. `KIZAMI_SWEEP=all` takes every code point of every model, which takes
an hour or two; `tests/property/fuzz_models.py` makes as many random texts as you like.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from itertools import pairwise

import numpy as np
import pytest

from tests.models import CASES, Case, load, oracle
from tests.property.fuzz_models import check

# `{}` is the code point.
CONTEXTS = ["{}", "a{}b", "A{}'s", " {}", "{0}{0}", "{}1", "!{}\n", "中{}Z"]
FAMILIES = [
    "cl100k_base", "cl100k_base.hf", "deepseek_v3", "gpt2", "gpt-oss", "kimi-k2.5",
    "mistral_tekken_240911", "qwen3", "qwen3.5",
]  # fmt: skip
ALL = os.environ.get("KIZAMI_SWEEP") == "all"
SWEPT = [case for case in CASES if ALL or case.vectors in FAMILIES]
SMALL_SCRIPTS = [range(0x3400), range(0xA000, 0xAC00), range(0xF900, 0x10000)]
STEP = 61
FUZZED = 5_000


@pytest.fixture(scope="module", autouse=True)
def _versions() -> None:
    # Another version may have other Unicode tables.
    for package, wanted in (("tiktoken", "0.14.0"), ("tokenizers", "0.23.3")):
        pytest.importorskip(package)
        if version(package) != wanted:
            pytest.skip(f"the ids are those of {package} {wanted}, not of {version(package)}")


def code_points(number: int) -> list[int]:
    """Those that a context is filled with; in each context other ones of what is not all there."""
    chosen = [range(0x110000)] if ALL else [*SMALL_SCRIPTS, range(number, 0x110000, STEP)]
    once = set().union(*chosen)
    return sorted(once.difference(range(0xD800, 0xE000)))


@pytest.mark.parametrize("case", SWEPT, ids=lambda case: case.vectors)
def test_b17_every_code_point(case: Case) -> None:
    tokenizer, published = load(case.source), oracle(case.source)
    wrong = []
    for number, context in enumerate(CONTEXTS):
        points = code_points(number)
        # In parts, for the texts of a million are much to hold.
        for part in (points[at : at + 0x4000] for at in range(0, len(points), 0x4000)):
            many = [context.format(chr(point)) for point in part]
            ids, offsets = published.encode_many(many, trusted=False)
            batch = tokenizer.encode_batch(many)
            if np.array_equal(batch.ids, ids) and np.array_equal(batch.offsets, offsets):
                continue
            expected = [ids[a:b].tolist() for a, b in pairwise(offsets)]
            found = zip(many, batch.tolist(), expected, strict=True)
            wrong += [(text, got, must) for text, got, must in found if got != must]
    assert not wrong, f"{len(wrong)} texts differ; first, ours, theirs: {wrong[0]!a}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.vectors)
def test_random_texts(case: Case) -> None:
    result = check(case, seed=1, number=0, strings=FUZZED // len(CASES) if not ALL else FUZZED)
    assert result.ids > result.strings > 0
    assert not result.differences, result.differences[0]
