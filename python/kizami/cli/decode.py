"""`kizami decode`: ids to text."""

from __future__ import annotations

import sys

import click

from kizami.cli._console import is_terminal, write
from kizami.cli._faults import CommandError
from kizami.cli._files import read_ids
from kizami.cli._options import load, model_option

__all__ = ["decode"]


@click.command()
@click.argument("file", type=click.Path(allow_dash=True), default="-")
@model_option
@click.option(
    "--skip-special",
    is_flag=True,
    help="Leave out the control tokens that the vocabulary flags as special.",
)
@click.option(
    "--bytes",
    "raw",
    is_flag=True,
    help="Write the bytes of the tokens as they are, even where they are not UTF-8.",
)
def decode(file: str, model: str, skip_special: bool, raw: bool) -> None:
    """Print the text of token ids.

    Nothing is added to it, no newline either. FILE holds numbers separated by spaces, newlines or
    commas, a JSON array, or a NumPy array (.npy); its content tells which. Without FILE, standard
    input is read.

    \b
    Examples:
      echo 19180 11 2695 | kizami decode
      kizami decode ids.npy
      kizami encode prompt.txt | kizami decode | cmp - prompt.txt
      kizami decode ids.npy --bytes > reply.bin
    """
    if raw and is_terminal(sys.stdout):
        message = "`--bytes` is binary, and standard output is a terminal"
        raise CommandError(
            message, "leave out `--bytes`, or pipe the output into a program or a file"
        )
    ids = read_ids(file)
    # Bytes that are no UTF-8 pass through the surrogates of `surrogateescape` unharmed.
    errors = "surrogateescape" if raw else "replace"
    text = load(model).decode(ids, skip_special=skip_special, errors=errors)
    write(iter([text.encode("utf-8", errors)]))
