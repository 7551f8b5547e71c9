"""gigatoken: two tokenizers, with and without control tokens, called segment by segment.

It knows neither segments nor the published path's cuts: control tokens are found in every text of a
tokenizer that has them. Ids of texts that the published path cuts can differ, and are marked then.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Engine, Ids, ModelFiles, Segments

__all__ = ["Under"]


class Under(Engine):
    """Both tokenizers read the model's rank file, if it has one."""

    package = distribution = "gigatoken"
    way = "two tokenizers, one call a segment, numpy.concatenate; no cuts"

    def load(self, files: ModelFiles) -> None:
        """Read the rank file twice; or `tokenizer.json`, with control tokens always."""
        if not files.is_kimi:
            self.plain = self.special = self.module.Tokenizer(files.tokenizer_json).backend
            return
        _, controls = files.facts()
        make = self.module.Tokenizer.from_tiktoken
        # The native tokenizers inside: a call on the wrapper only costs a step more.
        self.plain = make(files.ranks, "kimi", {}).backend
        self.special = make(files.ranks, "kimi", controls).backend

    def encode_segments(self, segments: Segments) -> Ids:
        """A call for each segment."""
        plain, special = self.plain.encode, self.special.encode
        return np.concatenate([(special if trusted else plain)(text) for text, trusted in segments])

    def encode(self, text: str) -> Ids:
        """One call."""
        ids: Ids = self.plain.encode(text)
        return ids

    def prepare(self, ids: Ids) -> Any:
        """An array."""
        return ids

    def decode(self, ids: Any) -> str:
        """One call, and UTF-8."""
        text: str = self.special.decode(ids).decode("utf-8", "replace")
        return text
