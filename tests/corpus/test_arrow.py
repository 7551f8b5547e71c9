"""Arrow arrays and tables: what comes out is what `encode` gives, row for row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kizami.corpus
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kizami.corpus import _arrow, _rows, encode_arrow, tokenize, verify
from kizami.errors import CorpusError, InputTypeError, InvalidValueError

from .conftest import contents, expected, json_lines, make_texts, read_documents

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]


def wanted(tokenizer: kizami.Tokenizer, texts: list[str | None]) -> list[list[int] | None]:
    return [None if text is None else tokenizer.encode(text).tolist() for text in texts]


@given(st.lists(st.none() | st.text(max_size=30), max_size=9), st.sampled_from(TYPES), st.data())
def test_any_array(texts: list[str | None], kind: Any, data: Any) -> None:
    tokenizer = kizami.load("kimi-k3")
    array = pa.array(texts, kind)
    first = data.draw(st.integers(0, len(texts)))
    last = data.draw(st.integers(first, len(texts)))
    for part, rows in ((array, texts), (array.slice(first, last - first), texts[first:last])):
        ids = encode_arrow(part, tokenizer)
        ids.validate(full=True)
        assert ids.to_pylist() == wanted(tokenizer, rows)
        assert ids.null_count == part.null_count
        assert ids.type.value_type == pa.uint32()


def test_chunks_stay_chunks(tokenizer: Any) -> None:
    array = pa.chunked_array([["a b", None], [], ["", "中文"]], pa.string())
    ids = encode_arrow(array, tokenizer)
    assert [len(chunk) for chunk in ids.chunks] == [2, 0, 2]
    assert ids.to_pylist() == wanted(tokenizer, array.to_pylist())
    assert encode_arrow(pa.chunked_array([], pa.string()), tokenizer).to_pylist() == []


def test_many_blocks_give_one_array(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [None, *make_texts(200), None]
    whole = encode_arrow(pa.array(texts), tokenizer)
    monkeypatch.setattr(_arrow, "_BLOCK", 500)
    assert encode_arrow(pa.array(texts), tokenizer) == whole
    assert whole.to_pylist() == wanted(tokenizer, texts)
    offsets = pa.py_buffer(np.int32([0, 600, 601]))
    bad = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"x" * 600 + b"\xff")])
    with pytest.raises(InvalidValueError, match="text 1 is not UTF-8") as error:
        encode_arrow(bad, tokenizer)
    assert error.value.position == 1


def test_what_lies_under_a_null_is_not_read(tokenizer: Any) -> None:
    validity = pa.py_buffer(bytes([0b101]))
    offsets = pa.py_buffer(np.int32([0, 1, 4, 5]))
    array = pa.Array.from_buffers(
        pa.string(), 3, [validity, offsets, pa.py_buffer(b"a\xff\xff\xffb")]
    )
    assert encode_arrow(array, tokenizer).to_pylist() == wanted(tokenizer, ["a", None, "b"])


def test_control_tokens_count_only_in_trusted_text(tokenizer: Any) -> None:
    array = pa.array(["<|open|>"])
    assert encode_arrow(array, tokenizer).to_pylist() == [[27, 91, 4454, 91, 29]]
    assert encode_arrow(array, tokenizer, allow_special=True).to_pylist() == [[163587]]


def test_other_arrays_are_refused(tokenizer: Any) -> None:
    for array in (["a"], pa.array([1]), pa.array([b"a"]), pa.chunked_array([[1]])):
        with pytest.raises(InputTypeError):
            encode_arrow(array, tokenizer)


def write_table(path: Path, texts: list[Any], kind: Any, rows: int) -> None:
    table = pa.table({"id": range(len(texts)), "body": pa.array(texts, kind)})
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows)
        return
    make = pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream
    with make(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".arrows"])
@pytest.mark.parametrize("kind", [*TYPES, pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("shard_tokens", [500, 10**8])
def test_tables_in(
    tokenizer: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
    kind: Any,
    shard_tokens: int,
) -> None:
    monkeypatch.setattr(_rows, "BLOCK", 3000)
    monkeypatch.setattr("kizami.corpus._tables.BLOCK", 3000)
    texts: list[Any] = [None, *make_texts(60)]
    given = texts
    if "binary" in str(kind):
        given = [text and text.encode() for text in texts]
    write_table(tmp_path / f"a{suffix}", given[:40], kind, 17)
    write_table(tmp_path / f"b{suffix}", given[40:], kind, 9)
    report = tokenize(
        tmp_path / f"*{suffix}", tmp_path / "out", tokenizer, field="body", keep_empty=True,
        shard_tokens=shard_tokens,
    )  # fmt: skip
    assert read_documents(tmp_path / "out") == expected(tokenizer, [text or "" for text in texts])
    assert report.rows == report.documents == len(texts)

    report = tokenize(tmp_path / f"*{suffix}", tmp_path / "kept", tokenizer, field="body")
    empty = texts.count("")
    assert report.left_out == {"null": 1, "empty": empty}
    assert read_documents(tmp_path / "kept") == expected(tokenizer, filter(None, texts))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".arrows"])
def test_a_table_is_gone_on_with_at_any_row(tokenizer: Any, tmp_path: Path, suffix: str) -> None:
    from .test_resume import _stop_after

    write_table(tmp_path / f"a{suffix}", make_texts(30), pa.string(), 7)
    options: dict[str, Any] = {"shard_tokens": 200, "field": "body"}
    source = tmp_path / f"a{suffix}"
    report = tokenize(source, tmp_path / "whole", tokenizer, **options)
    assert report.shards > 5
    for stop in range(1, report.shards + 1):
        with pytest.MonkeyPatch.context() as patch:
            _stop_after(patch, stop)
            with pytest.raises(KeyboardInterrupt):
                tokenize(source, tmp_path / f"{stop}", tokenizer, **options)
        tokenize(source, tmp_path / f"{stop}", tokenizer, resume=True, **options)
        assert contents(tmp_path / f"{stop}") == contents(tmp_path / "whole")


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("binary", [True, False])
def test_bytes_that_are_no_utf8(tokenizer: Any, tmp_path: Path, suffix: str, binary: bool) -> None:
    array = pa.array([b"a", b"b\xff", None, b"c"], pa.binary())
    if not binary:
        array = pa.Array.from_buffers(pa.string(), 4, array.buffers())
    source = tmp_path / f"a{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.table({"text": array}), source)
    else:
        batch = pa.record_batch({"text": array})
        with pa.ipc.new_file(source, batch.schema) as writer:
            writer.write_batch(batch)
    with pytest.raises(CorpusError, match="row 2: byte 0xff at offset 1 is not UTF-8"):
        tokenize(source, tmp_path / "stop", tokenizer)
    report = tokenize(source, tmp_path / "skip", tokenizer, broken="skip")
    assert report.left_out == {"not-utf8": 1, "null": 1}
    tokenize(source, tmp_path / "out", tokenizer, errors="replace")
    assert read_documents(tmp_path / "out") == expected(tokenizer, ["a", "b\ufffd", "c"])


def test_tables_that_cannot_be_read(tokenizer: Any, tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", ["x" * 5000] * 20, pa.string(), 5)
    data = (tmp_path / "a.parquet").read_bytes()
    with pytest.raises(CorpusError, match="no column `text`; it has `id`, `body`"):
        tokenize(tmp_path / "a.parquet", tmp_path / "out", tokenizer, overwrite=True)
    with pytest.raises(CorpusError, match=r"a\.parquet: column `id` holds int64, not text"):
        tokenize(tmp_path / "a.parquet", tmp_path / "out", tokenizer, field="id", overwrite=True)
    for number, bad in enumerate((b"", b"PAR1", data[:-20], b"x" * 100)):
        for suffix in ("parquet", "arrow"):
            path = tmp_path / f"bad{number}.{suffix}"
            path.write_bytes(bad)
            with pytest.raises(CorpusError, match="is damaged, or no"):
                tokenize(path, tmp_path / "out", tokenizer, overwrite=True)
    report = tokenize(
        [tmp_path / "bad1.parquet", tmp_path / "a.parquet"], tmp_path / "out", tokenizer,
        field="body", broken="skip", overwrite=True,
    )  # fmt: skip
    assert (len(report.damaged), report.documents) == (1, 20)
    report = tokenize(
        tmp_path / "a.parquet", tmp_path / "long", tokenizer, field="body", broken="skip",
        max_document_bytes=4999,
    )  # fmt: skip
    assert report.left_out == {"too-long": 20}
    with pytest.raises(CorpusError, match="cannot be read from standard input"):
        tokenize("-", tmp_path / "stdin", tokenizer, input_format="parquet")


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_tables_out(
    tokenizer: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr("kizami.corpus._shards._GROUP", 1000)
    texts = make_texts(60)
    (tmp_path / "a.jsonl").write_bytes(json_lines(texts))
    for model, kind in ((tokenizer, pa.uint32()), (small, pa.uint16())):
        out = tmp_path / model.name
        tokenize(tmp_path / "a.jsonl", out, model, format=form, keep_empty=True, shard_tokens=5000)
        rows, groups = [], 0
        for path in sorted(out.glob(f"*.{form}")):
            if form == "parquet":
                file = pq.ParquetFile(path)
                table, groups = file.read(), groups + file.num_row_groups
            else:
                reader = pa.ipc.open_file(path)
                table, groups = reader.read_all(), groups + reader.num_record_batches
            assert table.column("input_ids").type.value_type == kind
            rows += table.column("input_ids").to_pylist()
        assert rows == expected(model, texts)
        assert groups > len(list(out.glob(f"*.{form}")))
        assert verify(out, model).faults == ()


def test_groups_do_not_depend_on_blocks(
    tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kizami.corpus._shards._GROUP", 1000)
    (tmp_path / "a.jsonl").write_bytes(json_lines(make_texts(60)))
    tokenize(tmp_path / "a.jsonl", tmp_path / "whole", tokenizer, format="parquet")
    for size in (100, 2000, 7777):
        monkeypatch.setattr(_rows, "BLOCK", size)
        monkeypatch.setattr("kizami.corpus._run.BLOCK", size)
        tokenize(tmp_path / "a.jsonl", tmp_path / str(size), tokenizer, format="parquet")
        assert contents(tmp_path / str(size)) == contents(tmp_path / "whole")
