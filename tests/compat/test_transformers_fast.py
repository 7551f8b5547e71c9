"""The drop-in for transformers on fast tokenizers: equal to the same tokenizer without it."""

from __future__ import annotations

import concurrent.futures
import copy
import functools
import gzip
import inspect
import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from kizami.compat.transformers import adopt, is_adopted, patch
from kizami.errors import UnknownFormatError

from tests.compat import hf
from tests.shared import shared_path
from tests.texts import texts

transformers: Any = pytest.importorskip("transformers", reason="needs transformers")
decoders: Any = pytest.importorskip("tokenizers.decoders")

MODELS = ["deepseek_v3", "gpt-oss", "llama3", "qwen3"]
TEXTS = [
    "Hello, world! 中文 🎉 don't",
    "",
    "  a\n\n b\t",
    "<|endoftext|> x <think>",
    "e\u0301 naïve",
]
TEMPLATE = "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] }}</s>{% endfor %}"


class Pair(NamedTuple):
    plain: Any
    ours: Any

    def alike(self, call: Callable[[Any], Any]) -> Any:
        """What a call gives for both, which must be the same; an error counts by its class."""
        plain, ours = _tried(call, self.plain), _tried(call, self.ours)
        assert ours == plain
        assert type(ours) is type(plain)
        return ours


def _tried(call: Callable[[Any], Any], tokenizer: Any) -> Any:
    try:
        found = call(tokenizer)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return dict(found) if isinstance(found, transformers.BatchEncoding) else found


def load_both(folder: Path) -> Pair:
    plain = transformers.AutoTokenizer.from_pretrained(folder)
    with patch():
        ours = transformers.AutoTokenizer.from_pretrained(folder)
    assert is_adopted(ours)
    assert not is_adopted(plain)
    assert type(ours) is type(plain)
    return Pair(plain, ours)


@functools.cache
def _model(name: str, folder: Path) -> Pair:
    source = shared_path("data", "tokenizers", name)
    target = folder / name
    target.mkdir()
    for file in source.iterdir():
        if file.suffix == ".gz":
            (target / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
        elif file.suffix in (".json", ".jinja"):
            shutil.copy(file, target)
    if not (target / "tokenizer_config.json").exists():
        config = {"tokenizer_class": "PreTrainedTokenizerFast"}
        (target / "tokenizer_config.json").write_text(json.dumps(config))
    return load_both(target)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fast")


def write_small(folder: Path, **parts: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(hf.small(**parts), encoding="utf-8")
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": hf.BOS,
        "eos_token": hf.EOS,
        "pad_token": hf.SEP,
        "chat_template": TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Pair:
    return load_both(write_small(tmp_path / "small", processor=hf.PROCESSORS["bos"]))


CALLS: dict[str, Callable[[Any], Any]] = {
    "len": len,
    "vocab": lambda t: t.get_vocab(),
    "added": lambda t: t.added_tokens_decoder,
    "special": lambda t: (t.all_special_ids, t.all_special_tokens, t.special_tokens_map),
    "size": lambda t: (t.vocab_size, t.num_special_tokens_to_add(), t.is_fast),
    "pair": lambda t: t("one", "two"),
    "pairs": lambda t: t(["one", "a"], ["two", "b"], return_token_type_ids=True),
    "truncation": lambda t: t(TEXTS, truncation=True, max_length=3),
    "overflow": lambda t: t(
        TEXTS[0], truncation=True, max_length=4, stride=1, return_overflowing_tokens=True
    ),
    "after truncation": lambda t: t(TEXTS),
    "words": lambda t: t(["two", " words"], is_split_into_words=True),
    "numpy": lambda t: t(TEXTS[0], return_tensors="np")["input_ids"].tolist(),
    "missing": lambda t: t.convert_tokens_to_ids(["Ġa", "no such token"]),
    "batch": lambda t: t.batch_decode([[70, 71], [], [5]]),
    "no text": lambda t: t(5),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, folder: Path) -> None:
    pair = _model(name, folder)
    for call in CALLS.values():
        pair.alike(call)
    for text in TEXTS:
        each_way(pair, text)
    pair.alike(lambda t: t.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=True))


def each_way(pair: Pair, text: str) -> None:
    ids = pair.alike(lambda t: t.encode(text))
    pair.alike(lambda t: t(text, return_offsets_mapping=True, return_special_tokens_mask=True))
    pair.alike(lambda t: t(text, add_special_tokens=False, split_special_tokens=True))
    tokens = pair.alike(lambda t: t.tokenize(text))
    pair.alike(lambda t: t.convert_tokens_to_string(tokens))
    for skip in (False, True):
        pair.alike(lambda t, s=skip: t.decode(ids, skip_special_tokens=s))
        pair.alike(lambda t, s=skip: t.convert_ids_to_tokens(ids, skip_special_tokens=s))


def test_small(small: Pair) -> None:
    for call in CALLS.values():
        small.alike(call)
    small.alike(lambda t: t(TEXTS, padding=True))
    small.alike(lambda t: t(TEXTS, padding="max_length", max_length=40, padding_side="left"))
    talk = [{"role": "user", "content": "hello <s> the"}]
    for options in ({}, {"tokenize": True}, {"tokenize": True, "return_dict": True}):
        small.alike(lambda t, o=options: t.apply_chat_template(talk, **o))


@given(text=texts())
def test_random_texts(folder: Path, text: str) -> None:
    each_way(_random(folder), text)


@functools.cache
def _random(folder: Path) -> Pair:
    added = [{"content": "<think>", "special": False}]
    return load_both(write_small(folder / "random", added=added))


def test_tokens_that_are_added(small: Pair, tmp_path: Path) -> None:
    new = [
        "<new>",
        transformers.AddedToken("<wide>", lstrip=True, rstrip=True),
        transformers.AddedToken("the", single_word=True, special=True),
    ]
    small.alike(lambda t: t.add_tokens(new))
    small.alike(lambda t: t.add_special_tokens({"unk_token": "<unk>"}))
    text = "a <new> <wide> the other <unk>"
    ids = small.alike(lambda t: t.encode(text))
    small.alike(lambda t: t.added_tokens_decoder)
    small.alike(len)
    assert copy.deepcopy(small.ours).encode(text) == ids
    small.ours.save_pretrained(tmp_path / "saved")
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "saved").encode(text) == ids


def test_saved_files_are_the_same(small: Pair, tmp_path: Path) -> None:
    found = []
    for name, tokenizer in zip(("plain", "ours"), small, strict=True):
        tokenizer.save_pretrained(tmp_path / name)
        files = sorted((tmp_path / name).iterdir())
        found.append(
            {
                f.name: json.loads(f.read_text()) if f.suffix == ".json" else f.read_text()
                for f in files
            }
        )
    assert found[0] == found[1]
    assert load_both(tmp_path / "ours").ours.encode("hello") == small.plain.encode("hello")


def test_copies_share_the_vocabulary(folder: Path) -> None:
    for pair in (_random(folder), _model("qwen3", folder)):
        ours = pair.ours
        other = copy.deepcopy(ours)
        assert is_adopted(other)
        assert other._tokenizer.to_kizami() is ours._tokenizer.to_kizami()
        for name, value in ours.__dict__.items():
            if isinstance(value, (dict, list)) and len(value) > 10_000:
                assert other.__dict__[name] is value
        other.add_tokens(["<another>"])
        assert "<another>" not in ours.get_vocab()
        assert other.encode("the hello") == pair.plain.encode("the hello")


def test_pickles_need_no_patch(small: Pair) -> None:
    small.ours.add_tokens(["<new>"])
    small.plain.add_tokens(["<new>"])
    other = pickle.loads(pickle.dumps(small.ours))

    assert is_adopted(other)
    assert other.encode("a <new> b") == small.plain.encode("a <new> b")


def test_parts_are_those_of_the_original(small: Pair) -> None:
    for name in ("model", "normalizer", "pre_tokenizer", "post_processor", "decoder"):
        kinds = [type(getattr(t.backend_tokenizer, name)).__name__ for t in small]
        # The decoder is ours: it is asked for too often to be made anew.
        assert kinds[0] == kinds[1] or name == "decoder"
    ours = small.ours.backend_tokenizer
    assert json.loads(ours.to_str()) == json.loads(small.plain.backend_tokenizer.to_str())


def test_the_model_is_made_once(small: Pair) -> None:
    ours = small.ours.backend_tokenizer
    model = ours.model
    assert ours.model is model
    ours.add_tokens(["<new>"])
    assert copy.deepcopy(small.ours).backend_tokenizer.model is model
    assert [token.id for token in model.tokenize("Ġhello")] == [
        token.id for token in small.plain.backend_tokenizer.model.tokenize("Ġhello")
    ]
    ours.model = model
    assert ours.model is not model


@pytest.mark.parametrize("name", MODELS)
def test_control_tokens_of_users_may_be_text(name: str, folder: Path) -> None:
    pair = _model(name, folder)
    call = type(pair.plain).apply_chat_template
    if "sanitize_control_tokens" not in inspect.signature(call).parameters:
        pytest.skip("transformers has it from 5.24 on")
    token = pair.plain.all_special_tokens[0]
    talk = [{"role": "user", "content": f"say {token} and {token[:-1]} 🎉"}]
    template = f"{token}{{{{ messages[0]['content'] }}}}{token}"
    ids = pair.alike(
        lambda t: t.apply_chat_template(
            talk, chat_template=template, return_dict=False, sanitize_control_tokens=True
        )
    )
    # The template's own.
    assert ids.count(pair.plain.convert_tokens_to_ids(token)) == 2


def test_parts_can_be_set(small: Pair) -> None:
    from tokenizers import models, normalizers, processors

    template = processors.TemplateProcessing(
        single=f"$A {hf.EOS}", pair=f"$A {hf.EOS} $B", special_tokens=[(hf.EOS, 278)]
    )
    for tokenizer in small:
        tokenizer.backend_tokenizer.post_processor = template
    assert small.alike(lambda t: t.encode("hello"))[-1] == 278
    for tokenizer in small:
        tokenizer.backend_tokenizer.normalizer = normalizers.NFC()
    small.alike(lambda t: t.encode("e\u0301"))
    before = small.ours.encode("hello")
    with pytest.raises(UnknownFormatError):
        small.ours.backend_tokenizer.model = models.WordLevel({"hello": 0}, "hello")
    assert small.ours.encode("hello") == before


def test_fallback_to_bytes_that_never_happens(tmp_path: Path) -> None:
    folder = write_small(tmp_path / "small")
    stated = json.loads((folder / "tokenizer.json").read_text())
    stated["model"] |= {"byte_fallback": True, "fuse_unk": True}
    (folder / "tokenizer.json").write_text(json.dumps(stated))
    pair = load_both(folder)
    for text in TEXTS:
        each_way(pair, text)

    del stated["model"]["vocab"]["z"]
    (folder / "tokenizer.json").write_text(json.dumps(stated))
    with patch(), pytest.warns(UserWarning, match="single byte 0x7a is not a token"):
        assert not is_adopted(transformers.AutoTokenizer.from_pretrained(folder))


def test_each_thread_has_its_own_settings(small: Pair) -> None:
    text = "hello the hello the"
    settings: list[dict[str, Any]] = [
        {},
        {"truncation": True, "max_length": 3},
        {"padding": "max_length", "max_length": 20},
        {"split_special_tokens": True},
    ]
    expected = [small.plain([text], **options)["input_ids"] for options in settings]

    def worker(number: int) -> None:
        for i in range(50):
            which = (number + i) % len(settings)
            found = small.ours([text], **settings[which])["input_ids"]
            assert found == expected[which]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for done in [pool.submit(worker, number) for number in range(16)]:
            done.result()


def test_tokens_added_in_one_thread_are_seen_in_others(small: Pair) -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert pool.submit(small.ours, ["the"], padding=True).result()
        small.ours.add_tokens(["<new>"])
        small.plain.add_tokens(["<new>"])
        found = pool.submit(small.ours.encode, "a <new>").result()
    assert found == small.plain.encode("a <new>")


def test_streams_take_both_kinds(small: Pair) -> None:
    ids = small.plain.encode("hello 🎉 the")
    with patch():
        for skip in (False, True):
            texts = []
            for tokenizer in small:
                stream = decoders.DecodeStream(skip_special_tokens=skip)
                steps = [stream.step(tokenizer._tokenizer, id_) or "" for id_ in ids]
                texts.append("".join(steps))
            assert texts[0] == texts[1] == small.plain.decode(ids, skip_special_tokens=skip)
    assert decoders.DecodeStream.__module__ == "tokenizers.decoders"


def test_what_is_no_byte_level_bpe_stays_as_it_is(tmp_path: Path) -> None:
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
    model |= {"max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "a": 1}}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": [], "model": model}))
    (tmp_path / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "PreTrainedTokenizerFast"}'
    )
    with patch(), pytest.warns(UserWarning, match="does not run on Kizami: .*WordPiece"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert not is_adopted(tokenizer)
    assert tokenizer.encode("a", add_special_tokens=False) == [1]
    with pytest.raises(UnknownFormatError, match="WordPiece"):
        adopt(tokenizer)


def test_what_cannot_be_written_stays_as_it_is(small: Pair) -> None:
    from tokenizers import pre_tokenizers

    class Python:
        def pre_tokenize(self, text: Any) -> None:
            """Nothing is split."""

    small.plain.backend_tokenizer.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(Python())
    with pytest.raises(UnknownFormatError, match="cannot be written as JSON"):
        adopt(small.plain)
    assert not is_adopted(small.plain)


def test_without_transformers_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['transformers'] = sys.modules['tokenizers'] = None\n"
        "import kizami.compat.transformers as drop_in\n"
        "for call in (drop_in.patch, lambda: drop_in.adopt(1)):\n"
        "    try: call()\n"
        "    except ImportError as error: print(error.extra)\n"
        "drop_in.unpatch(); print(drop_in.is_adopted(1))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.stdout.split() == ["transformers", "transformers", "False"], run.stderr
