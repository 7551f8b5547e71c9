"""Segments as lines of text, for people.

Control text stands bare, other text in quotes with everything escaped that a terminal could obey,
so the two cannot be taken for each other, with or without colour.
"""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Sequence

import click

from kizami._tokenizer import Tokenizer
from kizami.cli._console import colour, is_terminal, note, say
from kizami.cli._faults import printable
from kizami.cli._prompt import look_alikes
from kizami.segments import Segment

__all__ = ["show_segments"]


def show_segments(tokenizer: Tokenizer, segments: Sequence[Segment]) -> None:
    """Print one line a segment: its number, the count of its ids, its kind, its text."""
    width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
    coloured = colour(sys.stdout)
    digits = len(str(len(segments)))
    lines = []
    found = 0
    for number, segment in enumerate(segments):
        ids = tokenizer.count_segments([segment])
        injected = 0 if segment.allow_special else len(look_alikes(tokenizer, segment.text))
        found += injected
        kind = "control" if segment.allow_special else "text (!)" if injected else "text"
        head = f"{number:>{digits}}  {ids:>6}  {kind:<8}  "
        text = printable(segment.text) if segment.allow_special else repr(segment.text)
        line = fit(head + text, width)
        if coloured and kind != "text":
            line = click.style(line, fg="cyan" if segment.allow_special else "yellow")
        lines.append(line)
    say("\n".join([f"{'#':>{digits}}  {'ids':>6}  {'kind':<8}  text", *lines]))
    if found:
        note(f"(!) marks text that spells control tokens, {found} in all; it stays text")


def fit(line: str, width: int | None) -> str:
    """`line`, cut so that it takes at most `width` columns of a terminal.

    >>> fit("abcdef", 4), fit("漢字", 4), fit("漢字x", 4)
    ('abc…', '漢字', '漢…')
    """
    if width is None:
        return line
    used = 0
    keep = 0  # characters that leave a column for the dots
    for place, char in enumerate(line):
        used += columns(char)
        if used > width:
            return line[:keep] + "…"
        if used < width:
            keep = place + 1
    return line


def columns(char: str) -> int:
    """Columns that a printable character takes in a terminal.

    >>> [columns(char) for char in "a漢\\u0301"]
    [1, 2, 0]
    """
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
