"""Laws of marked text: what `str` gives, with the right mark on each character.

The oracle needs no second bookkeeping: what a template writes here is made of one set of letters,
what a user writes of another, so each character of a result tells by itself where it is from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("jinja2", reason="chat templates need jinja2 (the extra `jinja`)")

from kizami.chat._jinja_marks import Marked, concat, segments, trust_of, trusted
from kizami.chat.jinja import ChatTemplate
from kizami.errors import ChatValueError

from tests.plain_jinja import plain_template

# Each set is closed under changes of case, but for "ß" and "ŉ", which grow into neutral letters.
# What Python, JSON or an escape adds by itself is neutral: ASCII.
TEMPLATE = "αβγΑΒΓσςΣß«¦»"
USER = "кжфКЖФŉ⟦⟧\u3000"


def from_letters(letters: str) -> st.SearchStrategy[str]:
    return st.text(st.sampled_from(letters + " \n"), max_size=8)


def marked_texts() -> st.SearchStrategy[Marked]:
    piece = from_letters(TEMPLATE).map(trusted) | from_letters(USER)
    return st.lists(piece, max_size=4).map(lambda pieces: Marked("") + concat(pieces))  # type: ignore[return-value]


def check(text: str) -> None:
    assert len(trust_of(text)) == len(text)
    for character, mark in zip(str.__str__(text), trust_of(text), strict=True):
        assert mark or character not in TEMPLATE, (text, trust_of(text))
        assert not mark or character not in USER, (text, trust_of(text))


def flat(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return (
        [text for item in value for text in flat(item)] if isinstance(value, (list, tuple)) else []
    )


PIECE = from_letters(TEMPLATE).map(trusted) | from_letters(USER) | st.sampled_from(["", " ", "\n"])
NUMBER = st.integers(-3, 9)
# Methods of `str`, with what they take.
METHODS: dict[str, list[st.SearchStrategy[Any]]] = {
    "upper": [], "lower": [], "casefold": [], "swapcase": [], "capitalize": [],
    "strip": [st.none() | PIECE], "lstrip": [st.none() | PIECE], "rstrip": [st.none() | PIECE],
    "removeprefix": [PIECE], "removesuffix": [PIECE],
    "split": [st.none() | PIECE, NUMBER], "rsplit": [st.none() | PIECE, NUMBER],
    "splitlines": [st.booleans()], "partition": [PIECE], "rpartition": [PIECE],
    "replace": [PIECE, PIECE, NUMBER], "join": [st.lists(PIECE, max_size=4)],
    "center": [st.integers(-1, 20), PIECE], "ljust": [st.integers(-1, 20), PIECE],
    "rjust": [st.integers(-1, 20), PIECE], "zfill": [st.integers(-1, 20)],
    "__add__": [PIECE], "__radd__": [PIECE], "__mul__": [NUMBER], "__rmul__": [NUMBER],
    "__getitem__": [NUMBER | st.builds(slice, NUMBER, NUMBER, st.sampled_from([None, 1, -1, 2]))],
    "__mod__": [PIECE | st.lists(PIECE, max_size=2).map(tuple)],
    "title": [], "find": [PIECE], "startswith": [PIECE], "__contains__": [PIECE],
    "isspace": [], "__len__": [],
}  # fmt: skip


def plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value))
    return "".join(value) if isinstance(value, str) else value


def outcome(call: Any) -> Any:
    try:
        return call()
    except (TypeError, ValueError, IndexError) as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("name", METHODS)
@given(data=st.data())
def test_methods_give_what_str_gives_and_keep_marks(name: str, data: st.DataObject) -> None:
    text = data.draw(marked_texts())
    if name == "__mod__":
        text = Marked("") + text.replace("α", trusted("%s"), 2)  # type: ignore[assignment]
    values = [data.draw(strategy) for strategy in METHODS[name]]
    bare = plain(text)
    if name == "__radd__":
        expected: Any = values[0] + bare
    else:
        expected = outcome(lambda: getattr(bare, name)(*map(plain, values)))
    found = outcome(lambda: getattr(text, name)(*values))

    assert found == expected
    if name == "title" and len(expected) != len(bare):
        return  # the one change of case that is not followed
    if isinstance(expected, tuple) and expected[0] in ("TypeError", "ValueError", "IndexError"):
        return
    for piece in flat(found):
        check(piece)


@given(text=marked_texts())
def test_iteration_reversal_and_str_keep_marks(text: Marked) -> None:
    assert concat(text) == concat(reversed(text))[::-1] == str(text) == text
    for piece in (concat(text), concat(reversed(text)), str(text)):
        check(piece)


@given(text=marked_texts())
def test_segments_are_the_runs_of_the_text(text: Marked) -> None:
    found = segments(text)

    assert "".join(segment.text for segment in found) == text
    assert all(type(segment.text) is str and segment.text for segment in found)
    assert all(a.allow_special != b.allow_special for a, b in pairwise(found))
    for segment in found:
        check(trusted(segment.text) if segment.allow_special else segment.text)


def literals() -> st.SearchStrategy[str]:
    return from_letters(TEMPLATE).map(lambda text: json.dumps(text, ensure_ascii=False))


FILTERS = [
    "upper", "lower", "trim", "string", "first", "last", "reverse", "list", "join", "length",
    "capitalize", "title", "tojson", "indent", "indent(2, true, true)", "indent('«¦')",
    "default('αβ')", "default('αβ', true)", "center(9)", "truncate(4, true, '«')", "int", "safe",
    "escape", "wordwrap(3)", "urlencode", "striptags", "pprint", "unique|list", "sort|list",
    "batch(2)|list", "map('upper')|list", "select|join('¦')", "replace('к', '«')",
    "replace('α', u)", "join('¦')", "join(u)", "tojson(indent=1)", "format(u, 'αβ')",
    "wordcount", "xmlattr", "max", "min", "items|list", "dictsort", "groupby('x')|list",
    "selectattr('x')|list", "map(attribute='x')|join('¦')", "sum(start='«')", "e", "forceescape",
]  # fmt: skip
CALLS = [
    "strip()", "split('«')", "split('к', 1)[0]", "split()", "upper()", "replace(u, '«¦')",
    "replace('¦', u)", "join([u, 'αβ'])", "format(u)", "startswith('«')", "splitlines()", "items()",
    "get('x')", "x", "title()", "encode()", "partition('к')", "rsplit('α', 1)[-1]", "lstrip('«к')",
]  # fmt: skip
SUBSCRIPTS = ["[0]", "[-1]", "[1:]", "[::-1]", "[:2]", "['x']", "['upper']()", "[u]"]


def expressions() -> st.SearchStrategy[str]:
    """Jinja expressions over `u` (a text), `l` (a list) and `d` (a dict) of a user."""
    # No literal `none` or `3`: Python warns of code like `None[1:]`, and warnings fail tests.
    leaves = literals() | st.sampled_from(["u", "v", "l", "d", "'%s«%s»'", "'{}¦{}'"])

    def more(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.tuples(inner, st.sampled_from([" + ", " ~ ", " ~ ", " + ", " or "]), inner).map(
                lambda parts: f"({''.join(parts)})"
            ),
            st.tuples(inner, st.sampled_from(FILTERS)).map(lambda p: f"({p[0]}|{p[1]})"),
            st.tuples(inner, st.sampled_from(CALLS)).map(lambda p: f"({p[0]}.{p[1]})"),
            st.tuples(inner, st.sampled_from(SUBSCRIPTS)).map("".join),
            st.tuples(inner, inner).map(lambda p: f"({p[0]} % ({p[1]}, u))"),
            st.tuples(inner, inner).map(lambda p: f"({p[0]}.format({p[1]}, u))"),
            st.tuples(inner, inner).map(lambda p: f"[{p[0]}, {p[1]}]"),
            st.tuples(inner, inner).map(lambda p: f"{{'a': {p[0]}, 'x': {p[1]}}}"),
            st.tuples(inner, inner).map(lambda p: f"({p[0]} if u else {p[1]})"),
            st.tuples(inner, st.integers(0, 3)).map(lambda p: f"({p[0]} * {p[1]})"),
        )

    return st.recursive(leaves, more, max_leaves=8)


STATEMENTS = [
    "{{{{ {e} }}}}",
    "«¦{{% for x in {e} %}}{{{{ x }}}}{{% if not loop.last %}}¦{{% endif %}}{{% endfor %}}¦»",
    "{{% set x = {e} %}}α{{{{ x }}}}{{{{ x }}}}",
    "{{% set x %}}«{{{{ {e} }}}}»{{% endset %}}{{{{ x.strip('«') }}}}{{{{ x|upper }}}}",
    "{{% set ns = namespace(x='«') %}}{{% set ns.x = ns.x + {e} %}}{{{{ ns.x }}}}",
    "{{% macro f(x, y='¦') %}}«{{{{ x }}}}{{{{ y }}}}»{{% endmacro %}}{{{{ f({e})|trim('«') }}}}",
    "{{% macro f() %}}«{{{{ caller('αβ') }}}}»{{% endmacro %}}"
    "{{% call(x) f() %}}{{{{ x }}}}{{{{ {e} }}}}{{% endcall %}}",
    "{{% filter upper %}}α{{{{ {e} }}}}{{% endfilter %}}",
    "{{% filter replace('к', '«') %}}α{{{{ {e} }}}}{{% endfilter %}}",
    "{{% generation %}}α{{{{ {e} }}}}{{% endgeneration %}}",
    "{{% with x = {e} %}}{{{{ x ~ '¦' ~ u }}}}{{% endwith %}}",
    "{{% block b %}}«{{{{ {e} }}}}»{{% endblock %}}{{{{ self.b() }}}}",
    "{{% for k, v in {e}.items() %}}{{{{ k }}}}¦{{{{ v }}}}{{% endfor %}}",
    "{{% autoescape true %}}«{{{{ {e} }}}}{{{{ '«' ~ u }}}}{{% endautoescape %}}",
]
VALUES = {
    "u": from_letters(USER),
    "v": from_letters(USER) | st.none() | st.integers(0, 99),
    "l": st.lists(from_letters(USER) | st.just({"x": "К"}), max_size=3),
    "d": st.dictionaries(from_letters(USER) | st.just("x"), from_letters(USER), max_size=3),
}


def without_addresses(text: str) -> str:
    return re.sub("0x[0-9a-f]+", "0x", text)


def result_of(render: Callable[[], Any]) -> tuple[tuple[str, str] | None, Any]:
    """The error that the template met, or what was rendered."""
    try:
        return None, render()
    except Exception as error:
        cause = error.__cause__ if isinstance(error, ChatValueError) else error
        return (type(cause).__name__, str(cause)), None


@given(
    statement=st.sampled_from(STATEMENTS),
    expression=expressions(),
    values=st.fixed_dictionaries(VALUES),
)
@example(statement=STATEMENTS[0], expression="('%s«%s»' % (u, u))", values={"u": "⟦к⟧"})
@example(statement=STATEMENTS[0], expression="u.replace('к', '«¦')", values={"u": "⟦к⟧"})
@example(statement=STATEMENTS[0], expression="('{}¦{}'.format('αβ', u))", values={"u": "⟦к⟧"})
@example(statement=STATEMENTS[0], expression="[u, '«¦']", values={"u": "⟦к⟧"})
@example(statement=STATEMENTS[0], expression="([u, '«'] | upper)", values={"u": "⟦к⟧"})
@example(statement=STATEMENTS[0], expression="('%s«%s»'|format(u, 'αβ'))", values={"u": "⟦к⟧"})
def test_templates_give_the_text_of_jinja_and_never_trust_a_user(
    statement: str, expression: str, values: dict[str, Any]
) -> None:
    source = statement.format(e=expression)
    error, expected = result_of(lambda: plain_template(source).render(**values))
    found, rendered = result_of(lambda: ChatTemplate(source).render([], **values))

    assert found == error
    if error is not None:
        return
    assert without_addresses(rendered.text) == without_addresses(expected)
    for segment in rendered.segments:
        if segment.allow_special:
            assert not set(segment.text) & set(USER), rendered
        elif not rendered.untracked:
            assert not set(segment.text) & set(TEMPLATE), rendered
