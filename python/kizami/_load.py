"""`load`: from a name, a path or a hub id to a `Tokenizer`.

Nothing is guessed. A directory says by its own `tokenizer_config.json` whose tokenizer it holds;
what Kizami does not know is refused by name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from pathlib import Path
from typing import Any, Literal

from kizami import _native
from kizami._tokenizer import Tokenizer
from kizami.errors import (
    InputTypeError,
    MissingExtraError,
    SourceNotFoundError,
    UnknownFormatError,
    VocabularyError,
)

__all__ = ["load"]

_RANKS = "tiktoken.model"
_CONFIG = "tokenizer_config.json"
_GENERATION = "generation_config.json"
# Modules of Moonshot's remote code whose class reads a rank file and has 256 control ids behind it.
_KIMI_MODULES = ("tokenization_kimi", "tokenization_moonshot")
_KIMI_CONTROLS = 256
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")

_lock = threading.Lock()
_bundled: dict[str, Tokenizer] = {}


def _renew_lock() -> None:
    """A child forked while another thread was loading must not wait for that thread."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def load(
    source: str | os.PathLike[str],
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    local_files_only: bool = False,
) -> Tokenizer:
    """The tokenizer of a model.

    Args:
        source: A bundled name ("kimi-k3", "kimi-k2", "kimi-k2.5": offline, in milliseconds); a
            directory with `tiktoken.model` and `tokenizer_config.json`, or the path of either; or a
            hub id "org/name" (needs the extra `hub`). Names are tried in this order.
        revision: Branch, tag or commit of the hub repository.
        token: Hub access token, as `huggingface_hub` takes it.
        local_files_only: Use only what the hub cache already holds.

    Raises:
        SourceNotFoundError: There is no such name, path or repository.
        UnknownFormatError: The files are there, and say nothing that Kizami can read exactly.
        VocabularyError: A file is damaged; `.path`, and `.line` where one line is at fault.
        MissingExtraError: A hub id without the extra `hub`.

    >>> import kizami
    >>> kizami.load("kimi-k3").vocab_size
    163840
    """
    if isinstance(source, str) and source in _native.bundled_names():
        return _load_bundled(source)
    try:
        path = Path(source)
    except TypeError:
        kind = type(source).__name__
        raise InputTypeError(f"source must be a name or a path, not {kind}") from None
    # An empty name would be the current directory.
    if os.fspath(source) and _is(path, "is_dir"):
        return _load_directory(path, path.resolve().name)
    if _is(path, "is_file"):
        return _load_file(path)
    if isinstance(source, str) and _HUB_ID.fullmatch(source):
        directory = _download(source, revision, token, local_files_only)
        return _load_directory(directory, source)
    name = os.fspath(source)
    if isinstance(name, str) and name and (path.is_absolute() or name.startswith((".", "~"))):
        raise SourceNotFoundError(f"there is no directory or file {name!r}", source=name)
    bundled = ", ".join(_native.bundled_names())
    raise SourceNotFoundError(
        f"no tokenizer {name!r}: not a bundled name ({bundled}), "
        "not a directory or file here, not a hub id 'org/name'",
        source=name,
    )


def _is(path: Path, kind: Literal["is_dir", "is_file"]) -> bool:
    """A path that the system refuses to look at (a name too long, say) is neither."""
    try:
        return bool(getattr(path, kind)())
    except (OSError, ValueError):
        return False


def _load_bundled(name: str) -> Tokenizer:
    with _lock:
        if name not in _bundled:
            native = _native.Tokenizer.bundled(name)
            _bundled[name] = Tokenizer(
                native, name, _native.KIMI_RANK_FILE_SHA256, _native.KIMI_PATTERN
            )
        return _bundled[name]


def _load_file(path: Path) -> Tokenizer:
    if path.name in (_RANKS, _CONFIG):
        return _load_directory(path.parent, path.parent.resolve().name)
    raise UnknownFormatError(
        f"{path} is no {_RANKS}; give a directory with {_RANKS} and {_CONFIG}", source=str(path)
    )


def _load_directory(directory: Path, name: str) -> Tokenizer:
    ranks = directory / _RANKS
    if not ranks.is_file():
        found = sorted(p.name for p in directory.iterdir() if p.suffix in (".json", ".model"))
        found[5:] = ["…"] if len(found) > 5 else []
        raise UnknownFormatError(
            f"{directory} has no {_RANKS} "
            f"(it has: {', '.join(found) or 'no .json or .model file'}); "
            f"Kizami reads directories with {_RANKS} and {_CONFIG}",
            source=str(directory),
        )
    config = _read_json(directory / _CONFIG)
    if config is None:
        raise UnknownFormatError(
            f"{directory} has no {_CONFIG}, which names the control tokens; "
            f"put the model's file beside {_RANKS}",
            source=str(directory),
        )
    _check_kimi(config, directory)
    base, fingerprint = _ordinary(ranks)
    controls = _control_tokens(config, base.ordinary_len, directory / _CONFIG)
    eos_ids = _eos_ids(directory, config, controls)
    try:
        native = base.with_control_tokens(controls, eos_ids)
    except VocabularyError as error:
        path = str(directory / _CONFIG)
        raise VocabularyError(f"{path}: {error}", path=path) from None
    return Tokenizer(native, name, fingerprint, _native.KIMI_PATTERN)


def _check_kimi(config: dict[str, Any], directory: Path) -> None:
    auto_map = config.get("auto_map")
    entry = auto_map.get("AutoTokenizer") if isinstance(auto_map, dict) else None
    slow = entry[0] if isinstance(entry, list) and entry else entry
    # Repositories may point to another one's code: "org/name--module.Class".
    module = str(slow).rpartition("--")[2].partition(".")[0]
    if module not in _KIMI_MODULES:
        stated = slow or config.get("tokenizer_class") or "nothing"
        raise UnknownFormatError(
            f"{directory / _CONFIG} names {stated} as its tokenizer; "
            f"the split pattern of a {_RANKS} is known only for "
            f"{' and '.join(_KIMI_MODULES)}, and Kizami does not guess one",
            source=str(directory),
        )


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
    generation = _read_json(directory / _GENERATION) or {}
    stated = generation.get("eos_token_id")
    if stated is not None:
        ids = stated if isinstance(stated, list) else [stated]
        for id_ in ids:
            if type(id_) is not int or not 0 <= id_ <= controls[-1][0]:
                path = str(directory / _GENERATION)
                message = f"{path}: eos_token_id {id_!r} is no token id of this vocabulary"
                raise VocabularyError(message, path=path)
        return ids
    name = config.get("eos_token")
    name = name.get("content") if isinstance(name, dict) else name
    return [id_ for id_, text, _ in controls if text == name]


def _ordinary(ranks: Path) -> tuple[_native.Tokenizer, str]:
    """The ordinary tokens of a rank file, without control tokens; and the file's SHA-256."""
    data = ranks.read_bytes()
    if data.startswith(b"version https://git-lfs"):
        message = f"{ranks} is a Git LFS pointer, not the file; run `git lfs pull` beside it"
        raise VocabularyError(message, path=str(ranks), line=1)
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


def unpickle(
    name: str,
    fingerprint: str,
    pattern: str,
    controls: list[tuple[int, str, bool]],
    eos_ids: list[int],
    ranks: bytes | None,
) -> Tokenizer:
    """Rebuilds a pickled tokenizer: by name if it is bundled here, else from the pickle."""
    if ranks is None and name in _native.bundled_names():
        bundled = _load_bundled(name)
        same_controls = bundled._native.control_tokens() == controls
        if same_controls and bundled._native.eos_ids == eos_ids:
            return bundled
    if ranks is None:
        if fingerprint != _native.KIMI_RANK_FILE_SHA256:
            raise VocabularyError(
                "this build of kizami lacks the vocabulary of the pickled tokenizer"
            )
        shared = _native.Tokenizer.bundled(_native.bundled_names()[0])
        return Tokenizer(shared.with_control_tokens(controls, eos_ids), name, fingerprint, pattern)
    native = _native.Tokenizer.from_rank_file(ranks, controls, pattern, eos_ids)
    return Tokenizer(native, name, fingerprint, pattern)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}"
        raise VocabularyError(message, path=str(path)) from None
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"{path} is no JSON: {error}", path=str(path)) from None
    if not isinstance(value, dict):
        raise VocabularyError(f"{path} must hold a JSON object", path=str(path))
    return value


def _download(
    repo: str, revision: str | None, token: str | bool | None, local_files_only: bool
) -> Path:
    try:
        import huggingface_hub
    except ImportError:
        raise MissingExtraError(
            f"there is no directory {repo!r} here; as a hub id it needs huggingface_hub "
            "(the extra `hub`): pip install 'huggingface_hub>=0.25'; "
            "or download the repository and give its path",
            extra="hub",
        ) from None
    try:
        directory = huggingface_hub.snapshot_download(
            repo,
            revision=revision,
            token=token,
            local_files_only=local_files_only,
            allow_patterns=[_RANKS, _CONFIG, _GENERATION, "tokenizer.json"],
        )
    except (OSError, ValueError) as error:
        where = "the local hub cache" if local_files_only else "the hub"
        reason = str(error).strip().partition("\n")[0].removeprefix("Got: ")
        reason = reason or type(error).__name__
        raise SourceNotFoundError(
            f"there is no directory {repo!r} here, and it cannot be had from {where}: {reason}; "
            "check the id and the connection, or download the repository and give its path",
            source=repo,
        ) from error
    return Path(directory)
