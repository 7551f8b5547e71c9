"""`DecodeStream`: the text of ids that come one after the other, with stop strings.

All work is native; `push` is the native method itself, so that an id costs one call.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kizami import _native
from kizami.errors import InputTypeError, InvalidValueError


class DecodeStream(_native.DecodeStream):
    """Turns ids into text as they come. Get one from `Tokenizer.stream`.

    `push(ids)` takes one id or several (ints, a sequence, an array) and gives the text that is
    certain now: whole characters, never one that bytes to come could change. Several ids give what
    they give one by one. An id outside the vocabulary raises `InvalidIdError`, something else an
    `InputTypeError`; the stream is then as it was.

    `finish()` gives the rest when no more ids come: an unfinished character as U+FFFD, and text
    that was held back. What is pushed afterwards is a new text.

    `stopped` is the stop string that was found, or None. The text ends before it: what follows it
    in the same `push`, and all that is pushed later, gives "". Stop strings are found across
    the borders of tokens. The one that begins first in the text wins; of those that begin at the
    same place, the longest. Text is held back only as far as a stop string may begin there.

    Law: all that `push` gave and what `finish` gives, put together, is `Tokenizer.decode` of all
    ids, cut before the first stop string.

    Cost: linear in the bytes of the ids pushed; one id mostly gives a `str` that the tokenizer
    keeps, be it whole characters or a part. The stream holds three bytes at most, and text shorter
    than the longest stop string. `copy.copy` gives an independent stream at the same place.
    Calls of several threads to one stream follow one another.

    >>> import copy, kizami
    >>> tokenizer = kizami.load("kimi-k3")
    >>> stream = tokenizer.stream(stop=["END", "\\n\\n"])
    >>> party = tokenizer.encode("🎉").tolist()
    >>> [stream.push(id) for id in party]
    ['', '', '🎉']
    >>> stream.push(tokenizer.encode("Say EN"))
    'Say '
    >>> branch = copy.copy(stream)
    >>> stream.push(tokenizer.encode("D of it")), stream.stopped
    ('', 'END')
    >>> branch.push(tokenizer.encode("OUGH")), branch.stopped
    ('ENOUGH', None)
    >>> branch.push(party[:2]), branch.finish()
    ('', '�')
    """

    __slots__ = ()

    def __copy__(self) -> DecodeStream:
        return DecodeStream(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> DecodeStream:
        return DecodeStream(self)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a DecodeStream cannot be pickled; pickle the tokenizer and the ids")


def stop_strings(stop: str | Iterable[str] | None) -> list[str]:
    """The stop strings of a caller, checked.

    >>> stop_strings("END"), stop_strings(None)
    (['END'], [])
    """
    if stop is None:
        return []
    if isinstance(stop, str):
        stop = [stop]
    if isinstance(stop, (bytes, bytearray)) or not isinstance(stop, Iterable):
        raise InputTypeError(f"stop must be str or an iterable of str, not {type(stop).__name__}")
    strings = list(stop)
    for position, string in enumerate(strings):
        if not isinstance(string, str):
            kind = type(string).__name__
            raise InputTypeError(
                f"stop string {position} must be str, not {kind}", position=position
            )
        if not string:
            raise InvalidValueError(f"stop string {position} is empty; leave it out")
        if any("\ud800" <= char <= "\udfff" for char in string):
            raise InvalidValueError(
                f"stop string {position} has a lone surrogate, which is never decoded: {string!r}"
            )
    return strings
