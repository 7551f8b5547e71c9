"""The long calls of a `Tokenizer`, for `asyncio`: the event loop goes on while they run.

Each function takes a tokenizer and what its method takes; `encode_segments` and `encode_chat` take
a `Session` or a `SessionCache` in its place. A large input goes to a thread of the
loop's default executor (by `asyncio.to_thread`, which takes the context variables along), where
the interpreter lock is released; a small one is done at once, because a thread would cost more than
the work. Small is what has at most `SMALL_CHARS` characters, or `SMALL_IDS` ids: under a
millisecond of work.

Do not change the input before the result is there. Await a call to a session before you make the
next: calls to one session follow one another, and a small one would wait in the event loop. A call
that is cancelled still runs to its end, unseen.

>>> import asyncio, kizami
>>> import kizami.aio
>>> tokenizer = kizami.load("kimi-k3")
>>> asyncio.run(kizami.aio.encode(tokenizer, "Hello, world")).tolist()
[19180, 11, 2695]
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any, SupportsIndex, TypeVar

import numpy as np
import numpy.typing as npt

from kizami._batch import Batch
from kizami._session import Session, SessionCache
from kizami._tokenizer import Tokenizer
from kizami.segments import Segment

__all__ = [
    "SMALL_CHARS",
    "SMALL_IDS",
    "decode",
    "encode",
    "encode_batch",
    "encode_chat",
    "encode_segments",
]

SMALL_CHARS = 16_384
"""Inputs with at most so many characters are done at once."""
SMALL_IDS = 65_536
"""The same for ids to decode."""

Ids = npt.NDArray[np.uint32]
_Encoder = Tokenizer | Session | SessionCache
_T = TypeVar("_T")


async def encode(tokenizer: Tokenizer, text: str, **options: Any) -> Ids:
    """`tokenizer.encode(text, **options)`."""
    return await _run(_is_small(text), lambda: tokenizer.encode(text, **options))


async def encode_segments(
    tokenizer: _Encoder, segments: Iterable[Segment | tuple[str, bool]], **options: Any
) -> Ids:
    """`tokenizer.encode_segments(segments, **options)`, of a session or a cache as well."""
    small, segments = _sized(segments)
    return await _run(small, lambda: tokenizer.encode_segments(segments, **options))


async def encode_batch(tokenizer: Tokenizer, texts: Iterable[str], **options: Any) -> Batch:
    """`tokenizer.encode_batch(texts, **options)`."""
    small, texts = _sized(texts)
    return await _run(small, lambda: tokenizer.encode_batch(texts, **options))


async def encode_chat(
    tokenizer: _Encoder, messages: Sequence[Mapping[str, Any]], **options: Any
) -> Ids:
    """`tokenizer.encode_chat(messages, **options)`, of a session or a cache as well.

    >>> import asyncio, kizami
    >>> import kizami.aio
    >>> session = kizami.load("kimi-k3").session()
    >>> messages = [{"role": "user", "content": "Read it."}]
    >>> len(asyncio.run(kizami.aio.encode_chat(session, messages)))
    91
    """
    small = _is_small([messages, options])
    return await _run(small, lambda: tokenizer.encode_chat(messages, **options))


async def decode(tokenizer: Tokenizer, ids: Iterable[SupportsIndex] | Ids, **options: Any) -> str:
    """`tokenizer.decode(ids, **options)`."""
    small = isinstance(ids, Sized) and len(ids) <= SMALL_IDS
    return await _run(small, lambda: tokenizer.decode(ids, **options))


async def _run(small: bool, call: Callable[[], _T]) -> _T:
    return call() if small else await asyncio.to_thread(call)


def _sized(items: Iterable[Any]) -> tuple[bool, Any]:
    """Whether the items are small, and the items: what can be read only once is a list now."""
    if not isinstance(items, (list, tuple, str)) and isinstance(items, Iterable):
        items = list(items)
    return _is_small(items), items


def _is_small(value: Any) -> bool:
    """Whether all strings in a nest of containers are short; looks no further than it must.

    >>> _is_small(["a", {"b": ("c" * 20_000,)}])
    False
    """
    left = SMALL_CHARS
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            stack += item.values()
        elif isinstance(item, (list, tuple)):
            stack += item
        text = getattr(item, "text", item)  # a segment may be any object with a text
        # Anything counts for something: a thousand empty messages are not small, either.
        left -= len(text) if isinstance(text, str) else 16
        if left < 0:
            return False
    return True
