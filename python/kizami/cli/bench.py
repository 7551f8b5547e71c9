"""`kizami bench`: the speed of Kizami and its rivals on this machine."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import click

from kizami.cli._console import note, say
from kizami.cli._faults import CommandError, cannot, printable
from kizami.cli._files import read_text
from kizami.cli._options import errors_option

__all__ = ["bench"]


@click.command()
@click.option("--quick", is_flag=True, help="A choice of cases that takes about two minutes.")
@click.option("--list", "listing", is_flag=True, help="Show the cases and engines, and stop.")
@click.option(
    "--cases",
    metavar="NAMES",
    help="Suites or cases, with commas between; `*` stands for anything.",
)
@click.option(
    "--engines",
    metavar="NAMES",
    help="Engines, with commas between; MODULE:CLASS for one of your own.  [default: all]",
)
@click.option(
    "--rounds", type=click.IntRange(1), metavar="N", help="Rounds, instead of what each case says."
)
@click.option("--pin", metavar="CPUS", help="Processors for the engines, such as 0,1 or 0-3.")
@click.option(
    "--text",
    "texts",
    multiple=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Measure this text of yours instead; may be given several times.",
)
@errors_option
@click.option(
    "--models",
    type=click.Path(file_okay=False, exists=True),
    metavar="DIR",
    help="Folders of other models, each with a tokenizer.json, for the suite `models`.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Where the record goes.  [default: a new file in benchmarks/records, if there is"
    " such a folder]",
)
@click.option(
    "--plot",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Draw the results into PNG files in DIR.",
)
@click.option(
    "--check",
    "record",
    type=click.Path(dir_okay=False, exists=True),
    metavar="RECORD",
    help="Compare a record with the project's targets, and stop.",
)
@click.option(
    "--from",
    "source",
    type=click.Path(dir_okay=False, exists=True),
    metavar="RECORD",
    help="Show (or plot) a record instead of measuring.",
)
def bench(
    quick: bool,
    listing: bool,
    cases: str | None,
    engines: str | None,
    rounds: int | None,
    pin: str | None,
    texts: tuple[str, ...],
    errors: str,
    models: str | None,
    out: str | None,
    plot: str | None,
    record: str | None,
    source: str | None,
) -> None:
    """Measure how fast this machine turns prompts into ids.

    Every engine that is installed gets the same new text in every round, in a
    process of its own, and its ids are compared with the published tokenizer's.
    The table shows medians; `x kizami` is how many times longer an engine takes.
    Needs `pip install 'kizami[bench]'`.

    \b
    Examples:
      kizami bench --quick
      kizami bench --cases 'warm-118-*' --engines kizami,tiktoken
      kizami bench --cases scripts --pin 0 --plot plots
      kizami bench --text prompt.txt
      kizami bench --cases models --models tokenizers
      kizami bench --check record.jsonl
    """
    from kizami.bench import cases as known
    from kizami.bench import record as records
    from kizami.bench.runner import Options, own_cases, run
    from kizami.bench.table import print_results

    if listing:
        _list(quick, cases)
        return
    if record:
        from kizami.bench.check import check

        if not check([Path(record)], sys.stdout):
            sys.exit(1)
        return
    if source:
        lines = records.read(Path(source))
    else:
        own = {name: read_text(name, errors, "bench --text -") for name in texts}
        options = Options(
            engines=_names(engines),
            rounds=rounds,
            cpus=_cpus(pin),
            texts=own,
            models=Path(models) if models else None,
            command=shlex.join(["kizami", *sys.argv[1:]]),
        )
        chosen = own_cases(own) if own else known.select(_names(cases), quick)
        lines = run(chosen, options, note)
    print_results(lines, sys.stdout)
    if not source:
        _keep(lines, out)
    if plot:
        from kizami.bench.plots import draw

        for path in draw(lines, Path(plot)):
            note(f"drew {path}")


def _keep(lines: list[dict[str, object]], out: str | None) -> None:
    from kizami.bench import record as records

    path = Path(out) if out else records.default_path(lines[0]) if lines else None
    if path is None:
        note("no record is kept; `--out FILE` keeps one")
        return
    try:
        records.write(path, lines)
    except OSError as error:
        raise cannot("write to", str(path), error) from error
    note(f"the record is {path}")


def _list(quick: bool, cases: str | None) -> None:
    from kizami.bench import cases as known
    from kizami.bench.lab.engines import engine_class
    from kizami.bench.runner import roll_call

    chosen = known.select(_names(cases), quick) if cases or quick else None
    for suite, listed in known.suites().items():
        shown = [case for case in listed if chosen is None or case in chosen]
        if shown:
            say(suite)
            for case in shown:
                say(f"  {case.name:<28} {case.mode:<8} {case.rounds} rounds")
    here, absent = roll_call(())
    say("engines")
    for name in here:
        say(f"  {name:<15} {engine_class(name).way}")
    for name, reason in absent.items():
        say(f"  {name:<15} {printable(reason)}")


def _names(text: str | None) -> list[str]:
    return [name for name in (text or "").split(",") if name]


def _cpus(text: str | None) -> list[int] | None:
    """`0,2-4` as numbers."""
    if text is None:
        return None
    found: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
    except ValueError:
        found = []
    if not found:
        raise CommandError(
            f"`--pin {text}` is no list of processors", "give numbers, such as `--pin 0,2-4`"
        )
    if not hasattr(os, "sched_setaffinity"):
        raise CommandError("this system cannot pin processes", "leave out `--pin`")
    usable = os.sched_getaffinity(0)
    if not usable.issuperset(found):
        listed = ",".join(map(str, sorted(usable)))
        raise CommandError(
            f"`--pin {text}` names processors that cannot be used", f"give some of {listed}"
        )
    return found
