"""basetenkenizer: `encode_segments`, whose ids move into a NumPy array."""

from __future__ import annotations

from typing import Any

from .base import Engine, Ids, ModelFiles, Segments

__all__ = ["Under"]


class Under(Engine):
    """Its tokenizer of the model's `tokenizer.json`."""

    package = distribution = "basetenkenizer"
    way = "Tokenizer.encode_segments(tiktoken_safe: for Kimi).into_numpy()"

    def load(self, files: ModelFiles) -> None:
        """Read `tokenizer.json`, as it does for a model of the hub."""
        self.tokenizer = self.module.Tokenizer.from_file(files.tokenizer_json)
        self.cuts = files.is_kimi

    def encode_segments(self, segments: Segments) -> Ids:
        """One call."""
        encoding = self.tokenizer.encode_segments(segments, tiktoken_safe=self.cuts)
        ids: Ids = encoding.into_numpy()["ids"]
        return ids

    def decode(self, ids: Any) -> str:
        """One call."""
        text: str = self.tokenizer.decode(ids, skip_special_tokens=False)
        return text
