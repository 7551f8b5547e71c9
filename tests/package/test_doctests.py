"""Examples in docstrings, in the README and in the guides are true.

In Markdown, each file is one namespace: its ```python blocks run one after the other, blocks with
`>>>` prompts as doctests. A block that cannot run here (it needs a network, say) is marked
```python no-test.
"""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import warnings
from pathlib import Path
from typing import Any

import kizami
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^( *)```python[ ]*\n(.*?)^\1```[ ]*$", re.MULTILINE | re.DOTALL)
# Examples that run with an optional dependency; without it they are skipped.
NEEDS = {
    "kizami.chat.jinja": "jinja2",
    "docs/guides/chat-templates.md": "jinja2",
    "docs/guides/from-tiktoken.md": "tiktoken",
    "kizami.corpus._arrow": "pyarrow",
    "docs/guides/corpora.md": "pyarrow",
    "docs/guides/corpora-clusters.md": "ray.data dask.dataframe distributed",
    "docs/guides/transformers.md": "transformers",
}

pytestmark = pytest.mark.usefixtures("threads")


def module_names() -> list[str]:
    found = pkgutil.walk_packages(kizami.__path__, "kizami.")
    return [
        "kizami",
        *sorted(m.name for m in found if not m.name.endswith(("__main__", "._native"))),
    ]


def markdown_files() -> list[Path]:
    files = [
        REPOSITORY / "README.md",
        REPOSITORY / "CONTRIBUTING.md",
        *REPOSITORY.glob("docs/**/*.md"),
    ]
    return sorted(file for file in files if file.is_file())


def report(test: doctest.DocTest) -> str:
    """Runs the examples; what failed, or nothing."""
    lines: list[str] = []
    doctest.DocTestRunner(verbose=False, optionflags=OPTIONS).run(test, out=lines.append)
    return "".join(lines)


@pytest.mark.parametrize("name", module_names())
def test_docstrings(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"{name} needs an optional dependency: {error}")
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    failures = "".join(map(report, doctest.DocTestFinder(exclude_empty=True).find(module)))

    assert not failures, failures


@pytest.mark.parametrize("file", markdown_files(), ids=lambda f: str(f.relative_to(REPOSITORY)))
def test_markdown(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for needed in NEEDS.get(file.relative_to(REPOSITORY).as_posix(), "").split():
        pytest.importorskip(needed)
    if file.name == "corpora-clusters.md":
        warnings.simplefilter("default")  # Ray and Dask use what others have deprecated
    text = file.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        indent, code = block.groups()
        code = re.sub(f"^{indent}", "", code, flags=re.MULTILINE)
        line = text.count("\n", 0, block.start(2)) + 1
        if not re.search(r"^>>> ", code, re.MULTILINE):
            # Blank lines before it put the numbers of lines right in a traceback.
            exec(compile("\n" * (line - 1) + code, str(file), "exec"), namespace)
            continue
        test = doctest.DocTestParser().get_doctest(code, namespace, file.name, str(file), line - 1)
        # The runner works on a copy: what the examples define is needed by later blocks.
        lines: list[str] = []
        runner = doctest.DocTestRunner(verbose=False, optionflags=OPTIONS)
        runner.run(test, out=lines.append, clear_globs=False)
        namespace.update(test.globs)
        assert not lines, "".join(lines)
