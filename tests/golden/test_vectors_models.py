"""Equality with the ids that each model's own tokenizer gave, from the files as published.

Untrusted text: `ids_raw` where the file has it (no added token of any sort), else `ids`. Models
whose added tokens are runs of spaces have those in untrusted text, too: they are vocabulary.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kizami
import pytest
from kizami.errors import UnknownFormatError

from tests.models import CASES, Case, load, read_json
from tests.shared import shared_path

# Differences that come of another version of Unicode in the engine that made the vectors.
UNICODE = {"class-unicode-version", "nfc-unicode-version"}


def rows(name: str) -> Iterator[dict[str, Any]]:
    path = shared_path("vectors", "models", f"{name}.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def untrusted_ids(row: dict[str, Any], tokenizer: kizami.Tokenizer) -> list[int] | None:
    """What untrusted text must give: no control token, all of the vocabulary.

    None if no call that the vectors were made with gives it: where a text has control tokens, the
    only ids without them are without runs of spaces, too.
    """
    controls = set(tokenizer.control_tokens.values())
    ids: list[int] = row["ids"]
    if not controls.intersection(ids):
        return ids
    if "  " in row["text"] and tokenizer.name in ("gpt-neox", "modernbert"):
        return None
    return row.get("ids_raw", ids)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.vectors)
def test_ids(case: Case) -> None:
    tokenizer = load(case.source)
    total, wrong = 0, []
    for row in rows(case.vectors):
        total += 1
        text = row["text"]
        untrusted = tokenizer.encode(text).tolist()
        expected = untrusted_ids(row, tokenizer) or untrusted, row["ids_special"]
        got = untrusted, tokenizer.encode(text, allow_special=True).tolist()
        if got != expected and not UNICODE.intersection(row.get("tags", ())):
            wrong.append((text[:80], got, expected))
    assert total > 300
    assert not wrong, f"{len(wrong)} of {total} rows differ; first: {wrong[0]}"


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base", "o200k_harmony", "gpt-oss"])
def test_ids_of_bundled_names(name: str) -> None:
    tokenizer = kizami.load(name)
    for row in rows(name):
        if not UNICODE.intersection(row.get("tags", ())):
            assert tokenizer.encode(row["text"]).tolist() == row["ids"]
            trusted = tokenizer.encode(row["text"], allow_special=True)
            assert trusted.tolist() == row["ids_special"]


def test_ids_where_an_id_has_two_names() -> None:
    stated = read_json(shared_path("data", "tokenizers", "gpt-oss", "encoding.json"))
    tokenizer = kizami.load(
        shared_path("data", "tokenizers", "o200k_base", "o200k_base.tiktoken"),
        pattern=stated["pat_str"],
        special_tokens=stated["special_tokens"],
    )
    assert dict(tokenizer.control_tokens) == stated["special_tokens"]
    for row in rows("o200k_harmony"):
        assert tokenizer.encode(row["text"]).tolist() == row["ids"]
        trusted = tokenizer.encode(row["text"], allow_special=True)
        assert trusted.tolist() == row["ids_special"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.vectors)
def test_text_comes_back(case: Case) -> None:
    tokenizer = load(case.source)
    normalizes = case.vectors in ("qwen3", "qwen3.5", "gpt-neox", "modernbert")
    for row in rows(case.vectors):
        text = row["text"]
        if normalizes and not text.isascii():
            continue
        assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.vectors)
def test_streams_give_what_decode_gives(case: Case) -> None:
    tokenizer = load(case.source)
    for row in list(rows(case.vectors))[::4]:
        ids = row["ids_special"]
        for skip in (False, True):
            text = tokenizer.decode(ids, skip_special=skip)
            stream = tokenizer.stream(skip_special=skip)
            assert "".join(map(stream.push, ids)) + stream.finish() == text
            half = len(text) // 2
            stop = text[half : half + 7]
            if stop:
                stream = tokenizer.stream(skip_special=skip, stop=stop)
                parts = [stream.push(ids[at : at + 3]) for at in range(0, len(ids), 3)]
                assert "".join(parts) + stream.finish() == text[: text.index(stop)]
                assert stream.stopped == stop


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.vectors)
def test_b80_offsets_or_a_clear_error(case: Case) -> None:
    tokenizer = load(case.source)
    refusals = []
    for row in list(rows(case.vectors))[::4]:
        text = row["text"]
        try:
            ids, starts, ends = tokenizer.encode_with_offsets(text, unit="byte")
        except UnknownFormatError as error:
            refusals.append(str(error))
            continue
        data = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        assert ids.tolist() == tokenizer.encode(text).tolist()
        assert starts.tolist() == [0, *ends.tolist()][: len(ids)]
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        assert [data[a:b] for a, b in spans] == list(map(tokenizer.token_bytes, ids.tolist()))
    # Only a tokenizer that changes text has none, and only for texts that it changes.
    assert all("use encode, which gives no offsets" in refusal for refusal in refusals)
    assert bool(refusals) == (case.vectors in ("qwen3", "qwen3.5", "gpt-neox", "modernbert"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.vectors)
def test_the_scanner_in_use(case: Case) -> None:
    assert load(case.source).pretokenizer == case.pretokenizer


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("gemma3", "byte fallback"),
        ("bert-base-cased", "WordPiece"),
        ("gte-wordpiece", "WordPiece"),
        ("xlnet-base-cased", "Unigram"),
        ("llama2", "byte fallback"),
        ("clip-base", "suffix"),
    ],
)
def test_b53_other_kinds_are_refused_by_name(source: str, what: str) -> None:
    with pytest.raises(UnknownFormatError, match=what) as caught:
        load(source)
    assert "tokenizers" in str(caught.value)
    assert Path(str(caught.value.source)).name == "tokenizer.json.gz"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.vectors)
def test_a_saved_tokenizer_is_the_same(case: Case, tmp_path: Path) -> None:
    tokenizer = load(case.source)
    tokenizer.save(tmp_path / "saved")
    again = kizami.load(tmp_path / "saved")
    assert again == tokenizer
    assert again.control_tokens == tokenizer.control_tokens
    assert again.eos_ids == tokenizer.eos_ids
    for row in list(rows(case.vectors))[::7]:
        for allow in (False, True):
            expected = tokenizer.encode(row["text"], allow_special=allow).tolist()
            assert again.encode(row["text"], allow_special=allow).tolist() == expected
