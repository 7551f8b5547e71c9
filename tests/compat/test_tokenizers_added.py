"""Added tokens: flags, ids, saving, and special tokens that are text."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kizami.compat import tokenizers as ours
from kizami.errors import UnknownFormatError, UnsupportedError

from tests.compat.hf import EOS, Pair, both, is_aligned, model, seen, small, theirs, tried
from tests.texts import texts

# The last two are entries of the vocabulary.
CONTENTS = ["<n>", "<n><m>", "<m>", "né", "  ", "wör", "hello", "Ġthe"]
flags = st.fixed_dictionaries(
    {},
    optional={
        name: st.booleans() for name in ("single_word", "lstrip", "rstrip", "normalized", "special")
    },
)
added = st.lists(st.tuples(st.sampled_from(CONTENTS[:-1]), flags), max_size=5)
near = st.lists(st.sampled_from([*CONTENTS, " ", "  ", "a", "\n", EOS]), max_size=10).map("".join)


def add(tokenizer: Any, kind: Any, tokens: list[tuple[str, dict[str, bool]]]) -> int:
    count: int = tokenizer.add_tokens([kind(content, **options) for content, options in tokens])
    return count


@pytest.mark.parametrize("normalizer", [None, {"type": "NFC"}], ids=["as-is", "nfc"])
@given(first=added, second=added, text=st.one_of(near, texts(max_parts=4)), special=st.booleans())
def test_b72_b73_b76_tokens_that_are_added(
    normalizer: Any,
    first: list[tuple[str, dict[str, bool]]],
    second: list[tuple[str, dict[str, bool]]],
    text: str,
    special: bool,
) -> None:
    pair = both(small(normalizer=normalizer))
    for tokens in (first, second):
        counts = (
            add(pair.theirs, theirs.AddedToken, tokens),
            add(pair.ours, ours.AddedToken, tokens),
        )
        assert counts[0] == counts[1]

    def told(tokenizer: Any) -> Any:
        added = tokenizer.get_added_tokens_decoder()
        return (
            {id_: token.__getstate__() for id_, token in added.items()},
            tokenizer.get_vocab(),
            tokenizer.get_vocab_size(),
            tokenizer.get_vocab_size(False),
            [tokenizer.token_to_id(content) for content in CONTENTS],
            [tokenizer.id_to_token(id_) for id_ in range(270, 295)],
        )

    assert told(pair.ours) == told(pair.theirs)
    if special:
        if isinstance(tried(lambda: setattr(pair.ours, "encode_special_tokens", True)), type(None)):
            pair.theirs.encode_special_tokens = True
        else:
            special = False
    columns: tuple[str, ...] = ("ids", "tokens", "offsets", "word_ids")
    theirs_, ours_ = pair.each(lambda t: t.encode(text))
    assert ours_.ids == theirs_.ids
    if is_aligned(ours_):
        assert seen(ours_, columns) == seen(theirs_, columns)
    else:
        # Two tokens take the same white space.
        assert any(
            options.get("lstrip") or options.get("rstrip") for _, options in [*first, *second]
        )
    ids = theirs_.ids
    for skip in (True, False):
        decoded = pair.each(lambda t, s=skip: t.decode(ids, skip_special_tokens=s))
        # The original reads letters of the alphabet of bytes as bytes; see below.
        if {"né", "wör"}.isdisjoint(map(pair.ours.id_to_token, ids)):
            assert decoded[0] == decoded[1]


def test_white_space_that_is_an_added_token_itself() -> None:
    tokenizer = copy.deepcopy(model("gpt-neox").ours)
    assert tokenizer.token_to_id("  ") is not None
    tokenizer.add_tokens([ours.AddedToken("<m>", rstrip=True)])
    encoding = tokenizer.encode("a<m>  b")
    for column in ("tokens", "offsets"):
        with pytest.raises(UnknownFormatError, match="the same white space"):
            getattr(encoding, column)
    assert tokenizer.encode("a<m> b").tokens == ["a", "<m> ", "b"]


@given(added, near)
def test_b76_saved_and_copied_tokens_stay(
    tokens: list[tuple[str, dict[str, bool]]], text: str
) -> None:
    tokenizer = ours.Tokenizer.from_str(small())
    add(tokenizer, ours.AddedToken, tokens)
    tokenizer.enable_truncation(20, stride=2)
    tokenizer.enable_padding(length=9)
    columns: tuple[str, ...] = ("ids", "tokens", "offsets", "word_ids", "attention_mask")
    if not is_aligned(tokenizer.encode(text)):
        columns = ("ids", "word_ids", "attention_mask")
    before = seen(tokenizer.encode(text), columns)
    twins = [
        copy.copy(tokenizer),
        copy.deepcopy(tokenizer),
        pickle.loads(pickle.dumps(tokenizer)),
        ours.Tokenizer.from_str(tokenizer.to_str()),
        theirs.Tokenizer.from_str(tokenizer.to_str(pretty=True)),
    ]
    for twin in twins:
        assert seen(twin.encode(text), columns) == before
        assert twin.truncation == tokenizer.truncation
        assert twin.padding == tokenizer.padding
    twins[1].add_tokens(["<later>"])
    twins[1].no_truncation()
    assert tokenizer.token_to_id("<later>") is None
    assert tokenizer.truncation is not None


@pytest.mark.parametrize("name", ["gpt2", "llama3_1", "qwen3", "deepseek_v3"])
def test_saved_files_of_models(name: str, tmp_path: Any) -> None:
    pair = model(name)
    tokenizer = copy.deepcopy(pair.ours)
    tokenizer.add_special_tokens(["<new>"])
    tokenizer.add_tokens([ours.AddedToken("<other>", lstrip=True), "hello"])
    text = "Say  hello <new>and   <other> 中文 hello"
    saved = str(tmp_path / "tokenizer.json")
    tokenizer.save(saved)
    original = theirs.Tokenizer.from_file(saved)

    expected = theirs.Tokenizer.from_str(pair.theirs.to_str())
    expected.add_special_tokens(["<new>"])
    expected.add_tokens([theirs.AddedToken("<other>", lstrip=True), "hello"])
    assert json.loads(original.to_str()) == json.loads(expected.to_str())
    assert seen(tokenizer.encode(text)) == seen(expected.encode(text))
    assert seen(ours.Tokenizer.from_file(saved).encode(text)) == seen(expected.encode(text))


def test_b76_an_entry_of_the_vocabulary_that_spells_other_bytes_is_refused() -> None:
    # "Ġthe" as text is not " the", which has its id.
    pair = both(small())
    assert pair.theirs.add_tokens(["Ġthe"]) == 1
    with pytest.raises(UnsupportedError, match="cannot be added exactly") as caught:
        pair.ours.add_tokens(["Ġthe"])
    assert caught.value.name == "add_tokens"
    assert pair.ours.token_to_id("Ġthe") == 260
    assert pair.ours.get_added_tokens_decoder().keys() == {277, 278, 279, 280}


def test_a_token_of_letters_of_the_alphabet_decodes_to_itself() -> None:
    pair = both(small())
    pair.each(lambda t: t.add_tokens(["né"]))
    ids = pair.ours.encode("né").ids
    assert ids == pair.theirs.encode("né").ids
    # The original takes "é" for the letter that spells byte 0xE9.
    assert pair.theirs.decode(ids) == "n\ufffd"
    assert pair.ours.decode(ids) == "né"


def test_special_tokens_that_share_text_with_others_are_refused_as_text() -> None:
    pair = both(small())
    pair.each(lambda t: (t.add_special_tokens(["<a><b>"]), t.add_tokens(["<b>"])))
    with pytest.raises(UnsupportedError, match="shares text with '<b>'"):
        pair.ours.encode_special_tokens = True
    assert pair.ours.encode_special_tokens is False
    # A setting that holds is kept, too.
    other = ours.Tokenizer.from_str(small())
    other.encode_special_tokens = True
    other.add_special_tokens(["<a><b>"])
    with pytest.raises(UnsupportedError):
        other.add_tokens(["<b>"])
    assert other.token_to_id("<b>") is None


def test_b30_b04_special_tokens_as_text() -> None:
    pair = both(small())
    pair.each(lambda t: setattr(t, "encode_special_tokens", True))
    theirs_, ours_ = pair.each(lambda t: seen(t.encode(f"x {EOS} y")))
    assert ours_ == theirs_
    assert pair.ours.token_to_id(EOS) not in ours_["ids"]
    assert pair.ours.decode(ours_["ids"]) == f"x {EOS} y"


def test_b77_a_token_that_the_vocabulary_has_is_counted_once() -> None:
    pair = both(small())
    before = pair.ours.get_vocab_size()
    assert pair.each(lambda t: t.add_tokens(["hello"])) == (1, 1)
    assert pair.ours.get_vocab_size() == pair.theirs.get_vocab_size() == before
    assert pair.ours.token_to_id("hello") == pair.theirs.token_to_id("hello")


def test_once_special_always_skipped() -> None:
    pair = both(small())

    def skipped(tokenizer: Any, kind: Any) -> str:
        tokenizer.add_special_tokens(["<n>"])
        tokenizer.add_tokens([kind("<n>", normalized=False)])
        text: str = tokenizer.decode(tokenizer.encode("a<n>b").ids)
        return text

    assert skipped(pair.ours, ours.AddedToken) == skipped(pair.theirs, theirs.AddedToken) == "ab"
    assert pickle.loads(pickle.dumps(pair.ours)).decode(pair.ours.encode("a<n>b").ids) == "ab"


@pytest.mark.parametrize("wrong", ["<n>", ("<n>",), [5], [None], None])
def test_what_is_no_list_of_tokens(wrong: Any) -> None:
    for method in ("add_tokens", "add_special_tokens"):
        theirs_, ours_ = both(small()).each(lambda t, m=method: tried(lambda: getattr(t, m)(wrong)))
        assert ours_ == theirs_
        assert isinstance(ours_.error, TypeError)


@given(st.sampled_from(CONTENTS), flags, flags)
def test_added_tokens_as_objects(
    content: str, options: dict[str, bool], others: dict[str, bool]
) -> None:
    one = Pair(theirs.AddedToken(content, **options), ours.AddedToken(content, **options))
    other = Pair(theirs.AddedToken(content, **others), ours.AddedToken(content, **others))
    assert repr(one.ours) == repr(one.theirs)
    assert str(one.ours) == str(one.theirs)
    assert one.ours.__getstate__() == one.theirs.__getstate__()
    assert (one.ours == other.ours) == (one.theirs == other.theirs)
    assert hash(one.ours) == hash(other.ours)
    assert pickle.loads(pickle.dumps(one.ours)) == one.ours
    assert copy.deepcopy(one.ours) == one.ours
    for token in one:
        token.special = True
    assert one.ours.__getstate__() == one.theirs.__getstate__()
    with pytest.raises(AttributeError):
        one.ours.lstrip = True
    with pytest.warns(UserWarning, match="ignored unknown option 'colour'"):
        ours.AddedToken("x", colour=1)
