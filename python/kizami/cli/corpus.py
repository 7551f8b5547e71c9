"""`kizami corpus`: files of texts to shards of ids."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from kizami.cli._console import is_terminal, note, say, warn
from kizami.cli._faults import CommandError, error_of_kizami, printable
from kizami.cli._options import errors_option, load, model_option, special_option
from kizami.errors import CorpusError, CorpusWriteError, InvalidIdError, InvalidValueError

if TYPE_CHECKING:
    from kizami.corpus import Progress, Report

__all__ = ["corpus"]

_SHOWN = 3  # broken rows that are named
_NO_HINT = "correct the input"  # what an error without a hint gets
_FIELD = ("no-field", "not-text")  # reasons that another field may end
_FACTORS = {"k": 10**3, "m": 10**6, "g": 10**9}


class Number(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A whole number, with k, m or g behind it for thousands, millions, thousand millions."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """The number."""
        if isinstance(value, int):
            return value
        text = str(value).lower().replace("_", "")
        factor = _FACTORS.get(text[-1:], 1)
        digits = text[:-1] if factor > 1 else text
        if not digits.isdecimal():
            self.fail(f"'{value}' is no number such as 500000, 500k, 100m or 2g", param, ctx)
        return int(digits) * factor


@click.command()
@click.argument("inputs", metavar="[INPUT]...", nargs=-1)
@click.option(
    "-o", "--out", metavar="FOLDER", help="Where the shards go; needed but for --dry-run."
)
@model_option
@click.option(
    "--input-format",
    type=click.Choice(["text", "jsonl", "parquet", "arrow"]),
    help="What the files hold.  [default: as their suffixes say]",
)
@click.option("--field", default="text", show_default=True, help="Field or column with the text.")
@click.option(
    "--separator",
    metavar="TEXT",
    help=r"What parts the documents of a text file; \n is a newline, \t a tab."
    "  [default: a file is one document]",
)
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["bin", "npy", "megatron", "parquet", "arrow"]),
    default="bin",
    show_default=True,
    help="Form of the shards.",
)
@click.option(
    "--shard-tokens",
    type=Number(),
    default="100m",
    show_default=True,
    help="A shard ends with the document that brings it to this many ids.",
)
@click.option("--bos", metavar="TOKEN", help="Control token, or id, before each document.")
@click.option("--eos", metavar="TOKEN", help="Control token, or id, after each document.")
@special_option
@errors_option
@click.option(
    "--broken",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="What to do with rows and files that cannot be read: stop, or leave out and count.",
)
@click.option("--keep-empty", is_flag=True, help="Make documents of empty texts and nulls.")
@click.option(
    "--max-document-bytes",
    type=Number(),
    default=str(64 << 20),
    show_default=True,
    help="A longer row counts as broken; this bounds the memory.",
)
@click.option("--resume", is_flag=True, help="Go on after the last whole shard, if there is one.")
@click.option("--overwrite", is_flag=True, help="Remove the shards of an earlier run first.")
@click.option("--dry-run", is_flag=True, help="Look into the inputs, and say what would come out.")
@click.option("--verify", metavar="FOLDER", help="Compare a folder of shards with its manifest.")
@click.option("--no-progress", is_flag=True, help="Do not show how far it is.")
def corpus(
    inputs: tuple[str, ...],
    out: str | None,
    model: str,
    form: str,
    resume: bool,
    overwrite: bool,
    dry_run: bool,
    verify: str | None,
    no_progress: bool,
    **options: Any,
) -> None:
    """Turn files of texts into shards of token ids.

    INPUT is a file, a pattern, or `-`: text, JSON Lines, Parquet or Arrow, plain or compressed by
    gzip or zstd. Documents stay in order; the folder's manifest.json says what is in it. A run that
    was ended goes on with --resume, and gives the same shards. The exit code is 1 if a file could
    not be read to its end, even with --broken skip.
    Parquet, Arrow and zstd need `pip install 'kizami[data]'`.

    \b
    Examples:
      kizami corpus 'data/*.jsonl.gz' --out tokens --eos '[EOS]'
      kizami corpus book.txt --separator '\\n\\n' --out tokens --format npy
      kizami corpus 'data/**/*.parquet' --field body --out tokens --resume
      zcat big.gz | kizami corpus - --input-format jsonl --out tokens
      kizami corpus 'data/*.jsonl' --dry-run
      kizami corpus --verify tokens
    """
    if verify is not None:
        if inputs or out:
            message = "`--verify` takes neither inputs nor `--out`"
            raise CommandError(message, "run `kizami corpus --verify FOLDER`")
        _verify(verify)
        return
    if not inputs:
        raise CommandError("there is no input", "give files, patterns, or `-` for standard input")
    if out is None and not dry_run:
        message = "`--out` is missing"
        raise CommandError(
            message, "pass `--out FOLDER`, or `--dry-run` to see what would come out"
        )
    given = {**options, "format": form, "separator": _unescaped(options["separator"])}
    for name in ("bos", "eos"):
        if given[name] is not None and given[name].isdecimal():
            given[name] = int(given[name])
    if dry_run:
        _estimate(inputs, model, given)
        return
    from kizami.corpus import tokenize

    tokenizer = load(model)
    with _options_for_arguments(writes=True), _shown(no_progress) as progress:
        report = tokenize(
            inputs,
            out or ".",
            tokenizer,
            resume=resume,
            overwrite=overwrite,
            progress=progress,
            **given,
        )
    _tell(report)


@contextmanager
def _options_for_arguments(writes: bool = False) -> Iterator[None]:
    """Errors name options of the command where they name arguments of the function.

    A run that writes has begun its folder where it stops at a row or a file; what ends that is
    another setting or another file, and so a run anew.
    """
    try:
        yield
    except (CorpusError, CorpusWriteError, InvalidIdError, InvalidValueError) as error:
        fault = error_of_kizami(error)
        message, hint = _as_typed(fault.message), _hint_as_typed(fault.hint)
        if hint == _NO_HINT and message != fault.message:
            hint = "give another number"
        stopped = getattr(error, "reason", "unreadable") != "unreadable"
        if writes and stopped and "--overwrite" not in hint:
            hint += "; then run with `--overwrite`"
        raise CommandError(message, hint, fault.code) from error


def _as_typed(message: str) -> str:
    """A message with the option for the argument that it begins or ends with."""
    names = "shard_tokens|max_document_bytes|bos|eos"
    pattern = rf"^({names})(?= )|(?<= )({names})$"
    return re.sub(pattern, lambda found: f"`--{found[0].replace('_', '-')}`", message)


def _hint_as_typed(hint: str) -> str:
    hint = re.sub(r"(\w+)='(\w+)'", r"`--\1 \2`", hint)
    names = r"\b(resume|overwrite|field|input_format)(?=,|$)"
    return re.sub(names, lambda name: f"`--{name[1].replace('_', '-')}`", hint)


def _unescaped(separator: str | None) -> str | None:
    if separator is None:
        return None
    escapes = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}
    head, *rest = separator.split("\\")
    parts = [head]
    while rest:
        part = rest.pop(0)
        if not part and rest:  # a backslash by another
            parts.append("\\" + rest.pop(0))
        elif part[:1] in escapes and part:
            parts.append(escapes[part[0]] + part[1:])
        else:
            hint = r"write \n, \t, \r or \0, and \\ for a backslash"
            raise CommandError(f"`--separator` holds `\\{part[:1]}`", hint)
    return "".join(parts)


def _shown(hidden: bool) -> AbstractContextManager[Callable[[Progress], object] | None]:
    """Shows how far a run is, on a terminal."""
    if hidden or not is_terminal(sys.stderr):
        return nullcontext()
    return _Bar()


class _Bar:
    """A line on the terminal: share, rate, time left."""

    def __enter__(self) -> Callable[[Progress], object]:
        self._bar: Any = None
        self._last: Progress | None = None
        self._next = 0.0
        return self._show

    def __exit__(self, *_: object) -> None:
        if self._last is not None:
            self._draw(self._last)
            self._bar.render_finish()

    def _show(self, progress: Progress) -> None:
        self._last = progress
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 0.2
            self._draw(progress)

    def _draw(self, progress: Progress) -> None:
        known = progress.total is not None
        if self._bar is None:
            self._bar = click.progressbar(
                length=progress.total or 1,
                bar_template="[%(bar)s]  %(info)s" if known else "%(info)s",
                show_eta=known,
                show_percent=known,
                item_show_func=lambda item: item,
                file=sys.stderr,
                width=20,
            )
        rate = progress.tokens / max(progress.seconds, 1e-9)
        text = f"{_count(progress.documents, 'document')}, {_count(progress.tokens, 'id')}"
        text += f", {rate / 1e6:.1f} M/s"
        self._bar.update(max(progress.read - self._bar.pos, 0) if known else 0, text)
        self._bar.render_progress()


def _tell(report: Report) -> None:
    output = printable(str(report.output))
    say(
        f"{output}: {_count(report.tokens, 'id')} of {_count(report.documents, 'document')}"
        f" in {_count(report.shards, 'shard')}"
    )
    if report.left_out:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in report.left_out.items())
        rows = _count(report.rows, "row")
        note(f"left out {sum(report.left_out.values()):,} of {rows}: {reasons}")
    for one in report.named[:_SHOWN]:
        warn(f"{one['path']}, row {one['row']}: {_as_typed(one['message'])}")
    if len(report.named) > _SHOWN:
        note(f"{output}/manifest.json names more of them")
    if not report.documents and any(reason in report.left_out for reason in _FIELD):
        note("no row gave a text; choose another `--field`, and run with `--overwrite`")
    for file in report.damaged:
        warn(f"after {_count(file['row'], 'row')}: {_hint_as_typed(file['message'])}")
    if report.damaged:
        files = _count(len(report.damaged), "file")
        message = f"{files} could not be read to the end"
        ways = []
        if any(file["reason"] in _FIELD for file in report.damaged):
            ways.append("choose another `--field`")
        if any(file["reason"] not in _FIELD for file in report.damaged):
            ways.append("replace what is damaged")
        raise CommandError(message, f"{', '.join(ways)}, and run with `--overwrite`", code=1)


def _estimate(inputs: tuple[str, ...], model: str, given: dict[str, Any]) -> None:
    from kizami.corpus import estimate

    tokenizer = load(model)
    with _options_for_arguments():
        found = estimate(inputs, tokenizer, **given)
    for path, form, size in found.inputs:
        say(f"{printable(path)}  {form}  {'unknown size' if size is None else f'{size:,} bytes'}")
    if found.tokens is None:
        say(f"{_count(len(found.inputs), 'file')}; how many ids they give is not known")
        return
    say(
        f"{_count(len(found.inputs), 'file')}, about {_count(found.tokens, 'id')}"
        f" in {_count(found.shards or 0, 'shard')}, {found.output_bytes:,} bytes;"
        f" {found.sampled_bytes:,} bytes were looked at"
    )


def _verify(folder: str) -> None:
    from kizami.corpus import verify

    with _options_for_arguments():
        seen = verify(folder)
    name = printable(folder)
    shards = _count(seen.shards, "shard")
    if seen.faults:
        for fault in seen.faults:
            say(f"{name}: {printable(fault)}")
        raise CommandError(
            f"{name} is not what its manifest says", "run again with `--overwrite`", code=1
        )
    ids, documents = _count(seen.tokens, "id"), _count(seen.documents, "document")
    say(f"{name}: {ids} of {documents} in {shards}, all sound")
    if not seen.complete:
        message = f"{name} is sound, and not complete"
        raise CommandError(message, "go on with `--resume`", code=1)


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'s' * (number != 1)}"
