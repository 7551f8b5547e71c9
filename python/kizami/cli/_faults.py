"""Errors as the command line words them.

Facts come from the errors themselves; here they get a form that is the same for all: lower case, no
final period, backticks around names, and a hint that says the way out.
"""

from __future__ import annotations

import re

import click

from kizami.errors import (
    CorpusWriteError,
    InternalError,
    KizamiError,
    MissingExtraError,
    SourceNotFoundError,
)

__all__ = [
    "CommandError",
    "cannot",
    "error_of_click",
    "error_of_kizami",
    "out_of_memory",
    "printable",
]

_FAILED = 1
_BAD_INPUT = 2


class CommandError(Exception):
    """An error that the user can act on.

    Attributes:
        message: What is wrong.
        hint: The way out.
        code: Exit code: 2 for wrong usage or bad input, 1 where the work itself failed.
    """

    def __init__(self, message: str, hint: str, code: int = _BAD_INPUT) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


def printable(text: str) -> str:
    """`text` with everything escaped that a terminal could obey or hide.

    >>> printable("red: \\x1b[31m, naïve, 語")
    'red: \\\\x1b[31m, naïve, 語'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def error_of_kizami(error: KizamiError) -> CommandError:
    """An error of the package: its message ends with the way out, after a semicolon."""
    text = str(error)
    source = getattr(error, "source", None)
    if isinstance(source, str):
        text = text.replace(repr(source), f"`{source}`")
    if isinstance(error, InternalError):
        return CommandError(text, "this is a bug in kizami; please report it", _FAILED)
    if isinstance(error, MissingExtraError):
        hint = f"run `pip install 'kizami[{error.extra}]'`"
        if error.extra == "hub":
            hint += ", or give the path of a directory"
        return CommandError(text.partition(": pip ")[0], hint, _FAILED)
    if isinstance(error, SourceNotFoundError):
        hint = "run `kizami models` for the names, or give the path of a directory"
        return CommandError(text, hint, _FAILED if error.__cause__ else _BAD_INPUT)
    message, _, hint = text.rpartition("; ")
    code = _FAILED if isinstance(error, CorpusWriteError) else _BAD_INPUT
    return CommandError(message or text, hint if message else "correct the input", code)


def error_of_click(error: click.ClickException) -> CommandError:
    """A wrong command line."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "kizami"
    hint = f"run `{command} --help`"
    near = getattr(error, "possibilities", None)
    if near:
        hint = f"did you mean {' or '.join(f'`{name}`' for name in near)}? {hint} for all"
    if isinstance(error, click.NoSuchOption):
        if context and _belongs_to_a_command(error.option_name, context.command):
            hint = f"`{error.option_name}` goes after the command: "
            hint += f"`{command} COMMAND {error.option_name} ...`"
        text = f"no such option `{error.option_name}`"
    else:
        text = error.message if near else error.format_message()
        text = re.sub(r"'([^']*)'", r"`\1`", " ".join(text.split())).rstrip(".")
    return CommandError(_lower(text), hint, error.exit_code)


def _belongs_to_a_command(option: str, group: click.Command) -> bool:
    commands = group.commands.values() if isinstance(group, click.Group) else ()
    return any(
        option in (*parameter.opts, *parameter.secondary_opts)
        for command in commands
        for parameter in command.params
    )


def cannot(verb: str, place: str | None, error: OSError) -> CommandError:
    """`verb` ("read", "write to") failed on the file `place`, or on a standard stream."""
    stream = "standard input" if verb == "read" else "standard output"
    name = stream if place is None else f"`{place}`"
    message = f"cannot {verb} {name}: {_lower(error.strerror or str(error))}"
    if verb == "read":
        return CommandError(message, "check the path; `-` reads standard input")
    return CommandError(message, "check the folder, its permissions and the space left", _FAILED)


def out_of_memory() -> CommandError:
    """The input is too large for this machine."""
    return CommandError("out of memory", "split the input into smaller files", _FAILED)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
