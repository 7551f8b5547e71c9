"""Published chat templates: the text of a plain sandbox, and of transformers; trust by character.

Templates are read from the folder of shared test data; none is part of this repository.
`KIZAMI_CONVERSATIONS` sets how many conversations each template renders, `KIZAMI_SEED` where they
start; conversation i of a seed is always the same. With transformers installed, its own renderer is
compared as well.

Trust is checked against a shadow: the same conversation is rendered in the plain sandbox once
more, with the letters of everything that a user could write moved into a private area of Unicode.
Where they turn up in that text is where text is untrusted.
"""

from __future__ import annotations

import copy
import gzip
import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kizami.errors import ChatValueError

jinja2 = pytest.importorskip("jinja2", reason="chat templates need jinja2 (the extra `jinja`)")

from kizami._templates import render_template  # noqa: E402
from kizami.chat.jinja import ChatTemplate  # noqa: E402

from tests.conversations import TEXTS, Conversations  # noqa: E402
from tests.plain_jinja import NOW, plain_template  # noqa: E402
from tests.shared import shared_path  # noqa: E402

CONVERSATIONS = int(os.environ.get("KIZAMI_CONVERSATIONS", "300"))
SEED = int(os.environ.get("KIZAMI_SEED", "1"))
MODELS = [
    "deepseek_v3", "gemma3", "glm-5.2", "gpt-oss", "kimi-k2.5", "llama3", "llama3_1", "qwen3",
]  # fmt: skip
# What looks like a control token: <|a|>, <a>, </a>, [A] and the like.
CONTROL = re.compile(r"</?[^<>\s{}'\"]+>|\[gMASK\]")
PRIVATE = 0xF0000
# Letters that JSON, HTML escapes, `trim` and `capitalize` treat alike, whatever they are.
MOVED = {
    code: PRIVATE + code
    for code in range(0x21, 0x10000)
    if not chr(code).isspace() and chr(code) not in '"\\\x7f'
}
BACK = {moved: code for code, moved in MOVED.items()}


class Model:
    """A template, compiled both ways."""

    def __init__(self, name: str) -> None:
        folder = shared_path("data", "tokenizers", name)
        self.source = (folder / "chat_template.jinja").read_text(encoding="utf-8")
        config = read_config(folder)
        self.ours = ChatTemplate.from_tokenizer_config(config, source=self.source, now=lambda: NOW)
        self.plain = plain_template(self.source)
        self.tokens = {
            key: value["content"] if isinstance(value, dict) else value
            for key, value in config.items()
            if key in ("bos_token", "eos_token", "pad_token", "unk_token") and value
        }
        self.written = sorted(set(CONTROL.findall(self.source)) | set(self.tokens.values()))

    def expected(self, messages: Any, options: dict[str, Any]) -> str:
        context = {"tools": None, "documents": None, **self.tokens, **options}
        return str(self.plain.render(messages=messages, **context))


def read_config(folder: Path) -> dict[str, Any]:
    for name, opener in (("tokenizer_config.json", open), ("tokenizer_config.json.gz", gzip.open)):
        if (folder / name).exists():
            with opener(folder / name, "rt", encoding="utf-8") as file:
                found: dict[str, Any] = json.load(file)
            return found
    return {"bos_token": "<s>", "eos_token": "</s>"}


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> Model:
    return Model(request.param)


def text_of(model: Model) -> Callable[[random.Random], str]:
    options = [*TEXTS, *model.written]
    return lambda rng: "".join(rng.choices(options, k=rng.choice([1, 1, 2, 3])))


def outcome(render: Callable[[], str]) -> tuple[str, str]:
    """The text, or the class and the message of the error that the template met."""
    try:
        return "text", render()
    except ChatValueError as error:
        cause = error.__cause__
        assert cause is not None
        if type(cause).__name__ == "RefusalError":
            return "TemplateError", str(cause)
        return type(cause).__name__, str(cause)
    except Exception as error:
        return type(error).__name__, str(error)


def compare(
    model: Model,
    render: Callable[[Any, dict[str, Any]], str],
    render_ours: Callable[[Any, dict[str, Any]], str] | None = None,
) -> dict[str, int]:
    render_ours = render_ours or (lambda messages, o: model.ours.render(messages, **o).text)
    counts = {"text": 0, "error": 0}
    for number in range(CONVERSATIONS):
        odd = (0.0, 0.0, 0.0, 0.03, 0.15)[number % 5]
        source = Conversations(
            SEED * 1_000_003 + number,
            text_of(model),
            odd,
            # A template that refuses all else is given more that it renders.
            alternating="must alternate" in model.source and number % 5 != 1,
        )
        messages, options = source.conversation()
        before = copy.deepcopy((messages, options))
        theirs = outcome(lambda m=messages, o=options: render(m, o))
        ours = outcome(lambda m=messages, o=options: render_ours(m, o))
        assert ours == theirs, f"conversation {number}: {messages!r} {options!r}"
        assert (messages, options) == before
        counts["text" if ours[0] == "text" else "error"] += 1
    print(counts)
    return counts


def test_text_and_errors_are_those_of_a_plain_sandbox(model: Model) -> None:
    counts = compare(model, model.expected)

    assert counts["text"] > CONVERSATIONS / 3


def test_text_and_errors_are_those_of_transformers(model: Model) -> None:
    utils = pytest.importorskip("transformers.utils.chat_template_utils")
    compiled = utils._compile_jinja_template(model.source)
    compiled.environment.globals["strftime_now"] = NOW.strftime

    def render(messages: Any, options: dict[str, Any]) -> str:
        context = {"tools": None, "documents": None, **model.tokens, **options}
        return str(compiled.render(messages=messages, **context))

    assert compare(model, render)["text"] > CONVERSATIONS / 3


def test_render_chat_gives_what_apply_chat_template_gives(model: Model) -> None:
    transformers = pytest.importorskip("transformers", "5")
    tokenizers = pytest.importorskip("tokenizers")
    utils = transformers.utils.chat_template_utils
    compiled = utils._compile_jinja_template(model.source)
    compiled.environment.globals["strftime_now"] = NOW.strftime
    # It needs a vocabulary, and none of it here.
    engine = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=engine, **model.tokens)

    def render(messages: Any, options: dict[str, Any]) -> str:
        text = theirs.apply_chat_template(
            messages, chat_template=model.source, tokenize=False, **options
        )
        return str(text)

    def ours(messages: Any, options: dict[str, Any]) -> str:
        # What render_chat calls with the template that came with a vocabulary.
        segments = render_template(model.ours, "model", messages, **options)
        return "".join(segment.text for segment in segments)

    assert compare(model, render, ours)["text"] > CONVERSATIONS / 3


def test_no_character_of_a_user_is_trusted_and_all_control_tokens_of_the_template_are(
    model: Model,
) -> None:
    followed = trusted_tokens = 0
    plain_text = text_of(model)
    for number in range(CONVERSATIONS):
        seed = SEED * 2_000_003 + number

        def planted(rng: random.Random) -> str:
            # Most texts are such that no template looks into them, so that both renderings agree.
            if rng.random() < 0.1:
                return f"\ue000{plain_text(rng)}\ue001"
            return f"\ue000{rng.choice(model.written)}\ue001"

        def shadow(rng: random.Random, planted: Callable[..., str] = planted) -> str:
            return planted(rng).translate(MOVED)

        messages, options = Conversations(seed, planted).conversation()
        try:
            rendered = model.ours.render(messages, **options)
        except ChatValueError:
            continue
        trust = [s.allow_special for s in rendered.segments for _ in s.text]
        text = rendered.text
        assert not rendered.untracked
        for found in re.finditer("\ue000[^\ue000\ue001]*\ue001", text):
            if "think>" in found[0]:
                continue  # templates take texts apart there, and put in a tag of their own
            assert not any(trust[found.start() : found.end()]), (number, found)
        try:
            shadowed = model.expected(*Conversations(seed, shadow).conversation())
        except jinja2.TemplateError:
            continue
        if shadowed.translate(BACK) != text:
            continue  # the template looked into a text, and took another way
        followed += 1
        users = [ord(character) >= PRIVATE for character in shadowed]
        assert not any(user and mark for user, mark in zip(users, trust, strict=True)), number
        for token in model.written:
            for found in re.finditer(re.escape(token), text):
                at = slice(found.start(), found.end())
                if not any(users[at]):
                    assert all(trust[at]), (number, found)
                    trusted_tokens += 1
    print(followed, trusted_tokens)
    assert followed > CONVERSATIONS / 5
    assert trusted_tokens > followed
