"""Random conversations in the formats that chat templates read.

Conversation `i` of a seed is always the same. Free text (what users, tools and models write) comes
from the function given, so that a test can plant in it what it likes; roles and types do not.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

TEXTS = [
    "hello", "", " ", "\n", " lead and trail \n", "数据", "naïve 🎉", '"q" \\ \'', "{}", "%s {0}",
    "a\n\nb", "<b>&amp;</b>", "\u200b\u2028", "None", "true", "5", "<think>\nhm\n</think>\n\nyes",
    "<tool_response>r</tool_response>", "{{ bos_token }}", "{% raw %}", "</think>", "<tool_call>",
]  # fmt: skip


class Conversations:
    """Conversations, mostly well-formed: faults come at the rate `odd`.

    `alternating`: users and the model take turns, and nobody else speaks after the system.
    """

    def __init__(
        self,
        seed: int,
        text: Callable[[random.Random], str],
        odd: float = 0.0,
        alternating: bool = False,
    ) -> None:
        self.rng = random.Random(seed)
        self.text = lambda: text(self.rng)
        self.odd = odd
        self.alternating = alternating

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, *options: Any) -> Any:
        return self.rng.choice(options)

    def value(self, depth: int = 0) -> Any:
        kind = self.rng.randrange(7 if depth < 2 else 4)
        if kind < 2:
            return self.text()
        if kind == 2:
            return self.pick(0, 1, -7, 1.5, 10**20, -0.0)
        if kind == 3:
            return self.pick(True, False, None)
        if kind == 4:
            return [self.value(depth + 1) for _ in range(self.rng.randrange(3))]
        return self.mapping(depth + 1)

    def mapping(self, depth: int = 0) -> dict[str, Any]:
        count = self.rng.randrange(4)
        return {self.text() or "k": self.value(depth) for _ in range(count)}

    def parts(self) -> list[Any]:
        makers: list[Callable[[], Any]] = [
            lambda: {"type": "text", "text": self.text()},
            lambda: {"type": "text", "text": self.text()},
            lambda: {"type": "image", "image": self.text()},
            lambda: {"type": "image_url", "image_url": {"url": self.text()}},
            lambda: {"type": "video", "video": self.text()},
        ]
        if self.chance(self.odd):
            makers = [self.text, lambda: 5, lambda: None, dict, lambda: {"type": self.text()}]
        return [self.rng.choice(makers)() for _ in range(self.rng.randrange(4))]

    def content(self, lists: bool) -> Any:
        if self.chance(self.odd):
            return self.pick(None, 5, {}, {"type": "text"}, [], True, 1.5)
        return self.parts() if lists and self.chance(0.3) else self.text()

    def call(self, as_text: bool) -> dict[str, Any]:
        arguments: Any = self.mapping()
        if as_text:
            arguments = json.dumps(arguments, ensure_ascii=False)
        if self.chance(self.odd):
            arguments = self.pick(None, "", [], 5, self.text())
        function = {"name": self.text(), "arguments": arguments}
        if self.chance(0.1):
            return {"id": self.text(), **function}
        return {"id": self.text(), "type": self.text(), "function": function}

    def assistant(self, lists: bool, as_text: bool, none: bool) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.content(lists)}
        for key in ("reasoning_content", "thinking"):
            if self.chance(0.3):
                message[key] = self.text()
        if self.chance(0.4):
            message["tool_calls"] = [self.call(as_text) for _ in range(self.rng.randrange(1, 4))]
            message["content"] = self.pick(self.text(), "", None) if none else self.pick("", "x")
            if self.chance(0.5):
                message.pop("thinking", None)
        return message

    def schema(self, depth: int = 0) -> dict[str, Any]:
        kind = self.pick("string", "number", "integer", "boolean", "array", "object", "other")
        found: dict[str, Any] = {"type": kind}
        if self.chance(0.5):
            found["description"] = self.text()
        if self.chance(0.3):
            found["nullable"] = self.pick(True, False)
        if self.chance(0.2):
            found["enum"] = [self.text() for _ in range(self.rng.randrange(3))]
        if self.chance(0.2):
            found["default"] = self.value(2)
        if depth < 2 and kind == "array" and self.chance(0.8):
            found["items"] = self.schema(depth + 1)
        if depth < 2 and kind == "object":
            found["properties"] = {
                self.text() or "p": self.schema(depth + 1) for _ in range(self.rng.randrange(3))
            }
            found["required"] = list(found["properties"])[:1]
        if self.chance(0.1):
            found["type"] = [self.pick("string", "object"), "null"]
        if depth < 2 and self.chance(0.1):
            found = {"oneOf": [self.schema(depth + 1) for _ in range(self.rng.randrange(1, 3))]}
        return found

    def tool(self) -> dict[str, Any]:
        parameters = {
            "type": "object",
            "properties": {self.text() or "p": self.schema() for _ in range(self.rng.randrange(3))},
        }
        if self.chance(0.5):
            parameters["required"] = [*parameters["properties"]][:1]
        function = {"name": self.text(), "description": self.text(), "parameters": parameters}
        if self.chance(0.2):
            function["defer_loading"] = self.pick(True, False)
        return {"type": "function", "function": function}

    def conversation(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Messages, and the keyword arguments to render them with."""
        lists, as_text, none = self.chance(0.3), self.chance(0.4), self.chance(0.5)
        tools = self.chance(0.5) and not self.alternating
        messages: list[dict[str, Any]] = []
        if self.chance(0.5):
            role = "system" if self.chance(0.8) or self.alternating else "developer"
            messages.append({"role": role, "content": self.content(lists)})
        turns = self.rng.randrange(1, 4)
        for turn in range(turns):
            messages.append({"role": "user", "content": self.content(lists)})
            if self.chance(0.2):
                messages[-1]["name"] = self.text()
            if self.chance(0.85) or (self.alternating and turn + 1 < turns):
                messages.append(self.assistant(lists, as_text, none))
            while tools and self.chance(0.4):
                result = {"role": "tool", "content": self.content(lists)}
                messages.append({**result, "tool_call_id": self.text(), "name": self.text()})
            if tools and self.chance(0.4):
                messages.append(self.assistant(lists, as_text, none))
        if self.chance(self.odd):
            messages[self.rng.randrange(len(messages))].pop("content")
        if self.chance(self.odd):
            messages[self.rng.randrange(len(messages))]["role"] = self.pick("", None, "critic")
        return messages, self.options(tools)

    def options(self, tools: bool) -> dict[str, Any]:
        found: dict[str, Any] = {"add_generation_prompt": self.pick(True, False)}
        if tools:
            found["tools"] = [self.tool() for _ in range(self.rng.randrange(1, 3))]
        for name, choices in {
            "enable_thinking": (True, False),
            "thinking": (True, False),
            "clear_thinking": (True, False),
            "reasoning_effort": ("high", "low", self.text()),
            "model_identity": (self.text(),),
            "builtin_tools": (["browser", "python"], ["python"], []),
            "tools_ts_str": (self.text(), ""),
        }.items():
            if self.chance(0.2):
                found[name] = self.pick(*choices)
        return found
