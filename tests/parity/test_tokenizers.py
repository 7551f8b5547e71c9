"""Parity with `tokenizers` 0.23.3 for what a `tokenizer.json` may say, on a small vocabulary.

The vocabulary is trained here, by that package; each case is the way in which a published model
splits its text. Added tokens with all flags are in every text.
"""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import kizami
import pytest
from kizami.errors import UnknownFormatError
from kizami.reference import well_formed

from tests.models import HuggingFace
from tests.texts import KINDS, Writer

tokenizers = pytest.importorskip("tokenizers")

TEXTS = 400
Load = Callable[..., tuple[kizami.Tokenizer, HuggingFace]]


def byte_level(**options: bool) -> dict[str, Any]:
    usual = {"add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"type": "ByteLevel", **usual, **options}


def split(regex: str, behavior: str = "Isolated", invert: bool = False) -> dict[str, Any]:
    return {
        "type": "Split",
        "pattern": {"Regex": regex},
        "behavior": behavior,
        "invert": invert,
    }


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(steps)}


DIGITS = {"type": "Digits", "individual_digits": True}
SPLITS = {
    "roberta": byte_level(add_prefix_space=True),
    "prefix, spelled, digits": sequence(byte_level(add_prefix_space=True), DIGITS),
    "digits, prefix": sequence(DIGITS, byte_level(add_prefix_space=True)),
    "words, prefix": sequence({"type": "WhitespaceSplit"}, byte_level(add_prefix_space=True)),
    "prefix, no regex": byte_level(add_prefix_space=True, use_regex=False),
    "pattern, prefix": sequence(
        split(r"\p{N}{1,3}"), byte_level(add_prefix_space=True, use_regex=False)
    ),
    "bloom": sequence(split(r" ?[^(\s|[.,!?…。，、।۔،])]+"), byte_level(use_regex=False)),
    "falcon": sequence(
        {"type": "Punctuation", "behavior": "Contiguous"},
        byte_level(),
        {"type": "Digits", "individual_digits": False},
        split("[0-9][0-9][0-9]"),
    ),
    "starcoder": sequence(DIGITS, byte_level()),
    "deepseek coder": sequence(
        split("[\r\n]"),
        split(r"\s?\p{L}+"),
        split(r"\s?\p{P}+"),
        split("[一-龥ࠀ-一가-퟿]+"),
        DIGITS,
        byte_level(use_regex=False),
    ),
    "numbers from the right": sequence(
        split(r"\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))"), byte_level(use_regex=False)
    ),
}
# Every combination of flags but the plain one has a token.
FLAGS = ("lstrip", "rstrip", "single_word", "normalized", "special")
NORMALIZERS = {
    "none": None,
    "NFC": {"type": "NFC"},
    "strip": {"type": "Strip", "strip_left": True, "strip_right": True},
}


@pytest.fixture(scope="module")
def file() -> dict[str, Any]:
    """A `tokenizer.json` of 900 tokens."""
    if version("tokenizers") != "0.23.3":
        pytest.skip(f"the ids are those of tokenizers 0.23.3, not of {version('tokenizers')}")
    trained = tokenizers.Tokenizer(tokenizers.models.BPE())
    trained.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=900,
        show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    everything = [fragment for kind in KINDS for fragment in kind]
    pairs = [well_formed(a + b) for a, b in itertools.product(everything[::3], everything[::4])]
    trained.train_from_iterator(pairs, trainer)
    made: dict[str, Any] = json.loads(trained.to_str())
    combinations = list(itertools.product((False, True), repeat=len(FLAGS)))
    for number, flags in enumerate(combinations):
        content = f"<f{number}>" if number % 2 else f"word{number}"
        token = {"id": 900 + number, "content": content, **dict(zip(FLAGS, flags, strict=True))}
        made["added_tokens"].append(token)
    return made


@pytest.fixture
def load(file: dict[str, Any], tmp_path: Path) -> Load:
    def load(**changed: Any) -> tuple[kizami.Tokenizer, HuggingFace]:
        content = {**file, **changed}
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        return kizami.load(path), HuggingFace(content)

    return load


def compare(tokenizer: kizami.Tokenizer, published: HuggingFace, seed: str) -> None:
    writer = Writer(seed, list(published.names))
    texts = ["", " ", "a", " a", *(well_formed(writer.text()) for _ in range(TEXTS))]
    for trusted in (False, True):
        ids, offsets = published.encode_many(texts, trusted)
        batch = tokenizer.encode_batch(texts, allow_special=trusted)
        for at, text in enumerate(texts):
            expected = ids[offsets[at] : offsets[at + 1]].tolist()
            assert batch[at].tolist() == expected, (text, trusted)
            if at % 20 == 0:
                assert tokenizer.encode(text, allow_special=trusted).tolist() == expected
                assert tokenizer.count(text, allow_special=trusted) == len(expected)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("name", SPLITS)
def test_b72_b73_splits_of_published_models(load: Load, name: str, normalizer: str) -> None:
    tokenizer, published = load(pre_tokenizer=SPLITS[name], normalizer=NORMALIZERS[normalizer])
    compare(tokenizer, published, f"{name}/{normalizer}")


def test_byte_fallback_has_no_meaning_where_all_bytes_are_tokens(
    load: Load, file: dict[str, Any]
) -> None:
    model = {**file["model"], "byte_fallback": True}
    compare(*load(pre_tokenizer=byte_level(), model=model), seed="fallback")


def test_a_long_text_gets_one_space(load: Load) -> None:
    tokenizer, published = load(pre_tokenizer=byte_level(add_prefix_space=True))
    for text in ("ab中 " * 50_000, " ab" * 50_000, "x" * 100_000, "é" * 100_000):
        assert tokenizer.encode(text).tolist() == published.encode(text, trusted=False)
        assert tokenizer.count(text) == len(published.encode(text, trusted=False))


def test_what_comes_of_a_prefix(load: Load, tmp_path: Path) -> None:
    tokenizer, published = load(pre_tokenizer=byte_level(add_prefix_space=True))
    texts = ["one two", " one two", "one<f1> two", ""]
    # It is decoded as it was encoded.
    assert tokenizer.decode(tokenizer.encode("one two")) == " one two"
    # Each segment, and each text between control tokens, has its own.
    expected = published.encode("one", True) + published.encode("two", True)
    assert tokenizer.encode_segments([("one", True), ("two", False)]).tolist() == expected
    # Copies of the tokenizer in other forms do it as well.
    tokenizer.save(tmp_path / "saved")
    again = tmp_path / "again.json"
    again.write_text(tokenizer.to_tokenizer_json(), encoding="utf-8")
    for other in (kizami.load(tmp_path / "saved"), kizami.load(again)):
        for text in texts:
            for trusted in (False, True):
                ids = published.encode(text, trusted)
                assert other.encode(text, allow_special=trusted).tolist() == ids
    with pytest.raises(UnknownFormatError, match="a space is put before its text"):
        tokenizer.to_tiktoken()
    # Offsets are those of a text that its tokens spell, or none.
    ids, starts, ends = tokenizer.encode_with_offsets(" one")
    assert (starts[0], ends[-1]) == (0, 4)
    with pytest.raises(UnknownFormatError, match="do not spell"):
        tokenizer.encode_with_offsets("one")


def test_a_space_in_place_of_another_has_no_offsets(load: Load) -> None:
    split = sequence({"type": "WhitespaceSplit"}, byte_level(add_prefix_space=True))
    tokenizer, _ = load(pre_tokenizer=split)
    assert tokenizer.decode(tokenizer.encode("\tone")) == " one"
    with pytest.raises(UnknownFormatError, match="do not spell"):
        tokenizer.encode_with_offsets("\tone")


def test_offsets_with_a_normalizer_depend_on_the_text(load: Load) -> None:
    tokenizer, _ = load(pre_tokenizer=byte_level(), normalizer={"type": "NFC"})
    for text in ("cafe", "caf\u00e9"):
        _, starts, ends = tokenizer.encode_with_offsets(text)
        assert (starts[0], ends[-1]) == (0, len(text))
    with pytest.raises(UnknownFormatError, match="do not spell"):
        tokenizer.encode_with_offsets("cafe\u0301")


def added(id_: int, content: str, *flags: str) -> dict[str, Any]:
    return {"id": id_, "content": content, **{flag: flag in flags for flag in FLAGS}}


@pytest.mark.parametrize("flag", ["lstrip", "rstrip", "single_word", "normalized"])
@pytest.mark.parametrize("special", [True, False])
def test_b72_b73_the_flags_of_an_added_token(load: Load, flag: str, special: bool) -> None:
    token = added(900, "<L>", flag, *(["special"] if special else []))
    tokenizer, published = load(pre_tokenizer=byte_level(), added_tokens=[token])
    texts = ["a  <L> b", "a <L>  b", "x <L><L> y", "a<L>b", "<L>", " <L> ", "<L>\n\n<L>", "_<L>é"]
    for text in texts:
        for trusted in (False, True):
            ids = tokenizer.encode(text, allow_special=trusted).tolist()
            assert ids == published.encode(text, trusted), text
            assert (900 in ids) <= trusted
    assert 900 in tokenizer.encode("x <L> y", allow_special=True)


def test_b76_an_added_token_goes_with_every_copy(
    load: Load, file: dict[str, Any], tmp_path: Path
) -> None:
    engine = tokenizers.Tokenizer.from_str(json.dumps({**file, "pre_tokenizer": byte_level()}))
    assert engine.add_tokens(["<new>"]) == 1
    id_ = engine.token_to_id("<new>")
    path = tmp_path / "with.json"
    engine.save(str(path))
    tokenizer = kizami.load(path)
    tokenizer.save(tmp_path / "saved")
    copies = [tokenizer, copy.copy(tokenizer), copy.deepcopy(tokenizer)]
    copies += [pickle.loads(pickle.dumps(tokenizer)), kizami.load(tmp_path / "saved")]
    for one in copies:
        ids = one.encode("a<new> b", allow_special=True).tolist()
        assert ids == engine.encode("a<new> b", add_special_tokens=False).ids
        assert id_ in ids
        assert id_ not in one.encode("a<new> b")
        assert (one.token_id("<new>"), one.token_id("<other>")) == (id_, None)


def test_b77_an_added_token_of_the_vocabulary_counts_once(load: Load, file: dict[str, Any]) -> None:
    vocab = dict(file["model"]["vocab"])
    existing = next(
        token for token in reversed(vocab) if len(token) > 2 and token.isalpha() and token.isascii()
    )
    tokens = [added(vocab[existing], existing, "special"), added(900, "<after>", "special")]
    tokenizer, published = load(pre_tokenizer=byte_level(), added_tokens=tokens)
    assert tokenizer.vocab_size == published.vocab_size == 901
    assert sorted(id_ for id_, _ in tokenizer.tokens()) == list(range(901))
    for text in (f"a{existing}b<after>", existing, existing * 2):
        for trusted in (False, True):
            ids = tokenizer.encode(text, allow_special=trusted).tolist()
            assert ids == published.encode(text, trusted)
