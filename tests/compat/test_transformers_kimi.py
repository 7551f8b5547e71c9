"""The drop-in for transformers on the slow tokenizer of Kimi K3: equal to the class itself."""

from __future__ import annotations

import concurrent.futures
import copy
import gzip
import inspect
import json
import logging
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import kizami
import pytest
from hypothesis import given
from kizami.compat import transformers as drop_in
from kizami.compat.transformers import adopt, is_adopted, patch, unpatch
from kizami.errors import ChatWarning, UnknownFormatError

from tests.compat.kimi_class import (
    OtherCuts,
    OtherPattern,
    OtherRenderer,
    TikTokenTokenizer,
    transformers,
    write_folder,
)
from tests.shared import shared_path
from tests.texts import texts

pytestmark = pytest.mark.filterwarnings("ignore::kizami.errors.ChatWarning")

TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi <|open|> 中文 🎉"},
    {"role": "assistant", "reasoning_content": "hm", "content": "Hello"},
    {"role": "user", "content": [{"type": "text", "text": "more"}]},
]


class Pair(NamedTuple):
    plain: Any
    ours: Any


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("kimi"))


@pytest.fixture(scope="session")
def both(folder: Path) -> Pair:
    plain = TikTokenTokenizer.from_pretrained(folder)
    with patch():
        ours = TikTokenTokenizer.from_pretrained(folder)
    return Pair(plain, ours)


def alike(pair: Pair, call: Callable[[Any], Any]) -> Any:
    """What a call gives for both, which must be the same; an error counts by its class."""

    def tried(tokenizer: Any) -> Any:
        try:
            found = call(tokenizer)
        except Exception as error:
            return type(error)
        return dict(found) if isinstance(found, transformers.BatchEncoding) else found

    plain, ours = tried(pair.plain), tried(pair.ours)
    assert ours == plain
    assert type(ours) is type(plain)
    return ours


def rows(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(shared_path("vectors", "kimi-k3", name), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def test_it_is_of_the_same_class(both: Pair) -> None:
    assert is_adopted(both.ours)
    assert not is_adopted(both.plain)
    assert isinstance(both.ours, TikTokenTokenizer)
    assert (type(both.ours).__name__, type(both.ours).__module__) == (
        TikTokenTokenizer.__name__,
        TikTokenTokenizer.__module__,
    )
    assert both.ours.is_fast is both.plain.is_fast is False
    for name in ("__call__", "encode", "decode", "tokenize", "apply_chat_template"):
        signatures = [inspect.signature(getattr(tokenizer, name)) for tokenizer in both]
        assert signatures[0] == signatures[1]


@given(text=texts())
def test_encode_equals_the_class(both: Pair, text: str) -> None:
    for trusted in (True, False):
        assert both.ours.encode(text, trusted) == both.plain.encode(text, trusted)
    assert both.ours(text)["input_ids"] == both.plain(text)["input_ids"]


@pytest.mark.parametrize(
    "text",
    [
        "a" * 25_001,
        " " * 25_001 + "x",
        "a\x1c" * 3,
        "x" * 24_996 + "<|open|>",
        "a\ud83d",
        "\ude00\ud83d",
    ],
)
def test_cuts_and_surrogates_equal_the_class(both: Pair, text: str) -> None:
    for trusted in (True, False):
        alike(both, lambda t, trusted=trusted: t.encode(text, allow_special_tokens=trusted))


def test_slices_equal_the_class(both: Pair) -> None:
    alike(both, lambda tokenizer: tokenizer.encode("word " * 79_999 + "wo<|open|>rd"))


def test_vectors() -> None:
    plain_rows = list(rows("k3_encode.jsonl.gz"))
    ours = _adopted_only()
    for row in plain_rows:
        assert ours.encode(row["text"], allow_special_tokens=False) == row["ids"]
        assert ours.encode(row["text"]) == row.get("ids_special", row["ids"])


def _adopted_only() -> Any:
    """The tokenizer from the shared files of the model, which have the published names."""
    with patch():
        return TikTokenTokenizer.from_pretrained(shared_path("data", "kimi-k3"))


def test_chat_vectors(both: Pair) -> None:
    seen = 0
    for row in rows("k3_chat.jsonl.gz"):
        options = {"thinking_effort": None, **row["kwargs"]}
        before = copy.deepcopy(row["messages"])
        ids = alike(
            both,
            lambda t, m=row["messages"], o=options: t.apply_chat_template(m, tokenize=True, **o),
        )
        assert row["messages"] == before
        if "ids" in row:
            assert ids == row["ids"]
            seen += 1
    assert seen > 100


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tokenize": False},
        {"return_dict": True},
        {"return_tensors": "np", "return_dict": True},
        {"truncation": True, "max_length": 7},
        {"padding": "max_length", "max_length": 300},
        {"thinking": None},
        {"thinking_effort": "much"},
        {"response_schema": None, "response_format": "json_schema"},
        {"image_prompts": []},
        {"unknown": 1},
        {"tools": ({"a": 1},)},
    ],
    ids=str,
)
def test_options_and_shapes_of_chat(both: Pair, options: dict[str, Any]) -> None:
    def call(tokenizer: Any) -> Any:
        found = tokenizer.apply_chat_template(TALK, **{"tokenize": True, **options})
        return _listed(found)

    alike(both, call)


def _listed(found: Any) -> Any:
    if isinstance(found, transformers.BatchEncoding):
        return {name: _listed(value) for name, value in found.items()}
    return found.tolist() if hasattr(found, "tolist") else found


def test_batches_and_odd_conversations(both: Pair) -> None:
    for conversation in ([TALK, TALK[:2]], [], [1], (TALK[1],), [{"role": "user"}], [{}], "text"):
        alike(both, lambda t, c=conversation: t.apply_chat_template(c, tokenize=True))


def test_options_by_position(both: Pair) -> None:
    alike(both, lambda tokenizer: tokenizer.apply_chat_template(TALK, None, True, False, False))


def test_what_the_format_leaves_out_is_said(both: Pair) -> None:
    with pytest.warns(ChatWarning, match="developer"):
        both.ours.apply_chat_template([{"role": "developer", "content": "x"}], tokenize=True)


@pytest.mark.parametrize(
    "ids", [[], [19180, 11, 2695], [163587, 19180, 163586], (19180, 11), 19180, [163605, 0xFFFF]]
)
def test_decode_equals_the_class(both: Pair, ids: Any) -> None:
    alike(both, lambda tokenizer: tokenizer.decode(ids))
    alike(both, lambda tokenizer: tokenizer.decode(ids, skip_special_tokens=True))
    alike(both, lambda tokenizer: tokenizer.convert_ids_to_tokens(ids))


def test_bad_ids_are_errors_that_can_be_caught(both: Pair) -> None:
    for ids in ([163_840], [-1], [2**32], [2**63], ["a"]):
        with pytest.raises((ValueError, TypeError)):
            both.ours.decode(ids)


def test_calls_equal_the_class(both: Pair) -> None:
    many = ["Hello <|open|>", "", "中文 [EOS] x" * 9]
    for options in ({}, {"padding": True}, {"truncation": True, "max_length": 3}):
        alike(both, lambda tokenizer, o=options: tokenizer(many, **o))
    alike(both, lambda tokenizer: tokenizer("one", "two"))
    alike(both, lambda tokenizer: tokenizer.tokenize("Hello <|open|> 中文"))
    alike(both, lambda tokenizer: tokenizer.batch_decode([[19180], [163587]]))


def test_names_and_ids(both: Pair) -> None:
    for name in ("[PAD]", "<|media_pad|>", "<|reserved_token_163700|>", "Ġworld"):
        alike(both, lambda tokenizer, n=name: tokenizer.convert_tokens_to_ids(n))
    assert both.ours.convert_tokens_to_ids("[PAD]") == 163839
    assert both.ours.encode("<|media_pad|>") == [163605]
    assert both.ours.encode("<|reserved_token_163700|>") == [163700]
    assert both.ours.decode([163700]) == "<|reserved_token_163700|>"
    assert len(both.ours.encode("<think>")) == 3
    assert len(both.ours) == len(both.plain)
    assert both.ours.get_vocab() == both.plain.get_vocab()


def test_text_that_is_not_trusted(both: Pair) -> None:
    ids = both.ours("x [EOS] y", split_special_tokens=True)["input_ids"]

    assert ids == both.plain.encode("x [EOS] y", allow_special_tokens=False)
    assert max(ids) < 163_584


def test_add_special_tokens_gives_no_warning(both: Pair, caplog: pytest.LogCaptureFixture) -> None:
    expected = both.plain.encode("x [EOS]", add_special_tokens=False)
    logging.getLogger("transformers").propagate = True
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        found = both.ours.encode("x [EOS]", add_special_tokens=False)

    assert found == expected
    assert not caplog.records


def test_offsets_are_an_error_and_not_silently_absent(both: Pair) -> None:
    with pytest.raises(NotImplementedError, match="encode_with_offsets"):
        both.ours("x y", return_offsets_mapping=True)


def test_copies_share_the_tables(both: Pair) -> None:
    for other in (copy.copy(both.ours), copy.deepcopy(both.ours)):
        assert is_adopted(other)
        assert other.model is both.ours.model
        assert other.get_vocab() is both.ours.get_vocab()
        assert other.encode("a <|open|>") == both.plain.encode("a <|open|>")
    other = copy.deepcopy(both.ours)
    other.add_tokens(["<a new one>"])
    assert "<a new one>" not in both.ours.added_tokens_encoder


def test_pickles_are_small_and_need_no_patch(both: Pair, tmp_path: Path) -> None:
    data = pickle.dumps(both.ours)
    assert len(data) < 200_000
    other = pickle.loads(data)
    assert is_adopted(other)
    assert type(other) is type(both.ours)
    assert other.get_vocab() == both.plain.get_vocab()
    assert other.model.encode("some text") == both.plain.model.encode("some text")

    (tmp_path / "pickle").write_bytes(data)
    code = (
        f"import pickle, sys; sys.path.insert(0, {str(Path.cwd())!r})\n"
        f"other = pickle.load(open({str(tmp_path / 'pickle')!r}, 'rb'))\n"
        "print(other.encode('x <|open|>'), int(other._chat is not None), sep=', ')"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    expected = [both.plain.encode("x <|open|>"), 1]
    assert json.loads(f"[{run.stdout}]") == expected, run.stderr


def test_saving_and_loading(both: Pair, tmp_path: Path) -> None:
    files = []
    for name, tokenizer in zip(("plain", "ours"), both, strict=True):
        tokenizer.save_pretrained(tmp_path / name)
        files.append({f.name: f.read_bytes() for f in sorted((tmp_path / name).iterdir())})
    assert files[0] == files[1]
    with patch():
        again = TikTokenTokenizer.from_pretrained(tmp_path / "ours")
    assert is_adopted(again)
    assert again.encode("x <|open|>") == both.plain.encode("x <|open|>")


def test_a_class_that_renders_in_another_way_keeps_its_way(folder: Path) -> None:
    plain = OtherRenderer.from_pretrained(folder)
    with patch():
        ours = OtherRenderer.from_pretrained(folder)

    assert is_adopted(ours)
    alike(Pair(plain, ours), lambda tokenizer: tokenizer.apply_chat_template(TALK, tokenize=True))


@pytest.mark.parametrize(
    ("kind", "reason"), [(OtherCuts, "does not cut"), (OtherPattern, "split pattern")]
)
def test_what_is_not_known_stays_as_it_is(folder: Path, kind: Any, reason: str) -> None:
    with patch(), pytest.warns(UserWarning, match=f"does not run on Kizami: .*{reason}"):
        tokenizer = kind.from_pretrained(folder)
    assert type(tokenizer) is kind
    with pytest.raises(UnknownFormatError, match=reason):
        adopt(tokenizer)
    assert type(tokenizer) is kind


def test_adopt_works_in_place(folder: Path, both: Pair) -> None:
    tokenizer = TikTokenTokenizer.from_pretrained(folder)
    assert adopt(tokenizer) is tokenizer
    assert adopt(tokenizer) is tokenizer
    assert is_adopted(tokenizer)
    assert tokenizer.encode("x <|open|>") == both.plain.encode("x <|open|>")


def test_threads_share_one(both: Pair) -> None:
    expected = both.plain.apply_chat_template(TALK, tokenize=True)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(both.ours.apply_chat_template, TALK, tokenize=True) for _ in range(64)]
        assert all(call.result() == expected for call in calls)


def test_names() -> None:
    assert drop_in.__all__ == ["adopt", "is_adopted", "patch", "unpatch"]


def test_patch_and_unpatch() -> None:
    base = transformers.PreTrainedTokenizerBase
    before = base.__dict__["from_pretrained"]
    try:
        patch()
        assert base.__dict__["from_pretrained"] is not before
        with patch():
            pass
        assert base.__dict__["from_pretrained"] is not before
        unpatch()
        assert base.__dict__["from_pretrained"] is before
        unpatch()
        with patch():
            assert base.__dict__["from_pretrained"] is not before
        assert base.__dict__["from_pretrained"] is before
    finally:
        unpatch()


def test_nothing_but_tokenizers_is_adopted() -> None:
    with pytest.raises(TypeError, match="must be one of transformers, not Tokenizer"):
        adopt(kizami.load("kimi-k3"))
    assert not is_adopted(None)


def test_warnings_filter_is_put_back(folder: Path) -> None:
    before = list(warnings.filters)
    adopt(TikTokenTokenizer.from_pretrained(folder))
    assert list(warnings.filters) == before
