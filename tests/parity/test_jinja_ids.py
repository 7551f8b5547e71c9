"""From a published template to ids: what a user types never becomes a control token.

Every text of a conversation is the name of a control token, drawn from all of the model's. Its
control ids must be those of the same conversation with plain words in the place of the names; and
of that one, in which only the template writes names, they must be those of the published engine,
which recognises names wherever they are. `KIZAMI_CONVERSATIONS` and `KIZAMI_SEED` as in
`test_jinja_templates.py`.
"""

from __future__ import annotations

import os
import random

import pytest
from kizami.errors import ChatValueError

pytest.importorskip("jinja2", reason="chat templates need jinja2 (the extra `jinja`)")

from tests.conversations import Conversations
from tests.models import load, oracle

CONVERSATIONS = int(os.environ.get("KIZAMI_CONVERSATIONS", "300"))
SEED = int(os.environ.get("KIZAMI_SEED", "1"))
# Those of which there is a template, and a vocabulary that Kizami reads.
MODELS = ["deepseek_v3", "gpt-oss", "kimi-k2.5", "llama3", "llama3_1", "qwen3"]
# Some templates look for these in a text, and take it apart there.
TAKEN_APART = ("think>", "tool_response>")


@pytest.mark.parametrize("model", MODELS)
def test_control_ids_are_those_of_the_template_alone(model: str) -> None:
    pytest.importorskip("tiktoken" if model == "kimi-k2.5" else "tokenizers")
    tokenizer, published = load(model), oracle(model)
    control = set(tokenizer.control_tokens.values())
    names = [name for name in tokenizer.control_tokens if not name.endswith(TAKEN_APART)]
    random.Random(SEED).shuffle(names)
    planted: set[str] = set()
    drawn = 0

    def name(rng: random.Random) -> str:
        nonlocal drawn
        rng.random()
        drawn += 1
        chosen = names[drawn % len(names)]
        planted.add(chosen)
        return chosen

    def word(rng: random.Random) -> str:
        nonlocal drawn
        rng.random()
        drawn += 1
        return f"word {drawn % len(names)}"

    rendered = found = 0
    for number in range(CONVERSATIONS):
        seed = SEED * 3_000_017 + number
        begin = drawn
        messages, options = Conversations(seed, word).conversation()
        drawn = begin
        attack, attack_options = Conversations(seed, name).conversation()
        try:
            plain = tokenizer.render_chat(messages, **options)
        except ChatValueError:
            with pytest.raises(ChatValueError):
                tokenizer.render_chat(attack, **attack_options)
            continue
        ids = tokenizer.encode_segments(plain).tolist()
        text = "".join(segment.text for segment in plain)
        expected = [id_ for id_ in ids if id_ in control]
        assert expected == [id_ for id_ in published.encode(text, True) if id_ in control]
        segments = tokenizer.render_chat(attack, **attack_options)
        ids = tokenizer.encode_segments(segments).tolist()
        assert [id_ for id_ in ids if id_ in control] == expected, (number, attack)
        rendered += 1
        found += len(expected)
    print(rendered, found, len(planted), len(names))
    assert rendered > CONVERSATIONS / 3
    assert found > rendered
    assert len(planted) == len(names) or CONVERSATIONS < 300
