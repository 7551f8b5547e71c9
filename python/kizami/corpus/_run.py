"""`tokenize`: files in, shards out.

Three threads: one reads, unpacks and finds the texts; one encodes, with all the threads that a
request may use; one writes. Blocks of some MB go from one to the next, in order, and each waits for
the next one, so memory is bounded whatever the size of the files.

Read next: `_rows` (what is read), `_writer` (what is written), `_manifest` (how a run goes on).
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

import kizami
from kizami._flags import flag
from kizami._tokenizer import Tokenizer
from kizami.corpus._arguments import (
    BROKEN,
    ERRORS,
    around,
    check_choices,
    check_numbers,
    check_texts,
)
from kizami.corpus._inputs import FORMATS, Input, find_inputs
from kizami.corpus._manifest import (
    MANIFEST,
    Manifest,
    leftovers,
    open_manifest,
    remove_leftovers,
)
from kizami.corpus._rows import BLOCK, REASONS, TEXT, Place, Reading, Rows, read
from kizami.corpus._shards import SHARD_FORMATS, shard_dtype
from kizami.corpus._writer import HARMLESS, Damage, Encoded, Writer, cannot_write, documents_of
from kizami.errors import CorpusError, CorpusWriteError, InvalidValueError

__all__ = ["Progress", "Report", "tokenize"]

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

# Blocks that are read ahead, or wait to be written.
_AHEAD = 2


class Progress(NamedTuple):
    """How far a run has come, since it was begun or resumed.

    Attributes:
        read: Bytes of the input files, as they are on the disk.
        total: Bytes of all of them; None if that is not known, as of standard input.
        documents, tokens: What was encoded.
        seconds: Time since the start.
    """

    read: int
    total: int | None
    documents: int
    tokens: int
    seconds: float


@dataclass(frozen=True)
class Report:
    """What a run did; with runs that it resumed, what they did together.

    Attributes:
        output: The folder.
        shards: Number of shards.
        rows: Lines, documents or rows of tables that were read.
        documents: Those that became documents. `rows == documents + sum(left_out.values())`.
        tokens: Ids in all shards, those around documents too.
        text_bytes: UTF-8 bytes of the documents.
        left_out: Why rows are no documents, and how many: `blank`, `empty`, `null`, `not-utf8`,
            `not-json`, `not-object`, `no-field`, `not-text`, `too-long`.
        named: The first 20 that are somebody's fault: path, row (from 1), reason, message.
        damaged: Files that could not be read to their end: path, rows that were read, reason,
            message. Only with `broken="skip"`.
        seconds: Of this run alone.
    """

    output: Path
    shards: int
    rows: int
    documents: int
    tokens: int
    text_bytes: int
    left_out: dict[str, int]
    named: tuple[dict[str, Any], ...]
    damaged: tuple[dict[str, Any], ...]
    seconds: float


@dataclass(frozen=True)
class Job:
    """The arguments of a run, checked."""

    inputs: list[Input]
    tokenizer: Tokenizer
    reading: Reading
    allow_special: bool
    before: list[int]
    after: list[int]
    skip: bool
    shard_tokens: int
    settings: dict[str, Any]
    dtype: str


def tokenize(
    inputs: Paths,
    output: str | os.PathLike[str],
    tokenizer: Tokenizer | str,
    *,
    input_format: Literal["text", "jsonl", "parquet", "arrow"] | None = None,
    field: str = "text",
    separator: str | None = None,
    format: Literal["bin", "npy", "megatron", "parquet", "arrow"] = "bin",
    shard_tokens: int = 100_000_000,
    bos: int | str | None = None,
    eos: int | str | None = None,
    allow_special: bool = False,
    errors: Literal["strict", "replace"] = "strict",
    broken: Literal["stop", "skip"] = "stop",
    keep_empty: bool = False,
    max_document_bytes: int = 64 << 20,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[Progress], object] | None = None,
) -> Report:
    """Files of texts in, shards of token ids out.

    The ids of a document are those of `Tokenizer.encode`, whatever the size of a shard and the
    number of threads; documents stay in order, and none is parted between shards.

    Args:
        inputs: A path, a pattern (`"data/*.jsonl.gz"`, `**` for folders within folders), or
            several; `"-"` is standard input. Plain, or compressed by gzip or zstd.
        output: The folder of shards; it is made if it is not there. `manifest.json` in it says
            what it holds.
        tokenizer: From `kizami.load`, or what that takes.
        input_format: "text", "jsonl" (JSON Lines), "parquet" or "arrow"; None goes by the suffix.
        field: The field of JSON Lines, or the column of a table, that holds the text.
        separator: What parts the documents of a text file, such as `"\\n"` or `"<|endoftext|>"`;
            it belongs to none of them. None: each file is one document.
        format: "bin" (ids one after the other: nanoGPT's layout), "npy", "megatron" (`.bin` and
            `.idx`), "parquet" or "arrow" (lists in a column `input_ids`).
        shard_tokens: A shard ends with the document that brings it to this many ids.
        bos: An id, or the name of a control token, before each document.
        eos: The same, after each document.
        allow_special: As in `Tokenizer.encode`, for all texts. The default, False, is right for
            text that you did not write yourself.
        errors: What to do with bytes that are no UTF-8: "strict" makes the row a broken one,
            "replace" reads U+FFFD.
        broken: "stop" at a row or a file that cannot be read; "skip" leaves it out, and counts
            it. Blank lines, nulls and empty texts are always left out, and counted.
        keep_empty: Make documents of empty texts and nulls, so that documents are aligned with
            rows.
        max_document_bytes: A longer row counts as broken; this bounds the memory.
        resume: Go on after the last whole shard of an earlier run with the same arguments; begin
            if there was none. What comes out is the same as from a run that was not interrupted.
        overwrite: Remove the shards of an earlier run, and begin anew.
        progress: Called after each block, some times a second.

    Raises:
        CorpusError: An input cannot be read, a row is broken, or `output` holds another run.
        CorpusWriteError: `output` cannot be written.
        InputTypeError, InvalidValueError: An argument is wrong.
        MissingExtraError: A format needs the extra `data`.

    Cost: memory of a few blocks of 4 MB and of the longest document, besides the engine's own;
    all threads that `kizami.get_num_threads` allows.

    >>> import kizami.corpus, numpy, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source = pathlib.Path(folder, "a.jsonl")
    ...     _ = source.write_text('{"text": "Hello, world"}\\n{"text": "Hi"}\\n')
    ...     out = pathlib.Path(folder, "out")
    ...     report = kizami.corpus.tokenize(source, out, "kimi-k3", eos="[EOS]")
    ...     report.documents, numpy.fromfile(out / "shard-00000.bin", "<u4").tolist()
    (2, [19180, 11, 2695, 163585, 18699, 163585])
    """
    job = make_job(
        inputs, tokenizer, input_format=input_format, field=field, separator=separator,
        format=format, shard_tokens=shard_tokens, bos=bos, eos=eos, allow_special=allow_special,
        errors=errors, broken=broken, keep_empty=keep_empty, max_document_bytes=max_document_bytes,
    )  # fmt: skip
    folder = Path(output)
    start = time.perf_counter()
    with _locked(folder):
        manifest = _begin(job, folder, resume, overwrite)
        if not manifest.complete:
            _run(job, folder, manifest, start, progress)
    totals = manifest.totals
    return Report(
        folder, len(manifest.shards), totals.rows, totals.documents, totals.tokens,
        totals.text_bytes, totals.left_out, tuple(totals.named), tuple(totals.damaged),
        time.perf_counter() - start,
    )  # fmt: skip


def make_job(
    inputs: Paths,
    tokenizer: Tokenizer | str,
    *,
    input_format: str | None,
    field: str,
    separator: str | None,
    format: str,
    shard_tokens: int,
    bos: int | str | None,
    eos: int | str | None,
    allow_special: bool,
    errors: str,
    broken: str,
    keep_empty: bool,
    max_document_bytes: int,
) -> Job:
    """Checks arguments, and finds the files."""
    check_choices(
        input_format=(input_format, (None, *FORMATS)),
        format=(format, tuple(SHARD_FORMATS)),
        errors=(errors, ERRORS),
        broken=(broken, BROKEN),
    )
    check_numbers(shard_tokens=shard_tokens, max_document_bytes=max_document_bytes)
    check_texts(field=field, **({} if separator is None else {"separator": separator}))
    if separator == "":
        raise InvalidValueError("separator must not be empty; None makes each file a document")
    if not isinstance(tokenizer, Tokenizer):
        tokenizer = kizami.load(tokenizer)
    allow_special = flag(allow_special, "allow_special")
    keep_empty = flag(keep_empty, "keep_empty")
    before, after = around(tokenizer, bos, "bos"), around(tokenizer, eos, "eos")
    found = find_inputs(inputs, input_format)
    reading = Reading(
        field, (separator or "").encode(), errors == "replace", keep_empty, max_document_bytes
    )
    settings = {
        "field": field,
        "separator": separator,
        "format": format,
        "shard_tokens": shard_tokens,
        "bos": before,
        "eos": after,
        "allow_special": allow_special,
        "errors": errors,
        "broken": broken,
        "keep_empty": keep_empty,
        "max_document_bytes": max_document_bytes,
    }
    dtype = shard_dtype(tokenizer.vocab_size, format).str
    return Job(
        found, tokenizer, reading, allow_special, before, after, broken == "skip", shard_tokens,
        settings, dtype,
    )  # fmt: skip


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The folder, made if need be, for one run at a time."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        message = f"{folder} is a file, not a folder; choose another name"
        raise CorpusWriteError(message, path=str(folder)) from error
    except OSError as error:
        raise cannot_write(folder, error) from error
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"another run is writing to {folder}; wait for it, or choose another folder"
            raise CorpusError(message, path=str(folder)) from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(number)


def _begin(job: Job, folder: Path, resume: bool, overwrite: bool) -> Manifest:
    """The manifest to go on with; what is in the folder fits to it."""
    fresh = Manifest.new(job.settings, job.tokenizer, job.dtype, job.inputs)
    try:
        before = open_manifest(folder)
    except CorpusError as error:
        if not overwrite or getattr(error, "reason", None) != "damaged":
            raise
        before = None
    if before is None and not overwrite and leftovers(folder, 0):
        message = f"{folder} holds shards, but no {MANIFEST}; choose another folder, or overwrite"
        raise CorpusError(message, path=str(folder))
    if before is not None and not overwrite:
        if not resume:
            state = "a whole run" if before.complete else "a run that is not whole"
            message = f"{folder} holds {state}; choose another folder, resume, or overwrite"
            raise CorpusError(message, path=str(folder))
        before.check_same(fresh, folder)
        _check_sizes(before, folder)
        fresh = before
    try:
        if before is None or overwrite:
            # First the manifest: shards that it does not list do not count.
            fresh.write(folder)
        remove_leftovers(folder, len(fresh.shards))
    except OSError as error:
        raise cannot_write(folder, error) from error
    return fresh


def _check_sizes(manifest: Manifest, folder: Path) -> None:
    for shard in manifest.shards:
        for file in shard["files"]:
            path = folder / file["name"]
            if not path.is_file() or path.stat().st_size != file["bytes"]:
                message = f"{path} is not what {MANIFEST} says; overwrite"
                raise CorpusError(message, path=str(path))


def _run(
    job: Job,
    folder: Path,
    manifest: Manifest,
    start: float,
    progress: Callable[[Progress], object] | None,
) -> None:
    names = [given.name for given in job.inputs]
    writer = Writer(folder, manifest, job.shard_tokens, job.reading.keep_empty, names)
    blocks = read_all(job, manifest.place)
    meter = _Meter(job, start, progress)
    writing: deque[Future[None]] = deque()
    # A pool of one thread does its work in order.
    with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(1) as other:
        try:
            ahead = deque(reader.submit(next, blocks, None) for _ in range(_AHEAD))
            while (group := ahead.popleft().result()) is not None:
                ahead.append(reader.submit(next, blocks, None))
                encoded = encode(job, group)
                writing.append(other.submit(writer.add, encoded))
                if len(writing) > _AHEAD:
                    writing.popleft().result()
                meter.add(encoded)
            while writing:
                writing.popleft().result()
            other.submit(writer.finish, Place(len(job.inputs))).result()
        finally:
            reader.shutdown(cancel_futures=True)
            other.shutdown(cancel_futures=True)
            writer.drop()


def read_all(job: Job, place: Place) -> Iterator[list[Rows | Damage]]:
    """All rows from a place on, in groups of about a block of text."""
    group: list[Rows | Damage] = []
    size = 0
    for index in range(place.input, len(job.inputs)):
        here = place if index == place.input else Place(index)
        try:
            for rows in read(job.inputs[index], job.reading, here):
                group.append(rows)
                size += len(rows.data) + 64 * len(rows.kinds)
                here = rows.after(len(rows.kinds) - 1)
                # What a block of a file gives is somewhat smaller than the block.
                if size >= BLOCK // 2:
                    yield group
                    group, size = [], 0
        except CorpusError as error:
            if not job.skip:
                if group:
                    yield group
                raise
            path, reason = job.inputs[index].name, getattr(error, "reason", "unreadable")
            group.append(Damage(here, path, reason, error.message))
    if group:
        yield group


def encode(job: Job, group: list[Rows | Damage]) -> Encoded:
    """The ids of all documents of a group, in one native call."""
    blocks = [block for block in group if isinstance(block, Rows)]
    if not job.skip:
        for rows in blocks:
            _check(job, rows)
    chosen = [(rows, documents_of(rows, job.reading.keep_empty)) for rows in blocks]
    starts, ends, base = [], [], 0
    for rows, documents in chosen:
        starts.append(rows.starts[documents] + base)
        ends.append(rows.ends[documents] + base)
        base += len(rows.data)
    if not starts:
        return Encoded(group, np.zeros(0, np.uint32), np.zeros(1, np.int64))
    data = blocks[0].data if len(blocks) == 1 else b"".join(rows.data for rows in blocks)
    ids, offsets = job.tokenizer._native.encode_utf8(
        data, np.concatenate(starts), np.concatenate(ends), job.allow_special, job.before, job.after
    )
    return Encoded(group, ids, offsets)


def _check(job: Job, rows: Rows) -> None:
    """Raises at the first row that is broken."""
    wrong = np.flatnonzero((rows.kinds != TEXT) & ~np.isin(rows.kinds, HARMLESS))
    if not len(wrong):
        return
    index = int(wrong[0])
    given = job.inputs[rows.place.input]
    unit = {"jsonl": "line", "text": "document"}.get(given.format, "row")
    row = rows.place.row + index + 1
    reason = REASONS[rows.kinds[index]]
    ways = {"no-field": "choose another field, or ", "not-utf8": "pass errors='replace', or "}
    message = f"{given.name}, {unit} {row}: {rows.describe(index)}"
    hint = f"{ways.get(reason, '')}leave such rows out with broken='skip'"
    raise CorpusError(f"{message}; {hint}", path=given.path, row=row, reason=reason)


class _Meter:
    """Tells how far a run has come."""

    def __init__(
        self, job: Job, start: float, progress: Callable[[Progress], object] | None
    ) -> None:
        sizes = [given.size for given in job.inputs]
        self._before = np.cumsum([0, *(size or 0 for size in sizes)]).tolist()
        self._total = None if None in sizes else self._before[-1]
        self._progress = progress
        self._start = start
        self._documents = self._tokens = 0

    def add(self, encoded: Encoded) -> None:
        self._documents += len(encoded.offsets) - 1
        self._tokens += len(encoded.ids)
        if self._progress is None:
            return
        last = encoded.blocks[-1]
        read = self._before[last.place.input]
        read += last.packed if isinstance(last, Rows) else 0
        seconds = time.perf_counter() - self._start
        self._progress(Progress(read, self._total, self._documents, self._tokens, seconds))
