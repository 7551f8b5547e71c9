"""`encode_with_offsets`: forms, units, segments, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kizami import Segment, Tokenizer
from kizami.errors import InputTypeError, InvalidValueError

TEXT = "Hi <|open|> naïve 中文 🎉!"


@pytest.mark.parametrize("unit", ["char", "byte"])
def test_b80_offsets_are_real(tokenizer: Tokenizer, unit: Any) -> None:
    ids, starts, ends = tokenizer.encode_with_offsets(TEXT, allow_special=True, unit=unit)

    assert np.array_equal(ids, tokenizer.encode(TEXT, allow_special=True))
    source: Any = TEXT if unit == "char" else TEXT.encode()
    whole = source[: starts[0]]
    for id_, start, end in zip(ids.tolist(), starts, ends, strict=True):
        covered = source[start:end]
        token = tokenizer.token_bytes(id_)
        assert token in (covered.encode() if unit == "char" else covered)
        whole += covered if unit == "byte" else ""
    assert unit == "char" or whole == source


def test_arrays_are_plain_and_owned(tokenizer: Tokenizer) -> None:
    for text in ("", "a", TEXT, TEXT * 1000):
        arrays = tokenizer.encode_with_offsets(text)
        lengths = {len(array) for array in arrays}
        assert len(lengths) == 1
        assert [array.dtype for array in arrays] == [np.uint32, np.int64, np.int64]
        for array in arrays:
            assert array.flags.owndata
            assert array.flags.writeable
            assert array.flags.c_contiguous


def test_a_control_token_covers_its_name(tokenizer: Tokenizer) -> None:
    text = "é<|open|>x"
    _, starts, ends = tokenizer.encode_with_offsets(text, allow_special=True)

    assert [text[a:b] for a, b in zip(starts, ends, strict=True)] == ["é", "<|open|>", "x"]
    _, starts, ends = tokenizer.encode_with_offsets(text, allow_special=True, unit="byte")
    assert (starts.tolist(), ends.tolist()) == ([0, 2, 10], [2, 10, 11])


def test_tokens_that_share_a_character_all_cover_it(tokenizer: Tokenizer) -> None:
    ids, starts, ends = tokenizer.encode_with_offsets("a 🎉")

    assert len(ids) == 4
    assert (starts.tolist(), ends.tolist()) == ([0, 1, 2, 2], [1, 3, 3, 3])


@pytest.mark.parametrize(
    ("text", "points", "data"),
    [
        # Lone: one code point, three bytes. A pair: one character of two code points, four bytes.
        ("\ud83d<|sep|>\ude00<|sep|>", [1, 8, 9, 16], [3, 10, 13, 20]),
        ("\ude00\ud83d<|sep|>", [2, 9], [6, 13]),
        ("\ud83d\ude00<|sep|>", [2, 9], [4, 11]),
        ("\ud83d<|sep|>\ud83d\ude00", [1, 8, 10], [3, 10, 14]),
    ],
)
def test_surrogates(tokenizer: Tokenizer, text: str, points: list[int], data: list[int]) -> None:
    # What is between two control tokens ends where its last token does.
    _, _, ends = tokenizer.encode_with_offsets(text, allow_special=True)
    assert set(points) <= set(ends.tolist())
    assert ends[-1] == len(text)
    _, starts, ends = tokenizer.encode_with_offsets(text, allow_special=True, unit="byte")
    assert set(data) <= set(ends.tolist())
    assert starts.tolist() == [0, *ends.tolist()[:-1]]


def test_segments_have_offsets_of_their_own(tokenizer: Tokenizer) -> None:
    segments = [
        Segment("", False),
        Segment("<|open|>", True),
        Segment("<|open|>", False),
        Segment("", True),
        Segment("中文🎉 <|sep|>", True),
        Segment("", False),
    ]
    units: list[Any] = ["char", "byte"]
    for unit in units:
        ids, starts, ends, index = tokenizer.encode_segments_with_offsets(segments, unit=unit)
        assert np.array_equal(ids, tokenizer.encode_segments(segments))
        assert index.dtype == np.int64
        assert index.flags.owndata
        for number, (text, trusted) in enumerate(segments):
            alone = tokenizer.encode_with_offsets(text, allow_special=trusted, unit=unit)
            mine = index == number
            assert ids[mine].tolist() == alone[0].tolist()
            assert starts[mine].tolist() == alone[1].tolist()
            assert ends[mine].tolist() == alone[2].tolist()
    nothing = tokenizer.encode_segments_with_offsets([])
    assert [array.tolist() for array in nothing] == [[]] * 4


def test_many_segments_on_many_threads(tokenizer: Tokenizer) -> None:
    segments = [(f"naïve {number} 🎉 " * 40, number % 2 == 0) for number in range(2000)]
    ids, starts, ends, index = tokenizer.encode_segments_with_offsets(segments)

    assert np.array_equal(ids, tokenizer.encode_segments(segments))
    firsts = np.flatnonzero(np.diff(index, prepend=-1))
    assert len(firsts) == 2000
    assert not starts[firsts].any()
    lasts = np.append(firsts[1:], len(ids)) - 1
    assert ends[lasts].tolist() == [len(text) for text, _ in segments]


def test_what_is_refused(tokenizer: Tokenizer) -> None:
    for unit in ("chars", "", None, 1, "BYTE"):
        with pytest.raises(InvalidValueError, match="unit must be"):
            tokenizer.encode_with_offsets("a", unit=unit)  # type: ignore[arg-type]
        with pytest.raises(InvalidValueError, match="unit must be"):
            tokenizer.encode_segments_with_offsets([], unit=unit)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="text must be str"):
        tokenizer.encode_with_offsets(b"a")  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="allow_special"):
        tokenizer.encode_with_offsets("a", allow_special="no")  # type: ignore[arg-type]
    with pytest.raises(InputTypeError) as caught:
        tokenizer.encode_segments_with_offsets([("a", False), 5])  # type: ignore[list-item]
    assert caught.value.segment == 1
