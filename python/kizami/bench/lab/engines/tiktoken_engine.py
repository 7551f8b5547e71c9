"""tiktoken by the published path of Kimi K3: the oracle, and the speed that people have today.

A Python loop over the segments, each cut into slices of 400,000 characters and these again where
more than 25,000 characters in a row are all whitespace or none. The walk over the characters is
Python in the published tokenizer, and so it is here; tiktoken itself replaces lone surrogates.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import Any

from .base import Engine, Ids, ModelFiles, Segments, from_list

__all__ = ["Under", "stretches"]

_SLICE = 400_000
_RUN = 25_000


class Under(Engine):
    """tiktoken's encoding with the model's ranks, pattern and control names."""

    package = distribution = "tiktoken"
    way = "the published path: a Python loop over segments and cuts, Encoding.encode for each"

    def load(self, files: ModelFiles) -> None:
        """Read the rank file as the published tokenizer does."""
        from importlib import import_module

        pattern, controls = files.facts()
        ranks = import_module("tiktoken.load").load_tiktoken_bpe(files.ranks)
        self.encoding = self.module.Encoding(
            name="kimi-k3", pat_str=pattern, mergeable_ranks=ranks, special_tokens=controls
        )

    def encode_segments(self, segments: Segments) -> Ids:
        """Segment by segment, stretch by stretch."""
        encode = self.encoding.encode
        ids: list[int] = []
        for text, allow_special in segments:
            for stretch in stretches(text):
                if allow_special:
                    ids.extend(encode(stretch, allowed_special="all"))
                else:
                    ids.extend(encode(stretch, disallowed_special=()))
        return from_list(ids)

    def decode(self, ids: Any) -> str:
        """One call."""
        text: str = self.encoding.decode(ids)
        return text

    def stream(self, ids: list[int]) -> str:
        """It has no stream; Python's decoder of the bytes of single tokens."""
        decoder = getincrementaldecoder("utf-8")("replace")
        token, decode = self.encoding.decode_single_token_bytes, decoder.decode
        return "".join([decode(token(id_)) for id_ in ids]) + decode(b"", True)


def stretches(text: str) -> Iterator[str]:
    """The parts of a text that are encoded one by one."""
    for start in range(0, len(text), _SLICE):
        yield from _cut_runs(text[start : start + _SLICE])


def _cut_runs(text: str) -> Iterator[str]:
    run = start = 0
    is_space = text[0].isspace()
    for at in range(len(text)):
        now_space = text[at].isspace()
        if now_space ^ is_space:
            is_space = now_space
            run = 1
            continue
        run += 1
        if run > _RUN:
            yield text[start:at]
            start = at
            run = 1
    yield text[start:]
