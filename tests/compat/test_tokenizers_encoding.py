"""`Encoding`: its look-ups and changes, against `tokenizers`."""

from __future__ import annotations

import copy
import functools
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kizami.compat.tokenizers import Encoding
from kizami.errors import UnknownFormatError

from tests.compat.hf import PROCESSORS, Pair, both, processed, reset, seen, small, theirs, tried
from tests.compat.test_tokenizers_settings import paddings, texts, truncations
from tests.texts import texts as any_texts

names = st.sampled_from(sorted(PROCESSORS))
MARKED = [
    "e", "é", "\u0301", "\u0323", "\u0307", "\u0345", "\u1100", "\u1161", "\u11a8", "가", "각",
    "\u212b", "\u0958", "\u0344", "\u1e9b", "ﬁ", "İ", "Σ", "q", " ", "\u1e69", "s", "\u0f73",
    "\u0315", "<s>", "\U0001d15f",
]  # fmt: skip
marked = st.lists(st.sampled_from(MARKED), max_size=10).map("".join)


@functools.cache
def normalized(normalizer: str) -> Pair:
    return both(small(normalizer=json.loads(normalizer)))


few = st.integers(0, 12)


def looked_up(encoding: Any) -> list[Any]:
    """All look-ups, also beside what is there."""
    found: list[Any] = []
    for i in range(len(encoding) + 2):
        found += [
            encoding.token_to_chars(i),
            encoding.token_to_word(i),
            encoding.token_to_sequence(i),
        ]
        for sequence in range(3):
            found += [
                encoding.char_to_token(i, sequence),
                encoding.char_to_word(i, sequence),
                encoding.word_to_tokens(i, sequence),
                encoding.word_to_chars(i, sequence),
            ]
    return found


@given(names, texts, st.none() | texts, st.booleans())
def test_look_ups(name: str, text: str, second: str | None, special: bool) -> None:
    pair = reset(processed(name))
    theirs, ours = pair.each(
        lambda t: looked_up(t.encode(text, second, add_special_tokens=special))
    )
    assert ours == theirs


@given(names, texts, texts, paddings, few, few, few, st.sampled_from(["left", "right"]))
def test_changes(
    name: str,
    text: str,
    second: str,
    padding: dict[str, Any],
    length: int,
    max_length: int,
    stride: int,
    direction: str,
) -> None:
    options = {k: padding[k] for k in padding.keys() - {"length", "pad_to_multiple_of"}}

    def changed(tokenizer: Any, order: int) -> Any:
        encoding = tokenizer.encode(text, second)
        if order:
            encoding.pad(length, **options)
        encoding.truncate(max_length, stride, direction)
        encoding.pad(length, **options)
        found = looked_up(encoding)
        # Two sequences may now share tokens, and the original looks at them in random order.
        encoding.set_sequence_id(1)
        return seen(encoding), found

    pair = reset(processed(name))
    for order in (0, 1):
        theirs, ours = pair.each(lambda t, o=order: tried(lambda: changed(t, o)))
        assert ours == theirs


@given(names, st.lists(texts, max_size=4), st.none() | truncations, st.booleans())
def test_merging(
    name: str, several: list[str], truncation: dict[str, Any] | None, growing: bool
) -> None:
    pair = reset(processed(name))
    if truncation is not None and truncation["max_length"] < 3:
        truncation = {**truncation, "max_length": 3 + truncation["max_length"]}

    def merged(tokenizer: Any, kind: Any) -> Any:
        if truncation is not None:
            tokenizer.enable_truncation(**truncation)
        encodings = [tokenizer.encode(text) for text in several]
        return seen(kind.merge(encodings, growing))

    ours = tried(lambda: merged(pair.ours, Encoding))
    assert ours == tried(lambda: merged(pair.theirs, theirs.Encoding))


@given(names, texts, st.none() | texts, truncations)
def test_copies(name: str, text: str, second: str | None, truncation: dict[str, Any]) -> None:
    tokenizer = reset(processed(name)).ours
    tried(lambda: tokenizer.enable_truncation(**truncation))
    encoding = tried(lambda: tokenizer.encode(text, second))
    if not isinstance(encoding, Encoding):
        return
    before = seen(encoding)
    for twin in (
        copy.copy(encoding),
        copy.deepcopy(encoding),
        pickle.loads(pickle.dumps(encoding)),
    ):
        assert seen(twin) == before
        assert looked_up(twin) == looked_up(encoding)
        twin.pad(20)
        twin.set_sequence_id(2)
        assert seen(encoding) == before


def test_an_empty_encoding() -> None:
    assert seen(Encoding()) == seen(theirs.Encoding())
    assert looked_up(Encoding()) == looked_up(theirs.Encoding())
    assert len(Encoding()) == 0
    assert repr(Encoding()) == repr(theirs.Encoding())


def test_lists_are_the_callers() -> None:
    encoding = reset(processed("bos")).ours.encode("the abc")
    for column in ("ids", "tokens", "offsets", "overflowing", "word_ids", "type_ids"):
        before = list(getattr(encoding, column))
        getattr(encoding, column).clear()
        assert getattr(encoding, column) == before


def test_attributes_of_the_caller_are_kept() -> None:
    encoding = reset(processed("bos")).ours.encode("the abc")
    encoding.note = "mine"  # type: ignore[attr-defined]
    assert copy.deepcopy(encoding).note == "mine"  # type: ignore[attr-defined]


def test_words_is_the_old_name_of_word_ids() -> None:
    encoding = reset(processed("none")).ours.encode("the abc")
    with pytest.warns(DeprecationWarning, match="word_ids"):
        assert encoding.words == encoding.word_ids


FORMS = ["NFC", "NFD", "NFKC", "NFKD", "Lowercase"]


@pytest.mark.parametrize("form", [*FORMS, "both"])
@given(text=st.one_of(marked, any_texts(max_parts=6)), second=st.none() | marked)
def test_b80_offsets_of_normalized_text(form: str, text: str, second: str | None) -> None:
    stated: dict[str, Any] = {"type": form}
    if form == "both":
        stated = {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "NFKC"}]}
    pair = normalized(json.dumps(stated))
    theirs, ours = pair.each(lambda t: (s := seen(t.encode(text, second)), s)[1])
    if ours["ids"] == theirs["ids"]:
        assert ours == theirs
    else:
        # The original's tables are of another version of Unicode than Python's at least here.
        assert form == "Lowercase"


@pytest.mark.parametrize("text", ["é", "a e\u0301 b"])
def test_b80_offsets_that_are_not_known_are_an_error(text: str) -> None:
    stated = {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]}
    pair = both(small(normalizer=stated))
    theirs, ours = pair.each(lambda t: t.encode(text))

    assert (ours.ids, ours.tokens, ours.word_ids) == (theirs.ids, theirs.tokens, theirs.word_ids)
    with pytest.raises(UnknownFormatError, match=r"unicodedata\.normalize"):
        _ = ours.offsets
    twin = pickle.loads(pickle.dumps(ours))
    assert twin.ids == theirs.ids
    with pytest.raises(UnknownFormatError):
        _ = twin.offsets
    theirs, ours = pair.each(lambda t: seen(t.encode("plain text")))
    assert ours == theirs


@pytest.mark.parametrize(
    "call",
    [
        lambda e: e.pad(-1),
        lambda e: e.pad(5, direction="up"),
        lambda e: e.pad("5"),
        lambda e: e.truncate(2, stride=2),
        lambda e: e.truncate(2, direction="up"),
        lambda e: e.truncate(-1),
        lambda e: e.token_to_chars(-1),
        lambda e: e.char_to_token("0"),
        lambda e: type(e).merge(["no encoding"]),
    ],
)
def test_impossible_arguments(call: Any) -> None:
    theirs, ours = reset(processed("none")).each(
        lambda t: tried(lambda: call(t.encode("abc the hello")))
    )
    assert ours == theirs
    assert isinstance(ours.error, (ValueError, TypeError))
