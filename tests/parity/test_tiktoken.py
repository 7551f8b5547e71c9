"""Parity with `tiktoken` 0.14.0, the engine of the published tokenizer.

Needs no data but what the wheel bundles. Every code point is tried in contexts in which it can
change where a piece begins or ends; then random strings.
"""

from __future__ import annotations

from importlib.metadata import version
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kizami import Tokenizer

from tests.oracle import PublishedPath
from tests.texts import CONTROLS, segment_lists, texts

# `{}` is the code point.
CONTEXTS = [
    "{}",
    "a{}",
    "A{}'s",
    "{}'s",
    "a{}b",
    " {}",
    "{0}{0}",
    "{}1",
    "中{}",
    "{}Z",
    "{}\n",
    "!{}",
]
PLANE = 0x10000
PLANES = range(0x110000 // PLANE)


@pytest.fixture(scope="module")
def published(tokenizer: Tokenizer) -> PublishedPath:
    # Another version may split by other Unicode tables.
    assert version("tiktoken") == "0.14.0"
    return PublishedPath(tokenizer)


@pytest.mark.parametrize("plane", PLANES)
def test_b17_every_code_point(tokenizer: Tokenizer, published: PublishedPath, plane: int) -> None:
    code_points = range(plane * PLANE, (plane + 1) * PLANE)
    for context in CONTEXTS:
        many = [context.format(chr(code_point)) for code_point in code_points]
        ids, offsets = published.encode_many(many)
        batch = tokenizer.encode_batch(many)
        if np.array_equal(batch.ids, ids) and np.array_equal(batch.offsets, offsets):
            continue
        expected = [ids[a:b].tolist() for a, b in pairwise(offsets)]
        pairs = zip(code_points, batch.tolist(), expected, strict=True)
        wrong = [(c, got, must) for c, got, must in pairs if got != must]
        code_point, got, must = wrong[0]
        pytest.fail(
            f"{len(wrong)} code points differ in {context!r}; "
            f"U+{code_point:04X}: {got}, must be {must}"
        )


@pytest.mark.parametrize("name", CONTROLS)
def test_b02_ordinary_encoding_of_control_names(
    tokenizer: Tokenizer, published: PublishedPath, name: str
) -> None:
    many = [template.format(name) for template in ("{}", "a{}", "{}b", "{0}{0}", " {} ", "中{}\n")]
    for trusted in (False, True):
        expected = [published.encode(text, trusted) for text in many]
        assert tokenizer.encode_batch(many, allow_special=trusted).tolist() == expected


@given(text=texts(surrogates=True, max_parts=40), trusted=st.booleans())
@example(text="a\ud83d<|sep|>\ude00 \ud83d\ude00", trusted=True)
@example(text="<|open|><|sep|><|reserved_token_163700|>[EOS", trusted=True)
def test_mixed_strings(
    tokenizer: Tokenizer, published: PublishedPath, text: str, trusted: bool
) -> None:
    assert tokenizer.encode(text, allow_special=trusted).tolist() == published.encode(text, trusted)


@given(segments=segment_lists(surrogates=True))
def test_mixed_segments(
    tokenizer: Tokenizer, published: PublishedPath, segments: list[tuple[str, bool]]
) -> None:
    assert tokenizer.encode_segments(segments).tolist() == published.encode_segments(segments)


@given(text=st.text(max_size=200), trusted=st.booleans())
def test_any_text(tokenizer: Tokenizer, published: PublishedPath, text: str, trusted: bool) -> None:
    assert tokenizer.encode(text, allow_special=trusted).tolist() == published.encode(text, trusted)
