"""`BlockHasher` and `block_hashes`: chained hashes of full blocks of ids, as engines compute them.

The rule of each scheme is in `crates/core/src/blocks.rs`. Here: what is taken, and the CBOR of
extra keys.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Literal, SupportsIndex, get_args

import numpy as np
import numpy.typing as npt

from kizami import _native
from kizami._ids import NativeIds, pushed_ids
from kizami.errors import InputTypeError, InvalidIdError, InvalidValueError

Scheme = Literal[
    "vllm-sha256",
    "vllm-sha256-cbor",
    "vllm-xxhash",
    "vllm-xxhash-cbor",
    "dynamo-block",
    "dynamo-sequence",
    "sglang",
]
Ids = SupportsIndex | Iterable[SupportsIndex] | npt.NDArray[np.integer[Any]]
Hashes = npt.NDArray[np.unsignedinteger[Any]]
_LIMIT = 1 << 32


class BlockHasher(_native.BlockHasher):
    """The hashes of full blocks of ids that come one after the other.

    Args:
        block_size: Ids in a block, 1 to 2**32 - 1 (at most 8192 where blocks are pickled). The
            engine's: `--block-size` of vLLM, `--page-size` of SGLang, `kv_block_size` of Dynamo.
        scheme: Whose hashes, and which; see below.
        seed: What the chain begins with. vLLM's is a str, the value of its `PYTHONHASHSEED`;
            without it, vLLM takes "vllm-none-hash" for SHA-256, as this class does, and a random
            one for XXH3, so there you must give it. Dynamo's is an int, 1337 if not given. SGLang
            has none.
        extra_keys: A tuple that goes into the hash of every block: what vLLM has for a LoRA
            adapter, say. Only for the schemes of CBOR.

    | `scheme` | hash of a block | array |
    | --- | --- | --- |
    | `"vllm-sha256-cbor"` | SHA-256 of CBOR of (hash before, ids, extra keys) | `(n, 32)` uint8 |
    | `"vllm-sha256"` | the same of a pickle (vLLM's default) | `(n, 32)` uint8 |
    | `"vllm-xxhash-cbor"` | XXH3-128 of the same CBOR | `(n, 16)` uint8 |
    | `"vllm-xxhash"` | XXH3-128 of the pickle | `(n, 16)` uint8 |
    | `"dynamo-sequence"` | XXH3-64 of (hash before, `dynamo-block`) | `(n,)` uint64 |
    | `"dynamo-block"` | XXH3-64 of the ids of this block alone | `(n,)` uint64 |
    | `"sglang"` | SHA-256 of the hash before and the ids | `(n, 32)` uint8 |

    `push(ids, *, extra_keys_at=None)` takes one id or several (ints, a sequence, an array) and
    gives the hashes of the blocks that get full with them: an array of its own, empty if none does.
    `extra_keys_at` maps the index of a block that is not full yet to the extra keys that it has in
    place of `extra_keys`; `rewind` to before the block drops them.

    `rewind(num_ids)` says that only the first `num_ids` ids are still right, and gives how many of
    these the hasher kept: all of them, or those of full blocks. Push what follows them:
    `hasher.push(ids[hasher.rewind(unchanged):])`.

    `hashes()` gives the hashes of all full blocks, a copy. `num_blocks` and `num_ids` count;
    `block_size` and `scheme` are as given. `copy()` gives an independent hasher at the same place.

    Raises:
        InvalidValueError: A block size, seed, scheme or block that cannot be; extra keys that are
            nested too deeply.
        InvalidIdError: An id outside 0 to 2**32 - 1. The hasher is then as it was.
        InputTypeError: Something else in place of these.

    Cost: linear in the ids pushed; no Python object per block. The interpreter lock is released
    for long arrays and lists. Memory: the hashes. Calls of several threads follow one another.

    Law: however ids are divided among calls of `push`, `hashes()` is `block_hashes` of all.

    >>> import numpy as np
    >>> hasher = BlockHasher(4, scheme="dynamo-sequence")
    >>> hasher.push([1, 2, 3]), hasher.push([4, 5])
    (array([], dtype=uint64), array([14643705804678351452], dtype=uint64))
    >>> hasher.push(np.arange(6, 9))
    array([4945711292740353085], dtype=uint64)
    >>> changed = [1, 2, 3, 4, 5, 6, 70, 80]
    >>> hasher.rewind(6)
    4
    >>> hasher.push(changed[4:]).shape, hasher.num_blocks
    ((1,), 2)
    """

    __slots__ = ()

    def __new__(
        cls,
        block_size: int,
        *,
        scheme: Scheme = "vllm-sha256-cbor",
        seed: str | int | None = None,
        extra_keys: tuple[Any, ...] | None = None,
    ) -> BlockHasher:
        """See the class."""
        size = _int("block_size", block_size)
        if not 1 <= size < _LIMIT:
            raise InvalidValueError(f"block_size must be 1 to {_LIMIT - 1}, not {size}")
        if not isinstance(scheme, str):
            raise InputTypeError(f"scheme must be str, not {type(scheme).__name__}")
        if scheme not in get_args(Scheme):
            names = ", ".join(get_args(Scheme))
            raise InvalidValueError(f"scheme {scheme!r} is not known; give one of {names}")
        if isinstance(seed, str):
            _utf8(seed, "seed")
        elif seed is not None:
            seed = _int("seed", seed, "str, int")
            if not 0 <= seed < 1 << 64:
                raise InvalidValueError(f"seed must be 0 to 2**64 - 1, not {seed}")
        keys = None if extra_keys is None else _encoded_keys(extra_keys, "extra_keys")
        return super().__new__(cls, _native.block_hasher(size, scheme, seed, keys))

    def rewind(self, num_ids: int, /) -> int:
        """Goes back to the first `num_ids` ids, or to the block before; how many ids it is after.

        Cost: none that depends on the number of ids.
        """
        number = _int("num_ids", num_ids)
        if number < 0:
            raise InvalidValueError(f"num_ids must be 0 or more, not {number}")
        return super().rewind(min(number, sys.maxsize))

    def copy(self) -> BlockHasher:
        """An independent hasher at the same place. Cost: a copy of the hashes so far."""
        return _native.BlockHasher.__new__(type(self), self)

    def __copy__(self) -> BlockHasher:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> BlockHasher:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a BlockHasher cannot be pickled; pickle the ids, or its hashes")

    def __repr__(self) -> str:
        return (
            f"BlockHasher({self.block_size}, scheme={self.scheme!r}) after {self.num_ids} ids "
            f"({self.num_blocks} blocks)"
        )


def block_hashes(
    ids: Iterable[SupportsIndex] | npt.NDArray[np.integer[Any]],
    block_size: int,
    *,
    scheme: Scheme = "vllm-sha256-cbor",
    seed: str | int | None = None,
    extra_keys: tuple[Any, ...] | None = None,
    extra_keys_at: Mapping[int, tuple[Any, ...]] | None = None,
) -> Hashes:
    """The hashes of all full blocks of `ids`. Options, errors and cost: as `BlockHasher`.

    Returns:
        Shape `(n, 32)` or `(n, 16)`, dtype uint8, or `(n,)`, uint64, by the scheme, where n is
        `len(ids) // block_size`.

    >>> import kizami
    >>> ids = kizami.load("kimi-k3").encode("How do routers know what is cached?")
    >>> hashes = block_hashes(ids, 4)
    >>> hashes.shape, hashes[0, :4].tobytes().hex()
    ((2, 32), '69d6bcaf')
    """
    hasher = BlockHasher(block_size, scheme=scheme, seed=seed, extra_keys=extra_keys)
    return hasher.push(ids, extra_keys_at=extra_keys_at)


def hashed_ids(ids: Any) -> NativeIds:
    """For the native side: one id or several, in a form that it takes.

    Raises:
        InputTypeError, InvalidIdError: What is wrong.
    """
    try:
        return pushed_ids(ids, _LIMIT)
    except InvalidIdError as error:
        message = f"token id {error.id} at position {error.position} is outside 0 to {_LIMIT - 1}"
        facts = {"id": error.id, "position": error.position, "vocab_size": _LIMIT}
        raise InvalidIdError(f"{message}; give ids of a tokenizer", **facts) from None


def encoded_keys_at(extra_keys_at: Any) -> dict[int, bytes]:
    """For the native side: extra keys by block, each tuple in CBOR."""
    if not isinstance(extra_keys_at, Mapping):
        kind = type(extra_keys_at).__name__
        raise InputTypeError(f"extra_keys_at must be a mapping of block to tuple, not {kind}")
    encoded = {}
    for block, keys in extra_keys_at.items():
        number = _int("a block in extra_keys_at", block)
        if not 0 <= number < 1 << 63:
            raise InvalidValueError(f"block {number} in extra_keys_at is no index of a block")
        encoded[number] = _encoded_keys(keys, f"extra_keys_at[{number}]")
    return encoded


def _int(name: str, value: Any, kinds: str = "int") -> int:
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise InputTypeError(f"{name} must be {kinds}, not {type(value).__name__}")
    return operator.index(value)


def _encoded_keys(keys: Any, name: str) -> bytes:
    if not isinstance(keys, tuple):
        raise InputTypeError(f"{name} must be a tuple, not {type(keys).__name__}")
    try:
        return _cbor(keys, name)
    except RecursionError:
        problem = "holds something that is nested too deeply or contains itself; make it flatter"
        raise InvalidValueError(f"{name} {problem}") from None


def _cbor(value: Any, name: str) -> bytes:
    """Canonical CBOR of what extra keys are made of.

    >>> _cbor((("lora", 1), None, -1, b"x"), "extra_keys").hex()
    '8482646c6f726101f6204178'
    """
    if value is None or value is False or value is True:
        return {None: b"\xf6", False: b"\xf4", True: b"\xf5"}[value]
    if isinstance(value, int):
        if not -(1 << 64) <= value < 1 << 64:
            raise InvalidValueError(f"{name} holds {value}, which does not fit into 64 bits")
        return _head(0, value) if value >= 0 else _head(1, -1 - value)
    if isinstance(value, str):
        data = _utf8(value, name)
        return _head(3, len(data)) + data
    if isinstance(value, bytes):
        return _head(2, len(value)) + value
    if isinstance(value, (tuple, list)):
        return _head(4, len(value)) + b"".join(_cbor(item, name) for item in value)
    kind = type(value).__name__
    raise InputTypeError(f"{name} may hold str, bytes, int, bool, None and tuples, not {kind}")


def _head(major: int, number: int) -> bytes:
    if number < 24:
        return bytes([major << 5 | number])
    width = next(width for width in range(4) if number < 1 << (8 << width))
    return bytes([major << 5 | 24 + width]) + number.to_bytes(1 << width, "big")


def _utf8(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidValueError(f"{name} holds a lone surrogate: {text!r}") from None
