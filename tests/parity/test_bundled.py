"""The bundled encodings of OpenAI against `tiktoken`, which states their patterns and names itself.

Its ranks would come over the network; here they are ours, whose checksum is the published one.
"""

from __future__ import annotations

import hashlib
import json
import pickle
from base64 import b64decode
from importlib.metadata import version
from pathlib import Path
from typing import Any

import kizami
import numpy as np
import pytest
from kizami import _native
from kizami.errors import InvalidIdError
from kizami.reference import well_formed

from tests.texts import Writer

tiktoken = pytest.importorskip("tiktoken")

NAMES = ["cl100k_base", "o200k_base", "o200k_harmony", "gpt-oss"]
PUBLISHED = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
TEXTS = 500

if not set(NAMES) <= set(_native.bundled_names()):
    pytest.skip("this build is without the encodings of OpenAI", allow_module_level=True)


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def published(name: str) -> Any:
    """What tiktoken says of the encoding, and ranks."""
    from tiktoken_ext import openai_public

    if version("tiktoken") != "0.14.0":
        pytest.skip(f"the facts are those of tiktoken 0.14.0, not of {version('tiktoken')}")
    lines = kizami.load(name).to_tiktoken().splitlines()
    ranks = {b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai_public, "load_tiktoken_bpe", lambda *_, **__: ranks)
        make = openai_public.ENCODING_CONSTRUCTORS[name if name != "gpt-oss" else "o200k_harmony"]
        return make()


def test_ranks_are_the_published_file(name: str) -> None:
    tokenizer = kizami.load(name)
    ranks = hashlib.sha256(tokenizer.to_tiktoken()).hexdigest()
    assert ranks == PUBLISHED["cl100k_base" if name == "cl100k_base" else "o200k_base"]
    assert _native.bundled_facts(name)[0] == ranks


def test_names_and_pattern_are_those_of_tiktoken(name: str, published: Any) -> None:
    tokenizer = kizami.load(name)
    assert dict(tokenizer.control_tokens) == published["special_tokens"]
    split, normalizer = tokenizer._native.description()
    assert (split, normalizer) == (json.dumps(published["pat_str"]), "null")
    assert tokenizer.vocab_size == max(published["special_tokens"].values()) + 1


def test_ids_are_those_of_tiktoken(name: str, published: Any) -> None:
    tokenizer, encoding = kizami.load(name), tiktoken.Encoding(**published)
    writer = Writer(name, list(published["special_tokens"])[:30])
    for _ in range(TEXTS):
        text = well_formed(writer.text())
        assert tokenizer.encode(text).tolist() == encoding.encode_ordinary(text)
        trusted = encoding.encode(text, allowed_special="all")
        assert tokenizer.encode(text, allow_special=True).tolist() == trusted
        assert tokenizer.decode(trusted) == encoding.decode(trusted)


def test_the_name_of_an_id_with_two_is_the_first() -> None:
    tokenizer = kizami.load("o200k_harmony")
    ids = tokenizer.encode("<|reserved_200018|><|endofprompt|>", allow_special=True)
    assert ids.tolist() == [200_018, 200_018]
    assert tokenizer.decode(ids) == "<|endofprompt|>" * 2


def test_copies_are_the_same(name: str, tmp_path: Path) -> None:
    tokenizer = kizami.load(name)
    assert kizami.load(name) is tokenizer
    carried = pickle.dumps(tokenizer)
    assert len(carried) < 1_000
    assert pickle.loads(carried) is tokenizer
    tokenizer.save(tmp_path / "saved")
    again = kizami.load(tmp_path / "saved")
    assert again == tokenizer
    assert (again.name, again.eos_ids) == (name, tokenizer.eos_ids)
    assert again.control_tokens == tokenizer.control_tokens
    text = "<|endoftext|> naïve 数据 <|reserved_200018|>"
    expected = tokenizer.encode(text, allow_special=True)
    assert np.array_equal(again.encode(text, allow_special=True), expected)


def test_the_cache_holds_what_was_made(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kizami import _load

    monkeypatch.setenv("KIZAMI_CACHE_DIR", str(tmp_path))
    made = _load._open_bundled(name)
    assert len(list(tmp_path.glob("*.kizami"))) == 1

    def never(name: str) -> None:
        raise AssertionError(f"{name} is made again")

    monkeypatch.setattr(_native.Tokenizer, "bundled", never, raising=True)
    mapped = _load._open_bundled(name)
    assert mapped == made
    assert (mapped.eos_ids, mapped.name) == (made.eos_ids, name)


def test_b77_b78_gaps_in_the_ids_stay_gaps() -> None:
    tokenizer = kizami.load("cl100k_base")
    gaps = [100_256, *range(100_261, 100_276)]
    known = dict(tokenizer.tokens())
    assert tokenizer.vocab_size == max(known) + 1 == 100_277
    assert sorted(set(range(tokenizer.vocab_size)) - set(known)) == gaps
    # What a model pads its table to is no id of the tokenizer, either.
    for id_ in (*gaps, 100_277, 100_352):
        why = "in a gap" if id_ in gaps else "outside the vocabulary"
        with pytest.raises(InvalidIdError, match=why):
            tokenizer.token_bytes(id_)
        with pytest.raises(InvalidIdError, match=why):
            tokenizer.decode([0, id_])
