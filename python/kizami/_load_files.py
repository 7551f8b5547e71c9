"""Tokenizers from files of other makers, known by what is in them.

| file | holds | known by |
| --- | --- | --- |
| `tokenizer.json` | everything | an object with `model` |
| `tekken.json` | everything | an object with `config` and `vocab` |
| rank file | ranks alone | lines of base64, a space and a number |
| what `Tokenizer.save` wrote | everything | its first eight bytes |
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kizami import _native
from kizami._about import About
from kizami._cache import find_image, is_kept, keep_image, through_cache
from kizami._files import GENERATION, MAX_BYTES, read_json, read_raw, unpack
from kizami._templates import read_template
from kizami._tokenizer import Tokenizer
from kizami.errors import InputTypeError, InvalidValueError, UnknownFormatError, VocabularyError

__all__ = ["FILES", "Given", "load_file", "load_files", "ranks_to_native"]

FILES = ("tokenizer.json", "tekken.json", "*.tiktoken", "tiktoken.model", "tokenizer.model")
_SAVED = b"KIZAMI-T"
_RANK_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} \d{1,8}\r?\n")
_TEKKEN = re.compile(rb'"default_num_special_tokens"\s*:')
_TEKKEN_WITHIN = 4096
# What other programs put in front of a sound file, or in its place.
_ODD_STARTS = {
    b"\xef\xbb\xbf": "begins with a byte order mark; save it as UTF-8 without one",
    b"\xff\xfe": "is UTF-16 text; save it as UTF-8",
    b"<": "is a web page, no tokenizer; download the file itself (a gated model needs a token)",
}
_NORMALIZERS = ("NFC", "NFD", "NFKC", "NFKD")


@dataclass(frozen=True)
class Given:
    """What a caller says of a rank file."""

    pattern: str
    special_tokens: Mapping[str, int]
    normalizer: str | None

    @staticmethod
    def of(
        pattern: str | None, special_tokens: Mapping[str, int] | None, normalizer: str | None
    ) -> Given | None:
        """What was said, checked; None if nothing was."""
        if pattern is None:
            if special_tokens is not None or normalizer is not None:
                raise InvalidValueError("special_tokens and normalizer need a pattern beside them")
            return None
        if not isinstance(pattern, str):
            raise InputTypeError(f"pattern must be str, not {type(pattern).__name__}")
        if not _is_unicode(pattern):
            raise InvalidValueError(f"pattern {pattern!a} holds a lone surrogate, no Unicode text")
        if normalizer is not None and normalizer not in _NORMALIZERS:
            known = ", ".join(_NORMALIZERS)
            raise InvalidValueError(f"normalizer must be one of {known}, not {normalizer!r}")
        if not isinstance(special_tokens, (Mapping, type(None))):
            kind = type(special_tokens).__name__
            raise InputTypeError(f"special_tokens must map names to ids, not be of type {kind}")
        names = dict(special_tokens or {})
        for name, id_ in names.items():
            if not isinstance(name, str) or type(id_) is not int or not 0 <= id_ < 1 << 20:
                raise InvalidValueError(
                    f"special_tokens must map names to ids below {1 << 20}, not {name!r} to {id_!r}"
                )
            if not _is_unicode(name):
                raise InvalidValueError(
                    f"the name {name!a} in special_tokens holds a lone surrogate, no Unicode text"
                )
        return Given(pattern, names, normalizer)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def load_files(directory: Path, name: str, given: Given | None) -> Tokenizer | None:
    """The tokenizer of a directory, or None if it has no file that could hold one."""
    for pattern in FILES[2:] if given else FILES:
        for candidate in sorted([*directory.glob(pattern), *directory.glob(pattern + ".gz")]):
            if candidate.is_file():
                return load_file(candidate, name, given)
    return None


def load_file(path: Path, name: str, given: Given | None) -> Tokenizer:
    """The tokenizer that a file holds."""
    with path.open("rb") as file:
        head = file.read(8)
        size = os.fstat(file.fileno()).st_size
    if head == _SAVED:
        # Mapped, not read.
        return Tokenizer.open(path)
    start = _start(path, head)
    if start.lstrip()[:1] != b"{":
        # Ranks, as far as can be seen.
        given = given or _beside(path)
    found = _find(path, given) if is_kept(size) else None
    if found is None:
        raw = read_raw(path)
        data = unpack(raw, path)
        try:
            if data.startswith(_SAVED):
                return Tokenizer.from_bytes(data)
            found = _read(data, path, given)
        except (VocabularyError, UnknownFormatError) as error:
            raise _at(path, error) from None
        if is_kept(len(raw)):
            # Of the bytes that were read: the file may be another by now.
            keep_image(_key(_native.digest(raw), given), *found)
    native, fingerprint = found
    about = _about(native, path, name, fingerprint)
    # A template writes names of control tokens, which do not count in text of a Tekken model.
    template = None if _TEKKEN.search(start) else about.template
    return Tokenizer(native.with_eos_ids(about.eos_ids), name, about.fingerprint, template)


def _start(path: Path, head: bytes) -> bytes:
    """The first bytes of what a file holds, plain or compressed, which begins with `head`."""
    opened = gzip.open if head.startswith(b"\x1f\x8b") else open
    try:
        with opened(path, "rb") as file:
            return file.read(_TEKKEN_WITHIN)
    except (OSError, EOFError, zlib.error):
        # Whoever reads it all will say what is wrong.
        return b""


def _key(digest: str, given: Given | None) -> str:
    return _native.digest(f"{digest} {given}".encode())


def _find(path: Path, given: Given | None) -> tuple[_native.Tokenizer, str] | None:
    """The tokenizer of a file from the cache, and its fingerprint."""
    try:
        digest = _native.digest_file(path, MAX_BYTES)
    except OSError:
        # Whoever reads it will say what is wrong.
        return None
    return find_image(_key(digest, given))


def _at(path: Path, error: VocabularyError | UnknownFormatError) -> Exception:
    """The same error with the path in front."""
    if str(path) in str(error):
        return error
    if isinstance(error, VocabularyError):
        line = getattr(error, "line", 0)
        return VocabularyError(f"{path}: {error}", path=str(path), line=line)
    return UnknownFormatError(f"{path}: {error}", source=str(path))


def _read(data: bytes, path: Path, given: Given | None) -> tuple[_native.Tokenizer, str]:
    """What the content of a file means, and its fingerprint."""
    if data.lstrip()[:1] == b"{":
        return _from_json(data)
    if _RANK_LINE.match(data):
        return _from_ranks(data, path, given), _key(_native.digest(data), given)
    raise _unknown(data, path)


def _unknown(data: bytes, path: Path) -> UnknownFormatError:
    if data[:1] == b"\n" and b"\x0a" in data[:16]:
        return UnknownFormatError(
            f"{path} is a SentencePiece model, no byte-level BPE; use the package "
            "`sentencepiece` or `tokenizers` for it",
            source=str(path),
        )
    what = next((what for start, what in _ODD_STARTS.items() if data.startswith(start)), None)
    if what is not None:
        return UnknownFormatError(f"{path} {what}", source=str(path))
    return UnknownFormatError(
        f"{path} is none of the files that Kizami reads: {', '.join(FILES)}", source=str(path)
    )


def _from_json(data: bytes) -> tuple[_native.Tokenizer, str]:
    # The native reader parses the vocabulary; here only the kind is wanted.
    if _TEKKEN.search(data[:_TEKKEN_WITHIN]):
        return _native.Tokenizer.from_tekken(data), _native.digest(data)
    return _native.Tokenizer.from_tokenizer_json_with_digest(data)


def _from_ranks(data: bytes, path: Path, given: Given | None) -> _native.Tokenizer:
    if given is None:
        raise UnknownFormatError(
            f"{path} holds ranks alone; Kizami does not guess how the model splits text: give "
            "`pattern` (and `special_tokens`), or put the model's tokenizer.json beside it",
            source=str(path),
        )
    return _build(data, given)


def _build(data: bytes, given: Given, gaps: bool = False) -> _native.Tokenizer:
    normalizer = json.dumps({"type": given.normalizer}) if given.normalizer else "null"
    controls = [(id_, text, True) for text, id_ in given.special_tokens.items()]
    return _native.Tokenizer.from_rank_file(
        data, controls, given.pattern, [], normalizer, cuts=False, gaps=gaps
    )


def ranks_to_native(
    data: bytes, given: Given, *, gaps: bool = False
) -> tuple[_native.Tokenizer, str]:
    """What a rank file holds, and the digest by which it is known; `gaps`: ranks may be missing."""
    digest = _native.digest(f"{_key(_native.digest(data), given)} gaps={gaps}".encode())
    return through_cache(digest, len(data), lambda: _build(data, given, gaps)), digest


def _beside(path: Path) -> Given | None:
    """What an `encoding.json` in the same folder says: the arguments of `tiktoken.Encoding`."""
    stated = read_json(path.with_name("encoding.json"))
    if stated is None:
        return None
    try:
        return Given.of(stated["pat_str"], stated.get("special_tokens"), stated.get("normalizer"))
    except (KeyError, InputTypeError, InvalidValueError) as error:
        file = str(path.with_name("encoding.json"))
        raise VocabularyError(f"{file}: {error}", path=file) from None


def _about(native: _native.Tokenizer, path: Path, name: str, fingerprint: str) -> About:
    """What the files beside a vocabulary say of the ends of replies and of conversations."""
    config = read_json(path.with_name("tokenizer_config.json")) or {}
    generation = read_json(path.with_name(GENERATION)) or {}
    template = read_template(path.parent, config)
    names = {text: id_ for id_, text, _ in native.control_tokens()}
    eos_ids = _eos_ids(config, generation, names, native.vocab_size)
    return About(name, fingerprint, eos_ids, template)


def _eos_ids(
    config: dict[str, Any], generation: dict[str, Any], names: Mapping[str, int], vocab_size: int
) -> list[int]:
    stated = generation.get("eos_token_id")
    ids: list[Any] = stated if isinstance(stated, list) else [stated]
    if ids and all(type(id_) is int and 0 <= id_ < vocab_size for id_ in ids):
        return ids
    token = config.get("eos_token")
    text = token.get("content") if isinstance(token, dict) else token
    return [names[text]] if isinstance(text, str) and text in names else []
