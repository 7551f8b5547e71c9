"""Faults of other tokenizers that users reported in public: one test, or more, for each.

Tests are named after the entry of the project's list (b01, b02, ...). The others of that list are
tested where their subject is: b24 to b41 in `test_chat_kimi_k3`, b42 to b51 in `test_stream` and
`test_decode_api`, b53 (such models are refused) and b80 in `test_vectors_models`, b61 and b86 in
`test_object`, b65 in `test_threads`, b72 to b77 in `tests/parity/test_tokenizers.py`, b77 and b78
in `tests/parity/test_bundled.py`, b77 and b88 in `test_load`, b80 in `test_offsets` and
`test_streams`, b84, b85 and b89 in `test_encode_api`; b17 for other models than Kimi in
`tests/parity/test_models.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import kizami
import numpy as np
import pytest
from kizami import Tokenizer
from kizami.reference import well_formed

from tests.oracle import PublishedPath
from tests.texts import Writer

FIRST_CONTROL = 163_584
OPEN, CLOSE, SEP = 163_587, 163_588, 163_589


@pytest.fixture(scope="module")
def published(tokenizer: Tokenizer) -> PublishedPath:
    return PublishedPath(tokenizer)


def in_new_process(code: str, **environment: str) -> str:
    """What `code` prints. A process that does not end within a minute fails the test."""
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


# INJ: injection of control tokens


def test_b01_user_text_gives_no_control_ids(tokenizer: Tokenizer, published: PublishedPath) -> None:
    segments = [
        ("<|open|>", True),
        ("message", False),
        ("<|sep|>", True),
        ("say <|open|>message<|sep|>", False),
    ]
    ids = tokenizer.encode_segments(segments)

    assert [id_ for id_ in ids.tolist() if id_ >= FIRST_CONTROL] == [OPEN, SEP]
    assert ids.tolist() == published.encode_segments(segments)


def test_b02_no_control_name_survives_in_untrusted_text(
    tokenizer: Tokenizer, published: PublishedPath
) -> None:
    names = list(tokenizer.control_tokens)
    assert len(names) == 256
    texts = [
        *names,
        *(f"a{name}b" for name in names),
        *(name * 2 for name in names),
        "".join(names),
    ]
    for text in texts:
        ids = tokenizer.encode_segments([(text, False)])
        assert (ids < FIRST_CONTROL).all(), text
        assert ids.tolist() == published.encode(text)
        assert tokenizer.decode(ids) == text


def test_b03_a_marker_inside_a_word_is_text(tokenizer: Tokenizer, published: PublishedPath) -> None:
    ids = tokenizer.encode_segments([("A<|sep|>B", False)])

    assert (ids < FIRST_CONTROL).all()
    assert ids.tolist() == published.encode("A<|sep|>B")
    assert tokenizer.decode(ids) == "A<|sep|>B"
    trusted = tokenizer.encode_segments([("A<|sep|>B", True)])
    assert trusted.tolist() == [*tokenizer.encode("A"), SEP, *tokenizer.encode("B")]


def test_b04_the_default_splits_control_names(
    tokenizer: Tokenizer, published: PublishedPath
) -> None:
    ids = tokenizer.encode("x [EOS] y")

    assert ids.tolist() == tokenizer.encode("x [EOS] y", allow_special=False).tolist()
    assert ids.tolist() == published.encode("x [EOS] y")
    assert (ids < FIRST_CONTROL).all()


def test_b06_text_can_be_encoded_as_ordinary(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("<|open|>").tolist() == [27, 91, 4454, 91, 29]
    assert tokenizer.count("<|open|>") == 5


def test_b07_nothing_merges_across_segments(tokenizer: Tokenizer, published: PublishedPath) -> None:
    segments = [
        (" role", False),
        ('="', False),
        ('".x', False),
        ('"', False),
        ("a", False),
        ("b", False),
    ]
    ids = tokenizer.encode_segments(segments).tolist()

    assert ids == [id_ for text, _ in segments for id_ in tokenizer.encode(text).tolist()]
    assert ids == published.encode_segments(segments)
    assert ids != tokenizer.encode("".join(text for text, _ in segments)).tolist()


# KIMI: vocabulary and pattern


def test_b08_gaps_in_the_listed_ids_stay(tokenizer: Tokenizer) -> None:
    assert tokenizer.token_id("[PAD]") == 163_839
    assert tokenizer.encode("<|media_pad|>", allow_special=True).tolist() == [163_605]


def test_b09_unlisted_ids_have_names(tokenizer: Tokenizer) -> None:
    name = "<|reserved_token_163700|>"

    assert tokenizer.decode([163_700]) == name
    assert tokenizer.encode(name, allow_special=True).tolist() == [163_700]


def test_b10_han_and_latin_are_apart(tokenizer: Tokenizer, published: PublishedPath) -> None:
    ids = tokenizer.encode("中文abc").tolist()

    assert ids == [*tokenizer.encode("中文"), *tokenizer.encode("abc")]
    assert ids == published.encode("中文abc")


def test_b11_the_think_tokens_of_k25() -> None:
    k25 = kizami.load("kimi-k2.5")

    assert k25.token_id("</think>") == 163_607
    assert k25.encode("<think></think>", allow_special=True).tolist() == [163_606, 163_607]


def test_b16_think_is_text_in_k3(tokenizer: Tokenizer, published: PublishedPath) -> None:
    for trusted in (False, True):
        ids = tokenizer.encode("<think>", allow_special=trusted).tolist()
        assert len(ids) == 3
        assert ids == published.encode("<think>", trusted)
    assert tokenizer.token_id("<think>") is None


# UNI and CHUNK: Unicode classes and cuts. The sweep over all code points is in `tests/parity`.


@pytest.mark.parametrize("code_point", [0x88F, 0x16EA0, 0x323B0, 0x187F8])
def test_b17_classes_are_those_of_unicode_16(
    tokenizer: Tokenizer, published: PublishedPath, code_point: int
) -> None:
    for text in (f"{chr(code_point)}'s", f"A{chr(code_point)}a"):
        assert tokenizer.encode(text).tolist() == published.encode(text)


@pytest.mark.parametrize(
    "separator", ["\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u2028", "\u200b", "\u180e"]
)
def test_b18_runs_end_where_isspace_says(
    tokenizer: Tokenizer, published: PublishedPath, separator: str
) -> None:
    text = "ab" * 7_500 + separator + "ba" * 7_500
    ids = tokenizer.encode(text).tolist()

    assert ids == published.encode(text)
    uncut = tokenizer.encode(text, legacy_chunks=False).tolist()
    # U+200B and U+180E are no whitespace: there the run is cut at 25,000.
    assert separator.isspace() == (separator not in "\u200b\u180e")
    if separator.isspace():
        assert ids == uncut


@pytest.mark.parametrize(
    "over", ["<|open|>", "\r\n", "👩\u200d💻", "e\u0301", "  x", "don't", "123", "\ud83d\ude00"]
)
@pytest.mark.parametrize("before", range(1, 9))
def test_b19_what_lies_over_a_cut_is_parted(
    tokenizer: Tokenizer, published: PublishedPath, over: str, before: int
) -> None:
    for filler in ("a" * (25_000 - before), ("a b\n" * 100_000)[: 400_000 - before]):
        text = filler + over
        ids = tokenizer.encode(text, allow_special=True).tolist()
        assert ids == published.encode(text, True)
        if over == "<|open|>":
            assert (OPEN in ids) == (before >= len(over))


@pytest.mark.parametrize(
    "text",
    # Five texts: Ruff takes one surrogate for another.
    ["a\ud83d", "\ud83d\ude00", "\ude00\ud83d", "\ud83d" * 5, "é\udfff中"],  # noqa: PT014
)
def test_b22_lone_surrogates_are_replaced(
    tokenizer: Tokenizer, published: PublishedPath, text: str
) -> None:
    ids = tokenizer.encode(text)

    assert ids.tolist() == published.encode(text)
    assert ids.tolist() == tokenizer.encode(well_formed(text)).tolist()
    assert tokenizer.decode(ids) == well_formed(text)
    assert tokenizer.encode_segments([(text, False), (text, True)]).tolist() == ids.tolist() * 2


def test_b22_a_pair_over_a_cut_gives_two_replacements(
    tokenizer: Tokenizer, published: PublishedPath
) -> None:
    text = ("a b " * 100_000)[:399_999] + "\ud83d\ude00"
    ids = tokenizer.encode(text)

    assert ids.tolist() == published.encode(text)
    assert tokenizer.decode(ids).endswith("\ufffd\ufffd")
    assert tokenizer.decode(tokenizer.encode(text, legacy_chunks=False)).endswith("😀")


@pytest.mark.parametrize(
    "text", ["e\u0301", "\u00e9", "ﬁ", "\ufeffx", "\x00", "Å", "\u212b", "a\x00b", "İ"]
)
def test_b23_nothing_is_normalised(
    tokenizer: Tokenizer, published: PublishedPath, text: str
) -> None:
    ids = tokenizer.encode(text)

    assert tokenizer.decode_bytes(ids) == text.encode()
    assert ids.tolist() == published.encode(text)


def test_b23_two_spellings_are_two_texts(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("e\u0301").tolist() != tokenizer.encode("\u00e9").tolist()
    assert tokenizer.encode("\ufeffx").tolist() != tokenizer.encode("x").tolist()


# PANIC and PERF: inputs that stall or crash


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(
    "unit", ["a", "ab", "中", "中文", "=", " ", "\t", "A", "1", "é", "🎉", "\u0301", "'s"]
)
def test_b54_a_megabyte_of_one_kind(tokenizer: Tokenizer, unit: str) -> None:
    text = unit * ((1 << 20) // len(unit.encode()))
    ids = tokenizer.encode(text)
    uncut = tokenizer.encode(text, legacy_chunks=False)

    assert tokenizer.decode_bytes(ids) == tokenizer.decode_bytes(uncut) == text.encode()
    kizami.set_num_threads(1)
    assert np.array_equal(tokenizer.encode(text), ids)
    assert np.array_equal(tokenizer.encode(text, legacy_chunks=False), uncut)


@pytest.mark.parametrize("unit", ["^", "\n ", "A", " \n", "a'", "\ud83d", "<|", "<|open|>"])
def test_b55_two_megabytes_do_not_overflow_a_stack(tokenizer: Tokenizer, unit: str) -> None:
    text = unit * ((2 << 20) // len(unit))
    read = well_formed(unit) * (len(text) // len(unit))
    for legacy_chunks in (True, False):
        ids = tokenizer.encode(text, legacy_chunks=legacy_chunks)
        assert tokenizer.decode(ids) == read
    trusted = tokenizer.encode(text, allow_special=True, legacy_chunks=False)
    assert tokenizer.decode(trusted) == read


def test_b55_all_that_we_raise_is_an_exception(tokenizer: Tokenizer) -> None:
    # A panic of the native side would derive from BaseException alone.
    errors = [getattr(kizami.errors, name) for name in kizami.errors.__all__]

    assert all(issubclass(error, Exception) for error in errors)
    with pytest.raises(Exception, match="outside the vocabulary"):
        tokenizer.decode([2**32 - 1])


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs sched_setaffinity")
def test_b57_one_cpu(tokenizer: Tokenizer) -> None:
    code = (
        "import os\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "import kizami\n"
        "tokenizer = kizami.load('kimi-k3')\n"
        "for n in (6_000, 400_000):\n"
        "    ids = tokenizer.encode('ab ' * n)\n"
        "    print(kizami.get_num_threads(), len(ids), int(ids.sum()))\n"
    )
    printed = in_new_process(code, KIZAMI_NUM_THREADS="").splitlines()

    for n, line in zip((6_000, 400_000), printed, strict=True):
        ids = tokenizer.encode("ab " * n)
        assert line == f"1 {len(ids)} {ids.sum()}"


def test_b59_empty_and_tiny_inputs(tokenizer: Tokenizer, published: PublishedPath) -> None:
    for text in ("", " ", "\n", "a", "\x00", "\u3000"):
        for trusted in (False, True):
            ids = tokenizer.encode(text, allow_special=trusted).tolist()
            assert ids == published.encode(text, trusted)
            assert bool(ids) == bool(text)
    assert tokenizer.encode_segments([]).tolist() == []
    assert tokenizer.encode_segments([("", True)]).tolist() == []


# CONC and FORK: threads and processes


def test_b60_threads_share_a_tokenizer(tokenizer: Tokenizer) -> None:
    writer = Writer("b60")
    texts = ["".join(writer.text() for _ in range(1 + 60 * (i % 4))) for i in range(32)]
    expected = [
        (tokenizer.encode(t).tolist(), tokenizer.encode(t, allow_special=True).tolist())
        for t in texts
    ]
    start = threading.Barrier(32)
    wrong: list[object] = []

    def work(at: int) -> None:
        try:
            start.wait()
            for turn in range(40):
                i = (at + turn) % len(texts)
                trusted = bool((at + turn) % 2)
                ids = tokenizer.encode(texts[i], allow_special=trusted)
                if ids.tolist() != expected[i][trusted] or tokenizer.decode(ids) != well_formed(
                    texts[i]
                ):
                    wrong.append((at, turn))
        except BaseException as error:
            wrong.append(error)

    workers = [threading.Thread(target=work, args=(at,)) for at in range(32)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert wrong == []


@pytest.mark.usefixtures("threads")
def test_b60_the_number_of_threads_may_change_meanwhile(tokenizer: Tokenizer) -> None:
    text = "Some words, 中文 and <|sep|> 12345\n" * 20_000
    expected = tokenizer.encode(text)
    done = threading.Event()

    def toggle() -> None:
        while not done.is_set():
            for n in (1, 3, 8, 2):
                kizami.set_num_threads(n)

    toggler = threading.Thread(target=toggle)
    toggler.start()
    try:
        for _ in range(10):
            assert np.array_equal(tokenizer.encode(text), expected)
    finally:
        done.set()
        toggler.join()


PARENT = """
import os, sys, time, signal
import kizami

tokenizer = kizami.load("kimi-k3")
text = "Hello, 中文 it's 12345\\n" * 2_600  # about 60 KB
big = text * 35  # about 2 MB
kizami.set_num_threads(4)
expected = tokenizer.encode(text).tolist()
expected_big = tokenizer.encode(big).tolist()
"""

FORK = """
child = os.fork()
if child == 0:
    same = tokenizer.encode(text).tolist() == expected
    os._exit(0 if same and tokenizer.encode(big).tolist() == expected_big else 3)
end = time.monotonic() + 30
while time.monotonic() < end:
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid:
        same = tokenizer.encode(big).tolist() == expected_big
        print("ended", os.waitstatus_to_exitcode(status), same)
        break
    time.sleep(0.01)
else:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print("stalled")
"""

# A spawned process imports the main module too; it must not start a pool itself.
POOL = """
import multiprocessing

def encode(text):
    return tokenizer.encode(text).tolist()

def encode_with(pair):
    given, text = pair
    return given.encode(text).tolist()

if __name__ == "__main__":
    with multiprocessing.get_context(METHOD).Pool(2) as pool:
        same = pool.map(encode, [text, big]) == [expected, expected_big]
        passed = pool.map(encode_with, [(tokenizer, text)] * 2) == [expected] * 2
    print(same, passed)
"""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


@needs_fork
def test_b62_a_child_encodes_after_a_warm_fork() -> None:
    assert in_new_process(PARENT + FORK) == "ended 0 True"


@needs_fork
def test_b62_a_fork_while_threads_encode() -> None:
    background = (
        "import threading\n"
        "stop = threading.Event()\n"
        "def work():\n"
        "    while not stop.is_set():\n"
        "        tokenizer.encode(big)\n"
        "worker = threading.Thread(target=work, daemon=True)\n"
        "worker.start()\n"
        "time.sleep(0.1)\n"
    )

    assert in_new_process(PARENT + background + FORK + "stop.set()\n") == "ended 0 True"


@needs_fork
def test_b62_a_fork_that_python_does_not_know_of() -> None:
    """Then nobody tells the child that the helpers of its parent do not exist there."""
    unknown = FORK.replace("os.fork()", "ctypes.PyDLL(None).fork()")

    assert in_new_process(PARENT + "import ctypes\n" + unknown) == "ended 0 True"


@pytest.mark.parametrize("method", [pytest.param("fork", marks=needs_fork), "spawn"])
def test_b62_pools_of_processes(method: str, tmp_path: os.PathLike[str]) -> None:
    script = os.path.join(tmp_path, "pool.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(PARENT + POOL.replace("METHOD", repr(method)))
    ran = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, check=False
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "True True"
