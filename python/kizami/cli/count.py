"""`kizami count`: how many ids a text has."""

from __future__ import annotations

import click

from kizami.cli._console import say
from kizami.cli._faults import printable
from kizami.cli._files import read_text
from kizami.cli._options import errors_option, load, model_option, special_option

__all__ = ["count"]


@click.command()
@click.argument("files", metavar="[FILE]...", type=click.Path(allow_dash=True), nargs=-1)
@model_option
@special_option
@errors_option
def count(files: tuple[str, ...], model: str, allow_special: bool, errors: str) -> None:
    """Print the number of token ids of each FILE.

    One file (or standard input, without FILE) gives the plain number; several give a line each and
    a line with the total.

    \b
    Examples:
      kizami count prompt.txt
      git diff | kizami count
      kizami count docs/*.md
    """
    tokenizer = load(model)
    names = files or ("-",)
    counts = [
        tokenizer.count(read_text(name, errors, "count"), allow_special=allow_special)
        for name in names
    ]
    if len(counts) == 1:
        say(str(counts[0]))
        return
    total = sum(counts)
    width = len(str(total))
    for number, name in zip((*counts, total), (*names, "total"), strict=True):
        say(f"{number:>{width}} {printable(name)}")
