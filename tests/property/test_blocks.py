"""Laws of block hashes: how ids come does not matter, nor what came and was taken back."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from kizami import BlockHasher, block_hashes

from tests.blocks import EDGES, SCHEMES, expected, seed_of

_ids = st.lists(st.sampled_from(EDGES) | st.integers(0, 2**32 - 1), max_size=40)
_steps = st.lists(
    st.tuples(st.just("push"), _ids)
    | st.tuples(st.just("array"), _ids)
    | st.tuples(st.just("one"), st.sampled_from(EDGES))
    | st.tuples(st.just("rewind"), st.integers(0, 120))
    | st.tuples(st.just("branch"), _ids),
    max_size=12,
)


@given(ids=_ids, block_size=st.integers(1, 20), scheme=st.sampled_from(SCHEMES))
def test_equals_the_rule(ids: list[int], block_size: int, scheme: Any) -> None:
    hashes = block_hashes(ids, block_size, scheme=scheme, seed=seed_of(scheme))

    assert hashes.tolist() == expected(ids, block_size, scheme=scheme, seed=seed_of(scheme))


@given(steps=_steps, block_size=st.integers(1, 20), scheme=st.sampled_from(SCHEMES))
def test_any_way_to_the_same_ids_gives_the_same_hashes(
    steps: list[tuple[str, Any]], block_size: int, scheme: Any
) -> None:
    options = {"scheme": scheme, "seed": seed_of(scheme)}
    hasher = BlockHasher(block_size, **options)
    ids: list[int] = []
    for step, value in steps:
        before = hasher.num_blocks
        if step == "rewind":
            kept = hasher.rewind(value)
            full = len(ids) // block_size * block_size
            exact = min(value, len(ids))
            assert kept == (exact if exact >= full else exact // block_size * block_size)
            ids = ids[:kept]
        elif step == "branch":
            hasher.copy().push(value)
        else:
            new = hasher.push(np.array(value, np.uint32) if step == "array" else value)
            ids += [value] if step == "one" else value
            assert new.tolist() == hasher.hashes()[before:].tolist()
        assert hasher.num_ids == len(ids)
        assert hasher.hashes().tolist() == block_hashes(ids, block_size, **options).tolist()


@given(
    turns=st.lists(st.tuples(st.integers(0, 100), _ids), max_size=8),
    block_size=st.integers(1, 20),
)
def test_following_an_array_that_changes(
    turns: list[tuple[int, list[int]]], block_size: int
) -> None:
    """The use with a session: the whole array each time, and how much of it is as before."""
    hasher = BlockHasher(block_size)
    ids = np.zeros(0, np.uint32)
    for unchanged, new in turns:
        unchanged = min(unchanged, len(ids))
        ids = np.concatenate([ids[:unchanged], np.array(new, np.uint32)])
        hasher.push(ids[hasher.rewind(unchanged) :])
        assert hasher.hashes().tolist() == block_hashes(ids, block_size).tolist()
