"""Kizami itself: one call for all segments."""

from __future__ import annotations

import os
from typing import Any

from .base import Engine, Ids, ModelFiles, Segments

__all__ = ["Under"]


class Under(Engine):
    """The bundled model, for which nothing is read from the model's files; or `tokenizer.json`."""

    package = distribution = "kizami"
    way = "Tokenizer.encode_segments, one call for all segments"

    def load(self, files: ModelFiles) -> None:
        """Load the bundled model, or the file."""
        self.tokenizer = self.module.load("kimi-k3" if files.is_kimi else files.tokenizer_json)

    def load_file(self, files: ModelFiles) -> None:
        """Read the file, whatever is in the cache of images."""
        os.environ["KIZAMI_CACHE"] = "0"
        self.tokenizer = self.module.load(files.tokenizer_json)

    def set_threads(self, count: int) -> None:
        """Use its own knob."""
        self.module.set_num_threads(count)

    def encode_segments(self, segments: Segments) -> Ids:
        """One call."""
        ids: Ids = self.tokenizer.encode_segments(segments)
        return ids

    def encode(self, text: str) -> Ids:
        """One call."""
        ids: Ids = self.tokenizer.encode(text)
        return ids

    def prepare(self, ids: Ids) -> Any:
        """An array."""
        return ids

    def decode(self, ids: Any) -> str:
        """One call."""
        text: str = self.tokenizer.decode(ids)
        return text

    def stream(self, ids: list[int]) -> str:
        """A `DecodeStream`."""
        stream = self.tokenizer.stream()
        push = stream.push
        text: str = "".join([push(id_) for id_ in ids]) + stream.finish()
        return text
