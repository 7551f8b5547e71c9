"""Ids to text in vLLM, for tokenizers that run on Kizami.

vLLM chooses a detokenizer by the class of the tokenizer. For slow classes, that of Kimi among them,
it decodes names of tokens in Python and puts spaces beside added tokens; for fast ones it needs a
tokenizer of the package `tokenizers`. Here both get a stream of Kizami, whose cost a token does not
depend on what came before. Stop strings remain vLLM's work.
"""

from __future__ import annotations

import importlib
from typing import Any

import kizami
from kizami.engines._adopting import kizami_of
from kizami.errors import InputTypeError, InvalidIdError

__all__ = ["install"]

# A character has four bytes, and a token one at least; special tokens that are left out have none.
_TAIL = 8


def primed(tokenizer: kizami.Tokenizer, prompt: Any, skip_special: bool) -> kizami.DecodeStream:
    """A stream that has seen the end of a prompt.

    >>> import kizami
    >>> tokenizer = kizami.load("kimi-k3")
    >>> ids = tokenizer.encode("see 🎉").tolist()
    >>> stream = primed(tokenizer, ids[:-1], False)
    >>> stream.push(ids[-1])
    '🎉'
    """
    stream = tokenizer.stream(skip_special=skip_special)
    for id_ in (prompt or ())[-_TAIL:]:
        pushed(stream, id_)
    return stream


def pushed(stream: kizami.DecodeStream, id_: int) -> str:
    """The text of an id; nothing for one that is no token, such as a placeholder of an image."""
    try:
        return stream.push(id_)
    except (InvalidIdError, InputTypeError):
        return ""


def install() -> None:
    """Lets vLLM choose a stream of Kizami where it can."""
    vllm: Any = importlib.import_module("vllm.v1.engine.detokenizer")
    chooser = vllm.IncrementalDetokenizer
    original = chooser.__dict__["from_new_request"]
    if getattr(original.__func__, "of_kizami", False):
        return

    class KizamiDetokenizer(vllm.BaseIncrementalDetokenizer):  # type: ignore[misc]
        """A detokenizer of vLLM on a stream of Kizami."""

        def __init__(self, ours: kizami.Tokenizer, request: Any) -> None:
            super().__init__(request)
            skip = request.sampling_params.skip_special_tokens
            self._stream = primed(ours, request.prompt_token_ids, bool(skip))
            self._is_open = True

        def decode_next(self, next_token_id: int) -> str:
            """The text that an id makes certain."""
            return pushed(self._stream, next_token_id)

        def update(self, new_token_ids: list[int], stop_terminated: bool) -> Any:
            """See vLLM; after a stop string, nothing is to come."""
            found = super().update(new_token_ids, stop_terminated)
            if found is not None:
                self._is_open = False
            return found

        def get_next_output_text(self, finished: bool, delta: bool) -> str:
            """See vLLM; at the end, an unfinished character counts as U+FFFD."""
            if finished and self._is_open:
                self._is_open = False
                self.output_text += self._stream.finish()
            text: str = super().get_next_output_text(finished, delta)
            return text

    def from_new_request(cls: Any, tokenizer: Any, request: Any) -> Any:
        ours = kizami_of(tokenizer)
        if ours is None:
            return original.__get__(None, cls)(tokenizer, request)
        return KizamiDetokenizer(ours, request)

    from_new_request.of_kizami = True  # type: ignore[attr-defined]
    chooser.from_new_request = classmethod(from_new_request)
