"""A `Tokenizer` as a Python object: copies, pickles, comparison, references."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import weakref

import kizami
import pytest
from kizami import Tokenizer

TEXT = "Hello, <|open|>\n中文 it's 12345 🎉"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_b86_copies_are_the_object_itself(tokenizer: Tokenizer, duplicate: object) -> None:
    assert duplicate(tokenizer) is tokenizer  # type: ignore[operator]
    assert copy.deepcopy({"tokenizer": [tokenizer]})["tokenizer"][0] is tokenizer


def test_b61_many_deep_copies_share_the_tables(tokenizer: Tokenizer) -> None:
    copies = [copy.deepcopy(tokenizer) for _ in range(32)]

    assert {id(each) for each in copies} == {id(tokenizer)}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", ["kimi-k3", "kimi-k2", "kimi-k2.5"])
def test_b86_a_pickle_of_a_bundled_tokenizer_is_small(name: str, protocol: int) -> None:
    tokenizer = kizami.load(name)
    data = pickle.dumps(tokenizer, protocol)

    assert len(data) < 32_000
    assert pickle.loads(data) is tokenizer


def test_b86_a_pickle_opens_in_a_new_process(tokenizer: Tokenizer) -> None:
    code = (
        "import pickle, sys\n"
        "tokenizer, text = pickle.load(sys.stdin.buffer)\n"
        "print(tokenizer.name, *tokenizer.encode(text, allow_special=True))\n"
    )
    data = pickle.dumps((tokenizer, TEXT))
    ran = subprocess.run(
        [sys.executable, "-c", code], input=data, capture_output=True, timeout=60, check=True
    )

    ids = tokenizer.encode(TEXT, allow_special=True).tolist()
    assert ran.stdout.decode().split() == ["kimi-k3", *map(str, ids)]


def test_b86_weak_references(tokenizer: Tokenizer) -> None:
    assert weakref.ref(tokenizer)() is tokenizer
    cache = weakref.WeakKeyDictionary({tokenizer: "kept"})
    gc.collect()
    assert cache[tokenizer] == "kept"


def test_equality_and_hash(tokenizer: Tokenizer) -> None:
    k2 = kizami.load("kimi-k2")

    assert tokenizer == kizami.load("kimi-k3")
    assert hash(tokenizer) == hash(kizami.load("kimi-k3"))
    assert tokenizer != k2
    assert tokenizer != "kimi-k3"
    assert tokenizer.__eq__("kimi-k3") is NotImplemented
    assert len({tokenizer, k2, kizami.load("kimi-k3")}) == 2


def test_attributes_cannot_be_set(tokenizer: Tokenizer) -> None:
    for name in ("name", "vocab_size", "control_tokens", "eos_ids", "something_new"):
        with pytest.raises(AttributeError):
            setattr(tokenizer, name, 5)


def test_segments_are_plain_tuples() -> None:
    segment = kizami.Segment("text")

    assert segment == ("text", False)
    assert kizami.Segment("text", True)._asdict() == {"text": "text", "allow_special": True}
    assert pickle.loads(pickle.dumps(segment)) == segment
