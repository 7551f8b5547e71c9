"""The environment in which chat templates run: the one that transformers sets up, with marks.

Every literal of a template becomes `trusted(...)` when the template is compiled; what it is given
stays as it is, and a plain `str` is untrusted. Wherever jinja would make a plain `str` of text (in
output, in `~`, in calls of text methods) this environment keeps the marks.

Templates are code from elsewhere: they run in jinja's immutable sandbox, see plain data alone, and
cannot reach attributes that begin with an underscore, the marks among them.

Read next: `_jinja_marks` for what marks are, `jinja` for who calls this.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import update_wrapper
from types import BuiltinMethodType, MethodType
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from markupsafe import escape

from kizami.chat._jinja_filters import marking_filters
from kizami.chat._jinja_format import MarkedFormatter
from kizami.chat._jinja_marks import (
    Marked,
    concat,
    is_trusted,
    marked,
    note,
    text_of,
    trusted,
)


class RefusalError(TemplateError):
    """What `raise_exception` raises: the template refuses what it was given."""


class _Generator(CodeGenerator):
    """Compiles literals to trusted text, and output to calls that keep marks."""

    def _output_const_repr(self, group: Any) -> str:
        return f"environment.trusted({''.join(group)!r})"

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        if frame.eval_ctx.volatile:
            self.write("(environment.escaped if context.eval_ctx.autoescape else environment.text)")
        else:
            self.write(f"environment.{'escaped' if frame.eval_ctx.autoescape else 'text'}")
        self.write("(")

    def visit_Const(self, node: nodes.Const, frame: Frame) -> None:  # noqa: N802
        if isinstance(node.value, str):
            self.write(f"environment.trusted({node.value!r})")
        else:
            super().visit_Const(node, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        if frame.eval_ctx.volatile or frame.eval_ctx.autoescape:
            super().visit_Concat(node, frame)
            return
        self.write("environment.joined((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class _Generation(Extension):
    """The block `{% generation %}`, which marks what a model wrote; it changes no text.

    It is a call of a macro, as in transformers: names set inside are not seen outside.
    """

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller: Macro) -> str:
        return caller()


class _Dict:
    """`dict` for templates, without the attributes of the class."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args, **kwargs)


class _Namespace(Namespace):
    """`namespace` for templates, without names that begin with an underscore."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, *rest = args  # not a parameter: a template may call `namespace(self=...)`
        values = dict(*rest, **kwargs)
        for name in values:
            _check_name(name)
        Namespace.__init__(self, values)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        Namespace.__setitem__(self, name, value)


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace of a chat template cannot hold the name {name!r}")


class MarkingEnvironment(ImmutableSandboxedEnvironment):
    """Transformers' environment for chat templates, whose templates give marked text."""

    code_generator_class = _Generator
    concat = staticmethod(concat)
    intercepted_binops = frozenset("%")

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, "jinja2.ext.loopcontrols"],
            # Folded constants can be lists and dicts, whose text would not be marked.
            optimized=False,
        )
        self._literals: dict[str, Marked] = {}
        self.filters = marking_filters(self.filters)
        self.globals |= {
            "dict": _Dict(),
            "namespace": _Namespace,
            "raise_exception": _raise_exception,
            "strftime_now": lambda format: _dated(now(), format),
        }

    def trusted(self, literal: str) -> Marked:
        """A literal of a template; each is made once."""
        found = self._literals.get(literal)
        if found is None:
            found = self._literals.setdefault(literal, trusted(literal))
        return found

    def uses_autoescape(self, source: str) -> bool:
        """Whether the template has `{% autoescape %}`, in which marks get lost."""
        return self.parse(source).find(nodes.EvalContextModifier) is not None

    def text(self, value: Any) -> str:
        """What `{{ value }}` writes."""
        return text_of(value)

    def escaped(self, value: Any) -> str:
        """What `{{ value }}` writes inside `{% autoescape true %}`."""
        note("autoescape", value)
        return escape(value)

    def joined(self, values: tuple[Any, ...]) -> str:
        """What `a ~ b` gives."""
        return concat(map(text_of, values))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """`left % right`: plain text on the left may take in trusted text from the right."""
        if type(left) is str:
            left = marked(left)
        return super().call_binop(context, operator, left, right)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """`obj[argument]`; methods of plain text may be given trusted text."""
        return super().getitem(marked(obj) if type(obj) is str else obj, argument)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """`obj.attribute`; methods of plain text may be given trusted text."""
        return super().getattr(marked(obj) if type(obj) is str else obj, attribute)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """`str.format` and `format_map` in the sandbox."""
        if (
            not isinstance(value, (MethodType, BuiltinMethodType))
            or not isinstance(value.__self__, Marked)
            or value.__name__ not in ("format", "format_map")
        ):
            return super().wrap_str_format(value)
        template: Marked = value.__self__

        def formatted(*args: Any, **kwargs: Any) -> str:
            return MarkedFormatter(self).format_marked(template, args, kwargs)

        def formatted_map(mapping: Any, /) -> str:
            return MarkedFormatter(self).format_marked(template, (), mapping)

        chosen = formatted if value.__name__ == "format" else formatted_map
        return update_wrapper(chosen, value)


def _raise_exception(message: Any) -> None:
    raise RefusalError(message)


def _dated(now: datetime, format: str) -> str:
    text = now.strftime(format)
    return trusted(text) if is_trusted(format) else text
