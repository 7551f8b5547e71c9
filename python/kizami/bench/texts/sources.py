"""Where pieces come from: a corpus, the standard library's sources, or the grammar.

The corpus is a file of documents parted by `<|endoftext|>` in several scripts; it is looked for in
the folder that `KIZAMI_SHARED` names, or `../shared`, and is never part of the package. A kind
without a source gets made-up text, which the record tells.
"""

from __future__ import annotations

import hashlib
import os
import re
import sysconfig
from collections import Counter
from functools import cached_property
from pathlib import Path
from random import Random

from kizami.bench.texts.grammar import LANGUAGES, language

__all__ = ["Sources"]

_CORPUS = Path("data", "corpus", "multilingual.txt")
_SCRIPTS = {
    "zh": r"[\u4e00-\u9fff]",
    "ja": r"[\u3040-\u30ff]",
    "ko": r"[\uac00-\ud7a3]",
    "ru": r"[\u0400-\u04ff]",
    "ar": r"[\u0600-\u06ff]",
    "hi": r"[\u0900-\u097f]",
    "th": r"[\u0e00-\u0e7f]",
    "english": r"[A-Za-z]",
}
# A sentence with what closes it; Thai, which has no stop, is parted at spaces.
_SENTENCE = re.compile(r"[^.!?。！？।؟\n]*(?:[.!?。！？।؟]+[\"')»”」]*\s*|\n+|$)")
_THAI = re.compile(r"[^ \n]*[ \n]+")
_LEAST = 20_000  # characters of a source that are worth using


class Sources:
    """Real text by kind, read when first needed.

    Args:
        corpus: A file of documents; None looks for it, `Path()` goes without.
    """

    def __init__(self, corpus: Path | None = None) -> None:
        self._corpus = _find_corpus() if corpus is None else corpus

    def pieces(self, kind: str) -> list[str]:
        """The pieces of "code" or of a language, always in the same order."""
        if kind == "code":
            return self._code or _made_up_code()
        found = self._documents.get(kind, "")
        if len(found) < _LEAST:
            random = Random(1)
            return [language(kind).sentence(random) for _ in range(6000)]
        pattern = _THAI if kind == "th" else _SENTENCE
        return [piece for piece in pattern.findall(found) if piece.strip()]

    def origin(self, kind: str) -> str:
        """A name for where a kind comes from, and a checksum of its pieces."""
        pieces = self.pieces(kind)
        if kind == "code":
            name = "standard library" if self._code else "generated"
        else:
            name = "corpus" if len(self._documents.get(kind, "")) >= _LEAST else "generated"
        data = "\0".join(pieces).encode("utf-8", "surrogatepass")
        return f"{name}/{hashlib.sha256(data).hexdigest()[:12]}"

    @cached_property
    def _documents(self) -> dict[str, str]:
        if not self._corpus.is_file():
            return {}
        text = self._corpus.read_text(encoding="utf-8")
        found: dict[str, list[str]] = {kind: [] for kind in LANGUAGES}
        for document in text.split("<|endoftext|>"):
            counts = Counter({kind: len(re.findall(p, document)) for kind, p in _SCRIPTS.items()})
            if counts["ja"] > 0.2 * counts["zh"]:
                counts["ja"] += counts["zh"]
            kind, most = counts.most_common(1)[0]
            if most > 0.4 * len(document):
                found[kind].append(document.strip())
        return {kind: "\n\n".join(documents) for kind, documents in found.items()}

    @cached_property
    def _code(self) -> list[str]:
        """Blocks of the standard library's sources, parted at blank lines."""
        folder = Path(sysconfig.get_path("stdlib"))
        blocks: list[str] = []
        for file in sorted(folder.glob("*.py")):
            try:
                text = file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue
            blocks += [f"{block}\n\n" for block in text.split("\n\n") if block.strip()]
        return blocks if sum(map(len, blocks)) >= _LEAST else []


def _find_corpus() -> Path:
    return Path(os.environ.get("KIZAMI_SHARED") or Path("..", "shared")) / _CORPUS


def _made_up_code() -> list[str]:
    """Functions of a language much like Python, where the library comes without sources."""
    random = Random(2)
    words = language("english")

    def name() -> str:
        return "_".join(words.new_word(random) for _ in range(random.randint(1, 3)))

    def function() -> str:
        one, two, three = name(), name(), name()
        return (
            f"def {one}({two}: int, {three}: str = {name()!r}) -> list[int]:\n"
            f'    """{words.sentence(random).strip()}"""\n'
            f"    for index in range({random.randint(1, 999)}):\n"
            f"        if {two} > {random.random():.4f} and not {three}:\n"
            f"            self.{name()}[{two}].append(index + {random.randint(2, 64)})\n"
            f"    return [{one}(x, {three}) for x in {two}]\n\n"
        )

    return [function() for _ in range(1500)]
