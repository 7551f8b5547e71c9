"""`load`: from a name, a path or a hub id to a `Tokenizer`.

Nothing is guessed. Files are known by what is in them; what Kizami does not know is refused by
name.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from kizami import _native
from kizami._cache import through_cache
from kizami._files import read_json
from kizami._hub import download
from kizami._load_files import FILES, Given, load_file, load_files
from kizami._load_kimi import CONFIG, RANKS, is_kimi, load_kimi
from kizami._tokenizer import BUNDLED, Tokenizer
from kizami.errors import (
    InputTypeError,
    SourceNotFoundError,
    UnknownFormatError,
    VocabularyError,
)

__all__ = ["load"]

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
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    normalizer: Literal["NFC", "NFD", "NFKC", "NFKD"] | None = None,
) -> Tokenizer:
    """The tokenizer of a model.

    Args:
        source: A bundled name ("kimi-k3", "kimi-k2", "kimi-k2.5": in milliseconds; "o200k_base",
            "o200k_harmony", "gpt-oss", "cl100k_base": in milliseconds from the second load on); a
            file, or a directory that holds one: `tokenizer.json`, `tekken.json`, a rank file
            (`tiktoken.model`, `*.tiktoken`), or what `Tokenizer.save` wrote; plain or compressed by
            gzip; or a hub id "org/name" (needs the extra `hub`). Names are tried in this order.
        revision: Branch, tag or commit of the hub repository.
        token: Hub access token, as `huggingface_hub` takes it.
        local_files_only: Use only what the hub cache already holds.
        pattern: The split pattern of a rank file, which does not say it itself. Not needed for the
            Kimi line, nor beside an `encoding.json` (`pat_str`, `special_tokens`, `normalizer`).
        special_tokens: Control tokens of a rank file, name to id; needs `pattern`.
        normalizer: The Unicode normalization that comes before a rank file's pattern, as Qwen's
            does; needs `pattern`.

    Raises:
        SourceNotFoundError: There is no such name, path or repository.
        UnknownFormatError: The files are there, and say nothing that Kizami can read exactly: no
            byte-level BPE, or a rank file without a pattern.
        VocabularyError: A file is damaged; `.path`, and `.line` where one line is at fault.
        MissingExtraError: A hub id without the extra `hub`.

    >>> import kizami
    >>> kizami.load("kimi-k3").vocab_size
    163840
    """
    if isinstance(source, str) and source in _native.bundled_names():
        return _load_bundled(source)
    given = Given.of(pattern, special_tokens, normalizer)
    if not isinstance(revision, (str, type(None))):
        raise InputTypeError(f"revision must be str, not {type(revision).__name__}")
    try:
        path = Path(source)
    except TypeError:
        kind = type(source).__name__
        raise InputTypeError(f"source must be a name or a path, not {kind}") from None
    # An empty name would be the current directory.
    if os.fspath(source) and _is(path, "is_dir"):
        return _load_directory(path, path.resolve().name, given)
    if _is(path, "is_file"):
        if path.name in (RANKS, CONFIG) and given is None and _is_kimi_folder(path.parent):
            return load_kimi(path.parent, path.parent.resolve().name)
        return load_file(path, path.parent.resolve().name, given)
    if isinstance(source, str) and _HUB_ID.fullmatch(source):
        directory = download(source, revision, token, local_files_only)
        return _load_directory(directory, source, given)
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
            _bundled[name] = _open_bundled(name)
        return _bundled[name]


def _open_bundled(name: str) -> Tokenizer:
    digest, eos_ids = _native.bundled_facts(name)
    if digest == _native.KIMI_RANK_FILE_SHA256:
        return Tokenizer(_native.Tokenizer.bundled(name), name, digest)
    # Only ranks come with the wheel: the first load makes tables of them.
    digest = hashlib.sha256(f"{BUNDLED}{name} {digest}".encode()).hexdigest()
    native = through_cache(digest, None, lambda: _native.Tokenizer.bundled(name))
    return Tokenizer(native.with_eos_ids(eos_ids), name, BUNDLED + name)


def _is_kimi_folder(directory: Path) -> bool:
    """Whether a folder is one of Moonshot's: then its rank file comes first, as the model's own."""
    if not (directory / RANKS).is_file():
        return False
    config = read_json(directory / CONFIG)
    return config is None or is_kimi(config) or not (directory / "encoding.json").is_file()


def _load_directory(directory: Path, name: str, given: Given | None) -> Tokenizer:
    if given is None and _is_kimi_folder(directory):
        return load_kimi(directory, name)
    tokenizer = load_files(directory, name, given)
    if tokenizer is not None:
        return tokenizer
    found = sorted(p.name for p in directory.iterdir() if p.suffix in (".json", ".model", ".gz"))
    found[5:] = ["…"] if len(found) > 5 else []
    raise UnknownFormatError(
        f"{directory} has no tokenizer that Kizami reads "
        f"(it has: {', '.join(found) or 'no .json or .model file'}); "
        f"Kizami reads {', '.join(FILES)}",
        source=str(directory),
    )


def unpickle(name: str, fingerprint: str, state: Any) -> Tokenizer:
    """Rebuilds a pickled tokenizer: of a bundled vocabulary by its control tokens, else whole."""
    if isinstance(state, bytes):
        return Tokenizer.from_bytes(state)
    bundled_name = fingerprint.removeprefix(BUNDLED)
    if bundled_name != fingerprint and bundled_name in _native.bundled_names():
        return _load_bundled(bundled_name)
    if fingerprint != _native.KIMI_RANK_FILE_SHA256:
        raise VocabularyError("this build of kizami lacks the vocabulary of the pickled tokenizer")
    controls, eos_ids, template = state
    if name in _native.bundled_names():
        bundled = _load_bundled(name)
        same = bundled._native.control_tokens() == controls and list(bundled.eos_ids) == eos_ids
        if same and template is None:
            return bundled
    shared = _native.Tokenizer.bundled(_native.bundled_names()[0])
    return Tokenizer(shared.with_control_tokens(controls, eos_ids), name, fingerprint, template)
