"""Kizami with a cache of sessions: known beginnings of prompts are found."""

from __future__ import annotations

from . import kizami_engine
from .base import Ids, ModelFiles, Segments

__all__ = ["Under"]

MAX_BYTES = 1 << 30


class Under(kizami_engine.Under):
    """One cache for all prompts."""

    way = "SessionCache.encode_segments, 1 GB"

    def load(self, files: ModelFiles) -> None:
        """Load the bundled model, and begin."""
        super().load(files)
        self.cache = self.module.SessionCache(self.tokenizer, max_bytes=MAX_BYTES)

    def grow(self, segments: Segments) -> Ids:
        """One call."""
        ids: Ids = self.cache.encode_segments(segments)
        return ids
