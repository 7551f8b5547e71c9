"""Inputs: files of prompts, written by the harness, read by workers; and random words.

A file of prompts is JSON: a list of prompts, each a list of `[text, allow_special]`. Reading it
makes new `str` objects, as a server's own JSON parser does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

__all__ = ["Prompt", "random_words", "read_prompts", "write_prompts"]

Prompt = list[tuple[str, bool]]


def write_prompts(path: Path, prompts: Iterable[Sequence[tuple[str, bool]]]) -> bytes:
    """Write prompts, and return what was written."""
    data = json.dumps([list(map(list, prompt)) for prompt in prompts], ensure_ascii=False)
    blob = data.encode("utf-8", "surrogatepass")
    path.write_bytes(blob)
    return blob


def read_prompts(path: str) -> list[Prompt]:
    """All prompts of a file, as new objects."""
    data = json.loads(Path(path).read_bytes().decode("utf-8", "surrogatepass"))
    return [[(text, special) for text, special in prompt] for prompt in data]


def random_words(size: int, seed: int) -> str:
    """`size` characters: words of 2 to 12 random letters, parted by spaces; hardly one comes twice.

    >>> random_words(40, 7) == random_words(40, 7)
    True
    """
    random = np.random.default_rng(seed)
    letters = random.integers(ord("a"), ord("z") + 1, size, np.uint8)
    ends = np.cumsum(random.integers(3, 14, size // 3 + 1)) - 1
    letters[ends[ends < size]] = ord(" ")
    return letters.tobytes().decode("ascii")
