"""`decode` and its kin: what counts as ids, what is refused, what comes back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kizami import Tokenizer
from kizami.errors import InputTypeError, InvalidIdError, KizamiError

HELLO = [19180, 11, 2695]
DECODERS = ["decode", "decode_bytes"]
OUTSIDE = [
    163840,
    200_000,
    2**31,
    2**32 - 1,
    2**32,
    2**63 - 1,
    2**63,
    2**64,
    2**70,
    -1,
    -(2**31),
    -(2**70),
]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("bad", OUTSIDE)
@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("form", [list, tuple, iter])
def test_b49_an_id_outside_is_named_with_its_position(
    tokenizer: Tokenizer, decoder: str, form: Any, bad: int
) -> None:
    with pytest.raises(InvalidIdError) as caught:
        getattr(tokenizer, decoder)(form([*HELLO, bad, 64]))

    error = caught.value
    assert (error.id, error.position, error.vocab_size) == (bad, 3, 163840)
    assert str(bad) in str(error)
    assert "position 3" in str(error)
    assert isinstance(error, ValueError)
    assert isinstance(error, KizamiError)


@pytest.mark.parametrize(
    ("dtype", "bad"),
    [
        *((dtype, -1) for dtype in SIGNED),
        *((dtype, 163840) for dtype in ("int32", "int64", "uint32", "uint64")),
        ("int32", 2**31 - 1),
        ("int64", 2**32),
        ("int64", 2**63 - 1),
        ("int64", -(2**63)),
        ("uint32", 2**32 - 1),
        ("uint64", 2**32),
        ("uint64", 2**63),
        ("uint64", 2**64 - 1),
    ],
)
@pytest.mark.parametrize("decoder", DECODERS)
def test_b49_an_id_outside_in_an_array(
    tokenizer: Tokenizer, decoder: str, dtype: str, bad: int
) -> None:
    ids = np.array([5, 6, 0, 7], dtype)
    ids[2] = bad
    with pytest.raises(InvalidIdError) as caught:
        getattr(tokenizer, decoder)(ids)

    assert (caught.value.id, caught.value.position) == (bad, 2)


def test_b49_every_way_gives_the_same_answer(tokenizer: Tokenizer) -> None:
    for call in (
        lambda: tokenizer.decode([163840]),
        lambda: tokenizer.decode([163840], errors="ignore", skip_special=True),
        lambda: tokenizer.decode_bytes([163840]),
        lambda: tokenizer.decode_batch([[163840]]),
        lambda: tokenizer.token_bytes(163840),
    ):
        with pytest.raises(InvalidIdError) as caught:
            call()
        assert caught.value.id == 163840


@pytest.mark.parametrize("many", [1, 100_000])
def test_b49_the_first_bad_id_counts(tokenizer: Tokenizer, many: int) -> None:
    ids = np.full(many + 2, 64, np.uint32)
    ids[many], ids[many + 1] = 163840, 163841
    for form in (ids, ids.tolist(), ids.astype(np.int64)):
        with pytest.raises(InvalidIdError) as caught:
            tokenizer.decode(form)
        assert (caught.value.id, caught.value.position) == (163840, many)


@pytest.mark.parametrize("behind", [-5, 2**32, 2**70, "x", 1.5, None])
def test_b49_the_first_bad_id_counts_whatever_is_behind(tokenizer: Tokenizer, behind: Any) -> None:
    with pytest.raises(InvalidIdError) as caught:
        tokenizer.decode([64, 163840, behind])

    assert (caught.value.id, caught.value.position) == (163840, 1)


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        (1.0, "float"),
        (np.float32(1), "float32"),
        ("1", "str"),
        (b"1", "bytes"),
        (None, "NoneType"),
        ([1], "list"),
        ((1,), "tuple"),
        (np.True_, "bool"),
        (np.array([1, 2]), "ndarray"),
    ],
)
@pytest.mark.parametrize("decoder", DECODERS)
def test_items_must_be_ints(tokenizer: Tokenizer, decoder: str, item: Any, kind: str) -> None:
    with pytest.raises(InputTypeError) as caught:
        getattr(tokenizer, decoder)([64, item])

    assert caught.value.position == 1
    assert kind in str(caught.value)


@pytest.mark.parametrize("ids", ["12", b"12", bytearray(b"12"), {1: 2}, None, 5, 5.0, object()])
@pytest.mark.parametrize("decoder", DECODERS)
def test_ids_must_be_a_sequence(tokenizer: Tokenizer, decoder: str, ids: Any) -> None:
    with pytest.raises(InputTypeError, match=type(ids).__name__):
        getattr(tokenizer, decoder)(ids)


@pytest.mark.parametrize(
    "ids",
    [
        np.array([1.0]),
        np.array([True]),
        np.array(["1"]),
        np.array([1], object),
        np.array([1j]),
        np.array([[1, 2]]),
        np.array(1),
        np.int64(1),
        np.array(["2020-01-01"], "datetime64[D]"),
    ],
)
@pytest.mark.parametrize("decoder", DECODERS)
def test_arrays_must_be_flat_integers(tokenizer: Tokenizer, decoder: str, ids: Any) -> None:
    with pytest.raises(InputTypeError):
        getattr(tokenizer, decoder)(ids)


def test_a_single_id_is_refused_with_the_way_out(tokenizer: Tokenizer) -> None:
    with pytest.raises(InputTypeError, match="give \\[id\\] for one id"):
        tokenizer.decode(64)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED, ">i4", ">u4", "<i8", ">i8", "<u2", ">u2"])
def test_integer_arrays_of_every_kind(tokenizer: Tokenizer, dtype: str) -> None:
    ids = np.array([39, 68, 75, 75, 78], dtype)

    assert tokenizer.decode(ids) == "Hello"
    assert tokenizer.decode_bytes(ids) == b"Hello"


@pytest.mark.parametrize("dtype", ["uint32", "int64", "int32", ">u4"])
def test_arrays_that_are_not_contiguous(tokenizer: Tokenizer, dtype: str) -> None:
    ids = np.array([39, 68, 75, 75, 78], dtype)
    wide = np.zeros((5, 3), dtype)
    wide[:, 1] = ids

    assert tokenizer.decode(wide[:, 1]) == "Hello"
    assert tokenizer.decode(ids[::-1].copy()[::-1]) == "Hello"
    assert tokenizer.decode(np.repeat(ids, 2)[::2]) == "Hello"
    frozen = ids.copy()
    frozen.flags.writeable = False
    assert tokenizer.decode(frozen) == "Hello"


@pytest.mark.parametrize(
    "ids",
    [
        tuple(HELLO),
        iter(HELLO),
        (id_ for id_ in HELLO),
        dict.fromkeys(HELLO).keys(),
        np.array(HELLO),
        [np.int64(HELLO[0]), np.uint32(11), np.int16(2695)],
        memoryview(np.array(HELLO, np.uint32)),
    ],
)
def test_forms_of_ids(tokenizer: Tokenizer, ids: Any) -> None:
    assert tokenizer.decode(ids) == "Hello, world"


def test_an_object_that_exports_an_array(tokenizer: Tokenizer) -> None:
    class Tensor:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.array(HELLO, np.int64)

    assert tokenizer.decode(Tensor()) == "Hello, world"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "empty", [[], (), iter([]), np.array([], np.uint32), np.array([], np.int64), np.array([])]
)
def test_b59_no_ids_give_no_text(tokenizer: Tokenizer, empty: Any) -> None:
    assert tokenizer.decode(empty) == ""
    assert tokenizer.decode_bytes([]) == b""
    assert tokenizer.decode_batch([]) == []


def test_the_array_given_is_not_changed(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("some text " * 3000)
    kept = ids.copy()
    tokenizer.decode(ids)

    assert np.array_equal(ids, kept)


def test_b47_nothing_is_put_between_tokens(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("<|open|>tools<|sep|>", allow_special=True)

    assert ids.tolist() == [163587, 25385, 163589]
    assert tokenizer.decode(ids) == "<|open|>tools<|sep|>"
    assert tokenizer.decode_bytes(ids) == b"<|open|>tools<|sep|>"


def test_b48_only_flagged_tokens_are_skipped(tokenizer: Tokenizer) -> None:
    ids = [163587, 64, 163586, 163588]

    assert tokenizer.decode(ids, skip_special=True) == "<|open|>a<|close|>"
    assert tokenizer.decode(ids) == "<|open|>a<|end_of_msg|><|close|>"


def test_b48_which_tokens_are_flagged(tokenizer: Tokenizer) -> None:
    skipped = [
        name
        for name, id_ in tokenizer.control_tokens.items()
        if tokenizer.decode([id_], skip_special=True) == ""
    ]

    assert sorted(skipped) == sorted(
        [
            "[BOS]", "[EOS]", "<|end_of_msg|>", "[start_header_id]", "[end_header_id]", "[EOT]",
            "<|media_begin|>", "<|media_content|>", "<|media_end|>", "<|media_pad|>",
            "<osagent_mode>", "[UNK]", "[PAD]",
        ]
    )  # fmt: skip


def test_b48_skipping_checks_ids_all_the_same(tokenizer: Tokenizer) -> None:
    with pytest.raises(InvalidIdError) as caught:
        tokenizer.decode([163586, 163840], skip_special=True)

    assert caught.value.position == 1


@pytest.mark.parametrize("flag", ["False", None, 2, 1.0])
def test_skip_special_is_never_guessed(tokenizer: Tokenizer, flag: Any) -> None:
    with pytest.raises(InputTypeError, match="skip_special must be True or False"):
        tokenizer.decode([64], skip_special=flag)


PARTY = [5885, 236, 231]  # the bytes of U+1F389: F0 9F, 8E, 89


def test_what_the_errors_option_does(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode_bytes(PARTY) == "🎉".encode()
    cut = [64, *PARTY[:2]]
    assert tokenizer.decode(cut) == "a\ufffd"
    for mode in ("replace", "ignore", "backslashreplace", "surrogateescape"):
        expected = tokenizer.decode_bytes(cut).decode("utf-8", mode)
        assert tokenizer.decode(cut, errors=mode) == expected
    with pytest.raises(UnicodeDecodeError):
        tokenizer.decode(cut, errors="strict")
    with pytest.raises(LookupError):
        tokenizer.decode(cut, errors="no such mode")
    with pytest.raises(ValueError, match="NUL"):
        tokenizer.decode(cut, errors="re\0place")


@pytest.mark.parametrize("errors", [None, 5, b"replace"])
def test_errors_must_be_str(tokenizer: Tokenizer, errors: Any) -> None:
    with pytest.raises(InputTypeError, match="errors must be str"):
        tokenizer.decode([64], errors=errors)


def test_replacement_is_that_of_python(tokenizer: Tokenizer) -> None:
    # One U+FFFD for each maximal part of a sequence: the rule that decoders disagree about.
    single = {token[0]: id_ for id_, token in tokenizer.tokens() if len(token) == 1}
    for data in (
        b"\xe2\x82",
        b"\xe2\x28\xa1",
        b"\xf0\x9f\x8e",
        b"\xc0\xaf",
        b"\xed\xa0\x80",
        b"\xff" * 3,
        b"\xf8\x88",
    ):
        ids = [single[byte] for byte in data]
        assert tokenizer.decode(ids) == data.decode("utf-8", "replace")
        assert tokenizer.decode_bytes(ids) == data


def test_decode_batch(tokenizer: Tokenizer) -> None:
    texts = ["one", "", "two words 🎉", "<|open|>"]

    assert tokenizer.decode_batch(tokenizer.encode_batch(texts)) == texts
    assert tokenizer.decode_batch([HELLO, tuple(HELLO), np.array(HELLO)]) == ["Hello, world"] * 3
    assert tokenizer.decode_batch(np.array([[64, 163586], [65, 66]]), skip_special=True) == [
        "a",
        "bc",
    ]
    assert tokenizer.decode_batch([PARTY[:1]], errors="ignore") == [""]
    with pytest.raises(InputTypeError):
        tokenizer.decode_batch([1, 2])  # type: ignore[list-item]


@pytest.mark.parametrize("bad", [1.0, "1", None, [1]])
def test_token_bytes_wants_an_int(tokenizer: Tokenizer, bad: Any) -> None:
    with pytest.raises(InputTypeError):
        tokenizer.token_bytes(bad)


@pytest.mark.parametrize("bad", OUTSIDE)
def test_token_bytes_outside(tokenizer: Tokenizer, bad: int) -> None:
    with pytest.raises(InvalidIdError) as caught:
        tokenizer.token_bytes(bad)

    assert caught.value.id == bad


def test_options_of_decode_are_keyword_only(tokenizer: Tokenizer) -> None:
    with pytest.raises(TypeError):
        tokenizer.decode([64], True)  # type: ignore[misc]
