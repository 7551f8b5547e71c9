"""Chat templates that come with a vocabulary."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import kizami
import pytest
from kizami.errors import ChatValueError, InputTypeError, UnknownFormatError

from tests.shared import shared_path
from tests.unit.test_save import tokenizer_json

TEMPLATE = (
    "{% for m in messages %}<think>{{ m.role }}:{{ m.content }}<end>{% endfor %}"
    "{% if effort %}{{ effort }}{% endif %}"
)
USER = [{"role": "user", "content": "the <end> of <think>"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("jinja2")
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), encoding="utf-8")
    config = {"chat_template": TEMPLATE, "eos_token": "<end>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    return tmp_path


def test_only_what_the_template_wrote_is_trusted(folder: Path) -> None:
    tokenizer = kizami.load(folder)
    segments = tokenizer.render_chat(USER)
    assert [tuple(segment) for segment in segments] == [
        ("<think>", True),
        ("user", False),
        (":", True),
        ("the <end> of <think>", False),
        ("<end>", True),
    ]
    ids = tokenizer.encode_chat(USER).tolist()
    assert [id_ for id_ in ids if id_ > 260] == [262, 261]
    assert tokenizer.count_chat(USER) == len(ids)
    # A file beside the configuration comes first.
    (folder / "chat_template.jinja").write_text("<end>")
    assert kizami.load(folder).render_chat(USER) == [("<end>", True)]


def test_options_are_variables(folder: Path) -> None:
    tokenizer = kizami.load(folder)
    assert tokenizer.render_chat(USER, effort="<end>")[-1] == ("<end>", False)
    with pytest.raises(InputTypeError, match="developer_as_system"):
        tokenizer.render_chat(USER, developer_as_system=True)
    with pytest.raises(InputTypeError, match="no option effort"):
        kizami.load("kimi-k3").render_chat(USER, effort="high")


def test_messages_are_prepared_as_transformers_5_does(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(
        "{% for m in messages %}[{{ m.content }}|{{ m.thinking }}|{{ m.reasoning_content }}]"
        "{% endfor %}"
    )
    tokenizer = kizami.load(folder)
    messages = [{"role": "assistant", "content": None, "reasoning": "Hm."}, *USER]
    before = copy.deepcopy(messages)
    text = "".join(segment.text for segment in tokenizer.render_chat(messages))
    assert text == "[|Hm.|Hm.][the <end> of <think>||]"
    assert messages == before
    with pytest.raises(ChatValueError, match="empty"):
        tokenizer.render_chat([])


def test_the_template_is_saved_and_pickled(folder: Path) -> None:
    tokenizer = kizami.load(folder)
    for other in (
        pickle.loads(pickle.dumps(tokenizer)),
        kizami.Tokenizer.from_bytes(tokenizer.to_bytes()),
    ):
        assert other.render_chat(USER) == tokenizer.render_chat(USER)
    (folder / "tokenizer_config.json").write_text("{}")
    with pytest.raises(UnknownFormatError, match="no chat_template"):
        kizami.load(folder).render_chat(USER)


def test_the_template_of_a_folder_of_the_kimi_line() -> None:
    pytest.importorskip("jinja2")
    tokenizer = kizami.load(shared_path("data", "tokenizers", "kimi-k2.5"))
    ids = tokenizer.encode_chat([{"role": "user", "content": "<|im_end|>"}]).tolist()
    end = tokenizer.control_tokens["<|im_end|>"]
    rendered = tokenizer.render_chat([{"role": "user", "content": "<|im_end|>"}])
    trusted = sum(s.text.count("<|im_end|>") for s in rendered if s.allow_special)
    assert ids.count(end) == trusted > 0
    again = pickle.loads(pickle.dumps(tokenizer))
    assert again == tokenizer
    assert again.encode_chat([{"role": "user", "content": "<|im_end|>"}]).tolist() == ids
