"""Pairs of tokenizers to compare: `tokenizers`, and the drop-in, from the same file.

`small` writes a `tokenizer.json` whose vocabulary can be checked by hand; `model` reads those of
published models. `seen` is all that an encoding shows.
"""

from __future__ import annotations

import functools
import gzip
import json
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from kizami._export import byte_letters
from kizami.compat import tokenizers as ours
from kizami.errors import KizamiError, UnknownFormatError

from tests.shared import shared_path

theirs: Any = pytest.importorskip("tokenizers", reason="needs the package tokenizers")

MERGES = [
    "Ġ a", "Ġ b", "t h", "th e", "Ġ the", "a b", "ab c", "Ġ Ġ", "ĠĠ Ġ", "e r", "Ġ er", "Ã ©",
    "h e", "l l", "he ll", "hell o", "Ġ hello", "1 2", "ð Ł", "ðŁ İ", "ðŁİ ī",
]  # fmt: skip
BOS, EOS, CLS, SEP = "<s>", "</s>", "<cls>", "<sep>"
_THEIR_ERRORS = (Exception, ValueError, TypeError, OverflowError)
SPECIAL = [BOS, EOS, CLS, SEP]

COLUMNS = (
    "ids",
    "tokens",
    "offsets",
    "type_ids",
    "attention_mask",
    "special_tokens_mask",
    "word_ids",
    "sequence_ids",
    "n_sequences",
)


class Pair(NamedTuple):
    """The same tokenizer, twice."""

    theirs: Any
    ours: ours.Tokenizer

    def each(self, call: Callable[[Any], Any]) -> tuple[Any, Any]:
        """What a call gives for either."""
        return call(self.theirs), call(self.ours)


def vocabulary() -> dict[str, int]:
    names = [*byte_letters(), *(merge.replace(" ", "") for merge in MERGES)]
    return {name: id_ for id_, name in enumerate(names)}


def small(
    *,
    processor: Any = None,
    added: list[dict[str, Any]] | None = None,
    normalizer: Any = None,
    **parts: Any,
) -> str:
    """A `tokenizer.json`; special tokens come first among the added."""
    vocab = vocabulary()
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    tokens = [{"content": name, "special": True} for name in SPECIAL] + (added or [])
    listed = [{"id": len(vocab) + i, **flags, **token} for i, token in enumerate(tokens)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    file = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": listed,
        "normalizer": normalizer,
        "pre_tokenizer": {**byte_level, "use_regex": True},
        "post_processor": processor,
        "decoder": {**byte_level, "use_regex": True},
        "model": {"type": "BPE", "vocab": vocab, "merges": MERGES},
        **parts,
    }
    return json.dumps(file, ensure_ascii=False)


def both(text: str) -> Pair:
    return Pair(theirs.Tokenizer.from_str(text), ours.Tokenizer.from_str(text))


def _special(name: str, type_id: int = 0) -> dict[str, Any]:
    return {"SpecialToken": {"id": name, "type_id": type_id}}


def _sequence(name: str, type_id: int = 0) -> dict[str, Any]:
    return {"Sequence": {"id": name, "type_id": type_id}}


def template(single: list[Any], pair: list[Any]) -> dict[str, Any]:
    vocab = len(vocabulary())
    tokens = {
        name: {"id": name, "ids": [vocab + i], "tokens": [name]} for i, name in enumerate(SPECIAL)
    }
    # One that stands for two tokens.
    tokens["both"] = {"id": "both", "ids": [vocab, vocab + 2], "tokens": [BOS, CLS]}
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": pair,
        "special_tokens": tokens,
    }


def byte_level(trim: bool, spares: bool) -> dict[str, Any]:
    return {"type": "ByteLevel", "trim_offsets": trim, "add_prefix_space": spares}


_BOS = template(
    [_special(BOS), _sequence("A")],
    [_special(BOS), _sequence("A"), _special(BOS, 1), _sequence("B", 1)],
)
_ENDS = {"sep": [SEP, 280], "cls": [CLS, 279]}
PROCESSORS: dict[str, Any] = {
    "none": None,
    "plain": byte_level(False, True),
    "trim": byte_level(True, False),
    "trim-but-first": byte_level(True, True),
    "bos": _BOS,
    "many": template(
        [_special("both"), _sequence("A", 2), _special(EOS, 3)],
        [_special(CLS), _sequence("B", 1), _special(SEP, 4), _sequence("A"), _special(EOS)],
    ),
    "roberta": {"type": "RobertaProcessing", **_ENDS, "trim_offsets": True, "add_prefix_space": 0},
    "bert": {"type": "BertProcessing", **_ENDS},
    "trim-bos": {"type": "Sequence", "processors": [byte_level(True, True), _BOS]},
    "twice": {"type": "Sequence", "processors": [byte_level(True, False), byte_level(True, True)]},
}
PROCESSORS["roberta"]["add_prefix_space"] = False


@functools.cache
def processed(name: str) -> Pair:
    """The small tokenizer with one of the post-processors; settings are put back by the user."""
    return both(small(processor=PROCESSORS[name]))


def reset(pair: Pair) -> Pair:
    for tokenizer in pair:
        tokenizer.no_truncation()
        tokenizer.no_padding()
    return pair


def file_of(name: str) -> bytes:
    path = shared_path("data", "tokenizers", name, "tokenizer.json.gz")
    return gzip.decompress(path.read_bytes())


@functools.cache
def model(name: str) -> Pair:
    data = file_of(name)
    return Pair(theirs.Tokenizer.from_buffer(data), ours.Tokenizer.from_buffer(data))


def seen(encoding: Any, columns: tuple[str, ...] = COLUMNS) -> dict[str, Any]:
    """All that an encoding shows, and what overflows."""
    values = {column: getattr(encoding, column) for column in columns}
    values["overflowing"] = [seen(part, columns) for part in encoding.overflowing]
    return values


def is_aligned(encoding: Any) -> bool:
    """Whether the drop-in knows offsets: not of text that the model normalizes."""
    try:
        return encoding.offsets is not None
    except UnknownFormatError:
        return False


def tried(call: Callable[[], Any]) -> Any:
    """What a call gives, or `Refused`: the original panics, which is no `Exception`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    except BaseException as error:
        on_purpose = isinstance(error, KizamiError) or type(error) in _THEIR_ERRORS
        if not on_purpose and type(error).__name__ != "PanicException":
            raise
        return Refused(error)


class Refused:
    """An error; all are alike."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Refused)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"Refused({self.error!r})"
