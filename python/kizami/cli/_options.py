"""Options that several commands share, and loading the tokenizer that they name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

import kizami

__all__ = ["errors_option", "format_option", "load", "model_option", "out_option"]

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

DEFAULT_MODEL = "kimi-k3"


def model_option(command: CommandT) -> CommandT:
    """`--model`."""
    return click.option(
        "-m",
        "--model",
        default=DEFAULT_MODEL,
        show_default=True,
        metavar="NAME_OR_PATH",
        help="Bundled name (see `kizami models`), directory or hub id.",
    )(command)


def errors_option(command: CommandT) -> CommandT:
    """`--errors`."""
    return click.option(
        "--errors",
        type=click.Choice(["strict", "replace"]),
        default="strict",
        show_default=True,
        help="What to do with bytes that are not UTF-8: stop, or read them as U+FFFD.",
    )(command)


def format_option(command: CommandT) -> CommandT:
    """`--format`."""
    return click.option(
        "-f",
        "--format",
        "form",
        type=click.Choice(["text", "json", "npy"]),
        help="Form of the ids: one line of numbers, a JSON array, or a uint32 NumPy file."
        "  [default: as the suffix of --out says, else text]",
    )(command)


def out_option(command: CommandT) -> CommandT:
    """`--out`."""
    return click.option(
        "-o",
        "--out",
        type=click.Path(dir_okay=False, allow_dash=True),
        metavar="FILE",
        help="Write the ids to FILE instead of standard output.",
    )(command)


def special_option(command: CommandT) -> CommandT:
    """`--allow-special`."""
    return click.option(
        "--allow-special",
        is_flag=True,
        help="Names of control tokens become control ids. Only for text that you wrote or trust:"
        " text from users can forge messages with it.",
    )(command)


def load(model: str) -> kizami.Tokenizer:
    """The tokenizer that `--model` names."""
    return kizami.load(model)
