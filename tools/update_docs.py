"""Write the real output of the command line into the documentation.

    python tools/update_docs.py            rewrite docs/reference/cli.md and part of README.md
    python tools/update_docs.py --check    exit 1 if that would change a file

Times are left out of the summary in README.md, so that it is the same in every run.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from click.testing import CliRunner
from kizami.cli import main as program

ROOT = Path(__file__).resolve().parents[1]
CLI_PAGE = ROOT / "docs" / "reference" / "cli.md"
README = ROOT / "README.md"
STATS = ("chat", "examples/agent.json", "--stats")

HEAD = """\
# Command line

<!-- Written by tools/update_docs.py from the help of the commands: edit that instead. -->

Standard output is data; notes, warnings and errors go to standard error. Every error ends with a
hint.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | the work failed: output that cannot be written, no network, no memory |
| 2 | wrong usage or bad input |
| 130 | interrupted from the keyboard |
| 141 | the reader of the output went away, as in `kizami encode big.txt \\| head -c 10` |

Colour is used on terminals only, and never if `NO_COLOR` is set. `KIZAMI_NUM_THREADS` limits the
threads of one request. `python -m kizami` is the same program.
"""


def output(*args: str) -> str:
    """What a command prints in a terminal of 80 columns."""
    runner = CliRunner(env={"COLUMNS": "80"})
    result = runner.invoke(program, args, prog_name="kizami", terminal_width=80)
    if result.exit_code:
        raise SystemExit(f"`kizami {' '.join(args)}` failed: {result.output}")
    return result.output


def cli_page() -> str:
    """docs/reference/cli.md."""
    sections = [HEAD]
    for name in ("", *sorted(program.commands)):
        command = f"kizami {name}".strip()
        text = output(*filter(None, [name]), "--help").rstrip()
        sections.append(f"## {command}\n\n```text\n{text}\n```\n")
    return "\n".join(sections)


def readme() -> str:
    """README.md with the summary of the example as it is now."""
    old = README.read_text(encoding="utf-8")
    found = re.search(r"(?<=--stats\n)examples/agent\.json: .*?(?=```)", old, re.S)
    if found is None:
        raise SystemExit("README.md has no summary of examples/agent.json")
    summary = re.sub(r"[\d.]+ ms", "... ms", output(*STATS))
    return old[: found.start()] + summary + old[found.end() :]


def main() -> int:
    """Rewrite the files, or check them."""
    os.chdir(ROOT)
    stale = 0
    for path, text in ((CLI_PAGE, cli_page()), (README, readme())):
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale = 1
        print(f"{path.relative_to(ROOT)} is not up to date", file=sys.stderr)
        if "--check" not in sys.argv[1:]:
            path.write_text(text, encoding="utf-8")
    return stale if "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
