"""The model's files, written for rivals from the tokens that Kizami holds.

Each engine reads the form that it knows: the rank file, or `tokenizer.json` with every merge that
the ranks imply. All 256 control names are told to all of them.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kizami
from kizami import _native
from kizami._export import byte_letters
from kizami.errors import InvalidValueError

__all__ = ["copy_tokenizer_json", "write_model_files"]


def write_model_files(folder: Path, tokenizer_json: bool = True) -> None:
    """Fill the folder; `tokenizer_json` takes some seconds and only two engines need it."""
    tokenizer = kizami.load("kimi-k3")
    controls = dict(sorted(tokenizer.control_tokens.items(), key=lambda item: item[1]))
    ids = set(controls.values())
    ranks = {token: id_ for id_, token in tokenizer.tokens() if id_ not in ids}
    lines = (b"%s %d\n" % (b64encode(token), rank) for token, rank in ranks.items())
    (folder / "tiktoken.model").write_bytes(b"".join(lines))
    added = [_added(name, id_) for name, id_ in controls.items()]
    _write(folder / "facts.json", {"pattern": _native.KIMI_PATTERN, "controls": controls})
    _write(
        folder / "tokenizer_config.json",
        {
            "added_tokens_decoder": {str(token["id"]): token for token in added},
            "tokenizer_class": "TikTokenTokenizer",
            "auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]},
        },
    )
    if tokenizer_json:
        _write(folder / "tokenizer.json", _merge_list(ranks, added))


def copy_tokenizer_json(source: Path, folder: Path) -> None:
    """Another model's `tokenizer.json`, which may be compressed by gzip, into the folder.

    Raises:
        InvalidValueError: There is none.
    """
    for name, read in (("tokenizer.json", Path.read_bytes), ("tokenizer.json.gz", _unzipped)):
        if (source / name).exists():
            (folder / "tokenizer.json").write_bytes(read(source / name))
            return
    raise InvalidValueError(
        f"{source} has no tokenizer.json; give a folder with one folder for each model",
        source=str(source),
    )


def _unzipped(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


def _write(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


def _added(name: str, id_: int) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": id_, "content": name, **flags, "special": True}


def _merge_list(ranks: dict[bytes, int], added: list[dict[str, Any]]) -> dict[str, Any]:
    letters = dict(enumerate(byte_letters()))

    def spelled(token: bytes) -> str:
        return token.decode("latin-1").translate(letters)

    level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    split = {
        "type": "Split",
        "pattern": {"Regex": _native.KIMI_PATTERN},
        "behavior": "Isolated",
        "invert": False,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [split, {**level, "trim_offsets": True}],
        },
        "post_processor": {**level, "trim_offsets": False},
        "decoder": {**level, "trim_offsets": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": {spelled(token): rank for token, rank in ranks.items()},
            "merges": [[spelled(left), spelled(right)] for left, right in _merges(ranks)],
        },
    }


def _merges(ranks: dict[bytes, int]) -> Iterator[tuple[bytes, bytes]]:
    """Every way to put a token together from two others, by rank of the token."""
    for token in sorted(ranks, key=ranks.__getitem__):
        ways = ((token[:at], token[at:]) for at in range(1, len(token)))
        pairs = [(left, right) for left, right in ways if left in ranks and right in ranks]
        yield from sorted(pairs, key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
