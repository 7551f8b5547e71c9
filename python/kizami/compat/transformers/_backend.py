"""`Backend`: the drop-in for `tokenizers`, as the `_tokenizer` of a fast tokenizer.

It adds what `transformers` needs and the drop-in lacks. Added tokens are objects of `tokenizers`.
Parts of the pipeline (`model`, `post_processor` and their like) are those of the original, made
when they are asked for. And each thread has its own truncation and padding: `transformers` sets
them before each call, so that threads which share a tokenizer would otherwise get each other's.
"""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import tokenizers

from kizami._export import byte_letters
from kizami.compat.tokenizers import AddedToken, Tokenizer
from kizami.compat.tokenizers._state import State
from kizami.errors import UnknownFormatError

__all__ = ["Backend"]


class _Settings(threading.local):
    """The state that one thread sees, and the common one that it was made from."""

    seen: State | None = None
    own: State | None = None


class Backend(Tokenizer):
    """A `Tokenizer` that a fast tokenizer of `transformers` can hold."""

    __slots__ = ()

    @staticmethod
    def of(plain: Any) -> Backend:
        """From a `tokenizers.Tokenizer`.

        Raises:
            UnknownFormatError, VocabularyError, UnsupportedError: It cannot be run exactly.
        """
        return _of(_state_of(plain))

    # Called by all methods of the drop-in; see the top of this file.
    @property
    def _state(self) -> State:
        settings: _Settings = self.__dict__["_settings"]
        common: State = self.__dict__["_common"]
        own = settings.own
        if settings.seen is common and own is not None:
            return own
        if own is None:
            own = common
        else:
            own = replace(
                common,
                truncation=own.truncation,
                padding=own.padding,
                encode_special_tokens=own.encode_special_tokens,
            )
        settings.seen, settings.own = common, own
        return own

    @_state.setter
    def _state(self, state: State) -> None:
        common: State = self.__dict__["_common"]
        if state.vocabulary is not common.vocabulary or state.processor is not common.processor:
            common = replace(common, vocabulary=state.vocabulary, processor=state.processor)
            self.__dict__["_common"] = common
        settings: _Settings = self.__dict__["_settings"]
        settings.seen, settings.own = common, state

    # Added tokens

    def get_added_tokens_decoder(self) -> dict[int, Any]:
        """The added tokens by id."""
        added = self._state.vocabulary.added
        return {id_: tokenizers.AddedToken(**added[id_].__getstate__()) for id_ in sorted(added)}

    def add_tokens(self, tokens: Any) -> int:
        """Adds tokens, `str` or `AddedToken`; how many of them are new or changed."""
        return super().add_tokens(_ours(tokens))

    def add_special_tokens(self, tokens: Any) -> int:
        """The same for tokens that `decode` skips."""
        return super().add_special_tokens(_ours(tokens))

    # Parts

    def to_tokenizers(self) -> Any:
        """The `tokenizers.Tokenizer` that gives the same ids.

        Cost: building one, half a second for a large vocabulary.
        """
        return tokenizers.Tokenizer.from_str(self.to_str())

    def _set_part(self, name: str, value: Any) -> None:
        plain = self.to_tokenizers()
        setattr(plain, name, value)
        self._state = _state_of(plain)

    def _part_of_the_original(self, name: str) -> Any:
        """A part other than the model, made for this call."""
        stated = self._state.vocabulary.file.parts.get(name)
        if stated is None:
            return None
        # Any model will do, and one without tokens is built at once.
        empty = {"type": "BPE", "vocab": {}, "merges": []}
        file = json.dumps({"version": "1.0", "added_tokens": [], name: stated, "model": empty})
        return getattr(tokenizers.Tokenizer.from_str(file), name)

    @property
    def model(self) -> Any:
        """The model of the original, made when it is first asked for, and shared by copies."""
        held = self._state.vocabulary.file.__dict__
        if "original_model" not in held:
            held["original_model"] = self.to_tokenizers().model
        return held["original_model"]

    @model.setter
    def model(self, value: Any) -> None:
        self._set_part("model", value)

    @property
    def normalizer(self) -> Any:
        """The normalizer of the original, made for this call."""
        return self._part_of_the_original("normalizer")

    @normalizer.setter
    def normalizer(self, value: Any) -> None:
        self._set_part("normalizer", value)

    @property
    def pre_tokenizer(self) -> Any:
        """The pre-tokenizer of the original, made for this call."""
        return self._part_of_the_original("pre_tokenizer")

    @pre_tokenizer.setter
    def pre_tokenizer(self, value: Any) -> None:
        self._set_part("pre_tokenizer", value)

    @property
    def post_processor(self) -> Any:
        """The post-processor of the original, made for this call."""
        return self._part_of_the_original("post_processor")

    @post_processor.setter
    def post_processor(self, value: Any) -> None:
        self._set_part("post_processor", value)

    @property
    def decoder(self) -> Any:
        """What decodes names of tokens."""
        return super().decoder

    @decoder.setter
    def decoder(self, value: Any) -> None:
        self._set_part("decoder", value)

    # As a Python object

    def __copy__(self) -> Backend:
        return _of(self._state)

    def __reduce__(self) -> tuple[Any, ...]:
        rebuild, arguments = super().__reduce__()
        return _rebuilt, (rebuild, arguments)


def _of(state: State) -> Backend:
    backend = Backend.__new__(Backend)
    backend.__dict__.update(_common=state, _settings=_Settings())
    return backend


def _rebuilt(rebuild: Any, arguments: tuple[Any, ...]) -> Backend:
    return _of(rebuild(*arguments)._state)


def _state_of(plain: Any) -> State:
    """The state of a `tokenizers.Tokenizer`."""
    try:
        text = plain.to_str()
    except Exception as error:
        # A step that is written in Python, for instance.
        raise UnknownFormatError(
            f"it cannot be written as JSON: {error}; use it as it is"
        ) from None
    try:
        state = Tokenizer.from_str(text)._state
    except UnknownFormatError:
        simpler = without_fallback(text)
        if simpler is None:
            raise
        state = Tokenizer.from_str(simpler)._state
    # No part of the file.
    if plain.encode_special_tokens:
        _ = state.vocabulary.without_special
        state = replace(state, encode_special_tokens=True)
    return state


def without_fallback(text: str) -> str | None:
    """The same tokenizer without fallback to bytes, if that can never happen; else None.

    Some versions of `transformers` load byte-level tokenizers with a class made for SentencePiece,
    which turns it on. It is for letters that the vocabulary lacks, and has no effect where it has
    all letters of the byte-level alphabet and text is spelled in them.
    """
    stated = json.loads(text)
    model, split = stated["model"], stated.get("pre_tokenizer") or {}
    last = (split.get("pretokenizers") or [split])[-1]
    if not model.get("byte_fallback") or last.get("type") != "ByteLevel":
        return None
    if not model["vocab"].keys() >= set(byte_letters()):
        return None
    model["byte_fallback"] = model["fuse_unk"] = False
    return json.dumps(stated, ensure_ascii=False)


def _ours(tokens: Any) -> Any:
    """Tokens to add, with those of `tokenizers` as ours."""
    if not isinstance(tokens, (list, tuple)):
        return tokens
    return [
        AddedToken(**token.__getstate__()) if isinstance(token, tokenizers.AddedToken) else token
        for token in tokens
    ]
