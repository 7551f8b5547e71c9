"""Documents say what is true: help texts, the summary in README.md, links, unsafe code."""

from __future__ import annotations

import importlib.util
import re
import shlex
from itertools import takewhile
from pathlib import Path
from types import ModuleType

import pytest
from click import Context
from kizami.cli import main

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.fixture
def update_docs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`tools/update_docs.py` as a module; the working folder is the repository."""
    spec = importlib.util.spec_from_file_location("update_docs", ROOT / "tools" / "update_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("KIZAMI_NUM_THREADS", raising=False)
    return module


def test_the_page_of_the_command_line_is_the_real_help(update_docs: ModuleType) -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert page == update_docs.cli_page(), "run `python tools/update_docs.py`"


def test_the_summary_in_the_readme_is_the_real_one(update_docs: ModuleType) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text == update_docs.readme(), "run `python tools/update_docs.py`"


def test_the_readme_has_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "pip install . && kizami chat examples/agent.json --stats\n" in text
    assert "pip install '.[test]' && pytest\n" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_and_their_options_are_there(page: Path) -> None:
    for block in re.findall(r"```(?:sh|console)\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            for start in [at for at, word in enumerate(words) if word == "kizami"]:
                given = list(takewhile(lambda word: word not in "|&&;>", words[start + 1 :]))
                # `kizami` as a value, as in `--tokenizer-mode kizami`, has no command behind it.
                if not given or (start and words[start - 1] not in ("|", "&&", ";", "-m", "time")):
                    continue
                if given[0].startswith("-"):
                    continue
                command = main.get_command(Context(main), given[0])
                assert command is not None, line
                known = {
                    name
                    for option in command.params
                    for name in (*option.opts, *option.secondary_opts)
                }
                options = {word.partition("=")[0] for word in given if word.startswith("-")}
                assert options - {"-", "-h", "--help"} <= known, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), target
        if anchor and not anchor.startswith("kizami."):  # those are made from docstrings
            heads = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.M)
            slugs = [
                re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads
            ]
            assert anchor in slugs, target


def test_the_list_of_unsafe_code_is_complete() -> None:
    page = (ROOT / "docs" / "concepts" / "design.md").read_text(encoding="utf-8")
    listed = {
        file: int(uses) for file, uses in re.findall(r"^\| `(\S+\.rs)` \| (\d+) \|", page, re.M)
    }
    found = {}
    for file in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        code = re.sub(r"//.*", "", file.read_text(encoding="utf-8"))
        if uses := len(re.findall(r"\bunsafe\b", code)):
            found[file.relative_to(ROOT / "crates").as_posix()] = uses
    assert found == listed


def test_linked_crates_are_those_of_the_lock_file() -> None:
    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    locked = set(re.findall(r'^name = "(.+)"\nversion = "(.+)"', lock, re.M))
    text = (ROOT / "THIRD_PARTY.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| ([\w-]+) \| (\d\S*) \|", text, re.M))
    assert listed
    assert listed <= locked, "run `python tools/third_party.py`"
