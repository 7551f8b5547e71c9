"""Laws of streams and of offsets, on ids and strings that nobody would write."""

from __future__ import annotations

import copy
import sys
from itertools import accumulate, pairwise, product
from typing import Any

import kizami
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kizami import Tokenizer
from kizami.reference import cuts

from tests.texts import RUN, SLICE, long_texts, segment_lists, texts

Ints = npt.NDArray[np.int64]

FEWER = settings(max_examples=max(settings().max_examples // 4, 5))
K3 = kizami.load("kimi-k3")  # its ids have no gaps
LENGTHS = np.array([len(token) for _, token in K3.tokens()])
SINGLE = {token[0]: id_ for id_, token in K3.tokens() if len(token) == 1}

# Bytes that begin, go on with, or spoil a character; ids of all kinds.
_bytes = st.sampled_from(
    [SINGLE[byte] for byte in b"ab\x80\x8e\x9f\xa0\xbf\xc2\xe0\xe2\xed\xef\xf0\xf4\xff"]
)
_controls = st.sampled_from(list(K3.control_tokens.values()))
_any = st.integers(0, K3.vocab_size - 1)
ids_lists = st.lists(st.one_of(_bytes, _bytes, _any, _controls), max_size=30)
# Few letters, so that stop strings begin often, and overlap.
_letters = st.text("abé🎉\ufffd", max_size=12)
stop_ids = st.lists(
    st.one_of(_letters.map(lambda text: K3.encode(text).tolist()), ids_lists), max_size=6
).map(lambda parts: [id_ for part in parts for id_ in part])
stops = st.lists(
    st.text("abé🎉\ufffd", min_size=1, max_size=5) | st.sampled_from(list(K3.control_tokens)),
    max_size=4,
)


def cut_at_stop(text: str, stop: list[str]) -> tuple[str, str | None]:
    """The rule: the first place where a stop string begins, and the longest that does."""
    for start in range(len(text)):
        here = [string for string in stop if text.startswith(string, start)]
        if here:
            return text[:start], max(here, key=len)
    return text, None


def chunked(data: Any, ids: list[int]) -> list[list[int]]:
    places = data.draw(st.lists(st.integers(0, len(ids)), max_size=8).map(sorted))
    borders = [0, *places, len(ids)]
    return [ids[a:b] for a, b in pairwise(borders)]


@given(ids=ids_lists, skip=st.booleans(), data=st.data())
@example(ids=[SINGLE[0xF0]] * 5, skip=False, data=None)
def test_a_stream_gives_what_decode_gives(ids: list[int], skip: bool, data: Any) -> None:
    whole = K3.decode(ids, skip_special=skip)
    chunks = [[id_] for id_ in ids] if data is None else chunked(data, ids)
    for forms in (list, lambda part: np.array(part, np.uint32), tuple):
        stream = K3.stream(skip_special=skip)
        assert "".join(stream.push(forms(part)) for part in chunks) + stream.finish() == whole
    stream = K3.stream(skip_special=skip)
    assert "".join(map(stream.push, ids)) + stream.finish() == whole


@given(ids=ids_lists, skip=st.booleans(), stop=st.sampled_from([(), "\U000f0000"]))
def test_what_is_kept_is_what_was_made(ids: list[int], skip: bool, stop: Any) -> None:
    """Each id gives what the rule says, the first time and later, in all streams."""
    shown = [[id_] if K3.decode([id_], skip_special=skip) else [] for id_ in ids]
    ends = list(accumulate(map(K3.decode_bytes, shown), initial=b""))
    want = [certain(end)[len(certain(start)) :] for start, end in pairwise(ends)]
    rest = K3.decode(ids, skip_special=skip)[len(certain(ends[-1])) :]
    for _ in range(3):
        stream, other = K3.stream(skip_special=skip, stop=stop), K3.stream(skip_special=not skip)
        for id_, text in zip(ids, want, strict=True):
            branch = copy.copy(stream)
            other.push(id_)
            assert stream.push(id_) == branch.push([id_]) == text
        assert stream.finish() == rest


@given(ids=ids_lists)
def test_text_comes_as_soon_as_it_is_certain(ids: list[int]) -> None:
    stream = K3.stream()
    given = ""
    for count, id_ in enumerate(ids, 1):
        given += stream.push(id_)
        assert given == certain(K3.decode_bytes(ids[:count]))


def certain(data: bytes) -> str:
    """The rule: all text but an unfinished character, the shortest end that some byte would go on
    with."""
    held = 0
    for length in (1, 2, 3):
        end = data[-length:]
        if len(end) == length and end[0] >= 0xC2 and _goes_on(end):
            held = length
    return data[: len(data) - held].decode("utf-8", "replace")


def _goes_on(end: bytes) -> bool:
    """Whether one byte or more can make a single character of it."""
    try:
        end.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data" and error.start == 0
    return False


@given(ids=stop_ids, stop=stops, skip=st.booleans(), data=st.data())
def test_a_stop_string_ends_the_text(
    ids: list[int], stop: list[str], skip: bool, data: Any
) -> None:
    want, stopped = cut_at_stop(K3.decode(ids, skip_special=skip), stop)
    for chunks in (chunked(data, ids), [[id_] for id_ in ids], [ids]):
        stream = K3.stream(skip_special=skip, stop=stop)
        text = "".join(map(stream.push, chunks)) + stream.finish()
        assert (text, stream.stopped) == (want, stopped)
        assert stream.push(ids) == "" or stopped is None


@given(ids=stop_ids, stop=stops)
def test_no_more_is_held_back_than_a_stop_string_may_need(ids: list[int], stop: list[str]) -> None:
    stream, plain = K3.stream(stop=stop), K3.stream()
    given = seen = ""
    for id_ in ids:
        given += stream.push(id_)
        seen += plain.push(id_)
        before, stopped = cut_at_stop(seen, stop)
        if stopped is not None:
            assert before.startswith(given)
            break
        ends = [
            len(seen) - start
            for start in range(len(seen))
            if any(string.startswith(seen[start:]) for string in stop)
        ]
        assert given == seen[: len(seen) - max(ends, default=0)]


_short = st.text("ab", min_size=1, max_size=4)
_LETTERS = {letter: K3.encode(letter).tolist()[0] for letter in "abc"}
_GOES_ON = ["".join(letters) for length in range(5) for letters in product("abc", repeat=length)]


@given(text=st.text("abc", min_size=1, max_size=8), stop=st.lists(_short, min_size=1, max_size=4))
@example(text="abab", stop=["ab", "abb"])
@example(text="aab", stop=["ab", "aaba", "b"])
def test_given_is_what_no_continuation_can_change(text: str, stop: list[str]) -> None:
    # "c" is in no stop string, and no stop string is longer than the continuations.
    stream = K3.stream(stop=stop)
    given = ""
    for end, letter in enumerate(text, 1):
        given += stream.push(_LETTERS[letter])
        seen = text[:end]
        texts = {cut_at_stop(seen + rest, stop)[0] for rest in _GOES_ON}
        # What all have in common, the first and the last in order have.
        pairs = enumerate(zip(min(texts), max(texts), strict=False))
        assert given == min(texts)[: next((at for at, (a, b) in pairs if a != b), len(min(texts)))]


@given(ids=stop_ids, stop=stops, at=st.integers(0, 30), other=stop_ids)
def test_copies_are_independent(ids: list[int], stop: list[str], at: int, other: list[int]) -> None:
    stream = K3.stream(stop=stop)
    text = stream.push(ids[:at])
    branch = copy.copy(stream)
    branch_text = text + branch.push(other) + branch.finish()
    text += stream.push(ids[at:]) + stream.finish()

    assert (text, stream.stopped) == cut_at_stop(K3.decode(ids), stop)
    assert (branch_text, branch.stopped) == cut_at_stop(K3.decode(ids[:at] + other), stop)


@given(ids=stop_ids, stop=stops, bad=st.integers(K3.vocab_size) | st.integers(max_value=-1))
def test_a_bad_id_leaves_the_stream_as_it_was(ids: list[int], stop: list[str], bad: int) -> None:
    stream = K3.stream(stop=stop)
    text = ""
    for id_ in ids:
        for wrong in (bad, [id_, bad], [bad, id_]):
            with pytest.raises(kizami.errors.InvalidIdError):
                stream.push(wrong)
        text += stream.push(id_)

    assert (text + stream.finish(), stream.stopped) == cut_at_stop(K3.decode(ids), stop)


# Offsets


def places(text: str) -> tuple[Ints, Ints]:
    """For each byte of the text's UTF-8, where its character begins and ends, in code points."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    is_cut = np.zeros(len(points) + 1, np.bool_)
    if len(text) > RUN:
        is_cut[np.cumsum([len(stretch) for stretch in cuts(text)])] = True
    high, low = points >> 10 == 0xD800 >> 10, points >> 10 == 0xDC00 >> 10
    begins_pair = high & np.append(low[1:], False) & ~is_cut[1:]
    ends_pair = np.insert(begins_pair[:-1], 0, False) if len(points) else begins_pair
    widths = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
    widths[begins_pair] = 4
    widths[ends_pair] = 0
    starts = np.arange(len(points))
    return np.repeat(starts, widths), np.repeat(starts + 1 + begins_pair, widths)


def check_offsets(tokenizer: Tokenizer, text: str, trusted: bool) -> None:
    ids, starts, ends = tokenizer.encode_with_offsets(text, allow_special=trusted)
    assert np.array_equal(ids, tokenizer.encode(text, allow_special=trusted))
    byte_ends = np.cumsum(LENGTHS[ids])
    byte_starts = byte_ends - LENGTHS[ids]
    begin, end = places(text)

    assert byte_ends[-1:].tolist() == [len(begin)] * bool(text)
    assert np.array_equal(starts, begin[byte_starts])
    assert np.array_equal(ends, end[byte_ends - 1])
    again, starts, ends = tokenizer.encode_with_offsets(text, allow_special=trusted, unit="byte")
    assert np.array_equal(again, ids)
    assert np.array_equal(starts, byte_starts)
    assert np.array_equal(ends, byte_ends)


@given(text=texts(surrogates=True), trusted=st.booleans())
@example(text="a\ud83d<|open|>\ude00", trusted=True)
@example(text="\ud83d\ude00" * 3, trusted=False)
def test_b80_offsets_equal_the_slow_rule(tokenizer: Tokenizer, text: str, trusted: bool) -> None:
    check_offsets(tokenizer, text, trusted)


@FEWER
@given(text=long_texts(), trusted=st.booleans())
@example(text="a" * (RUN - 1) + "\ud83d\ude00b", trusted=False)
@example(text="a" * (RUN - 1) + "\ud83d\ude00b", trusted=True)
@example(text="a " * (SLICE // 2 - 1) + "a\ud83d\ude00<|open|>", trusted=True)
@example(text="a" * (SLICE - 3) + "<|open|>é", trusted=True)
def test_b80_offsets_across_cuts(tokenizer: Tokenizer, text: str, trusted: bool) -> None:
    check_offsets(tokenizer, text, trusted)


@given(segments=segment_lists(surrogates=True), unit=st.sampled_from(["char", "byte"]))
def test_b80_offsets_of_segments_are_those_of_each(
    tokenizer: Tokenizer, segments: list[tuple[str, bool]], unit: Any
) -> None:
    ids, starts, ends, index = tokenizer.encode_segments_with_offsets(segments, unit=unit)

    assert np.array_equal(ids, tokenizer.encode_segments(segments))
    alone = [
        tokenizer.encode_with_offsets(text, allow_special=trusted, unit=unit)
        for text, trusted in segments
    ]
    for array, place in ((ids, 0), (starts, 1), (ends, 2)):
        assert array.tolist() == [value for parts in alone for value in parts[place].tolist()]
    assert index.tolist() == [
        number for number, parts in enumerate(alone) for _ in range(len(parts[0]))
    ]


@pytest.mark.parametrize("context", ["{}", "a{}b", " {} ", "中{}é", "\ud83d{}\ude00", "{0}{0}"])
def test_b80_offsets_of_all_code_points(tokenizer: Tokenizer, context: str) -> None:
    # Some thousand to a text: a mistake at one shows at all that follow.
    for first in range(0, sys.maxunicode + 1, 4096):
        chars = map(chr, range(first, first + 4096))
        check_offsets(tokenizer, "".join(context.format(char) for char in chars), False)


def test_a_stream_gives_all_code_points() -> None:
    for first in range(0, sys.maxunicode + 1, 4096):
        points = range(first, first + 4096)
        text = "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000)
        stream = K3.stream(stop="no such text at all")
        given = "".join(map(stream.push, K3.encode(text).tolist()))
        assert given + stream.finish() == text
