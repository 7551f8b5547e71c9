"""The hashes of blocks, by the rules as vLLM and Dynamo have published them, in plain Python.

vLLM 0.33: `hash_block_tokens` in `vllm/v1/core/kv_cache_utils.py`, the functions of
`vllm/utils/hashing.py`. Dynamo 1.6: `compute_next_sequence_hash` in the crate `dynamo-tokens`.
SGLang 0.5.23: `hash_page` in `sglang/srt/mem_cache/cpp_utils/hash_binding.cpp`.
"""

from __future__ import annotations

import hashlib
import pickle
import struct
from collections.abc import Sequence
from typing import Any

import pytest

SCHEMES = [
    "vllm-sha256", "vllm-sha256-cbor", "vllm-xxhash", "vllm-xxhash-cbor",
    "dynamo-block", "dynamo-sequence", "sglang",
]  # fmt: skip
# Both sides of every place where an encoding changes.
EDGES = [
    0, 1, 23, 24, 127, 128, 255, 256, 257, 32767, 32768, 65535, 65536, 163839,
    2**24, 2**31 - 1, 2**31, 2**32 - 1,
]  # fmt: skip


def seed_of(scheme: str) -> str | None:
    """A seed where vLLM would take a random one."""
    return "0" if "xxhash" in scheme else None


def expected(
    ids: Sequence[int],
    block_size: int,
    *,
    scheme: str = "vllm-sha256-cbor",
    seed: str | int | None = None,
    extra_keys: Sequence[Any] | None = None,
) -> list[Any]:
    """What `block_hashes(...).tolist()` must be; `extra_keys`: those of each block."""
    blocks = [ids[at : at + block_size] for at in range(0, len(ids), block_size)]
    if blocks and len(blocks[-1]) < block_size:
        del blocks[-1]
    if scheme.startswith("dynamo"):
        return _dynamo(blocks, 1337 if seed is None else seed, scheme == "dynamo-sequence")
    if scheme == "sglang":
        digests = [b""]
        for block in blocks:
            data = digests[-1] + struct.pack(f"<{block_size}I", *block)
            digests.append(hashlib.sha256(data).digest())
        return [list(digest) for digest in digests[1:]]
    parent = _vllm(scheme, "vllm-none-hash" if seed is None else seed)
    hashes = []
    for number, block in enumerate(blocks):
        parent = _vllm(scheme, (parent, tuple(block), extra_keys[number] if extra_keys else None))
        hashes.append(list(parent))
    return hashes


def _vllm(scheme: str, value: Any) -> bytes:
    if scheme.endswith("cbor"):
        cbor2 = pytest.importorskip("cbor2", reason="cbor2 is not installed (extra: test)")
        data = cbor2.dumps(value, canonical=True)
    else:
        data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    if "sha256" in scheme:
        return hashlib.sha256(data).digest()
    xxhash = pytest.importorskip("xxhash", reason="xxhash is not installed (extra: test)")
    digest: bytes = xxhash.xxh3_128_digest(data)
    return digest


def _dynamo(blocks: list[Any], seed: Any, chained: bool) -> list[int]:
    xxhash = pytest.importorskip("xxhash", reason="xxhash is not installed (extra: test)")
    hashes: list[int] = []
    for block in blocks:
        hash_ = xxhash.xxh3_64_intdigest(struct.pack(f"<{len(block)}I", *block), seed)
        if chained and hashes:
            hash_ = xxhash.xxh3_64_intdigest(struct.pack("<2Q", hashes[-1], hash_), 1337)
        hashes.append(hash_)
    return hashes
