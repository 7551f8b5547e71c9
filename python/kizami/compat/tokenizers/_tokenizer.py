"""`Tokenizer`: the encoding and decoding side of `tokenizers.Tokenizer`, run by Kizami.

All that can be changed is one immutable state that is put in place at once. A call reads it once,
so it sees one setting from beginning to end, whatever other threads do.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, SupportsIndex

import kizami
from kizami import aio
from kizami._files import read_bytes
from kizami._hub import download
from kizami._write import write_file
from kizami.compat.tokenizers._absent import absent
from kizami.compat.tokenizers._added import AddedToken
from kizami.compat.tokenizers._encoding import Encoding
from kizami.compat.tokenizers._options import OutOfRangeError, Padding, Truncation, count
from kizami.compat.tokenizers._parts import (
    Decoder,
    Part,
    cannot_set,
    is_byte_level,
    unsupported_decoder,
)
from kizami.compat.tokenizers._processors import read_processor
from kizami.compat.tokenizers._state import State, batch_of, sequence_of
from kizami.compat.tokenizers._stream import known_ids
from kizami.compat.tokenizers._vocabulary import File, Vocabulary, tokens_to_add
from kizami.errors import (
    InputTypeError,
    InvalidIdError,
    InvalidValueError,
    SourceNotFoundError,
    UnsupportedError,
    VocabularyError,
)

__all__ = ["Tokenizer"]


class Tokenizer:
    """A tokenizer as `tokenizers.Tokenizer` is one: same calls, same ids, less time.

    Get one with `from_file`, `from_str`, `from_buffer`, `from_pretrained`, or from a tokenizer of
    Kizami with `from_kizami`. Names of control tokens count in all text, as they do there; for
    untrusted text, use `kizami.Tokenizer`.

    What it lacks raises `kizami.errors.UnsupportedError`, which says what to do instead.

    >>> import kizami
    >>> tokenizer = Tokenizer.from_kizami(kizami.load("kimi-k3"))
    >>> encoding = tokenizer.encode("Hello, world")
    >>> encoding.ids, encoding.tokens
    ([19180, 11, 2695], ['Hello', ',', 'Ġworld'])
    >>> tokenizer.decode(encoding.ids)
    'Hello, world'
    """

    __slots__ = ("__dict__", "__weakref__", "_state")

    _state: State

    def __init__(self, model: Any) -> None:
        """Not possible here; see the class."""
        raise UnsupportedError(
            "Tokenizer cannot be built from a model: load one with Tokenizer.from_file, "
            "from_str, from_buffer or from_pretrained, or use the package `tokenizers`",
            name="Tokenizer",
        )

    @staticmethod
    def _of_state(state: State) -> Tokenizer:
        tokenizer = Tokenizer.__new__(Tokenizer)
        tokenizer._state = state
        return tokenizer

    @staticmethod
    def _of_file(file: File) -> Tokenizer:
        parts = file.parts
        return Tokenizer._of_state(
            State(
                Vocabulary.of_file(file),
                read_processor(parts.get("post_processor")),
                Truncation.read(parts.get("truncation")),
                Padding.read(parts.get("padding")),
            )
        )

    # Loading and saving

    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> Tokenizer:
        """From a `tokenizer.json`, plain or compressed by gzip.

        Raises:
            SourceNotFoundError: There is no such file.
            UnknownFormatError: It is no byte-level BPE.
            VocabularyError: It is damaged.
        """
        file = Path(path)
        data = read_bytes(file)
        try:
            return Tokenizer._of_file(File.parse(data, file.parent.resolve().name))
        except VocabularyError as error:
            line = getattr(error, "line", 0)
            raise VocabularyError(f"{file}: {error}", path=str(file), line=line) from None

    @staticmethod
    def from_str(json: str) -> Tokenizer:
        """From the text of a `tokenizer.json`. Errors as `from_file`."""
        if not isinstance(json, str):
            raise InputTypeError(f"json must be str, not {type(json).__name__}")
        return Tokenizer._of_file(File.parse(json.encode("utf-8", "surrogatepass"), "tokenizer"))

    @staticmethod
    def from_buffer(buffer: bytes) -> Tokenizer:
        """From the bytes of a `tokenizer.json`. Errors as `from_file`."""
        if not isinstance(buffer, (bytes, bytearray, memoryview)):
            raise InputTypeError(f"buffer must be bytes, not {type(buffer).__name__}")
        return Tokenizer._of_file(File.parse(bytes(buffer), "tokenizer"))

    @staticmethod
    def from_pretrained(
        identifier: str, revision: str = "main", token: str | None = None
    ) -> Tokenizer:
        """From the `tokenizer.json` of a repository on the hub, or of a directory.

        Raises:
            SourceNotFoundError: There is none.
            MissingExtraError: The extra `hub` is not installed.
        """
        folder = Path(identifier)
        if not folder.is_dir():
            folder = download(identifier, revision, token, False)
        if not (folder / "tokenizer.json").is_file():
            raise SourceNotFoundError(
                f"{identifier!r} has no tokenizer.json; kizami.load reads other formats, "
                "and Tokenizer.from_kizami takes what it gives",
                source=identifier,
            )
        return Tokenizer.from_file(folder / "tokenizer.json")

    @staticmethod
    def from_kizami(tokenizer: kizami.Tokenizer) -> Tokenizer:
        """From a tokenizer of Kizami, of whatever format: no truncation, padding or template."""
        if not isinstance(tokenizer, kizami.Tokenizer):
            kind = type(tokenizer).__name__
            raise InputTypeError(f"tokenizer must be a kizami.Tokenizer, not {kind}")
        return Tokenizer._of_file(File(tokenizer))

    def to_kizami(self) -> kizami.Tokenizer:
        """The tokenizer of Kizami that does the work, with all added tokens."""
        return self._state.vocabulary.tokenizer

    def to_str(self, pretty: bool = False) -> str:
        """The text of a `tokenizer.json`: that which was loaded, with what was set since."""
        state = self._state
        stated: dict[str, Any] = json.loads(state.vocabulary.file.data)
        truncation, padding = state.truncation, state.padding
        stated["truncation"] = None if truncation is None else truncation.written()
        stated["padding"] = None if padding is None else padding.written()
        stated["added_tokens"] = state.vocabulary.written()
        if pretty:
            return json.dumps(stated, ensure_ascii=False, indent=2)
        return json.dumps(stated, ensure_ascii=False, separators=(",", ":"))

    def save(self, path: str | os.PathLike[str], pretty: bool = True) -> None:
        """Writes `to_str` to a file."""
        write_file(path, self.to_str(pretty).encode("utf-8", "surrogatepass"))

    # Text to ids

    def encode(
        self,
        sequence: Any,
        pair: Any = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> Encoding:
        """The encoding of a text, or of a pair of texts.

        Args:
            sequence: `str`; with `is_pretokenized`, a list of `str`, each encoded alone.
            pair: The second text, or None.
            is_pretokenized: Texts come as lists of words.
            add_special_tokens: Put those of the post-processor around.

        Raises:
            InputTypeError: A text is none.
            InvalidValueError: Truncation is impossible for it.
        """
        state = self._state
        if pair is None and not is_pretokenized and state.is_plain:
            found = state.encode_plain(sequence, add_special_tokens)
            if found is not None:
                return found
        sequences = [sequence_of(sequence, is_pretokenized)]
        if pair is not None:
            sequences.append(sequence_of(pair, is_pretokenized))
        return state.padded(state.encode_all([sequences], add_special_tokens))[0]

    def encode_batch(
        self, input: Any, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Encoding]:
        """The encodings of many texts or pairs, in one native call where they are `str`.

        Raises:
            InputTypeError: An item is no text; `.position` is its index.
        """
        state = self._state
        if not is_pretokenized and state.is_plain and type(input) is list and len(input) == 1:
            # How transformers encodes one text.
            found = state.encode_plain(input[0], add_special_tokens)
            if found is not None:
                return [found]
        inputs = batch_of(input, is_pretokenized)
        return state.padded(state.encode_all(inputs, add_special_tokens))

    def encode_batch_fast(
        self, input: Any, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Encoding]:
        """As `encode_batch`, with offsets that are all (0, 0), and without words.

        As in the original; here `encode_batch` costs the same, until offsets are asked for.
        """
        state, inputs = self._state, batch_of(input, is_pretokenized)
        return state.padded(state.encode_all(inputs, add_special_tokens, without=True))

    def async_encode(
        self,
        sequence: Any,
        pair: Any = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> asyncio.Future[Encoding]:
        """`encode` for `asyncio`: see `kizami.aio` for what goes to a thread."""
        call = Tokenizer._of_state(self._state).encode
        return _soon(
            [sequence, pair], lambda: call(sequence, pair, is_pretokenized, add_special_tokens)
        )

    def async_encode_batch(
        self, input: Any, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> asyncio.Future[list[Encoding]]:
        """`encode_batch` for `asyncio`."""
        call = Tokenizer._of_state(self._state).encode_batch
        return _soon(input, lambda: call(input, is_pretokenized, add_special_tokens))

    def async_encode_batch_fast(
        self, input: Any, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> asyncio.Future[list[Encoding]]:
        """`encode_batch_fast` for `asyncio`."""
        call = Tokenizer._of_state(self._state).encode_batch_fast
        return _soon(input, lambda: call(input, is_pretokenized, add_special_tokens))

    def post_process(
        self, encoding: Encoding, pair: Encoding | None = None, add_special_tokens: bool = True
    ) -> Encoding:
        """What `encode` does after encoding: truncation, special tokens, padding."""
        parts = [encoding] if pair is None else [encoding, pair]
        for part in parts:
            if not isinstance(part, Encoding):
                raise InputTypeError(f"post_process takes Encodings, not {type(part).__name__}")
        state = self._state
        return state.padded([state.post_process(parts, add_special_tokens)])[0]

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """How many special tokens `encode` puts around a text, or a pair."""
        return self._state.added(bool(is_pair))

    # Ids to text

    def decode(self, ids: Sequence[SupportsIndex], skip_special_tokens: bool = True) -> str:
        """The text of ids. Ids that are no tokens give nothing.

        Raises:
            InvalidIdError, OverflowError: An id is negative or has more than 32 bits; one error
                that is both.
            InputTypeError: `ids` are no integers.
        """
        vocabulary = self._state.vocabulary
        skip = bool(skip_special_tokens)
        if type(ids) is list and vocabulary.has_byte_level_decoder:
            try:
                return vocabulary.tokenizer._native.decode(ids, skip, "replace")
            except (InvalidIdError, TypeError, OverflowError):
                # Below it is said what is wrong, or nothing is.
                pass
        self._check_decoder()
        if vocabulary.file.parts.get("decoder") is None:
            tokens = [vocabulary.names[id_] for id_ in known_ids(vocabulary, ids)]
            return " ".join(t for t in tokens if not skip or t not in vocabulary.special)
        try:
            return vocabulary.tokenizer.decode(ids, skip_special=skip)
        except InvalidIdError:
            return vocabulary.tokenizer.decode(known_ids(vocabulary, ids), skip_special=skip)

    def _check_decoder(self) -> None:
        decoder = self._state.vocabulary.file.parts.get("decoder")
        if decoder is not None and not is_byte_level(decoder):
            raise unsupported_decoder(decoder)

    def decode_batch(
        self, sequences: Sequence[Sequence[SupportsIndex]], skip_special_tokens: bool = True
    ) -> list[str]:
        """`decode` of each."""
        if isinstance(sequences, (str, bytes)) or not isinstance(sequences, Iterable):
            kind = type(sequences).__name__
            raise InputTypeError(f"sequences must be a list of lists of ids, not {kind}")
        return [self.decode(ids, skip_special_tokens) for ids in sequences]

    def async_decode_batch(
        self, sequences: Sequence[Sequence[SupportsIndex]], skip_special_tokens: bool = True
    ) -> asyncio.Future[list[str]]:
        """`decode_batch` for `asyncio`."""
        call = Tokenizer._of_state(self._state).decode_batch
        small = sum(map(len, sequences)) <= aio.SMALL_IDS
        return _soon_if(small, lambda: call(sequences, skip_special_tokens))

    # The vocabulary

    def id_to_token(self, id: SupportsIndex) -> str | None:
        """The name of a token, bytes spelled as letters; None if there is none.

        Raises:
            InvalidValueError, OverflowError: `id` is negative or has more than 32 bits.
        """
        id_ = count(id, "id")
        if id_ >= 1 << 32:
            raise OutOfRangeError(f"id {id_} has more than 32 bits")
        names = self._state.vocabulary.names
        try:
            return names[id_]
        except KeyError:
            return None

    def token_to_id(self, token: str) -> int | None:
        """The id of the token by that name, or None."""
        if not isinstance(token, str):
            raise InputTypeError(f"token must be str, not {type(token).__name__}")
        return self._state.vocabulary.id_of(token)

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """All names and ids, as a new dict."""
        vocabulary = self._state.vocabulary
        vocab = vocabulary.file.vocab()
        if with_added_tokens:
            vocab.update(vocabulary.by_content)
        return vocab

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        """How many names there are."""
        return self._state.vocabulary.size(with_added_tokens)

    def get_added_tokens_decoder(self) -> dict[int, AddedToken]:
        """The added tokens by id."""
        added = self._state.vocabulary.added
        return {id_: AddedToken(**added[id_].__getstate__()) for id_ in sorted(added)}

    def add_tokens(self, tokens: list[Any]) -> int:
        """Adds tokens, `str` or `AddedToken`; how many of them are new or changed.

        A token that the vocabulary has keeps its id; others get ids behind all others.

        Raises:
            UnsupportedError: The vocabulary has an entry by that name that stands for other bytes.

        Cost: that of building the search for all added tokens; the vocabulary is shared.
        """
        return self._add(tokens_to_add(tokens, None))

    def add_special_tokens(self, tokens: list[Any]) -> int:
        """The same for tokens that `decode` skips."""
        return self._add(tokens_to_add(tokens, True))

    def _add(self, tokens: list[AddedToken]) -> int:
        vocabulary, taken = self._state.vocabulary.with_tokens(tokens)
        if self._state.encode_special_tokens:
            _ = vocabulary.without_special
        self._state = replace(self._state, vocabulary=vocabulary)
        return taken

    # Settings

    @property
    def encode_special_tokens(self) -> bool:
        """Whether special tokens in a text are encoded as the text that they are."""
        return self._state.encode_special_tokens

    @encode_special_tokens.setter
    def encode_special_tokens(self, value: bool) -> None:
        if value:
            _ = self._state.vocabulary.without_special
        self._state = replace(self._state, encode_special_tokens=bool(value))

    @property
    def truncation(self) -> dict[str, Any] | None:
        """How texts are cut, or None; set by `enable_truncation`."""
        truncation = self._state.truncation
        return None if truncation is None else truncation.as_dict()

    def enable_truncation(self, max_length: int, **options: Any) -> None:
        """Cuts texts to a length, special tokens included.

        Options: `stride` (tokens that pieces share, 0), `strategy` ("longest_first",
        "only_first", "only_second"), `direction` ("right", "left").

        Raises:
            InvalidValueError: An option is impossible; `stride` is not below what is left of
                `max_length` without special tokens.
        """
        truncation = Truncation.of(max_length, options)
        added = self._state.added(False)
        if 0 <= truncation.max_length - added < truncation.stride:
            raise InvalidValueError(
                f"stride {truncation.stride} is not below the {truncation.max_length - added} "
                f"tokens that max_length {truncation.max_length} leaves beside {added} special "
                "tokens; lower the stride, or raise max_length"
            )
        self._state = replace(self._state, truncation=truncation)

    def no_truncation(self) -> None:
        """Texts are not cut."""
        self._state = replace(self._state, truncation=None)

    @property
    def padding(self) -> dict[str, Any] | None:
        """How texts are filled up, or None; set by `enable_padding`."""
        padding = self._state.padding
        return None if padding is None else padding.as_dict()

    def enable_padding(self, **options: Any) -> None:
        """Fills texts up to a length.

        Options: `direction` ("right", "left"), `pad_to_multiple_of`, `pad_id` (0), `pad_type_id`
        (0), `pad_token` ("[PAD]"), `length` (None: that of the longest of a batch).
        """
        self._state = replace(self._state, padding=Padding.of(options))

    def no_padding(self) -> None:
        """Texts are not filled up."""
        self._state = replace(self._state, padding=None)

    # Parts

    def _part(self, name: str, kind: type[Part] = Part) -> Any:
        stated = self._state.vocabulary.file.parts.get(name)
        return None if stated is None else kind(name, stated)

    @property
    def normalizer(self) -> Any:
        """What the file says of it; it cannot be set."""
        return self._part("normalizer")

    @normalizer.setter
    def normalizer(self, value: Any) -> NoReturn:
        raise cannot_set("normalizer")

    @property
    def pre_tokenizer(self) -> Any:
        """What the file says of it; it cannot be set."""
        return self._part("pre_tokenizer")

    @pre_tokenizer.setter
    def pre_tokenizer(self, value: Any) -> NoReturn:
        raise cannot_set("pre_tokenizer")

    @property
    def post_processor(self) -> Any:
        """What the file says of it; it cannot be set."""
        return self._part("post_processor")

    @post_processor.setter
    def post_processor(self, value: Any) -> NoReturn:
        raise cannot_set("post_processor")

    @property
    def decoder(self) -> Any:
        """What decodes names of tokens; it cannot be set."""
        return self._part("decoder", Decoder)

    @decoder.setter
    def decoder(self, value: Any) -> NoReturn:
        raise cannot_set("decoder")

    @property
    def model(self) -> Any:
        """Not there: `get_vocab` has the vocabulary, `to_str` all the rest."""
        raise UnsupportedError(
            "Tokenizer.model is not in this drop-in: get_vocab gives the vocabulary, to_str all "
            "that the file says",
            name="Tokenizer.model",
        )

    @model.setter
    def model(self, value: Any) -> NoReturn:
        raise cannot_set("model")

    def train(self, *args: Any, **options: Any) -> NoReturn:
        """Not there: Kizami runs tokenizers and does not build them."""
        raise absent("Tokenizer.train", __name__, "train")

    def train_from_iterator(self, *args: Any, **options: Any) -> NoReturn:
        """Not there: Kizami runs tokenizers and does not build them."""
        raise absent("Tokenizer.train_from_iterator", __name__, "train_from_iterator")

    # As a Python object

    def __repr__(self) -> str:
        tokenizer = self._state.vocabulary.tokenizer
        return f"Tokenizer({tokenizer.name!r}, vocab_size={tokenizer.vocab_size})"

    def __copy__(self) -> Tokenizer:
        copy = Tokenizer._of_state(self._state)
        copy.__dict__.update(self.__dict__)
        return copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Tokenizer:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        state = self._state
        file = state.vocabulary.file
        source: Any = file.tokenizer if file._data is None else (file._data, file.tokenizer.name)
        settings = (state.truncation, state.padding, state.encode_special_tokens)
        added = [(id_, token.__getstate__()) for id_, token in state.vocabulary.added.items()]
        # A set is pickled in another order in each process, and caches go by the bytes of a pickle.
        special = sorted(state.vocabulary.special)
        return _rebuilt, (source, added, special, settings)


def _rebuilt(source: Any, added: list[Any], special: list[str], settings: Any) -> Tokenizer:
    """What was pickled."""
    file = File(source) if isinstance(source, kizami.Tokenizer) else File.parse(*source)
    tokenizer = Tokenizer._of_file(file)
    vocabulary = tokenizer._state.vocabulary.with_added(
        {id_: AddedToken(**token) for id_, token in added}, frozenset(special)
    )
    truncation, padding, encode_special_tokens = settings
    tokenizer._state = replace(
        tokenizer._state,
        vocabulary=vocabulary,
        truncation=truncation,
        padding=padding,
        encode_special_tokens=encode_special_tokens,
    )
    return tokenizer


def _soon(given: Any, call: Callable[[], Any]) -> asyncio.Future[Any]:
    return _soon_if(aio._is_small(given), call)


def _soon_if(small: bool, call: Callable[[], Any]) -> asyncio.Future[Any]:
    asyncio.get_running_loop()
    return asyncio.ensure_future(aio._run(small, call))
