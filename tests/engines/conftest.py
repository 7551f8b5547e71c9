"""Folders of models for engines to load, as they load any model."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from tests.shared import shared_path

# Types of models, by the name of the folder with the tokenizer.
MODELS = {
    "qwen3": "qwen3",
    "gpt-oss": "gpt_oss",
    "llama3": "llama",
    "deepseek_v3": "deepseek_v3",
}


@pytest.fixture(scope="session", params=[*MODELS, "kimi-k3"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of a model that a tokenizer needs."""
    return _folder(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def k3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of Kimi K3, with a class of remote code."""
    return _folder("kimi-k3", tmp_path_factory.mktemp("k3"))


@pytest.fixture(scope="session")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of Qwen3."""
    return _folder("qwen3", tmp_path_factory.mktemp("qwen"))


def _folder(name: str, target: Path) -> Path:
    if name == "kimi-k3":
        from tests.compat import kimi_class

        kimi_class.write_folder(target)
        shutil.copy(kimi_class.__file__, target / "tokenization_kimi.py")
        config = json.loads((target / "tokenizer_config.json").read_text())
        config["auto_map"] = {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]}
    else:
        for file in shared_path("data", "tokenizers", name).iterdir():
            if file.suffix == ".gz":
                (target / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
            elif file.suffix in (".json", ".jinja"):
                shutil.copy(file, target)
        path = target / "tokenizer_config.json"
        config = json.loads(path.read_text()) if path.exists() else {}
        config.setdefault("tokenizer_class", "PreTrainedTokenizerFast")
        (target / "config.json").write_text(json.dumps({"model_type": MODELS[name]}))
    (target / "tokenizer_config.json").write_text(json.dumps(config))
    return target
