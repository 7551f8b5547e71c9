"""`Encoding`: the class of `tiktoken`, with a `kizami.Tokenizer` inside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NoReturn, SupportsIndex, TypeVar

import numpy as np
import numpy.typing as npt

from kizami._export import tiktoken_pattern, tiktoken_ranks, write_ranks
from kizami._load_files import Given, ranks_to_native
from kizami._tokenizer import Tokenizer
from kizami.compat.tiktoken import _unstable
from kizami.compat.tiktoken._convert import (
    check_threads,
    refuse_surrogates,
    rows,
    to_id,
    to_ints,
)
from kizami.compat.tiktoken._special import Allowed, Disallowed, Rule, names_pattern
from kizami.errors import InputTypeError, InvalidIdError, InvalidValueError

__all__ = ["Encoding"]

Ids = npt.NDArray[np.uint32]
Self = TypeVar("Self", bound="Encoding")

# Above all ids that a vocabulary may have.
_NO_LIMIT = (1 << 32) - 1
# Longer texts go through an array: their ids are looked at by NumPy.
_SHORT = 4_000
# Longer texts are cut by the published path of the Kimi models, and tiktoken knows no cuts.
_LONGEST_UNCUT = 25_000
_NONE: frozenset[str] = frozenset()


class Encoding:
    """A vocabulary with its pattern and its special tokens, as `tiktoken.Encoding`.

    Made by `get_encoding`, by `from_tiktoken` or `from_tokenizer`, or from its parts. What is
    learned once is shared by copies and threads. Equality is identity, as there.

    Attributes:
        name: Any name.
        max_token_value: The highest id.
        tokenizer: The `kizami.Tokenizer` that does the work; for what tiktoken cannot say.

    >>> import kizami
    >>> encoding = Encoding.from_tokenizer(kizami.load("kimi-k3"))
    >>> encoding
    <Encoding 'kimi-k3'>
    >>> encoding.encode("Hello, world")
    [19180, 11, 2695]
    """

    name: str
    max_token_value: int
    tokenizer: Tokenizer
    _pat_str: str
    _special_tokens: dict[str, int]

    def __init__(
        self,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: dict[bytes, int],
        special_tokens: dict[str, int],
        explicit_n_vocab: int | None = None,
    ) -> None:
        """From its parts, as in tiktoken.

        Args:
            name: Any name.
            pat_str: The split pattern, in the syntax of `fancy-regex`.
            mergeable_ranks: Token bytes to rank, which is the id and the priority of the merge.
            special_tokens: Names to ids.
            explicit_n_vocab: The number of tokens, checked if it is given.

        Raises:
            AssertionError: The number of tokens is another.
            ValueError: The pattern does not compile, or no vocabulary can be like this: a token of
                text lacks its single bytes, or a name has the id of another token.
            TypeError: A part has the wrong type.

        Cost: that of building the tables; with the same parts again, that of mapping them, as
        images are kept (`KIZAMI_CACHE`).
        """
        given = Given.of(pat_str, to_ints(special_tokens), None)
        if given is None:
            raise InputTypeError("pat_str must be str, not None")
        ranks = to_ints(mergeable_ranks)
        if not ranks:
            raise InvalidValueError("mergeable_ranks must not be empty")
        highest = max(ranks.values())
        count = len(ranks) + len(given.special_tokens)
        last = max(highest, *given.special_tokens.values(), 0)
        if explicit_n_vocab and (count != explicit_n_vocab or last != explicit_n_vocab - 1):
            raise AssertionError(
                f"explicit_n_vocab is {explicit_n_vocab}; there are {count} tokens, up to {last}"
            )
        gaps = len(ranks) != highest + 1
        native, digest = ranks_to_native(write_ranks(ranks), given, gaps=gaps)
        self._set(name, Tokenizer(native, name, digest), pat_str, special_tokens)
        self.__dict__["_mergeable_ranks"] = mergeable_ranks

    def _set(
        self, name: str, tokenizer: Tokenizer, pat_str: str, special_tokens: dict[str, int]
    ) -> None:
        self.name = name
        self.tokenizer = tokenizer
        self.max_token_value = tokenizer.vocab_size - 1
        self._pat_str = pat_str
        self._special_tokens = special_tokens
        self._native = tokenizer._native
        self._special_token_values = set(special_tokens.values())
        self._lowest_special = min(self._special_token_values, default=tokenizer.vocab_size)
        # Where special ids are among the others, each id is looked up.
        ordinary_len = self._native.ordinary_len
        self._is_special = None
        if self._lowest_special < ordinary_len:
            self._is_special = np.zeros(tokenizer.vocab_size, bool)
            self._is_special[list(self._special_token_values)] = True

    @classmethod
    def from_tokenizer(cls: type[Self], tokenizer: Tokenizer, name: str | None = None) -> Self:
        """An encoding that runs on a loaded tokenizer; nothing is copied.

        tiktoken makes no cuts in long texts, and neither does this, whatever the tokenizer's own
        `encode` does by default.

        Args:
            tokenizer: What `kizami.load` gave.
            name: The name of the encoding; that of the tokenizer if not given.

        Raises:
            UnknownFormatError: tiktoken has no way to say what the tokenizer does: several split
                steps, a normalizer, ids in another order than merges.
        """
        if not isinstance(tokenizer, Tokenizer):
            kind = type(tokenizer).__name__
            raise InputTypeError(f"tokenizer must be a kizami.Tokenizer, not {kind}")
        pat_str = tiktoken_pattern(tokenizer._native, tokenizer.name)
        encoding = cls.__new__(cls)
        controls = dict(tokenizer.control_tokens)
        encoding._set(tokenizer.name if name is None else name, tokenizer, pat_str, controls)
        return encoding

    @classmethod
    def from_tiktoken(cls: type[Self], encoding: Any) -> Self:
        """The same encoding as one of tiktoken's, with the same ids.

        Raises:
            TypeError: It has not the attributes of one.
            ValueError: As the constructor.
        """
        try:
            parts = {
                "pat_str": encoding._pat_str,
                "mergeable_ranks": encoding._mergeable_ranks,
                "special_tokens": encoding._special_tokens,
            }
            name = encoding.name
        except AttributeError as error:
            raise InputTypeError(f"encoding must be a tiktoken.Encoding: {error}") from None
        return cls(name, **parts)

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    # Text to ids

    def encode_ordinary(self, text: str) -> list[int]:
        """The ids of `text`, in which no name of a special token counts."""
        if isinstance(text, str) and len(text) <= _SHORT:
            found = self._native.encode_list(text, False, False, _NO_LIMIT)
            if found is not None:
                return found
        ids: list[int] = self.tokenizer.encode(text, legacy_chunks=False).tolist()
        return ids

    def encode(
        self,
        text: str,
        *,
        allowed_special: Allowed = _NONE,
        disallowed_special: Disallowed = "all",
    ) -> list[int]:
        """The ids of `text`.

        Args:
            text: Any `str`. A pair of surrogates is its character, a lone one is U+FFFD.
            allowed_special: Names that become their ids; "all" for all.
            disallowed_special: Strings that raise if the text has them; "all" for all names that
                are not allowed. `()` takes them as ordinary text.

        Raises:
            ValueError: The text has a disallowed string.

        >>> import kizami
        >>> encoding = Encoding.from_tokenizer(kizami.load("kimi-k3"))
        >>> encoding.encode("<|sep|>", disallowed_special=())
        [27, 91, 40433, 91, 29]
        >>> encoding.encode("<|sep|>", allowed_special={"<|sep|>"})
        [163589]
        """
        rule = self._rule(allowed_special, disallowed_special)
        if isinstance(text, str) and len(text) <= _SHORT:
            found = self._encode_short(text, rule)
            if found is not None:
                return found
        ids: list[int] = self._encode(text, rule).tolist()
        return ids

    def encode_to_numpy(
        self,
        text: str,
        *,
        allowed_special: Allowed = _NONE,
        disallowed_special: Disallowed = "all",
    ) -> Ids:
        """`encode` as an array: shape (n,), uint32. Unlike tiktoken's, it can be written to.

        Raises:
            UnicodeEncodeError: There is a surrogate in the text: tiktoken replaces them in
                `encode` alone.
        """
        rule = self._rule(allowed_special, disallowed_special)
        ids = self._encode(text, rule)
        refuse_surrogates(text)
        return ids

    def _rule(self, allowed: Allowed, disallowed: Disallowed) -> Rule:
        # Three of them are those of nearly all calls.
        usual = self._usual_rules
        kind = type(allowed)
        if (kind is frozenset or kind is set) and not allowed:
            if type(disallowed) is str and disallowed == "all":
                return usual[0]
            if type(disallowed) is tuple and not disallowed:
                return usual[1]
        elif kind is str and type(disallowed) is str and allowed == disallowed == "all":
            return usual[2]
        return Rule(self.special_tokens_set, allowed, disallowed)

    @cached_property
    def _usual_rules(self) -> tuple[Rule, Rule, Rule]:
        """Nothing said; no name counts; all names count."""
        names = self.special_tokens_set
        return Rule(names, _NONE, "all"), Rule(names, _NONE, ()), Rule(names, "all", "all")

    def _encode_short(self, text: str, rule: Rule) -> list[int] | None:
        """The ids, unless names must be looked for one by one."""
        if rule.foreign:
            return None
        if not rule.disallowed and (rule.every or not rule.allowed):
            return self._native.encode_list(text, rule.every, False, _NO_LIMIT)
        if rule.allowed or self._is_special is not None:
            return None
        return self._native.encode_list(text, True, False, self._lowest_special)

    def _encode(self, text: str, rule: Rule) -> Ids:
        encode = self.tokenizer.encode
        if not rule.allowed and not rule.disallowed:
            return encode(text, legacy_chunks=False)
        # Most texts have no name in them, and then it is all the same what is allowed.
        ids = encode(text, allow_special=True, legacy_chunks=False)
        if self._has_special(ids):
            return self._encode_names(text, rule, ids)
        if rule.foreign:
            rule.check(text)
        return ids

    def _has_special(self, ids: Ids) -> bool:
        if self._is_special is None:
            # `ids.max()` takes twice as long for few ids.
            return len(ids) > 0 and bool(np.maximum.reduce(ids) >= self._lowest_special)
        return bool(self._is_special[ids].any())

    def _encode_names(self, text: str, rule: Rule, ids: Ids) -> Ids:
        """The ids of a text with names in it; `ids` are those with all names allowed."""
        rule.check(text)
        if rule.allowed >= self.special_tokens_set:
            return ids
        allowed = frozenset(self.special_tokens_set & rule.allowed)
        if not allowed:
            return self.tokenizer.encode(text, legacy_chunks=False)
        # Pairs of surrogates before a name is looked for, as tiktoken.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        parts = names_pattern(allowed).split(text)
        segments = [(part, index % 2 == 1) for index, part in enumerate(parts)]
        return self.tokenizer.encode_segments(segments, legacy_chunks=False)

    def encode_ordinary_batch(
        self, text: Iterable[str], *, num_threads: int | None = 8
    ) -> list[list[int]]:
        """`encode_ordinary` of each.

        `num_threads` is taken for tiktoken's sake: one call encodes all on the threads that
        `kizami.set_num_threads` allows.
        """
        check_threads(num_threads)
        return self._encode_batch(text, self._rule(_NONE, ()))

    def encode_batch(
        self,
        text: Iterable[str],
        *,
        num_threads: int | None = 8,
        allowed_special: Allowed = _NONE,
        disallowed_special: Disallowed = "all",
    ) -> list[list[int]]:
        """`encode` of each; see there, and `encode_ordinary_batch` for `num_threads`."""
        check_threads(num_threads)
        rule = self._rule(allowed_special, disallowed_special)
        return self._encode_batch(text, rule)

    def _encode_batch(self, texts: Iterable[str], rule: Rule) -> list[list[int]]:
        texts = list(texts)
        if any(isinstance(text, str) and len(text) > _LONGEST_UNCUT for text in texts):
            return [self._encode(text, rule).tolist() for text in texts]
        named = bool(rule.allowed or rule.disallowed)
        batch = self.tokenizer.encode_batch(texts, allow_special=named)
        if not named:
            return rows(batch)
        if not rule.foreign and not self._has_special(batch.ids):
            return rows(batch)
        found = []
        for text, ids in zip(texts, batch, strict=True):
            if self._has_special(ids):
                ids = self._encode_names(text, rule, ids)
            elif rule.foreign:
                rule.check(text)
            found.append(ids.tolist())
        return found

    def encode_with_unstable(
        self,
        text: str,
        *,
        allowed_special: Allowed = _NONE,
        disallowed_special: Disallowed = "all",
    ) -> tuple[list[int], list[list[int]]]:
        """The ids that stay whatever follows `text`, and what the rest may become.

        Returns:
            The ids of a beginning of `text`, and the sequences, in no order that means something,
            that may follow them in texts that begin with `text`.

        Raises:
            ValueError: As `encode`.
            UnicodeEncodeError: As `encode_to_numpy`.

        Cost: thousands of encodings of a few tokens.
        """
        rule = self._rule(allowed_special, disallowed_special)
        ids = self._encode(text, rule)
        refuse_surrogates(text)
        allowed = frozenset(self.special_tokens_set & rule.allowed)
        tail = names_pattern(allowed).split(text)[-1] if allowed else text
        return _unstable.complete(self, ids.tolist(), tail)

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """The id of the token with these bytes, or the special token of that name.

        Raises:
            KeyError: There is none.
        """
        token = text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes
        if not isinstance(token, bytes):
            raise TypeError(f"a token must be str or bytes, not {type(token).__name__}")
        found = self._native.token_id(token)
        if found is None:
            raise KeyError(token)
        return found

    # Ids to text

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """The bytes of `tokens`, one after the other.

        Raises:
            KeyError: An id is no token.
            OverflowError: An id has no place in 32 bits.
            TypeError: `tokens` are no integers.
        """
        try:
            if type(tokens) is list:
                return self._native.decode_bytes(tokens, False)
            return self.tokenizer.decode_bytes(tokens)
        except (InvalidIdError, TypeError) as error:
            return self.tokenizer.decode_bytes(self._checked(tokens, error))

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """The text of `tokens`; `errors` as in `bytes.decode`. Raises as `decode_bytes`."""
        if not isinstance(errors, str):
            raise TypeError(f"errors must be str, not {type(errors).__name__}")
        try:
            if type(tokens) is list:
                return self._native.decode(tokens, False, errors)
            return self.tokenizer.decode(tokens, errors=errors)
        except (InvalidIdError, TypeError) as error:
            return self.tokenizer.decode(self._checked(tokens, error), errors=errors)

    def _checked(self, tokens: Any, error: Exception) -> list[int]:
        """Ids that Kizami refused as ints, if they are tokens to tiktoken: True is 1 there."""
        if isinstance(tokens, (str, set, frozenset, dict)) or not isinstance(tokens, Iterable):
            raise error
        ids = [to_id(token) for token in tokens]
        for id_ in ids:
            if id_ > self.max_token_value or self._native.token_bytes(id_) is None:
                raise KeyError(f"Invalid token for decoding: {id_}")
        return ids

    def decode_single_token_bytes(self, token: SupportsIndex) -> bytes:
        """The bytes of one token, or the name of a special one.

        Raises:
            KeyError: The id is no token.
        """
        try:
            found = self._native.token_bytes(token)  # type: ignore[arg-type]
        except (TypeError, OverflowError):
            found = self._native.token_bytes(to_id(token))
        if found is None:
            raise KeyError(str(to_id(token)))
        return found

    def decode_tokens_bytes(self, tokens: Iterable[SupportsIndex]) -> list[bytes]:
        """The bytes of each token. Raises as `decode_single_token_bytes`."""
        tokens = list(tokens)
        find: Any = self._native.token_bytes
        try:
            found = [find(token) for token in tokens]
        except (TypeError, OverflowError):
            found = [None]
        if None in found:
            found = [self.decode_single_token_bytes(token) for token in tokens]
        return found

    def decode_with_offsets(self, tokens: Iterable[SupportsIndex]) -> tuple[str, list[int]]:
        """The text, and for each token the index of the first character that has bytes of it.

        Raises:
            UnicodeDecodeError: The bytes are no UTF-8.

        >>> import kizami
        >>> encoding = Encoding.from_tokenizer(kizami.load("kimi-k3"))
        >>> encoding.decode_with_offsets(encoding.encode("Hi 🎉!"))
        ('Hi 🎉!', [0, 2, 3, 3, 4])
        """
        parts = self.decode_tokens_bytes(tokens)
        joined = b"".join(parts)
        text = joined.decode()
        begins = (np.frombuffer(joined, np.uint8) & 0xC0) != 0x80
        # Of each byte, the index of the character that it belongs to.
        characters = np.cumsum(begins) - 1
        lengths = np.array([len(part) for part in parts], np.int64)
        offsets: list[int] = characters[np.cumsum(lengths) - lengths].tolist()
        return text, offsets

    def decode_batch(
        self,
        batch: Iterable[Sequence[int]],
        *,
        errors: str = "replace",
        num_threads: int | None = 8,
    ) -> list[str]:
        """`decode` of each. `num_threads` is taken for tiktoken's sake."""
        check_threads(num_threads)
        return [self.decode(tokens, errors) for tokens in batch]

    def decode_bytes_batch(
        self, batch: Iterable[Sequence[int]], *, num_threads: int | None = 8
    ) -> list[bytes]:
        """`decode_bytes` of each. `num_threads` is taken for tiktoken's sake."""
        check_threads(num_threads)
        return [self.decode_bytes(tokens) for tokens in batch]

    # The vocabulary

    def token_byte_values(self) -> list[bytes]:
        """The bytes of all ordinary tokens, sorted."""
        return list(self._sorted_tokens)

    @property
    def eot_token(self) -> int:
        """The id of `<|endoftext|>`.

        Raises:
            KeyError: The encoding has no such token.
        """
        return self._special_tokens["<|endoftext|>"]

    @cached_property
    def special_tokens_set(self) -> set[str]:
        """The names of the special tokens."""
        return set(self._special_tokens)

    def is_special_token(self, token: int) -> bool:
        """Whether an id is that of a special token.

        Raises:
            AssertionError: `token` is no `int`.
        """
        if not isinstance(token, int):
            raise AssertionError(f"token must be int, not {type(token).__name__}")
        return token in self._special_token_values

    @property
    def n_vocab(self) -> int:
        """`max_token_value + 1`."""
        return self.max_token_value + 1

    # What engines read, and tiktoken calls private

    @cached_property
    def _mergeable_ranks(self) -> dict[bytes, int]:
        return tiktoken_ranks(self._native)

    @cached_property
    def _sorted_tokens(self) -> list[bytes]:
        return sorted(self._mergeable_ranks)

    @property
    def _core_bpe(self) -> NoReturn:
        raise AttributeError(
            "_core_bpe is tiktoken's own engine and is not there: call the methods of Encoding, "
            "which have the same names"
        )

    def _encode_single_piece(self, text_or_bytes: str | bytes) -> list[int]:
        """The ids of bytes that are merged as they are, without a split."""
        piece = text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes
        return self._merge(piece, whole=True)

    def _encode_only_native_bpe(self, text: str) -> list[int]:
        return self.encode_ordinary(text)

    def _encode_bytes(self, text: bytes) -> list[int]:
        """The ids of bytes; those that are no UTF-8 are merged with the last pre-token before."""
        return _unstable.encode_bytes(self, text)

    def _merge(self, piece: bytes, *, whole: bool) -> list[int]:
        ids: list[int] = self._native.merge(piece, whole).tolist()
        return ids

    # As a Python object

    def __copy__(self: Self) -> Self:
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self: Self, memo: dict[int, Any]) -> Self:
        # Tables are never written to; the dictionaries of names and ranks are shared with them.
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        from kizami.compat.tiktoken._registry import get_encoding, is_registered

        if is_registered(self):
            return get_encoding, (self.name,)
        parts = (self.name, self.tokenizer, self._pat_str, self._special_tokens)
        return _unpickle, (type(self), *parts)


def _unpickle(kind: type[Self], *parts: Any) -> Self:
    encoding = kind.__new__(kind)
    encoding._set(*parts)
    return encoding
