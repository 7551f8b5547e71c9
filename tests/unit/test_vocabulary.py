"""The vocabulary of Kimi K3: every id both ways, the names of control tokens, the checksum."""

from __future__ import annotations

import base64
import hashlib

import kizami
import pytest
from kizami import Tokenizer

RANK_FILE_SHA256 = "b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103"
NAMED = {
    "[BOS]": 163584, "[EOS]": 163585, "<|end_of_msg|>": 163586, "<|open|>": 163587,
    "<|close|>": 163588, "<|sep|>": 163589, "[start_header_id]": 163590, "[end_header_id]": 163591,
    "[EOT]": 163593, "<|media_begin|>": 163602, "<|media_content|>": 163603,
    "<|media_end|>": 163604, "<|media_pad|>": 163605, "<osagent_mode>": 163649, "[UNK]": 163838,
    "[PAD]": 163839,
}  # fmt: skip


def test_size_and_name(tokenizer: Tokenizer) -> None:
    assert tokenizer.vocab_size == 163_840
    assert tokenizer.name == "kimi-k3"
    assert repr(tokenizer) == "Tokenizer('kimi-k3', vocab_size=163840)"


def test_the_rank_file_is_the_published_one(tokenizer: Tokenizer) -> None:
    lines = [
        base64.b64encode(token) + b" %d\n" % id_
        for id_, token in tokenizer.tokens()
        if id_ < 163_584
    ]

    assert len(lines) == 163_584
    assert hashlib.sha256(b"".join(lines)).hexdigest() == RANK_FILE_SHA256


def test_every_id_there_and_back(tokenizer: Tokenizer) -> None:
    tokens = list(tokenizer.tokens())

    assert [id_ for id_, _ in tokens] == list(range(163_840))
    for id_, token in tokens:
        assert tokenizer.token_bytes(id_) == token
        assert tokenizer.token_id(token) == id_
    assert len({token for _, token in tokens}) == 163_840
    assert tokenizer.decode_bytes(range(163_840)) == b"".join(token for _, token in tokens)


def test_every_token_alone_decodes_to_its_bytes(tokenizer: Tokenizer) -> None:
    for id_, token in list(tokenizer.tokens())[::97]:
        assert tokenizer.decode_bytes([id_]) == token
        assert tokenizer.decode([id_]) == token.decode("utf-8", "replace")


def test_b08_b09_control_names_and_ids(tokenizer: Tokenizer) -> None:
    controls = tokenizer.control_tokens

    assert len(controls) == 256
    assert sorted(controls.values()) == list(range(163_584, 163_840))
    assert {name: controls[name] for name in NAMED} == NAMED
    unlisted = set(range(163_584, 163_840)) - set(NAMED.values())
    assert {controls[f"<|reserved_token_{id_}|>"] for id_ in unlisted} == unlisted


def test_control_tokens_are_read_only(tokenizer: Tokenizer) -> None:
    with pytest.raises(TypeError):
        tokenizer.control_tokens["<|mine|>"] = 5  # type: ignore[index]


def test_every_control_name_is_one_id_when_trusted(tokenizer: Tokenizer) -> None:
    for name, id_ in tokenizer.control_tokens.items():
        assert tokenizer.encode(name, allow_special=True).tolist() == [id_]
        assert tokenizer.decode([id_]) == name
        assert tokenizer.token_id(name) == tokenizer.token_id(name.encode()) == id_
        assert tokenizer.token_bytes(id_) == name.encode()


def test_what_token_id_finds(tokenizer: Tokenizer) -> None:
    assert (
        tokenizer.token_id("a") == tokenizer.token_id(b"a") == tokenizer.token_id(bytearray(b"a"))
    )
    assert tokenizer.token_id("a") == 64
    assert tokenizer.token_id("é") == tokenizer.token_id(b"\xc3\xa9")
    for absent in (
        "",
        b"",
        "no such token",
        "<|reserved_token_163587|>",
        "\ud83d",
        b"\xff\xff\xff",
    ):
        assert tokenizer.token_id(absent) is None
    for bad in (5, None, ["a"]):
        with pytest.raises(kizami.errors.InputTypeError):
            tokenizer.token_id(bad)  # type: ignore[arg-type]


def test_eos_ids(tokenizer: Tokenizer) -> None:
    assert tokenizer.eos_ids == (163_586,)
    assert kizami.load("kimi-k2").eos_ids == (163_586,)


def test_other_models_of_the_line_differ_in_names_alone(tokenizer: Tokenizer) -> None:
    k25 = kizami.load("kimi-k2.5")

    assert k25.vocab_size == tokenizer.vocab_size
    assert list(k25.tokens())[:163_584] == list(tokenizer.tokens())[:163_584]
    assert k25.control_tokens["</think>"] == 163_607
    assert k25.control_tokens["<|media_pad|>"] == 163_605
    assert "<|open|>" not in k25.control_tokens
    assert k25.encode("</think>", allow_special=True).tolist() == [163_607]
    with pytest.raises(kizami.errors.UnknownFormatError, match=r"kimi-k2\.5"):
        k25.render_chat([])
