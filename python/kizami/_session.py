"""`Session` and `SessionCache`: prompts that grow, encoded where they are new.

All work on text and ids is native. What is here remembers the messages of a conversation, so that
those that have not changed are not rendered again.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kizami import _native
from kizami._flags import flag
from kizami.errors import InputTypeError, InvalidValueError
from kizami.segments import Segment

if TYPE_CHECKING:
    from kizami._tokenizer import Tokenizer

__all__ = ["CacheStatistics", "Session", "SessionCache"]

Ids = npt.NDArray[np.uint32]

# Above every index.
_END = sys.maxsize


class _Conversation(NamedTuple):
    """The last conversation that was encoded.

    Attributes:
        messages: Copies that nobody else can change; None for what cannot be copied.
        options: The same of the options, in a list.
        marks: Places where rendering may begin: index of the message, index of the segment.
        version: That of the native session whose segments the marks are places in.
    """

    messages: list[Any]
    options: list[Any]
    marks: list[tuple[int, int]]
    version: int


class Session:
    """The prompts of one conversation, each of which begins like the one before. Get one from
    `Tokenizer.session`.

    `encode_segments` and `encode_chat` give exactly the ids that the tokenizer's own calls give,
    whatever was asked before: a prompt may grow, change in the middle, shrink, or have nothing to
    do with the last one. Only what is new is encoded. Segments that are the same objects as before
    are not read; others are compared with those before, byte by byte; a text that begins like the
    one in its place goes on from the last place where what follows does not matter; a longer text
    that stood elsewhere in the last prompt is found again.

    The arrays are read-only views of memory that grows at its end: they stay valid and unchanged,
    and share that memory. `.copy()` gives an array of its own.

    The session holds the texts of the last prompt and its ids (up to twice, where a prompt parts
    from the last one before its end), and forgets them with `reset()`.

    Calls of several threads to one session follow one another. A generator of segments must not
    wait for another thread that uses the same session, which is taken while they are read.

    >>> import kizami
    >>> session = kizami.load("kimi-k3").session()
    >>> messages = [{"role": "user", "content": "What is in this folder?"}]
    >>> prompt = session.encode_chat(messages)
    >>> messages.append({"role": "assistant", "content": "A README."})
    >>> messages.append({"role": "user", "content": "Read it."})
    >>> longer = session.encode_chat(messages)
    >>> len(prompt), len(longer), session.reused
    (94, 134, 94)
    >>> (longer[:94] == prompt).all()
    np.True_
    """

    __slots__ = ("__weakref__", "_conversation", "_lock", "_native", "_tokenizer")

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Not for callers: use `Tokenizer.session`."""
        self._tokenizer = tokenizer
        self._native = _native.Session(tokenizer._native)
        self._conversation: _Conversation | None = None
        # Not held by one thread only: reading segments may run code that uses this session.
        self._lock = threading.RLock()
        _alive.add(self)

    @property
    def reused(self) -> int:
        """How many of the last call's ids were taken over from the call before."""
        return self._native.reused

    @property
    def unchanged(self) -> int:
        """How many ids at the beginning of the last call's are those of the call before.

        Not more than `reused`, which counts what was taken over from other places, too. What comes
        behind may be equal as well. For who keeps something of each id: `BlockHasher.rewind`.
        """
        return self._native.unchanged

    def reset(self) -> None:
        """Forgets the last prompt. Arrays given out stay as they are.

        What is freed goes back to the allocator of the process, which may keep it (`malloc_trim`
        of glibc gives it to the system); it is not overwritten.
        """
        with self._lock:
            self._conversation = None
            self._native.reset()

    def encode_segments(
        self, segments: Iterable[Segment | tuple[str, bool]], *, legacy_chunks: bool = True
    ) -> Ids:
        """`Tokenizer.encode_segments`, with the work of what is new.

        Returns:
            Shape (n,), uint32, C-contiguous, read-only: a view. Equal to
            `tokenizer.encode_segments(segments)`.

        Raises:
            InputTypeError: As `Tokenizer.encode_segments`; the session is then as it was.

        Cost: a few ns for a segment (a tuple) that is the same object as before; reading it where
        it is another object; encoding what is new.

        >>> import kizami
        >>> session = kizami.load("kimi-k3").session()
        >>> session.encode_segments([("one", False)]).tolist()
        [787]
        >>> session.encode_segments([("one", False), (" two", False)]).tolist(), session.reused
        ([787, 2069], 1)
        """
        chunks = flag(legacy_chunks, "legacy_chunks")
        with self._lock:
            self._conversation = None
            return self._native.encode(segments, chunks)

    def encode_chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> Ids:
        """`Tokenizer.encode_chat`, with the work of what is new.

        For Kimi K3, messages that have not changed since the last call (compared by value, so that
        one changed in place is seen) are not rendered again, but for those from the last assistant
        message on. The list counts as it was when the call began. For other models all are
        rendered, and compared as segments.

        Options, errors: as `Tokenizer.render_chat`. Returns: as `encode_segments`.

        Cost: comparing the messages, rendering and encoding what is new.
        """
        from kizami.chat import kimi_k3, renderer_for

        known = renderer_for(self._tokenizer.control_tokens) is kimi_k3.render
        with self._lock:
            if known and options.keys() <= kimi_k3.RESUMABLE:
                # Read once: another thread, or the caller's code, may change the list meanwhile.
                return self._encode_k3(kimi_k3.as_list(messages), options)
            return self.encode_segments(self._tokenizer.render_chat(messages, **options))

    def _encode_k3(self, messages: list[Any], options: dict[str, Any]) -> Ids:
        from kizami.chat import kimi_k3

        given = [_native.remembered(options)]
        # Taken away until all is done: an exception, a signal too, may come in between.
        talk, self._conversation = self._conversation, None
        if talk is None or _native.common_prefix(talk.options, given) == 0:
            talk = _Conversation([], given, [], 0)
        same = _native.common_prefix(talk.messages, messages)
        copies = [_native.remembered(message) for message in messages[same:]]
        # As they were copied, where that can be: another thread may change what they hold.
        new = [
            message if copy is None else copy
            for message, copy in zip(messages[same:], copies, strict=True)
        ]
        # The last place before which nothing has changed.
        marks = bisect_right(talk.marks, (min(same, len(messages) - 1), _END))
        while marks:
            at = talk.marks[marks - 1][0]
            if kimi_k3.may_begin(talk.messages[at] if at < same else new[0]):
                break
            marks -= 1
        start, segment = talk.marks[marks - 1] if marks else (0, 0)
        if start == 0:  # what stands before the first message belongs to it
            segment = 0
        options = options if given[0] is None else given[0]
        rendered = kimi_k3.render_from(talk.messages[start:same] + new, start, **options)
        done = self._native.encode_behind(rendered.segments, segment, talk.version)
        if done is None:
            # To render may run the caller's code, and that has used this session: all anew, which
            # depends on nothing that was before.
            self._conversation = None
            return self._encode_k3(messages, options)
        ids, version = done
        # Who is warned of a message is warned of it every time.
        if not rendered.warned:
            del talk.marks[max(marks - 1, 0) :]
            talk.marks.extend((message, segment + at) for message, at in rendered.marks)
            del talk.messages[same:]
            talk.messages.extend(copies)
            self._conversation = talk._replace(version=version)
        return ids

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        if not self._native.is_free():
            _lost.append(self._native)
            self._native = _native.Session(self._tokenizer._native)
            self._conversation = None

    def __repr__(self) -> str:
        return f"Session({self._tokenizer!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a Session cannot be copied or pickled; make a new one of the tokenizer")


class CacheStatistics(NamedTuple):
    """What a `SessionCache` has done, and holds.

    Attributes:
        requests: Prompts asked for.
        hits: Of these, how many began like one that was known.
        ids: Ids given.
        reused: Of these, how many were not encoded anew.
        prompts: Ends of prompts held now; those with a common beginning share it.
        evicted: Parts of prompts dropped to keep the bytes.
        bytes: Bytes held now: texts, ids, and what they are found by, about.
        max_bytes: Bytes that may be held.
    """

    requests: int
    hits: int
    ids: int
    reused: int
    prompts: int
    evicted: int
    bytes: int
    max_bytes: int


class SessionCache:
    """The prompts of many conversations at once, told apart by nothing but what they begin with.

    For servers whose requests carry no session. A prompt is looked up by its beginning: of all that
    are known, the one that has the longest beginning in common with it gives its ids, and the rest
    is encoded. So a conversation that goes on is found, and one that branches finds its trunk.

    At most `max_bytes` are held: texts of users among them, until the budget pushes out what was
    not used for the longest time, or `clear()` empties it. A prompt that is larger than the budget
    is encoded, and not kept.

    Safe to be used by many threads, which work side by side.

    Args:
        tokenizer: Whose ids they are.
        max_bytes: Bytes that may be held. A prompt takes its text (as Python holds it), about six
            bytes an id, and 160 bytes a segment. The memory of the process may grow by about a
            tenth more than `statistics().bytes`, and need not shrink when prompts are dropped: the
            allocator may keep what is freed.

    Raises:
        InputTypeError: `tokenizer` is no `Tokenizer`, or `max_bytes` no int.
        InvalidValueError: `max_bytes` is negative.

    >>> import kizami
    >>> cache = kizami.SessionCache(kizami.load("kimi-k3"), max_bytes=100_000_000)
    >>> def talk(*texts):
    ...     roles = ["user", "assistant"] * len(texts)
    ...     return [{"role": role, "content": text} for role, text in zip(roles, texts)]
    >>> trunk = talk("Name a colour.")
    >>> branches = talk("Name a colour.", "Red.", "Why?"), talk("Name a colour.", "Blue.", "Why?")
    >>> [len(cache.encode_chat(messages)) for messages in (trunk, *branches)]
    [92, 130, 130]
    >>> held = cache.statistics()
    >>> held.requests, held.hits, held.ids, held.reused
    (3, 2, 352, 190)
    """

    __slots__ = ("__weakref__", "_max_bytes", "_native", "_tokenizer")

    def __init__(self, tokenizer: Tokenizer, *, max_bytes: int) -> None:
        from kizami._tokenizer import Tokenizer

        if not isinstance(tokenizer, Tokenizer):
            kind = type(tokenizer).__name__
            raise InputTypeError(f"tokenizer must be a kizami.Tokenizer, not {kind}")
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, (int, np.integer)):
            raise InputTypeError(f"max_bytes must be an int, not {type(max_bytes).__name__}")
        if max_bytes < 0:
            raise InvalidValueError(f"max_bytes must not be negative, as {max_bytes} is")
        self._tokenizer = tokenizer
        self._max_bytes = min(int(max_bytes), (1 << 63) - 1)
        self._native = _native.SessionCache(tokenizer._native, self._max_bytes)
        _alive.add(self)

    def encode_segments(
        self, segments: Iterable[Segment | tuple[str, bool]], *, legacy_chunks: bool = True
    ) -> Ids:
        """`Tokenizer.encode_segments`; arguments, errors and ids are the same.

        Returns:
            Shape (n,), uint32, C-contiguous, read-only: a view of memory that other prompts share.

        Cost: comparing what is known where it is not the same `str` object (limited by memory),
        encoding what is new, and copying the known ids (4 bytes each) where another prompt goes on
        from the same beginning.
        """
        return self._native.encode(segments, flag(legacy_chunks, "legacy_chunks"))[0]

    def encode_chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> Ids:
        """`Tokenizer.encode_chat`; arguments, errors and ids are the same. All is rendered."""
        return self.encode_segments(self._tokenizer.render_chat(messages, **options))

    def statistics(self) -> CacheStatistics:
        """What was done so far, and what is held now."""
        return CacheStatistics(**self._native.statistics())

    def clear(self) -> None:
        """Forgets all prompts. Arrays given out stay as they are.

        What is freed goes back to the allocator of the process, as with `Session.reset`.
        """
        self._native.clear()

    def _after_fork(self) -> None:
        if not self._native.is_free():
            _lost.append(self._native)
            self._native = _native.SessionCache(self._tokenizer._native, self._max_bytes)

    def __repr__(self) -> str:
        held = self.statistics()
        return f"SessionCache({self._tokenizer!r}, bytes={held.bytes}, max_bytes={held.max_bytes})"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a SessionCache cannot be copied or pickled; make a new one")


# For the child of a fork.
_alive: weakref.WeakSet[Session | SessionCache] = weakref.WeakSet()
# What another thread was changing when the process was forked: half changed, and never freed.
_lost: list[object] = []


def _after_fork() -> None:
    """In the child: what another thread was using, and will not give back, begins anew."""
    for one in list(_alive):
        one._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
