"""Block hashes equal those of vLLM's own functions, loaded from its wheel without torch.

`KIZAMI_VLLM` names the folder of an unpacked wheel of vllm (0.33.0; see CONTRIBUTING.md). Of its
files, one is imported as it is; from the other, which needs torch, the functions are taken.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import random
from pathlib import Path
from typing import Any

import pytest
from kizami import block_hashes

from tests.blocks import EDGES

pytest.importorskip("cbor2", reason="cbor2 is not installed (extra: test)")
WANTED = {"hash_block_tokens", "resolve_none_hash_seed", "DEFAULT_NONE_HASH_SEED"}


@pytest.fixture(scope="module")
def vllm() -> dict[str, Any]:
    folder = os.environ.get("KIZAMI_VLLM")
    if not folder:
        pytest.skip("KIZAMI_VLLM is not set: the folder of an unpacked wheel of vllm")
    spec = importlib.util.spec_from_file_location("_", Path(folder, "vllm/utils/hashing.py"))
    assert spec is not None
    assert spec.loader is not None
    hashing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hashing)
    tree = ast.parse(Path(folder, "vllm/v1/core/kv_cache_utils.py").read_text(encoding="utf-8"))
    tree.body = [
        node
        for node in tree.body
        if (isinstance(node, ast.FunctionDef) and node.name in WANTED)
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in WANTED)
    ]
    names: dict[str, Any] = {
        "os": os,
        "Any": Any,
        "BlockHash": bytes,
        "_NON_CRYPTO_HASH_FUNCTIONS": {hashing.xxhash, hashing.xxhash_cbor},
        "get_hash_fn_by_name": hashing.get_hash_fn_by_name,
    }
    # Annotations name types that are not here.
    code = "from __future__ import annotations\n" + ast.unparse(tree)
    exec(compile(code, "kv_cache_utils.py", "exec"), names)
    return names


@pytest.mark.parametrize("name", ["sha256", "sha256-cbor", "xxhash", "xxhash-cbor"])
@pytest.mark.parametrize("seed", [None, "0", "1234"])
def test_hashes_are_those_of_vllm(
    vllm: dict[str, Any], name: str, seed: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "xxhash" in name:
        pytest.importorskip("xxhash", reason="xxhash is not installed (extra: test)")
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    if seed is not None:
        monkeypatch.setenv("PYTHONHASHSEED", seed)
    elif "xxhash" in name:
        pytest.skip("vLLM takes a random seed")
    function = vllm["get_hash_fn_by_name"](name.replace("-", "_"))
    vllm["NONE_HASH"] = function(vllm["resolve_none_hash_seed"](function))
    rng = random.Random(name)
    for _ in range(30):
        block_size = rng.choice([1, 2, 3, 4, 16, 64, 256])
        count = rng.randrange(5 * block_size + 20)
        ids = [rng.choice([rng.choice(EDGES), rng.randrange(163840)]) for _ in range(count)]
        keys: Any = (("lora", "adapter", "/path"),) if rng.random() < 0.5 else None
        if not name.endswith("cbor"):
            keys = None
        first: Any = (*(keys or ()), ("cache_salt", "salt"))
        salted = name.endswith("cbor") and rng.random() < 0.5
        want: list[bytes] = []
        for at in range(0, count - block_size + 1, block_size):
            block, extra = ids[at : at + block_size], first if salted and at == 0 else keys
            parent = want[-1] if want else None
            want.append(vllm["hash_block_tokens"](function, parent, block, extra))
        scheme: Any = f"vllm-{name}"
        got = block_hashes(
            ids,
            block_size,
            scheme=scheme,
            seed=seed,
            extra_keys=keys,
            extra_keys_at={0: first} if salted else None,
        )
        assert [row.tobytes() for row in got] == want
