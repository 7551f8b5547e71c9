"""`Session` and `SessionCache` as Python objects: arguments, arrays, errors, memory, messages."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import random
import signal
import sys
import threading
import warnings
import weakref
from typing import Any

import numpy as np
import pytest
from kizami import Segment, SessionCache, Tokenizer, _native
from kizami.chat import kimi_k3
from kizami.errors import (
    ChatKeyError,
    ChatTypeError,
    ChatValueError,
    ChatWarning,
    InputTypeError,
    InvalidValueError,
)

from tests.prompts import another

TEXT = "Some words of a prompt, "


def test_the_array_is_a_view_that_cannot_be_written_to(tokenizer: Tokenizer) -> None:
    session, cache = tokenizer.session(), SessionCache(tokenizer, max_bytes=1 << 20)

    for keep in (session, cache):
        ids = keep.encode_segments([(TEXT, False)])
        assert (ids.dtype, ids.ndim) == (np.uint32, 1)
        assert ids.flags.c_contiguous
        assert not ids.flags.writeable
        assert not ids.flags.owndata
        with pytest.raises(ValueError, match="read-only"):
            ids[0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            ids.flags.writeable = True
        own = ids.copy()
        own[0] = 1
        assert np.array_equal(pickle.loads(pickle.dumps(ids)), tokenizer.encode(TEXT))


def test_an_array_outlives_its_session(tokenizer: Tokenizer) -> None:
    session = tokenizer.session()
    ids = session.encode_segments([(TEXT * 1000, False)])
    gone = weakref.ref(session)
    session.reset()
    del session
    gc.collect()

    assert gone() is None
    assert np.array_equal(ids, tokenizer.encode(TEXT * 1000))


def test_prompts_share_memory_as_long_as_they_grow(tokenizer: Tokenizer) -> None:
    session = tokenizer.session()
    prompt = [(TEXT, False)]
    first = session.encode_segments(prompt)
    address = first.ctypes.data
    for _ in range(20):
        prompt.append((TEXT, False))
        ids = session.encode_segments(prompt)
    assert ids.ctypes.data == address
    assert np.shares_memory(first, ids)
    # Parted before its end: what was given out stays, in memory of its own.
    other = session.encode_segments([(TEXT, False), ("else", False)])
    assert not np.shares_memory(other, ids)


def test_all_forms_of_segments_are_taken(tokenizer: Tokenizer) -> None:
    class Plain:
        text, allow_special = TEXT, True

    want = tokenizer.encode_segments([(TEXT, True)] * 4)
    forms: list[Any] = [Segment(TEXT, True), (TEXT, 1), [TEXT, np.True_], Plain()]
    for keep in (tokenizer.session(), SessionCache(tokenizer, max_bytes=1 << 20)):
        for segments in (forms, tuple(forms), iter(forms), forms):
            assert np.array_equal(keep.encode_segments(segments), want)
        assert len(keep.encode_segments([])) == 0


def test_a_list_as_a_segment_may_change(tokenizer: Tokenizer) -> None:
    segment: list[Any] = ["<|open|>", True]
    session = tokenizer.session()

    assert session.encode_segments([segment]).tolist() == [163587]
    segment[1] = False
    assert np.array_equal(session.encode_segments([segment]), tokenizer.encode("<|open|>"))


def test_errors_are_those_of_the_tokenizer_and_change_nothing(tokenizer: Tokenizer) -> None:
    prompt: list[Any] = [("one", False), ("two", False)]
    wrong: list[tuple[Any, type[Exception]]] = [
        ([*prompt, ("three", "no")], InputTypeError),
        ([*prompt, 5], InputTypeError),
        ([prompt[0], (b"two", False)], InputTypeError),
        ("text", InputTypeError),
        (5, InputTypeError),
    ]
    cache = SessionCache(tokenizer, max_bytes=1 << 20)
    session = tokenizer.session()
    session.encode_segments(prompt)
    cache.encode_segments(prompt)
    for segments, kind in wrong:
        for keep in (session, cache):
            with pytest.raises(kind) as caught:
                keep.encode_segments(segments)
            with pytest.raises(kind) as expected:
                tokenizer.encode_segments(segments)
            assert str(caught.value) == str(expected.value)
            assert vars(caught.value) == vars(expected.value)
    with pytest.raises(InputTypeError, match="legacy_chunks"):
        session.encode_segments(prompt, legacy_chunks="no")  # type: ignore[arg-type]

    session.encode_segments(prompt)
    assert session.reused == 2


def test_code_of_the_caller_may_use_the_session_meanwhile(tokenizer: Tokenizer) -> None:
    session = tokenizer.session()
    first = [(TEXT, False), (TEXT, False)]
    session.encode_segments(first)

    class Nasty:
        allow_special = False

        @property
        def text(self) -> str:
            session.encode_segments([("something else", False)])
            session.reset()
            return "at last"

    ids = session.encode_segments([*first, Nasty()])

    assert np.array_equal(ids, tokenizer.encode_segments([*first, ("at last", False)]))


def test_a_flag_that_changes_is_read_again(tokenizer: Tokenizer) -> None:
    flag = np.array(1)
    prompt: list[Any] = [("<|open|>", flag)]
    session = tokenizer.session()

    assert session.encode_segments(prompt).tolist() == [163587]
    flag[...] = 0
    assert np.array_equal(session.encode_segments(prompt), tokenizer.encode("<|open|>"))


def talk(*texts: Any) -> list[Any]:
    roles = ["user", "assistant"] * len(texts)
    return [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]


@pytest.mark.parametrize("what", ["segments", "chat", "reset", "wrong"])
def test_code_that_rendering_runs_may_use_the_session(tokenizer: Tokenizer, what: str) -> None:
    session = tokenizer.session()

    class Text(str):
        __slots__ = ()

        def __str__(self) -> str:
            if what == "segments":
                session.encode_segments([("zz", False)] * 100)
            elif what == "chat":
                session.encode_chat(talk("other", "words", "and", "more"))
            elif what == "reset":
                session.reset()
            else:
                with pytest.raises(ChatKeyError):
                    session.encode_chat([{"content": "no role"}])
            return "said"

    first = talk("one", "two", "three")
    session.encode_chat(first)
    for messages in ([*first, *talk("x")[:0], {"role": "assistant", "content": Text("x")}], first):
        for _ in range(2):
            ids = session.encode_chat(messages)
            assert np.array_equal(ids, tokenizer.encode_chat(messages))


@pytest.mark.parametrize("place", ["common_prefix", "remembered", "may_begin", "render_from"])
@pytest.mark.parametrize("call", range(4))
def test_messages_that_change_meanwhile_count_as_they_were(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, place: str, call: int
) -> None:
    """As if another thread shortened the lists at any place between two steps."""
    owner = _native if hasattr(_native, place) else kimi_k3
    step = getattr(owner, place)
    messages, tools = talk("one", "two", "three", "four"), [{"type": "function", "name": "f"}]
    session = tokenizer.session()
    for edit in ("", "content", "role"):
        given, options = copy.deepcopy(messages), copy.deepcopy(tools)
        if edit:
            given[1][edit] = "user"
        want = tokenizer.encode_chat(given, tools=options)
        left = call

        def change(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            result = step(*arguments, **named)
            if left == 0:
                given.clear()  # noqa: B023
                options.clear()  # noqa: B023
            left -= 1
            return result

        monkeypatch.setattr(owner, place, change)
        assert np.array_equal(session.encode_chat(given, tools=options), want)
        monkeypatch.setattr(owner, place, step)
        for kept in (tools, []):
            ids = session.encode_chat(messages, tools=kept)
            assert np.array_equal(ids, tokenizer.encode_chat(messages, tools=kept))
        session.encode_chat(messages, tools=tools)


def test_messages_may_be_any_iterable_and_no_list_of_conversations(tokenizer: Tokenizer) -> None:
    session = tokenizer.session()
    messages = talk("one", "two", "three")

    for form in (messages, tuple(messages), iter(messages)):
        ids = session.encode_chat(form)  # type: ignore[arg-type]
        assert np.array_equal(ids, tokenizer.encode_chat(messages))
    assert session.reused == len(ids)
    for keep in (tokenizer, session, SessionCache(tokenizer, max_bytes=1)):
        for wrong in ([messages], "text", 5):
            with pytest.raises(ChatTypeError, match="`messages` is"):
                keep.encode_chat(wrong)  # type: ignore[arg-type]


def test_after_an_interrupt_the_ids_are_right(tokenizer: Tokenizer) -> None:
    session = tokenizer.session()
    messages = talk("hello", "one", "two", "three")
    session.encode_chat(messages)
    native = session._native

    class Interrupted:
        """As if a signal came when the native call had returned."""

        def __getattr__(self, name: str) -> Any:
            method = getattr(native, name)
            if not callable(method):
                return method

            def call(*arguments: Any) -> Any:
                method(*arguments)
                raise KeyboardInterrupt

            return call

    edited = [*messages[:1], *talk("", "words " * 500)[1:], *messages[2:]]
    for interrupted in (
        lambda: session.encode_chat(edited),
        lambda: session.encode_segments([("something else", False)]),
        session.reset,
    ):
        session._native = Interrupted()
        with pytest.raises(KeyboardInterrupt):
            interrupted()
        session._native = native
        for _ in range(2):
            ids = session.encode_chat(messages)
            assert np.array_equal(ids, tokenizer.encode_chat(messages))


def test_a_text_may_use_the_session_when_it_goes(tokenizer: Tokenizer) -> None:
    session = tokenizer.session()
    used = []

    class Text(str):
        def __del__(self) -> None:
            used.append(len(session.encode_segments([("gone", False)])))

    with pytest.raises(InputTypeError):
        session.encode_segments([(Text("a"), False), (Text("b"), False), 5])  # type: ignore[list-item]
    session.encode_segments([(Text("a"), False)])
    session.encode_segments([("b", False)])
    gc.collect()
    assert used


def test_values_that_hold_one_many_times_cost_no_more(tokenizer: Tokenizer) -> None:
    many: Any = [1]
    for _ in range(60):
        many = [many, many]
    messages = [{"role": "user", "content": "hi", "meta": many}, *talk("", "Hello")[1:]]
    session = tokenizer.session()

    for _ in range(2):
        assert np.array_equal(session.encode_chat(messages), tokenizer.encode_chat(messages))
    assert _native.remembered([1.5] * 20_000) is None


def test_messages_that_change_in_place_are_seen(tokenizer: Tokenizer) -> None:
    session = tokenizer.session()
    call = {"id": "1", "function": {"name": "ls", "arguments": {"depth": 1, "all": True}}}
    messages: list[Any] = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": "Done."},
    ]

    def check(most_new: int) -> None:
        ids = session.encode_chat(messages)
        assert np.array_equal(ids, tokenizer.encode_chat(messages))
        assert len(ids) - session.reused <= most_new

    check(10_000)
    check(0)
    arguments: dict[str, Any] = call["function"]["arguments"]  # type: ignore[index]
    for value in (True, 1.0, 1, -0.0, 0.0, [1], [True], {"a": 1}, {"b": 2}):
        arguments["depth"] = value
        check(20)
    arguments["depth"] = {"a": 1, "b": 2}
    check(20)
    arguments["depth"] = {"b": 2, "a": 1}
    check(20)
    call["function"]["arguments"] = dict(reversed(arguments.items()))  # type: ignore[index]
    check(60)
    messages[2]["content"][0]["text"] += " b"
    check(60)
    messages[3] = {"role": "tool", "tool_call_id": "1", "content": "more"}
    check(60)
    del messages[2:]
    check(20)
    messages[:] = []
    check(10_000)


def test_options_are_a_part_of_what_is_known(tokenizer: Tokenizer) -> None:
    session = tokenizer.session()
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}] * 4
    tools = [{"type": "function", "function": {"name": "ls", "parameters": {}}}]
    options: list[dict[str, Any]] = [
        {}, {"thinking": False}, {"thinking": True}, {"thinking": 1}, {"tools": tools},
        {"tools": copy.deepcopy(tools)}, {"tools": tools, "thinking_effort": None},
        {"tool_choice": "required"}, {"add_generation_prompt": False},
        {"response_format": {"type": "json_object"}}, {"image_prompts": []},
    ]  # fmt: skip

    for some in [*options, *reversed(options)]:
        assert np.array_equal(
            session.encode_chat(messages, **some), tokenizer.encode_chat(messages, **some)
        )
    tools[0]["function"]["name"] = "rm"  # type: ignore[index]
    for some in options:
        assert np.array_equal(
            session.encode_chat(messages, **some), tokenizer.encode_chat(messages, **some)
        )


def test_images_are_counted_over_the_whole_conversation(tokenizer: Tokenizer) -> None:
    session = tokenizer.session()
    image = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "this"}]}
    messages = []

    for number in range(1, 4):
        messages += [image, {"role": "assistant", "content": "seen"}]
        prompts = ["<|media_pad|>"] * number
        ids = session.encode_chat(messages, image_prompts=prompts)
        assert np.array_equal(ids, tokenizer.encode_chat(messages, image_prompts=prompts))
        with pytest.raises(ChatValueError):
            session.encode_chat(messages, image_prompts=prompts[1:])


def test_faults_in_messages_are_told_by_their_index(tokenizer: Tokenizer) -> None:
    session = tokenizer.session()
    messages: list[Any] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "Hi"},
    ]
    session.encode_chat(messages)

    with pytest.raises(ChatKeyError) as caught:
        session.encode_chat([*messages, {"content": "no role"}])
    assert caught.value.message_index == 3
    with pytest.raises(InputTypeError, match="no option colour"):
        session.encode_chat(messages, colour="red")

    session.encode_chat(messages)
    assert session.reused == len(tokenizer.encode_chat(messages))


def test_a_warning_is_given_every_time(tokenizer: Tokenizer) -> None:
    session = tokenizer.session()
    messages: list[Any] = [{"role": "stranger"}, {"role": "assistant", "content": "Hello"}]

    for _ in range(3):
        messages.append({"role": "user", "content": "Hi"})
        with pytest.warns(ChatWarning, match="stranger"):
            ids = session.encode_chat(messages)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert np.array_equal(ids, tokenizer.encode_chat(messages))


def test_what_is_remembered_of_a_value() -> None:
    value = {"a": [1, True, 1.5, None, "x", ("y",)], 2: {}}
    kept = _native.remembered(value)

    assert kept == value
    assert kept is not value
    assert kept["a"] is not value["a"]
    assert _native.common_prefix([kept, kept], [value, {**value}]) == 2
    strange: list[Any] = [
        {1, 2},
        b"x",
        object(),
        np.int64(1),
        type("S", (str,), {})("x"),
        [object()],
    ]
    for other in strange:
        assert _native.remembered(other) is None
        assert _native.remembered({"a": other}) is None
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    assert _native.remembered(deep) is None
    for one, other in [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ("1", 1),
        ([1], (1,)),
        ({}, []),
        (None, False),
    ]:
        assert _native.common_prefix([one], [other]) == 0
    assert _native.common_prefix([{"a": 1, "b": 2}], [{"b": 2, "a": 1}]) == 0
    nan = float("nan")
    assert _native.common_prefix([nan], [float("nan")]) == 1
    assert _native.common_prefix([None], [None]) == 0


def test_they_are_not_copied_by_mistake(tokenizer: Tokenizer) -> None:
    for keep in (tokenizer.session(), SessionCache(tokenizer, max_bytes=1)):
        for way in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="make a new one"):
                way(keep)
        assert "kimi-k3" in repr(keep)


def test_wrong_arguments_of_a_cache(tokenizer: Tokenizer) -> None:
    with pytest.raises(InputTypeError, match="tokenizer must be"):
        SessionCache("kimi-k3", max_bytes=1)  # type: ignore[arg-type]
    for wrong in (1.5, "1", None, True):
        with pytest.raises(InputTypeError, match="max_bytes"):
            SessionCache(tokenizer, max_bytes=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="negative"):
        SessionCache(tokenizer, max_bytes=-1)
    assert SessionCache(tokenizer, max_bytes=1 << 100).statistics().max_bytes > 1 << 60


def test_b67_texts_are_let_go(tokenizer: Tokenizer) -> None:
    def references(text: str) -> int:
        gc.collect()
        return sys.getrefcount(text)

    text = "".join(["A text ", "that only we know. "]) * 100
    before = references(text)
    session, cache = tokenizer.session(), SessionCache(tokenizer, max_bytes=1 << 20)
    session.encode_segments([(text, False)])
    cache.encode_segments([(text, False)])
    assert references(text) > before

    session.encode_segments([("something else", False)])
    cache.clear()
    assert references(text) == before


def test_memory_of_a_session_is_bounded(tokenizer: Tokenizer) -> None:
    psutil = pytest.importorskip("psutil", reason="psutil tells the memory of the process")
    process = psutil.Process()
    text = "A line of a long conversation that goes on and on.\n" * 400
    session = tokenizer.session()
    prompt = [(f"{number} {text}", False) for number in range(300)]
    tokenizer.encode_segments(prompt)
    gc.collect()
    before = process.memory_info().rss
    size = sum(len(text) for text, _ in prompt)

    for length in (100, 200, 250, 300, 299, 300, 150, 300):
        ids = session.encode_segments(prompt[:length])

    del ids
    gc.collect()
    grown = process.memory_info().rss - before
    ids_bytes = len(tokenizer.encode_segments(prompt)) * 4
    assert grown < 3 * (size + ids_bytes)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_b62_a_child_uses_what_other_threads_were_using(tokenizer: Tokenizer) -> None:
    session, cache = tokenizer.session(), SessionCache(tokenizer, max_bytes=1 << 22)
    prompt = [(f"turn {number} " * 40, False) for number in range(300)]
    want = tokenizer.encode_segments(prompt)
    stop = threading.Event()

    def work(number: int) -> None:
        rng = random.Random(number)
        while not stop.is_set():
            part = prompt[: rng.randrange(len(prompt))]
            session.encode_segments(part)
            cache.encode_segments(part)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    codes = []
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(60)  # rather than to hang for ever
                same = [
                    np.array_equal(keep.encode_segments(given), want)
                    for keep in (session, cache)
                    for given in (prompt, [(another(text), False) for text, _ in prompt])
                ]
                os._exit(0 if all(same) else 1)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert codes == [0] * 20
