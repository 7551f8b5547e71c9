"""Hugging Face tokenizers: a call for each segment, with a tokenizer for each of the two kinds.

It knows neither segments nor the published path's cuts.
"""

from __future__ import annotations

from typing import Any

from .base import Engine, Ids, ModelFiles, Segments, from_list

__all__ = ["Under"]


class Under(Engine):
    """Its tokenizer of the model's `tokenizer.json`."""

    package = distribution = "tokenizers"
    way = "Tokenizer.encode, two tokenizers, one call a segment; no cuts"

    def load(self, files: ModelFiles) -> None:
        """Read `tokenizer.json`, twice, so that nothing has to be switched between calls."""
        self.special = self.module.Tokenizer.from_file(files.tokenizer_json)
        self.plain = self.module.Tokenizer.from_file(files.tokenizer_json)
        self.plain.encode_special_tokens = True

    def load_file(self, files: ModelFiles) -> None:
        """Read `tokenizer.json` once."""
        self.special = self.plain = self.module.Tokenizer.from_file(files.tokenizer_json)

    def encode_segments(self, segments: Segments) -> Ids:
        """A call for each segment."""
        ids: list[int] = []
        for text, trusted in segments:
            tokenizer = self.special if trusted else self.plain
            ids.extend(tokenizer.encode(text, add_special_tokens=False).ids)
        return from_list(ids)

    def decode(self, ids: Any) -> str:
        """One call."""
        text: str = self.special.decode(ids, skip_special_tokens=False)
        return text

    def stream(self, ids: list[int]) -> str:
        """A `DecodeStream`; what it holds at the end is lost."""
        tokenizer = self.special
        step = self.module.decoders.DecodeStream(skip_special_tokens=False).step
        return "".join([step(tokenizer, id_) or "" for id_ in ids])
