"""The filter `tojson` of chat templates, with marks.

Python's `json` makes the text, so text and errors are exact. Only where a value holds text that the
template wrote is the text put together once more, by hand; if the two differ, it is untrusted and
the loss is noted. Characters of JSON itself are untrusted.

Read next: `_jinja_marks`, which says what marks are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from kizami.chat._jinja_marks import Marked, concat, is_trusted, note, noting, trust_of, trusted


def tojson(
    x: Any,
    ensure_ascii: bool = False,
    indent: Any = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    """`x` as JSON, without the escapes for HTML that jinja's own filter makes.

    >>> from kizami.chat._jinja_marks import segments
    >>> segments(tojson({"name": trusted("<s>")}))
    [Segment(text='{"name": "', allow_special=False), Segment(text='<s>', allow_special=True),
     Segment(text='"}', allow_special=False)]
    """
    options = {"ensure_ascii": ensure_ascii, "separators": separators, "sort_keys": sort_keys}
    text = json.dumps(x, indent=indent, **options)
    with noting() as notes:
        note("tojson", x)
    if not notes:
        return text
    try:
        made = concat(_Writer(ensure_ascii, indent, separators, sort_keys).value(x, 0))
    except (TypeError, ValueError, LookupError):
        made = ""
    if str.__str__(made) == text:
        return trusted(text) if is_trusted(x) else made
    note("tojson", x)
    return text


class _Writer:
    """Pieces of JSON text. It need not know every odd case: `tojson` checks the result."""

    def __init__(self, ensure_ascii: bool, indent: Any, separators: Any, sort_keys: bool) -> None:
        self._ensure_ascii = ensure_ascii
        self._sort_keys = sort_keys
        self._step = " " * indent if isinstance(indent, int) else indent
        default = (", ", ": ") if indent is None else (",", ": ")
        comma, colon = separators or default
        self._comma: str = comma
        self._colon: str = colon

    def value(self, value: Any, depth: int) -> Iterator[str]:
        if isinstance(value, str):
            yield from self._string(value)
        elif isinstance(value, (list, tuple)) and value:
            yield from self._items("[", ([item] for item in value), "]", depth)
        elif isinstance(value, dict) and value:
            pairs = sorted(value.items()) if self._sort_keys else value.items()
            yield from self._items("{", pairs, "}", depth)
        else:
            yield json.dumps(value)

    def _items(self, opening: str, items: Any, closing: str, depth: int) -> Iterator[str]:
        yield opening
        comma = ""
        for *key, value in items:
            yield comma + self._line(depth + 1)
            comma = self._comma
            if key:
                name = key[0] if isinstance(key[0], str) else json.dumps(key[0])
                yield from self._string(name)
                yield self._colon
            yield from self.value(value, depth + 1)
        yield self._line(depth) + closing

    def _line(self, depth: int) -> str:
        return "" if self._step is None else "\n" + self._step * depth

    def _string(self, text: str) -> Iterator[str]:
        yield '"'
        runs = groupby(zip(str.__str__(text), trust_of(text), strict=True), lambda pair: pair[1])
        for trust, run in runs:
            bare = "".join(character for character, _ in run)
            escaped = json.dumps(bare, ensure_ascii=self._ensure_ascii)[1:-1]
            yield Marked(escaped, bytes((trust,)) * len(escaped))
        yield '"'
