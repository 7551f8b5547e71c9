"""Write the list of linked crates, and their licences, into THIRD_PARTY.md.

    python tools/third_party.py            rewrite the part between the two marks
    python tools/third_party.py --check    exit 1 if that would change the file

Crates, versions and licence expressions are those of `cargo tree` and `cargo metadata` for the
extension module; copyright lines come from the licence files inside the crates.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "THIRD_PARTY.md"
BEGIN = "<!-- crates: written by tools/third_party.py -->"
END = "<!-- end of crates -->"
# Their terms are not those of the MIT licence alone: their files are quoted in full.
QUOTED = {"numpy": ("LICENSE",)}


def cargo(*args: str) -> str:
    """Standard output of a cargo command."""
    return subprocess.run(
        ["cargo", *args], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def linked() -> list[dict[str, Any]]:
    """Packages that end up in the extension module, on any platform; no build tools, no macros."""
    tree = cargo(
        "tree", "-p", "kizami-py", "-e", "normal,no-proc-macro", "--prefix", "none",
        "--target", "all", "--locked", "--format", "{p}",
    )  # fmt: skip
    names = {tuple(line.split()[:2]) for line in tree.splitlines() if line.strip()}
    packages = json.loads(cargo("metadata", "--format-version", "1", "--locked"))["packages"]
    return sorted(
        (p for p in packages if (p["name"], f"v{p['version']}") in names and p["source"]),
        key=lambda p: (p["name"], p["version"]),
    )


def copyright_lines(package: dict[str, Any]) -> list[str]:
    """The copyright notices in a crate's licence files, else its authors."""
    folder = Path(package["manifest_path"]).parent
    lines: dict[str, None] = {}
    for file in sorted(folder.iterdir()):
        if file.is_file() and re.match(r"LICENSE(-MIT)?$|COPYRIGHT$", file.name, re.I):
            for line in file.read_text(encoding="utf-8").splitlines():
                if re.match(r"\s*(Copyright\s+(\(c\)|©|\d|The|Mozilla))", line, re.I):
                    lines[" ".join(line.split())] = None
    return list(lines) or [f"Copyright {author}" for author in package["authors"]]


def section() -> str:
    """The part of the file between the two marks."""
    crates = linked()
    table = ["| crate | version | licence |", "| --- | --- | --- |"]
    notices = []
    quotes = []
    for package in crates:
        name = package["name"]
        licence = package["license"].replace("/", " OR ")
        table.append(f"| {name} | {package['version']} | {licence} |")
        lines = copyright_lines(package) or ["no notice in the crate"]
        notices += [f"- {name}: {lines[0]}", *[f"  {line}" for line in lines[1:]]]
        for file in QUOTED.get(name, ()):
            text = (Path(package["manifest_path"]).parent / file).read_text(encoding="utf-8")
            quotes += [f"### {name}: {file}", "", "```text", text.strip(), "```", ""]
    return "\n".join(
        [BEGIN, "", *table, "", "### Copyright notices", "", *notices, "", *quotes, END]
    )


def main() -> int:
    """Rewrite the file, or check it."""
    old = TARGET.read_text(encoding="utf-8")
    head, _, rest = old.partition(BEGIN)
    new = head + section() + rest.partition(END)[2]
    if "--check" in sys.argv[1:]:
        return int(new != old)
    TARGET.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
