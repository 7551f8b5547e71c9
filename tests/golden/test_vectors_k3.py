"""Equality with the ids, segments and bytes that the published tokenizer gave.

The vectors live outside the repository (see `tests/shared.py`). One test is one file; a failure
shows the first row that differs and how many do.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import kizami
import pytest
from kizami import Tokenizer
from kizami.errors import ChatWarning, KizamiError

from tests.shared import shared_path

Row = dict[str, Any]


def rows(*path: str) -> Iterator[Row]:
    with gzip.open(shared_path("vectors", *path), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def check(rows: Iterable[Row], differences: Callable[[Row], Iterator[str]]) -> None:
    """Fails with the first difference; `differences` yields one text for each in a row."""
    total, wrong, first = 0, 0, ""
    for total, row in enumerate(rows, 1):
        found = next(differences(row), None)
        if found is not None:
            first = first or f"row {total}: {found}"
            wrong += 1
    assert total > 0
    assert not wrong, f"{wrong} of {total} rows differ; {first}"


def unequal(what: str, source: object, got: list[Any], expected: list[Any]) -> Iterator[str]:
    if got != expected:
        pairs = zip(got, expected, strict=False)
        at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(got), len(expected)))
        yield (
            f"{what} of {source!r:.400} from {at}: {got[at : at + 8]}, "
            f"must be {expected[at : at + 8]} ({len(got)} and {len(expected)} in all)"
        )


def text_differences(tokenizer: Tokenizer) -> Callable[[Row], Iterator[str]]:
    def differences(row: Row) -> Iterator[str]:
        text, ids = row["text"], row["ids"]
        special = row.get("ids_special", ids)
        yield from unequal("ids", text, tokenizer.encode(text).tolist(), ids)
        trusted = tokenizer.encode(text, allow_special=True)
        yield from unequal("ids_special", text, trusted.tolist(), special)
        both = tokenizer.encode_segments([(text, False), (text, True)]).tolist()
        yield from unequal("segments", text, both, ids + special)
        counts = [tokenizer.count(text), tokenizer.count(text, allow_special=True)]
        yield from unequal("counts", text, counts, [len(ids), len(special)])
        for key, allow_special in (("ids_plain_tiktoken", False), ("ids_special_plain", True)):
            if key in row:
                uncut = tokenizer.encode(text, allow_special=allow_special, legacy_chunks=False)
                yield from unequal(key, text, uncut.tolist(), row[key])

    return differences


@pytest.mark.parametrize("name", ["k3_encode", "k3_surrogates"])
def test_texts(tokenizer: Tokenizer, name: str) -> None:
    check(rows("kimi-k3", f"{name}.jsonl.gz"), text_differences(tokenizer))


@pytest.mark.parametrize(
    ("name", "model"),
    [("kimi-k3", "kimi-k3"), ("kimi-k3.chunks", "kimi-k3"), ("kimi-k2.5", "kimi-k2.5")],
)
def test_texts_of_models(name: str, model: str) -> None:
    check(rows("models", f"{name}.jsonl.gz"), text_differences(kizami.load(model)))


@pytest.mark.parametrize("name", ["k3_encode", "k3_surrogates"])
def test_texts_in_one_batch(tokenizer: Tokenizer, name: str) -> None:
    every = list(rows("kimi-k3", f"{name}.jsonl.gz"))
    texts = [row["text"] for row in every]
    ordinary = tokenizer.encode_batch(texts).tolist()
    trusted = tokenizer.encode_batch(texts, allow_special=True).tolist()

    def differences(row: Row) -> Iterator[str]:
        at = row["at"]
        yield from unequal("ids", row["text"], ordinary[at], row["ids"])
        yield from unequal(
            "ids_special", row["text"], trusted[at], row.get("ids_special", row["ids"])
        )

    check(({**row, "at": at} for at, row in enumerate(every)), differences)


def test_segments(tokenizer: Tokenizer) -> None:
    def differences(row: Row) -> Iterator[str]:
        segments, ids = row["segments"], row["ids"]
        yield from unequal("ids", segments, tokenizer.encode_segments(segments).tolist(), ids)
        yield from unequal("count", segments, [tokenizer.count_segments(segments)], [len(ids)])

    check(rows("kimi-k3", "k3_segments.jsonl.gz"), differences)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("count", [1, 4])
def test_long_texts(tokenizer: Tokenizer, count: int) -> None:
    kizami.set_num_threads(count)

    def differences(row: Row) -> Iterator[str]:
        text = "".join(part * repeat for part, repeat in row["parts"])
        assert len(text) == row["chars"]
        ids = tokenizer.encode(text, allow_special=row["allow_special"])
        name, head, tail = row["name"], row["head"], row["tail"]
        yield from unequal("number of ids", name, [len(ids)], [row["n_ids"]])
        yield from unequal("head", name, ids[: len(head)].tolist(), head)
        yield from unequal("tail", name, ids[len(ids) - len(tail) :].tolist(), tail)
        digest = hashlib.sha256(ids.astype("<u4").tobytes()).hexdigest()
        yield from unequal("sha256", name, [digest], [row["ids_sha256_u32le"]])
        counted = tokenizer.count(text, allow_special=row["allow_special"])
        yield from unequal("count", name, [counted], [row["n_ids"]])

    check(json.loads(shared_path("vectors", "kimi-k3", "k3_long.json").read_bytes()), differences)


def test_decode(tokenizer: Tokenizer) -> None:
    def differences(row: Row) -> Iterator[str]:
        ids = row["ids"]
        yield from unequal("bytes", ids, [tokenizer.decode_bytes(ids).hex()], [row["bytes_hex"]])
        yield from unequal("text", ids, [tokenizer.decode(ids)], [row["text_replace"]])

    every = list(rows("kimi-k3", "k3_decode.jsonl.gz"))
    check(every, differences)
    texts = tokenizer.decode_batch([row["ids"] for row in every])
    assert texts == [row["text_replace"] for row in every]


@pytest.mark.filterwarnings(f"ignore::{ChatWarning.__module__}.{ChatWarning.__name__}")
def test_chats(tokenizer: Tokenizer) -> None:
    def differences(row: Row) -> Iterator[str]:
        messages, name = row["messages"], row["name"]
        options = {"thinking_effort": None, **row["kwargs"]}
        if "error" in row:
            try:
                tokenizer.render_chat(messages, **options)
            except (ValueError, TypeError, KeyError) as error:
                if not isinstance(error, KizamiError):
                    yield f"{name} raises a plain {error!r}, must be an error of ours"
            else:
                yield f"{name} is rendered, must raise {row['error']}"
            return
        segments = tokenizer.render_chat(messages, **options)
        expected = [tuple(segment) for segment in row["segments"]]
        yield from unequal("segments", name, segments, expected)
        ids = row["ids"]
        yield from unequal("ids", name, tokenizer.encode_segments(segments).tolist(), ids)
        yield from unequal("chat", name, tokenizer.encode_chat(messages, **options).tolist(), ids)
        counted = tokenizer.count_chat(messages, **options)
        yield from unequal("count", name, [counted], [len(ids)])

    check(rows("kimi-k3", "k3_chat.jsonl.gz"), differences)
