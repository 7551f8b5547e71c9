"""The manifest of an output folder: what was asked, what was read, which shards are whole.

It is written anew after every shard, so that a run which ends early can go on where its last whole
shard ends; a shard counts once the manifest lists it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kizami._tokenizer import Tokenizer
from kizami._version import __version__
from kizami.corpus._files import File, aside, sync_folder
from kizami.corpus._inputs import Input
from kizami.corpus._rows import Place
from kizami.errors import CorpusError

__all__ = ["MANIFEST", "Manifest", "Totals", "fingerprint", "open_manifest", "remove_leftovers"]

MANIFEST = "manifest.json"
_KIND = "kizami-corpus"
_VERSION = 1
_SHARD = re.compile(r"\.?shard-(\d{5,})\.[a-z.]+")
# Rows without text that are named one by one; all are counted.
MOST_NAMED = 20


def fingerprint(tokenizer: Tokenizer) -> str:
    """A checksum of all that decides about ids: vocabulary, split, control tokens.

    >>> import kizami
    >>> k3, k2 = kizami.load("kimi-k3"), kizami.load("kimi-k2")
    >>> len(fingerprint(k3)), fingerprint(k3) == fingerprint(k2)
    (64, False)
    """
    text = json.dumps(tokenizer._fingerprint, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Totals:
    """What was read and written so far."""

    rows: int = 0
    documents: int = 0
    tokens: int = 0
    text_bytes: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    named: list[dict[str, Any]] = field(default_factory=list)
    damaged: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Manifest:
    """What `manifest.json` holds."""

    settings: dict[str, Any]
    tokenizer: dict[str, Any]
    dtype: str
    inputs: list[dict[str, Any]]
    shards: list[dict[str, Any]] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)
    complete: bool = False
    kizami: str = __version__

    @staticmethod
    def new(
        settings: dict[str, Any], tokenizer: Tokenizer, dtype: str, inputs: Sequence[Input]
    ) -> Manifest:
        """That of a run at its beginning."""
        about = {
            "name": tokenizer.name,
            "fingerprint": fingerprint(tokenizer),
            "vocab_size": tokenizer.vocab_size,
        }
        return Manifest(settings, about, dtype, [given.identity() for given in inputs])

    @property
    def place(self) -> Place:
        """Where the next shard begins."""
        return Place(**self.shards[-1]["next"]) if self.shards else Place()

    def write(self, folder: Path) -> None:
        """Puts it in place, on the disk."""
        data = {"kind": _KIND, "version": _VERSION, **asdict(self)}
        text = json.dumps(data, indent=1, ensure_ascii=False)
        file = File(folder, MANIFEST)
        try:
            file.write(text.encode("utf-8", "surrogatepass"))
            file.finish()
        except BaseException:
            file.drop()
            raise
        sync_folder(folder)

    def check_same(self, other: Manifest, folder: Path) -> None:
        """Raises if a run with `other` as its beginning would not go on with this one."""
        pairs = (
            ("settings", self.settings, other.settings),
            ("tokenizer", self.tokenizer, {**other.tokenizer, "name": self.tokenizer["name"]}),
            ("inputs", self.inputs, other.inputs),
        )
        for what, before, now in pairs:
            if before != now:
                raise CorpusError(
                    f"{folder} was begun with other {what} ({_difference(before, now)}); "
                    "use the same, or overwrite",
                    path=str(folder),
                )


def _difference(before: Any, now: Any) -> str:
    if isinstance(before, dict):
        for key in before:
            if before[key] != now.get(key):
                return f"{key}: {before[key]!r} then, {now.get(key)!r} now"
    for index, (one, other) in enumerate(zip(before, now, strict=False)):
        if one != other:
            return f"number {index + 1}, {one['path']}: {_difference(one, other)}"
    return f"{len(before)} then, {len(now)} now"


def open_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder; None if it has none.

    The error for one that is damaged, or of another version, has the reason "damaged"; that for a
    file of somebody else, who may have given it the same name, has none.
    """
    path = folder / MANIFEST
    reason: str | None = "damaged"
    try:
        data = json.loads(path.read_bytes())
        if not isinstance(data, dict) or data.pop("kind", None) != _KIND:
            reason = None
            raise ValueError("it is of another kind")
        if data.pop("version") != _VERSION:
            raise ValueError("it is of another version")
        totals = Totals(**data.pop("totals"))
        return Manifest(totals=totals, **data)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        if isinstance(error, OSError):
            reason = None
        message = f"{path} is no manifest of a corpus: {error}; choose another folder"
        message += ", or overwrite" if reason else ""
        facts = {"reason": reason} if reason else {}
        raise CorpusError(message, path=str(path), **facts) from None


def remove_leftovers(folder: Path, keep: int) -> None:
    """Removes files of shards from number `keep` on, and all that were not finished."""
    for path in (*leftovers(folder, keep), aside(folder, MANIFEST)):
        path.unlink(missing_ok=True)


def leftovers(folder: Path, keep: int) -> list[Path]:
    """These files."""
    found = []
    for path in folder.iterdir():
        match = _SHARD.fullmatch(path.name)
        if match and (path.name.startswith(".") or int(match[1]) >= keep):
            found.append(path)
    return found
