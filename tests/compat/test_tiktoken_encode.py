"""`kizami.compat.tiktoken`: text to ids, call by call against tiktoken 0.14.0."""

from __future__ import annotations

import copy
import gzip
import json
import os
import threading
from typing import Any

import kizami
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kizami.compat.tiktoken import Encoding

from tests.compat.encodings import NAMES, Pair, outcome, pair
from tests.shared import shared_path
from tests.texts import SURROGATES, texts

CALLS = ["encode", "encode_to_numpy", "encode_with_unstable"]


@pytest.fixture(params=NAMES)
def both(request: pytest.FixtureRequest) -> Pair:
    return pair(request.param)


def plain(value: Any) -> Any:
    """Arrays as lists; completions without an order, which they have not."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        stable, completions = value
        return stable, sorted(completions)
    return value


def names_of(both: Pair) -> list[str]:
    return sorted(both.parts["special_tokens"])[:6]


def special_texts(both: Pair) -> st.SearchStrategy[str]:
    """Texts with names of the encoding in them, and parts of names."""
    names = names_of(both)
    pieces = st.one_of(
        st.sampled_from(names),
        st.sampled_from(names).map(lambda name: name[: len(name) // 2 + 1]),
        st.sampled_from(SURROGATES),
        texts(max_parts=3),
    )
    return st.lists(pieces, max_size=6).map("".join)


# Vectors


def rows(name: str) -> list[dict[str, Any]]:
    with gzip.open(shared_path("vectors", "models", f"{name}.jsonl.gz"), "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", ["kimi-k3", "cl100k_base", "o200k_base"])
def test_vectors(name: str) -> None:
    encoding = pair(name).ours
    for row in rows(name):
        text, ids = row["text"], row["ids"]
        assert encoding.encode_ordinary(text) == ids
        assert encoding.encode(text, disallowed_special=()) == ids
        assert encoding.encode(text, allowed_special="all") == row["ids_special"]
        if not text.isascii() and outcome(text.encode) is UnicodeEncodeError:
            continue
        assert encoding.encode_to_numpy(text, disallowed_special=()).tolist() == ids
        assert encoding.decode(ids) == text
        assert encoding.decode_bytes(ids) == text.encode()


@pytest.mark.parametrize("name", ["kimi-k3", "cl100k_base", "o200k_base"])
def test_vectors_as_batches(name: str) -> None:
    encoding = pair(name).ours
    found = rows(name)
    many = [row["text"] for row in found]

    assert encoding.encode_ordinary_batch(many) == [row["ids"] for row in found]
    with_names = encoding.encode_batch(many, allowed_special="all")
    assert with_names == [row["ids_special"] for row in found]
    assert encoding.encode_batch(many, disallowed_special=()) == [row["ids"] for row in found]


def test_the_encoding_that_came_from_a_tokenizer(tokenizer: kizami.Tokenizer) -> None:
    both = pair("kimi-k3")
    encoding = Encoding.from_tokenizer(tokenizer)
    for text in ["Hello", "<|open|>a<|sep|>", "中文abc", "a\ud83d"]:
        assert encoding.encode_ordinary(text) == both.theirs.encode_ordinary(text)


def test_tiktoken_makes_no_cuts(tokenizer: kizami.Tokenizer) -> None:
    encoding = Encoding.from_tokenizer(tokenizer)
    text = "abc" * 9_000
    expected = pair("kimi-k3").theirs.encode_ordinary(text)

    assert encoding.encode_ordinary(text) == expected
    assert encoding.encode_batch(["a", text]) == [[64], expected]
    assert encoding.encode_ordinary_batch(["a", text]) == [[64], expected]
    assert encoding.encode(f"<|sep|>{text}", allowed_special={"<|sep|>"})[1:] == expected
    assert tokenizer.encode(text).tolist() != expected


# Special tokens


@given(data=st.data())
def test_allowed_and_disallowed(both: Pair, data: st.DataObject) -> None:
    names = names_of(both)
    text = data.draw(special_texts(both))
    subset = st.sets(st.sampled_from([*names, "nope", "a"]))
    allowed = data.draw(st.one_of(st.just("all"), subset, subset.map(frozenset)))
    disallowed = data.draw(st.one_of(st.sampled_from(["all", (), "x"]), subset, subset.map(list)))
    options = {"allowed_special": allowed, "disallowed_special": disallowed}

    for name in ("encode", "encode_to_numpy"):
        ours = outcome(lambda name=name: getattr(both.ours, name)(text, **options))
        theirs = outcome(lambda name=name: getattr(both.theirs, name)(text, **options))
        assert plain(ours) == plain(theirs), (name, text, options)
    ours = outcome(lambda: both.ours.encode_batch([text, "a", text], **options))
    theirs = outcome(lambda: both.theirs.encode_batch([text, "a", text], **options))
    assert ours == theirs


@pytest.mark.parametrize("call", CALLS)
def test_names_are_refused_unless_allowed(both: Pair, call: str) -> None:
    name = names_of(both)[0]
    encode = getattr(both.ours, call)
    for text in (name, f"a {name}", f"{name}b"):
        with pytest.raises(
            ValueError, match="Encountered text corresponding to disallowed"
        ) as ours:
            encode(text)
        with pytest.raises(
            ValueError, match="Encountered text corresponding to disallowed"
        ) as theirs:
            getattr(both.theirs, call)(text)
        assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0]
        assert repr(name) in str(ours.value)
        assert plain(encode(text, allowed_special="all")) == plain(
            getattr(both.theirs, call)(text, allowed_special="all")
        )


def test_each_name_on_its_own() -> None:
    both = pair("kimi-k3")
    names = sorted(both.parts["special_tokens"])
    text = "x" + "y".join(names) + " z"
    for name in names[::16]:
        options: dict[str, Any] = {"allowed_special": {name}, "disallowed_special": ()}
        found = both.ours.encode(text, **options)
        assert found == both.theirs.encode(text, **options)
        assert found.count(both.parts["special_tokens"][name]) == 1


def test_strings_that_are_no_names_may_be_disallowed(both: Pair) -> None:
    for disallowed in (["w"], {"wor", "d"}, "d", {""}):
        with pytest.raises(ValueError, match="disallowed"):
            both.ours.encode("hello world", disallowed_special=disallowed)
        with pytest.raises(ValueError, match="disallowed"):
            both.ours.encode_batch(["a", "hello world"], disallowed_special=disallowed)
    assert both.ours.encode("hello", disallowed_special=["w"]) == both.theirs.encode("hello")


def test_where_a_name_begins_another_the_longer_counts() -> None:
    # tiktoken takes the one that comes first in a hash table.
    special_tokens = {"<|endo": 302, "<|endoftext|>": 300}
    encoding = Encoding("x", **{**pair("gaps").parts, "special_tokens": special_tokens})
    text = "<|endoftext|>"

    assert encoding.encode(text, allowed_special="all") == [300]
    assert encoding.encode("<|endof", allowed_special="all")[0] == 302
    allowed = encoding.encode(text, allowed_special={"<|endo"}, disallowed_special=())
    assert allowed == [302, *encoding.encode_ordinary("ftext|>")]
    with pytest.raises(ValueError, match=r"token '<\|endoftext\|>'"):
        encoding.encode(text)


@pytest.mark.parametrize("argument", [[], (), ["<|x|>"], "x", None, 5])
def test_what_is_no_set_is_refused(both: Pair, argument: Any) -> None:
    for disallowed in ("all", ()):
        for encoding in (both.ours, both.theirs):
            with pytest.raises(TypeError):
                encoding.encode("a", allowed_special=argument, disallowed_special=disallowed)


def test_b06_ordinary_text_has_no_names(both: Pair) -> None:
    special_ids = set(both.parts["special_tokens"].values())
    for name in both.parts["special_tokens"]:
        for ids in (both.ours.encode_ordinary(name), both.ours.encode(name, disallowed_special=())):
            assert special_ids.isdisjoint(ids)
            assert both.ours.decode(ids) == name
    names = sorted(both.parts["special_tokens"])
    assert both.ours.encode_ordinary_batch(names) == both.theirs.encode_ordinary_batch(names)


# Corners of text


@given(text=texts(surrogates=True, max_parts=30))
@example(text="\ud83d\ude00")
@example(text="a\ud83d<|sep|>\ude00")
@example(text="é\ud83c\udf89 <|endoftext|>")
def test_mixed_strings(both: Pair, text: str) -> None:
    assert both.ours.encode_ordinary(text) == both.theirs.encode_ordinary(text)
    options: dict[str, Any] = {"disallowed_special": ()}
    assert both.ours.encode(text, **options) == both.theirs.encode(text, **options)
    ours, theirs = (outcome(lambda e=e: plain(e.encode(text))) for e in (both.ours, both.theirs))
    assert ours == theirs


@given(many=st.lists(texts(surrogates=True, max_parts=6), max_size=5))
def test_batches(both: Pair, many: list[str]) -> None:
    assert both.ours.encode_ordinary_batch(many) == both.theirs.encode_ordinary_batch(many)
    ours, theirs = (outcome(lambda e=e: e.encode_batch(many)) for e in (both.ours, both.theirs))
    assert ours == theirs


def test_b22_a_name_may_be_made_of_surrogates() -> None:
    both = pair("gaps")
    text = "x\u00e9\ud83c\udf89y"
    options: dict[str, Any] = {"allowed_special": {"é🎉"}, "disallowed_special": ()}

    assert both.ours.encode(text, **options) == both.theirs.encode(text, **options)
    # The check comes before the repair, there as here.
    assert both.ours.encode(text) == both.theirs.encode(text)
    assert 9_500 not in both.ours.encode(text)


@pytest.mark.parametrize("surrogates", SURROGATES)
def test_b22_surrogates_are_errors_where_tiktoken_does_not_repair_them(
    both: Pair, surrogates: str
) -> None:
    assert both.ours.encode(surrogates) == both.theirs.encode(surrogates)
    for encoding in (both.ours, both.theirs):
        with pytest.raises(UnicodeEncodeError):
            encoding.encode_to_numpy(f"a{surrogates}")
        with pytest.raises(UnicodeEncodeError):
            encoding.encode_with_unstable(f"a{surrogates}")
        with pytest.raises(UnicodeEncodeError):
            encoding.encode_single_token(surrogates)


@pytest.mark.parametrize("part", ["^", "0", "a", "'s", " ", "\n"])
def test_b54_b55_repetitive_text(both: Pair, part: str) -> None:
    for text in (part * 10_000, " " + part * 10_000, part * 10_000 + "\n"):
        assert both.ours.encode(text) == both.theirs.encode(text)
        assert both.ours.decode(both.ours.encode(text)) == text


@pytest.mark.parametrize("value", [5, b"abc", None, ["a"]])
def test_what_is_no_text_is_a_type_error(both: Pair, value: Any) -> None:
    for encoding in (both.ours, both.theirs):
        for call in ("encode", "encode_ordinary", "encode_to_numpy", "encode_with_unstable"):
            with pytest.raises(TypeError):
                getattr(encoding, call)(value)
        for call in ("encode_batch", "encode_ordinary_batch"):
            with pytest.raises(TypeError):
                getattr(encoding, call)([value])
            with pytest.raises(TypeError):
                getattr(encoding, call)(5)


def test_number_of_threads(both: Pair) -> None:
    for encoding in (both.ours, both.theirs):
        assert encoding.encode_batch(["a"], num_threads=None) == [encoding.encode("a")]
        assert encoding.encode_batch([], num_threads=1) == []
        for call in ("encode_batch", "encode_ordinary_batch", "decode_batch", "decode_bytes_batch"):
            with pytest.raises(ValueError, match="must be greater than 0"):
                getattr(encoding, call)([], num_threads=0)


def test_arrays_are_those_of_kizami(both: Pair) -> None:
    ids = both.ours.encode_to_numpy("hello world")

    assert ids.dtype == np.uint32
    assert ids.flags.c_contiguous
    assert ids.flags.writeable
    assert np.array_equal(ids, both.theirs.encode_to_numpy("hello world"))


# Pieces and bytes


@given(piece=st.binary(min_size=1, max_size=40))
def test_bytes_that_are_no_text(both: Pair, piece: bytes) -> None:
    assert both.ours._encode_single_piece(piece) == both.theirs._encode_single_piece(piece)
    assert both.ours._encode_bytes(piece) == both.theirs._encode_bytes(piece)
    assert both.ours.decode_bytes(both.ours._encode_bytes(piece)) == piece


@given(text=texts(max_parts=6), rest=st.binary(max_size=6))
@example(text="a  \n ", rest=b"\xe4\xb8")
@example(text=" ", rest=b"\xec\x8b\xa4\xed")
def test_text_that_ends_inside_a_character(both: Pair, text: str, rest: bytes) -> None:
    joined = text.encode() + rest
    assert both.ours._encode_bytes(joined) == both.theirs._encode_bytes(joined)


@given(text=texts(max_parts=3))
@example(text="hello fanta")
@example(text="a\n\n ")
@example(text="  \t\n")
@example(text="x \x1c")
def test_unstable(text: str) -> None:
    # Of the large ones each example would take tiktoken a second.
    both = pair("gaps")
    if len(text) > 60:
        text = text[:60]
    ours, theirs = (
        outcome(lambda e=e: plain(e.encode_with_unstable(text))) for e in (both.ours, both.theirs)
    )
    assert ours == theirs


@pytest.mark.parametrize("text", ["", "hello fanta", "we can\n\n", "今天天气", "a <|sep|>", "  "])
def test_unstable_of_large_vocabularies(both: Pair, text: str) -> None:
    allowed = set(both.parts["special_tokens"])
    ours, theirs = (
        plain(e.encode_with_unstable(text, allowed_special=allowed))
        for e in (both.ours, both.theirs)
    )
    assert ours == theirs
    stable, completions = ours
    for completion in completions:
        assert both.ours.decode_bytes(stable + completion).startswith(text.encode())


# Concurrency


def test_b60_threads_share_an_encoding(both: Pair) -> None:
    expected = both.ours.encode("naïve <|x|> 🎉 " * 50)
    found: list[list[int]] = []

    def work() -> None:
        encoding = copy.deepcopy(both.ours)
        for _ in range(20):
            both.ours.encode("a", allowed_special="all")
            found.append(encoding.encode("naïve <|x|> 🎉 " * 50))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 160
    assert all(ids == expected for ids in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_b62_a_forked_child_encodes() -> None:
    encoding = pair("kimi-k3").ours
    text = "some words, and more " * 3_000
    expected = encoding.encode(text)
    child = os.fork()
    if child == 0:
        os._exit(0 if encoding.encode(text) == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
