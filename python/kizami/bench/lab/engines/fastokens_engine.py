"""fastokens: `encode_segments`, with the published path's cuts made before, in Python.

It ships the cuts as a function beside its replacement for the published tokenizer; that function is
used here. For one text it has a call that gives the ids as bytes, which is faster than a list.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .base import Engine, Ids, ModelFiles, Segments, from_bytes, from_list

__all__ = ["Under"]


class Under(Engine):
    """Its tokenizer of the model's rank file, or of `tokenizer.json`."""

    package = distribution = "fastokens"
    way = "its own Python cuts, then Tokenizer.encode_segments"

    def bring(self) -> None:
        """The native class, and the function that cuts."""
        self.module = import_module("fastokens._native")
        self.cut = import_module("fastokens._tiktoken").split_like_tiktoken_text_piece

    def load(self, files: ModelFiles) -> None:
        """Read the rank file; of a model that is not cut, `tokenizer.json`."""
        if not files.is_kimi:
            self.cut = lambda text: [text]
            self.tokenizer = self.module.Tokenizer.from_file(files.tokenizer_json)
            return
        pattern, controls = files.facts()
        self.tokenizer = self.module.Tokenizer.from_tiktoken(
            files.ranks, pattern=pattern, special_tokens=controls
        )

    def encode_segments(self, segments: Segments) -> Ids:
        """Cut, then one call."""
        pieces = [(piece, special) for text, special in segments for piece in self.cut(text)]
        return from_list(self.tokenizer.encode_segments(pieces).ids)

    def encode(self, text: str) -> Ids:
        """Cut, then one call that gives bytes."""
        ids, _ = self.tokenizer.encode_batch_flat(list(self.cut(text)), split_special_tokens=True)
        return from_bytes(ids)

    def decode(self, ids: Any) -> str:
        """One call."""
        text: str = self.tokenizer.decode(ids, skip_special_tokens=False)
        return text
