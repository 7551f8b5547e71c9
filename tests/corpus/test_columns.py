"""Tables of texts: a row is a document, or says why it is none; ids are those of runs on files."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import kizami
import kizami.corpus
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kizami.corpus import Totals, _columns, _tables, tokenize
from kizami.corpus._columns import Columns, add, totals_of
from kizami.errors import CorpusError, InputTypeError, InvalidValueError, MissingExtraError

from .conftest import TEXTS, expected, make_texts, read_documents

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

EOS = 163585
DEFAULTS: dict[str, Any] = {
    "field": "text",
    "column": "input_ids",
    "left_out": "left_out",
    "bos": None,
    "eos": None,
    "allow_special": False,
    "errors": "strict",
    "broken": "stop",
    "keep_empty": False,
    "max_document_bytes": 64 << 20,
}


def columns(tokenizer: Any, **options: Any) -> Columns:
    return Columns.new(tokenizer, **{**DEFAULTS, **options})


@given(
    st.lists(st.lists(st.none() | st.text(max_size=20), max_size=6), max_size=4),
    st.sampled_from([pa.string(), pa.large_string(), pa.string_view(), pa.large_binary()]),
    st.booleans(),
    st.booleans(),
)
def test_any_column(chunks: list[Any], kind: Any, keep_empty: bool, eos: bool) -> None:
    tokenizer = kizami.load("kimi-k3")
    texts = [text for chunk in chunks for text in chunk]
    if pa.types.is_large_binary(kind):
        chunks = [[text and text.encode() for text in chunk] for chunk in chunks]
    table = pa.table({"n": range(len(texts)), "text": pa.chunked_array(chunks, kind)})
    found = columns(tokenizer, keep_empty=keep_empty, eos=EOS if eos else None).add_to(table)

    found.validate(full=True)
    assert found.column_names == ["n", "text", "input_ids", "left_out"]
    assert found.select(["n", "text"]) == table
    assert found["input_ids"].type == pa.list_(pa.uint32())
    after = [EOS] if eos else []
    ids, reasons = found["input_ids"].to_pylist(), found["left_out"].to_pylist()
    for text, got, reason in zip(texts, ids, reasons, strict=True):
        if text or keep_empty:
            assert (got, reason) == (tokenizer.encode(text or "").tolist() + after, None)
        else:
            assert (got, reason) == (None, "null" if text is None else "empty")
    totals = totals_of(found, "input_ids", "left_out")
    assert totals.rows == len(texts) == totals.documents + sum(totals.left_out.values())
    assert totals.tokens == sum(len(got) for got in ids if got is not None)


@pytest.mark.parametrize("keep_empty", [False, True])
def test_documents_are_those_of_a_run_on_files(
    tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep_empty: bool
) -> None:
    """The same rows, through a file and through a table that falls into many pieces."""
    monkeypatch.setattr(_tables, "BLOCK", 3000)
    rows = [text.encode() for text in (*TEXTS, *make_texts(60))]
    rows[3:3] = [None, b"a\xffb", b"x" * 20000]
    pq.write_table(pa.table({"body": pa.array(rows, pa.binary())}), tmp_path / "a.parquet")
    options: dict[str, Any] = {
        "field": "body", "bos": "[BOS]", "eos": EOS, "broken": "skip", "keep_empty": keep_empty,
        "max_document_bytes": 19999,
    }  # fmt: skip
    report = tokenize(tmp_path / "a.parquet", tmp_path / "out", tokenizer, **options)
    found = columns(tokenizer, **options).add_to(pq.read_table(tmp_path / "a.parquet"))

    assert found["left_out"].to_pylist()[4:6] == ["not-utf8", "too-long"]
    ids = [row for row in found["input_ids"].to_pylist() if row is not None]
    assert ids == read_documents(tmp_path / "out")
    totals = totals_of(found, "input_ids", "left_out")
    assert totals == Totals(report.rows, report.documents, report.tokens, totals.left_out)
    assert totals.left_out == report.left_out


def test_bytes_that_are_no_utf8(tokenizer: Any) -> None:
    table = pa.table({"text": pa.array([b"a", b"b\xff"], pa.binary())})
    message = "a row is broken: byte 0xff at offset 1 is not UTF-8; pass errors='replace', or"
    with pytest.raises(CorpusError, match=message) as error:
        columns(tokenizer).add_to(table)
    assert error.value.reason == "not-utf8"
    found = columns(tokenizer, errors="replace").add_to(table)
    assert found["input_ids"].to_pylist() == expected(tokenizer, ["a", "b\ufffd"])


def test_control_tokens_count_only_in_trusted_text(tokenizer: Any) -> None:
    table = pa.table({"text": ["<|open|>"]})
    assert columns(tokenizer).add_to(table)["input_ids"].to_pylist() == [[27, 91, 4454, 91, 29]]
    trusted = columns(tokenizer, allow_special=True).add_to(table)
    assert trusted["input_ids"].to_pylist() == [[163587]]


def test_columns_that_are_not_there_or_there_already(tokenizer: Any) -> None:
    with pytest.raises(CorpusError, match="no column `text`; there is `a`, `b`; choose with field"):
        columns(tokenizer).add_to(pa.table({"a": ["x"], "b": [1]}))
    with pytest.raises(CorpusError, match="column `b` holds int64, not text; choose another"):
        columns(tokenizer, field="b").add_to(pa.table({"a": ["x"], "b": [1]}))
    table = columns(tokenizer).add_to(pa.table({"text": ["x"]}))
    with pytest.raises(InvalidValueError, match=r"a column `input_ids` already; .* with column"):
        columns(tokenizer).add_to(table)
    with pytest.raises(InvalidValueError, match=r"a column `left_out` already; .* with left_out"):
        columns(tokenizer, column="more").add_to(table)
    both = columns(tokenizer, column="more", left_out="why", eos=EOS).add_to(table)
    assert both["more"].to_pylist() == [[*both["input_ids"].to_pylist()[0], EOS]]
    with pytest.raises(CorpusError, match="no column `ids`; give what tokenize returned"):
        totals_of(table, "ids", "left_out")


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "errors": ({"errors": "ignore"}, InvalidValueError, "errors must be one of"),
    "broken": ({"broken": True}, InvalidValueError, "broken must be one of"),
    "longest": ({"max_document_bytes": 1 << 31}, InvalidValueError, "at most"),
    "field": ({"field": None}, InputTypeError, "field must be str"),
    "column": ({"column": 1}, InputTypeError, "column must be str"),
    "names": ({"column": "text"}, InvalidValueError, "three different names"),
    "eos": ({"eos": "<eos>"}, InvalidValueError, "no control token"),
    "special": ({"allow_special": "false"}, InputTypeError, "True or False"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_wrong_arguments(tokenizer: Any, case: tuple[dict[str, Any], Any, str]) -> None:
    options, error, message = case
    with pytest.raises(error, match=message):
        columns(tokenizer, **options)


def test_a_process_loads_a_tokenizer_once(
    tokenizer: Any, small: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each task unpickles its own arguments."""
    monkeypatch.setattr(_columns, "_held", {})
    pickled = [pickle.dumps(columns(model)) for model in (tokenizer, small)]
    copies = [[pickle.loads(data) for _ in range(5)] for data in pickled]
    for model, mine in zip((tokenizer, small), copies, strict=True):
        assert mine[0].tokenizer == model
        assert len({id(copy.tokenizer) for copy in mine}) == 1
        texts = pa.chunked_array([["a b", None]])
        assert mine[0].encode(texts) == columns(model).encode(texts)
    assert len(_columns._held) == 2
    monkeypatch.setattr(_columns, "_MOST_HELD", 2)
    for data in (pickle.dumps(columns(kizami.load("kimi-k2"))), *pickled):
        pickle.loads(data)
        assert len(_columns._held) == 2


def test_totals_add_up() -> None:
    parts = [
        Totals(3, 1, 10, {"null": 2}),
        Totals(0, 0, 0, {}),
        Totals(2, 0, 0, {"a": 1, "null": 1}),
    ]
    assert add(parts) == Totals(5, 1, 10, {"a": 1, "null": 3})
    assert add([]) == Totals(0, 0, 0, {})
    nothing = pa.table({"input_ids": pa.array([], pa.list_(pa.uint32())), "left_out": pa.nulls(0)})
    assert totals_of(nothing, "input_ids", "left_out") == Totals(0, 0, 0, {})


@pytest.mark.parametrize("name", ["ray", "dask"])
def test_the_error_names_the_extra(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    import importlib

    module = importlib.import_module(f"kizami.corpus.{name}")
    for known in [known for known in sys.modules if known.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, known)
    monkeypatch.setitem(sys.modules, name, None)
    for call in (lambda: module.tokenize(None, tokenizer), lambda: module.totals(None)):
        with pytest.raises(MissingExtraError, match=rf"pip install 'kizami\[{name}\]'") as error:
            call()
        assert error.value.extra == name


def test_many_rows_of_one_piece(tokenizer: Any) -> None:
    """Offsets go on over rows that are no documents."""
    texts = [None, "a", "", "b c", None] * 1000
    found = columns(tokenizer).add_to(pa.table({"text": texts}))
    one = {text: tokenizer.encode(text).tolist() for text in ("a", "b c")}
    assert found["input_ids"].to_pylist() == [one.get(text) for text in texts]  # type: ignore[arg-type]
    assert np.asarray(found["input_ids"].is_null()).sum() == 3000
