"""What the person at the terminal sees: output, notes, errors, exit codes.

An error is `error: ...`, a blank line and `hint: ...`, on standard error. Control characters that
come from a file or a name are escaped before an error or a note shows them.

Read next: `_faults`, which words the errors of the package and of the system.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from kizami import _threads
from kizami.cli._faults import (
    CommandError,
    cannot,
    error_of_click,
    error_of_kizami,
    out_of_memory,
    printable,
)
from kizami.errors import KizamiError

__all__ = ["Program", "colour", "is_terminal", "note", "say", "warn", "write"]

_INTERRUPTED = 130
_READER_GONE = 141
# In click from 8.2 on: a group without a command shows its help as an error.
_NO_COMMAND: type[Exception] | None = getattr(click.exceptions, "NoArgsIsHelpError", None)


class Program(click.Group):
    """The group of all commands, with errors and exit codes of our own."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command line and exit; with `standalone_mode=False`, raise as click does."""
        alone = kwargs.pop("standalone_mode", True)
        kwargs["standalone_mode"] = False
        if not alone:
            return super().main(*args, **kwargs)
        try:
            result = super().main(*args, **kwargs)
            code = result if isinstance(result, int) else 0
        except CommandError as error:
            code = _report(error)
        except click.Abort:
            code = _INTERRUPTED
        except click.ClickException as error:
            if _NO_COMMAND and isinstance(error, _NO_COMMAND):
                click.echo(error.format_message(), err=True)
                code = error.exit_code
            else:
                code = _report(error_of_click(error))
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors that can be expected come out as `CommandError`."""
        if _threads.note_for_command_line:
            warn(_threads.note_for_command_line)
        try:
            return super().invoke(ctx)
        except KizamiError as error:
            raise error_of_kizami(error) from error
        except BrokenPipeError:
            raise click.exceptions.Exit(_READER_GONE) from None
        except KeyboardInterrupt:
            raise click.exceptions.Exit(_INTERRUPTED) from None
        except MemoryError as error:
            raise out_of_memory() from error
        except OSError as error:
            place = error.filename if isinstance(error.filename, str) else None
            raise cannot("read", place, error) from error


def _report(error: CommandError) -> int:
    click.echo(f"{_tag('error', 'red')} {printable(error.message)}", err=True)
    click.echo(f"\n{_tag('hint', 'cyan')} {printable(error.hint)}", err=True)
    return error.code


def note(text: str) -> None:
    """Tell something beside the data."""
    click.echo(f"{_tag('note', 'cyan')} {printable(text)}", err=True)


def warn(text: str) -> None:
    """Tell something that the user should act on."""
    click.echo(f"{_tag('warning', 'yellow')} {printable(text)}", err=True)


def _tag(word: str, hue: str) -> str:
    return click.style(f"{word}:", fg=hue, bold=True) if colour(sys.stderr) else f"{word}:"


def is_terminal(stream: Any) -> bool:
    """Is a person on the other side?"""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # closed, or none at all
        return False


def colour(stream: Any) -> bool:
    """May text for this stream be coloured? Only on a terminal, and never with `NO_COLOR` set."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return is_terminal(stream) and not plain


def say(text: str) -> None:
    """Write text for people to standard output, with a newline."""
    with _standard_output():
        try:
            click.echo(text, color=True)
        except UnicodeEncodeError as error:
            click.echo(text.encode(error.encoding, "backslashreplace").decode(error.encoding))


def write(blocks: Iterator[bytes | memoryview]) -> None:
    """Write data to standard output, byte for byte."""
    with _standard_output():
        sys.stdout.flush()
        for block in blocks:
            sys.stdout.buffer.write(block)
        sys.stdout.buffer.flush()


@contextmanager
def _standard_output() -> Iterator[None]:
    if sys.stdout is None:
        hint = "do not close it, or write to a file with `--out`"
        raise CommandError("standard output is closed", hint, code=1)
    try:
        yield
    except BrokenPipeError:
        _drop_the_rest()
        raise
    except OSError as error:
        _drop_the_rest()
        raise cannot("write to", None, error) from error


def _drop_the_rest() -> None:
    """Keep the interpreter from writing its buffer once more, and failing again, when it exits."""
    try:
        number = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
    except (OSError, ValueError):
        return
