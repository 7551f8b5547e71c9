"""`verify`: is an output folder what its manifest says? `estimate`: what would a run give?"""

from __future__ import annotations

import hashlib
import inspect
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kizami._tokenizer import Tokenizer
from kizami.corpus._inputs import need
from kizami.corpus._manifest import MANIFEST, Manifest, fingerprint, leftovers, open_manifest
from kizami.corpus._rows import Place, Rows
from kizami.corpus._run import Job, Paths, encode, make_job, read_all, tokenize
from kizami.errors import CorpusError

__all__ = ["Estimate", "Verified", "estimate", "verify"]

_BLOCK = 1 << 22


@dataclass(frozen=True)
class Verified:
    """What `verify` saw.

    Attributes:
        shards, documents, tokens: What the manifest lists.
        complete: Whether the run came to its end.
        faults: What is wrong, in words; empty if nothing is.
    """

    shards: int
    documents: int
    tokens: int
    complete: bool
    faults: tuple[str, ...]


@dataclass(frozen=True)
class Estimate:
    """What a run would do, from a sample of its inputs.

    Attributes:
        inputs: Path, format and bytes of each file, in order; bytes is None if not known.
        sampled_bytes: Bytes of files that were read for this.
        sampled_tokens: Ids that these gave.
        tokens: Ids of all files, about; None if their size is not known.
        shards: Number of shards, about; None as above.
        output_bytes: Bytes of ids, about; None as above.
    """

    inputs: tuple[tuple[str, str, int | None], ...]
    sampled_bytes: int
    sampled_tokens: int
    tokens: int | None
    shards: int | None
    output_bytes: int | None


def verify(output: str | os.PathLike[str], tokenizer: Tokenizer | None = None) -> Verified:
    """Compares every shard with the manifest: sizes, checksums, documents, and that ids are ids.

    Args:
        output: The folder that `tokenize` wrote.
        tokenizer: If given, it must be the one that the shards were made with.

    Raises:
        CorpusError: `output` has no manifest.

    Cost: all files are read once.
    """
    folder = Path(output)
    manifest = open_manifest(folder)
    if manifest is None:
        message = f"{folder} has no {MANIFEST}; give the folder that a run wrote"
        raise CorpusError(message, path=str(folder))
    faults = []
    if tokenizer is not None and fingerprint(tokenizer) != manifest.tokenizer["fingerprint"]:
        made = manifest.tokenizer["name"]
        faults.append(f"made with another tokenizer, {made}, than {tokenizer.name}")
    for shard in manifest.shards:
        faults.extend(_faults(folder, manifest, shard))
    strays = leftovers(folder, len(manifest.shards))
    if manifest.complete:
        faults.extend(f"{path.name} is not in {MANIFEST}" for path in strays)
    documents = sum(shard["documents"] for shard in manifest.shards)
    tokens = sum(shard["tokens"] for shard in manifest.shards)
    if manifest.complete and documents != manifest.totals.documents:
        faults.append(f"shards hold {documents} documents, not {manifest.totals.documents}")
    return Verified(len(manifest.shards), documents, tokens, manifest.complete, tuple(faults))


def _faults(folder: Path, manifest: Manifest, shard: dict[str, Any]) -> Iterator[str]:
    sound = True
    for file in shard["files"]:
        path = folder / file["name"]
        try:
            size, checksum = _checksum(path)
        except OSError as error:
            yield f"{path.name} cannot be read: {error.strerror}"
            sound = False
            continue
        if (size, checksum) != (file["bytes"], file["sha256"]):
            what = "size" if size != file["bytes"] else "checksum"
            yield f"{path.name} has another {what} than {MANIFEST} says"
            sound = False
    if not sound:
        return
    name = shard["files"][0]["name"]
    ids, lengths = read_shard(folder / name, manifest.settings["format"], manifest.dtype)
    if len(ids) != shard["tokens"] or lengths.sum() != shard["tokens"]:
        yield f"{name} does not hold {shard['tokens']} ids"
    elif len(lengths) != shard["documents"] or (lengths < 0).any():
        yield f"{name} does not hold {shard['documents']} documents"
    vocab_size = manifest.tokenizer["vocab_size"]
    for start in range(0, len(ids), _BLOCK):
        block = ids[start : start + _BLOCK]
        if block.max() >= vocab_size or block.min() < 0:
            yield f"{name} holds ids outside the vocabulary"
            return


def read_shard(
    path: Path, format: str, dtype: str
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Ids, and the length of each document."""
    if format in ("parquet", "arrow"):
        if format == "parquet":
            table = need("pyarrow.parquet").read_table(path)
        else:
            pa = need("pyarrow")
            table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        column = table.column("input_ids").combine_chunks()
        offsets = np.asarray(column.offsets).astype(np.int64)
        return np.asarray(column.flatten()), np.diff(offsets)
    if format == "npy":
        ids: npt.NDArray[Any] = np.load(path, mmap_mode="r")
    elif path.stat().st_size:
        ids = np.memmap(path, dtype, "r")
    else:
        ids = np.zeros(0, dtype)
    if format == "megatron":
        data = path.with_suffix(".idx").read_bytes()
        count = int.from_bytes(data[18:26], "little")
        return ids, np.frombuffer(data, "<i4", count, 34).astype(np.int64)
    offsets = np.load(path.with_name(f"{path.stem}.offsets.npy"))
    return ids, np.diff(offsets)


def _checksum(path: Path) -> tuple[int, str]:
    sha256 = hashlib.sha256()
    size = 0
    with path.open("rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            sha256.update(block)
            size += len(block)
    return size, sha256.hexdigest()


def estimate(
    inputs: Paths, tokenizer: Tokenizer | str, *, samples: int = 8, **options: Any
) -> Estimate:
    """What `tokenize` with these arguments would give; nothing is written.

    The first block, about 4 MB, of up to `samples` files is encoded, so wrong settings show here.

    Args:
        inputs: As `tokenize`.
        tokenizer: As `tokenize`.
        samples: How many files to look into; standard input is not read.
        options: As `tokenize`, but `resume`, `overwrite` and `progress`.

    Raises:
        CorpusError, InputTypeError, InvalidValueError, MissingExtraError: As `tokenize`.
    """
    parameters = inspect.signature(tokenize).parameters.values()
    defaults = {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY}
    for name in ("resume", "overwrite", "progress"):
        del defaults[name]
    job = make_job(inputs, tokenizer, **{**defaults, **options})
    sized = [index for index, given in enumerate(job.inputs) if given.size]
    step = max(1, math.ceil(len(sized) / max(samples, 1)))
    read = tokens = 0
    for index in sized[::step]:
        read_here, tokens_here = _sample(job, index)
        read += read_here
        tokens += tokens_here
    sizes = [given.size for given in job.inputs]
    facts = tuple((given.name, given.format, given.size) for given in job.inputs)
    if None in sizes or not read:
        known = 0 if sizes and not any(sizes) and None not in sizes else None
        return Estimate(facts, read, tokens, known, known, known)
    total = round(tokens * sum(size or 0 for size in sizes) / read)
    itemsize = np.dtype(job.dtype).itemsize
    shards = math.ceil(total / job.shard_tokens)
    return Estimate(facts, read, tokens, total, shards, total * itemsize)


def _sample(job: Job, index: int) -> tuple[int, int]:
    for group in read_all(job, Place(index)):
        # The group may go on into the next file.
        mine = [block for block in group if block.place.input == index]
        packed = [block.packed for block in mine if isinstance(block, Rows)]
        return max(packed, default=0), len(encode(job, mine).ids)
    return 0, 0
