"""Pickles of all drop-ins are the same bytes in every process, and whatever was called before.

Caches go by them: `datasets.map`, for one, runs again if the pickle of a tokenizer has changed. The
slow class of Kimi is left out: it holds a set of its own, which `datasets` puts in order.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MAKE = {
    "kizami": "import kizami\nmade = kizami.load('kimi-k3')\nuse = made.encode",
    "tiktoken": (
        "import kizami\nfrom kizami.compat.tiktoken import Encoding\n"
        "made = Encoding.from_tokenizer(kizami.load('kimi-k3'), 'other')\n"
        "use = made.encode_ordinary"
    ),
    "basetenkenizer": (
        "from kizami.compat.basetenkenizer import Tokenizer\n"
        "made = Tokenizer.from_model('kimi-k3')\nuse = made.encode"
    ),
    "tokenizers": (
        "from tests.compat.hf import both, small\n"
        "made = both(small()).ours\nmade.add_tokens(['<new>'])\n"
        "made.add_special_tokens(['<other>', '<third>'])\nuse = made.encode"
    ),
    "transformers": (
        "import tempfile, pathlib\nfrom kizami.compat.transformers import is_adopted, patch\n"
        "from tests.compat.test_transformers_fast import load_both, write_small\n"
        "folder = pathlib.Path(FOLDER)\n"
        "made = load_both(write_small(folder)).ours\nmade.add_tokens(['<new>'])\n"
        "assert is_adopted(made)\nuse = made"
    ),
}
NEEDS = {"tokenizers": "tokenizers", "transformers": "transformers"}
SHOW = (
    "import hashlib, pickle\n"
    "def show(): print(hashlib.sha256(pickle.dumps(made)).hexdigest())\n"
    "show()\nuse('some text <|open|>')\nshow()\n"
)


@pytest.mark.parametrize("name", MAKE)
def test_pickles_are_the_same_in_every_process(name: str, tmp_path: Path) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    code = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nFOLDER = {str(tmp_path)!r}\n"
    digests = []
    for seed in ("1", "2", "3"):
        run = subprocess.run(
            [sys.executable, "-c", code + MAKE[name] + "\n" + SHOW],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert run.returncode == 0, run.stderr
        digests += run.stdout.split()

    assert len(digests) == 6
    assert len(set(digests)) == 1
