"""The interface of `basetenkenizer` 0.2 over `kizami.Tokenizer`: loading, encoding, decoding.

To import `Tokenizer` from here in place of `basetenkenizer` is the whole change for code that
encodes text and segments. Post-processors, truncation, padding and chat templates are not here;
their names are, and raise `NotImplementedError` with what to use instead. The guide "Switching from
basetenkenizer" lists what else differs.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from kizami import _native, aio
from kizami._cache import through_cache
from kizami._export import byte_letters
from kizami._load import load
from kizami._tokenizer import Tokenizer as KizamiTokenizer
from kizami.errors import InputTypeError

__all__ = ["Encoding", "Tokenizer", "patch_transformers", "unpatch_transformers"]

Ids = npt.NDArray[np.uint32]

_OFFSETS = "kizami.Tokenizer.encode_with_offsets"
_CHAT = "kizami.Tokenizer.render_chat and encode_chat"
_PADDED = "kizami.Tokenizer.encode_batch(...).padded(...)"
_OWN_IDS = "the ids of the special tokens yourself, around those of the text"
# What the other package has, and what there is instead.
_NOT_IN_TOKENIZER = {
    "apply_chat_template": _CHAT,
    "async_apply_chat_template": _CHAT,
    "chat_template_variables": _CHAT,
    "enable_padding": _PADDED,
    "enable_truncation": "a slice of the ids",
    "num_special_tokens_to_add": _OWN_IDS,
    "post_process": _OWN_IDS,
    "set_chat_template": _CHAT,
    "set_special_tokens": _CHAT,
}
_NOT_IN_ENCODING = {
    "char_to_token": _OFFSETS,
    "char_to_word": _OFFSETS,
    "merge": "a list of the ids of both",
    "offsets": _OFFSETS,
    "pad": _PADDED,
    "sequence_ids": "kizami.Tokenizer.encode_segments_with_offsets",
    "set_sequence_id": "kizami.Tokenizer.encode_segments_with_offsets",
    "token_to_chars": _OFFSETS,
    "token_to_sequence": "kizami.Tokenizer.encode_segments_with_offsets",
    "token_to_word": _OFFSETS,
    "tokens": "Tokenizer.id_to_token of each id",
    "truncate": "a slice of the ids",
    "word_ids": _OFFSETS,
    "word_to_chars": _OFFSETS,
    "word_to_tokens": _OFFSETS,
    "words": _OFFSETS,
}


def _missing(name: str, instead: str) -> NotImplementedError:
    return NotImplementedError(f"kizami.compat.basetenkenizer has no `{name}`: use {instead}")


class Encoding:
    """The ids of one text, and masks of the same length.

    >>> encoding = Encoding([5, 6])
    >>> encoding.attention_mask, len(encoding)
    ([1, 1], 2)
    >>> encoding.into_numpy()
    {'ids': array([5, 6], dtype=uint32)}
    """

    __slots__ = ("_attention_mask", "_ids")

    def __init__(
        self, ids: Sequence[int] | Ids, attention_mask: Sequence[int] | None = None
    ) -> None:
        """Of ids, and of a mask that is not all ones."""
        self._ids: Ids = np.asarray(ids, dtype=np.uint32)
        self._attention_mask = None if attention_mask is None else list(attention_mask)

    @property
    def ids(self) -> list[int]:
        """The ids. A new list each time; `into_numpy` is faster for many."""
        ids: list[int] = self._ids.tolist()
        return ids

    @property
    def attention_mask(self) -> list[int]:
        """1 for each id: nothing is padded here."""
        return [1] * len(self) if self._attention_mask is None else list(self._attention_mask)

    @property
    def type_ids(self) -> list[int]:
        """0 for each id."""
        return [0] * len(self)

    @property
    def special_tokens_mask(self) -> list[int]:
        """0 for each id: it marks what a post-processor adds, and none runs here."""
        return [0] * len(self)

    @property
    def n_sequences(self) -> int:
        """1."""
        return 1

    @property
    def overflowing(self) -> list[Encoding]:
        """Empty: nothing is truncated here."""
        return []

    def into_numpy(
        self,
        ids: bool = True,
        attention_mask: bool = False,
        type_ids: bool = False,
        special_tokens_mask: bool = False,
    ) -> dict[str, Ids]:
        """The chosen fields as arrays: shape (n,), uint32. Nothing is moved out: call it again."""
        wanted = {
            "ids": ids,
            "attention_mask": attention_mask,
            "type_ids": type_ids,
            "special_tokens_mask": special_tokens_mask,
        }
        return {
            name: self._ids.copy() if name == "ids" else np.array(getattr(self, name), np.uint32)
            for name, is_wanted in wanted.items()
            if is_wanted
        }

    def __len__(self) -> int:
        return len(self._ids)

    def __repr__(self) -> str:
        return f"Encoding(num_tokens={len(self)})"

    def __getattr__(self, name: str) -> NoReturn:
        if name in _NOT_IN_ENCODING:
            raise _missing(f"Encoding.{name}", _NOT_IN_ENCODING[name])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class Tokenizer:
    """A tokenizer as basetenkenizer has it.

    In `encode` and `encode_batch`, names of control tokens in the text become their ids, as there:
    give `split_special_tokens=True` for text that you did not write, or use `encode_segments`.
    `kizami.Tokenizer` has it the other way round.

    Attributes:
        tokenizer: The `kizami.Tokenizer` that does the work.

    >>> tokenizer = Tokenizer.from_model("kimi-k3")
    >>> tokenizer.encode("Hello from Kimi K3").ids
    [19180, 658, 24980, 72, 1040, 18]
    >>> tokenizer.encode_segments([("<|open|>", True), ("<|open|>", False)]).ids
    [163587, 27, 91, 4454, 91, 29]
    """

    __slots__ = ("__weakref__", "tokenizer")

    tokenizer: KizamiTokenizer

    def __init__(self, model: str) -> None:
        """As `from_model`."""
        self.tokenizer = load(model)

    @staticmethod
    def from_model(model: str) -> Tokenizer:
        """From whatever `kizami.load` takes: a hub id, a bundled name, a directory, a file.

        Raises:
            SourceNotFoundError, UnknownFormatError, VocabularyError: As `kizami.load`.
        """
        return Tokenizer(model)

    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> Tokenizer:
        """From a `tokenizer.json`, or another file that `kizami.load` takes."""
        return Tokenizer.from_tokenizer(load(path))

    @staticmethod
    def from_json_str(json: str) -> Tokenizer:
        """From the text of a `tokenizer.json`.

        Raises:
            VocabularyError, UnknownFormatError: As `kizami.load`.
        """
        data = json.encode()
        digest = hashlib.sha256(data).hexdigest()
        read = _native.Tokenizer.from_tokenizer_json
        native = through_cache(digest, len(data), lambda: read(data))
        return Tokenizer.from_tokenizer(KizamiTokenizer(native, "tokenizer.json", digest))

    @staticmethod
    def from_tokenizer(tokenizer: KizamiTokenizer) -> Tokenizer:
        """Over a loaded tokenizer."""
        if not isinstance(tokenizer, KizamiTokenizer):
            kind = type(tokenizer).__name__
            raise InputTypeError(f"tokenizer must be a kizami.Tokenizer, not {kind}")
        made = Tokenizer.__new__(Tokenizer)
        made.tokenizer = tokenizer
        return made

    @property
    def vocab_size(self) -> int:
        """Ids are below this."""
        return self.tokenizer.vocab_size

    @property
    def truncation(self) -> None:
        """None: nothing is truncated here."""
        return

    @property
    def padding(self) -> None:
        """None: nothing is padded here."""
        return

    def no_truncation(self) -> None:
        """Changes nothing."""

    def no_padding(self) -> None:
        """Changes nothing."""

    # Text to ids

    def encode(
        self, input: str, add_special_tokens: bool = False, split_special_tokens: bool = False
    ) -> Encoding:
        """The ids of one text.

        Args:
            input: The text.
            add_special_tokens: Only False: no post-processor runs here.
            split_special_tokens: Names of control tokens are ordinary text.
        """
        _refuse(add_special_tokens)
        return Encoding(self.tokenizer.encode(input, allow_special=not split_special_tokens))

    def encode_segments(
        self,
        segments: Iterable[tuple[str, bool]],
        add_special_tokens: bool = False,
        tiktoken_safe: bool = True,
    ) -> Encoding:
        """The ids of `(text, allow_special)` segments, each encoded on its own.

        `tiktoken_safe` makes the cuts of the published path, `legacy_chunks` in Kizami.
        """
        _refuse(add_special_tokens)
        found = self.tokenizer.encode_segments(segments, legacy_chunks=bool(tiktoken_safe))
        return Encoding(found)

    def encode_batch(
        self,
        inputs: Iterable[str],
        add_special_tokens: bool = False,
        split_special_tokens: bool = False,
    ) -> list[Encoding]:
        """`encode` of each, in one call."""
        _refuse(add_special_tokens)
        batch = self.tokenizer.encode_batch(inputs, allow_special=not split_special_tokens)
        return [Encoding(ids) for ids in batch]

    async def async_encode_batch(
        self,
        inputs: Iterable[str],
        add_special_tokens: bool = False,
        split_special_tokens: bool = False,
    ) -> list[Encoding]:
        """`encode_batch`; much text is encoded in a thread."""
        _refuse(add_special_tokens)
        texts = list(inputs)
        named = not split_special_tokens
        batch = await aio.encode_batch(self.tokenizer, texts, allow_special=named)
        return [Encoding(ids) for ids in batch]

    # Ids to text

    def decode(self, ids: Sequence[int] | Ids, skip_special_tokens: bool = False) -> str:
        """The text of `ids`.

        Raises:
            InvalidIdError: An id is no token; the other package leaves such ids out.
        """
        return self.tokenizer.decode(ids, skip_special=skip_special_tokens)

    def decode_batch(
        self, sentences: Iterable[Sequence[int] | Ids], skip_special_tokens: bool = False
    ) -> list[str]:
        """`decode` of each."""
        return self.tokenizer.decode_batch(sentences, skip_special=skip_special_tokens)

    async def async_decode_batch(
        self, sentences: Iterable[Sequence[int] | Ids], skip_special_tokens: bool = False
    ) -> list[str]:
        """`decode` of each; many ids are decoded in a thread."""
        decode = aio.decode
        return [
            await decode(self.tokenizer, ids, skip_special=skip_special_tokens) for ids in sentences
        ]

    def decode_tokens(self, tokens: Iterable[str]) -> str:
        """The text of tokens in the letters of byte-level BPE, as `id_to_token` gives them."""
        parts = [_from_letters(token) or token.encode() for token in tokens]
        return b"".join(parts).decode("utf-8", "replace")

    # The vocabulary

    def token_to_id(self, token: str) -> int | None:
        """The id of a token in the letters of byte-level BPE, or of a control token by its name."""
        control = self.tokenizer.control_tokens.get(token)
        if control is not None:
            return control
        token_bytes = _from_letters(token)
        return None if token_bytes is None else self.tokenizer.token_id(token_bytes)

    def id_to_token(self, id: int) -> str | None:
        """A token in the letters of byte-level BPE; None outside the vocabulary.

        >>> Tokenizer.from_model("kimi-k3").id_to_token(2695)
        'Ġworld'
        """
        token_bytes = self.tokenizer._native.token_bytes(id) if 0 <= id < self.vocab_size else None
        if token_bytes is None:
            return None
        if id >= self.tokenizer._native.ordinary_len:
            return token_bytes.decode()
        name = token_bytes.decode("utf-8", "replace")
        if self.tokenizer.control_tokens.get(name) == id:
            return name
        return "".join([_letters()[byte] for byte in token_bytes])

    def __repr__(self) -> str:
        return f"Tokenizer({self.tokenizer.name!r})"

    def __getattr__(self, name: str) -> Any:
        if name not in _NOT_IN_TOKENIZER:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

        def raise_missing(*args: Any, **options: Any) -> NoReturn:
            raise _missing(f"Tokenizer.{name}", _NOT_IN_TOKENIZER[name])

        return raise_missing

    def __copy__(self) -> Tokenizer:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Tokenizer:
        return self


def patch_transformers(apply_chat_template: bool = False) -> None:
    """`kizami.compat.transformers.patch()`: tokenizers that are loaded later run on Kizami.

    `apply_chat_template` is taken for the other package's sake, where it changes who renders, and
    not the text: conversations of Kimi K3 as ids are always rendered by Kizami, all others by
    `transformers`.

    Raises:
        MissingExtraError: `transformers` is not installed.
    """
    from kizami.compat.transformers import patch

    patch()


def unpatch_transformers() -> None:
    """Takes `patch_transformers` back."""
    from kizami.compat.transformers import unpatch

    unpatch()


def _refuse(add_special_tokens: bool) -> None:
    if add_special_tokens:
        raise _missing("add_special_tokens=True", _OWN_IDS)


@lru_cache(maxsize=1)
def _letters() -> list[str]:
    return byte_letters()


@lru_cache(maxsize=1)
def _bytes_of_letters() -> dict[str, int]:
    return {letter: byte for byte, letter in enumerate(_letters())}


def _from_letters(token: str) -> bytes | None:
    """The bytes that the letters of a token stand for; None if one stands for none."""
    found = [_bytes_of_letters().get(letter) for letter in token]
    return bytes(byte for byte in found if byte is not None) if None not in found else None
