"""A tokenizer in the words of other libraries: `tokenizer.json` and rank files."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np

from kizami import _native
from kizami.errors import UnknownFormatError

__all__ = [
    "byte_letters",
    "tiktoken_file",
    "tiktoken_pattern",
    "tiktoken_ranks",
    "tokenizer_json",
    "write_ranks",
]

_BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": False,
}


def byte_letters() -> list[str]:
    """The printable character that stands for each byte, as GPT-2 chose them."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(rest)) for byte in range(256)]


def tokenizer_json(native: _native.Tokenizer) -> str:
    """A `tokenizer.json` that the package `tokenizers` loads."""
    letters = byte_letters()
    ids = native.ids_by_rank().tolist()
    names = {}
    for id_ in ids:
        token = native.token_bytes(id_)
        assert token is not None
        names[id_] = "".join([letters[byte] for byte in token])
    added = json.loads(native.added_tokens())
    vocab = {names[id_]: id_ for id_ in sorted(ids)}
    # The package gives added tokens ids of its own, unless the vocabulary has them.
    vocab.update((token["content"], token["id"]) for token in added)
    merges = native.merges().reshape(-1, 3).tolist()
    split, normalizer = (json.loads(part) for part in native.description())
    file = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": _pre_tokenizer(split),
        "post_processor": None,
        "decoder": _BYTE_LEVEL,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": native.whole_tokens and not native.whole_is_merged,
            "vocab": vocab,
            "merges": [[names[left], names[right]] for left, right, _ in merges],
        },
    }
    return json.dumps(file, ensure_ascii=False)


def _pre_tokenizer(split: Any) -> Any:
    if not isinstance(split, str):
        return split
    # What a rank file's pattern does not match is dropped: keep the matches, remove the rest.
    matches = {
        "type": "Split",
        "pattern": {"Regex": _to_oniguruma(split)},
        "behavior": "Removed",
        "invert": True,
    }
    return {"type": "Sequence", "pretokenizers": [matches, _BYTE_LEVEL]}


def _to_oniguruma(pattern: str) -> str:
    """A pattern of `tiktoken` as the regex engine of `tokenizers` reads it."""
    # There, a plus behind a counted repeat repeats it, instead of forbidding to go back into it; at
    # the end of an alternative there is nothing to go back for.
    pattern = re.sub(r"(\{\d+(?:,\d*)?\})\+(?=\||$)", r"\1", pattern)
    # And a dollar is the end of any line.
    return re.sub(r"(?<!\\)\$(?=\||\)|$)", r"\\z", pattern)


def tiktoken_file(native: _native.Tokenizer, name: str) -> bytes:
    """A rank file that `tiktoken` loads, ids as ranks."""
    tiktoken_pattern(native, name)
    return write_ranks(tiktoken_ranks(native))


def write_ranks(ranks: Mapping[bytes, int]) -> bytes:
    """The lines of a rank file, in order of rank."""
    in_order = sorted(ranks.items(), key=lambda item: item[1])
    return b"".join([b64encode(token) + b" %d\n" % rank for token, rank in in_order])


def tiktoken_ranks(native: _native.Tokenizer) -> dict[bytes, int]:
    """The ordinary tokens that can come out of text, and their ids, in order of id."""
    ids = native.ids_by_rank()
    if not native.whole_tokens:
        # Elsewhere a whole pre-token is that token even where no merge makes it; here it is not.
        made = set(native.merges().reshape(-1, 3)[:, 2].tolist())
        single = [len(native.token_bytes(id_) or b"") == 1 for id_ in ids.tolist()]
        ids = ids[[one or id_ in made for one, id_ in zip(single, ids.tolist(), strict=True)]]
    ranks = {}
    for id_ in np.sort(ids).tolist():
        token = native.token_bytes(id_)
        assert token is not None
        ranks[token] = id_
    return ranks


def tiktoken_pattern(native: _native.Tokenizer, name: str) -> str:
    """The split pattern of a tokenizer that can be a tiktoken encoding.

    Raises:
        UnknownFormatError: It cannot.
    """
    split, normalizer = (json.loads(part) for part in native.description())

    def refuse(why: str) -> UnknownFormatError:
        return UnknownFormatError(
            f"{name!r} cannot be a tiktoken encoding: {why}; use to_tokenizer_json", source=name
        )

    if not isinstance(split, str) and any(part.get("add_prefix_space") for part in _steps(split)):
        raise refuse("a space is put before its text, and tiktoken has no step for that")
    pattern = split if isinstance(split, str) else _one_pattern(split)
    if pattern is None:
        raise refuse("its text is split in several steps, and tiktoken knows one pattern")
    if normalizer is not None:
        raise refuse("its text is normalized first, and tiktoken has no step for that")
    if (np.diff(native.merges().reshape(-1, 3)[:, 2].astype(np.int64)) < 0).any():
        raise refuse("its merges are not in the order of the ids")
    return pattern


def _steps(split: Any) -> list[Any]:
    """What a `pre_tokenizer` does, one after the other."""
    if split.get("type") != "Sequence":
        return [split]
    return [step for part in split["pretokenizers"] for step in _steps(part)]


def _one_pattern(split: Any) -> str | None:
    """The single pattern of a `pre_tokenizer`, if that is all it has."""
    parts = _steps(split)
    patterns = [p["pattern"].get("Regex") for p in parts if p.get("type") == "Split"]
    if any(p.get("type") not in ("Split", "ByteLevel") for p in parts):
        return None
    byte_level = [p for p in parts if p.get("type") == "ByteLevel"]
    if any(p.get("use_regex", True) for p in byte_level):
        patterns.append(_native.GPT2_PATTERN)
    return patterns[0] if len(patterns) == 1 else None
