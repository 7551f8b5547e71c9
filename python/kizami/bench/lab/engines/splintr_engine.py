"""splintr: a call for each segment; trusted ones with control tokens, others without.

It knows neither segments nor the published path's cuts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Engine, Ids, ModelFiles, Segments, from_bytes, from_list

__all__ = ["Under"]


class Under(Engine):
    """Its tokenizer of the model's rank file (its own bundled one has other control tokens)."""

    package = "splintr"
    distribution = "splintr-rs"
    way = "encode_flat or encode_with_special, one call a segment, numpy.concatenate; no cuts"

    def load(self, files: ModelFiles) -> None:
        """Read the rank file."""
        pattern, controls = files.facts()
        self.tokenizer = self.module.Tokenizer(files.ranks, pattern, controls)

    def encode_segments(self, segments: Segments) -> Ids:
        """A call for each segment."""
        flat, special = self.tokenizer.encode_flat, self.tokenizer.encode_with_special
        return np.concatenate(
            [
                from_list(special(text)) if trusted else from_bytes(flat(text))
                for text, trusted in segments
            ]
        )

    def encode(self, text: str) -> Ids:
        """One call that gives bytes."""
        return from_bytes(self.tokenizer.encode_flat(text))

    def decode(self, ids: Any) -> str:
        """One call."""
        text: str = self.tokenizer.decode_lossy(ids)
        return text

    def stream(self, ids: list[int]) -> str:
        """A `StreamingDecoder`."""
        decoder = self.tokenizer.streaming_decoder()
        add = decoder.add_token
        text: str = "".join([add(id_) or "" for id_ in ids]) + (decoder.flush() or "")
        return text
