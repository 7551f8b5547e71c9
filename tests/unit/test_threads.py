"""The number of threads: setting it, obeying it, and ids that do not depend on it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import kizami
import numpy as np
import pytest
from kizami import Tokenizer
from kizami.errors import InputTypeError, InvalidValueError

pytestmark = pytest.mark.usefixtures("threads")

# Encodes 12 MB while another thread counts the threads of the process; prints how many there were
# beyond those two. The other thread runs because the interpreter lock is released.
COUNT_THREADS = """
import os, sys, threading, time
import kizami

tokenizer = kizami.load("kimi-k3")
text = "Some words, 12345 and more; " * 900_000
most, done = 0, threading.Event()

def watch():
    global most
    while not done.is_set():
        most = max(most, len(os.listdir("/proc/self/task")))
        time.sleep(0.0005)

watcher = threading.Thread(target=watch)
watcher.start()
time.sleep(0.05)
before = most
tokenizer.encode(text)
done.set()
watcher.join()
print(kizami.get_num_threads(), most - before)
"""


def run(code: str, value: str | None, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "KIZAMI_NUM_THREADS"}
    if value is not None:
        environment["KIZAMI_NUM_THREADS"] = value
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("n", [1, 2, 7, 65_536, np.int64(3), np.uint8(4)])
def test_set_and_get(n: Any) -> None:
    kizami.set_num_threads(n)

    assert kizami.get_num_threads() == n
    assert type(kizami.get_num_threads()) is int


@pytest.mark.parametrize("n", [0, -1, 65_537, 2**31, 2**64, -(2**70)])
def test_impossible_numbers(n: int) -> None:
    before = kizami.get_num_threads()
    with pytest.raises(InvalidValueError, match=str(n)):
        kizami.set_num_threads(n)

    assert kizami.get_num_threads() == before


@pytest.mark.parametrize("n", ["2", None, 1.0, [1]])
def test_no_numbers(n: Any) -> None:
    with pytest.raises(InputTypeError, match=type(n).__name__):
        kizami.set_num_threads(n)


SHOW = "import kizami; print(kizami.get_num_threads())"


@pytest.mark.parametrize("value", ["1", "3", "65536"])
def test_b65_the_environment_is_obeyed(value: str) -> None:
    ran = run(SHOW, value, "-W", "error")

    assert (ran.stdout.strip(), ran.stderr) == (value, "")


@pytest.mark.parametrize("value", ["0", "-1", "65537", "two", "1.5", " ", "9" * 30, "²"])
def test_an_environment_that_says_nothing_is_named(value: str) -> None:
    ran = run(SHOW, value)

    assert ran.returncode == 0
    assert int(ran.stdout) >= 1
    line, *source = ran.stderr.splitlines()
    assert line.startswith("<string>:1: RuntimeWarning: KIZAMI_NUM_THREADS=")
    assert "is ignored" in line
    assert not any("_from_environment" in text for text in source)


@pytest.mark.parametrize("value", [None, ""])
def test_the_default_is_the_cpus_that_the_process_may_use(value: str | None) -> None:
    ran = run(SHOW, value, "-W", "error")

    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert 1 <= int(ran.stdout) <= (allowed or 1)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
@pytest.mark.parametrize("value", ["1", "2", "4"])
def test_b65_no_more_threads_than_allowed(value: str) -> None:
    ran = run(COUNT_THREADS, value)

    assert ran.stderr == ""
    limit, extra = map(int, ran.stdout.split())
    assert limit == int(value)
    assert extra <= limit - 1


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
def test_b59_a_small_request_starts_no_thread() -> None:
    code = (
        "import os, kizami\n"
        "tokenizer = kizami.load('kimi-k3')\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "for text in ('', ' ', 'a', 'word ' * 1000): tokenizer.encode(text)\n"
        "print(len(os.listdir('/proc/self/task')) - before)\n"
    )

    assert run(code, "8").stdout.strip() == "0"


GROW = (
    "import os, kizami\n"
    "tokenizer = kizami.load('kimi-k3')\n"
    "before = len(os.listdir('/proc/self/task'))\n"
    "def word(n): return ''.join(chr(97 + n // 26**k % 26) for k in range(4))\n"
    "for start in range(0, 60_000, 60):\n"
    "    text = ' '.join(map(word, range(start, start + 60)))\n"
    "    for _ in range(3): tokenizer.encode({text})\n"
    "print(len(os.listdir('/proc/self/task')) - before)\n"
)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
@pytest.mark.parametrize(
    ("text", "threads", "most"),
    [("text", "8", 0), ("text * 300", "1", 0), ("text * 300", "2", 1), ("text * 300", "3", 2)],
)
def test_b65_a_cache_that_grows_starts_no_thread(text: str, threads: str, most: int) -> None:
    ran = run(GROW.replace("{text}", text), threads)

    assert ran.stderr == ""
    assert int(ran.stdout) <= most


def test_ids_do_not_depend_on_the_number_of_threads(tokenizer: Tokenizer) -> None:
    page = "Words, it's 12345 <|sep|> 中文字, naïve\u3000\n\n\t  <|open|>x=['a']; // ---- 🎉\r\n"
    segments = [(page * n, n % 2 == 0) for n in (1, 3000, 2, 9000, 0, 5, 7000)]
    segments += [
        ("<|sep|>", True),
        (" " * 30_000 + "\n" + "=" * 60_000, False),
        ("\ud83d" * 9, True),
    ]
    kizami.set_num_threads(1)
    expected = tokenizer.encode_segments(segments)

    for count in range(1, 9):
        kizami.set_num_threads(count)
        assert np.array_equal(tokenizer.encode_segments(segments), expected)
        assert tokenizer.count_segments(segments) == len(expected)


# The child of a fork that Python does not know of, in which threads came and went. What the parent
# knows of its helpers is no longer true there.
FORKED_BY_C = """
import ctypes, os, threading
import kizami

tokenizer = kizami.load("kimi-k3")
text = "Some words, 12345 and more; " * 20_000
expected = tokenizer.encode(text).tolist()
child = ctypes.PyDLL(None).fork()
if child == 0:
    for _ in range(2):
        threads = [threading.Thread(target=int) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    everywhere = os.sched_getaffinity(0)
    same = True
    for cpu in [*everywhere] * 3:
        os.sched_setaffinity(0, {cpu})
        os.sched_setaffinity(0, everywhere)
        same &= tokenizer.encode(text).tolist() == expected
    os._exit(0 if same and os.sched_getaffinity(0) == everywhere else 3)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs processors to choose from")
def test_the_child_of_a_fork_that_python_does_not_know_of() -> None:
    done = run(FORKED_BY_C, "2")
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


# Where the threads of this process may run, before and after requests that were spread.
WHERE_THREADS_MAY_RUN = """
import os, threading
import kizami

tokenizer = kizami.load("kimi-k3")
text = "Some words, 12345 and more; " * 20_000
everywhere = os.sched_getaffinity(0)

def encode():
    for _ in range(200):
        tokenizer.encode(text)
    assert os.sched_getaffinity(0) == everywhere

threads = [threading.Thread(target=encode) for _ in range(2)]
for thread in threads:
    thread.start()
encode()
for thread in threads:
    thread.join()
print(kizami.get_num_threads() == len(everywhere))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs processors to choose from")
def test_callers_stay_where_they_may_run() -> None:
    done = run(WHERE_THREADS_MAY_RUN, None)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
