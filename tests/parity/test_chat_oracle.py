"""Differential test of the Kimi K3 renderer against an independent one.

Opt-in: `nemo-automodel` (0.7.0, Apache-2.0, on PyPI) carries a renderer that behaves like the
published one. Get its wheel with `pip download nemo-automodel==0.7.0 --no-deps`, unzip it anywhere
and run

    KIZAMI_NEMO=<the folder> python -m pytest tests/parity/test_chat_oracle.py

`KIZAMI_CONVERSATIONS` sets how many conversations are compared, `KIZAMI_SEED` where they start;
conversation i of a seed is always the same. What a comparison may not depend on is left out of the
generator: `thinking_effort="medium"` (accepted there, refused by the published renderer) and an
explicit `response_schema=None` (here: not given).
"""

from __future__ import annotations

import copy
import importlib.util
import os
import random
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from kizami.chat.kimi_k3 import render

ENCODING = Path("nemo_automodel/components/models/kimi_k3/encoding.py")
CONVERSATIONS = int(os.environ.get("KIZAMI_CONVERSATIONS", "5000"))
SEED = int(os.environ.get("KIZAMI_SEED", "1"))

PLACEHOLDER = "<|kimi_image_placeholder|>"
TEXTS = [
    "hello", "", " ", "\n", " \t\n", "  lead and trail \n", "<|open|>", "<|sep|>", "[EOS]", '"',
    "&", "&amp;", "a & b", 'say "hi"', "数据", "naïve", "🎉", "\u200b", "\x1c", "\x00",
    "\ud83d", "'", "{}", "null", "5", "a", "b", "f", "g", "None", "True", PLACEHOLDER,
    f"x{PLACEHOLDER}y", PLACEHOLDER * 2, "<|end_of_msg|>", "<|kimi_image_place", "\u2028", "{0}",
    "%s", "\\", "```",
]  # fmt: skip
IDS = ["a", "b", "c", "x", "", "1", 1, 2, 2.0, True, None, "None", "True", ["a"], 0, "0"]
NAMES = ["f", "g", "get_weather", "", None, 5, 0, 'q"&', "<|sep|>", PLACEHOLDER, ["f"], "搜索"]
ARGUMENT_TEXTS = [
    "{}", "", " ", "\n\t", "{bad", '{"a":', "[1]", "null", "3", '"s"', "true", "NaN", '{"a":NaN}',
    '{"a":1,"a":2}', '{"a":"\\ud83d"}', '{"b":[1,{"z":1,"a":"é"}]}', ' {"a":1.0} ', '{"a":1} x',
    "\ufeff{}", '{"a":1e400}', '{"":""}', '{"键 \\"q\\"&":"值"}', "{" + PLACEHOLDER, "'",
    '{"n":123456789012345678901234567890,"m":-0.0,"t":true,"f":false,"z":null,"e":[],"o":{}}',
    '{"a":"' + PLACEHOLDER + '"}', '{"a":["' + PLACEHOLDER + '"]}', '{"a":' + "9" * 5000 + "}",
]  # fmt: skip
NUMBERS = [0, 1, -1, 1.5, -0.0, 1e300, 1e20, float("inf"), float("nan"), 2**63, -(2**64), 10**30]
SCHEMAS = [
    {"type": "object", "properties": {"z": {"type": "number"}, "a": {"description": 'é "q"'}}},
    {}, True, [], "s", 0, {"b": 1, "a": ({"z": 1, "a": 2},)}, {1: 1, "a": 2}, {2: 1, 1: 2},
    {"a": {1}}, {None: 1}, {"schema": {"x": 1}}, {"schema": None, "json_schema": {"y": 1}},
    {"json_schema": {"b": 2, "a": PLACEHOLDER}},
    {"name": "n", "schema": {"d": 1, "c": [{"f": 1, "e": 2}]}},
]  # fmt: skip


class Conversations:
    """Random conversations: mostly well-formed, with faults at the rate `odd`."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.odd = self.pick([0.0, 0.0, 0.01, 0.05, 0.2])

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.rng.randrange(len(options))]

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def text(self) -> str:
        count = self.pick([1, 1, 2, 4])
        return "".join(self.pick(TEXTS) for _ in range(count))

    def value(self, depth: int = 0) -> Any:
        kind = self.rng.randrange(9 if depth < 3 else 5)
        if kind <= 1:
            return self.text()
        if kind == 2:
            return self.pick(NUMBERS)
        if kind == 3:
            return self.pick([True, False, None])
        if kind == 4:
            if self.chance(self.odd):
                return self.pick([{1}, b"x", 1j, object, (1, {"b": 1, "a": 2})])
            return self.pick([[], {}, ()])
        if kind <= 6:
            return [self.value(depth + 1) for _ in range(self.rng.randrange(3))]
        return self.mapping(depth + 1)

    def mapping(self, depth: int = 0) -> dict[Any, Any]:
        keys: list[Any] = [*"zabkey", "键", 'q"&', PLACEHOLDER, ""]
        if self.chance(self.odd):
            keys = [1, None, True, 2.5, "a", (1, 2)]
        return {self.pick(keys): self.value(depth) for _ in range(self.rng.randrange(4))}

    def part(self) -> Any:
        if self.chance(self.odd):
            return self.pick(
                [
                    {},
                    {"type": "text"},
                    {"text": "t"},
                    "text",
                    5,
                    None,
                    [],
                    ["type"],
                    (),
                    {"type": None, "text": None},
                    {"type": ["image"], "text": 5},
                    {"type": "image", "text": "ignored"},
                    {"type": "text", "text": ["x"]},
                    {"type": "Image", "text": "T"},
                    {"type": "text", "text": False},
                ]
            )
        if self.chance(0.3):
            return {"type": self.pick(["image", "image_url"]), "image_url": {"url": "u"}}
        return {
            "type": self.pick(["text", "text", "audio", "input_text"]),
            "text": self.text(),
        }

    def content(self) -> Any:
        if self.chance(self.odd):
            return self.pick([5, 0, False, True, {}, {"type": "text"}, b"", b"x", (), 1.5, set()])
        kind = self.rng.randrange(10)
        if kind < 6:
            return self.text()
        if kind == 6:
            return None
        parts = [self.part() for _ in range(self.rng.randrange(4))]
        return tuple(parts) if self.chance(0.1) else parts

    def call(self, sane_id: Any) -> Any:
        if self.chance(self.odd):
            return self.pick(
                ["x", 5, None, [], {}, {"function": {}}, {"function": None, "name": "g"},
                 {"function": "x", "name": "g"}, {"function": 5, "name": "g", "arguments": "[1]"},
                 {"function": {"arguments": {}}}, {"function": {}, "name": "g", "arguments": "[1]"}]
            )  # fmt: skip
        inner: dict[str, Any] = {"name": self.pick(["f", "g", "get_weather", 'q"&'])}
        if self.chance(0.1 + self.odd):
            inner["name"] = self.pick(NAMES)
        kind = self.rng.randrange(8)
        if kind < 4:
            inner["arguments"] = self.mapping()
        elif kind == 4:
            inner["arguments"] = None
        elif kind < 7:
            inner["arguments"] = self.pick(ARGUMENT_TEXTS[:6] + ARGUMENT_TEXTS[12:-1])
        if self.chance(self.odd):
            inner["arguments"] = self.pick([*ARGUMENT_TEXTS, [1], [], 3, 0, False, b"{}", ()])
        call = inner if self.chance(0.2) else {"type": "function", "function": inner}
        if self.chance(0.85):
            call["id"] = sane_id if self.chance(0.8) else self.pick(IDS)
        if self.chance(0.03):
            call["tool_call_id"] = self.pick(IDS)
        return call

    def calls(self) -> Any:
        ids = self.rng.sample(["a", "b", "c", "x"], 4)
        if self.chance(self.odd):
            return self.pick([5, "", "ab", {}, {"a": 1}, True, None, [], ()])
        calls = [self.call(ids[position]) for position in range(self.rng.randrange(1, 5))]
        return tuple(calls) if self.chance(0.05) else calls

    def message(self) -> Any:
        if self.chance(self.odd):
            return self.pick([None, "x", 5, [], {}, ("role", "user"), {"content": "x"}, b""])
        role = self.pick(["system", "user", "user", "assistant", "assistant", "assistant"])
        if self.chance(0.03 + self.odd):
            role = self.pick(["developer", "User", "", None, 5, ["tool"], "function"])
        message: dict[str, Any] = {"role": role}
        if self.chance(0.9):
            message["content"] = self.content()
        if self.chance(0.2):
            message["name"] = self.pick(NAMES)
        if role == "assistant" or self.chance(self.odd):
            for key in ("reasoning_content", "reasoning"):
                if self.chance(0.35):
                    message[key] = self.pick([self.text(), self.text(), None, ""])
                    if self.chance(self.odd):
                        message[key] = self.pick([5, 0, ["a"], True, b" x", {}, {"a": 1}])
            if self.chance(0.6):
                message["tool_calls"] = self.calls()
        if (role == "system" and self.chance(0.2)) or self.chance(self.odd / 2):
            message["tools"] = self.tools()
        if self.chance(0.02):
            message["partial"] = True
        return message

    def results(self, asked: Any) -> list[Any]:
        """Tool messages that answer the calls `asked`, in any order and not always all of them."""
        ids = [call.get("id") for call in asked if isinstance(call, dict)]
        self.rng.shuffle(ids)
        if self.chance(0.3):
            ids = ids[: self.rng.randrange(len(ids) + 1)]
        if self.chance(0.1) and ids:
            ids.append(self.pick(ids))
        found = []
        for identity in ids:
            if self.chance(0.03 + self.odd):
                identity = self.pick(IDS)
            message: dict[str, Any] = {"role": "tool", "content": self.content()}
            key = self.pick(["tool_call_id"] * 6 + ["id", None])
            if key:
                message[key] = str(identity) if self.chance(0.1) else identity
            if self.chance(0.05):
                message["id"] = self.pick(IDS)
            for name in ("tool", "name"):
                if self.chance(0.15):
                    message[name] = self.pick(NAMES)
            found.append(message)
            if self.chance(0.03):
                found.append(self.message())
        return found

    def tools(self) -> Any:
        if self.chance(self.odd):
            return self.pick([None, [], {}, "x", 5, (), ({"b": 1, "a": 2},), [*SCHEMAS]])
        return [
            {"type": "function", "function": self.mapping()} for _ in range(self.rng.randrange(3))
        ]

    def conversation(self) -> tuple[list[Any], dict[str, Any]]:
        messages: list[Any] = []
        for _ in range(self.pick([0, 1, 2, 3, 5, 8])):
            message = self.message()
            messages.append(message)
            calls = message.get("tool_calls") if isinstance(message, dict) else None
            if isinstance(calls, (list, tuple)) and self.chance(0.8):
                messages += self.results(calls)
            if self.chance(0.02 + self.odd):
                messages.append({"role": "tool", "content": self.content(), "name": "lone"})
        return messages, self.options(messages)

    def options(self, messages: list[Any]) -> dict[str, Any]:
        options: dict[str, Any] = {"thinking_effort": None}
        if self.chance(0.3):
            options["tools"] = self.tools()
        if self.chance(0.3):
            options["add_generation_prompt"] = self.pick([True, False])
        if self.chance(0.3):
            options["thinking"] = self.pick([True, False])
        if self.chance(0.3):
            options["thinking_effort"] = self.pick(["low", "high", "max"])
        if self.chance(0.02 + self.odd / 2):
            options["thinking_effort"] = self.pick(["none", "", "MAX", 5, ["low"], False])
        if self.chance(0.3):
            options["tool_choice"] = self.pick(
                ["auto", "none", "required", "Required", None, {"type": "function"}, 5, ["none"]]
            )
        if self.chance(0.3):
            schema = self.pick(SCHEMAS if self.chance(self.odd) else SCHEMAS[:7])
            options["response_format"] = self.pick(
                ["json_object", "json_schema", "text", "", None, 5, {}, {"type": "json_object"},
                 {"type": "json_schema"}, {"type": "json_schema", "json_schema": schema},
                 {"type": "json_schema", "json_schema": {"schema": schema, "strict": True}},
                 {"type": "json_schema", "json_schema": {"json_schema": schema}},
                 {"type": "text", "json_schema": {"schema": schema}}]
            )  # fmt: skip
        if self.chance(0.1):
            options["response_schema"] = self.pick(
                SCHEMAS if self.chance(self.odd) else SCHEMAS[:7]
            )
        if self.chance(0.4):
            count = count_images(messages, options.get("thinking", True))
            if self.chance(0.1):
                count = max(0, count + self.pick([-1, 1]))
            prompts: list[Any] = [
                self.pick(["<|media_pad|>", "", f"p{number}", PLACEHOLDER])
                for number in range(count)
            ]
            options["image_prompts"] = tuple(prompts) if self.chance(0.2) else prompts
        return options


def count_images(messages: list[Any], thinking: bool) -> int:
    """How many prompts a conversation takes, as our own renderer tells; a guess if it refuses."""
    for count in range(40):
        try:
            render(messages, thinking=thinking, thinking_effort=None, image_prompts=["p"] * count)
        except (ValueError, TypeError, KeyError):
            continue
        return count
    return 1


def outcome_of(call: Any, *arguments: Any, **options: Any) -> Any:
    """The segments as plain tuples, or the built-in class of the error."""
    try:
        segments = call(*arguments, **options)
    except (AssertionError, ValueError):
        return "ValueError"
    except (TypeError, AttributeError):
        return "TypeError"
    except KeyError:
        return "KeyError"
    return [(segment.text, segment.allow_special) for segment in segments]


@pytest.fixture(scope="module")
def oracle() -> Any:
    folder = os.environ.get("KIZAMI_NEMO")
    if not folder:
        wheel = "`pip download nemo-automodel==0.7.0 --no-deps`, unzipped"
        pytest.skip(f"set KIZAMI_NEMO to the folder of the wheel: {wheel}")
    path = Path(folder) / ENCODING
    if not path.is_file():
        pytest.skip(f"KIZAMI_NEMO holds no {ENCODING}")
    spec = importlib.util.spec_from_file_location("kizami_test_oracle", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module.build_chat_segments


def test_random_conversations_give_the_segments_or_the_error_of_the_oracle(oracle: Any) -> None:
    errors = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for number in range(CONVERSATIONS):
            messages, options = Conversations(SEED * 1_000_000_007 + number).conversation()
            before = repr((messages, options))
            ours = outcome_of(render, messages, **options)
            assert repr((messages, options)) == before, f"conversation {number} was changed"
            theirs = outcome_of(oracle, copy.deepcopy(messages), **copy.deepcopy(options))
            if messages and isinstance(messages[0], list):
                theirs = "TypeError"  # a batch: refused here, an empty prompt there
            assert ours == theirs, f"conversation {number} differs: {messages!r} {options!r}"
            errors += isinstance(ours, str)

    assert 0 < errors < CONVERSATIONS / 2  # both kinds of outcome are compared
