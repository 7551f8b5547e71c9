"""What other libraries make of the files that Kizami writes for them."""

from __future__ import annotations

import json
from base64 import b64decode

import kizami
import pytest
from kizami.errors import UnknownFormatError

from tests.golden.test_vectors_models import rows
from tests.models import CASES, Case, load

# Texts of other versions of Unicode apart, every second one is enough here.
TEXTS = 2


def texts(case: Case) -> list[str]:
    return [row["text"] for row in list(rows(case.vectors))[::TEXTS] if not row.get("tags")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.vectors)
def test_tokenizers_loads_it_and_gives_the_same_ids(case: Case) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = load(case.source)
    other = tokenizers.Tokenizer.from_str(tokenizer.to_tokenizer_json())
    other.encode_special_tokens = False
    for text in texts(case):
        # Mistral's own tokenizer reads no names in text; that is no matter of a tokenizer.json.
        if case.pretokenizer == "tekken" and any(name in text for name in tokenizer.control_tokens):
            continue
        expected = tokenizer.encode(text, allow_special=True).tolist()
        assert other.encode(text, add_special_tokens=False).ids == expected, text


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.vectors)
def test_a_tokenizer_json_comes_back(case: Case, tmp_path_factory: pytest.TempPathFactory) -> None:
    tokenizer = load(case.source)
    file = tmp_path_factory.mktemp("export") / "tokenizer.json"
    file.write_text(tokenizer.to_tokenizer_json(), encoding="utf-8")
    again = kizami.load(file)
    assert again.control_tokens == tokenizer.control_tokens
    for text in texts(case):
        assert again.encode(text).tolist() == tokenizer.encode(text, legacy_chunks=False).tolist()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.vectors)
def test_tiktoken_loads_it_and_gives_the_same_ids(case: Case) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    tokenizer = load(case.source)
    if case.vectors.startswith(("deepseek", "qwen", "gpt-neox", "modernbert")):
        with pytest.raises(UnknownFormatError, match="use to_tokenizer_json"):
            tokenizer.to_tiktoken()
        return
    lines = tokenizer.to_tiktoken().splitlines()
    ranks = {b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}
    split = json.loads(tokenizer._native.description()[0])
    if isinstance(split, dict):
        stages = split.get("pretokenizers", [split])
        split = next(
            (stage["pattern"]["Regex"] for stage in stages if stage["type"] == "Split"),
            kizami._native.GPT2_PATTERN,
        )
    other = tiktoken.Encoding(
        "export",
        pat_str=split,
        mergeable_ranks=ranks,
        special_tokens=dict(tokenizer.control_tokens),
    )
    for text in texts(case):
        assert other.encode_ordinary(text) == tokenizer.encode(text).tolist(), text
