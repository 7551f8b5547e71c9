"""`kizami.corpus.tokenize`: the ids of every document, in order, whatever form files have."""

from __future__ import annotations

import gzip
import io
import json
import struct
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import kizami
import kizami.corpus
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kizami import _native
from kizami.corpus import _files, _rows, tokenize
from kizami.errors import CorpusError, InputTypeError, InvalidValueError

from .conftest import TEXTS, contents, expected, json_lines, make_texts, read_documents

EOS = 163585


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files fall into many blocks, so that rows lie across their borders."""
    monkeypatch.setattr(_rows, "BLOCK", 1000)
    monkeypatch.setattr("kizami.corpus._run.BLOCK", 1000)


def test_json_lines(tokenizer: Any, tmp_path: Path) -> None:
    texts = [*TEXTS, *make_texts(200)]
    (tmp_path / "a.jsonl").write_bytes(json_lines(texts))
    report = tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer, eos="[EOS]")

    kept = [text for text in texts if text]
    documents = expected(tokenizer, kept, EOS)
    assert read_documents(tmp_path / "out") == documents
    assert report.documents == len(kept)
    assert report.tokens == sum(map(len, documents))
    assert report.text_bytes == sum(len(text.encode()) for text in kept)
    assert report.left_out == {"empty": len(texts) - len(kept)}
    assert report.rows == report.documents + sum(report.left_out.values())


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("shard_tokens", [1, 500, 10**9])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_ids_do_not_depend_on_blocks_shards_and_compression(
    tokenizer: Any, tmp_path: Path, shard_tokens: int, pack: Any
) -> None:
    texts = make_texts(60)
    (tmp_path / "a.jsonl").write_bytes(pack(json_lines(texts[:30])))
    (tmp_path / "b.jsonl").write_bytes(pack(json_lines(texts[30:], escaped=True)[:-1]))
    report = tokenize(
        tmp_path / "*.jsonl", tmp_path / "out", tokenizer, shard_tokens=shard_tokens,
        keep_empty=True, bos=EOS,
    )  # fmt: skip

    documents = [[EOS, *ids] for ids in expected(tokenizer, texts)]
    assert read_documents(tmp_path / "out") == documents
    sizes = [len(np.fromfile(p, "<u4")) for p in sorted((tmp_path / "out").glob("*.bin"))]
    assert len(sizes) == report.shards
    longest = max(map(len, documents))
    assert all(shard_tokens <= size < shard_tokens + longest for size in sizes[:-1])


def test_a_byte_order_mark_is_no_json(tokenizer: Any, tmp_path: Path) -> None:
    for number, data in enumerate((json_lines(TEXTS), b"", b"\n")):
        (tmp_path / f"{number}.jsonl").write_bytes(b"\xef\xbb\xbf" + data)
    tokenize(tmp_path / "*.jsonl", tmp_path / "out", tokenizer, keep_empty=True, shard_tokens=1)
    assert read_documents(tmp_path / "out") == expected(tokenizer, TEXTS)


def test_members_of_gzip_follow_one_another(tokenizer: Any, tmp_path: Path) -> None:
    data = json_lines(TEXTS[:3])
    packed = gzip.compress(data[:20]) + gzip.compress(b"") + gzip.compress(data[20:]) + bytes(600)
    (tmp_path / "a.jsonl.gz").write_bytes(packed)
    tokenize(tmp_path / "a.jsonl.gz", tmp_path / "out", tokenizer, keep_empty=True)

    assert read_documents(tmp_path / "out") == expected(tokenizer, TEXTS[:3])


@pytest.mark.usefixtures("small_blocks")
def test_zstd(tokenizer: Any, tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    texts = make_texts(50)
    data = json_lines(texts)
    pack = zstandard.ZstdCompressor().compress
    (tmp_path / "a.jsonl.zst").write_bytes(pack(data[:999]) + pack(data[999:]))
    tokenize(tmp_path / "a.jsonl.zst", tmp_path / "out", tokenizer, keep_empty=True)

    assert read_documents(tmp_path / "out") == expected(tokenizer, texts)
    (tmp_path / "b.jsonl.zst").write_bytes(pack(data)[:-3])
    with pytest.raises(CorpusError, match="in the middle"):
        tokenize(tmp_path / "b.jsonl.zst", tmp_path / "b", tokenizer)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("magic", [0x50, 0x5F])
def test_zstd_with_skippable_frames(tokenizer: Any, tmp_path: Path, magic: int) -> None:
    zstandard = pytest.importorskip("zstandard")
    texts = make_texts(50)
    data = json_lines(texts)
    pack = zstandard.ZstdCompressor().compress
    skipped = bytes([magic]) + b"\x2a\x4d\x18\x04\0\0\0\xff\xff\xff\xff"
    packed = skipped + skipped + pack(data[:999]) + skipped + pack(data[999:]) + skipped
    (tmp_path / "a.jsonl.zst").write_bytes(packed)
    tokenize(tmp_path / "a.jsonl.zst", tmp_path / "out", tokenizer, keep_empty=True)

    assert read_documents(tmp_path / "out") == expected(tokenizer, texts)
    (tmp_path / "b.jsonl.zst").write_bytes(packed[:-3])
    with pytest.raises(CorpusError, match="in the middle"):
        tokenize(tmp_path / "b.jsonl.zst", tmp_path / "b", tokenizer)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("separator", ["\n", "<|endoftext|>", "aa", "\u3002"])
@pytest.mark.parametrize("end", [True, False])
def test_text_is_parted_as_str_split_does(
    tokenizer: Any, tmp_path: Path, separator: str, end: bool
) -> None:
    texts = ["x" * 30, "中文" * 700, "", "a", "tail a"] * 5
    text = separator.join(texts) + separator * end
    (tmp_path / "a.txt").write_bytes(text.encode())
    wanted = text.split(separator)
    if not wanted[-1]:
        wanted.pop()
    tokenize(tmp_path / "a.txt", tmp_path / "out", tokenizer, separator=separator, keep_empty=True)

    assert read_documents(tmp_path / "out") == expected(tokenizer, wanted)


@given(st.text("ab", max_size=40), st.sampled_from(["a", "ab", "aba", "aa"]), st.integers(1, 7))
def test_pieces_are_those_of_str_split(text: str, separator: str, size: int) -> None:
    data = text.encode()
    found, rest = [], b""
    for start in range(0, len(data) + size, size):
        block = rest + data[start : start + size]
        last = start >= len(data)
        pieces, ends, _, nexts = _native.pieces(block, separator.encode(), last, False)
        found += [pieces[a:b].decode() for a, b in zip([0, *ends], ends, strict=False)]
        rest = block[nexts[-1] if len(nexts) else 0 :]
    wanted = text.split(separator)
    if not wanted[-1]:
        wanted.pop()
    assert found == wanted


def test_a_file_is_a_document(tokenizer: Any, tmp_path: Path) -> None:
    texts = ["one\ntwo\n", "\ufeffthree", "x" * 5000]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_bytes(text.encode())
    (tmp_path / "3.md").write_bytes(b"")
    report = tokenize(
        [tmp_path / "2.txt", tmp_path / "3.md", str(tmp_path / "[01].txt")],
        tmp_path / "out",
        tokenizer,
    )

    assert read_documents(tmp_path / "out") == expected(tokenizer, [texts[2], *texts[:2]])
    assert report.left_out == {"empty": 1}


def test_standard_input(tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for pack in (bytes, gzip.compress):
        stream = io.TextIOWrapper(io.BytesIO(pack(json_lines(TEXTS))))
        monkeypatch.setattr(sys, "stdin", stream)
        tokenize(
            "-", tmp_path / "out", tokenizer, input_format="jsonl", keep_empty=True, overwrite=True
        )
        assert read_documents(tmp_path / "out") == expected(tokenizer, TEXTS)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["text", "a", "te\u0301xt", ""]), json_values, max_size=3)
        | json_values,
        max_size=5,
    ),
    st.booleans(),
)
def test_lines_are_read_as_json_does(values: list[Any], escaped: bool) -> None:
    lines = [json.dumps(value, ensure_ascii=escaped, separators=(" , ", " : ")) for value in values]
    block = "".join(f"  {line} \r\n" for line in lines).encode("utf-8", "surrogatepass")
    text, ends, kinds, nexts = _native.json_lines(block, "text", False)

    assert nexts.tolist() == np.cumsum([len(f"  {x} \r\n".encode()) for x in lines]).tolist()
    found = [text[a:b].decode() for a, b in zip([0, *ends], ends, strict=False)]
    for value, got, kind in zip(values, found, kinds.tolist(), strict=True):
        reason = _rows.REASONS[kind]
        if not isinstance(value, dict):
            assert reason == "not-object"
        elif "text" not in value:
            assert reason == "no-field"
        elif value["text"] is None:
            assert reason == "null"
        elif not isinstance(value["text"], str):
            assert reason == "not-text"
        else:
            assert (reason, got) == ("text", value["text"])


@given(st.text(st.characters() | st.characters(categories=["Cs"]), max_size=20))
@settings(max_examples=300)
def test_lone_surrogates_have_the_ids_of_a_python_string(text: str) -> None:
    tokenizer = kizami.load("kimi-k3")
    line = json.dumps({"text": text}).encode()
    found, ends, kinds, _ = _native.json_lines(line, "text", False)

    assert kinds.tolist() == [0]
    ids, _ = tokenizer._native.encode_utf8(found, np.zeros(1, np.int64), ends, False, [], [])
    assert ids.tolist() == tokenizer.encode(json.loads(line)["text"]).tolist()


def test_control_tokens_count_only_in_trusted_text(tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("<|open|>Hi[EOS]")
    tokenize(tmp_path / "a.txt", tmp_path / "out", tokenizer)
    assert max(read_documents(tmp_path / "out")[0]) < 163584

    tokenize(tmp_path / "a.txt", tmp_path / "trusted", tokenizer, allow_special=True)
    assert read_documents(tmp_path / "trusted") == [[163587, 18699, EOS]]


@pytest.mark.usefixtures("small_blocks")
def test_two_bytes_an_id_where_they_are_enough(small: Any, tmp_path: Path) -> None:
    texts = make_texts(20)
    (tmp_path / "a.jsonl").write_bytes(json_lines(texts))
    tokenize(tmp_path / "a.jsonl", tmp_path / "out", small, keep_empty=True, eos="<end>")

    assert read_documents(tmp_path / "out", "<u2") == expected(small, texts, 258)


def test_npy(tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(json_lines(TEXTS))
    tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer, format="npy", keep_empty=True)
    ids = np.load(tmp_path / "out" / "shard-00000.npy", mmap_mode="r")
    offsets = np.load(tmp_path / "out" / "shard-00000.offsets.npy")

    assert (ids.dtype, offsets.dtype) == (np.uint32, np.int64)
    found = [ids[a:b].tolist() for a, b in pairwise(offsets)]
    assert found == expected(tokenizer, TEXTS)


@pytest.mark.parametrize("two_bytes", [False, True])
def test_megatron_index_is_the_published_layout(
    tokenizer: Any, small: Any, tmp_path: Path, two_bytes: bool
) -> None:
    model = small if two_bytes else tokenizer
    texts = [text for text in TEXTS if text]
    (tmp_path / "a.jsonl").write_bytes(json_lines(texts))
    tokenize(tmp_path / "a.jsonl", tmp_path / "out", model, format="megatron")
    data = (tmp_path / "out" / "shard-00000.idx").read_bytes()
    ids = (tmp_path / "out" / "shard-00000.bin").read_bytes()
    lengths = list(map(len, expected(model, texts)))
    count, size = len(texts), 2 if two_bytes else 4

    head = b"MMIDIDX\x00\x00" + struct.pack("<Q", 1) + bytes([8 if two_bytes else 4])
    head += struct.pack("<Q", count) + struct.pack("<Q", count + 1)
    pointers = [sum(lengths[:n]) * size for n in range(count)]
    assert data == (
        head
        + struct.pack(f"<{count}i", *lengths)
        + struct.pack(f"<{count}q", *pointers)
        + struct.pack(f"<{count + 1}q", *range(count + 1))
    )
    for pointer, length, wanted in zip(pointers, lengths, expected(model, texts), strict=True):
        form = f"<{length}{'H' if two_bytes else 'i'}"
        assert list(struct.unpack_from(form, ids, pointer)) == wanted


def test_text_comes_back(tokenizer: Any, tmp_path: Path) -> None:
    texts = [text for text in make_texts(50) if text]
    (tmp_path / "a.jsonl").write_bytes(json_lines(texts))
    tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer)

    assert tokenizer.decode_batch(read_documents(tmp_path / "out")) == texts


def test_threads_do_not_change_the_output(tokenizer: Any, tmp_path: Path, threads: None) -> None:
    (tmp_path / "a.jsonl").write_bytes(json_lines(make_texts(300)))
    for number in (1, 2, 5):
        kizami.set_num_threads(number)
        tokenize(tmp_path / "a.jsonl", tmp_path / str(number), tokenizer, shard_tokens=5000)
    assert contents(tmp_path / "1") == contents(tmp_path / "2") == contents(tmp_path / "5")


@pytest.mark.parametrize("form", ["bin", "npy", "megatron"])
def test_writing_early_changes_nothing(
    tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    (tmp_path / "a.jsonl").write_bytes(json_lines(make_texts(60)))
    options: dict[str, Any] = {"shard_tokens": 3000, "format": form}
    tokenize(tmp_path / "a.jsonl", tmp_path / "whole", tokenizer, **options)
    begun: list[int] = []
    real = _files.File._begin_writing

    def begin(self: _files.File) -> None:
        begun.append(self._written - self._begun)
        real(self)

    monkeypatch.setattr(_files.File, "_begin_writing", begin)
    monkeypatch.setattr(_files, "_BEGIN", 500)
    monkeypatch.setattr(_rows, "BLOCK", 1000)
    monkeypatch.setattr("kizami.corpus._run.BLOCK", 1000)
    tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer, **options)
    assert len(begun) > 10
    assert min(begun) >= 500
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_progress_ends_with_everything(tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(json_lines(TEXTS)))
    (tmp_path / "b.jsonl").write_bytes(json_lines(TEXTS))
    seen: list[kizami.corpus.Progress] = []
    report = tokenize(
        [tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl"], tmp_path / "out", tokenizer,
        progress=seen.append,
    )  # fmt: skip
    assert seen[-1].read == seen[-1].total
    assert (seen[-1].documents, seen[-1].tokens) == (report.documents, report.tokens)


def test_an_error_of_the_callers_progress_comes_out(tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")

    def fail(_: object) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tokenize(tmp_path / "a.txt", tmp_path / "out", tokenizer, progress=fail)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["manifest.json"]


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "format": ({"format": "csv"}, InvalidValueError, "format must be one of"),
    "input format": ({"input_format": "csv"}, InvalidValueError, "input_format must be one of"),
    "errors": ({"errors": "ignore"}, InvalidValueError, "errors must be one of"),
    "broken": ({"broken": True}, InvalidValueError, "broken must be one of"),
    "shards": ({"shard_tokens": 0}, InvalidValueError, "at least 1"),
    "shards float": ({"shard_tokens": 1e6}, InputTypeError, "must be an int"),
    "longest": ({"max_document_bytes": 1 << 31}, InvalidValueError, "at most"),
    "separator": ({"separator": ""}, InvalidValueError, "must not be empty"),
    "field": ({"field": None}, InputTypeError, "field must be str"),
    "eos name": ({"eos": "<eos>"}, InvalidValueError, "no control token"),
    "eos type": ({"eos": 1.5}, InputTypeError, "an id or a name"),
    "eos id": ({"eos": 163840}, ValueError, "outside the vocabulary"),
    "special": ({"allow_special": "false"}, InputTypeError, "True or False"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_wrong_arguments(
    tokenizer: Any, tmp_path: Path, case: tuple[dict[str, Any], type[Exception], str]
) -> None:
    options, error, message = case
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(error, match=message):
        tokenize(tmp_path / "a.txt", tmp_path / "out", tokenizer, **options)
    assert not (tmp_path / "out").exists()


def test_wrong_buffers_are_refused(tokenizer: Any) -> None:
    native = tokenizer._native
    for start, end in ((0, 4), (2, 1), (-1, 2)):
        with pytest.raises(InvalidValueError, match=r"text 0 is from"):
            native.encode_utf8(b"abc", np.array([start]), np.array([end]), False, [], [])
    with pytest.raises(InvalidValueError, match="read-only"):
        native.encode_utf8(bytearray(b"abc"), np.array([0]), np.array([1]), False, [], [])
    with pytest.raises(InvalidValueError, match="as many"):
        native.encode_utf8(b"abc", np.array([0]), np.array([1, 2]), False, [], [])
    with pytest.raises(InvalidValueError, match="text 1 is not UTF-8") as caught:
        native.encode_utf8("aé".encode(), np.array([0, 1]), np.array([1, 2]), False, [], [])
    assert caught.value.position == 1
