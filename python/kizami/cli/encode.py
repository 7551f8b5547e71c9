"""`kizami encode`: text to ids."""

from __future__ import annotations

import click

from kizami.cli._files import format_for, read_text, write_ids
from kizami.cli._options import (
    errors_option,
    format_option,
    load,
    model_option,
    out_option,
    special_option,
)

__all__ = ["encode"]


@click.command()
@click.argument("file", type=click.Path(allow_dash=True), default="-")
@model_option
@special_option
@format_option
@out_option
@errors_option
def encode(
    file: str, model: str, allow_special: bool, form: str | None, out: str | None, errors: str
) -> None:
    """Print the token ids of a text.

    FILE is UTF-8 text; without it, standard input is read. Every byte counts, the last newline too.

    \b
    Examples:
      kizami encode prompt.txt
      printf 'Hello, world' | kizami encode
      kizami encode prompt.txt --out ids.npy
      kizami encode prompt.txt --format json | jq length
    """
    form = format_for(form, out)
    text = read_text(file, errors, "encode")
    write_ids(load(model).encode(text, allow_special=allow_special), form, out)
