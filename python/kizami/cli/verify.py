"""`kizami verify`: the ids of your own text against the published path and every rival."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kizami.cli._console import note, say
from kizami.cli._faults import CommandError, printable
from kizami.cli._files import read_text
from kizami.cli._options import errors_option, special_option

if TYPE_CHECKING:
    from kizami.bench.verify import Comparison

__all__ = ["verify"]


@click.command()
@click.argument(
    "files", metavar="FILE...", type=click.Path(allow_dash=True), nargs=-1, required=True
)
@click.option(
    "--engines",
    metavar="NAMES",
    help="Rivals to ask, with commas between; `none` asks Kizami alone.  [default: all]",
)
@special_option
@errors_option
def verify(files: tuple[str, ...], engines: str | None, allow_special: bool, errors: str) -> None:
    """Compare the ids of each FILE with the published path.

    The published path of Kimi K3 is run with tiktoken, and so is every rival
    that is installed. Where ids differ, the first difference is shown. The exit
    code is 1 if Kizami's ids differ; rivals do not change it.
    Needs `pip install 'kizami[bench]'`.

    \b
    Examples:
      kizami verify prompt.txt
      kizami verify docs/*.md --engines none
      git log -p | kizami verify - --errors replace
    """
    from kizami.bench.client import FaultError
    from kizami.bench.verify import compare

    texts = [read_text(name, errors, "verify -") for name in files]
    wanted = [name for name in (engines or "").split(",") if name]
    if wanted:
        wanted = ["kizami", *(name for name in wanted if name not in ("none", "kizami"))]
    wrong = 0
    try:
        compared = compare(texts, wanted, allow_special, note)
        for name, text, (right, comparisons) in zip(files, texts, compared, strict=True):
            say(f"{printable(name)}: {len(text):,} characters, {len(right):,} ids")
            for comparison in comparisons:
                _show(comparison)
            ours = comparisons[0]
            wrong += ours.difference is not None or bool(ours.fault)
    except FaultError as fault:
        message = "reinstall `tiktoken`, or give a smaller file"
        raise CommandError(str(fault), message, code=1) from None
    if wrong:
        raise CommandError(
            f"kizami's ids differ from the published path's in {wrong} of {len(files)} files",
            "this is a bug in kizami; please report it with the lines above",
            code=1,
        )


def _show(comparison: Comparison) -> None:
    difference = comparison.difference
    engine = printable(comparison.engine)
    if comparison.fault:
        say(f"  {engine:<15} failed: {printable(comparison.fault)}")
    elif difference is None:
        say(f"  {engine:<15} the same")
    else:
        say(
            f"  {engine:<15} differs from id {difference.position:,} on,"
            f" at byte {difference.byte:,}; {comparison.count:,} ids"
        )
        say(f"    published     {_listed(difference.right)}")
        say(f"    {engine:<13} {_listed(difference.found)}")
        say(f"    text          {difference.before!r} | {difference.after!r}")


def _listed(ids: list[int]) -> str:
    return " ".join(map(str, ids)) or "(no more ids)"
