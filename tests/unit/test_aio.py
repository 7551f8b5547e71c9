"""`kizami.aio`: the same results, off the event loop where that pays."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from typing import Any

import numpy as np
import pytest
from kizami import Segment, SessionCache, Tokenizer, aio
from kizami.errors import ChatValueError, InputTypeError, InvalidIdError

LONG = "Some words, naïve 🎉. " * 2000


class Watched:
    """A tokenizer that notes in which thread, and with which context, it is called."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.threads: list[threading.Thread] = []
        self.seen: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            self.threads.append(threading.current_thread())
            self.seen.append(VARIABLE.get())
            return getattr(self.tokenizer, name)(*args, **options)

        return call


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="not set")


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


@pytest.mark.parametrize("text", ["", "short", LONG])
def test_results_are_those_of_the_methods(tokenizer: Tokenizer, text: str) -> None:
    segments = [("<|open|>", True), (text, False)]
    messages = [{"role": "user", "content": [{"type": "text", "text": text}]}]

    assert run(aio.encode(tokenizer, text)).tolist() == tokenizer.encode(text).tolist()
    name = "<|open|>" + text
    ids = run(aio.encode(tokenizer, name, allow_special=True))
    assert ids.tolist() == tokenizer.encode(name, allow_special=True).tolist()
    for given in (segments, (pair for pair in segments), [Segment(*pair) for pair in segments]):
        ids = run(aio.encode_segments(tokenizer, given))
        assert ids.tolist() == tokenizer.encode_segments(segments).tolist()
    ids = run(aio.encode_chat(tokenizer, messages, thinking=False))
    assert ids.tolist() == tokenizer.encode_chat(messages, thinking=False).tolist()
    for texts in ([text, "x"], iter([text, "x"])):
        batch = run(aio.encode_batch(tokenizer, texts))
        assert batch.tolist() == tokenizer.encode_batch([text, "x"]).tolist()
    ids = tokenizer.encode(text)
    for form in (ids, ids.tolist(), iter(ids.tolist())):
        assert run(aio.decode(tokenizer, form)) == text
    assert run(aio.decode(tokenizer, [64, 163586], skip_special=True)) == "a"


@pytest.mark.parametrize("text", ["short", LONG])
def test_sessions_and_caches_are_taken(tokenizer: Tokenizer, text: str) -> None:
    segments = [("<|open|>", True), (text, False)]
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "Yes."}]
    session, cache = tokenizer.session(), SessionCache(tokenizer, max_bytes=1 << 24)

    for keep in (session, cache):
        for given in (segments, (pair for pair in segments)):
            ids = run(aio.encode_segments(keep, given, legacy_chunks=False))
            want = tokenizer.encode_segments(segments, legacy_chunks=False)
            assert ids.tolist() == want.tolist()
        for length in (1, 2):
            ids = run(aio.encode_chat(keep, messages[:length], thinking=False))
            want = tokenizer.encode_chat(messages[:length], thinking=False)
            assert ids.tolist() == want.tolist()
    assert session.reused > 0
    assert cache.statistics().requests == 4


class Message:
    """A segment that is no tuple."""

    def __init__(self, text: str) -> None:
        self.text, self.allow_special = text, False


@pytest.mark.parametrize(
    ("name", "small", "large"),
    [
        ("encode", "a" * aio.SMALL_CHARS, "a" * (aio.SMALL_CHARS + 1)),
        ("encode_segments", [("a", False)], [("a", False), (LONG, False)]),
        ("encode_segments", [Message("a")], [Message(LONG)]),
        ("encode_segments", [("a", False)], [("", False)] * 1000),
        ("encode_batch", ["a"] * 3, [LONG]),
        (
            "encode_chat",
            [{"role": "user", "content": "a"}],
            [{"role": "user", "content": [{"type": "text", "text": LONG}]}],
        ),
        ("decode", [64] * aio.SMALL_IDS, np.full(aio.SMALL_IDS + 1, 64, np.uint32)),
    ],
)
def test_large_inputs_run_in_a_thread_with_the_context(
    tokenizer: Tokenizer, name: str, small: Any, large: Any
) -> None:
    watched: Any = Watched(tokenizer)

    async def main() -> None:
        VARIABLE.set("set")
        await getattr(aio, name)(watched, small)
        await getattr(aio, name)(watched, large)

    run(main())
    here, elsewhere = watched.threads
    assert here is threading.current_thread()
    assert elsewhere is not here
    assert watched.seen == ["set", "set"]


def test_the_loop_goes_on(tokenizer: Tokenizer) -> None:
    started, release = threading.Event(), threading.Event()

    class Slow:
        def encode(self, text: str) -> str:
            started.set()
            assert release.wait(60)
            return "done"

    async def main() -> None:
        slow: Any = Slow()
        task = asyncio.create_task(aio.encode(slow, LONG))
        while not started.is_set():
            await asyncio.sleep(0)
        # The call is under way, and the loop still serves others.
        assert (await aio.encode(tokenizer, "Hello")).tolist() == [19180]
        assert not task.done()
        release.set()
        result: object = await task
        assert result == "done"

    run(main())


def test_many_at_once(tokenizer: Tokenizer) -> None:
    async def main() -> list[Any]:
        return await asyncio.gather(*(aio.encode(tokenizer, LONG + str(n)) for n in range(50)))

    for number, ids in enumerate(run(main())):
        assert ids.tolist() == tokenizer.encode(LONG + str(number)).tolist()


def test_errors_are_those_of_the_methods(tokenizer: Tokenizer) -> None:
    with pytest.raises(InputTypeError):
        run(aio.encode(tokenizer, b"a"))  # type: ignore[arg-type]
    with pytest.raises(InputTypeError):
        run(aio.encode_segments(tokenizer, 5))  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="not one str"):
        run(aio.encode_batch(tokenizer, "text"))
    with pytest.raises(InvalidIdError):
        run(aio.decode(tokenizer, np.full(aio.SMALL_IDS + 1, 163840)))
    with pytest.raises(ChatValueError):
        run(aio.encode_chat(tokenizer, [], thinking_effort="much"))
    with pytest.raises(TypeError):
        run(aio.encode(tokenizer, "a", no_such_option=1))
