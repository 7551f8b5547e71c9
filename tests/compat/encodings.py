"""The same encodings twice: as `kizami.compat.tiktoken` makes them, and as `tiktoken` does.

The ranks of Kimi K3 and of the small one are bundled in the wheel, so these two are there wherever
tiktoken is; the others are in the shared data.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import kizami
import pytest
from kizami import _native
from kizami.compat.tiktoken import Encoding
from kizami.compat.tiktoken.load import load_tiktoken_bpe

from tests.shared import shared_path

tiktoken = pytest.importorskip("tiktoken")

# The last has special ids among the others, as p50k_base, and tokens that no merge makes.
NAMES = ["kimi-k3", "cl100k_base", "o200k_base", "gaps"]
SPECIAL_IN_GAPS = {"<|endoftext|>": 300, "<|end|>": 301, "é🎉": 9_500}


class Pair(NamedTuple):
    """One encoding, and what made it."""

    ours: Encoding
    theirs: Any
    parts: dict[str, Any]


@functools.cache
def pair(name: str) -> Pair:
    """An encoding by name; skips the running test if its data is not there."""
    if tiktoken.__version__ != "0.14.0":
        pytest.fail("another version may split by other Unicode tables: install tiktoken 0.14.0")
    parts = globals()[f"_{name.replace('-', '_')}"]()
    return Pair(Encoding(name, **parts), tiktoken.Encoding(name, **parts), parts)


def _kimi_k3() -> dict[str, Any]:
    tokenizer = kizami.load("kimi-k3")
    controls = dict(tokenizer.control_tokens)
    ids = set(controls.values())
    ranks = {token: id_ for id_, token in tokenizer.tokens() if id_ not in ids}
    return {
        "pat_str": _native.KIMI_PATTERN,
        "mergeable_ranks": ranks,
        "special_tokens": controls,
    }


def _shared(name: str) -> dict[str, Any]:
    folder = shared_path("data", "tokenizers", name)
    stated = json.loads((folder / "encoding.json").read_text(encoding="utf-8"))
    return {
        "pat_str": stated["pat_str"],
        "mergeable_ranks": load_tiktoken_bpe(folder / f"{name}.tiktoken"),
        "special_tokens": stated["special_tokens"],
    }


def _cl100k_base() -> dict[str, Any]:
    return _shared("cl100k_base")


def _o200k_base() -> dict[str, Any]:
    return _shared("o200k_base")


def _gaps() -> dict[str, Any]:
    """Some ids are missing, two of them special ones; so is every seventh token of two bytes."""
    ranks: dict[bytes, int] = {}
    for id_, token in kizami.load("kimi-k3").tokens():
        if id_ == 9_000:
            break
        if len(token) != 2 or id_ % 7:
            ranks[token] = id_ if id_ < 300 else id_ + 10
    return {
        "pat_str": _native.GPT2_PATTERN,
        "mergeable_ranks": ranks,
        "special_tokens": SPECIAL_IN_GAPS,
    }


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or the class of the error that it raises."""
    try:
        return call()
    # A panic of tiktoken's is no `Exception`.
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            pytest.skip(f"tiktoken panics here: {error}")
        kind: Any = type(error)
        return kind if kind.__module__ == "builtins" else kind.__mro__[2]
