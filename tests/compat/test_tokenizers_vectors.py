"""The drop-in gives what `tokenizers` gives, on the texts of the vectors, for published models."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.compat.hf import COLUMNS, model, seen
from tests.shared import shared_path
from tests.texts import texts

# Differences that come of another version of Unicode in the engine that made the vectors.
UNICODE = {"class-unicode-version", "nfc-unicode-version"}
MODELS = [
    "deepseek_v3", "gpt-neox", "gpt-oss", "gpt2", "llama3", "llama3_1", "modernbert", "qwen3",
]  # fmt: skip


def rows(name: str) -> Iterator[dict[str, Any]]:
    path = shared_path("vectors", "models", f"{name}.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        found = map(json.loads, lines)
        yield from (row for row in found if not UNICODE.intersection(row.get("tags", ())))


@pytest.mark.parametrize("name", MODELS)
def test_single_texts(name: str) -> None:
    pair = model(name)
    seen_rows = 0
    for row in rows(name):
        text = row["text"]
        theirs, ours = pair.each(lambda t, text=text: t.encode(text, add_special_tokens=False))
        assert ours.ids == row["ids_special"]
        assert seen(ours) == seen(theirs), text
        theirs, ours = pair.each(lambda t, text=text: seen(t.encode(text)))
        assert ours == theirs, text
        seen_rows += 1
    assert seen_rows > 300


@pytest.mark.parametrize("name", MODELS)
def test_special_tokens_as_text(name: str) -> None:
    pair = model(name)
    for tokenizer in pair:
        tokenizer.encode_special_tokens = True
    try:
        for row in rows(name):
            text = row["text"]
            theirs, ours = pair.each(lambda t, text=text: t.encode(text, add_special_tokens=False))
            assert ours.ids == row["ids"]
            assert seen(ours) == seen(theirs), text
    finally:
        for tokenizer in pair:
            tokenizer.encode_special_tokens = False


@pytest.mark.parametrize("name", MODELS)
def test_batches_pairs_and_words(name: str) -> None:
    pair = model(name)
    texts = [row["text"] for row in rows(name)]
    pairs = list(zip(texts, reversed(texts), strict=True))
    words = [text.split() for text in texts]
    for call in (
        lambda t: t.encode_batch(texts),
        lambda t: t.encode_batch(pairs),
        lambda t: t.encode_batch(words, is_pretokenized=True),
    ):
        for text, theirs, ours in zip(texts, *pair.each(call), strict=True):
            assert seen(ours) == seen(theirs), text


@pytest.mark.parametrize("name", MODELS)
def test_fast_batches_tell_no_offsets(name: str) -> None:
    pair = model(name)
    texts = [row["text"] for row in rows(name)]
    # The original leaves names empty, too; here they cost nothing.
    columns = tuple(column for column in COLUMNS if column != "tokens")
    theirs, ours = pair.each(lambda t: t.encode_batch_fast(texts))
    assert [seen(e, columns) for e in ours] == [seen(e, columns) for e in theirs]
    assert [e.tokens for e in ours] == [e.tokens for e in pair.ours.encode_batch(texts)]


@pytest.mark.parametrize("name", MODELS)
def test_decoding(name: str) -> None:
    pair = model(name)
    for row in rows(name):
        ids = row["ids_special"]
        for skip in (True, False):
            theirs, ours = pair.each(lambda t, i=ids, s=skip: t.decode(i, skip_special_tokens=s))
            assert ours == theirs
            # Cut inside a character.
            theirs, ours = pair.each(lambda t, i=ids[1:-1], s=skip: t.decode(i, s))
            assert ours == theirs
        tokens = pair.theirs.encode(row["text"], add_special_tokens=False).tokens
        assert pair.ours.decoder.decode(tokens) == pair.theirs.decoder.decode(tokens)


@pytest.mark.parametrize("name", MODELS)
@given(text=texts(), second=st.none() | texts(max_parts=4), is_pretokenized=st.booleans())
def test_random_texts(name: str, text: str, second: str | None, is_pretokenized: bool) -> None:
    pair = model(name)
    first: Any = text.split(" ") if is_pretokenized else text
    if second is not None and is_pretokenized:
        second = [second]  # type: ignore[assignment]
    theirs, ours = pair.each(lambda t: seen(t.encode(first, second, is_pretokenized)))
    # That ids are equal is tested elsewhere, with what versions of Unicode have to do with it.
    assume(ours["ids"] == theirs["ids"])
    assert ours == theirs


@pytest.mark.parametrize("name", MODELS)
def test_vocabulary(name: str) -> None:
    pair = model(name)
    for with_added in (True, False):
        theirs, ours = pair.each(lambda t, w=with_added: t.get_vocab(w))
        assert ours == theirs
        theirs, ours = pair.each(lambda t, w=with_added: t.get_vocab_size(w))
        assert ours == theirs
    vocab = pair.theirs.get_vocab()
    top = max(vocab.values()) + 2
    assert pair.ours.token_to_id("no such token") is None
    assert {token: pair.ours.token_to_id(token) for token in vocab} == vocab
    theirs, ours = pair.each(lambda t: [t.id_to_token(i) for i in range(top)])
    assert ours == theirs
    theirs, ours = pair.each(
        lambda t: {i: a.__getstate__() for i, a in t.get_added_tokens_decoder().items()}
    )
    assert ours == theirs
    for is_pair in (True, False):
        theirs, ours = pair.each(lambda t, p=is_pair: t.num_special_tokens_to_add(p))
        assert ours == theirs
