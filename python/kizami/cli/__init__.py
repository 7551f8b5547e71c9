"""The `kizami` command: one module a command, over the public API alone.

Standard output is data; notes, warnings and errors go to standard error. Exit codes: 0 done, 1 the
work failed, 2 wrong usage or bad input, 130 interrupted, 141 the reader of the output went away.

Read next: `_console` for errors and exit codes, `_files` for what is read and written.
"""

from __future__ import annotations

import click

from kizami._version import __version__
from kizami.cli._console import Program
from kizami.cli.bench import bench
from kizami.cli.chat import chat
from kizami.cli.corpus import corpus
from kizami.cli.count import count
from kizami.cli.decode import decode
from kizami.cli.encode import encode
from kizami.cli.models import models
from kizami.cli.verify import verify

__all__ = ["main"]


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kizami", message="%(prog)s %(version)s")
def main() -> None:
    """Turn LLM prompts into token ids, exactly as the model does.

    \b
    Examples:
      kizami encode prompt.txt
      kizami count *.md
      kizami chat conversation.json --stats
      kizami encode prompt.txt | kizami decode

    `-` in place of a file is standard input.
    """


for command in (encode, decode, count, chat, corpus, models, bench, verify):
    main.add_command(command)
