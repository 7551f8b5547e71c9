"""`kizami.compat.tiktoken`: ids to text, call by call against tiktoken 0.14.0."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compat.encodings import NAMES, Pair, outcome, pair
from tests.shared import shared_path
from tests.texts import texts

HANDLERS = ["replace", "strict", "ignore", "backslashreplace"]


@pytest.fixture(params=NAMES)
def both(request: pytest.FixtureRequest) -> Pair:
    return pair(request.param)


def valid_ids(both: Pair) -> st.SearchStrategy[list[int]]:
    known = [*both.parts["mergeable_ranks"].values(), *both.parts["special_tokens"].values()]
    return st.lists(st.sampled_from(known), max_size=20)


def test_vectors() -> None:
    encoding = pair("kimi-k3").ours
    path = shared_path("vectors", "kimi-k3", "k3_decode.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    assert rows
    for row in rows:
        assert encoding.decode_bytes(row["ids"]).hex() == row["bytes_hex"]
        assert encoding.decode(row["ids"]) == row["text_replace"]
    batch = [row["ids"] for row in rows]
    assert encoding.decode_batch(batch) == [row["text_replace"] for row in rows]
    assert [b.hex() for b in encoding.decode_bytes_batch(batch)] == [r["bytes_hex"] for r in rows]


@given(data=st.data())
def test_any_tokens(both: Pair, data: st.DataObject) -> None:
    ids = data.draw(valid_ids(both))

    assert both.ours.decode_bytes(ids) == both.theirs.decode_bytes(ids)
    assert both.ours.decode_tokens_bytes(ids) == both.theirs.decode_tokens_bytes(ids)
    for errors in HANDLERS:
        ours, theirs = (
            outcome(lambda e=e, h=errors: e.decode(ids, h)) for e in (both.ours, both.theirs)
        )
        assert ours == theirs
        ours, theirs = (
            outcome(lambda e=e, h=errors: e.decode_batch([ids, ids[::-1]], errors=h))
            for e in (both.ours, both.theirs)
        )
        assert ours == theirs
    ours, theirs = (
        outcome(lambda e=e: e.decode_with_offsets(ids)) for e in (both.ours, both.theirs)
    )
    assert ours == theirs


@given(data=st.data(), text=texts(max_parts=10))
def test_offsets(both: Pair, data: st.DataObject, text: str) -> None:
    special = data.draw(st.sampled_from(sorted(both.parts["special_tokens"])))
    ids = both.ours.encode(f"{text}{special} {text}", allowed_special="all")
    found, offsets = both.ours.decode_with_offsets(ids)

    assert (found, offsets) == both.theirs.decode_with_offsets(ids)
    # The law that tiktoken's tests state: as many characters are common to the text and a prefix.
    for index in range(0, len(ids), 7):
        before = both.ours.decode(ids[:index], errors="ignore")
        assert found.startswith(before)
        assert offsets[index] == len(before)


def test_offsets_of_nothing(both: Pair) -> None:
    assert both.ours.decode_with_offsets([]) == ("", [])


FORMS: list[Any] = [
    [],
    (1, 2),
    range(3),
    b"abc",
    [True],
    [np.int64(3)],
    np.array([1, 2]),
    np.array([1, 2], np.uint32),
    np.array([1, 2], np.int8),
    np.array([], np.int64),
    [-1],
    [1 << 32],
    [1 << 64],
    np.array([-1]),
    np.array([1 << 40]),
    ["a"],
    [1.5],
    [None],
    [[1]],
    "abc",
    5,
    None,
    {1, 2},
    np.array([1.0]),
    [999_999],
    [1, 999_999, -1],
    np.array([999_999]),
]


@pytest.mark.parametrize("form", FORMS, ids=repr)
@pytest.mark.parametrize("call", ["decode", "decode_bytes"])
def test_b49_forms_of_ids(both: Pair, call: str, form: Any) -> None:
    ours, theirs = (outcome(lambda e=e: getattr(e, call)(form)) for e in (both.ours, both.theirs))
    assert ours == theirs


@pytest.mark.parametrize("form", [f for f in FORMS if f is not None], ids=repr)
@pytest.mark.parametrize("call", ["decode_tokens_bytes", "decode_with_offsets"])
def test_b49_forms_of_ids_one_by_one(both: Pair, call: str, form: Any) -> None:
    ours, theirs = (outcome(lambda e=e: getattr(e, call)(form)) for e in (both.ours, both.theirs))
    assert ours == theirs


@pytest.mark.parametrize("form", [[[1], [2]], ([],), np.array([[1, 2], [3, 4]]), [], [5], 5, ["a"]])
@pytest.mark.parametrize("call", ["decode_batch", "decode_bytes_batch"])
def test_forms_of_batches(both: Pair, call: str, form: Any) -> None:
    ours, theirs = (outcome(lambda e=e: getattr(e, call)(form)) for e in (both.ours, both.theirs))
    assert ours == theirs


def test_every_id_there_and_back(both: Pair) -> None:
    for id_ in range(both.ours.n_vocab + 3):
        theirs = outcome(lambda id_=id_: both.theirs.decode_single_token_bytes(id_))
        ours = outcome(lambda id_=id_: both.ours.decode_single_token_bytes(id_))
        assert ours == theirs
        if ours is KeyError:
            with pytest.raises(KeyError, match=f"Invalid token for decoding: {id_}"):
                both.ours.decode([id_])
        else:
            assert both.ours.encode_single_token(ours) == id_


@pytest.mark.parametrize("token", ["no such token", b"", "", b"\xff\xff\xff", "<|endoftext|>", "a"])
def test_single_tokens(both: Pair, token: str | bytes) -> None:
    ours, theirs = (
        outcome(lambda e=e: e.encode_single_token(token)) for e in (both.ours, both.theirs)
    )
    assert ours == theirs
    if ours is KeyError:
        for encoding in (both.ours, both.theirs):
            with pytest.raises(KeyError) as caught:
                encoding.encode_single_token(token)
            assert caught.value.args == (token.encode() if isinstance(token, str) else token,)


@pytest.mark.parametrize("value", [5, bytearray(b"a"), None])
def test_what_is_no_token_is_a_type_error(both: Pair, value: Any) -> None:
    for encoding in (both.ours, both.theirs):
        with pytest.raises(TypeError):
            encoding.encode_single_token(value)
    for encoding in (both.ours, both.theirs):
        with pytest.raises(TypeError):
            encoding.decode_single_token_bytes("a")


def test_error_handlers(both: Pair) -> None:
    broken = [both.ours.encode_single_token(b"\xff")]
    for encoding in (both.ours, both.theirs):
        with pytest.raises(UnicodeDecodeError):
            encoding.decode(broken, errors="strict")
        with pytest.raises(LookupError):
            encoding.decode(broken, errors="no such handler")
        with pytest.raises(TypeError):
            encoding.decode(broken, errors=None)
