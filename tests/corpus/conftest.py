"""Small corpora, and what they must become: one document after the other, by `Tokenizer.encode`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from random import Random

import kizami
import numpy as np
import pytest

TEXTS = [
    "Hello, world",
    "",
    "naïve 🎉 中文 ไทย " * 30,
    'line one\nline two\r\n\ttabs "quotes" \\ and \x00',
    "<|open|>system<|sep|> [EOS] look-alikes",
    "word " * 3000,
    "\u2028 \ufeff e\u0301",
]


def make_texts(count: int, seed: int = 1) -> list[str]:
    """Texts of several scripts and sizes, the same in every run."""
    random = Random(seed)
    words = ["the", " token", "中文", "🎉", "\n", " naïve", "ไทย", " 12345", "<|sep|>", "\\", '"']
    return [
        "".join(random.choices(words, k=random.choice((0, 1, 20, 20, 300, 300))))
        for _ in range(count)
    ]


def json_lines(texts: Iterable[str], field: str = "text", escaped: bool = False) -> bytes:
    """Them as JSON Lines with other fields around."""
    lines = (
        json.dumps({"id": n, field: text, "more": [{"text": 1}]}, ensure_ascii=escaped)
        for n, text in enumerate(texts)
    )
    return "".join(line + "\n" for line in lines).encode()


def expected(tokenizer: kizami.Tokenizer, texts: Iterable[str], eos: int | None = None) -> list:
    """The ids of every document."""
    after = [] if eos is None else [eos]
    return [tokenizer.encode(text).tolist() + after for text in texts]


def read_documents(folder: Path, dtype: str = "<u4") -> list[list[int]]:
    """The documents of `.bin` shards, as the guide reads them."""
    documents = []
    for path in sorted(folder.glob("*.bin")):
        ids = np.memmap(path, dtype, "r") if path.stat().st_size else np.zeros(0, dtype)
        offsets = np.load(path.with_suffix(".offsets.npy"))
        documents += [ids[a:b].tolist() for a, b in pairwise(offsets)]
    return documents


def contents(folder: Path) -> dict[str, str]:
    """A checksum of every file of a folder, hidden ones too."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> kizami.Tokenizer:
    """A tokenizer of 259 ids: bytes, two merges, one control token."""
    ranks = b"".join(
        b64(bytes([n])) + f" {n}\n".encode() for n in range(256)
    ) + b64(b"ab") + b" 256\n" + b64(b" t") + b" 257\n"  # fmt: skip
    path = tmp_path_factory.mktemp("small") / "small.tiktoken"
    path.write_bytes(ranks)
    pattern = r"\s?\w+|\s+|[^\s\w]+"
    return kizami.load(path, pattern=pattern, special_tokens={"<end>": 258})


def b64(data: bytes) -> bytes:
    import base64

    return base64.b64encode(data)
