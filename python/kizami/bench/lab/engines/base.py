"""What every engine under test can do."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

__all__ = ["Engine", "Ids", "ModelFiles", "Segments", "from_bytes", "from_list"]

Ids = npt.NDArray[np.uint32]
Segments = Sequence[tuple[str, bool]]


@dataclass(frozen=True)
class ModelFiles:
    """The model's files as rivals read them, made by `kizami.bench.files`.

    Attributes:
        folder: Holds `tokenizer.json`; for Kimi K3 also the rank file and its configuration.
    """

    folder: Path

    @property
    def is_kimi(self) -> bool:
        """Is it Kimi K3? Others are their `tokenizer.json` and nothing else."""
        return (self.folder / "facts.json").exists()

    @property
    def ranks(self) -> str:
        """Path of the rank file."""
        return str(self.folder / "tiktoken.model")

    @property
    def tokenizer_json(self) -> str:
        """Path of the vocabulary as a list of merges."""
        return str(self.folder / "tokenizer.json")

    def facts(self) -> tuple[str, dict[str, int]]:
        """The split pattern, and all control names with their ids."""
        facts = json.loads((self.folder / "facts.json").read_bytes())
        return facts["pattern"], facts["controls"]


class Engine:
    """One engine; a subclass is called `Under`, as in "under test"."""

    package: ClassVar[str]
    """The module that it is imported by."""
    distribution: ClassVar[str]
    """The name that it is installed by."""
    way: ClassVar[str]
    """How it is called here, in one line."""

    def __init__(self) -> None:
        self.module: Any = None

    def bring(self) -> None:
        """Import the package, and no more."""
        self.module = import_module(self.package)

    def load(self, files: ModelFiles) -> None:
        """Make it ready to encode."""
        raise NotImplementedError

    def load_file(self, files: ModelFiles) -> None:
        """Read `tokenizer.json`, once: what the mode "load-file" times."""
        self.load(files)

    def make_files(self, files: ModelFiles) -> None:
        """Make what `load_file` needs besides, in a process that is not measured."""

    def set_threads(self, count: int) -> None:
        """Limit the threads of a request, where the environment has not done so already."""

    def encode_segments(self, segments: Segments) -> Ids:
        """The ids of typed segments, one array for all."""
        raise NotImplementedError

    def encode(self, text: str) -> Ids:
        """The ids of one text that is not trusted."""
        return self.encode_segments([(text, False)])

    def grow(self, segments: Segments) -> Ids:
        """The same of a prompt that begins like the last one, or not."""
        return self.encode_segments(segments)

    def prepare(self, ids: Ids) -> Any:
        """Ids in the form that `decode` likes best; not timed."""
        return ids.tolist()

    def decode(self, ids: Any) -> str:
        """The text of prepared ids."""
        raise NotImplementedError

    def stream(self, ids: list[int]) -> str:
        """The text of ids that come one by one, from its parts: a call for each id."""
        raise NotImplementedError(f"{self.package} has no stream")


def from_list(ids: list[int]) -> Ids:
    """A list as an array: by way of `array`, which is three times as fast as `numpy.array`."""
    return np.frombuffer(array("I", ids), np.uint32)


def from_bytes(ids: bytes) -> Ids:
    """Little-endian ids as an array, without a copy."""
    return np.frombuffer(ids, "<u4")
