"""`load`: directories, files, hub ids, and refusals that say what is wrong.

Most tests write a directory with a vocabulary that can be checked by hand: the 256 bytes, then "ab"
and "abc".
"""

from __future__ import annotations

import base64
import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kizami
import pytest
from kizami import Tokenizer
from kizami.errors import (
    InputTypeError,
    KizamiError,
    MissingExtraError,
    SourceNotFoundError,
    UnknownFormatError,
    VocabularyError,
)

from tests.shared import shared_path

TOKENS = [*(bytes([byte]) for byte in range(256)), b"ab", b"abc"]
AUTO_MAP = {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]}
CONFIG: dict[str, Any] = {
    "auto_map": AUTO_MAP,
    "eos_token": "[EOS]",
    "added_tokens_decoder": {
        "258": {"content": "[BOS]", "special": True},
        "259": {"content": "[EOS]", "special": True},
        "300": {"content": "<think>", "special": False},
    },
}

Write = Callable[..., Path]


def line(token: bytes, rank: object) -> bytes:
    return base64.b64encode(token) + f" {rank}\n".encode()


def rank_file(tokens: list[bytes] = TOKENS) -> bytes:
    return b"".join(line(token, rank) for rank, token in enumerate(tokens))


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a model directory; None leaves a file out."""

    def write(
        ranks: bytes | None = rank_file(), config: Any = CONFIG, generation: Any = None
    ) -> Path:
        directory = tmp_path / "tiny-model"
        directory.mkdir()
        if ranks is not None:
            (directory / "tiktoken.model").write_bytes(ranks)
        for name, value in [
            ("tokenizer_config.json", config),
            ("generation_config.json", generation),
        ]:
            if value is not None:
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                (directory / name).write_bytes(data)
        return directory

    return write


def changed(**changes: Any) -> dict[str, Any]:
    config = copy.deepcopy(CONFIG)
    config.update(changes)
    return config


# What is read


def test_a_directory(write: Write) -> None:
    tiny = kizami.load(write())

    assert tiny.name == "tiny-model"
    assert tiny.vocab_size == 258 + 256
    assert tiny.encode("ab abc [EOS]").tolist() == [256, 32, 257, 32, *b"[EOS]"]
    assert tiny.encode("[BOS]ab<think>", allow_special=True).tolist() == [258, 256, 300]
    assert tiny.encode("<|reserved_token_513|>", allow_special=True).tolist() == [513]
    assert tiny.decode([258, 257, 300, 301]) == "[BOS]abc<think><|reserved_token_301|>"
    assert (
        tiny.decode([258, 257, 300, 301], skip_special=True) == "abc<think><|reserved_token_301|>"
    )
    assert tiny.eos_ids == (259,)
    assert [token for _, token in tiny.tokens()][:258] == TOKENS


@pytest.mark.parametrize("form", [str, Path, os.fspath, lambda path: path / "tiktoken.model"])
def test_forms_of_a_path(write: Write, form: Any) -> None:
    assert kizami.load(form(write())).encode("ab").tolist() == [256]


def test_the_path_of_either_file(write: Write) -> None:
    directory = write()

    for name in ("tiktoken.model", "tokenizer_config.json"):
        tiny = kizami.load(str(directory / name))
        assert (tiny.name, tiny.vocab_size) == ("tiny-model", 514)


def test_a_relative_path(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = write()
    monkeypatch.chdir(directory)

    assert kizami.load(".").name == "tiny-model"
    assert kizami.load("tiktoken.model").name == "tiny-model"


@pytest.mark.parametrize(
    "ranks",
    [
        pytest.param(rank_file().rstrip(b"\n"), id="no-newline-at-the-end"),
        pytest.param(rank_file().replace(b"\n", b"\r\n"), id="crlf"),
        pytest.param(b"".join(rank_file().splitlines(keepends=True)[::-1]), id="any-order"),
        pytest.param(rank_file() + b"\n", id="blank-line-at-the-end"),
        pytest.param(rank_file().replace(b" 99\n", b" 99\n\n\n"), id="blank-lines-inside"),
    ],
)
def test_rank_files_that_mean_the_same(write: Write, ranks: bytes) -> None:
    tiny = kizami.load(write(ranks))

    assert tiny.vocab_size == 514
    assert tiny.control_tokens["[BOS]"] == 258
    assert tiny.control_tokens["<|reserved_token_513|>"] == 513
    assert tiny.encode("abc").tolist() == [257]


@pytest.mark.parametrize(
    "auto_map",
    [
        {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]},
        {"AutoTokenizer": "tokenization_kimi.TikTokenTokenizer"},
        {"AutoTokenizer": ["tokenization_moonshot.TikTokenTokenizer", None]},
        {"AutoTokenizer": ["moonshotai/Kimi-K2--tokenization_kimi.TikTokenTokenizer", None]},
    ],
)
def test_b11_the_auto_map_says_whose_it_is(write: Write, auto_map: Any) -> None:
    assert kizami.load(write(config=changed(auto_map=auto_map))).encode("ab").tolist() == [256]


@pytest.mark.parametrize(
    ("generation", "config", "eos_ids"),
    [
        ({"eos_token_id": 259}, CONFIG, (259,)),
        ({"eos_token_id": [259, 300]}, CONFIG, (259, 300)),
        ({"eos_token_id": None}, CONFIG, (259,)),
        ({}, CONFIG, (259,)),
        (None, CONFIG, (259,)),
        (None, changed(eos_token={"content": "[BOS]"}), (258,)),
        (None, changed(eos_token=None), ()),
        (None, changed(eos_token="no such token"), ()),
    ],
)
def test_eos_ids(write: Write, generation: Any, config: Any, eos_ids: tuple[int, ...]) -> None:
    assert kizami.load(write(config=config, generation=generation)).eos_ids == eos_ids


def test_b86_a_tokenizer_from_files_can_be_pickled_without_them(write: Write) -> None:
    directory = write()
    tiny = kizami.load(directory)
    data = pickle.dumps(tiny)
    for file in directory.iterdir():
        file.unlink()
    again = pickle.loads(data)

    assert again == tiny
    assert hash(again) == hash(tiny)
    assert (again.name, again.eos_ids) == ("tiny-model", (259,))
    assert again.encode("abcab<think>", allow_special=True).tolist() == [257, 256, 300]
    assert copy.deepcopy(tiny) is tiny


def test_equality_is_by_content(write: Write, tmp_path: Path, tokenizer: Tokenizer) -> None:
    tiny = kizami.load(write())
    (tmp_path / "tiny-model").rename(tmp_path / "elsewhere")
    other_names = changed(added_tokens_decoder={"258": {"content": "[START]", "special": True}})

    assert kizami.load(tmp_path / "elsewhere") == tiny
    assert kizami.load(write(config=other_names)) != tiny
    assert tiny != tokenizer


# What is refused


@pytest.mark.parametrize(
    "source", ["kimi-k9", "", "no/such/path", "./absent", "C:\\absent", "a b/c", "org/"]
)
def test_an_unknown_source(source: str) -> None:
    with pytest.raises(SourceNotFoundError) as caught:
        kizami.load(source)

    assert caught.value.source == source
    # The way out: the bundled names, or that a path was read as a path.
    wanted = "no directory or file" if source.startswith((".", "/")) else "kimi-k3"
    assert wanted in str(caught.value)
    assert isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("source", [None, 5, 1.5, ["kimi-k3"]])
def test_a_source_of_the_wrong_type(source: Any) -> None:
    with pytest.raises(InputTypeError, match=type(source).__name__):
        kizami.load(source)


def test_a_directory_without_ranks(write: Write) -> None:
    directory = write(ranks=None)
    with pytest.raises(UnknownFormatError) as caught:
        kizami.load(directory)

    assert "has no tokenizer that Kizami reads" in str(caught.value)
    assert "tiktoken.model" in str(caught.value)
    assert "tokenizer_config.json" in str(caught.value)
    assert caught.value.source == str(directory)


def test_a_directory_without_config(write: Write) -> None:
    directory = write(config=None)
    for source in (directory, directory / "tiktoken.model"):
        with pytest.raises(UnknownFormatError, match=r"has no tokenizer_config\.json"):
            kizami.load(source)


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    file = tmp_path / "vocab.bpe"
    file.write_bytes(rank_file())
    with pytest.raises(UnknownFormatError, match=r"vocab\.bpe holds ranks alone; .* `pattern`"):
        kizami.load(file)
    file.write_bytes(b"neither ranks nor JSON")
    with pytest.raises(UnknownFormatError, match=r"vocab\.bpe is none of the files"):
        kizami.load(file)


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            changed(auto_map={"AutoTokenizer": ["tokenization_qwen.Q", None]}), id="other"
        ),
        pytest.param(
            changed(auto_map={"AutoTokenizer": ["tokenization_kimi2.X", None]}), id="alike"
        ),
        pytest.param(changed(auto_map={"AutoTokenizer": [None, "tokenization_kimi.F"]}), id="fast"),
        pytest.param(changed(auto_map={"AutoTokenizer": []}), id="empty-list"),
        pytest.param(changed(auto_map={"AutoModel": "tokenization_kimi.X"}), id="no-tokenizer"),
        pytest.param(changed(auto_map="tokenization_kimi"), id="str"),
        pytest.param(changed(auto_map=None, tokenizer_class="TikTokenTokenizer"), id="class-alone"),
        pytest.param({}, id="empty"),
    ],
)
def test_b10_b11_a_pattern_is_never_guessed(write: Write, config: Any) -> None:
    with pytest.raises(UnknownFormatError, match="does not guess"):
        kizami.load(write(config=config))


GOOD = rank_file().splitlines(keepends=True)


@pytest.mark.parametrize(
    ("ranks", "at", "reason"),
    [
        pytest.param([*GOOD[:9], b"nonsense\n", *GOOD[10:]], 10, "no space", id="no-space"),
        pytest.param([*GOOD[:9], b"!!!! 9\n", *GOOD[10:]], 10, "not base64", id="no-base64"),
        pytest.param([*GOOD[:9], b"CQ 9\n", *GOOD[10:]], 10, "not base64", id="no-padding"),
        pytest.param([*GOOD[:9], b"CQ== nine\n", *GOOD[10:]], 10, "not a number", id="no-number"),
        pytest.param([*GOOD[:9], b"CQ== -9\n", *GOOD[10:]], 10, "not a number", id="negative"),
        pytest.param([*GOOD[:9], b"CQ== 9 \n", *GOOD[10:]], 10, "not a number", id="space-behind"),
        pytest.param([*GOOD[:9], b"CQ== \n", *GOOD[10:]], 10, "not a number", id="no-rank"),
        pytest.param([*GOOD[:9], b"\xff\xfe 9\n", *GOOD[10:]], 10, "not base64", id="no-utf8"),
        pytest.param([*GOOD, b"eHk= 8\n"], 259, "rank 8 is there twice", id="rank-twice"),
        pytest.param([*GOOD, b"eHk= 99999999\n"], 259, "not below", id="rank-huge"),
        pytest.param([*GOOD, b"eHk= 99999999999999999999\n"], 259, "rank", id="rank-overflow"),
        pytest.param([*GOOD, b"YWI= 258\n"], 259, "repeats", id="token-twice"),
        pytest.param([*GOOD, b" 258\n"], 259, "empty token", id="token-empty"),
    ],
)
def test_a_damaged_line_is_named(write: Write, ranks: list[bytes], at: int, reason: str) -> None:
    directory = write(b"".join(ranks))
    with pytest.raises(VocabularyError) as caught:
        kizami.load(directory)

    error = caught.value
    assert error.line == at
    assert error.path == str(directory / "tiktoken.model")
    assert f"line {at}" in str(error)
    assert reason in str(error)
    assert str(directory) in str(error)
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    ("ranks", "reason"),
    [
        pytest.param(GOOD[:8] + GOOD[9:], "rank 8 is missing", id="gap"),
        pytest.param([*GOOD, b"eHk= 260\n"], "rank 258 is missing", id="gap-before-the-last"),
        pytest.param(GOOD[:244], "single byte 0xf4", id="byte-missing"),
        pytest.param([], "", id="empty"),
        pytest.param([b"\n\n"], "", id="blank"),
    ],
)
def test_a_file_that_is_wrong_as_a_whole(write: Write, ranks: list[bytes], reason: str) -> None:
    config = changed(added_tokens_decoder={})
    with pytest.raises(VocabularyError) as caught:
        kizami.load(write(b"".join(ranks), config=config))

    assert reason in str(caught.value)
    assert caught.value.path.endswith("tiktoken.model")


@pytest.mark.parametrize(
    "file", [b"", b"{", b"nonsense", b"\xff\xfe", b"[1]", b'"text"', b"null", b"[" * 100_000]
)
@pytest.mark.parametrize("place", ["config", "generation"])
def test_bad_json(write: Write, place: str, file: bytes) -> None:
    directory = write(**{place: file})
    with pytest.raises(VocabularyError) as caught:
        kizami.load(directory)

    assert caught.value.path.endswith(".json")
    assert "JSON" in str(caught.value)


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param({"257": {"content": "x"}}, id="id-of-an-ordinary-token"),
        pytest.param({"514": {"content": "x"}}, id="id-behind-the-last"),
        pytest.param({"-258": {"content": "x"}}, id="negative"),
        pytest.param({"two": {"content": "x"}}, id="no-id"),
        pytest.param({"²": {"content": "x"}}, id="superscript"),
        pytest.param({"258": {"content": 5}}, id="content-int"),
        pytest.param({"258": {}}, id="no-content"),
        pytest.param({"258": "x"}, id="no-object"),
        pytest.param({"258": {"content": ""}}, id="empty-name"),
        pytest.param({"258": {"content": "x"}, "259": {"content": "x"}}, id="name-twice"),
        pytest.param({"258": {"content": "<|reserved_token_300|>"}}, id="name-of-an-unlisted-id"),
        pytest.param([{"content": "x"}], id="list"),
        pytest.param(None, id="null"),
    ],
)
def test_b77_impossible_control_tokens(write: Write, listed: Any) -> None:
    with pytest.raises(VocabularyError):
        kizami.load(write(config=changed(added_tokens_decoder=listed)))


def test_a_control_name_with_a_surrogate_is_refused(write: Write) -> None:
    listed = {"258": {"content": "\ud83d"}}
    with pytest.raises(KizamiError):
        kizami.load(write(config=changed(added_tokens_decoder=listed)))


# Hub ids


@pytest.fixture
def cache(tmp_path: Path, write: Write) -> Path:
    """A hub cache that holds `org/tiny-model` at its branch `main`."""
    cache = tmp_path / "hub"
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = cache / "models--org--tiny-model"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    (repository / "snapshots").mkdir()
    write().rename(repository / "snapshots" / commit)
    return cache


def in_new_process(code: str, cache: Path) -> str:
    """Runs `code` with that cache; huggingface_hub reads its settings when it is imported."""
    environment = {**os.environ, "HF_HUB_CACHE": str(cache), "HF_HUB_DISABLE_TELEMETRY": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_a_hub_id_from_the_local_cache(cache: Path) -> None:
    pytest.importorskip("huggingface_hub")
    code = (
        "import kizami\n"
        "for options in ({}, {'revision': 'main'}):\n"
        "    tiny = kizami.load('org/tiny-model', local_files_only=True, **options)\n"
        "    print(tiny.name, tiny.vocab_size, *tiny.encode('abcab'))\n"
    )

    assert in_new_process(code, cache).splitlines() == ["org/tiny-model 514 257 256"] * 2


def test_a_hub_id_that_the_cache_lacks(cache: Path) -> None:
    pytest.importorskip("huggingface_hub")
    code = (
        "import kizami\n"
        "for id, options in (('org/other', {}), ('org/tiny-model', {'revision': 'v2'})):\n"
        "    try:\n"
        "        kizami.load(id, local_files_only=True, **options)\n"
        "    except kizami.errors.SourceNotFoundError as error:\n"
        "        print(error.source, 'local hub cache' in str(error))\n"
    )

    assert in_new_process(code, cache).splitlines() == ["org/other True", "org/tiny-model True"]


def test_b88_a_hub_id_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError) as caught:
        kizami.load("org/tiny-model")

    assert caught.value.extra == "hub"
    assert "pip install 'huggingface_hub>=0.25'" in str(caught.value)
    assert isinstance(caught.value, ImportError)


def test_b88_the_extra_is_not_imported_before_it_is_needed() -> None:
    code = "import kizami, sys; kizami.load('kimi-k3'); print('huggingface_hub' in sys.modules)"

    assert in_new_process(code, Path()) == "False"


# Kimi K3 itself


def test_the_published_directory_is_the_bundled_tokenizer(tokenizer: Tokenizer) -> None:
    published = kizami.load(shared_path("data", "kimi-k3"))

    assert published == tokenizer
    assert hash(published) == hash(tokenizer)
    assert published.control_tokens == tokenizer.control_tokens
    assert published.eos_ids == tokenizer.eos_ids
    assert published.name == "kimi-k3"
    text = "Hello <|open|> 中文 <|reserved_token_163700|>"
    for trusted in (False, True):
        ids = published.encode(text, allow_special=trusted)
        assert ids.tolist() == tokenizer.encode(text, allow_special=trusted).tolist()


def test_b11_a_published_directory_of_k25(tokenizer: Tokenizer) -> None:
    published = kizami.load(shared_path("data", "tokenizers", "kimi-k2.5"))

    assert published.control_tokens["</think>"] == 163_607
    assert published.control_tokens == kizami.load("kimi-k2.5").control_tokens
    assert published == kizami.load("kimi-k2.5")
    assert published != tokenizer


def test_bundled_names_are_loaded_once(tokenizer: Tokenizer) -> None:
    assert kizami.load("kimi-k3") is tokenizer
    assert kizami.load("kimi-k2") is kizami.load("kimi-k2")


def test_a_git_lfs_pointer_is_named(write: Write) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    with pytest.raises(VocabularyError, match="git lfs pull"):
        kizami.load(write(ranks=pointer))


def test_the_ids_of_control_tokens_may_be_missing_among_the_ranks(tmp_path: Path) -> None:
    # As in the file of p50k_base, whose end of text has an id between those of two tokens.
    file = tmp_path / "x.tiktoken"
    file.write_bytes(b"".join(GOOD) + b"eHk= 260\n")
    given = {"<a>": 258, "<b>": 259}
    tokenizer = kizami.load(file, pattern=r"\w+|\W", special_tokens=given)

    assert tokenizer.encode("xy<a>xy<b>", allow_special=True).tolist() == [260, 258, 260, 259]
    assert tokenizer.decode([260, 259]) == "xy<b>"
    assert tokenizer.vocab_size == 261
    assert kizami.load(file, pattern=r"\w+|\W", special_tokens=given) == tokenizer
    assert Tokenizer.from_bytes(tokenizer.to_bytes()).encode("xy").tolist() == [260]
    assert tokenizer.to_tiktoken() == file.read_bytes()
    with pytest.raises(VocabularyError, match="rank 259 is missing"):
        kizami.load(file, pattern=r"\w+|\W", special_tokens={"<a>": 258})
