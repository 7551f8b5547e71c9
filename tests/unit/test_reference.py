"""The reference itself: against answers written by hand, and against `tiktoken`."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kizami import Tokenizer
from kizami.reference import ReferenceTokenizer, cuts, merge, split, well_formed

from tests.oracle import PublishedPath
from tests.texts import CONTRACTIONS, segment_lists, texts

RANKS = {bytes([byte]): byte for byte in range(256)} | {
    b"ab": 256,
    b"cd": 257,
    b"bc": 258,
    b"abcd": 259,
    b"aa": 260,
    b"aaaa": 261,
    b"xyz": 262,  # out of reach of merges: neither xy nor yz is a token
}


@pytest.fixture(scope="module")
def reference(tokenizer: Tokenizer) -> ReferenceTokenizer:
    return ReferenceTokenizer.from_tokenizer(tokenizer)


@pytest.fixture(scope="module")
def published(tokenizer: Tokenizer) -> PublishedPath:
    return PublishedPath(tokenizer)


@pytest.mark.parametrize(
    ("piece", "ids"),
    [
        (b"a", [97]),
        (b"ab", [256]),
        (b"abc", [256, 99]),  # ab before bc: the lower rank
        (b"abcd", [259]),  # the whole piece
        (b"abcdx", [259, 120]),  # ab, cd, then abcd
        (b"xabcd", [120, 259]),
        (b"bcd", [98, 257]),  # cd before bc
        (b"aaa", [260, 97]),  # leftmost among equals
        (b"aaaaa", [261, 97]),
        (b"aaaaaaa", [261, 260, 97]),
        (b"xyz", [262]),
        (b"xyzx", [120, 121, 122, 120]),
        (b"", []),
    ],
)
def test_merge(piece: bytes, ids: list[int]) -> None:
    assert merge(piece, RANKS) == ids


def test_merge_wants_every_byte() -> None:
    with pytest.raises(KeyError):
        merge(b"az", {b"a": 0})


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("Hello, world", ["Hello", ",", " world"]),
        ("don't DON'T don'ſ don'X", ["don't", " DON'T", " don'ſ", " don", "'X"]),
        ("we'Re we'lL we'l", ["we'Re", " we'lL", " we", "'l"]),
        ("camelCase HTMLParser", ["camel", "Case", " HTMLParser"]),
        ("12345", ["123", "45"]),
        (" 1", [" ", "1"]),
        ("½٣Ⅷx", ["½٣Ⅷ", "x"]),
        ("中文abc", ["中文", "abc"]),
        ("中〇々⺀", ["中〇々⺀"]),
        ("1〇", ["1〇"]),
        (" 中", [" ", "中"]),
        (".中", [".", "中"]),
        ("ǅa aǅ", ["ǅa", " a", "ǅ"]),
        ("e\u0301x", ["e\u0301x"]),
        ("\u0301x", ["\u0301x"]),
        ("!\u0301x", ["!\u0301x"]),
        ("1\u0301", ["1", "\u0301"]),
        ("中\u0301", ["中", "\u0301"]),
        ("ひらがな カタカナ", ["ひらがな", " カタカナ"]),
        ("a  b", ["a", " ", " b"]),
        ("a   ", ["a", "   "]),
        ("a \n b", ["a", " \n", " b"]),
        ("a\n\n\n b", ["a", "\n\n\n", " b"]),
        ("\r\n x", ["\r\n", " x"]),
        (" \n \n x", [" \n \n", " x"]),
        ("!!!\n\n\nx", ["!!!\n\n\n", "x"]),
        (" ...\r\n", [" ...\r\n"]),
        ("\tx", ["\tx"]),
        ("\xa0\xa0x", ["\xa0", "\xa0x"]),
        ("\x1cx", ["\x1cx"]),  # whitespace for str.isspace, not for the pattern
        (" \x1c", [" \x1c"]),
        ("\x85\u2028", ["\x85\u2028"]),
        ("\u200b\ufeffx", ["\u200b\ufeff", "x"]),
        ("x'", ["x", "'"]),
        ("''s", ["''", "s"]),
        ("🎉a 🎉a🎉🎉a", ["🎉a", " 🎉", "a", "🎉🎉", "a"]),
        ("\u088f's", ["\u088f'", "s"]),  # a letter in Unicode 17, not in 16
    ],
)
def test_split(text: str, pieces: list[str]) -> None:
    assert split(text) == pieces


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("", []),
        ("a" * 25_000, [25_000]),
        ("a" * 25_001, [25_000, 1]),
        ("a" * 50_000, [25_000, 25_000]),
        ("a" * 50_001, [25_000, 25_000, 1]),
        (" " * 25_001, [25_000, 1]),
        ("a" * 25_000 + " " * 25_000, [50_000]),
        ("b " + "a" * 25_001, [25_002, 1]),
        ("a" * 15_000 + "\x1c" + "a" * 15_000, [30_001]),
        ("a" * 15_000 + "\u200b" + "a" * 15_000, [25_000, 5_001]),
        ("a " * 200_000, [400_000]),
        ("a " * 200_000 + "a", [400_000, 1]),
        ("a " * 190_000 + "a" * 30_000, [400_000, 10_000]),  # the counter starts anew in a slice
        ("🎉" * 25_001, [25_000, 1]),
        ("\ud83d" * 25_001, [25_000, 1]),
    ],
)
def test_cuts(text: str, lengths: list[int]) -> None:
    stretches = cuts(text)

    assert [len(stretch) for stretch in stretches] == lengths
    assert "".join(stretches) == text


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("plain 🎉", "plain 🎉"),
        ("\ufeffx", "\ufeffx"),
        ("\ufffex", "\ufffex"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("\ud83d\ud83d\ude00\ude00", "\ufffd😀\ufffd"),
    ],
)
def test_well_formed(text: str, read: str) -> None:
    assert well_formed(text) == read


def test_control_names_are_found_leftmost_and_longest() -> None:
    tiny = ReferenceTokenizer(RANKS, {"<a>": 300, "<a><b>": 301, ">x": 302})

    assert tiny.encode("<a><b>y<a>x", allow_special=True) == [301, 121, 300, 120]
    assert tiny.encode("<a>") == [60, 97, 62]
    assert tiny.encode_segments([("<a>", True), ("<a>", False), ("", True)]) == [300, 60, 97, 62]
    assert tiny.decode_bytes([301, 256]) == b"<a><b>ab"
    assert tiny.decode([300, 0xFF]) == "<a>\ufffd"
    with pytest.raises(KeyError):
        tiny.decode_bytes([999])


def test_without_control_names() -> None:
    assert ReferenceTokenizer(RANKS, {}).encode("ab", allow_special=True) == [256]


def test_a_cut_runs_through_a_control_name(reference: ReferenceTokenizer) -> None:
    # Digits, because they are merged three by three; a run of 25,000 letters would take minutes.
    text = "1" * 24_996 + "<|open|>"

    assert 163_587 not in reference.encode(text, allow_special=True)
    assert reference.encode(text, allow_special=True, legacy_chunks=False)[-1] == 163_587


@given(text=texts(surrogates=True), trusted=st.booleans())
@example(text="".join(f"we{tail} A{tail}" for tail in CONTRACTIONS), trusted=False)
@example(text="\ud83d" * 3 + "<|open|>", trusted=True)
def test_the_reference_equals_the_published_path(
    reference: ReferenceTokenizer, published: PublishedPath, text: str, trusted: bool
) -> None:
    ids = reference.encode(text, allow_special=trusted)

    assert ids == published.encode(text, trusted)
    assert reference.decode(ids) == well_formed(text)


@given(segments=segment_lists(surrogates=True))
def test_segments_of_the_reference_equal_the_published_path(
    reference: ReferenceTokenizer, published: PublishedPath, segments: list[tuple[str, bool]]
) -> None:
    assert reference.encode_segments(segments) == published.encode_segments(segments)


@given(many=st.lists(texts(surrogates=True, max_parts=8), max_size=8), trusted=st.booleans())
def test_the_oracle_gives_the_same_in_bulk(
    published: PublishedPath, many: list[str], trusted: bool
) -> None:
    ids, offsets = published.encode_many(many, trusted)

    pairs = pairwise(offsets)
    expected = [published.encode(text, trusted) for text in many]
    assert [ids[start:end].tolist() for start, end in pairs] == expected
