"""Kizami from an image that `Tokenizer.save` wrote."""

from __future__ import annotations

from . import kizami_engine
from .base import ModelFiles

__all__ = ["Under"]


class Under(kizami_engine.Under):
    """The image is mapped; `tokenizer.json` is not read."""

    way = "load of what Tokenizer.save wrote"

    def make_files(self, files: ModelFiles) -> None:
        """Save the image."""
        self.module.load(files.tokenizer_json).save(files.folder / "saved.kizami")

    def load_file(self, files: ModelFiles) -> None:
        """Load the image."""
        self.tokenizer = self.module.load(files.folder / "saved.kizami")
