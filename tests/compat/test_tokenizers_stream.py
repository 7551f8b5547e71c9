"""`DecodeStream`: the text of ids as they come, against `tokenizers` and against whole decodes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kizami.compat import tokenizers as ours
from kizami.compat.tokenizers.decoders import DecodeStream
from kizami.errors import InputTypeError, InvalidIdError

from tests.compat.hf import EOS, both, model, small, theirs
from tests.compat.test_tokenizers_settings import texts
from tests.shared import shared_path

PAIR = both(small())
ids_lists = st.lists(st.integers(0, 280), max_size=12)


def stream_of(tokenizer: Any, pushed: list[int], **options: Any) -> list[str | None]:
    kind = DecodeStream if isinstance(tokenizer, ours.Tokenizer) else theirs.decoders.DecodeStream
    stream = kind(**options)
    return [stream.step(tokenizer, id_) for id_ in pushed]


def check(theirs_: list[str | None], ours_: list[str | None]) -> None:
    """The same text, and never later: the original holds back whole tokens, not characters."""
    so_far = ["", ""]
    for parts in zip(theirs_, ours_, strict=True):
        so_far = [text + (part or "") for text, part in zip(so_far, parts, strict=True)]
        assert so_far[1].startswith(so_far[0])
    assert so_far[0] == so_far[1]


@given(texts, st.booleans())
def test_whole_texts_come_as_from_the_original(text: str, skip: bool) -> None:
    ids = PAIR.ours.encode(text).ids
    if "\ufffd" in text:
        return  # which the original takes for an unfinished character
    check(*PAIR.each(lambda t: stream_of(t, ids, skip_special_tokens=skip)))


@given(ids_lists, ids_lists, st.booleans())
def test_any_ids_come_as_whole_characters(prompt: list[int], ids: list[int], skip: bool) -> None:
    tokenizer = PAIR.ours
    parts = stream_of(tokenizer, ids, skip_special_tokens=skip)
    whole = tokenizer.decode(ids, skip_special_tokens=skip)
    given = "".join(part or "" for part in parts)
    assert "" not in parts
    assert whole.startswith(given)
    # What is held back is one unfinished character.
    assert whole[len(given) :] in ("", "\ufffd")
    # All at once gives what one by one gives.
    assert (DecodeStream([], skip).step(tokenizer, ids) or "") == given


@given(texts, texts)
def test_a_prompt_is_not_given_again(prompt: str, text: str) -> None:
    ids = [PAIR.ours.encode(part).ids for part in (prompt, text)]
    if "\ufffd" in prompt + text:
        return
    check(*PAIR.each(lambda t: stream_of(t, ids[1], ids=ids[0])))


def test_b42_a_prompt_that_ends_inside_a_character() -> None:
    ids = PAIR.ours.encode("hello ").ids
    party = PAIR.ours.encode("a🎋").ids[1:]
    assert len(party) == 2
    theirs_, ours_ = PAIR.each(lambda t: stream_of(t, party[1:], ids=[*ids, *party[:1]]))
    # The original gives the prompt again.
    assert theirs_ == ["hello 🎋"]
    assert ours_ == ["🎋"]


def test_b42_with_special_tokens_between() -> None:
    ids = PAIR.ours.encode("the").ids
    party = PAIR.ours.encode("🎋").ids
    eos = PAIR.ours.token_to_id(EOS)
    prompt = [*ids, *party[:1], *[eos] * 9]
    assert stream_of(PAIR.ours, party[1:], ids=prompt, skip_special_tokens=True) == ["🎋"]
    # Not skipped, the special token ends the character.
    assert stream_of(PAIR.ours, party[1:], ids=prompt) == ["\ufffd"]


def test_b44_characters_of_many_tokens() -> None:
    ids = PAIR.ours.encode("👨‍👩‍👧").ids
    theirs_, ours_ = PAIR.each(lambda t: stream_of(t, ids))
    assert ours_ == theirs_
    assert None in ours_
    assert "".join(part or "" for part in ours_) == "👨‍👩‍👧"


def test_b50_bytes_that_are_no_character_are_not_waited_for() -> None:
    lead = PAIR.ours.token_to_id("ð")
    parts = stream_of(PAIR.ours, [lead] * 1000)
    assert parts == [None] + ["\ufffd"] * 999
    # The original waits for ever, and decodes all of it each time.
    assert stream_of(PAIR.theirs, [lead] * 50) == [None] * 50


def test_b49_unknown_ids_give_nothing() -> None:
    ids = PAIR.ours.encode("the é").ids
    with_unknown = [id_ for known in ids for id_ in (known, 99_999)]
    theirs_, ours_ = PAIR.each(lambda t: stream_of(t, with_unknown))
    assert ours_ == theirs_
    assert DecodeStream().step(PAIR.ours, with_unknown) == "the é"
    assert PAIR.ours.decode(with_unknown) == PAIR.theirs.decode(with_unknown) == "the é"
    assert stream_of(PAIR.ours, ids[-1:], ids=[*ids[:-1], 99_999]) == stream_of(
        PAIR.theirs, ids[-1:], ids=[*ids[:-1], 99_999]
    )


@pytest.mark.parametrize("wrong", [-1, 1 << 32, "5", 1.5, [-1], [1 << 40], ["5"], None])
def test_b49_impossible_ids(wrong: Any) -> None:
    stream = DecodeStream()
    with pytest.raises((InvalidIdError, InputTypeError)):
        stream.step(PAIR.ours, wrong)
    assert stream.step(PAIR.ours, PAIR.ours.encode("the").ids) == "the"


def test_what_is_no_stream() -> None:
    for wrong in (False, "ab", 5):
        with pytest.raises(InputTypeError):
            DecodeStream(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="must be a kizami"):
        DecodeStream().step(PAIR.theirs, 5)


def test_copies_go_on_alone() -> None:
    party = PAIR.ours.encode("🎋").ids
    stream = DecodeStream(skip_special_tokens=None)
    for twin in (copy.copy(stream), copy.deepcopy(stream)):
        assert twin.step(PAIR.ours, party) == "🎋"
    stream.step(PAIR.ours, party[0])
    for twin in (copy.copy(stream), copy.deepcopy(stream)):
        assert twin.step(PAIR.ours, party[1:]) == "🎋"
    assert stream.step(PAIR.ours, PAIR.ours.encode("a").ids) == "\ufffda"


@pytest.mark.parametrize("name", ["gpt2", "llama3", "qwen3", "deepseek_v3", "gpt-oss"])
def test_models(name: str) -> None:
    pair = model(name)
    path = shared_path("data", "corpus", "multilingual.txt")
    text = path.read_bytes()[:40_000].decode("utf-8", "ignore").replace("\ufffd", "")
    ids = pair.ours.encode(text, add_special_tokens=False).ids
    theirs_, ours_ = pair.each(lambda t: stream_of(t, ids))
    check(theirs_, ours_)
    half = len(ids) // 2
    assert stream_of(pair.ours, ids[half:], ids=ids[:half])[-50:] == ours_[-50:]
