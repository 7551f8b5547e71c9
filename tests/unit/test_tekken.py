"""`tekken.json`: ids behind those of the control tokens, and names that do not count in text."""

from __future__ import annotations

import json
import pickle
from base64 import b64encode
from pathlib import Path
from typing import Any

import kizami
import pytest
from kizami.errors import UnknownFormatError, VocabularyError

WORDS = [b"th", b"the", b" the"]


def tekken_json(**config: Any) -> dict[str, Any]:
    """A small file of our own: bytes and three words behind 30 control tokens."""
    tokens = [*(bytes([byte]) for byte in range(256)), *WORDS, b"not used"]
    return {
        "config": {
            "pattern": r" ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+",
            "default_vocab_size": 30 + 256 + len(WORDS),
            "default_num_special_tokens": 30,
            **config,
        },
        "vocab": [
            {"rank": rank, "token_bytes": b64encode(token).decode(), "token_str": None}
            for rank, token in enumerate(tokens)
        ],
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tekken.json").write_text(json.dumps(tekken_json()))
    return tmp_path


def test_ids_are_behind_those_of_control_tokens(folder: Path) -> None:
    tokenizer = kizami.load(folder)
    assert tokenizer.encode("the the!").tolist() == [30 + 257, 30 + 258, 30 + ord("!")]
    assert tokenizer.vocab_size == 30 + 259
    assert tokenizer.token_id("not used") is None
    assert tokenizer.control_tokens["[INST]"] == 3
    assert tokenizer.control_tokens["<SPECIAL_29>"] == 29
    assert tokenizer.decode([1, 30 + 257, 2]) == "<s>the</s>"
    assert tokenizer.decode([1, 30 + 257, 2], skip_special=True) == "the"


def test_no_name_in_a_text_counts(folder: Path) -> None:
    tokenizer = kizami.load(folder)
    tokenizer.save(folder / "saved")
    copies = [tokenizer, kizami.load(folder / "saved"), pickle.loads(pickle.dumps(tokenizer))]
    for one in copies:
        for text in ("[INST]", "a<s>", "<SPECIAL_29>"):
            ids = one.encode(text, allow_special=True)
            assert ids.min() >= 30
            assert ids.tolist() == one.encode(text).tolist()
            assert one.decode(ids) == text


def test_a_template_that_would_write_names_is_not_used(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("[INST]{{ messages[0].content }}[/INST]")
    with pytest.raises(UnknownFormatError, match="encode_segments"):
        kizami.load(folder).encode_chat([{"role": "user", "content": "Hi"}])


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"default_vocab_size": 10}, "30 special tokens of 10"),
        ({"default_vocab_size": 1000}, "config asks for 970"),
        ({"default_vocab_size": -1}, "no number of tokens"),
        ({"pattern": None}, "config.pattern is no string"),
    ],
)
def test_a_file_that_cannot_be_is_refused(
    tmp_path: Path, config: dict[str, Any], reason: str
) -> None:
    path = tmp_path / "tekken.json"
    path.write_text(json.dumps(tekken_json(**config)))
    with pytest.raises(VocabularyError, match=reason) as caught:
        kizami.load(path)
    assert caught.value.path == str(path)


@pytest.mark.parametrize(
    "listed", [7, "<s>", {"0": "<s>"}, [7], [{"rank": 30, "token_str": "<a>"}]]
)
def test_a_wrong_list_of_special_tokens_is_refused(tmp_path: Path, listed: Any) -> None:
    path = tmp_path / "tekken.json"
    path.write_text(json.dumps({**tekken_json(), "special_tokens": listed}))
    with pytest.raises(VocabularyError, match="special_tokens"):
        kizami.load(path)
