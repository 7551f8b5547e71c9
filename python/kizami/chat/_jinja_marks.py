"""Text that knows which of its characters a template wrote.

`Marked` is a `str` with one byte for each character: 1, the template (or the tokenizer) wrote it;
0, it came from a message, a tool, a document or an option. A plain `str` counts as all 0, so an
operation that nobody thought of gives untrusted text, never trusted text. Such an operation is
noted by name (`noting`), because a control token in its result will not become one.

Characters that an operation adds (a fill, an indentation) are trusted if all its operands are.

Invariant: `len(text._trust) == len(text)`, and the text of every result is what `str` gives.

Read next: `_jinja_format` for `%` and `format`, `_jinja_engine` for where templates get marks.
"""

from __future__ import annotations

import re
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    ValuesView,
)
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, SupportsIndex

from kizami.errors import InternalError
from kizami.segments import Segment

_RUN = re.compile(b"\x00+|\x01+")
# Stands for the fill of those who name none; no text of theirs is this object.
_BLANK: Final = "a blank"
_NOTES: ContextVar[dict[str, None] | None] = ContextVar("_NOTES", default=None)


class Marked(str):
    """A `str` that carries trust by character; made without `trust` it is all untrusted."""

    __slots__ = ("_trust",)
    _trust: bytes

    def __new__(cls, text: str = "", trust: bytes | None = None) -> Marked:
        self = super().__new__(cls, text)
        self._trust = bytes(len(self)) if trust is None else trust
        if len(self._trust) != len(self):
            raise InternalError(f"{len(self._trust)} marks for {len(self)} characters; report this")
        return self

    def __str__(self) -> str:
        return self  # `str(x)` is what jinja's filters call first; the marks must survive it

    def __add__(self, other: str) -> str:
        if isinstance(other, str) and not hasattr(other, "__html__"):
            return concat((self, other))
        # What `str + other` does, down to the error: `Markup` and `Undefined` have a say in it.
        made = _reflected("__radd__", self, other)
        return str.__add__(self, other) if made is NotImplemented else made

    def __radd__(self, other: str) -> str:
        return concat((other, self)) if isinstance(other, str) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> str:
        if hasattr(count, "__index__"):
            return Marked(str.__mul__(self, count), self._trust * count.__index__())
        made: str = _reflected("__rmul__", self, count)
        if made is NotImplemented:
            kind = type(count).__name__
            raise TypeError(f"can't multiply sequence by non-int of type {kind!r}")
        return made

    def __rmul__(self, count: SupportsIndex) -> str:
        return self * count if hasattr(count, "__index__") else NotImplemented

    def __mod__(self, values: Any) -> str:
        from kizami.chat._jinja_format import percent

        return percent(self, values)

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        text = str.__getitem__(self, key)
        if isinstance(key, slice):
            return Marked(text, self._trust[key])
        return Marked(text, bytes((self._trust[key],)))

    def __iter__(self) -> Iterator[str]:
        for index in range(len(self)):
            yield self[index]

    def upper(self) -> str:
        return _recased(self, str.upper)

    def lower(self) -> str:
        return _recased(self, str.lower)

    def casefold(self) -> str:
        return _recased(self, str.casefold)

    def swapcase(self) -> str:
        return _recased(self, str.swapcase)

    def capitalize(self) -> str:
        head = Marked(str.title(self[:1]), self._trust[:1] * len(str.title(self[:1])))
        made = concat((head, _recased(self[1:], str.lower)))
        # A sigma at the end is another letter when the whole text is lowered.
        return Marked(str.capitalize(self), trust_of(made))

    def title(self) -> str:
        text = str.title(self)
        return Marked(text, self._trust) if len(text) == len(self) else derived("title", text, self)

    def lstrip(self, chars: str | None = None, /) -> str:
        return self[len(self) - len(str.lstrip(self, chars)) :]

    def rstrip(self, chars: str | None = None, /) -> str:
        return self[: len(str.rstrip(self, chars))]

    def strip(self, chars: str | None = None, /) -> str:
        return self.lstrip(chars).rstrip(chars)

    def removeprefix(self, prefix: str, /) -> str:
        return self[len(self) - len(str.removeprefix(self, prefix)) :]

    def removesuffix(self, suffix: str, /) -> str:
        return self[: len(str.removesuffix(self, suffix))]

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return _located(self, str.split(self, sep, maxsplit), sep)

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return _located(self, str.rsplit(self, sep, maxsplit), sep)

    def splitlines(self, keepends: bool = False) -> list[str]:
        lines = _located(self, str.splitlines(self, True), "")
        bare = str.splitlines(self, keepends)
        return [line[: len(kept)] for line, kept in zip(lines, bare, strict=True)]

    def partition(self, sep: str, /) -> tuple[str, str, str]:
        head, middle, tail = _located(self, str.partition(self, sep), "")
        return head, middle, tail

    def rpartition(self, sep: str, /) -> tuple[str, str, str]:
        head, middle, tail = _located(self, str.rpartition(self, sep), "")
        return head, middle, tail

    def join(self, parts: Iterable[str], /) -> str:
        parts = list(parts)
        str.join(self, parts)  # its errors are ours
        pieces = [piece for part in parts for piece in (self, part)]
        return concat(pieces[1:])

    def replace(self, old: str, new: str, /, count: SupportsIndex = -1) -> str:
        str.replace(self, old, new, count)
        if old:
            return marked(new).join(self.split(old, count))
        # An empty `old` is found before each character and at the end.
        limit = count.__index__()
        found = len(self) + 1 if limit < 0 else min(limit, len(self) + 1)
        pieces = [piece for at in range(found) for piece in (new, self[at : at + 1])]
        return concat([*pieces, self[found:]])

    def center(self, width: SupportsIndex, fillchar: str = _BLANK, /) -> str:
        return _padded(self, str.center, width, fillchar)

    def ljust(self, width: SupportsIndex, fillchar: str = _BLANK, /) -> str:
        return _padded(self, str.ljust, width, fillchar)

    def rjust(self, width: SupportsIndex, fillchar: str = _BLANK, /) -> str:
        return _padded(self, str.rjust, width, fillchar)

    def zfill(self, width: SupportsIndex, /) -> str:
        sign = 1 if self[:1] in ("+", "-") else 0
        fill = "0" * (len(str.zfill(self, width)) - len(self))
        return concat((self[:sign], like(self, fill), self[sign:]))

    def expandtabs(self, tabsize: SupportsIndex = 8) -> str:
        return derived("expandtabs", str.expandtabs(self, tabsize), self)

    def translate(self, table: Any, /) -> str:
        text = str.translate(self, table)
        note("translate", self)
        return text

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        note("encode", self)
        return str.encode(self, encoding, errors)


# Templates see this class in error messages alone; there it is the `str` that it stands for.
Marked.__name__ = Marked.__qualname__ = "str"
Marked.__module__ = "builtins"


def marked(text: str) -> Marked:
    """The text with its marks; a plain `str` gets the mark of untrusted text."""
    return text if isinstance(text, Marked) else Marked(text)


def trusted(text: str) -> Marked:
    """Text that a template or a tokenizer wrote.

    >>> segments(trusted("<s>") + "hi".upper() + trusted("</s>"))
    [Segment(text='<s>', allow_special=True), Segment(text='HI', allow_special=False),
     Segment(text='</s>', allow_special=True)]
    """
    return Marked(text, b"\x01" * len(text))


def trust_of(text: str) -> bytes:
    """One byte for each character: 1 for trusted.

    >>> trust_of(trusted("ab")[1:] + "c")
    b'\\x01\\x00'
    """
    return text._trust if isinstance(text, Marked) else bytes(len(text))


def has_trust(text: str) -> bool:
    """Whether any character is trusted."""
    return isinstance(text, Marked) and 1 in text._trust


def is_trusted(text: str) -> bool:
    """Whether no character is untrusted; a plain `str` never is."""
    return isinstance(text, Marked) and 0 not in text._trust


def concat(pieces: Iterable[str]) -> str:
    """`"".join(pieces)` with the marks of every piece."""
    pieces = list(pieces)
    text = "".join(pieces)
    if not any(isinstance(piece, Marked) for piece in pieces):
        return text
    return Marked(text, b"".join(map(trust_of, pieces)))


def segments(text: str) -> list[Segment]:
    """The runs of equal trust, in order, none empty."""
    plain = str.__str__(text)
    trust = trust_of(text)
    return [
        Segment(plain[run.start() : run.end()], bool(trust[run.start()]))
        for run in _RUN.finditer(trust)
    ]


def like(model: str, text: str) -> str:
    """What an operation on `model` adds: trusted if all of `model` is."""
    return trusted(text) if is_trusted(model) else text


def derived(operation: str, result: str, *operands: str) -> str:
    """The result of an operation whose characters cannot be followed.

    It is trusted if all its operands are; if some of them are in part, that loss is noted.
    """
    if all(map(is_trusted, operands)):
        return trusted(result)
    note(operation, *operands)
    return result


def text_of(value: Any) -> str:
    """`str(value)`; the marks of texts inside a list and the like get lost, and that is noted."""
    if not isinstance(value, str):
        note("str", value)
    return str(value)


@contextmanager
def noting() -> Iterator[dict[str, None]]:
    """Collects the names of operations that lost trust, in order, each once."""
    notes: dict[str, None] = {}
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


def note(operation: str, *operands: Any) -> None:
    """Note that the operation lost the trust of its operands, if there was any."""
    notes = _NOTES.get()
    if notes is not None and any(map(_holds_trust, operands)):
        notes[operation] = None


def _holds_trust(value: Any) -> bool:
    if isinstance(value, str):
        return has_trust(value)
    if isinstance(value, Mapping):
        value = [part for item in value.items() for part in item]
    if isinstance(value, (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)):
        return any(map(_holds_trust, value))
    return False


def _reflected(name: str, text: str, other: Any) -> Any:
    method = getattr(type(other), name, None)
    return NotImplemented if method is None else method(other, text)


def _recased(text: str, change: Callable[[str], str]) -> str:
    """`upper` and its like: what one character becomes depends on its neighbours, how many not."""
    made = change(str.__str__(text))
    trust = trust_of(text)
    if len(made) != len(text):
        lengths = (len(change(character)) for character in str.__str__(text))
        trust = b"".join(trust[at : at + 1] * length for at, length in enumerate(lengths))
    return Marked(made, trust)


def _located(text: Marked, pieces: Iterable[str], sep: str | None) -> list[str]:
    """Plain pieces of the text as marked ones; `sep` stood between them, None means white space."""
    found: list[str] = []
    at = 0
    for piece in pieces:
        if sep is None:
            at = str.index(text, piece, at)  # only white space is before it
        found.append(text[at : at + len(piece)])
        at += len(piece) + len(sep or "")
    return found


def _padded(
    text: Marked,
    pad: Callable[[str, SupportsIndex, str], str],
    width: SupportsIndex,
    fill: str,
) -> str:
    if fill is _BLANK:
        fill = like(text, " ")
    made = pad(text, width, fill)
    # Where the text is: where a stand-in without fill characters would be.
    other = "b" if fill == "a" else "a"
    at = max(pad(other * len(text), width, fill).find(other), 0) if len(text) else 0
    right = len(made) - len(text) - at
    return concat((marked(fill) * at, text, marked(fill) * right))
