"""Truncation, padding, templates: random settings on random texts, against `tokenizers`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compat.hf import (
    BOS,
    EOS,
    PROCESSORS,
    Pair,
    Refused,
    both,
    processed,
    reset,
    seen,
    small,
    tried,
)
from tests.texts import texts as any_texts

WORDS = ["the", " hello", "abc", "  ", " a", "é", "🎉", "12", "\n", BOS, EOS, "x", " the", "   er"]
texts = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=8).map("".join),
    any_texts(max_parts=4),
)
words = st.lists(texts, max_size=4)

truncations = st.fixed_dictionaries(
    {"max_length": st.integers(0, 9)},
    optional={
        "stride": st.integers(0, 6),
        "strategy": st.sampled_from(["longest_first", "only_first", "only_second"]),
        "direction": st.sampled_from(["left", "right"]),
    },
)
paddings = st.fixed_dictionaries(
    {},
    optional={
        "length": st.none() | st.integers(0, 12),
        "pad_to_multiple_of": st.none() | st.integers(0, 5),
        "pad_id": st.integers(0, 300),
        "pad_type_id": st.integers(0, 3),
        "pad_token": st.sampled_from(["[PAD]", "é"]),
        "direction": st.sampled_from(["left", "right"]),
    },
)


def lacks_room(pair: Pair, is_pair: bool, add_special_tokens: bool) -> bool:
    """Where the original goes below zero, and then does not truncate at all."""
    truncation = pair.ours.truncation
    added = pair.ours.num_special_tokens_to_add(is_pair)
    return add_special_tokens and truncation is not None and truncation["max_length"] < added


@given(
    st.sampled_from(sorted(PROCESSORS)),
    st.none() | truncations,
    st.none() | paddings,
    st.one_of(texts, words),
    st.data(),
    st.booleans(),
)
def test_one_text_or_a_pair(
    name: str,
    truncation: dict[str, Any] | None,
    padding: dict[str, Any] | None,
    text: Any,
    data: st.DataObject,
    add_special_tokens: bool,
) -> None:
    pair = reset(processed(name))
    is_pretokenized = isinstance(text, list)
    second = data.draw(st.none() | (words if is_pretokenized else texts))
    if truncation is not None:
        theirs, ours = pair.each(lambda t: tried(lambda: t.enable_truncation(**truncation)))
        assert ours == theirs
    if padding is not None:
        pair.each(lambda t: t.enable_padding(**padding))
    assert pair.ours.truncation == pair.theirs.truncation
    assert pair.ours.padding == pair.theirs.padding

    arguments = (text, second, is_pretokenized, add_special_tokens)
    if lacks_room(pair, second is not None, add_special_tokens):
        assert isinstance(tried(lambda: pair.ours.encode(*arguments)), Refused)
        return
    theirs, ours = pair.each(lambda t: tried(lambda: seen(t.encode(*arguments))))
    assert ours == theirs


@given(
    st.sampled_from(sorted(PROCESSORS)),
    st.none() | truncations,
    st.none() | paddings,
    st.lists(st.one_of(texts, st.tuples(texts, texts)), max_size=5),
    st.booleans(),
    st.booleans(),
)
def test_batches(
    name: str,
    truncation: dict[str, Any] | None,
    padding: dict[str, Any] | None,
    items: list[Any],
    add_special_tokens: bool,
    fast: bool,
) -> None:
    pair = reset(processed(name))
    if truncation is not None:
        pair.each(lambda t: tried(lambda: t.enable_truncation(**truncation)))
    if padding is not None:
        pair.each(lambda t: t.enable_padding(**padding))
    if any(lacks_room(pair, isinstance(i, tuple), add_special_tokens) for i in items):
        return
    columns = ("ids", "offsets", "type_ids", "attention_mask", "special_tokens_mask", "word_ids")
    method = "encode_batch_fast" if fast else "encode_batch"
    theirs, ours = pair.each(
        lambda t: tried(
            lambda: [
                seen(e, columns)
                for e in getattr(t, method)(items, add_special_tokens=add_special_tokens)
            ]
        )
    )
    assert ours == theirs


@given(st.sampled_from(sorted(PROCESSORS)), texts, texts, st.booleans())
def test_post_process_is_the_second_half_of_encode(
    name: str, text: str, second: str, add_special_tokens: bool
) -> None:
    pair = reset(processed(name))

    def run(tokenizer: Any) -> Any:
        raw = [tokenizer.encode(t, add_special_tokens=False) for t in (text, second)]
        alone = tokenizer.post_process(raw[0], None, add_special_tokens)
        return seen(alone), seen(tokenizer.post_process(*raw, add_special_tokens))

    theirs, ours = pair.each(run)
    assert ours == theirs


@pytest.mark.parametrize("name", sorted(PROCESSORS))
def test_special_tokens_are_counted(name: str) -> None:
    for is_pair in (False, True):
        theirs, ours = processed(name).each(lambda t, p=is_pair: t.num_special_tokens_to_add(p))
        assert ours == theirs


def test_settings_of_a_file_are_used() -> None:
    truncation = {"direction": "Left", "max_length": 5, "strategy": "OnlyFirst", "stride": 1}
    padding = {
        "strategy": {"Fixed": 8},
        "direction": "Left",
        "pad_to_multiple_of": None,
        "pad_id": 3,
        "pad_type_id": 1,
        "pad_token": "<p>",
    }
    pair = both(small(truncation=truncation, padding=padding))

    theirs, ours = pair.each(lambda t: (t.truncation, t.padding, seen(t.encode("the abc hello x"))))
    assert ours == theirs


def test_a_length_without_room_for_special_tokens_is_refused() -> None:
    # The original computes 0 - 1 without a sign, and does not truncate at all.
    pair = reset(processed("bos"))
    pair.each(lambda t: t.enable_truncation(0))

    assert len(pair.theirs.encode("the abc")) > 1
    with pytest.raises(ValueError, match="max_length 0 has no room for 1 special tokens"):
        pair.ours.encode("the abc")
    assert pair.ours.encode("the abc", add_special_tokens=False).ids == []


def test_a_stride_that_leaves_nothing_is_a_plain_error() -> None:
    # The original panics, and `except Exception` does not catch that.
    pair = reset(processed("bos"))
    pair.each(lambda t: t.enable_truncation(3, stride=2))

    error = tried(lambda: pair.theirs.encode("the abc hello x")).error
    assert not isinstance(error, Exception)
    with pytest.raises(ValueError, match="stride 2 is not below the 2 tokens"):
        pair.ours.encode("the abc hello x")
