"""`kizami.compat.basetenkenizer`, against the package of that name where it is installed."""

from __future__ import annotations

import asyncio
import concurrent.futures
import copy
import gzip
import importlib.metadata
import json
import multiprocessing
import pickle
import re
from pathlib import Path
from typing import Any

import kizami
import numpy as np
import pytest
from kizami import _load
from kizami.compat import basetenkenizer as compat
from kizami.compat.basetenkenizer import Encoding, Tokenizer
from kizami.compat.transformers import is_adopted
from kizami.errors import InvalidIdError, SourceNotFoundError

from tests.shared import shared_path

# Models that the other package loads from the shared files.
MODELS = ["gpt-oss", "llama3", "qwen3", "deepseek_v3"]
# The hub ids of its README, and where the same files are.
README_MODELS = {
    "deepseek-ai/DeepSeek-V3.2": ("tokenizers", "deepseek_v3"),
    "moonshotai/Kimi-K2.7-Code": ("tokenizers", "kimi-k2.5"),
    "moonshotai/Kimi-K3": ("kimi-k3",),
}
SEGMENTS = [("<|open|>", True), ("message", False), (" <|sep|>", False), ("<|sep|>", True)]


@pytest.fixture(scope="module")
def k3() -> Tokenizer:
    return Tokenizer.from_model("kimi-k3")


def json_of(model: str) -> str:
    path = shared_path("data", "tokenizers", model, "tokenizer.json.gz")
    return gzip.decompress(path.read_bytes()).decode()


# Against the original


@pytest.fixture(scope="module", params=MODELS)
def both(request: pytest.FixtureRequest) -> tuple[Tokenizer, Any]:
    original = pytest.importorskip("basetenkenizer")
    data = json_of(request.param)
    return Tokenizer.from_json_str(data), original.Tokenizer.from_json_str(data)


def vectors(model: str) -> list[dict[str, Any]]:
    path = shared_path("vectors", "models", f"{model}.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("model", MODELS)
def test_vectors(model: str) -> None:
    tokenizer = Tokenizer.from_json_str(json_of(model))
    rows = [row for row in vectors(model) if not row.get("tags")]
    texts = [row["text"] for row in rows]

    assert [tokenizer.encode(text).ids for text in texts] == [row["ids_special"] for row in rows]
    assert [e.ids for e in tokenizer.encode_batch(texts)] == [row["ids_special"] for row in rows]


TEXTS = ["", "Hello, world", "naïve 🎉\n\n  x", "中文abc 123", "don't   stop"]


def test_results_are_those_of_the_original(both: tuple[Tokenizer, Any]) -> None:
    ours, theirs = both
    # It counts an added token twice that the vocabulary has as well (B77).
    assert ours.vocab_size == max(id_ for id_, _ in ours.tokenizer.tokens()) + 1
    assert ours.vocab_size <= theirs.vocab_size
    assert (ours.truncation, ours.padding) == (theirs.truncation, theirs.padding)
    name, id_ = next(iter(ours.tokenizer.control_tokens.items()))
    for text in [*TEXTS, f"a{name}b"]:
        for split in (False, True):
            mine, other = (t.encode(text, split_special_tokens=split) for t in both)
            assert mine.ids == other.ids
            assert mine.attention_mask == other.attention_mask
            assert mine.type_ids == other.type_ids
            assert mine.special_tokens_mask == other.special_tokens_mask
            assert (len(mine), repr(mine)) == (len(other), repr(other))
            assert (mine.n_sequences, mine.overflowing) == (other.n_sequences, other.overflowing)
        ids = ours.encode(text).ids
        for skip in (False, True):
            assert ours.decode(ids, skip) == theirs.decode(ids, skip)
            assert ours.decode_batch([ids, []], skip) == theirs.decode_batch([ids, []], skip)
    segments = [(name, True), (name, False), ("two words", False)]
    assert ours.encode_segments(segments).ids == theirs.encode_segments(segments).ids
    mine, other = (t.encode_batch(TEXTS) for t in both)
    assert [e.ids for e in mine] == [e.ids for e in other]
    assert ours.token_to_id(name) == id_


def test_split_takes_every_added_token_for_text() -> None:
    original = pytest.importorskip("basetenkenizer").Tokenizer.from_json_str(json_of("deepseek_v3"))
    ours = Tokenizer.from_json_str(json_of("deepseek_v3"))
    added = json.loads(json_of("deepseek_v3"))["added_tokens"]
    plain = {token["content"]: token["id"] for token in added if not token["special"]}
    assert "<｜fim▁hole｜>" in plain
    for name in ("<｜fim▁hole｜>", "<｜User｜>"):
        assert original.encode(name, split_special_tokens=True).ids == [plain[name]]
        ids = ours.encode(name, split_special_tokens=True).ids
        assert ids == ours.tokenizer.encode(name).tolist()
        assert plain[name] not in ids
        assert ours.encode(name).ids == original.encode(name).ids == [plain[name]]


def test_names_of_tokens(both: tuple[Tokenizer, Any]) -> None:
    ours, theirs = both
    for id_ in [*range(0, ours.vocab_size, 97), *ours.tokenizer.control_tokens.values()]:
        name = theirs.id_to_token(id_)
        assert ours.id_to_token(id_) == name
        if name is not None:
            assert ours.token_to_id(name) == theirs.token_to_id(name) == id_
    for token in ("Ġhello", " hello", "hello", "no such token", "中"):
        assert ours.token_to_id(token) == theirs.token_to_id(token)
    assert ours.id_to_token(ours.vocab_size) is None
    assert ours.decode_tokens(["Ġhello", "world"]) == theirs.decode_tokens(["Ġhello", "world"])


def test_arrays_are_those_of_the_original(both: tuple[Tokenizer, Any]) -> None:
    options = {"attention_mask": True, "type_ids": True, "special_tokens_mask": True}
    mine, other = (t.encode("Hello, world").into_numpy(**options) for t in both)

    assert list(mine) == list(other)
    for name, array in mine.items():
        assert array.dtype == other[name].dtype
        assert array.tolist() == other[name].tolist()


def test_every_name_of_the_original_is_there() -> None:
    original = pytest.importorskip("basetenkenizer")
    tokenizer = Tokenizer.from_model("kimi-k3")
    # Converters of files: `kizami.Tokenizer.to_tokenizer_json` does that.
    converters = {"tiktoken_model_to_tokenizer_json", "tiktoken_to_tokenizer_json"}
    absent = {"post_processor"}
    assert set(original.__all__) - set(compat.__all__) == converters
    missing = {
        name
        for name in dir(original.Tokenizer)
        if not name.startswith("_") and not hasattr(tokenizer, name)
    }
    assert missing <= absent
    for name in dir(original._native.Encoding):
        if not name.startswith("_"):
            assert hasattr(Encoding, name) or name in compat._NOT_IN_ENCODING


def readme_blocks() -> list[str]:
    pytest.importorskip("basetenkenizer")
    text = importlib.metadata.metadata("basetenkenizer").get_payload()
    blocks: list[str] = re.findall(r"```python\n(.*?)```", str(text), re.DOTALL)
    assert len(blocks) >= 4
    return blocks


def test_its_readme_runs_with_the_import_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def download(source: str, *options: Any) -> Path:
        return shared_path("data", *README_MODELS[source])

    monkeypatch.setattr(_load, "download", download)
    namespace: dict[str, Any] = {}
    for block in readme_blocks():
        if "transformers" in block:
            continue
        code = block.replace("from basetenkenizer", "from kizami.compat.basetenkenizer")
        assert code != block or "import" not in block
        exec(code, namespace)

    printed = capsys.readouterr().out
    assert "A very long prompt that is now much faster." in printed
    tokenizer = kizami.load("kimi-k3")
    assert namespace["input_ids"] == tokenizer.encode_segments(namespace["segments"]).tolist()


def test_its_readme_on_transformers_runs_with_the_import_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    (tmp_path / "tokenizer.json").write_text(json_of("gpt-oss"), encoding="utf-8")
    config = {"tokenizer_class": "PreTrainedTokenizerFast"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    load = transformers.AutoTokenizer.from_pretrained

    def from_pretrained(source: str) -> Any:
        assert source == "openai/gpt-oss-120b"
        return load(tmp_path)

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", from_pretrained)
    (block,) = [block for block in readme_blocks() if "patch_transformers()" in block]
    code = block.replace("import basetenk", "import kizami.compat.basetenkenizer as basetenk")
    namespace: dict[str, Any] = {}
    try:
        exec(code, namespace)
    finally:
        compat.unpatch_transformers()

    assert is_adopted(namespace["tokenizer"])
    ids = load(tmp_path)("Hello, world!")["input_ids"]
    assert namespace["tokens"]["input_ids"] == ids


# On its own


def test_segments_and_cuts(k3: Tokenizer) -> None:
    text = "abc" * 9_000
    segments = [("<|sep|>", True), (text, False)]

    assert (
        k3.encode_segments(SEGMENTS).ids
        == kizami.load("kimi-k3").encode_segments(SEGMENTS).tolist()
    )
    with_cuts = k3.encode_segments(segments).ids
    without = k3.encode_segments(segments, tiktoken_safe=False).ids
    assert with_cuts == k3.tokenizer.encode_segments(segments).tolist()
    assert without == k3.tokenizer.encode_segments(segments, legacy_chunks=False).tolist()
    assert with_cuts != without


@pytest.mark.parametrize("form", [[["a", True]], (("a", 1),), [kizami.Segment("a", True)]])
def test_b84_forms_of_segments(k3: Tokenizer, form: Any) -> None:
    assert k3.encode_segments(form).ids == k3.encode_segments(s for s in form).ids == [64]


def test_b85_into_numpy_gives_the_same_twice(k3: Tokenizer) -> None:
    encoding = k3.encode("Hello, world")
    first = encoding.into_numpy()["ids"]
    first[:] = 0

    assert encoding.into_numpy()["ids"].tolist() == encoding.ids == [19180, 11, 2695]
    assert len(encoding) == 3
    assert first.dtype == np.uint32
    assert set(encoding.into_numpy(ids=False, type_ids=True)) == {"type_ids"}


def test_an_encoding_of_ids() -> None:
    encoding = Encoding([1, 2], attention_mask=[1, 0])

    assert (encoding.ids, encoding.attention_mask) == ([1, 2], [1, 0])
    assert pickle.loads(pickle.dumps(encoding)).ids == [1, 2]


def test_async_calls(k3: Tokenizer) -> None:
    async def both() -> tuple[list[Encoding], list[str]]:
        encodings = await k3.async_encode_batch(["a", "<|sep|>"])
        return encodings, await k3.async_decode_batch([e.ids for e in encodings])

    encodings, texts = asyncio.run(both())
    assert [e.ids for e in encodings] == [[64], [163589]]
    assert texts == ["a", "<|sep|>"]


def test_b78_ids_that_are_none(k3: Tokenizer) -> None:
    assert [k3.id_to_token(id_) for id_ in (-1, 163_840, 1 << 40)] == [None] * 3
    with pytest.raises(InvalidIdError):
        k3.decode([163_840])


def test_files(tmp_path: Path, k3: Tokenizer) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(k3.tokenizer.to_tokenizer_json(), encoding="utf-8")
    for tokenizer in (
        Tokenizer.from_file(path),
        Tokenizer(str(path)),
        Tokenizer.from_json_str(path.read_text(encoding="utf-8")),
    ):
        assert tokenizer.encode("<|sep|>Hello, world").ids == [163589, 19180, 11, 2695]
    with pytest.raises(SourceNotFoundError):
        Tokenizer.from_file(tmp_path / "none.json")


def test_copies_and_pickles(k3: Tokenizer) -> None:
    assert copy.copy(k3) is copy.deepcopy(k3) is k3
    assert pickle.loads(pickle.dumps(k3)).tokenizer == k3.tokenizer


def test_the_patch_is_that_of_another_module(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr("kizami.compat.transformers.patch", lambda: calls.append("patch"))
    monkeypatch.setattr("kizami.compat.transformers.unpatch", lambda: calls.append("unpatch"))
    compat.patch_transformers()
    compat.patch_transformers(apply_chat_template=True)
    compat.unpatch_transformers()

    assert calls == ["patch", "patch", "unpatch"]


def test_what_is_missing_says_what_to_use(k3: Tokenizer) -> None:
    for name in compat._NOT_IN_TOKENIZER:
        with pytest.raises(NotImplementedError, match=f"Tokenizer.{name}`: use "):
            getattr(k3, name)(1, x=2)
    for name in compat._NOT_IN_ENCODING:
        with pytest.raises(NotImplementedError, match=f"Encoding.{name}`: use "):
            getattr(Encoding([1]), name)
    for call in (k3.encode, k3.encode_batch, k3.encode_segments):
        with pytest.raises(NotImplementedError, match="add_special_tokens"):
            call([], add_special_tokens=True)  # type: ignore[operator]
    with pytest.raises(AttributeError):
        _ = k3.nonsense
    assert not hasattr(Encoding([1]), "nonsense")
    k3.no_truncation()
    k3.no_padding()


def test_b60_threads_share_a_tokenizer(k3: Tokenizer) -> None:
    text = "Hello <|sep|> naïve 🎉 " * 300
    expected = k3.encode(text).ids
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = [pool.submit(k3.encode, text) for _ in range(64)]
        assert all(one.result().ids == expected for one in found)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_b62_b86_processes(k3: Tokenizer, method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this platform has no {method}")
    texts = ["a" * 60_000, "Hello <|sep|>"]
    expected = [k3.encode(text).ids for text in texts]
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert [e.ids for e in pool.map_async(k3.encode, texts).get(timeout=60)] == expected
