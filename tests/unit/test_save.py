"""Saved tokenizers: whole or refused; and the cache of images."""

from __future__ import annotations

import copy
import functools
import gzip
import json
import os
import pickle
import struct
from base64 import b64encode
from pathlib import Path
from typing import Any

import kizami
import numpy as np
import pytest
from kizami import Tokenizer
from kizami._files import read_bytes
from kizami.errors import (
    InputTypeError,
    InvalidValueError,
    KizamiError,
    SourceNotFoundError,
    UnknownFormatError,
    VocabularyError,
)

LETTERS = "".join(chr(n) for n in range(0x21, 0x7F))
# An entry of `added_tokens`, without its content.
ADDED: dict[str, Any] = {
    "id": 261, "special": True,
    "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
}  # fmt: skip
BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
LONG = "x" * 70_000


def tokenizer_json(**changes: Any) -> str:
    """A small `tokenizer.json` of our own: bytes, a few merges, two added tokens."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = iter(range(0x100, 0x200))
    letters = [chr(byte) if byte in printable else chr(next(rest)) for byte in range(256)]
    space = letters[0x20]
    words = [*letters, "th", "the", f"{space}the", "ab", "abc"]
    model = {
        "type": "BPE",
        "vocab": {word: id_ for id_, word in enumerate(words)},
        "merges": ["t h", "th e", f"{space} the", "a b", "ab c"],
    }
    token = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    file = {
        "added_tokens": [
            {"id": 261, "content": "<end>", "special": True, **token},
            {"id": 262, "content": "<think>", "special": False, **token},
        ],
        "normalizer": None,
        "pre_tokenizer": BYTE_LEVEL,
        "model": model,
    }
    model.update(changes.pop("model", {}))
    file.update(changes)
    return json.dumps(file)


@pytest.fixture
def small(tmp_path: Path) -> Tokenizer:
    file = tmp_path / "tokenizer.json"
    file.write_text(tokenizer_json(), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<end>"}')
    return kizami.load(tmp_path)


def test_a_small_file_is_read(small: Tokenizer) -> None:
    assert small.encode("the the abc").tolist() == [257, 258, 32, 260]
    assert small.encode("<end><think>", allow_special=True).tolist() == [261, 262]
    assert max(small.encode("<end><think>").tolist()) < 261
    assert small.eos_ids == (261,)
    assert dict(small.control_tokens) == {"<end>": 261, "<think>": 262}
    assert small.decode([257, 262, 261], skip_special=True) == "the<think>"
    assert small.pretokenizer == "gpt2"
    assert small.vocab_size == 263


def test_it_survives_saving_pickling_and_copying(small: Tokenizer, tmp_path: Path) -> None:
    small.save(tmp_path / "saved")
    others = [
        kizami.load(tmp_path / "saved"),
        Tokenizer.from_bytes(small.to_bytes()),
        pickle.loads(pickle.dumps(small)),
        copy.deepcopy(small),
    ]
    for other in others:
        assert other == small
        assert hash(other) == hash(small)
        assert other.name == small.name
        assert other.eos_ids == small.eos_ids
        assert np.array_equal(other.encode("the abc <end>"), small.encode("the abc <end>"))


def test_saving_replaces_a_file_at_once(small: Tokenizer, tmp_path: Path) -> None:
    target = tmp_path / "saved"
    target.write_bytes(b"older")
    small.save(target)
    assert kizami.load(target) == small
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []
    with pytest.raises(OSError, match="no/such"):
        small.save(tmp_path / "no" / "such" / "folder")


def test_damage_is_found(small: Tokenizer, tmp_path: Path) -> None:
    whole = small.to_bytes()
    target = tmp_path / "saved"
    for cut in (0, 8, 63, 64, 200, len(whole) // 2, len(whole) - 1):
        target.write_bytes(whole[:cut])
        with pytest.raises((VocabularyError, UnknownFormatError), match="saved"):
            kizami.load(target)
    for at in (8, 12, 20, 70, len(whole) // 2, len(whole) - 9):
        damaged = bytearray(whole)
        damaged[at] ^= 0x40
        target.write_bytes(damaged)
        with pytest.raises(VocabularyError, match="saved"):
            kizami.load(target)


def checksum(data: bytes) -> int:
    """That of an image, written down once more: eight sums of FNV-1a of words, turned."""

    def add(found: int, word: int) -> int:
        found = (found ^ word) * 0x100000001B3 & (1 << 64) - 1
        return (found << 23 | found >> 41) & (1 << 64) - 1

    words = struct.iter_unpack("<Q", data + bytes(64 - len(data) % 64))
    sums = [0xCBF29CE484222325] * 8
    for at, (word,) in enumerate(words):
        sums[at % 8] = add(sums[at % 8], word)
    return functools.reduce(add, sums, len(data))


def test_no_bit_of_a_header_may_be_another(small: Tokenizer) -> None:
    whole = small.to_bytes()
    (described,) = struct.unpack_from("<I", whole, 12)
    image = -(-(64 + described) // 64) * 64
    for bit in range(64 * 8):
        for start in (0, image):
            damaged = bytearray(whole)
            damaged[start + bit // 8] ^= 1 << bit % 8
            with pytest.raises(KizamiError):
                Tokenizer.from_bytes(bytes(damaged))


def test_an_image_that_lies_is_refused_though_its_checksum_is_right(small: Tokenizer) -> None:
    whole = bytearray(small.to_bytes())
    (described,) = struct.unpack_from("<I", whole, 12)
    start = -(-(64 + described) // 64) * 64
    assert struct.unpack_from("<Q", whole, start + 8) == (checksum(whole[start + 16 :]),)

    def section(number: int) -> tuple[int, int]:
        found: tuple[int, int] = struct.unpack_from("<QQ", whole, start + 64 + 16 * number)
        return found

    # The ranks of the single bytes, of which one is wrong: encoding would not come to an end.
    at, size = section(7)
    assert size == 4 * 256
    lie = bytearray(whole)
    struct.pack_into("<I", lie, start + at + 4 * ord("a"), 1 << 19)
    struct.pack_into("<Q", lie, start + 8, checksum(lie[start + 16 :]))
    with pytest.raises(VocabularyError, match="single bytes"):
        Tokenizer.from_bytes(bytes(lie))


def test_a_normalizer_cannot_fill_the_memory(tmp_path: Path) -> None:
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    for count, fits in ((16, True), (64, False)):
        file = tmp_path / "tokenizer.json"
        normalizer = {"type": "Sequence", "normalizers": [step] * count}
        file.write_text(tokenizer_json(normalizer=normalizer), encoding="utf-8")
        tokenizer = kizami.load(file)
        assert tokenizer.encode("the").tolist() == [257]
        if fits:
            assert tokenizer.count("a") == 1 << count
            continue
        with pytest.raises(UnknownFormatError, match="normalizer makes more than"):
            tokenizer.encode("a")


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (b"\xef\xbb\xbf{", "byte order mark"),
        ("{".encode("utf-16"), "UTF-16"),
        (b"<!DOCTYPE html>", "web page"),
        (b"\x80\x04", "none of the files"),
    ],
)
def test_a_file_of_another_kind_says_what_it_is(start: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(start + bytes(100))
    with pytest.raises(UnknownFormatError, match=words) as caught:
        kizami.load(file)
    assert caught.value.source == str(file)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": {"vocab": {"a": 0}, "merges": []}, "added_tokens": []}, "single byte"),
        ({"model": {"vocab": {"a": 0}, "merges": []}}, "would give it 1"),
        ({"model": {"merges": ["t"]}}, "no pair"),
        ({"model": {"merges": ["t q"]}}, "not in the vocabulary"),
        ({"model": {"merges": [["t", "h", "e"]]}}, "pair of tokens"),
        ({"model": {"merges": 7}}, "list of merges"),
        ({"model": {"vocab": []}}, "tokens and ids"),
        ({"model": {"vocab": {"a": -1}}}, "model.vocab"),
        ({"model": {"ignore_merges": "yes"}}, "ignore_merges"),
        ({"added_tokens": [{"id": 261}]}, "added_tokens"),
        ({"added_tokens": 7}, "added_tokens"),
        ({"pre_tokenizer": "a"}, "pre_tokenizer is a string"),
        ({"added_tokens": [{**ADDED, "content": "<" * (5 << 20)}]}, "at most 4194304"),
        ({"added_tokens": [{**ADDED, "content": "<" * 2000}]}, "at most 1024"),
        (
            {
                "normalizer": {"type": "StripAccents"},
                "added_tokens": [{**ADDED, "content": "\u0338", "normalized": True}],
            },
            "nothing once it is normalized",
        ),
    ],
)
def test_a_damaged_tokenizer_json(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text(tokenizer_json(**changes), encoding="utf-8")
    with pytest.raises(VocabularyError, match=words) as caught:
        kizami.load(file)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": {"type": "WordPiece"}}, "WordPiece"),
        ({"model": {"type": "Unigram"}}, "Unigram"),
        ({"model": {"byte_fallback": True}, "pre_tokenizer": None}, "byte fallback"),
        ({"model": {"end_of_word_suffix": "</w>"}}, "suffix"),
        ({"model": {"dropout": 0.1}}, "dropout"),
        ({"pre_tokenizer": None}, "tokenizers"),
        ({"pre_tokenizer": {"type": "Metaspace"}}, "Metaspace"),
        ({"normalizer": {"type": "BertNormalizer"}}, "BertNormalizer"),
        (
            {"normalizer": {"type": "Replace", "pattern": {"Regex": LONG}, "content": ""}},
            "no pattern of more than 65536",
        ),
        (
            {
                "pre_tokenizer": {
                    "type": "Sequence",
                    "pretokenizers": [
                        {
                            "type": "Split",
                            "pattern": {"Regex": LONG},
                            "behavior": "Isolated",
                            "invert": False,
                        },
                        BYTE_LEVEL,
                    ],
                }
            },
            "no pattern of more than 65536",
        ),
    ],
)
def test_other_kinds_are_refused(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text(tokenizer_json(**changes), encoding="utf-8")
    with pytest.raises(UnknownFormatError, match=words):
        kizami.load(file)


def test_broken_json_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text('{\n"model":\n{"type" "BPE"}}', encoding="utf-8")
    with pytest.raises(VocabularyError) as caught:
        kizami.load(file)
    assert caught.value.line == 3


def test_a_pattern_for_ranks(tmp_path: Path) -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [b"ab", b"abc"]
    file = tmp_path / "some.tiktoken"
    lines = (b64encode(t).decode() + f" {rank}\n" for rank, t in enumerate(tokens))
    file.write_text("".join(lines))
    tokenizer = kizami.load(file, pattern=r"\w+|\W", special_tokens={"<end>": 300})
    assert tokenizer.pretokenizer == "general"
    assert tokenizer.encode("abc ab<end>", allow_special=True).tolist() == [257, 32, 256, 300]
    assert tokenizer.vocab_size == 301
    composed = kizami.load(file, pattern=r"\w+|\W", normalizer="NFC")
    assert composed.encode("e\u0301").tolist() == list("é".encode())
    with pytest.raises(UnknownFormatError, match="pattern"):
        kizami.load(file)
    with pytest.raises(UnknownFormatError):
        kizami.load(file, pattern="(")
    with pytest.raises(UnknownFormatError, match="no pattern of more than 65536"):
        kizami.load(file, pattern=LONG)
    with pytest.raises(UnknownFormatError, match="offsets"):
        composed.encode_with_offsets("e\u0301")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pat_str": 7}, "pattern must be str"),
        ({"pat_str": "\ud800"}, "lone surrogate"),
        ({"special_tokens": ["<end>"]}, "special_tokens must map names to ids"),
        ({"special_tokens": 7}, "special_tokens must map names to ids"),
        ({"special_tokens": {"\ud800": 300}}, "lone surrogate"),
        ({"special_tokens": {"<end>": -1}}, "special_tokens must map names to ids"),
        ({"special_tokens": {"<end>": True}}, "special_tokens must map names to ids"),
        ({"normalizer": ["NFC"]}, "normalizer must be one of"),
    ],
)
def test_wrong_values_of_a_rank_file(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    ranks = tmp_path / "some.tiktoken"
    lines = (f"{b64encode(bytes([byte])).decode()} {byte}\n" for byte in range(256))
    ranks.write_text("".join(lines))
    stated = {"pat_str": r"\w+|\W", **changes}
    # As arguments, and in a file beside it.
    given = {"pattern": stated.pop("pat_str"), **stated}
    with pytest.raises((InputTypeError, InvalidValueError), match=words):
        kizami.load(ranks, **given)
    file = tmp_path / "encoding.json"
    file.write_text(json.dumps({"pat_str": r"\w+|\W", **changes}))
    with pytest.raises(VocabularyError, match=words) as caught:
        kizami.load(ranks)
    assert caught.value.path == str(file)


def test_images_of_big_files_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kizami._cache._LEAST_BYTES", 100)
    monkeypatch.setenv("KIZAMI_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "tokenizer.json"
    file.write_text(tokenizer_json(), encoding="utf-8")
    first = kizami.load(file)
    (image,) = (tmp_path / "cache").iterdir()
    before = image.stat().st_mtime_ns
    assert kizami.load(file) == first
    assert kizami.load(file).encode("the abc").tolist() == first.encode("the abc").tolist()
    assert image.stat().st_mtime_ns >= before
    # What is damaged is made again.
    image.write_bytes(b"KIZAMI-T but not really")
    assert kizami.load(file) == first
    assert image.stat().st_size > 10_000
    image.unlink()
    monkeypatch.setenv("KIZAMI_CACHE", "0")
    assert kizami.load(file) == first
    assert list((tmp_path / "cache").iterdir()) == []


def test_no_image_is_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kizami._cache._LEAST_BYTES", 100)
    monkeypatch.setenv("KIZAMI_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "tokenizer.json"
    text = tokenizer_json()
    file.write_text(text, encoding="utf-8")
    times = file.stat()
    assert kizami.load(file).encode("<end>", allow_special=True).tolist() == [261]
    # Another file of the same size, in the same place, with the same times.
    other = text.replace("<end>", "<eos>")
    assert len(other) == len(text)
    with file.open("r+", encoding="utf-8") as same:
        same.write(other)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert file.stat().st_ino == times.st_ino
    assert dict(kizami.load(file).control_tokens) == {"<eos>": 261, "<think>": 262}
    assert len(list((tmp_path / "cache").iterdir())) == 2
    # The image of one under the name of the other.
    first, second = sorted((tmp_path / "cache").iterdir())
    first.write_bytes(second.read_bytes())
    for content in (text, other):
        file.write_text(content, encoding="utf-8")
        assert ("<end>" in kizami.load(file).control_tokens) == (content == text)
    # What is said of a rank file is part of its key.
    ranks = tmp_path / "some.tiktoken"
    lines = (f"{b64encode(bytes([byte])).decode()} {byte}\n" for byte in range(256))
    ranks.write_text("".join(lines))
    for name in ("<a>", "<b>", "<a>"):
        tokenizer = kizami.load(ranks, pattern=r"\w+|\W", special_tokens={name: 300})
        assert list(tokenizer.control_tokens) == [name]


def test_compressed_files_are_kept_and_equal_plain_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kizami._cache._LEAST_BYTES", 100)
    monkeypatch.setenv("KIZAMI_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "plain").mkdir()
    plain = tmp_path / "plain" / "tokenizer.json"
    plain.write_text(tokenizer_json(), encoding="utf-8")
    packed = tmp_path / "plain" / "tokenizer.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    # Damaged, and no matter: it is asked for rank files alone.
    packed.with_name("encoding.json").write_text("{")
    assert kizami.load(packed) == kizami.load(plain) == kizami.load(packed)
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError):
        read_bytes(tmp_path / "none")
    broken = tmp_path / "tokenizer.json.gz"
    broken.write_bytes(b"\x1f\x8b broken")
    with pytest.raises(VocabularyError, match="damaged"):
        kizami.load(broken)


def test_a_part_of_a_pre_token_is_merged_though_the_whole_would_be_a_token(tmp_path: Path) -> None:
    # `ignore_merges`, and a token that no merge makes, as Llama 3 has some.
    file = tmp_path / "tokenizer.json"
    vocab = json.loads(tokenizer_json())["model"]["vocab"]
    letters = list(vocab)[:256]
    one, two = ("".join(letters[byte] for byte in word.encode()) for word in ("中", "文"))
    merges = [(word[:end], word[end]) for word in (one, two) for end in (1, 2)]
    vocab = {word: id_ for id_, word in enumerate([*letters, *map("".join, merges), one + two])}
    model = {"vocab": vocab, "merges": [*map(" ".join, merges)], "ignore_merges": True}
    file.write_text(tokenizer_json(model=model, added_tokens=[]), encoding="utf-8")
    tokenizer = kizami.load(file)
    parts, whole = [vocab[one], vocab[two]], [vocab[one + two]]

    # Whatever was met first, and is remembered.
    for text, ids in [("中文中文", 2 * parts), ("中文", whole), ("中文中文中文", 3 * parts)] * 2:
        assert tokenizer.encode(text).tolist() == ids
    for text, ids in [("中文", whole), ("中文中文", 2 * parts)] * 2:
        assert kizami.load(file).encode(text).tolist() == ids
