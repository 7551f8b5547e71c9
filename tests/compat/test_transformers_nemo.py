"""The drop-in for transformers on a published class: the one that `nemo-automodel` ships.

Opt-in: needs `KIZAMI_NEMO`, see CONTRIBUTING.md, and transformers before 5 or with its old names.
"""

from __future__ import annotations

import copy
import gzip
import importlib
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from kizami.compat.transformers import is_adopted, patch

from tests.shared import shared_path

transformers: Any = pytest.importorskip("transformers", reason="needs transformers")
pytestmark = [
    pytest.mark.filterwarnings("ignore::kizami.errors.ChatWarning"),
    pytest.mark.skipif(
        not os.environ.get("KIZAMI_NEMO"),
        reason="set KIZAMI_NEMO to the folder of an unpacked nemo-automodel",
    ),
]


@pytest.fixture(scope="module")
def kind() -> Any:
    """The class, without the package around it, which needs a deep-learning framework."""
    folder = Path(os.environ["KIZAMI_NEMO"], "nemo_automodel/components/models/kimi_k3")
    package = types.ModuleType("kizami_test_nemo")
    package.__path__ = [str(folder)]
    sys.modules["kizami_test_nemo"] = package
    return importlib.import_module("kizami_test_nemo.tokenization").TikTokenTokenizer


@pytest.fixture(scope="module")
def both(kind: Any) -> tuple[Any, Any]:
    folder = shared_path("data", "kimi-k3")
    plain = kind.from_pretrained(folder)
    with patch():
        ours = kind.from_pretrained(folder)
    assert is_adopted(ours)
    return plain, ours


def test_its_conversations_are_rendered_by_kizami(both: tuple[Any, Any]) -> None:
    assert both[1]._chat is not None


@pytest.mark.parametrize(
    "options", [{}, {"return_dict": True}, {"return_assistant_tokens_mask": True}]
)
def test_chat_vectors(both: tuple[Any, Any], options: dict[str, Any]) -> None:
    plain, ours = both
    seen = 0
    with gzip.open(shared_path("vectors", "kimi-k3", "k3_chat.jsonl.gz"), "rt") as lines:
        for row in map(json.loads, lines):
            given = {
                "thinking_effort": None,
                "add_generation_prompt": True,
                **row["kwargs"],
                **options,
                "tokenize": True,
            }
            found = [_tried(tokenizer, row["messages"], given) for tokenizer in (plain, ours)]
            assert found[0] == found[1]
            if "ids" in row and not options:
                assert found[1] == row["ids"]
                seen += 1
    assert options or seen > 100


def _tried(tokenizer: Any, messages: Any, given: dict[str, Any]) -> Any:
    try:
        found = tokenizer.apply_chat_template(copy.deepcopy(messages), **given)
    except Exception as error:
        return type(error), str(error)
    return dict(found) if isinstance(found, transformers.BatchEncoding) else found


def test_encode_vectors(both: tuple[Any, Any]) -> None:
    _, ours = both
    for name in ("k3_encode.jsonl.gz", "k3_surrogates.jsonl.gz"):
        with gzip.open(shared_path("vectors", "kimi-k3", name), "rt") as lines:
            for row in map(json.loads, lines):
                assert ours.encode(row["text"], allow_special_tokens=False) == row["ids"]
                assert ours.encode(row["text"]) == row.get("ids_special", row["ids"])
