"""What callers' objects, files and machines may do to us: each attack that once worked, by name."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kizami
import numpy as np
import pytest
from kizami import Tokenizer
from kizami.errors import InputTypeError, InvalidIdError


def run(code: str) -> subprocess.CompletedProcess[str]:
    code = textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )


class Lying:
    def __init__(self, length: int, items: list[Any]) -> None:
        self.length, self.items = length, items

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)


@pytest.mark.parametrize("length", [0, 2**34, 2**62])
def test_a_length_is_only_a_hint(tokenizer: Tokenizer, length: int) -> None:
    assert tokenizer.encode_segments(Lying(length, [("a", False)])).tolist() == [64]
    assert tokenizer.encode_batch(Lying(length, ["a"])).tolist() == [[64]]


class Raising:
    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.allow_special = False

    @property
    def text(self) -> str:
        raise self.error

    def __iter__(self) -> Iterator[Any]:
        raise self.error

    def __index__(self) -> int:
        raise self.error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), MemoryError(), OSError()])
def test_errors_of_the_callers_own_code_pass_through(
    tokenizer: Tokenizer, error: BaseException
) -> None:
    for segments in ([Raising(error)], Raising(error), [("a", Raising(error))]):
        with pytest.raises(type(error)):
            tokenizer.encode_segments(segments)
    with pytest.raises(type(error)):
        tokenizer.encode_batch(Raising(error))


def test_trust_does_not_go_by_the_name_of_a_type(tokenizer: Tokenizer) -> None:
    impostor = type("bool_", (), {"__bool__": lambda self: True})()
    with pytest.raises(InputTypeError):
        tokenizer.encode_segments([("<|open|>", impostor)])
    for trusted in (np.True_, np.int64(1), 1):
        assert tokenizer.encode_segments([("<|open|>", trusted)]).tolist() == [163587]


def test_ids_of_a_misaligned_array(tokenizer: Tokenizer) -> None:
    raw = bytearray(1) + bytearray(np.array([64, 65], dtype=np.uint32).tobytes())
    ids = np.frombuffer(raw, np.uint32, 2, 1)
    assert not ids.flags.aligned

    assert tokenizer.decode(ids) == "ab"


def test_a_set_has_no_order(tokenizer: Tokenizer) -> None:
    with pytest.raises(InputTypeError):
        tokenizer.decode({1, 2})  # type: ignore[arg-type]
    with pytest.raises(InvalidIdError):
        tokenizer.token_bytes(-1)
    with pytest.raises(InputTypeError):
        tokenizer.token_bytes(True)


def test_an_error_handler_that_fails_is_not_blamed_on_the_ids(tokenizer: Tokenizer) -> None:
    with pytest.raises(TypeError, match="don't know how to handle"):
        tokenizer.decode([255, 128, 200], errors="xmlcharrefreplace")


def test_pickles_keep_the_ids_that_end_a_reply(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rebuilt = kizami._load.unpickle(
        "kimi-k3",
        kizami._native.KIMI_RANK_FILE_SHA256,
        (tokenizer._native.control_tokens(), [7, 163839], None),
    )

    assert rebuilt == tokenizer
    assert rebuilt.eos_ids == (7, 163839)
    assert pickle.loads(pickle.dumps(rebuilt)).eos_ids == (7, 163839)


@pytest.mark.parametrize("token", [b"\xf0" * 2000, bytes(range(0xF0, 0x100)) * 20, b"\xe4" * 2000])
def test_costly_tokens_do_not_stall_a_load(tmp_path: Path, token: bytes) -> None:
    from base64 import b64encode

    tokens = [bytes([b]) for b in range(256)] + [token + bytes([b]) for b in range(50)]
    lines = (b64encode(t).decode() + f" {rank}\n" for rank, t in enumerate(tokens))
    (tmp_path / "tiktoken.model").write_text("".join(lines))
    config = '{"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", null]}}'
    (tmp_path / "tokenizer_config.json").write_text(config)

    assert kizami.load(tmp_path).vocab_size == len(tokens) + 256


def test_a_number_of_threads_with_thousands_of_digits_is_ignored() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "import kizami; print(kizami.get_num_threads() >= 1)"],
        env={**os.environ, "KIZAMI_NUM_THREADS": "9" * 5000},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.stdout.strip() == "True"
    assert "is ignored" in ran.stderr


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="limits memory by /proc and rlimit"
)
@pytest.mark.parametrize(
    "call", ["encode('é ' * 10_000_000)", "encode('中' * 10_000_000)", "decode_bytes(ids)"]
)
def test_no_memory_is_a_memory_error(call: str) -> None:
    ran = run(
        f"""
        import kizami, numpy, resource
        tokenizer = kizami.load("kimi-k3")
        kizami.set_num_threads(1)
        tokenizer.encode("a")
        ids = numpy.full(20_000_000, 2695, numpy.uint32)
        text = 'x'
        code = {call!r}
        args = code.partition("(")[2][:-1]
        value = eval(args)
        pages = int(open("/proc/self/statm").read().split()[0])
        room = pages * resource.getpagesize() + 15_000_000
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        try:
            getattr(tokenizer, code.partition("(")[0])(value)
        except MemoryError:
            print("memory error")
        """
    )

    assert ran.stdout.strip() == "memory error", ran.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS and /proc")
def test_no_memory_for_the_first_call_is_a_memory_error_and_no_more() -> None:
    """The caches of the engine are made then, if there was no room at load; later calls succeed."""
    ran = run(
        """
        import kizami, resource
        pages = int(open("/proc/self/statm").read().split()[0])
        room = pages * resource.getpagesize() + 1_000_000
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (room, most))
        tokenizer = kizami.load("kimi-k3")
        try:
            tokenizer.encode("Hello, world")
        except MemoryError:
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            print("memory error", tokenizer.encode("Hello, world").tolist())
        """
    )

    assert ran.stdout.strip() == "memory error [19180, 11, 2695]", ran.stderr


@pytest.mark.skipif(os.name == "nt", reason="sends a signal to itself")
def test_an_interrupt_during_the_first_call_is_an_interrupt() -> None:
    ran = run(
        """
        import kizami, os, signal, threading
        # A job in the background inherits a process that ignores interrupts.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        tokenizer = kizami.load("kimi-k3")
        text = "hello wörld " * 3_000_000
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            tokenizer.encode(text)
            import time
            time.sleep(1)
        except KeyboardInterrupt:
            print("interrupted")
        """
    )

    assert ran.stdout.strip() == "interrupted", ran.stderr
