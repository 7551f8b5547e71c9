"""Kizami when it meets a file for the first time: it is read, and its image is kept."""

from __future__ import annotations

import os
import tempfile

from . import kizami_engine
from .base import ModelFiles

__all__ = ["Under"]


class Under(kizami_engine.Under):
    """With a cache of images that is empty."""

    way = "load of tokenizer.json, and its image kept in the cache"

    def load_file(self, files: ModelFiles) -> None:
        """Read the file, and keep its image."""
        os.environ["KIZAMI_CACHE_DIR"] = tempfile.mkdtemp(dir=files.folder)
        self.tokenizer = self.module.load(files.tokenizer_json)
