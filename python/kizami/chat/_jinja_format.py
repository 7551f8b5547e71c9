"""`%` and `str.format` with marks.

Python itself makes the text, so text and errors are exact. The pieces that it is made of are found
again beside it; if they do not add up to that text, the result is untrusted and the loss is noted.

Read next: `_jinja_marks`, which says what marks are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jinja2 import Environment
from jinja2.sandbox import SandboxedFormatter

from kizami.chat._jinja_marks import Marked, concat, derived, is_trusted, note, text_of, trusted

_SPEC = re.compile(
    r"%(?:\((?P<key>[^()]*)\))?(?P<how>[#0\- +]*\d*(?:\.\d+)?[hlL]?)(?P<kind>.)", re.S
)


def percent(template: Marked, values: Any) -> str:
    """`template % values`; strings put in by `%s` keep their marks.

    >>> from kizami.chat._jinja_marks import segments
    >>> segments(percent(trusted("<s>%s"), ("hi",)))
    [Segment(text='<s>', allow_special=True), Segment(text='hi', allow_special=False)]
    """
    text = str.__mod__(template, values)
    try:
        made = concat(_pieces(template, values))
    except (TypeError, ValueError, LookupError):
        made = ""
    if str.__str__(made) == text:
        return made
    note("%", template, values)
    return text


def _pieces(template: Marked, values: Any) -> Iterator[str]:
    # A mapping serves keys; a tuple serves one value after the other; anything else is one value.
    queue = iter(values if isinstance(values, tuple) else (values,))
    end = 0
    for spec in _SPEC.finditer(str.__str__(template)):
        yield template[end : spec.start()]
        end = spec.end()
        if spec["kind"] == "%":
            yield template[end - 1 : end]
            continue
        value = next(queue) if spec["key"] is None else values[spec["key"]]
        if spec["kind"] == "s" and not spec["how"]:
            yield text_of(value)
            continue
        piece = f"%{spec['how']}{spec['kind']}" % (value,)
        if isinstance(value, str):
            yield derived("%", piece, value, template[spec.start() : end])
        else:
            note("%", value)
            yield piece
    yield template[end:]


class MarkedFormatter(SandboxedFormatter):
    """The sandbox's `str.format`, which also remembers the pieces that it put together."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._pieces: list[str] = []
        self._literal_is_trusted = False

    def format_marked(
        self, template: Marked, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> str:
        """`template.format(*args, **kwargs)`; values put in as they are keep their marks.

        The template's own text must be of one trust; if it is not, it is untrusted and noted.
        """
        self._literal_is_trusted = is_trusted(template)
        text = self.vformat(str.__str__(template), args, kwargs)
        made = concat(self._pieces)
        if str.__str__(made) != text:
            note("format", template, args, kwargs)
            return text
        if not self._literal_is_trusted:
            note("format", template)
        return made

    def parse(self, format_string: str) -> Iterator[tuple[str, str | None, str | None, str | None]]:
        """Literal text and fields, in the order in which they are put together."""
        for piece in super().parse(format_string):
            if piece[0]:
                self._pieces.append(trusted(piece[0]) if self._literal_is_trusted else piece[0])
            yield piece

    def format_field(self, value: Any, format_spec: str) -> Any:
        """One value, formatted."""
        text = super().format_field(value, format_spec)
        # The specification has been formatted by itself, just before: it is no part of the text.
        left = len(format_spec)
        while left > 0:
            left -= len(self._pieces.pop())
        if not isinstance(value, str):
            note("format", value)
            self._pieces.append(text)
        elif str.__str__(value) == text:
            self._pieces.append(value)
        else:
            note("format", value)  # the specification may be a user's: it can name a fill
            self._pieces.append(text)
        return text
