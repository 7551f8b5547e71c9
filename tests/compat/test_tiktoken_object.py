"""`kizami.compat.tiktoken`: what an encoding is, where it comes from, and where it goes."""

from __future__ import annotations

import copy
import importlib
import inspect
import multiprocessing
import pickle
import subprocess
import sys
from typing import Any

import kizami
import numpy as np
import pytest
from kizami.compat import tiktoken as compat
from kizami.compat.tiktoken import Encoding, _registry
from kizami.errors import SourceNotFoundError, UnknownFormatError, VocabularyError

from tests.compat.encodings import NAMES, Pair, outcome, pair, tiktoken
from tests.shared import shared_path

# Of tiktoken.Encoding, what is not here, and why.
ABSENT = {"_core_bpe": "tiktoken's own engine; the methods of Encoding have the same names"}


@pytest.fixture(params=NAMES)
def both(request: pytest.FixtureRequest) -> Pair:
    return pair(request.param)


def dunder(name: str) -> bool:
    return name.startswith("__")


# Names


def test_every_name_of_tiktoken_is_there() -> None:
    both = pair("gaps")
    missing = {n for n in dir(both.theirs) if not dunder(n) and not hasattr(both.ours, n)}

    assert missing == set(ABSENT)
    with pytest.raises(AttributeError, match="same names"):
        _ = both.ours._core_bpe


def test_signatures_are_those_of_tiktoken() -> None:
    extra = {"tokenizer"}
    for name, theirs in vars(tiktoken.Encoding).items():
        if dunder(name) or not inspect.isfunction(theirs):
            continue
        ours = inspect.signature(getattr(Encoding, name)).parameters.values()
        expected = inspect.signature(theirs).parameters.values()
        assert [(p.name, p.kind) for p in ours if p.name not in extra] == [
            (p.name, p.kind) for p in expected
        ], name
        for mine, other in zip(ours, expected, strict=True):
            assert mine.default == other.default, (name, mine.name)


def test_functions_of_the_module() -> None:
    public = {name for name in dir(tiktoken) if not name.startswith("_")}
    modules = {name for name in public if inspect.ismodule(getattr(tiktoken, name))}

    assert public - modules <= set(compat.__all__)


def test_modules_are_where_tiktoken_has_them() -> None:
    for name in ("core", "load", "model", "registry"):
        there = importlib.import_module(f"tiktoken.{name}")
        here = importlib.import_module(f"kizami.compat.tiktoken.{name}")
        assert getattr(compat, name) is here
        assert all(hasattr(there, public) for public in here.__all__)
    assert compat.core.Encoding is Encoding
    for name in compat.registry.__all__:
        assert getattr(compat.registry, name) is getattr(compat, name)
    for name in ("encoding_for_model", "encoding_name_for_model"):
        assert getattr(compat.model, name) is getattr(compat, name)


def test_tables_of_models_are_those_of_tiktoken() -> None:
    there = importlib.import_module("tiktoken.model")
    assert there.MODEL_TO_ENCODING == compat.model.MODEL_TO_ENCODING
    assert there.MODEL_PREFIX_TO_ENCODING == compat.model.MODEL_PREFIX_TO_ENCODING


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("core", "raise_disallowed_special_token"),
        ("model", "get_encoding"),
        ("registry", "ENCODING_CONSTRUCTORS"),
        ("registry", "ENCODINGS"),
    ],
)
def test_names_of_modules_that_are_not_there(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(f"tiktoken.{module}"), name)
    ours = importlib.import_module(f"kizami.compat.tiktoken.{module}")
    with pytest.raises(AttributeError, match=rf"has no {name}: .* from tiktoken\.{module}"):
        getattr(ours, name)


# Attributes


def test_attributes(both: Pair) -> None:
    ours, theirs = both.ours, both.theirs
    for name in (
        "name",
        "max_token_value",
        "n_vocab",
        "special_tokens_set",
        "_pat_str",
        "_special_tokens",
        "_mergeable_ranks",
        "_special_token_values",
    ):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert repr(ours) == repr(theirs)
    assert ours.token_byte_values() == theirs.token_byte_values()
    assert outcome(lambda: ours.eot_token) == outcome(lambda: theirs.eot_token)
    assert ours == ours
    assert ours != copy.copy(ours)
    assert hash(ours) == hash(ours)


def test_special_ids(both: Pair) -> None:
    for id_ in [0, 300, both.ours.n_vocab, *both.parts["special_tokens"].values()]:
        assert both.ours.is_special_token(id_) == both.theirs.is_special_token(id_)
    for value in (np.int64(5), "a", None):
        for encoding in (both.ours, both.theirs):
            with pytest.raises(AssertionError):
                encoding.is_special_token(value)


def test_lists_are_the_callers_own(both: Pair) -> None:
    both.ours.token_byte_values().clear()

    assert both.ours.token_byte_values()


# From its parts


def test_the_small_vocabulary_has_what_it_is_for() -> None:
    native = pair("gaps").ours.tokenizer._native

    assert not native.whole_is_merged
    assert native.token_bytes(302) is None


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        pytest.param({"pat_str": "("}, ValueError, id="bad-pattern"),
        pytest.param({"pat_str": 5}, TypeError, id="no-pattern"),
        pytest.param({"mergeable_ranks": {}}, ValueError, id="no-ranks"),
        pytest.param({"mergeable_ranks": {"a": 1}}, TypeError, id="ranks-of-str"),
        pytest.param({"mergeable_ranks": None}, Exception, id="ranks-none"),
        pytest.param({"special_tokens": {"a": "b"}}, TypeError, id="special-id"),
        pytest.param({"special_tokens": None}, Exception, id="special-none"),
        pytest.param({"explicit_n_vocab": 5}, AssertionError, id="n-vocab"),
    ],
)
def test_parts_that_are_wrong(change: dict[str, Any], kind: type[Exception]) -> None:
    parts = {**pair("gaps").parts, **change}
    for make in (Encoding, tiktoken.Encoding):
        with pytest.raises(kind):
            make("x", **parts)


def test_explicit_n_vocab_is_checked() -> None:
    parts = pair("kimi-k3").parts
    for make in (Encoding, tiktoken.Encoding):
        assert make("x", **parts, explicit_n_vocab=163_840).n_vocab == 163_840
        with pytest.raises(AssertionError):
            make("x", **parts, explicit_n_vocab=163_841)


@pytest.mark.parametrize("special_tokens", [{"": 9_500}, {"<a>": 5}, {"<a>": 1 << 21}])
def test_vocabularies_that_tiktoken_takes_and_kizami_refuses(
    special_tokens: dict[str, int],
) -> None:
    parts = {**pair("gaps").parts, "special_tokens": special_tokens}
    tiktoken.Encoding("x", **parts)
    with pytest.raises(ValueError, match=r"token|name|id"):
        Encoding("x", **parts)


def test_without_special_tokens() -> None:
    parts = {**pair("gaps").parts, "special_tokens": {}}
    ours, theirs = Encoding("x", **parts), tiktoken.Encoding("x", **parts)
    for text in ("<|endoftext|>", "hello", ""):
        assert ours.encode(text) == theirs.encode(text)
        assert ours.encode(text, allowed_special="all") == theirs.encode(
            text, allowed_special="all"
        )
    assert ours.special_tokens_set == set()
    with pytest.raises(KeyError):
        _ = ours.eot_token


def test_a_pattern_that_leaves_text_out() -> None:
    parts = {**pair("gaps").parts, "pat_str": r"\w+"}
    ours, theirs = Encoding("x", **parts), tiktoken.Encoding("x", **parts)
    for text in ("hello, big world! ", "!!", "a <|end|> b"):
        assert ours.encode_ordinary(text) == theirs.encode_ordinary(text)
        allowed = ours.encode_with_unstable(text, allowed_special="all")
        expected = theirs.encode_with_unstable(text, allowed_special="all")
        assert (allowed[0], sorted(allowed[1])) == (expected[0], sorted(expected[1]))


def test_from_tiktoken(both: Pair) -> None:
    encoding = Encoding.from_tiktoken(both.theirs)

    assert encoding.name == both.theirs.name
    assert encoding._mergeable_ranks is both.theirs._mergeable_ranks
    assert encoding.encode("hello world") == both.theirs.encode("hello world")
    assert encoding.tokenizer == both.ours.tokenizer
    with pytest.raises(TypeError, match=r"tiktoken\.Encoding"):
        Encoding.from_tiktoken("cl100k_base")


def test_to_tiktoken_and_back(both: Pair) -> None:
    ours = both.ours
    again = tiktoken.Encoding(
        ours.name,
        pat_str=ours._pat_str,
        mergeable_ranks=Encoding.from_tokenizer(ours.tokenizer)._mergeable_ranks,
        special_tokens=ours._special_tokens,
    )
    assert again._mergeable_ranks == both.theirs._mergeable_ranks
    assert again.encode("hello 🎉") == ours.encode("hello 🎉")


def test_from_tokenizer(tokenizer: kizami.Tokenizer) -> None:
    encoding = Encoding.from_tokenizer(tokenizer, "mine")

    assert encoding.name == "mine"
    assert encoding.tokenizer is tokenizer
    assert Encoding.from_tokenizer(tokenizer).name == "kimi-k3"
    assert encoding._special_tokens == dict(tokenizer.control_tokens)
    assert encoding._mergeable_ranks == pair("kimi-k3").theirs._mergeable_ranks
    assert encoding._pat_str == pair("kimi-k3").theirs._pat_str
    with pytest.raises(TypeError, match=r"kizami\.Tokenizer"):
        Encoding.from_tokenizer(encoding)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_a_tokenizer_json_of_the_same_model(name: str) -> None:
    path = shared_path("data", "tokenizers", name, "tokenizer.json.gz")
    encoding = Encoding.from_tokenizer(kizami.load(path))
    again = tiktoken.Encoding(
        name,
        pat_str=encoding._pat_str,
        mergeable_ranks=encoding._mergeable_ranks,
        special_tokens=encoding._special_tokens,
    )
    text = "Hello, naïve  world!\n\n 12345 don't 中文 <|endoftext|> " * 3
    assert encoding._mergeable_ranks == pair(name).theirs._mergeable_ranks
    expected = pair(name).theirs.encode(text, allowed_special="all")
    assert encoding.encode(text, allowed_special="all") == expected
    assert again.encode(text, allowed_special="all") == expected


@pytest.mark.parametrize("name", ["qwen3", "deepseek_v3"])
def test_what_tiktoken_cannot_say_is_refused(name: str) -> None:
    tokenizer = kizami.load(shared_path("data", "tokenizers", name))
    with pytest.raises(UnknownFormatError, match="cannot be a tiktoken encoding"):
        Encoding.from_tokenizer(tokenizer)


# Copies


def test_b86_pickles(both: Pair) -> None:
    data = pickle.dumps(both.ours)
    again = pickle.loads(data)

    assert type(again) is Encoding
    assert again.name == both.ours.name
    assert again._special_tokens == both.ours._special_tokens
    assert again._pat_str == both.ours._pat_str
    assert again._mergeable_ranks == both.ours._mergeable_ranks
    text = "hello " + sorted(both.parts["special_tokens"])[0]
    assert again.encode(text, allowed_special="all") == both.theirs.encode(
        text, allowed_special="all"
    )
    with pytest.raises(ValueError, match="disallowed"):
        again.encode(text)


def test_a_registered_encoding_is_pickled_by_name() -> None:
    encoding = compat.get_encoding("kimi-k3")
    data = pickle.dumps(encoding)

    assert len(data) < 200
    assert pickle.loads(data) is encoding


def encode_words(encoding: Encoding) -> list[int]:
    return encoding.encode("hello world")


def test_b86_a_spawned_process_takes_one() -> None:
    encoding = pair("gaps").ours
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(encode_words, (encoding,)) == encoding.encode("hello world")


def test_b61_copies_cost_nothing(both: Pair) -> None:
    copies = [copy.deepcopy(both.ours) for _ in range(32)]
    copies.append(copy.copy(both.ours))

    for copied in copies:
        assert copied is not both.ours
        assert copied.tokenizer is both.ours.tokenizer
        assert copied._mergeable_ranks is both.ours._mergeable_ranks
    copies[0].name = "other"
    assert both.ours.name != "other"
    assert copies[0].encode("hello") == both.ours.encode("hello")


# Names of encodings and of models


def test_bundled_names() -> None:
    encoding = compat.get_encoding("kimi-k3")

    assert encoding is compat.get_encoding("kimi-k3")
    assert encoding.name == "kimi-k3"
    assert encoding.encode_ordinary("hello") == pair("kimi-k3").theirs.encode("hello")
    assert compat.encoding_for_model("kimi-k3") is encoding
    assert "kimi-k3" in compat.list_encoding_names()


def test_names_of_an_installed_tiktoken() -> None:
    assert set(compat.list_encoding_names()) >= set(tiktoken.list_encoding_names())


def test_the_parts_come_from_an_installed_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = __import__("tiktoken.registry").registry
    tiktoken.list_encoding_names()
    parts = {"name": "mine", **pair("gaps").parts}
    monkeypatch.setitem(registry.ENCODING_CONSTRUCTORS, "mine", lambda: parts)
    monkeypatch.setattr(_registry, "_encodings", {})
    encoding = compat.get_encoding("mine")

    assert encoding.encode("hello") == pair("gaps").theirs.encode("hello")
    assert "mine" in compat.list_encoding_names()
    assert compat.get_encoding("mine") is encoding


def test_ranks_that_cannot_be_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = __import__("tiktoken.registry").registry
    tiktoken.list_encoding_names()

    def offline() -> dict[str, Any]:
        raise ConnectionError("no network here")

    monkeypatch.setitem(registry.ENCODING_CONSTRUCTORS, "far", offline)
    with pytest.raises(SourceNotFoundError, match="TIKTOKEN_CACHE_DIR") as caught:
        compat.get_encoding("far")
    assert isinstance(caught.value, OSError)
    assert "no network here" in str(caught.value)


def test_without_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    monkeypatch.setitem(sys.modules, "tiktoken.registry", None)
    monkeypatch.setattr(_registry, "_encodings", {})

    assert compat.get_encoding("kimi-k3").encode("a") == [64]
    assert "kimi-k3" in compat.list_encoding_names()
    with pytest.raises(SourceNotFoundError, match="install tiktoken"):
        compat.get_encoding("r50k_base")
    with pytest.raises(ValueError, match="Unknown encoding nope"):
        compat.get_encoding("nope")


@pytest.mark.parametrize("name", ["nope", "", 5, None])
def test_unknown_names(name: Any) -> None:
    for module in (compat, tiktoken):
        with pytest.raises(ValueError, match=r"Unknown encoding|Expected a string"):
            module.get_encoding(name)


def test_models_use_the_encodings_that_tiktoken_says() -> None:
    model = __import__("tiktoken.model").model
    endings = ("", "2024-05-13", "-x")
    known = [*model.MODEL_TO_ENCODING]
    known += [start + end for start in model.MODEL_PREFIX_TO_ENCODING for end in endings]
    known += [name + end for name in model.MODEL_TO_ENCODING for end in ("-x", "0")]
    for name in known:
        ours, theirs = (
            outcome(lambda m=m, name=name: m.encoding_name_for_model(name))
            for m in (compat, tiktoken)
        )
        assert ours == theirs, name
    for module in (compat, tiktoken):
        with pytest.raises(KeyError, match="Could not automatically map nope"):
            module.encoding_for_model("nope")


def test_nothing_is_imported_that_was_not_asked_for() -> None:
    program = (
        "import sys, kizami\n"
        "assert not any(name.startswith('kizami.compat') for name in sys.modules)\n"
        "from kizami.compat import tiktoken\n"
        "tiktoken.get_encoding('kimi-k3').encode('a')\n"
        "assert 'tiktoken' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# Rank files


def test_rank_files_are_read_as_tiktoken_reads_them(tmp_path: Any) -> None:
    load = __import__("tiktoken.load").load
    ranks = pair("gaps").parts["mergeable_ranks"]
    path = tmp_path / "x.tiktoken"
    path.write_bytes(kizami.load("kimi-k3").to_tiktoken()[:100_000].rsplit(b"\n", 1)[0])
    found = compat.load.load_tiktoken_bpe(str(path))

    assert found == load.load_tiktoken_bpe(str(path))
    assert len(found) > len(ranks) // 2
    with pytest.raises(VocabularyError, match="SHA-256"):
        compat.load.load_tiktoken_bpe(path, expected_hash="0" * 64)
    path.write_bytes(b"IQ== 0\nnonsense\n")
    with pytest.raises(ValueError, match="line 2") as caught:
        compat.load.load_tiktoken_bpe(path)
    assert caught.value.line == 2  # type: ignore[attr-defined]
    with pytest.raises(OSError, match="not here"):
        compat.load.load_tiktoken_bpe("https://example.com/x.tiktoken")
