"""Chat templates in Jinja, as models publish them -> typed segments.

`ChatTemplate` runs the template as transformers does, in the same sandbox with the same helpers,
and follows every character from where it was written to where it ends up. What the template and
the tokenizer wrote may name control tokens; what came from messages, tools, documents and options
may not, whatever it spells.

The text is that of transformers. The ids are not always those of its flat encoding: segments are
encoded one by one, so nothing merges across a border between trusted and untrusted text.

Needs jinja2 (the extra `jinja`), and asks for it when a template is made.

Read next: `_jinja_engine` for the environment, `docs/guides/chat-templates.md` for use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kizami.chat._k3_faults import show
from kizami.errors import (
    ChatTypeError,
    ChatValueError,
    InputTypeError,
    InvalidValueError,
    MissingExtraError,
)
from kizami.segments import Segment

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["ChatTemplate", "Rendered", "normalized"]

_NAMED_TOKENS: Final = (
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
)


_REASONING: Final = ("reasoning_content", "thinking", "reasoning")


def normalized(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages as `apply_chat_template` of transformers 5 hands them to a template.

    Keys whose value is None are left out, and the reasoning of a message is given under both names
    that templates read. `Tokenizer.render_chat` does so, too. `ChatTemplate.render` does neither:
    transformers 4, and engines that render templates themselves, do not.

    Raises:
        ChatTypeError: As `ChatTemplate.render`.

    >>> normalized([{"role": "assistant", "content": None, "reasoning": "Hm."}])
    [{'thinking': 'Hm.', 'role': 'assistant', 'reasoning': 'Hm.', 'reasoning_content': 'Hm.'}]
    """
    from kizami.chat._jinja_data import plain

    _check_dicts("messages", messages)
    found = []
    for message in plain(list(messages)):
        kept = {key: value for key, value in message.items() if value is not None}
        names = [name for name in _REASONING if name in kept]
        if names:
            reasoning = kept[names[0]]
            kept = {"thinking": reasoning, **kept, "reasoning_content": reasoning}
        found.append(kept)
    return found


class Rendered(NamedTuple):
    """A rendered conversation.

    Attributes:
        segments: In prompt order; neighbours differ in trust, and none is empty.
        untracked: Names of what the template did through which trust could not be followed, as in
            `("wordwrap",)`. Such text is untrusted: a control token that the template wrote into it
            stays ordinary text. Empty: every character was followed.
    """

    segments: list[Segment]
    untracked: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole prompt as one text, which is what transformers renders."""
        return "".join(segment.text for segment in self.segments)


class ChatTemplate:
    """A chat template, or several with names, and the control tokens of its tokenizer.

    Immutable and thread-safe; compiled when it is made.
    """

    def __init__(
        self,
        source: str | Mapping[str, str],
        *,
        special_tokens: Mapping[str, str] | None = None,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        """Make a template from its text.

        Args:
            source: The text, or a mapping of names to texts. Of several, `tool_use` is taken when
                there are tools, and `default` otherwise.
            special_tokens: What the tokenizer calls its tokens, as in `{"bos_token": "<s>"}`. The
                template sees each under its name, as trusted text.
            now: The clock of `strftime_now`; give one of your own for prompts that do not change
                from day to day.

        Raises:
            MissingExtraError: jinja2 is not installed.
            InputTypeError: What should be a text is none.
            InvalidValueError: A text is no valid template; `.line` (1-based) where one is at fault.

        >>> template = ChatTemplate("{{ bos_token }}Hi!", special_tokens={"bos_token": "<s>"})
        >>> template.render([]).segments
        [Segment(text='<s>Hi!', allow_special=True)]
        """
        try:
            from kizami.chat import _jinja_engine as engine
        except ImportError as error:
            raise MissingExtraError(
                f"chat templates need jinja2 ({error}); pip install 'kizami[jinja]'", extra="jinja"
            ) from None
        sources = {"default": source} if isinstance(source, str) else source
        _check_texts("source", sources)
        _check_texts("special_tokens", special_tokens or {})
        environment = engine.MarkingEnvironment(now)
        self._templates = {name: _compiled(environment, sources[name]) for name in sources}
        self._untracked = {
            name: ("autoescape",) if environment.uses_autoescape(sources[name]) else ()
            for name in sources
        }
        self._special_tokens = {
            name: environment.trusted(token) for name, token in (special_tokens or {}).items()
        }

    @classmethod
    def from_tokenizer_config(
        cls,
        config: Mapping[str, Any],
        *,
        source: str | None = None,
        now: Callable[[], datetime] = datetime.now,
    ) -> ChatTemplate:
        """Make a template from what a `tokenizer_config.json` says.

        Args:
            config: The parsed file. Read are `chat_template` (a text, or a list of dicts with
                `name` and `template`), the named tokens (`bos_token` and so on, each a text or a
                dict with `content`) and the mapping `extra_special_tokens`.
            source: The text of `chat_template.jinja`, where a model has it in a file of its own.
            now: As for `ChatTemplate`.

        Raises:
            InvalidValueError: There is no template, or it is not valid.
            MissingExtraError: jinja2 is not installed.

        >>> config = {"chat_template": "{{ eos_token }}", "eos_token": {"content": "</s>"}}
        >>> ChatTemplate.from_tokenizer_config(config).render([]).text
        '</s>'
        """
        found: Any = source if source is not None else config.get("chat_template")
        if isinstance(found, list):
            try:
                found = {item["name"]: item["template"] for item in found}
            except (TypeError, KeyError):
                raise InvalidValueError(
                    "`chat_template` of the tokenizer config is a list; "
                    "each item must be an object with `name` and `template`"
                ) from None
        if not found:
            raise InvalidValueError(
                "the tokenizer config has no `chat_template`; "
                "pass the text of `chat_template.jinja` as `source`"
            )
        extra = config.get("extra_special_tokens")
        named = {name: config.get(name) for name in _NAMED_TOKENS}
        named |= extra if isinstance(extra, dict) else {}
        tokens: dict[str, Any] = {
            name: token.get("content") if isinstance(token, Mapping) else token
            for name, token in named.items()
            if token is not None
        }
        try:
            return cls(found, special_tokens=tokens, now=now)
        except InputTypeError as error:
            raise InvalidValueError(f"the tokenizer config is damaged: {error}") from None

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **options: Any,
    ) -> Rendered:
        """Render a conversation.

        Args:
            messages: Dicts, with the keys that the template reads. They are taken as they are: a
                key whose value is None is there, and None.
            tools: Dicts in the format that the template reads, most often OpenAI's.
            documents: Dicts with `title` and `text`, for templates that read them.
            add_generation_prompt: End with the start of the reply, where the template can.
            options: Whatever else the template reads, such as `enable_thinking=False`. An option
                named like a special token takes its place, and is untrusted.

        Returns:
            Segments and what could not be followed; see `Rendered`.

        Raises:
            ChatTypeError: `messages`, `tools` or `documents` is not a list of dicts;
                `.message_index` where one message is at fault.
            ChatValueError: The template refuses the conversation (`.refusal` is what it says), or
                fails on it.

        Cost: a copy of the data without its text, and one byte for each character of the prompt.
        Law: text from `messages`, `tools`, `documents` and `options` is in segments with
        `allow_special=False` only.

        >>> template = ChatTemplate("{% for m in messages %}<s>{{ m.content }}</s>{% endfor %}")
        >>> template.render([{"role": "user", "content": "</s> hi"}]).segments
        [Segment(text='<s>', allow_special=True), Segment(text='</s> hi', allow_special=False),
         Segment(text='</s>', allow_special=True)]
        """
        from kizami.chat import _jinja_engine as engine
        from kizami.chat._jinja_data import plain
        from kizami.chat._jinja_marks import noting, segments

        _check_dicts("messages", messages)
        for name, given in (("tools", tools), ("documents", documents)):
            if given is not None:
                _check_dicts(name, given)
        name = self._chosen(tools)
        try:
            given = plain(
                {
                    **options,
                    "messages": list(messages),
                    "tools": None if tools is None else list(tools),
                    "documents": None if documents is None else list(documents),
                    "add_generation_prompt": add_generation_prompt,
                }
            )
            with noting() as notes:
                text = self._templates[name].render({**self._special_tokens, **given})
        except engine.RefusalError as error:
            problem = f"the chat template refuses this conversation: {error.message}"
            raise ChatValueError(problem, refusal=error.message) from error
        except MemoryError:
            raise
        except Exception as error:  # a template can fail on its data in every way that Python can
            what = f"{type(error).__name__}: {error}"
            raise ChatValueError(f"the chat template fails on this conversation: {what}") from error
        return Rendered(segments(text), tuple(dict.fromkeys([*self._untracked[name], *notes])))

    def _chosen(self, tools: Any) -> str:
        if tools is not None and "tool_use" in self._templates:
            return "tool_use"
        if "default" in self._templates:
            return "default"
        names = ", ".join(map(repr, sorted(self._templates)))
        raise ChatValueError(
            f"none of the templates {names} is for a conversation without tools; "
            "name the one to take 'default'"
        )


def _compiled(environment: Any, source: str) -> Template:
    from jinja2 import TemplateSyntaxError

    try:
        template: Template = environment.from_string(source)
    except TemplateSyntaxError as error:
        raise InvalidValueError(
            f"line {error.lineno} of the chat template: {error.message}; correct the template",
            line=error.lineno,
        ) from error
    return template


def _check_texts(name: str, given: Any) -> None:
    if not isinstance(given, Mapping):
        wanted = "a text, or a mapping of names to texts" if name == "source" else "a mapping"
        raise InputTypeError(f"`{name}` is {show(given)}; give {wanted}")
    for key, text in given.items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise InputTypeError(f"`{name}` has {show(text)} under {key!r}; give a text")


def _check_dicts(name: str, given: Any) -> None:
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Sequence):
        raise ChatTypeError(f"`{name}` is {show(given)}; give a list of dicts")
    for index, item in enumerate(given):
        if isinstance(item, Mapping) or hasattr(item, "model_dump"):
            continue
        facts = {"message_index": index} if name == "messages" else {}
        hint = "give a dict"
        if callable(item):
            hint = "give its description as a dict"
        raise ChatTypeError(f"`{name}[{index}]` is {show(item)}; {hint}", **facts)
