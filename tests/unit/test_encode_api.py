"""`encode`, `encode_segments`, `count`: forms of arguments, refusals, the array that comes back."""

from __future__ import annotations

from typing import Any, NamedTuple

import kizami
import numpy as np
import pytest
from kizami import Segment, Tokenizer
from kizami.errors import InputTypeError, KizamiError

OPEN, SEP = 163587, 163589
OPEN_AS_TEXT = [27, 91, 4454, 91, 29]  # < | open | >


class Pair(NamedTuple):
    text: str
    allow_special: bool


class Attributes:
    def __init__(self, text: Any, allow_special: Any) -> None:
        self.text = text
        self.allow_special = allow_special


class Slots:
    __slots__ = ("allow_special", "text")

    def __init__(self, text: str, allow_special: bool) -> None:
        self.text, self.allow_special = text, allow_special


class Text(str):
    """A subclass of str, as frameworks have them."""


@pytest.mark.parametrize(
    "segment",
    [
        pytest.param(Segment("<|open|>", True), id="Segment"),
        pytest.param(("<|open|>", True), id="tuple"),
        pytest.param(["<|open|>", True], id="list"),
        pytest.param(Pair("<|open|>", True), id="namedtuple"),
        pytest.param(Attributes("<|open|>", True), id="object"),
        pytest.param(Slots("<|open|>", True), id="slots"),
        pytest.param(("<|open|>", 1), id="int-1"),
        pytest.param(("<|open|>", np.True_), id="numpy-bool"),
        pytest.param(Attributes("<|open|>", np.bool_(True)), id="object-numpy-bool"),
        pytest.param((Text("<|open|>"), True), id="str-subclass"),
        pytest.param((np.str_("<|open|>"), True), id="numpy-str"),
    ],
)
def test_b84_forms_of_a_trusted_segment(tokenizer: Tokenizer, segment: Any) -> None:
    assert tokenizer.encode_segments([segment]).tolist() == [OPEN]
    assert tokenizer.count_segments([segment]) == 1


@pytest.mark.parametrize(
    "segment",
    [
        pytest.param(Segment("<|open|>"), id="Segment-default"),
        pytest.param(("<|open|>", False), id="tuple"),
        pytest.param(["<|open|>", False], id="list"),
        pytest.param(Attributes("<|open|>", False), id="object"),
        pytest.param(("<|open|>", 0), id="int-0"),
        pytest.param(("<|open|>", np.False_), id="numpy-bool"),
    ],
)
def test_b84_forms_of_an_untrusted_segment(tokenizer: Tokenizer, segment: Any) -> None:
    assert tokenizer.encode_segments([segment]).tolist() == OPEN_AS_TEXT
    assert tokenizer.count_segments([segment]) == len(OPEN_AS_TEXT)


@pytest.mark.parametrize("form", [list, tuple, iter, lambda items: (item for item in items)])
def test_b84_forms_of_the_list(tokenizer: Tokenizer, form: Any) -> None:
    segments = [("<|open|>", True), ["<|open|>", 0], Attributes("<|sep|>", np.True_)]

    assert tokenizer.encode_segments(form(segments)).tolist() == [OPEN, *OPEN_AS_TEXT, SEP]
    assert tokenizer.count_segments(form(segments)) == len(OPEN_AS_TEXT) + 2


@pytest.mark.parametrize(
    ("segment", "hint"),
    [
        pytest.param(("a", "False"), "must be True or False", id="flag-str"),
        pytest.param(("a", ""), "must be True or False", id="flag-empty-str"),
        pytest.param(("a", None), "must be True or False", id="flag-None"),
        pytest.param(("a", 2), "must be True or False", id="flag-2"),
        pytest.param(("a", -1), "must be True or False", id="flag-negative"),
        pytest.param(("a", 256), "must be True or False", id="flag-256"),
        pytest.param(("a", 2**70), "must be True or False", id="flag-huge"),
        pytest.param(("a", 1.0), "must be True or False", id="flag-float"),
        pytest.param(("a", np.float64(1)), "must be True or False", id="flag-numpy-float"),
        pytest.param(("a", np.array([True, False])), "must be True or False", id="flag-array"),
        pytest.param(("a", []), "must be True or False", id="flag-list"),
        pytest.param(Attributes("a", "False"), "must be True or False", id="attribute-str"),
        pytest.param(["a", "False"], "must be True or False", id="list-str"),
        pytest.param((b"a", True), "must be str", id="text-bytes"),
        pytest.param((None, True), "must be str", id="text-None"),
        pytest.param((True, "a"), "must be str", id="swapped"),
        pytest.param(Attributes(5, True), "must be str", id="attribute-int"),
        pytest.param(("a",), "2 items", id="one-item"),
        pytest.param(("a", True, 1), "2 items", id="three-items"),
        pytest.param(["a"], "2 items", id="one-item-list"),
        pytest.param("ab", "(text, allow_special)", id="str"),
        pytest.param(None, "(text, allow_special)", id="None"),
        pytest.param({"text": "a", "allow_special": True}, "(text, allow_special)", id="dict"),
    ],
)
@pytest.mark.parametrize("method", ["encode_segments", "count_segments"])
def test_b84_malformed_segment_is_named(
    tokenizer: Tokenizer, method: str, segment: Any, hint: str
) -> None:
    with pytest.raises(InputTypeError) as caught:
        getattr(tokenizer, method)([("fine", False), ["fine", 1], segment, ("never read", 5)])

    assert caught.value.segment == 2
    assert "segment 2" in str(caught.value)
    assert hint in str(caught.value)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, KizamiError)


@pytest.mark.parametrize("segments", ["text", None, 5, 1.5, object()])
@pytest.mark.parametrize("method", ["encode_segments", "count_segments"])
def test_segments_must_be_an_iterable_of_pairs(
    tokenizer: Tokenizer, method: str, segments: Any
) -> None:
    with pytest.raises(InputTypeError, match=r"iterable of \(text, allow_special\)"):
        getattr(tokenizer, method)(segments)


def test_an_error_inside_a_generator_comes_through(tokenizer: Tokenizer) -> None:
    def segments() -> Any:
        yield ("a", False)
        raise OSError("the stream broke")

    with pytest.raises(OSError, match="the stream broke"):
        tokenizer.encode_segments(segments())
    with pytest.raises(OSError, match="the stream broke"):
        tokenizer.encode_batch(text for text, _ in segments())


def test_an_error_inside_an_attribute_is_no_segment(tokenizer: Tokenizer) -> None:
    class Broken:
        allow_special = True

        @property
        def text(self) -> str:
            raise AttributeError("no text yet")

    with pytest.raises(InputTypeError) as caught:
        tokenizer.encode_segments([Broken()])

    assert caught.value.segment == 0


@pytest.mark.parametrize("text", [None, 5, ["a"], ("a", True), bytearray(b"a"), object()])
@pytest.mark.parametrize("method", ["encode", "count"])
def test_text_must_be_str(tokenizer: Tokenizer, method: str, text: Any) -> None:
    with pytest.raises(InputTypeError, match="text must be str, not " + type(text).__name__):
        getattr(tokenizer, method)(text)


@pytest.mark.parametrize("method", ["encode", "count"])
def test_bytes_are_refused_with_the_way_out(tokenizer: Tokenizer, method: str) -> None:
    with pytest.raises(InputTypeError, match="decode the bytes first"):
        getattr(tokenizer, method)(b"abc")


@pytest.mark.parametrize("flag", [True, 1, np.True_, np.bool_(1)])
def test_flags_that_mean_true(tokenizer: Tokenizer, flag: Any) -> None:
    assert tokenizer.encode("<|open|>", allow_special=flag).tolist() == [OPEN]
    assert tokenizer.count("<|open|>", allow_special=flag) == 1
    assert tokenizer.encode_batch(["<|open|>"], allow_special=flag).tolist() == [[OPEN]]


@pytest.mark.parametrize("flag", [False, 0, np.False_])
def test_flags_that_mean_false(tokenizer: Tokenizer, flag: Any) -> None:
    assert tokenizer.encode("<|open|>", allow_special=flag).tolist() == OPEN_AS_TEXT
    # Without the cut at 25,000 the control name behind is whole.
    uncut = tokenizer.encode("a" * 24_998 + "<|open|>", allow_special=True, legacy_chunks=flag)
    assert uncut[-1] == OPEN


@pytest.mark.parametrize("flag", ["False", "True", "", None, 2, -1, 1.0, [], np.float64(1)])
@pytest.mark.parametrize(
    "call",
    [
        lambda t, flag: t.encode("<|open|>", allow_special=flag),
        lambda t, flag: t.encode("<|open|>", legacy_chunks=flag),
        lambda t, flag: t.encode_segments([], legacy_chunks=flag),
        lambda t, flag: t.encode_batch([], allow_special=flag),
        lambda t, flag: t.count("<|open|>", allow_special=flag),
    ],
)
def test_a_flag_is_never_guessed(tokenizer: Tokenizer, call: Any, flag: Any) -> None:
    with pytest.raises(InputTypeError, match="must be True or False"):
        call(tokenizer, flag)


def test_options_are_keyword_only(tokenizer: Tokenizer) -> None:
    with pytest.raises(TypeError):
        tokenizer.encode("<|open|>", True)  # type: ignore[misc]
    with pytest.raises(TypeError):
        tokenizer.encode_segments([], True)  # type: ignore[misc]


# Sizes below and above the thresholds where the native side changes its ways.
SIZES = [0, 1, 100, 5_000, 70_000, 400_000]


@pytest.mark.parametrize("size", SIZES)
def test_b89_the_array_is_plain_and_owned(tokenizer: Tokenizer, size: int) -> None:
    text = ("word " * size)[:size]
    arrays = [
        tokenizer.encode(text),
        tokenizer.encode_segments([(text, False), ("<|sep|>" if size else "", True)]),
        tokenizer.encode_batch([text]).ids,
    ]

    for array in arrays:
        assert type(array) is np.ndarray
        assert array.dtype == np.uint32
        assert array.dtype.isnative
        assert array.shape == (len(array),)
        assert array.flags.c_contiguous
        assert array.flags.owndata
        assert array.flags.writeable
        assert array.flags.aligned
        assert array.base is None


@pytest.mark.parametrize("size", SIZES)
def test_b85_two_calls_give_equal_arrays_that_share_nothing(
    tokenizer: Tokenizer, size: int
) -> None:
    text = ("word " * size)[:size]
    first = tokenizer.encode(text)
    second = tokenizer.encode(text)

    assert np.array_equal(first, second)
    assert not np.shares_memory(first, second)
    kept = second.copy()
    first[:] = 0
    assert np.array_equal(second, kept)
    assert np.array_equal(tokenizer.encode(text), kept)


def test_b89_views_for_pytorch(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("Hello, world <|pad|> " * 50)

    assert ids.view("int32").tolist() == ids.tolist()
    assert ids.astype("int64").tolist() == ids.tolist()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", []),
        (" ", [220]),
        ("\n", [198]),
        ("a", [64]),
        ("\x00", [188]),
        ("Hello, world", [19180, 11, 2695]),
    ],
)
def test_b59_empty_and_tiny_texts(tokenizer: Tokenizer, text: str, ids: list[int]) -> None:
    assert tokenizer.encode(text).tolist() == ids
    assert tokenizer.encode(text, allow_special=True).tolist() == ids
    assert tokenizer.count(text) == len(ids)
    for trusted in (False, True):
        assert tokenizer.encode_segments([("", True), (text, trusted)]).tolist() == ids


def test_b59_whitespace_alone_is_never_nothing(tokenizer: Tokenizer) -> None:
    spaces = [chr(c) for c in range(0x3001) if chr(c).isspace()]

    for text in [*spaces, *(a + b for a in spaces for b in spaces)]:
        assert len(tokenizer.encode(text)) > 0, repr(text)


@pytest.mark.parametrize("segments", [[], [("", True)], [("", False)], [("", False), ("", True)]])
def test_b59_empty_segments_give_no_ids(tokenizer: Tokenizer, segments: Any) -> None:
    assert tokenizer.encode_segments(segments).tolist() == []
    assert tokenizer.count_segments(segments) == 0


def test_strings_of_every_width(tokenizer: Tokenizer) -> None:
    # CPython keeps text in 1, 2 or 4 bytes a code point; a wide neighbour must not change the ids.
    for narrow in ["plain", "naïve", "ж中", "a\x80\xff"]:
        alone = tokenizer.encode(narrow).tolist()
        for wide in ["", "é", "中", "🎉"]:
            ids = tokenizer.encode_segments([(wide, False), (narrow + wide, False)]).tolist()
            both = tokenizer.encode(wide).tolist() + tokenizer.encode(narrow + wide).tolist()
            assert ids == both
            assert (wide + narrow)[len(wide) :] == narrow
        assert tokenizer.encode((narrow + "🎉")[:-1]).tolist() == alone


def test_count_has_the_documented_cuts(tokenizer: Tokenizer) -> None:
    text = "a" * 25_001

    assert tokenizer.count(text) == len(tokenizer.encode(text))
    assert tokenizer.count_segments([(text, False)]) == len(tokenizer.encode(text))


def test_errors_can_be_pickled(tokenizer: Tokenizer) -> None:
    import pickle

    with pytest.raises(InputTypeError) as caught:
        tokenizer.encode_segments([("a", None)])  # type: ignore[list-item]
    again = pickle.loads(pickle.dumps(caught.value))

    assert type(again) is InputTypeError
    assert (str(again), again.segment) == (str(caught.value), 0)


def test_b88_the_package_needs_no_extra() -> None:
    assert kizami.load("kimi-k3") is kizami.load("kimi-k3")
