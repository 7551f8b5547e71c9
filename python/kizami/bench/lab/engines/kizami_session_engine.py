"""Kizami with a session: a prompt that grows is encoded where it is new."""

from __future__ import annotations

from . import kizami_engine
from .base import Ids, ModelFiles, Segments

__all__ = ["Under"]


class Under(kizami_engine.Under):
    """One session for all prompts."""

    way = "Session.encode_segments"

    def load(self, files: ModelFiles) -> None:
        """Load the bundled model, and begin."""
        super().load(files)
        self.session = self.tokenizer.session()

    def grow(self, segments: Segments) -> Ids:
        """One call."""
        ids: Ids = self.session.encode_segments(segments)
        return ids
