"""`kizami.compat.tiktoken`: all public methods, on all texts of the vectors."""

from __future__ import annotations

import functools
import gzip
import inspect
import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.compat.encodings import outcome, pair
from tests.shared import shared_path

tiktoken: Any = pytest.importorskip("tiktoken")

FILES = {
    "kimi-k3": [
        "models/kimi-k3.jsonl.gz",
        "kimi-k3/k3_encode.jsonl.gz",
        "kimi-k3/k3_surrogates.jsonl.gz",
    ],
    "cl100k_base": ["models/cl100k_base.jsonl.gz"],
    "o200k_base": ["models/o200k_base.jsonl.gz"],
}
# Both need up to a second a text; all of them take three minutes.
STEP_UNSTABLE = 1 if os.environ.get("KIZAMI_SWEEP") == "all" else 20
LONGEST_UNSTABLE = 60


@functools.cache
def texts(name: str) -> list[str]:
    found = []
    for file in FILES[name]:
        with gzip.open(shared_path("vectors", *file.split("/")), "rt", encoding="utf-8") as lines:
            found += [json.loads(line)["text"] for line in lines]
    return list(dict.fromkeys(found))


def plain(value: Any) -> Any:
    """Arrays as lists; completions without an order, which they have not."""
    if isinstance(value, tuple) and isinstance(value[1], list) and value[1:] != ([],):
        return value[0], sorted(value[1], key=repr)
    return value.tolist() if hasattr(value, "tolist") else value


# What is called for one text, given the encoding, the text and its ids.
EACH: dict[str, Callable[[Any, str, list[int]], Any]] = {
    "encode": lambda e, text, ids: [
        outcome(lambda: e.encode(text)),
        e.encode(text, disallowed_special=()),
        e.encode(text, allowed_special="all"),
        e.encode(text, allowed_special=some(e), disallowed_special=()),
    ],
    "encode_ordinary": lambda e, text, ids: e.encode_ordinary(text),
    "encode_to_numpy": lambda e, text, ids: [
        plain(outcome(lambda: e.encode_to_numpy(text))),
        plain(outcome(lambda: e.encode_to_numpy(text, allowed_special="all"))),
    ],
    "encode_single_token": lambda e, text, ids: [
        outcome(lambda: e.encode_single_token(text)),
        outcome(lambda: e.encode_single_token(text[:1])),
        [e.encode_single_token(e.decode_single_token_bytes(id_)) for id_ in ids[:9]],
    ],
    "decode": lambda e, text, ids: [e.decode(ids), outcome(lambda: e.decode(ids[1:], "strict"))],
    "decode_bytes": lambda e, text, ids: [e.decode_bytes(ids), e.decode_bytes(ids[1:-1])],
    "decode_single_token_bytes": lambda e, text, ids: [
        e.decode_single_token_bytes(id_) for id_ in ids[:9]
    ],
    "decode_tokens_bytes": lambda e, text, ids: e.decode_tokens_bytes(ids),
    "decode_with_offsets": lambda e, text, ids: [
        e.decode_with_offsets(ids),
        outcome(lambda: e.decode_with_offsets(ids[1:])),
    ],
    "is_special_token": lambda e, text, ids: [e.is_special_token(id_) for id_ in ids[:9]],
}
# What takes all texts in one call.
MANY: dict[str, Callable[[Any, list[str], list[list[int]]], Any]] = {
    "encode_batch": lambda e, many, ids: [
        e.encode_batch(many, disallowed_special=()),
        e.encode_batch(many, allowed_special="all"),
    ],
    "encode_ordinary_batch": lambda e, many, ids: e.encode_ordinary_batch(many),
    "decode_batch": lambda e, many, ids: e.decode_batch(ids),
    "decode_bytes_batch": lambda e, many, ids: e.decode_bytes_batch(ids),
}
# What knows nothing of a text, and what has a test of its own.
ALONE: dict[str, Callable[[Any], Any]] = {
    "token_byte_values": lambda e: e.token_byte_values(),
    "n_vocab": lambda e: e.n_vocab,
    "eot_token": lambda e: outcome(lambda: e.eot_token),
    "special_tokens_set": lambda e: e.special_tokens_set,
}


def some(encoding: Any) -> set[str]:
    """Every other name."""
    return set(sorted(encoding.special_tokens_set)[::2])


def test_no_public_method_is_left_out() -> None:
    names = {name for name in dir(tiktoken.Encoding) if not name.startswith("_")}

    assert names == {*EACH, *MANY, *ALONE, "encode_with_unstable"}
    for name in names:
        stated, ours = (
            getattr(kind, name) for kind in (tiktoken.Encoding, type(pair("kimi-k3").ours))
        )
        assert inspect.isfunction(stated) == inspect.isfunction(ours)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("method", EACH)
def test_each_text(name: str, method: str) -> None:
    both, call = pair(name), EACH[method]
    for text in texts(name):
        ids = both.theirs.encode(text, allowed_special="all")
        assert call(both.ours, text, ids) == call(both.theirs, text, ids), text


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("method", MANY)
def test_all_texts(name: str, method: str) -> None:
    both, call = pair(name), MANY[method]
    many = texts(name)
    ids = [both.theirs.encode(text, allowed_special="all") for text in many]

    assert call(both.ours, many, ids) == call(both.theirs, many, ids)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("method", ALONE)
def test_without_text(name: str, method: str) -> None:
    both, call = pair(name), ALONE[method]

    assert call(both.ours) == call(both.theirs)


@pytest.mark.parametrize("name", FILES)
def test_unstable(name: str) -> None:
    both = pair(name)
    seen = 0
    for text in [text for text in texts(name) if len(text) <= LONGEST_UNSTABLE][::STEP_UNSTABLE]:
        try:
            theirs = outcome(
                lambda t=text: both.theirs.encode_with_unstable(t, allowed_special="all")
            )
        except pytest.skip.Exception:
            continue
        ours = outcome(lambda t=text: both.ours.encode_with_unstable(t, allowed_special="all"))
        assert plain(ours) == plain(theirs), text
        seen += 1
    assert seen > 10
