"""Tokenizers of the Kimi line from Moonshot's own files."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from kizami import _native
from kizami._files import GENERATION, read_bytes, read_json
from kizami._templates import read_template
from kizami._tokenizer import Tokenizer
from kizami.errors import UnknownFormatError, VocabularyError

__all__ = ["CONFIG", "RANKS", "is_kimi", "load_kimi", "ordinary_tokens"]

RANKS = "tiktoken.model"
CONFIG = "tokenizer_config.json"
# Modules of Moonshot's remote code whose class reads a rank file and has 256 control ids behind it.
_KIMI_MODULES = ("tokenization_kimi", "tokenization_moonshot")
_KIMI_CONTROLS = 256


def load_kimi(directory: Path, name: str) -> Tokenizer:
    """The tokenizer of a directory that holds `tiktoken.model`."""
    ranks = directory / RANKS
    config = read_json(directory / CONFIG)
    if config is None:
        raise UnknownFormatError(
            f"{directory} has no {CONFIG}, which names the control tokens; "
            f"put the model's file beside {RANKS}",
            source=str(directory),
        )
    if not is_kimi(config):
        stated = _stated(config)
        raise UnknownFormatError(
            f"{directory / CONFIG} names {stated} as its tokenizer; "
            f"the split pattern of a {RANKS} is known only for "
            f"{' and '.join(_KIMI_MODULES)}, and Kizami does not guess one: give it as `pattern`",
            source=str(directory),
        )
    base, fingerprint = ordinary_tokens(ranks)
    controls = _control_tokens(config, base.ordinary_len, directory / CONFIG)
    eos_ids = _eos_ids(directory, config, controls)
    try:
        native = base.with_control_tokens(controls, eos_ids)
    except VocabularyError as error:
        path = str(directory / CONFIG)
        raise VocabularyError(f"{path}: {error}", path=path) from None
    return Tokenizer(native, name, fingerprint, read_template(directory, config))


def is_kimi(config: dict[str, Any]) -> bool:
    """Whether the tokenizer that a `tokenizer_config.json` names is one of the Kimi line."""
    # Repositories may point to another one's code: "org/name--module.Class".
    return _stated(config).rpartition("--")[2].partition(".")[0] in _KIMI_MODULES


def _stated(config: dict[str, Any]) -> str:
    auto_map = config.get("auto_map")
    entry = auto_map.get("AutoTokenizer") if isinstance(auto_map, dict) else None
    slow = entry[0] if isinstance(entry, list) and entry else entry
    return str(slow or config.get("tokenizer_class") or "nothing")


def _control_tokens(config: dict[str, Any], first: int, path: Path) -> list[tuple[int, str, bool]]:
    """The 256 control tokens: named by `added_tokens_decoder`, the rest by their number."""
    tokens = {
        id_: (id_, f"<|reserved_token_{id_}|>", False)
        for id_ in range(first, first + _KIMI_CONTROLS)
    }
    listed = config.get("added_tokens_decoder", {})
    if not isinstance(listed, dict):
        raise VocabularyError(f"{path}: added_tokens_decoder must be an object", path=str(path))
    for key, entry in listed.items():
        content = entry.get("content") if isinstance(entry, dict) else None
        if (
            not key.isdecimal()
            or len(key) > 10
            or int(key) not in tokens
            or not isinstance(content, str)
        ):
            raise VocabularyError(
                f"{path}: added_tokens_decoder[{key!r}] is no control token; "
                f"ids must be from {first} to {first + _KIMI_CONTROLS - 1}, with a text as content",
                path=str(path),
            )
        try:
            content.encode()
        except UnicodeEncodeError:
            raise VocabularyError(
                f"{path}: the name of control token {key} holds a lone surrogate, no Unicode text",
                path=str(path),
            ) from None
        tokens[int(key)] = (int(key), content, bool(entry.get("special", False)))
    return list(tokens.values())


def _eos_ids(
    directory: Path, config: dict[str, Any], controls: list[tuple[int, str, bool]]
) -> list[int]:
    generation = read_json(directory / GENERATION) or {}
    stated = generation.get("eos_token_id")
    if stated is not None:
        ids = stated if isinstance(stated, list) else [stated]
        for id_ in ids:
            if type(id_) is not int or not 0 <= id_ <= controls[-1][0]:
                path = str(directory / GENERATION)
                message = f"{path}: eos_token_id {id_!r} is no token id of this vocabulary"
                raise VocabularyError(message, path=path)
        return ids
    name = config.get("eos_token")
    name = name.get("content") if isinstance(name, dict) else name
    return [id_ for id_, text, _ in controls if text == name]


def ordinary_tokens(ranks: Path) -> tuple[_native.Tokenizer, str]:
    """The ordinary tokens of a rank file, without control tokens; and the file's SHA-256."""
    data = read_bytes(ranks)
    fingerprint = hashlib.sha256(data).hexdigest()
    if fingerprint == _native.KIMI_RANK_FILE_SHA256:
        # The very file that is bundled: share its tables.
        return _native.Tokenizer.bundled(_native.bundled_names()[0]), fingerprint
    try:
        native = _native.Tokenizer.from_rank_file(data, [], _native.KIMI_PATTERN, [])
    except VocabularyError as error:
        line = getattr(error, "line", 0)
        raise VocabularyError(f"{ranks}: {error}", path=str(ranks), line=line) from None
    return native, fingerprint
