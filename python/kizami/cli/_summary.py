"""The summary of `kizami chat --stats`: what is in a prompt, and what stayed text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kizami._tokenizer import Tokenizer
from kizami.cli._faults import printable
from kizami.cli._prompt import Part, channels, control_ids, look_alikes, parts
from kizami.segments import Segment

__all__ = ["LeftOut", "Timing", "summarise"]

_SHOWN = 8  # messages with look-alikes, or left out, that are named one by one


class Timing(NamedTuple):
    """Seconds that one rendering took, the first encoding in this process, and one once warm."""

    render: float
    first: float
    warm: float


class LeftOut(NamedTuple):
    """Indices (0-based) of the messages that were not rendered, and how many were given."""

    skipped: list[int]
    given: int


class Row(NamedTuple):
    """One line of the table: how many of it there are, and what is in them."""

    label: str
    number: int
    segments: int
    characters: int
    ids: int
    control: int


def summarise(
    tokenizer: Tokenizer,
    segments: Sequence[Segment],
    ids: npt.NDArray[np.uint32],
    name: str,
    timing: Timing,
    left_out: LeftOut,
) -> str:
    """The summary, ready to print; no line is longer than 80 columns if `name` is short."""
    prompt = list(parts(segments))
    table = [*_rows(tokenizer, prompt), _row(tokenizer, "whole prompt", len(prompt), segments)]
    return "\n".join(
        [
            f"{printable(name)}: {len(ids):,} ids for {tokenizer.name}",
            "",
            *_table(table),
            "",
            *_left_out(left_out),
            *_injection(tokenizer, prompt, segments),
            "",
            f"Time: {_ms(timing.render)} to render; {_ms(timing.first)} to encode at first,"
            f" {_ms(timing.warm)} once warm",
        ]
    )


def _left_out(left_out: LeftOut) -> list[str]:
    """A line about messages that are not in the prompt, if there are any."""
    skipped, given = left_out
    if not skipped:
        return []
    named = ", ".join(map(str, skipped[:_SHOWN])) + (", ..." if len(skipped) > _SHOWN else "")
    counts = f"{len(skipped):,} of {given:,} message{'s' * (given != 1)}"
    label = "messages" if len(skipped) > 1 else "message"
    return [f"Left out, as the model's own template does: {counts}", f"  {label} {named}", ""]


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def _rows(tokenizer: Tokenizer, prompt: Iterable[Part]) -> list[Row]:
    kinds: dict[str, list[Part]] = {}
    for part in prompt:
        kinds.setdefault(part.kind, []).append(part)
    rows = []
    for kind, members in kinds.items():
        every = [segment for part in members for segment in part.segments]
        rows.append(_row(tokenizer, kind, len(members), every))
        if kind == "assistant":
            rows.extend(_channel_rows(tokenizer, members))
    return rows


def _channel_rows(tokenizer: Tokenizer, members: Iterable[Part]) -> list[Row]:
    found: dict[str, list[list[Segment]]] = {}
    for part in members:
        for channel, segments in channels(part.segments):
            found.setdefault(channel, []).append(segments)
    return [
        _row(tokenizer, f"  {channel}", len(runs), [segment for run in runs for segment in run])
        for channel, runs in found.items()
    ]


def _row(tokenizer: Tokenizer, label: str, count: int, segments: Sequence[Segment]) -> Row:
    characters = sum(len(segment.text) for segment in segments)
    trusted = [segment for segment in segments if segment.allow_special]
    control = tokenizer.count_segments(trusted)
    return Row(label, count, len(segments), characters, tokenizer.count_segments(segments), control)


def _table(rows: Sequence[Row]) -> list[str]:
    heads = ("part of the prompt", "count", "segments", "characters", "ids", "control ids")
    cells = [heads, *[(row[0], *[f"{value:,}" for value in row[1:]]) for row in rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for first, *numbers in cells:
        aligned = [f"{cell:>{width}}" for cell, width in zip(numbers, widths[1:], strict=True)]
        lines.append("  ".join([f"{first:<{widths[0]}}", *aligned]))
    rule = "-" * len(lines[0])
    return [lines[0], rule, *lines[1:-1], rule, lines[-1]]


def _injection(
    tokenizer: Tokenizer, prompt: Iterable[Part], segments: Sequence[Segment]
) -> list[str]:
    """What text from outside spells, and what became of it: both are measured, not assumed."""
    places: list[tuple[str, list[str]]] = []
    for part in prompt:
        names = [
            name
            for segment in part.segments
            if not segment.allow_special
            for name in look_alikes(tokenizer, segment.text)
        ]
        if names:
            places.append((f"{part.kind} {part.number}", names))
    if not places:
        return ["Look-alikes of control tokens in untrusted text: none."]
    total = sum(len(names) for _, names in places)
    untrusted = [segment for segment in segments if not segment.allow_special]
    became = len(control_ids(tokenizer, tokenizer.encode_segments(untrusted)))
    trusted = len(control_ids(tokenizer, tokenizer.encode_segments(segments))) - became
    flat = tokenizer.encode("".join(segment.text for segment in segments), allow_special=True)
    obeyed = len(control_ids(tokenizer, flat)) - trusted
    lines = [f"Look-alikes of control tokens in untrusted text: {total:,}"]
    width = max(len(label) for label, _ in places[:_SHOWN])
    for label, names in places[:_SHOWN]:
        lines.append(f"  {label:<{width}}  {_tally(names, 74 - width)}")
    if len(places) > _SHOWN:
        lines.append(f"  ... and {len(places) - _SHOWN} more messages")
    outcome = "all stayed text" if not became else f"{became} DID NOT STAY TEXT: report this bug"
    return [
        *lines,
        f"Of these, {became} became control ids: {outcome}.",
        f"In one flat, trusted string they would have become {obeyed:,} control ids.",
    ]


def _tally(names: Sequence[str], width: int) -> str:
    """Names and how often each comes, as many as fit.

    >>> _tally(["<|sep|>", "[EOS]", "<|sep|>"], 40)
    '2 <|sep|>, 1 [EOS]'
    >>> _tally(["<|sep|>", "[EOS]", "<|sep|>"], 14)
    '2 <|sep|>, ...'
    """
    text = ""
    counts = Counter(names).most_common()
    for place, (name, count) in enumerate(counts):
        item = f"{', ' if text else ''}{count} {name}"
        rest = 0 if place + 1 == len(counts) else len(", ...")
        if len(text) + len(item) + rest > width:
            return f"{text}, ..." if text else f"{len(names)} in all"
        text += item
    return text
