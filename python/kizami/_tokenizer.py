"""`Tokenizer`: the public face of the native engine.

Defaults, documentation and conversions that need no speed are here; all work on text and ids is one
native call. Instances are immutable, so copies are the object itself and threads share it.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np
import numpy.typing as npt

from kizami import _native
from kizami._about import About
from kizami._batch import Batch
from kizami._export import tiktoken_file, tokenizer_json
from kizami._flags import flag
from kizami._ids import explain, invalid_id, native_ids
from kizami._session import Session
from kizami._stream import DecodeStream, stop_strings
from kizami._templates import render_template, template_variables
from kizami._write import write_file
from kizami.errors import (
    InputTypeError,
    InvalidIdError,
    InvalidValueError,
    UnknownFormatError,
    VocabularyError,
)
from kizami.segments import Segment

if TYPE_CHECKING:
    from kizami.chat.jinja import ChatTemplate

__all__ = ["BUNDLED", "Tokenizer"]

# In front of the name of a bundled model, where else the checksum of a file is.
BUNDLED = "bundled:"

Ids = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.int64]


class Tokenizer:
    """Turns text into token ids and back, exactly as one model's own tokenizer does.

    Get one from `kizami.load`. It is immutable: share it between threads, forked and spawned
    processes; `copy` and `deepcopy` give the object itself, and equal tokenizers (same vocabulary,
    control tokens and split) compare equal.

    >>> import kizami
    >>> tokenizer = kizami.load("kimi-k3")
    >>> tokenizer
    Tokenizer('kimi-k3', vocab_size=163840)
    >>> tokenizer.encode("Hello, world")
    array([19180,    11,  2695], dtype=uint32)
    """

    __slots__ = (
        "__weakref__",
        "_controls",
        "_fingerprint",
        "_jinja",
        "_name",
        "_native",
        "_source",
        "_template",
    )

    def __init__(
        self,
        native: _native.Tokenizer,
        name: str,
        fingerprint: str,
        template: dict[str, Any] | None = None,
    ) -> None:
        """Not for callers: use `kizami.load`.

        `fingerprint` is a hash of the vocabulary file, or `BUNDLED` and a name; `template`
        what its `tokenizer_config.json` says of chat templates.
        """
        self._native = native
        self._name = name
        self._controls = MappingProxyType({text: id_ for id_, text, _ in native.control_tokens()})
        self._fingerprint = (
            fingerprint,
            native.description(),
            tuple(native.control_tokens()),
        )
        self._source = fingerprint
        self._template = template
        self._jinja: ChatTemplate | None = None

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Tokenizer:
        """What `save` wrote; `kizami.load` takes such a file, too.

        The file is mapped, not read: milliseconds, and processes share the memory. It must not be
        changed as long as a process has it open; `save` puts a new file in its place instead.

        Raises:
            VocabularyError: It is damaged, or was written by another version.
        """
        name = os.fspath(path)
        try:
            native, text = _native.Tokenizer.open_saved(name, [])
        except VocabularyError as error:
            raise VocabularyError(f"{name}: {error}", path=str(name)) from None
        return Tokenizer._from_about(native, text)

    @staticmethod
    def from_bytes(data: bytes) -> Tokenizer:
        """The same from the bytes of such a file, which are copied.

        Raises:
            VocabularyError: As `open`.
        """
        return Tokenizer._from_about(*_native.Tokenizer.from_saved(data, []))

    @staticmethod
    def _from_about(native: _native.Tokenizer, text: str) -> Tokenizer:
        about = About.from_json(text)
        native = native.with_eos_ids(about.eos_ids)
        return Tokenizer(native, about.name, about.fingerprint, about.template)

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        about = About(self._name, self._source, list(self.eos_ids), self._template)
        return self._native.saved(about.to_json())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the whole tokenizer as one file, which `kizami.load` maps in milliseconds.

        The file is for this version of Kizami, on machines of this byte order; keep the model's own
        files. It is put in place at once: who has an older one open keeps that.

        Raises:
            OSError: It cannot be written.

        Cost: about 12 MB for a vocabulary of 160,000 tokens.

        >>> import kizami, tempfile, pathlib
        >>> tokenizer = kizami.load("kimi-k3")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "k3.kizami")
        ...     tokenizer.save(path)
        ...     kizami.load(path) == tokenizer
        True
        """
        write_file(path, self.to_bytes())

    def to_tokenizer_json(self) -> str:
        """A `tokenizer.json` that the package `tokenizers` loads and that gives the same ids.

        Unicode classes are then those of that package's regex engine, and the cuts of Kimi's
        published path in long text are not made.

        >>> import json, kizami
        >>> json.loads(kizami.load("kimi-k3").to_tokenizer_json())["model"]["type"]
        'BPE'
        """
        return tokenizer_json(self._native)

    def to_tiktoken(self) -> bytes:
        """A rank file that `tiktoken` loads; pattern and control tokens are given to it apart.

        Raises:
            UnknownFormatError: The model splits in several steps, normalizes its text, or has ids
                that are not in the order of its merges.

        >>> import kizami
        >>> kizami.load("kimi-k3").to_tiktoken().splitlines()[0]
        b'IQ== 0'
        """
        return tiktoken_file(self._native, self._name)

    # What it is

    @property
    def name(self) -> str:
        """What it was loaded by: a bundled name, a hub id, or the name of the directory."""
        return self._name

    @property
    def vocab_size(self) -> int:
        """Ids are below this."""
        return self._native.vocab_size

    @property
    def control_tokens(self) -> Mapping[str, int]:
        """Names of the control tokens and their ids; read-only.

        >>> import kizami
        >>> kizami.load("kimi-k3").control_tokens["<|open|>"]
        163587
        """
        return self._controls

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """Ids that end a reply of the model."""
        return tuple(self._native.eos_ids)

    @property
    def pretokenizer(self) -> str:
        """How text is split: the name of a scanner, or "general" for the general regex engine.

        >>> import kizami
        >>> kizami.load("kimi-k3").pretokenizer
        'kimi'
        """
        return self._native.pretokenizer

    # Text to ids

    def encode(self, text: str, *, allow_special: bool = False, legacy_chunks: bool = True) -> Ids:
        """The ids of one text.

        Args:
            text: Any `str`. A lone surrogate counts as U+FFFD, as in the published path.
            allow_special: True: names of control tokens in `text` become their ids. The default,
                False, is right for all text that you did not write yourself: it never gives a
                control id.
            legacy_chunks: Make the cuts that the published path of the Kimi models makes in long
                text (slices of 400,000 code points, runs of 25,000). False gives other ids than the
                model's own tokenizer for such texts. No meaning for other models.

        Returns:
            Shape (n,), uint32, C-contiguous, writable, owning its data. PyTorch wants
            `torch.from_numpy(ids.astype("int64"))`, or `ids.view("int32")` without a copy.

        Raises:
            InputTypeError: `text` is not `str`.

        Cost: linear in the text; the interpreter lock is released above a few KB, and large
        texts use up to `kizami.get_num_threads()` threads.

        >>> import kizami
        >>> tokenizer = kizami.load("kimi-k3")
        >>> tokenizer.encode("<|open|>").tolist()
        [27, 91, 4454, 91, 29]
        >>> tokenizer.encode("<|open|>", allow_special=True).tolist()
        [163587]
        """
        return self._native.encode(
            text, flag(allow_special, "allow_special"), flag(legacy_chunks, "legacy_chunks")
        )

    def encode_segments(
        self, segments: Iterable[Segment | tuple[str, bool]], *, legacy_chunks: bool = True
    ) -> Ids:
        """The ids of a prompt made of trusted and untrusted segments.

        Each segment is encoded alone: nothing merges across a border, and the text of a segment
        without `allow_special` never gives a control id, whatever it spells.

        Args:
            segments: In order: `Segment`s, `(text, allow_special)` pairs (tuples or lists), or
                objects with these two attributes. `allow_special` is a bool, or 0 or 1.
            legacy_chunks: See `encode`. Cuts never run across segments.

        Returns:
            As `encode`: the concatenation of the ids of each segment.

        Raises:
            InputTypeError: A segment is malformed; `.segment` is its index.

        Cost: one native call; linear in the text, as `encode`. For prompts that grow, `session`.

        >>> import kizami
        >>> tokenizer = kizami.load("kimi-k3")
        >>> tokenizer.encode_segments([("<|open|>", True), ("<|open|>", False)]).tolist()
        [163587, 27, 91, 4454, 91, 29]
        """
        return self._native.encode_segments(segments, flag(legacy_chunks, "legacy_chunks"))

    def encode_batch(self, texts: Iterable[str], *, allow_special: bool = False) -> Batch:
        """The ids of many texts: one native call, one array, all allowed threads.

        Args:
            texts: Any iterable of `str`.
            allow_special: As in `encode`, for all texts.

        Raises:
            InputTypeError: A text is not `str`; `.position` is its index.

        >>> import kizami
        >>> kizami.load("kimi-k3").encode_batch(["one", "two words"]).tolist()
        [[787], [35558, 7030]]
        """
        return Batch(*self._native.encode_batch(texts, flag(allow_special, "allow_special")))

    def encode_with_offsets(
        self, text: str, *, allow_special: bool = False, unit: Literal["char", "byte"] = "char"
    ) -> tuple[Ids, Offsets, Offsets]:
        """The ids of one text, and the range of the text that each came from.

        Tokens are made of bytes, so some hold a part of a character. Counted in "char", each of
        them covers the whole character, and they overlap; counted in "byte", ranges never do.

        Args:
            text: As in `encode`.
            allow_special: As in `encode`.
            unit: "char" counts code points of `text`, so that `text[start:end]` is what a token
                covers; "byte" counts bytes of its UTF-8. A lone surrogate is one code point, and
                three bytes, those of U+FFFD.

        Returns:
            ids, equal to `encode(text, allow_special=allow_special)`; starts and ends, int64, of
            the same length.

        Raises:
            InputTypeError: `text` is not `str`.
            InvalidValueError: `unit` is neither.
            UnknownFormatError: The tokens do not spell this text, because the tokenizer changed it
                first (a normalizer, a space put before it). That depends on the text: what is left
                as it is has offsets.

        Cost: as `encode`, and one pass over the characters of a text that is not ASCII.

        >>> import kizami
        >>> tokenizer = kizami.load("kimi-k3")
        >>> text = "Hi 🎉!"
        >>> ids, starts, ends = tokenizer.encode_with_offsets(text)
        >>> [text[start:end] for start, end in zip(starts, ends)]
        ['Hi', ' 🎉', '🎉', '🎉', '!']
        >>> tokenizer.encode_with_offsets(text, unit="byte")[2].tolist()
        [2, 5, 6, 7, 8]
        """
        trusted = flag(allow_special, "allow_special")
        return self._native.encode_with_offsets(text, trusted, _in_bytes(unit))

    def encode_segments_with_offsets(
        self,
        segments: Iterable[Segment | tuple[str, bool]],
        *,
        unit: Literal["char", "byte"] = "char",
    ) -> tuple[Ids, Offsets, Offsets, Offsets]:
        """The ids of a prompt, the range that each came from, and the segment it came from.

        Returns:
            ids, as `encode_segments`; starts and ends within the segment, as
            `encode_with_offsets`; the index of the segment. All of one length, the last three
            int64.

        Raises:
            InputTypeError, InvalidValueError, UnknownFormatError: As `encode_segments` and
                `encode_with_offsets`; `.segment` is the index.

        >>> import kizami
        >>> tokenizer = kizami.load("kimi-k3")
        >>> segments = [("<|open|>", True), ("two words", False)]
        >>> ids, starts, ends, index = tokenizer.encode_segments_with_offsets(segments)
        >>> [segments[i][0][start:end] for i, start, end in zip(index, starts, ends)]
        ['<|open|>', 'two', ' words']
        """
        return self._native.encode_segments_with_offsets(segments, _in_bytes(unit))

    def count(self, text: str, *, allow_special: bool = False) -> int:
        """`len(encode(text))`, without building the ids. Arguments and errors as in `encode`.

        >>> import kizami
        >>> kizami.load("kimi-k3").count("Hello, world")
        3
        """
        return self._native.count(text, flag(allow_special, "allow_special"))

    def count_segments(self, segments: Iterable[Segment | tuple[str, bool]]) -> int:
        """`len(encode_segments(segments))`, without building the ids.

        >>> import kizami
        >>> kizami.load("kimi-k3").count_segments([("<|open|>", True), ("message", False)])
        2
        """
        return self._native.count_segments(segments)

    # Conversations

    def render_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        thinking: bool = True,
        thinking_effort: str | None = "max",
        tool_choice: Any = None,
        response_format: Any = None,
        response_schema: Any = None,
        image_prompts: Sequence[str] | None = None,
        developer_as_system: bool = False,
        **template_options: Any,
    ) -> list[Segment]:
        """The prompt of a conversation as typed segments, as the model's own template writes it.

        Only what the template itself writes is trusted; content of messages and tools never is.

        Args:
            messages: OpenAI-style messages. They are not changed. What has another role than
                system, user, assistant or tool is left out, as the model's own template does, with
                a `ChatWarning`.
            tools: JSON schemas of the tools.
            add_generation_prompt: End with the opening of the assistant's reply.
            thinking: Leave room for reasoning; False leaves out the reasoning of earlier turns too.
            thinking_effort: "low", "high" or "max" add a system message that says so; None adds
                nothing.
            tool_choice: "required" or "none" add an instruction; all else adds nothing (a word
                other than "auto" with a `ChatWarning`).
            response_format: `{"type": "json_object"}` or `{"type": "json_schema", ...}`. All else
                adds nothing, with a `ChatWarning` unless it is None or of the type "text".
            response_schema: A JSON schema that takes the place of the one in `response_format`.
            image_prompts: One trusted prompt an image, in order. Without them an image is
                `<|kimi_image_placeholder|>`, which is no control token: see the guide.
            developer_as_system: Render messages of the role `developer` as system messages. The
                model's own template leaves them out, and so does the default, with a `ChatWarning`.
            template_options: For models with a Jinja template: variables of the template, such as
                `enable_thinking`. These models take `thinking` and `thinking_effort` as
                `enable_thinking`, `thinking` and `reasoning_effort`, if they are not the default,
                and the other options as variables of the same name. Where trust cannot be followed
                through the template, its output counts as untrusted, with a `ChatWarning`. The
                text is that of `apply_chat_template(tokenize=False)` of transformers 5.

        Raises:
            ChatValueError, ChatTypeError, ChatKeyError: A message or an option cannot be rendered;
                `.message_index` names the message.
            UnknownFormatError: No renderer is known for this model.

        >>> import kizami
        >>> tokenizer = kizami.load("kimi-k3")
        >>> segments = tokenizer.render_chat([{"role": "user", "content": "Hi <|sep|>"}])
        >>> [s for s in segments if "Hi" in s.text]
        [Segment(text='Hi <|sep|>', allow_special=False)]
        """
        from kizami.chat import renderer_for

        render = renderer_for(self._controls)
        if render is not None and not template_options:
            return render(
                messages,
                tools=tools,
                add_generation_prompt=add_generation_prompt,
                thinking=thinking,
                thinking_effort=thinking_effort,
                tool_choice=tool_choice,
                response_format=response_format,
                response_schema=response_schema,
                image_prompts=image_prompts,
                developer_as_system=developer_as_system,
            )
        if render is not None:
            unknown = ", ".join(sorted(template_options))
            raise InputTypeError(f"the renderer of {self._name!r} has no option {unknown}")
        if self._template is None:
            raise UnknownFormatError(
                f"no chat renderer is known for {self._name!r}: no chat_template came with it; "
                "render the conversation to segments yourself and call encode_segments",
                source=self._name,
            )
        variables = template_variables(
            template_options,
            thinking=thinking,
            thinking_effort=thinking_effort,
            developer_as_system=developer_as_system,
            tool_choice=tool_choice,
            response_format=response_format,
            response_schema=response_schema,
            image_prompts=image_prompts,
        )
        if self._jinja is None:
            from kizami.chat.jinja import ChatTemplate

            self._jinja = ChatTemplate.from_tokenizer_config(self._template)
        given = {"tools": tools, "add_generation_prompt": add_generation_prompt, **variables}
        return render_template(self._jinja, self._name, messages, **given)

    def encode_chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> Ids:
        """`encode_segments(render_chat(messages, **options))`.

        Options: as `render_chat` (`tools`, `add_generation_prompt`, `thinking`, `thinking_effort`,
        `tool_choice`, `response_format`, `response_schema`, `image_prompts`,
        `developer_as_system`).

        >>> import kizami
        >>> tokenizer = kizami.load("kimi-k3")
        >>> messages = [{"role": "user", "content": "Hi"}]
        >>> len(tokenizer.encode_chat(messages)) == tokenizer.count_chat(messages)
        True
        """
        return self._native.encode_segments(self.render_chat(messages, **options), True)

    def count_chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> int:
        """`len(encode_chat(messages, **options))`, without building the ids.

        Options: as `render_chat`.
        """
        return self._native.count_segments(self.render_chat(messages, **options))

    # Ids to text

    def decode(
        self,
        ids: Iterable[SupportsIndex] | Ids,
        *,
        skip_special: bool = False,
        errors: str = "replace",
    ) -> str:
        """The text of `ids`.

        Args:
            ids: A sequence of ints, or a one-dimensional integer array.
            skip_special: Leave out the control tokens that the vocabulary flags as special (for
                K3, not `<|open|>`, `<|close|>` and `<|sep|>`, which parsers of replies need).
            errors: What to do with bytes that are no UTF-8, as in `bytes.decode`.

        Raises:
            InvalidIdError: An id is outside the vocabulary; `.id`, `.position`.
            InputTypeError: `ids` are no integers.

        >>> import kizami
        >>> tokenizer = kizami.load("kimi-k3")
        >>> tokenizer.decode(tokenizer.encode("naïve 🎉"))
        'naïve 🎉'
        """
        if not isinstance(errors, str):
            raise InputTypeError(f"errors must be str, not {type(errors).__name__}")
        skip = flag(skip_special, "skip_special")
        converted = native_ids(ids, self.vocab_size)
        try:
            return self._native.decode(converted, skip, errors)
        except (TypeError, OverflowError) as error:
            raise self._diagnose(converted, error) from None

    def decode_bytes(self, ids: Iterable[SupportsIndex] | Ids) -> bytes:
        """The concatenated bytes of `ids`, exactly. Arguments and errors as in `decode`.

        Law: `decode_bytes(encode(text)) == text.encode()` for every text without surrogates.

        >>> import kizami
        >>> kizami.load("kimi-k3").decode_bytes([19180, 11])
        b'Hello,'
        """
        converted = native_ids(ids, self.vocab_size)
        try:
            return self._native.decode_bytes(converted, False)
        except (TypeError, OverflowError) as error:
            raise self._diagnose(converted, error) from None

    def _diagnose(self, ids: Any, error: Exception) -> Exception:
        return (explain(ids, self.vocab_size) if isinstance(ids, list) else None) or error

    def decode_batch(
        self,
        batch: Iterable[Iterable[SupportsIndex] | Ids],
        *,
        skip_special: bool = False,
        errors: str = "replace",
    ) -> list[str]:
        """`decode` of each; a `Batch` is taken too.

        Raises:
            InvalidIdError, InputTypeError: As `decode`; `.row` names the sequence.

        >>> import kizami
        >>> tokenizer = kizami.load("kimi-k3")
        >>> tokenizer.decode_batch(tokenizer.encode_batch(["one", "two words"]))
        ['one', 'two words']
        """
        if isinstance(batch, (str, bytes)) or not isinstance(batch, Iterable):
            kind = type(batch).__name__
            raise InputTypeError(f"batch must be an iterable of sequences of ids, not {kind}")
        texts = []
        for row, ids in enumerate(batch):
            try:
                texts.append(self.decode(ids, skip_special=skip_special, errors=errors))
            except (InvalidIdError, InputTypeError) as error:
                raise error.at_row(row) from None
        return texts

    def stream(
        self, *, skip_special: bool = False, stop: str | Iterable[str] | None = ()
    ) -> DecodeStream:
        """A `DecodeStream`: the text of ids that come one after the other.

        It starts with the first id pushed to it, and knows nothing of a prompt.

        Args:
            skip_special: As in `decode`.
            stop: Strings that end the text, one or several; None is none.

        Raises:
            InputTypeError: `stop` holds something else than `str`; `.position` is its index.
            InvalidValueError: A stop string is empty, or has a lone surrogate.

        Cost: that of reading the stop strings.

        >>> import kizami
        >>> tokenizer = kizami.load("kimi-k3")
        >>> stream = tokenizer.stream(stop="###")
        >>> [stream.push(id) for id in tokenizer.encode("naïve 🎉 ###more")]
        ['na', 'ï', 've', ' ', '', '🎉', ' ', '']
        >>> stream.stopped
        '###'
        """
        skip = flag(skip_special, "skip_special")
        return DecodeStream(self._native.stream(skip, stop_strings(stop)))

    def session(self) -> Session:
        """A `Session`: for prompts that grow, such as those of an agent.

        >>> import kizami
        >>> session = kizami.load("kimi-k3").session()
        >>> session.encode_segments([("Hello, world", False)])
        array([19180,    11,  2695], dtype=uint32)
        """
        return Session(self)

    # The vocabulary

    def token_bytes(self, id: SupportsIndex) -> bytes:
        """The bytes of one token; of a control token, its name.

        Raises:
            InvalidIdError: `id` is outside the vocabulary.

        >>> import kizami
        >>> kizami.load("kimi-k3").token_bytes(2695)
        b' world'
        """
        fault = explain([id], self.vocab_size)
        if fault is not None:
            raise fault
        number = operator.index(id)
        found = self._native.token_bytes(number)
        if found is None:
            raise invalid_id(number, 0, self.vocab_size)
        return found

    def token_id(self, token: bytes | str) -> int | None:
        """The id of the token with exactly these bytes, or the control token of that name, or None.

        A `str` stands for its UTF-8 bytes.

        >>> import kizami
        >>> tokenizer = kizami.load("kimi-k3")
        >>> [tokenizer.token_id(token) for token in (" world", b"[PAD]", "no token")]
        [2695, 163839, None]
        """
        if isinstance(token, str):
            token = token.encode("utf-8", "surrogatepass")
        elif not isinstance(token, (bytes, bytearray)):
            raise InputTypeError(f"token must be bytes or str, not {type(token).__name__}")
        return self._native.token_id(bytes(token))

    def tokens(self) -> Iterator[tuple[int, bytes]]:
        """All tokens as (id, bytes), in id order, control tokens last.

        >>> import kizami
        >>> next(kizami.load("kimi-k3").tokens())
        (0, b'!')
        """
        for id_ in range(self.vocab_size):
            token = self._native.token_bytes(id_)
            if token is not None:
                yield id_, token

    # As a Python object

    def __repr__(self) -> str:
        return f"Tokenizer({self._name!r}, vocab_size={self.vocab_size})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return self._native is other._native or self._fingerprint == other._fingerprint

    def __hash__(self) -> int:
        return hash(self._fingerprint)

    def __copy__(self) -> Tokenizer:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Tokenizer:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        from kizami._load import unpickle

        # A bundled vocabulary is not carried along: the wheel on the other side has it.
        state: Any
        if self._source.startswith(BUNDLED):
            state = None
        elif self._source == _native.KIMI_RANK_FILE_SHA256:
            controls = self._native.control_tokens()
            state = (controls, list(self.eos_ids), self._template)
        else:
            state = self.to_bytes()
        return unpickle, (self._name, self._source, state)


def _in_bytes(unit: str) -> bool:
    if unit not in ("char", "byte"):
        raise InvalidValueError(f"unit must be 'char' or 'byte', not {unit!r}")
    return unit == "byte"
