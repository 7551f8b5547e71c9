"""What a tokenizer knows of its tokens: the vocabulary of its file, and those added since.

Immutable: adding tokens makes another one, so that a call that is running sees one state.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from kizami import _native
from kizami._cache import through_cache
from kizami._export import byte_letters
from kizami._tokenizer import Tokenizer
from kizami.compat.tokenizers._added import AddedToken, as_added_token
from kizami.compat.tokenizers._parts import is_byte_level
from kizami.errors import InputTypeError, UnsupportedError, VocabularyError

__all__ = ["File", "Vocabulary", "spelled", "tokens_to_add", "unspelled"]

_LETTERS = byte_letters()
_SPELL = dict(enumerate(_LETTERS))
_BYTE_OF = {letter: byte for byte, letter in enumerate(_LETTERS)}


def spelled(token: bytes) -> str:
    """Bytes as letters.

    >>> spelled(" naïve".encode())
    'ĠnaÃ¯ve'
    """
    return token.decode("latin-1").translate(_SPELL)


def unspelled(token: str) -> bytes | None:
    """The bytes that letters stand for; None if one is not of that alphabet.

    >>> unspelled("ĠnaÃ¯ve").decode(), unspelled("中")
    (' naïve', None)
    """
    try:
        return bytes([_BYTE_OF[letter] for letter in token])
    except KeyError:
        return None


class File:
    """A `tokenizer.json`, as it was read or as a tokenizer of Kizami writes it."""

    def __init__(self, tokenizer: Tokenizer, data: bytes | None = None) -> None:
        self.tokenizer = tokenizer
        self._data = data

    @staticmethod
    def parse(data: bytes, name: str) -> File:
        """From its bytes."""
        digest = hashlib.sha256(data).hexdigest()
        read = _native.Tokenizer.from_tokenizer_json
        native = through_cache(digest, len(data), lambda: read(data))
        return File(Tokenizer(native, name, digest), data)

    @cached_property
    def data(self) -> bytes:
        """Its bytes."""
        return self.tokenizer.to_tokenizer_json().encode() if self._data is None else self._data

    @cached_property
    def parts(self) -> dict[str, Any]:
        """All but the model."""
        if self._data is None:
            # To write the model takes a second; nothing else of it is needed here.
            byte_level = {"type": "ByteLevel"}
            added = json.loads(self.tokenizer._native.added_tokens())
            split, normalizer = map(json.loads, self.tokenizer._native.description())
            return {
                "added_tokens": added,
                "decoder": byte_level,
                "normalizer": normalizer,
                "pre_tokenizer": split,
            }
        parts: dict[str, Any] = json.loads(_native.Tokenizer.parts_of_tokenizer_json(self._data))
        return parts

    @cached_property
    def odd(self) -> tuple[int, dict[str, int]]:
        """Number of entries of the vocabulary, and those that cannot be told from their bytes."""
        added = self.parts.get("added_tokens") or ()
        if self._data is None:
            # All others are spelled as their bytes, for we spell them.
            native = self.tokenizer._native
            ordinary = set(native.ids_by_rank().tolist())
            size = len(ordinary)
            for token in added:
                token_bytes = native.token_bytes(token["id"]) or b""
                size += token["id"] not in ordinary or spelled(token_bytes) != token["content"]
            return size, {token["content"]: token["id"] for token in added}
        names = [token["content"] for token in added]
        size, entries = _native.Tokenizer.odd_entries(self.data, names)
        return size, dict(entries)

    @cached_property
    def odd_by_id(self) -> dict[int, str]:
        """The names of those."""
        return {id_: name for name, id_ in self.odd[1].items()}

    def vocab(self) -> dict[str, int]:
        """All entries of the vocabulary; parsed anew each time."""
        vocab: dict[str, int] = json.loads(_native.Tokenizer.vocab_of_tokenizer_json(self.data))
        return vocab

    def id_of(self, token: str) -> int | None:
        """The id of an entry of the vocabulary."""
        odd = self.odd[1].get(token)
        if odd is not None:
            return odd
        token_bytes = unspelled(token)
        if not token_bytes:
            return None
        id_ = self.tokenizer._native.token_id(token_bytes)
        return id_ if id_ is not None and self.name_of(id_) == token else None

    def name_of(self, id_: int) -> str | None:
        """The entry of the vocabulary with this id."""
        odd = self.odd_by_id.get(id_)
        if odd is not None:
            return odd
        if id_ in self._beyond:
            return None
        token = self.tokenizer._native.token_bytes(id_)
        return None if token is None else spelled(token)

    @cached_property
    def _beyond(self) -> frozenset[int]:
        """Ids of added tokens that the vocabulary lacks."""
        added = self.parts.get("added_tokens") or ()
        return frozenset(t["id"] for t in added if t["content"] not in self.odd[1])


class _Names(dict[int, str]):
    """Names by id, each made when it is first asked for."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def __missing__(self, id_: int) -> str:
        name = self._vocabulary.name_of(id_)
        if name is None:
            raise KeyError(id_)
        self[id_] = name
        return name


class Vocabulary:
    """A file with its added tokens and those of later."""

    def __init__(
        self,
        file: File,
        added: Mapping[int, AddedToken],
        special: frozenset[str],
        tokenizer: Tokenizer,
    ) -> None:
        self.file = file
        self.added = added
        # Once special, a name is skipped, whatever is said of it later.
        self.special = special
        self.tokenizer = tokenizer
        self.names = _Names(self)
        self.by_content = {token.content: id_ for id_, token in added.items()}
        self.stripping = frozenset(i for i, token in added.items() if token.lstrip or token.rstrip)

    @staticmethod
    def of_file(file: File) -> Vocabulary:
        """What a file says."""
        added = {}
        for stated in file.parts.get("added_tokens") or ():
            options = {name: value for name, value in stated.items() if name != "id"}
            added[stated["id"]] = AddedToken(**options)
        special = frozenset(token.content for token in added.values() if token.special)
        return Vocabulary(file, added, special, file.tokenizer)

    def name_of(self, id_: int) -> str | None:
        """The name of a token, bytes spelled as letters."""
        token = self.added.get(id_)
        return self.file.name_of(id_) if token is None else token.content

    def id_of(self, token: str) -> int | None:
        """The id of a token by that name."""
        id_ = self.by_content.get(token)
        return self.file.id_of(token) if id_ is None else id_

    def size(self, with_added_tokens: bool) -> int:
        """How many names there are."""
        size = self.file.odd[0]
        if with_added_tokens:
            size += sum(self.file.id_of(content) is None for content in self.by_content)
        return size

    def with_tokens(self, tokens: Iterable[AddedToken]) -> tuple[Vocabulary, int]:
        """The same with more tokens, and how many of them are no news.

        Raises:
            UnsupportedError: A token has the id of an entry of the vocabulary that spells other
                bytes, so that text could not tell which it is.
        """
        added = dict(self.added)
        by_content = dict(self.by_content)
        special = set(self.special)
        size = self.file.odd[0]
        next_id = max(max(added, default=-1) + 1, size)
        taken = 0
        for token in tokens:
            id_ = by_content.get(token.content)
            if not token.content or (id_ is not None and added[id_] == token):
                continue
            taken += 1
            if id_ is None:
                id_ = self.file.id_of(token.content)
            if id_ is None:
                id_ = next_id
                next_id += 1
            by_content[token.content] = id_
            added[id_] = token
            if token.special:
                special.add(token.content)
        return (self.with_added(added, frozenset(special)) if taken else self), taken

    def with_added(self, added: Mapping[int, AddedToken], special: frozenset[str]) -> Vocabulary:
        """The same with these added tokens instead."""
        if added == self.added and special == self.special:
            return self
        tokenizer = _derived(self.file.tokenizer, added, special)
        return Vocabulary(self.file, added, special, tokenizer)

    @cached_property
    def has_byte_level_decoder(self) -> bool:
        """Whether the file says that tokens are decoded as their bytes."""
        decoder = self.file.parts.get("decoder")
        return decoder is not None and is_byte_level(decoder)

    @cached_property
    def without_special(self) -> _native.Tokenizer:
        """A tokenizer to which special tokens are text.

        Raises:
            UnsupportedError: A special token overlaps with one that is not special: the original
                then finds neither.
        """
        others = {id_: t for id_, t in self.added.items() if t.content not in self.special}
        for other in others.values():
            for special in self.special:
                if _overlap(other.content, special):
                    raise UnsupportedError(
                        f"encode_special_tokens cannot be on: {special!r} is special and shares "
                        f"text with {other.content!r}, which is not; use kizami.Tokenizer.encode "
                        "for untrusted text",
                        name="encode_special_tokens",
                    )
        return _derived(self.file.tokenizer, others, self.special)._native

    def written(self) -> list[dict[str, Any]]:
        """The added tokens for a `tokenizer.json`."""
        return _written(self.added)


def _overlap(one: str, other: str) -> bool:
    """Whether two names can share characters of a text.

    >>> _overlap("<a>", "<b>"), _overlap("ab", "ba"), _overlap("<a><b>", "<b>")
    (False, True, True)
    """
    if one in other or other in one:
        return True
    return any(
        one.endswith(other[:size]) or other.endswith(one[:size])
        for size in range(1, min(len(one), len(other)))
    )


def _written(added: Mapping[int, AddedToken]) -> list[dict[str, Any]]:
    return [{"id": id_, **added[id_].__getstate__()} for id_ in sorted(added)]


def _derived(
    tokenizer: Tokenizer, added: Mapping[int, AddedToken], special: frozenset[str]
) -> Tokenizer:
    """A tokenizer with these added tokens; the tables are shared."""
    listed = _written(added)
    for entry in listed:
        entry["special"] = entry["content"] in special
    try:
        native = tokenizer._native.with_added_tokens(json.dumps(listed, ensure_ascii=False))
    except VocabularyError as error:
        raise UnsupportedError(
            f"these tokens cannot be added exactly: {error}; give them another content",
            name="add_tokens",
        ) from None
    return Tokenizer(native, tokenizer.name, tokenizer._source, tokenizer._template)


def tokens_to_add(tokens: Any, special: bool | None) -> list[AddedToken]:
    """The tokens of a caller."""
    if not isinstance(tokens, list):
        kind = type(tokens).__name__
        raise InputTypeError(f"tokens to add must be a list of str or AddedToken, not {kind}")
    return [as_added_token(token, special) for token in tokens]
