"""Finding the markers of a reply: in ids, where they are certain, and in text, where they are not.

A scanner turns any chunks into the same calls of `Tags`, but for the borders between pieces of
text. A piece is never empty, and whole characters only.

Read next: `_k3_reader`, the public face.
"""

from __future__ import annotations

import codecs
import operator
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from kizami.chat._k3_tags import MarkKind, Tags
from kizami.errors import UnknownFormatError

MARKERS: Final[dict[str, MarkKind]] = {
    "<|open|>": "open",
    "<|close|>": "close",
    "<|sep|>": "sep",
    "<|end_of_msg|>": "end",
}
_MARKER: Final = re.compile("|".join(map(re.escape, MARKERS)))
_LONGEST: Final = max(map(len, MARKERS))
_NO_SEQUENCES: Final = (bytes, bytearray, dict, set, frozenset)
_UTF8: Final = codecs.getincrementaldecoder("utf-8")


class ReplyTokenizer(Protocol):
    """What reading ids needs of a tokenizer; `kizami.Tokenizer` has it."""

    @property
    def control_tokens(self) -> Mapping[str, int]:
        """Names of the control tokens, and their ids."""

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """Ids that end a reply."""

    def decode_bytes(self, ids: Any, /) -> bytes:
        """The bytes of ids, or an error if one is none."""


class IdScanner:
    """Reads ids. Structure is in control ids alone; the bytes of all others are text."""

    __slots__ = ("_decoder", "_marks", "_names", "_position", "_tags", "_tokenizer")

    def __init__(self, tokenizer: ReplyTokenizer, tags: Tags) -> None:
        controls = tokenizer.control_tokens
        missing = [name for name in MARKERS if name not in controls]
        if missing:
            raise UnknownFormatError(
                f"the tokenizer has no control token {missing[0]}; give one of Kimi K3",
                source=repr(tokenizer),
            )
        self._tokenizer = tokenizer
        self._tags = tags
        self._names = {id_: name for name, id_ in controls.items()}
        self._marks: dict[int, MarkKind] = {controls[name]: MARKERS[name] for name in MARKERS}
        # `[EOS]` is the end of a text for the published tokenizer, the other one for its engines.
        ends = [*tokenizer.eos_ids, *([controls["[EOS]"]] if "[EOS]" in controls else [])]
        self._marks.update(dict.fromkeys(ends, "end"))
        self._decoder = _UTF8("replace")
        self._position = 0

    def push(self, given: Any) -> None:
        if hasattr(given, "tolist"):
            given = given.tolist()
        if hasattr(given, "__index__"):
            given = [given]
        elif isinstance(given, Iterable) and not isinstance(given, _NO_SEQUENCES):
            given = list(given)
        # Before anything changes: refuse what is no list of ids.
        data = self._tokenizer.decode_bytes(given)
        # Ids now, but perhaps of a type that hashes otherwise.
        given = [operator.index(id_) for id_ in given]
        names, start = self._names, 0
        for index, id_ in enumerate(given):
            if id_ not in names:
                continue
            if start < index:
                self._text(self._tokenizer.decode_bytes(given[start:index]))
            self._control(id_, self._position + index)
            start = index + 1
        if start < len(given):
            self._text(self._tokenizer.decode_bytes(given[start:]) if start else data)
        self._position += len(given)

    def finish(self) -> int:
        """The input is over. The start of a character that never came is left out.

        Returns:
            How many ids there were.
        """
        if left := len(self._decoder.getstate()[0]):
            self._tags.cut_character(left, self._position)
        return self._position

    def _text(self, data: bytes) -> None:
        if text := self._decoder.decode(data):
            self._tags.text(text)

    def _control(self, id_: int, position: int) -> None:
        # A control id ends a character that is not whole: no later byte can belong to it.
        if torn := self._decoder.decode(b"", True):
            self._tags.text(torn)
        kind = self._marks.get(id_)
        if kind is None:
            self._tags.control(self._names[id_], position)
        else:
            self._tags.mark(kind, position)


class TextScanner:
    """Reads text. The names of the four markers are structure, whoever wrote them."""

    __slots__ = ("_held", "_position", "_tags")

    def __init__(self, tags: Tags) -> None:
        self._tags = tags
        self._held = ""  # may be the start of a marker
        self._position = 0  # of the first character that is held

    def push(self, text: str) -> None:
        text = self._held + text
        start = 0
        for match in _MARKER.finditer(text):
            self._text(text[start : match.start()])
            self._tags.mark(MARKERS[match[0]], self._position + match.start())
            start = match.end()
        end = max(start, _end_of_certain(text))
        self._text(text[start:end])
        self._held = text[end:]
        self._position += end

    def finish(self) -> int:
        """The input is over: what is held is text. Returns how many characters there were."""
        self._text(self._held)
        return self._position + len(self._held)

    def _text(self, text: str) -> None:
        if text:
            self._tags.text(text)


def _end_of_certain(text: str) -> int:
    """Where the start of a marker begins that ends the text; its length if there is none.

    >>> _end_of_certain("a <|op"), _end_of_certain("a < b")
    (2, 5)
    """
    at = text.rfind("<", max(0, len(text) - _LONGEST + 1))
    if at >= 0 and any(name.startswith(text[at:]) for name in MARKERS):
        return at
    return len(text)
