"""Jinja's filters, with marks.

Filters of three kinds: those that hand over items, or call methods of the text itself, stay as they
are; those that put text together in another way are written anew here; of all others the result is
trusted if the text given was (and every other text), and else untrusted, with a note.

Read next: `_jinja_marks`, which says what marks are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from jinja2 import Environment, filters
from jinja2.nodes import EvalContext
from jinja2.utils import pass_eval_context
from markupsafe import Markup

from kizami.chat._jinja_json import tojson
from kizami.chat._jinja_marks import Marked, concat, derived, like, marked, note, text_of, trust_of

# What these give is an item of what they get, a number, or made by methods that keep marks.
_UNCHANGED = {
    "abs", "attr", "batch", "capitalize", "center", "count", "d", "default", "dictsort",
    "filesizeformat", "first", "float", "groupby", "int", "items", "last", "length", "list",
    "lower", "map", "max", "min", "random", "reject", "rejectattr", "reverse", "round", "select",
    "selectattr", "slice", "sort", "string", "sum", "trim", "truncate", "unique", "upper",
    "wordcount",
}  # fmt: skip

_OF_TEXT = {"capitalize", "center", "lower", "string", "trim", "upper"}


@pass_eval_context
def _join(
    context: EvalContext, value: Iterable[Any], d: str = "", attribute: str | int | None = None
) -> str:
    if context.autoescape:
        joined: str = _untracked("join", filters.sync_do_join)(context, value, d, attribute)
        return joined
    if attribute is not None:
        value = map(filters.make_attrgetter(context.environment, attribute), value)
    return marked(text_of(d)).join(map(text_of, value))


@pass_eval_context
def _replace(context: EvalContext, s: str, old: str, new: str, count: int | None = None) -> str:
    if context.autoescape:
        replaced: str = _untracked("replace", filters.do_replace)(context, s, old, new, count)
        return replaced
    limit = -1 if count is None else count
    return marked(text_of(s)).replace(text_of(old), text_of(new), limit)


def _format(value: str, *args: Any, **kwargs: Any) -> str:
    if type(value) is str:
        value = marked(value)
    return filters.do_format(value, *args, **kwargs)


def _indent(s: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    if not isinstance(s, str) or isinstance(s, Markup) or isinstance(width, Markup):
        return filters.do_indent(s, width, first, blank)
    indention = width if isinstance(width, str) else like(s, " " * width)
    lines = marked(concat((s, "\n"))).splitlines(keepends=True)
    pieces: list[str] = [indention] if first else []
    for index, line in enumerate(lines):
        bare = line.splitlines()[0]
        if index and (bare or blank):
            pieces.append(indention)
        pieces.append(bare)
        if index + 1 < len(lines):  # every line end becomes "\n", and keeps its mark
            pieces.append(Marked("\n", trust_of(line[len(bare) :])[:1]))
    return concat(pieces)


def _title(s: Any) -> str:
    given = text_of(s)
    text = filters.do_title(given)
    if len(text) == len(given):
        return Marked(text, trust_of(given))
    return derived("title", text, given)


def _of_text(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def filtered(value: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(value, str):
            note("str", value)  # the filter will make text of it
        return original(value, *args, **kwargs)

    return filtered


def _untracked(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)  # also takes over what jinja is to pass as the first argument
    def filtered(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        operands = [*args, *kwargs.values()]
        texts = [operand for operand in operands if isinstance(operand, str)]
        given = next((x for x in args if not isinstance(x, (Environment, EvalContext))), None)
        if (
            type(result) is str
            and isinstance(given, str)
            and not any(isinstance(operand, (list, tuple, dict)) for operand in operands)
        ):
            return derived(name, result, *texts)
        note(name, *operands)
        return result

    return filtered


def marking_filters(original: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Jinja's table of filters, made to keep marks.

    >>> from jinja2.filters import FILTERS
    >>> marking_filters(FILTERS)["indent"]("a")
    'a'
    """
    table = {
        name: call if name in _UNCHANGED else _untracked(name, call)
        for name, call in original.items()
    }
    table |= {name: _of_text(table[name]) for name in _OF_TEXT}
    table |= {"format": _format, "indent": _indent, "join": _join, "replace": _replace}
    return table | {"title": _title, "tojson": tojson}
