"""`BlockHasher` and `block_hashes`: the schemes, what is taken, what is refused."""

from __future__ import annotations

import copy
import gc
import hashlib
import pickle
import threading
from typing import Any, get_args

import kizami
import numpy as np
import pytest
from kizami import BlockHasher, Tokenizer, block_hashes
from kizami._blocks import Scheme, _cbor
from kizami._native import block_schemes
from kizami.errors import InputTypeError, InvalidIdError, InvalidValueError

from tests.blocks import EDGES, SCHEMES, expected, seed_of

# Published with the crate `dynamo-tokens` 1.6.1, for blocks of four ids, 1 to 12, and seed 1337.
DYNAMO_BLOCK = [14643705804678351452, 16777012769546811212, 483935686894639516]
DYNAMO_SEQUENCE = [14643705804678351452, 4945711292740353085, 12583592247330656132]


def test_the_schemes_are_those_of_the_core() -> None:
    assert set(get_args(Scheme)) == set(block_schemes()) == set(SCHEMES)


def test_dynamo_as_published() -> None:
    ids = range(1, 13)

    assert block_hashes(ids, 4, scheme="dynamo-block").tolist() == DYNAMO_BLOCK
    assert block_hashes(ids, 4, scheme="dynamo-sequence").tolist() == DYNAMO_SEQUENCE
    assert block_hashes(ids, 4, scheme="dynamo-block", seed=1337).tolist() == DYNAMO_BLOCK
    # The seed is that of the blocks; the chain has its own.
    first, second = block_hashes(range(1, 9), 4, scheme="dynamo-sequence", seed=2**64 - 1).tolist()
    alone = block_hashes(range(1, 9), 4, scheme="dynamo-block", seed=2**64 - 1).tolist()
    pair = np.array([first, alone[1]], "<u8").view("<u4")
    assert first == alone[0]
    assert block_hashes(pair, 4, scheme="dynamo-block").tolist() == [second]


def test_vllm_by_hand() -> None:
    """The bytes of one message in CBOR, written out."""
    start = hashlib.sha256(b"\x6evllm-none-hash").digest()
    message = b"\x83\x58\x20" + start + b"\x86\x00\x17\x18\x18\x19\x01\x00\x1a\x00\x01\x00\x00"
    message += b"\x1a\xff\xff\xff\xff\xf6"
    hashes = block_hashes([0, 23, 24, 256, 65536, 2**32 - 1], 6)

    assert hashes.tobytes() == hashlib.sha256(message).digest()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("block_size", [1, 2, 3, 4, 16, 23, 24, 255, 256, 300])
def test_equals_the_rule(scheme: Any, block_size: int) -> None:
    ids = EDGES * (1 + 700 // len(EDGES))
    options = {"scheme": scheme, "seed": seed_of(scheme)}

    hashes = block_hashes(ids, block_size, **options)
    assert hashes.tolist() == expected(ids, block_size, **options)
    assert len(hashes) == len(ids) // block_size


@pytest.mark.parametrize("block_size", [4095, 8192])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_equals_the_rule_in_large_blocks(scheme: Any, block_size: int) -> None:
    # The longest form that each encoding has for an id.
    ids = [2**32 - 1] * (2 * block_size + 1)
    options = {"scheme": scheme, "seed": seed_of(scheme)}

    assert block_hashes(ids, block_size, **options).tolist() == expected(ids, block_size, **options)


@pytest.mark.parametrize("seed", ["", "0", "4294967295", "ü🎉", "x" * 255, "x" * 256, "x" * 1024])
@pytest.mark.parametrize("scheme", [name for name in SCHEMES if name.startswith("vllm")])
def test_equals_the_rule_with_seeds(scheme: Any, seed: str) -> None:
    options = {"scheme": scheme, "seed": seed}

    assert block_hashes(EDGES, 3, **options).tolist() == expected(EDGES, 3, **options)


KEYS = [
    (("lora", "adapter", "/models/a"),),
    (("lora", "ü🎉", None), ("cache_salt", "x" * 300)),
    (("mm", "0f" * 32, -5), ("mm", "", 0), ("prompt_embeds", b"\x00\xff" * 16)),
    (None, 1, True, False, -1, -(2**64), 2**64 - 1, [1, ["a"]], ()),
    (),
    tuple(range(30)),
]


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("scheme", ["vllm-sha256-cbor", "vllm-xxhash-cbor"])
def test_equals_the_rule_with_extra_keys(scheme: Any, keys: Any) -> None:
    ids = list(range(40))
    options = {"scheme": scheme, "seed": seed_of(scheme)}
    each: Any
    for each, single in [(keys, {}), (None, {3: keys}), (("x",), {0: keys, np.int64(4): ("y",)})]:
        hashes = block_hashes(ids, 8, **options, extra_keys=each, extra_keys_at=single)
        rule = expected(ids, 8, **options, extra_keys=[single.get(n, each) for n in range(5)])
        assert hashes.tolist() == rule


def test_extra_keys_wait_for_their_block() -> None:
    keys = {1: ("a",), 2: ("b",)}
    want = block_hashes(range(12), 4, extra_keys_at=keys).tolist()
    hasher = BlockHasher(4)
    hasher.push(range(2), extra_keys_at=keys)
    hasher.push(range(2, 12))
    assert hasher.hashes().tolist() == want
    with pytest.raises(InvalidValueError, match="block 2, which is full"):
        hasher.push([], extra_keys_at={3: ("c",), 2: ("c",)})

    # Keys of blocks that are left stay; those of blocks that are gone go.
    assert hasher.rewind(9) == 8
    hasher.push([8, 9, 10, 11])
    plain = block_hashes(range(12), 4, extra_keys_at={1: ("a",)}).tolist()
    assert hasher.hashes().tolist() == plain
    assert hasher.rewind(8) == 8
    hasher.push([8, 9, 10, 11], extra_keys_at={2: ("b",)})
    assert hasher.hashes().tolist() == want


def test_cbor_of_other_things_is_refused() -> None:
    for keys in (1.5, object(), {"a": 1}, {1}, np.int64(1), bytearray(b"a")):
        with pytest.raises(InputTypeError, match="extra_keys may hold"):
            block_hashes([1], 1, extra_keys=(keys,))
    for value in (2**64, -(2**64) - 1, "\ud800"):
        with pytest.raises(InvalidValueError, match="extra_keys holds"):
            block_hashes([1], 1, extra_keys=((value,),))
    deep: Any = ()
    for _ in range(100_000):
        deep = (deep,)
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    for value in (deep, cyclic):
        with pytest.raises(InvalidValueError, match="extra_keys holds something that is nested"):
            block_hashes([1], 1, extra_keys=(value,))
        with pytest.raises(InvalidValueError, match=r"extra_keys_at\[0\] holds something that is"):
            block_hashes([1], 1, extra_keys_at={0: (value,)})
    for keys in ("lora", ["lora"], 5):
        with pytest.raises(InputTypeError, match="extra_keys must be a tuple"):
            block_hashes([1], 1, extra_keys=keys)  # type: ignore[arg-type]
        with pytest.raises(InputTypeError, match=r"extra_keys_at\[0\] must be a tuple"):
            block_hashes([1], 1, extra_keys_at={0: keys})  # type: ignore[dict-item]
    for mapping in (("a",), [1], 5):
        with pytest.raises(InputTypeError, match="extra_keys_at must be a mapping"):
            block_hashes([1], 1, extra_keys_at=mapping)  # type: ignore[arg-type]
    for block in (-1, 2**64):
        with pytest.raises(InvalidValueError, match="no index of a block"):
            block_hashes([1], 1, extra_keys_at={block: ("a",)})
    with pytest.raises(InputTypeError, match="a block in extra_keys_at must be int"):
        block_hashes([1], 1, extra_keys_at={"0": ("a",)})  # type: ignore[dict-item]
    with pytest.raises(InputTypeError, match="must be int, not bool"):
        block_hashes([1], 1, extra_keys_at={True: ("a",)})


@pytest.mark.parametrize(
    "scheme", ["vllm-sha256", "vllm-xxhash", "dynamo-block", "dynamo-sequence"]
)
def test_extra_keys_where_there_are_none(scheme: Any) -> None:
    for options in ({"extra_keys": ("a",)}, {"extra_keys_at": {0: ("a",)}}):
        with pytest.raises(InvalidValueError, match="schemes of canonical CBOR only"):
            block_hashes([1], 1, scheme=scheme, seed=seed_of(scheme), **options)


@pytest.mark.parametrize("block_size", [0, -1, 2**32, 2**64, -(2**70)])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_impossible_block_sizes(scheme: Any, block_size: int) -> None:
    with pytest.raises(InvalidValueError, match="block_size must be 1 to"):
        BlockHasher(block_size, scheme=scheme, seed=seed_of(scheme))


@pytest.mark.parametrize("block_size", [8193, 2**32 - 1])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_huge_block_sizes(scheme: Any, block_size: int) -> None:
    if scheme in ("vllm-sha256", "vllm-xxhash"):
        with pytest.raises(InvalidValueError, match="at most 8192 where blocks are pickled"):
            BlockHasher(block_size, scheme=scheme, seed="0")
        return
    hasher = BlockHasher(block_size, scheme=scheme, seed=seed_of(scheme))
    assert len(hasher.push(range(8192))) == 0
    assert (hasher.num_ids, hasher.num_blocks) == (8192, 0)
    assert hasher.rewind(100) == 100


@pytest.mark.parametrize("block_size", [None, "16", 16.0, True, np.True_, [16]])
def test_block_sizes_of_another_type(block_size: Any) -> None:
    with pytest.raises(InputTypeError, match="block_size must be int"):
        BlockHasher(block_size)


def test_schemes_and_seeds_that_are_refused() -> None:
    for scheme in ("sha256", "", "vllm", "VLLM-SHA256"):
        with pytest.raises(InvalidValueError, match="give one of vllm-sha256, "):
            BlockHasher(16, scheme=scheme)  # type: ignore[arg-type]
    for wrong in (None, b"vllm-sha256", 5):
        with pytest.raises(InputTypeError, match="scheme must be str"):
            BlockHasher(16, scheme=wrong)  # type: ignore[arg-type]
    for seed in (b"0", 1.0, True, ["0"]):
        with pytest.raises(InputTypeError, match="seed must be str, int"):
            BlockHasher(16, seed=seed)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="is a str"):
        BlockHasher(16, seed=0)
    with pytest.raises(InvalidValueError, match="is an int"):
        BlockHasher(16, scheme="dynamo-block", seed="0")
    with pytest.raises(InvalidValueError, match="have no seed"):
        BlockHasher(16, scheme="sglang", seed="0")
    for number in (-1, 2**64):
        with pytest.raises(InvalidValueError, match="seed must be 0 to"):
            BlockHasher(16, scheme="dynamo-block", seed=number)
    with pytest.raises(InvalidValueError, match="1025 bytes; at most 1024"):
        BlockHasher(16, seed="x" * 1025)
    with pytest.raises(InvalidValueError, match="lone surrogate"):
        BlockHasher(16, seed="\ud800")
    for random in ("vllm-xxhash", "vllm-xxhash-cbor"):
        with pytest.raises(InvalidValueError, match="PYTHONHASHSEED"):
            BlockHasher(16, scheme=random)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-1, 2**32, 2**63, -(2**70)])
@pytest.mark.parametrize("form", [int, lambda id_: [1, id_], lambda id_: (1, id_)])
def test_an_id_out_of_range_is_named_and_changes_nothing(form: Any, bad: int) -> None:
    hasher = BlockHasher(2)
    hasher.push([5, 6, 7])
    with pytest.raises(InvalidIdError, match="outside 0 to 4294967295; give ids") as caught:
        hasher.push(form(bad))

    assert (caught.value.id, caught.value.position) == (bad, 0 if form is int else 1)
    assert hasher.num_ids == 3
    assert hasher.push([8]).tolist() == block_hashes([5, 6, 7, 8], 2)[1:].tolist()


@pytest.mark.parametrize(
    ("dtype", "bad"), [("int8", -1), ("int64", -1), ("uint64", 2**63), ("int64", 2**32)]
)
def test_an_id_out_of_range_in_an_array(dtype: str, bad: int) -> None:
    ids = np.array([64, 64, 64], dtype)
    ids[2] = bad
    with pytest.raises(InvalidIdError) as caught:
        block_hashes(ids, 2)

    assert (caught.value.id, caught.value.position) == (bad, 2)


@pytest.mark.parametrize(
    "bad",
    [None, "64", b"@", 1.0, True, np.True_, [True], [1.0], ["a"], [None], np.array([1.0]),
     np.array([[64]]), {64: 1}, {64}, object()],
)  # fmt: skip
def test_what_is_no_id_is_refused_and_changes_nothing(bad: Any) -> None:
    hasher = BlockHasher(2)
    hasher.push([5])
    with pytest.raises(InputTypeError):
        hasher.push(bad)

    assert hasher.push(6).tolist() == block_hashes([5, 6], 2).tolist()


@pytest.mark.parametrize(
    "ids",
    [
        [1, 2, 3],
        (1, 2, 3),
        iter([1, 2, 3]),
        range(1, 4),
        np.array([1, 2, 3]),
        np.array([1, 2, 3], np.uint8),
        np.array([1, 2, 3] * 2, np.uint32)[:3],
        np.array([[1, 2, 3]] * 2, np.uint32).T[:, 0],
        np.array([1, 2, 3], ">u4"),
        [np.int64(1), np.uint32(2), 3],
    ],
)
def test_forms_of_ids(ids: Any) -> None:
    assert block_hashes(ids, 3).tolist() == expected([1, 2, 3], 3)


def test_a_read_only_array_is_taken() -> None:
    ids = np.arange(5000, dtype=np.uint32)
    ids.setflags(write=False)

    assert block_hashes(ids, 16).tolist() == block_hashes(ids.tolist(), 16).tolist()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("count", [0, 1, 15, 16, 5000, 20000])
def test_arrays_are_plain_and_owned(scheme: Any, count: int) -> None:
    hasher = BlockHasher(16, scheme=scheme, seed=seed_of(scheme))
    if scheme.startswith("dynamo"):
        dtype, row = np.dtype(np.uint64), ()
    else:
        dtype, row = np.dtype(np.uint8), (16 if "xxhash" in scheme else 32,)
    for array in (hasher.push(np.arange(count, dtype=np.uint32)), hasher.hashes()):
        assert array.dtype == dtype
        assert array.shape == (count // 16, *row)
        assert array.flags.owndata
        assert array.flags.writeable
        assert array.flags.c_contiguous
        array[:] = 0
    hasher.push(range(16))
    assert hasher.hashes().any() == (count + 16 >= 16)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_one_id_at_a_time(scheme: Any) -> None:
    hasher = BlockHasher(3, scheme=scheme, seed=seed_of(scheme))
    given = [hash_ for id_ in EDGES for hash_ in hasher.push(id_).tolist()]

    assert given == expected(EDGES, 3, scheme=scheme, seed=seed_of(scheme))


def test_rewind() -> None:
    hasher = BlockHasher(4)
    assert (hasher.rewind(0), hasher.rewind(10)) == (0, 0)
    hasher.push(range(10))
    # All that is asked for where it can be had, the end of the block before where not.
    assert hasher.rewind(2**70) == 10
    assert hasher.rewind(9) == 9
    assert hasher.rewind(8) == 8
    assert hasher.rewind(7) == 4
    assert (hasher.num_ids, hasher.num_blocks) == (4, 1)
    assert hasher.rewind(3) == 0
    assert hasher.hashes().shape == (0, 32)
    for wrong in (-1, -(2**64)):
        with pytest.raises(InvalidValueError, match="num_ids must be 0 or more"):
            hasher.rewind(wrong)
    for kind in (None, "1", 1.0, True):
        with pytest.raises(InputTypeError, match="num_ids must be int"):
            hasher.rewind(kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, BlockHasher.copy])
def test_a_copy_goes_its_own_way(duplicate: Any) -> None:
    hasher = BlockHasher(4, seed="7", extra_keys=("a",))
    hasher.push(range(10), extra_keys_at={2: ("b",)})
    branch = duplicate(hasher)
    assert type(branch) is BlockHasher
    gc.collect()

    hasher.push([10, 11])
    branch.push([20, 21])
    options: Any = {"seed": "7", "extra_keys": ("a",), "extra_keys_at": {2: ("b",)}}
    assert hasher.hashes().tolist() == block_hashes(range(12), 4, **options).tolist()
    other = [*range(10), 20, 21]
    assert branch.hashes().tolist() == block_hashes(other, 4, **options).tolist()


def test_what_can_be_seen() -> None:
    hasher = BlockHasher(np.int64(16), scheme="dynamo-block")  # type: ignore[arg-type]
    hasher.push(range(20))

    assert (hasher.block_size, hasher.scheme) == (16, "dynamo-block")
    assert repr(hasher) == "BlockHasher(16, scheme='dynamo-block') after 20 ids (1 blocks)"
    for name in ("block_size", "scheme", "num_ids", "num_blocks"):
        with pytest.raises(AttributeError):
            setattr(hasher, name, 1)
    with pytest.raises(TypeError, match="pickle the ids"):
        pickle.dumps(hasher)


def test_threads_that_share_a_hasher_take_turns() -> None:
    hasher = BlockHasher(16)
    ids = np.full(16 * 1000, 7, np.uint32)

    def work() -> None:
        for _ in range(20):
            hasher.push(ids)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert np.array_equal(hasher.hashes(), block_hashes(np.tile(ids, 80), 16))


def test_ids_of_a_tokenizer(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("Words, naïve 🎉. " * 500)

    assert block_hashes(ids, 16).tolist() == expected(ids.tolist(), 16)
    assert kizami.BlockHasher is BlockHasher


def test_cbor_equals_cbor2() -> None:
    cbor2 = pytest.importorskip("cbor2")
    for keys in KEYS:
        assert _cbor(keys, "keys") == cbor2.dumps(keys, canonical=True)
    for power in range(65):
        for value in {2**power - 1, 2**power, -(2**power), -(2**power) - 1}:
            if -(2**64) <= value < 2**64:
                assert _cbor(value, "keys") == cbor2.dumps(value, canonical=True)
    for length in (0, 23, 24, 255, 256, 65535, 65536):
        for text in ("a" * length, b"a" * length, (0,) * length):
            assert _cbor(text, "keys") == cbor2.dumps(text, canonical=True)
