"""The slow tokenizers of the Kimi line, in place.

Moonshot publishes a class `TikTokenTokenizer` with its models: Python around `tiktoken`, which cuts
long text character by character. A tokenizer of that class gets a subclass of the same name whose
`encode` and `decode`, and the step that encodes the segments of a conversation, are native calls;
`_kimi_chat` says when Kizami renders conversations. All the rest is the class's own code.

Nothing is assumed of that code which is not looked at first: see `_refusal`.
"""

from __future__ import annotations

import copy
import functools
import threading
import types
from functools import cached_property
from pathlib import Path
from typing import Any

import kizami
from kizami import _native
from kizami._export import byte_letters
from kizami._load_kimi import ordinary_tokens
from kizami.chat import renderer_for
from kizami.compat.transformers._kimi_chat import Options, same_renderer
from kizami.errors import UnknownFormatError, UnsupportedError
from kizami.reference import RUN, SLICE

__all__ = ["Kimi", "adopt_kimi", "is_kimi"]

_LOCK = threading.Lock()
# By published class, and whether the vocabulary is one of K3.
_CLASSES: dict[tuple[type, bool], Any] = {}
_ALIKE: dict[type, tuple[str, ...]] = {}

# What a tokenizer holds that can be made from its vocabulary, and that nobody changes.
_TABLES = ("model", "decoder", "encoder")

# Where the published classes cut text.
_CUTTING = ("_encode_text_piece", "encode")

# Both kinds of tokens, names of control tokens, cuts in runs of either kind.
_PROBES = (
    "",
    "Hello, world",
    "<|open|>x[EOS]\n\n  naïve 中文 🎉 don't <|reserved_token_163700|>",
    "a" * (RUN + 1) + " " * (RUN + 1) + "b",
    "\x1c" * (RUN + 1),
)


class Kimi:
    """What is put before a class of Moonshot's; never made by itself."""

    _kizami: kizami.Tokenizer
    _plain: Any
    _chat: Options | None

    # The next four are names and signatures of the published classes; not all of them have all.

    def _encode_text_piece(self, text: Any, allow_special_tokens: Any = True) -> list[int]:
        if type(text) is not str:
            ids: list[int] = _call(self, "_encode_text_piece", text, allow_special_tokens)
            return ids
        return _encoded(self, text, allow_special_tokens)

    def _encode_chat_segments(self, segments: Any, *args: Any, **kwargs: Any) -> Any:
        if args or any(kwargs.values()):
            # That code encodes segments one by one, by `_encode_text_piece`.
            return _call(self, "_encode_chat_segments", segments, *args, **kwargs)
        return self._kizami._native.encode_segments(segments, True).tolist()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As the class's own call; where that leaves out offsets without a word, an error.

        Raises:
            UnsupportedError: Offsets are asked for.
        """
        if kwargs.get("return_offsets_mapping"):
            raise UnsupportedError(
                f"{type(self).__name__} is a slow tokenizer and has no offsets; "
                "kizami.Tokenizer.encode_with_offsets gives them",
                name="return_offsets_mapping",
            )
        return _call(self, "__call__", *args, **kwargs)

    def encode(self, text: Any, allow_special_tokens: Any = True, **kwargs: Any) -> Any:
        """The ids of a text; as the class's own `encode`."""
        if type(text) is not str:
            return _call(self, "encode", text, allow_special_tokens, **kwargs)
        if not kwargs:
            return _encoded(self, text, allow_special_tokens)
        if kwargs.keys() == {"add_special_tokens"} and "encode" in self._plain.__dict__:
            # The class has no tokens to add; it logs a warning and does this.
            return super(self._plain, self).encode(text, **kwargs)  # type: ignore[misc]
        return _call(self, "encode", text, allow_special_tokens, **kwargs)

    def decode(self, token_ids: Any, *args: Any, **kwargs: Any) -> Any:
        """The text of ids; as the class's own `decode`."""
        if args or kwargs or not isinstance(token_ids, (list, tuple, int)):
            return _call(self, "decode", token_ids, *args, **kwargs)
        return self._kizami.decode([token_ids] if isinstance(token_ids, int) else token_ids)

    def apply_chat_template(self, conversation: Any, *args: Any, **kwargs: Any) -> Any:
        """A conversation as ids or text; as the class's own `apply_chat_template`."""
        if not args and self._chat is not None:
            segments = self._chat.render(conversation, kwargs)
            if segments is not None:
                return self._kizami._native.encode_segments(segments, True).tolist()
        return _call(self, "apply_chat_template", conversation, *args, **kwargs)

    def tokenize(self, text: Any, *args: Any, **kwargs: Any) -> Any:
        """The names of the tokens of a text; unlike the class's own, with `split_special_tokens`.

        The class does not heed that option, which says that the text is not trusted.
        """
        split = kwargs.get("split_special_tokens", getattr(self, "split_special_tokens", False))
        if split and type(text) is str:
            names = self.decoder
            return [names[id_] for id_ in _encoded(self, text, False)]
        return _call(self, "tokenize", text, *args, **kwargs)

    # Tables, which copies share and pickles leave out.

    @cached_property
    def model(self) -> Any:
        """The `tiktoken.Encoding` of the class."""
        import tiktoken

        controls = dict(self._kizami.control_tokens)
        ids = set(controls.values())
        return tiktoken.Encoding(
            name=Path(self.vocab_file).name,  # type: ignore[attr-defined]
            pat_str=_native.KIMI_PATTERN,
            mergeable_ranks={token: id_ for id_, token in self._kizami.tokens() if id_ not in ids},
            special_tokens=controls,
        )

    @cached_property
    def decoder(self) -> dict[int, str]:
        """Names of tokens by id, bytes spelled as letters."""
        return _decoder(self._kizami)

    @cached_property
    def encoder(self) -> dict[str, int]:
        """Ids by name."""
        return {name: id_ for id_, name in self.decoder.items()}

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        new = self.__class__.__new__(self.__class__)
        memo[id(self)] = new
        for name, value in self.__dict__.items():
            new.__dict__[name] = value if name in _TABLES else copy.deepcopy(value, memo)
        return new

    def __copy__(self) -> Any:
        new = self.__class__.__new__(self.__class__)
        new.__dict__.update(self.__dict__)
        return new

    # Not `__reduce_ex__`: subclasses of engines have a `__reduce__` of their own.
    def __reduce__(self) -> tuple[Any, ...]:
        left_out = _made_alike(self)
        state = {name: value for name, value in self.__dict__.items() if name not in left_out}
        return _rebuilt, (self._plain, state)


def is_kimi(tokenizer: Any) -> bool:
    """Whether a tokenizer is made as those of Moonshot are."""
    model = getattr(tokenizer, "__dict__", {}).get("model")
    return type(model).__module__.startswith("tiktoken") and hasattr(tokenizer, "vocab_file")


def adopt_kimi(tokenizer: Any) -> Any:
    """Makes such a tokenizer run on Kizami; the same object.

    Raises:
        UnknownFormatError: Its code, or its vocabulary, is not what Kizami knows.
    """
    ranks = Path(tokenizer.vocab_file)
    base, fingerprint = ordinary_tokens(ranks)
    model, special = tokenizer.model, set(tokenizer.all_special_ids)
    controls = [
        (id_, name, id_ in special)
        for name, id_ in sorted(model._special_tokens.items(), key=lambda item: item[1])
    ]
    eos = tokenizer.eos_token_id
    native = base.with_control_tokens(controls, [] if eos is None else [eos])
    refusal = _refusal(tokenizer, native)
    if refusal is not None:
        raise UnknownFormatError(
            f"{type(tokenizer).__name__} is not the class of the Kimi line that Kizami knows: "
            f"{refusal}; use it as it is, or kizami.load with the folder of the model",
            source=str(ranks),
        )
    name = str(getattr(tokenizer, "name_or_path", "") or ranks.parent.name)
    _become(tokenizer, kizami.Tokenizer(native, name, fingerprint))
    return tokenizer


def _refusal(tokenizer: Any, native: _native.Tokenizer) -> str | None:
    """Why a tokenizer cannot be run exactly, or None."""
    model = tokenizer.model
    if model._pat_str != _native.KIMI_PATTERN:
        return "its split pattern is another"
    if len(model._mergeable_ranks) != native.vocab_size - len(model._special_tokens):
        return f"its ranks are not those of {tokenizer.vocab_file}"
    plain = type(tokenizer)
    if not any(_states_cuts(getattr(plain, name, None)) for name in _CUTTING):
        return f"its code does not cut text at {SLICE:,} characters and runs at {RUN:,}"
    for probe in _PROBES:
        for trusted in (True, False):
            try:
                ids = tokenizer.encode(probe, trusted)
            except Exception as error:
                return f"it cannot encode {probe[:60]!r}: {error}"
            if ids != native.encode(probe, trusted, True).tolist():
                return f"it encodes {probe[:60]!r} in another way"
    return None


def _states_cuts(method: Any) -> bool:
    """Whether both limits of the published path are numbers in a method, or global names in it."""
    code = getattr(method, "__code__", None)
    if code is None:
        return False
    named = [method.__globals__.get(name) for name in code.co_names]
    numbers = {value for value in (*code.co_consts, *named) if type(value) is int}
    return {SLICE, RUN} <= numbers


def _become(tokenizer: Any, ours: kizami.Tokenizer) -> None:
    plain, speaks_k3 = type(tokenizer), renderer_for(ours.control_tokens) is not None
    with _LOCK:
        is_new = (plain, speaks_k3) not in _CLASSES
        if is_new:
            _CLASSES[plain, speaks_k3] = _class_of(plain)
        tokenizer.__dict__["_kizami"] = ours
        tokenizer.__class__ = kind = _CLASSES[plain, speaks_k3]
        if is_new and speaks_k3:
            kind._chat = _chat_of(tokenizer)


def _class_of(plain: Any) -> Any:
    """A subclass of a published class."""
    names: dict[str, Any] = {
        "_plain": plain,
        "_chat": None,
        "__doc__": plain.__doc__,
        "__module__": plain.__module__,
        "__qualname__": plain.__qualname__,
    }
    # Engines ask which options a method takes.
    for name in ("__call__", "encode", "decode", "tokenize", "apply_chat_template"):
        if hasattr(plain, name):
            names[name] = _with_signature(getattr(Kimi, name), getattr(plain, name))
    return type(plain.__name__, (Kimi, plain), names)


def _chat_of(tokenizer: Kimi) -> Options | None:
    """What renders the conversations of a class, unless it must do that itself."""

    def encode(segments: Any) -> Any:
        return tokenizer._kizami._native.encode_segments(segments, True).tolist()

    apply = functools.partial(_call, tokenizer, "apply_chat_template")
    is_same = same_renderer(tokenizer._plain.apply_chat_template, apply, encode)
    return Options(tokenizer._plain.apply_chat_template) if is_same else None


def _with_signature(ours: Any, theirs: Any) -> Any:
    """The same function with the name, the signature and the docstring of another."""
    copied = types.FunctionType(
        ours.__code__, ours.__globals__, ours.__name__, ours.__defaults__, ours.__closure__
    )
    copied.__kwdefaults__ = ours.__kwdefaults__
    return functools.update_wrapper(copied, theirs)


def _encoded(tokenizer: Kimi, text: str, trusted: Any) -> list[int]:
    ids: list[int] = tokenizer._kizami._native.encode(text, bool(trusted), True).tolist()
    return ids


def _call(tokenizer: Kimi, name: str, *args: Any, **kwargs: Any) -> Any:
    """What the class itself does."""
    return getattr(super(Kimi, tokenizer), name)(*args, **kwargs)


def _decoder(tokenizer: kizami.Tokenizer) -> dict[int, str]:
    letters = dict(enumerate(byte_letters()))
    return {id_: token.decode("latin-1").translate(letters) for id_, token in tokenizer.tokens()}


def _made_alike(tokenizer: Kimi) -> tuple[str, ...]:
    """The tables that are in a tokenizer of this class as we would make them."""
    plain = tokenizer._plain
    if plain not in _ALIKE:
        held, decoder = tokenizer.__dict__, _decoder(tokenizer._kizami)
        alike = ["model"]
        if held.get("decoder", decoder) == decoder:
            alike.append("decoder")
        encoder = {name: id_ for id_, name in decoder.items()}
        if held.get("encoder", encoder) == encoder:
            alike.append("encoder")
        _ALIKE[plain] = tuple(alike)
    return _ALIKE[plain]


def _rebuilt(plain: Any, state: dict[str, Any]) -> Any:
    """What was pickled; it needs no `patch`."""
    tokenizer = plain.__new__(plain)
    tokenizer.__dict__.update(state)
    _become(tokenizer, state["_kizami"])
    return tokenizer
