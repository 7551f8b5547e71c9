"""What came out of a case for one engine."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from kizami.bench.cases import Case

__all__ = ["Result", "Spread"]


@dataclass(frozen=True)
class Spread:
    """Samples in short, in their own unit.

    Attributes:
        mad: Median of the distances from the median.
        p99: The sample that 99 of 100 do not exceed.
    """

    median: float
    min: float
    max: float
    mad: float
    p99: float
    samples: int

    @classmethod
    def of(cls, samples: list[float]) -> Spread:
        """In short."""
        middle = median(samples)
        ordered = sorted(samples)
        return cls(
            median=middle,
            min=ordered[0],
            max=ordered[-1],
            mad=median(abs(sample - middle) for sample in samples),
            p99=ordered[max(0, -(-len(ordered) * 99 // 100) - 1)],
            samples=len(samples),
        )


@dataclass
class Result:
    """One engine in one case.

    Attributes:
        seconds: What the mode times: a call, a load, a batch of calls, the longest hold-up.
        calls: In modes where `seconds` is not a call: seconds of single calls.
        extra: Other figures of the mode, such as bytes of memory.
        fault: Why there is no figure.
        exact: Were all ids those of the published path? None: not compared.
    """

    case: Case
    engine: str
    version: str = ""
    seconds: list[float] = field(default_factory=list)
    calls: list[float] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    tokens: list[int] = field(default_factory=list)
    fault: str = ""
    exact: bool | None = None
    input_bytes: int = 0
    _inputs: Any = field(default_factory=hashlib.sha256, repr=False)
    _ids: Any = field(default_factory=hashlib.sha256, repr=False)

    def saw(
        self, data: bytes, size: int, answer: dict[str, Any], truth: dict[str, Any] | None
    ) -> None:
        """Take note of an input with `size` bytes of text, of its ids, and of the right ones."""
        self._inputs.update(data)
        self.input_bytes += size
        self.tokens += answer["tokens"]
        for one in answer["digests"]:
            self._ids.update(one.encode())
        if truth is not None:
            same = all(answer[name] == truth[name] for name in ("tokens", "digests"))
            self.exact = same and self.exact is not False

    @property
    def spread(self) -> Spread:
        """Of `seconds`."""
        return Spread.of(self.seconds)

    @property
    def input_sha256(self) -> str:
        """Of all inputs, in order."""
        digest: str = self._inputs.hexdigest()
        return digest

    @property
    def ids_sha256(self) -> str:
        """Of the checksums of the ids of all prompts, in order."""
        digest: str = self._ids.hexdigest()
        return digest
