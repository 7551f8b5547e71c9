"""Kizami when it has met a file before: it is hashed, and its image is mapped."""

from __future__ import annotations

import os

from . import kizami_engine
from .base import ModelFiles

__all__ = ["Under"]


class Under(kizami_engine.Under):
    """With a cache of images that has the one of this file."""

    way = "load of tokenizer.json, whose image is in the cache"

    def make_files(self, files: ModelFiles) -> None:
        """Load the file for the first time."""
        self.load_file(files)

    def load_file(self, files: ModelFiles) -> None:
        """Hash the file, and map its image."""
        os.environ["KIZAMI_CACHE_DIR"] = str(files.folder / "cache")
        self.tokenizer = self.module.load(files.tokenizer_json)
