"""Random walks through prompts: each is the one before, changed, as agents and their users do it.

`Walk` draws from a `random.Random`, so that a seed gives the same walk everywhere.
"""

from __future__ import annotations

import random
from typing import Any

from tests.conversations import Conversations
from tests.texts import RUN, SLICE, Writer

Prompt = list[tuple[str, bool]]

# What a text may end with, and go on with, so that it matters what comes next.
ENDS = [
    "word", "wor", "HTML", "foo'", "don'", "don't", "  ", " ", "\n", "\n\n", " \n ", "\r", "12",
    "1234", "中", "中文", "e", "e\u0301", "👩\u200d", "👍", "🏽", "🇩", "...", "=", "<|", "<|open",
    "<|open|", "<|open|>", "\ud83d", "\ude00", "\x1f", "\u3000", "ab\u3000", "/", "\u00ad", "ー",
    "漢〇", "한", "\uff21B", "É",
]  # fmt: skip


def another(text: str) -> str:
    """An equal text that is another object, if Python does not share such texts."""
    return "".join([text[:1], text[1:]])


class Walk:
    """A prompt that changes with each step."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.writer = Writer(rng.random().hex())
        self.prompt: Prompt = []

    def text(self) -> str:
        rng = self.rng
        text = "".join(rng.choices(ENDS, k=rng.randint(0, 4)))
        return text + self.writer.text(rng.randint(1, 24)) if rng.random() < 0.7 else text

    def segment(self) -> tuple[str, bool]:
        return self.text(), self.rng.random() < 0.4

    def step(self) -> Prompt:
        """Changes the prompt in one or two ways. Most segments are the same objects as before."""
        for _ in range(self.rng.choice([1, 1, 1, 2])):
            changes = [
                self.append, self.append, self.append, self.append, self.grow, self.grow, self.grow,
                self.edit, self.edit, self.shrink, self.delete, self.insert, self.shuffle,
                self.unrelated, self.renew, self.renew, self.trust, lambda: None,
            ]  # fmt: skip
            self.rng.choice(changes)()
        if len(self.prompt) > 60:
            del self.prompt[self.rng.randrange(60) :]
        return list(self.prompt)

    def place(self) -> int:
        """Mostly near the end."""
        last = len(self.prompt) - 1
        return max(last - int(self.rng.expovariate(0.7)), 0)

    def append(self) -> None:
        self.prompt += [self.segment() for _ in range(self.rng.choice([1, 1, 2, 3, 12]))]

    def grow(self) -> None:
        if self.prompt:
            place = self.place()
            text, trusted = self.prompt[place]
            more = self.rng.choice([*ENDS, self.text(), self.text()])
            self.prompt[place] = (text + more, trusted)

    def edit(self) -> None:
        if self.prompt:
            place = self.place()
            text, trusted = self.prompt[place]
            at = self.rng.randint(0, len(text))
            end = min(at + self.rng.choice([0, 1, 2, 9]), len(text))
            piece = self.rng.choice(["", *self.rng.choices(ENDS, k=3), self.text()])
            self.prompt[place] = (text[:at] + piece + text[end:], trusted)

    def shrink(self) -> None:
        if self.prompt:
            place = self.place()
            text, trusted = self.prompt[place]
            self.prompt[place] = (text[: self.rng.randint(0, len(text))], trusted)

    def delete(self) -> None:
        if self.prompt:
            place = self.place()
            del self.prompt[place : place + self.rng.choice([1, 1, 2, 60])]

    def insert(self) -> None:
        self.prompt.insert(self.rng.randint(0, len(self.prompt)), self.segment())

    def shuffle(self) -> None:
        if self.rng.random() < 0.5:
            self.rng.shuffle(self.prompt)
        elif self.prompt:
            self.prompt.append(self.rng.choice(self.prompt))

    def unrelated(self) -> None:
        self.prompt = [self.segment() for _ in range(self.rng.randint(0, 8))]

    def renew(self) -> None:
        self.prompt = [(another(text), trusted) for text, trusted in self.prompt]

    def trust(self) -> None:
        if self.prompt:
            place = self.place()
            text, trusted = self.prompt[place]
            self.prompt[place] = (text, not trusted)

    def long(self) -> None:
        """A segment that ends near where the published path cuts."""
        rng = self.rng
        if rng.random() < 0.7:
            unit = rng.choice(["a", "ab", " ", "\n ", "中", "=", "\u3000", "1", "é", "a\U00010400"])
            text = (unit * (RUN // len(unit) + 1))[
                : RUN * rng.choice([1, 1, 2]) + rng.randint(-5, 5)
            ]
        else:
            page = "".join(self.writer.text() for _ in range(60)) + "\x1e \n"
            text = (page * (SLICE // len(page) + 1))[: SLICE + rng.randint(-5, 5)]
        self.prompt.append((self.text() + text, rng.random() < 0.3))


class Talk:
    """A conversation that changes with each step; `valid` ones only are rendered without error."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.source = Conversations(rng.randrange(1 << 30), lambda _: self._text())
        self.walk = Walk(rng)
        self.messages: list[Any] = []

    def _text(self) -> str:
        return self.walk.text()

    def step(self) -> list[Any]:
        """Changes the messages, in place or by new objects."""
        rng = self.rng
        kind = rng.randrange(10)
        if kind < 5 or not self.messages:
            self.messages.extend(self.turns())
        elif kind == 5:
            del self.messages[rng.randrange(len(self.messages)) :]
        elif kind == 6:
            message = rng.choice(self.messages)
            if isinstance(message.get("content"), str):
                message["content"] += rng.choice(ENDS)
            else:
                message["content"] = self._text()
        elif kind == 7:
            self.messages = [dict(message) for message in self.messages]
        elif kind == 8:
            self.messages.insert(rng.randint(0, len(self.messages)), self.user())
        else:
            self.messages = self.turns()
        if len(self.messages) > 40:
            del self.messages[rng.randrange(40) :]
        return self.messages

    def user(self) -> dict[str, Any]:
        return {"role": self.rng.choice(["user", "user", "system"]), "content": self._text()}

    def turns(self) -> list[Any]:
        rng = self.rng
        if rng.random() < 0.5:
            return [self.user(), {"role": "assistant", "content": self._text()}]
        calls = [
            {
                "id": f"call-{rng.randrange(1000)}",
                "type": "function",
                "function": {"name": rng.choice(["ls", "read"]), "arguments": self.arguments()},
            }
            for _ in range(rng.randint(1, 3))
        ]
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": self._text()} for call in calls
        ]
        if rng.random() < 0.3:
            rng.shuffle(results)
        reasoning = self._text() if rng.random() < 0.5 else None
        answer = {"role": "assistant", "content": None, "tool_calls": calls}
        if reasoning is not None:
            answer["reasoning_content"] = reasoning
        return [answer, *results]

    def arguments(self) -> Any:
        rng = self.rng
        value = rng.choice(
            [1, True, 1.0, 0.0, -0.0, None, "x", [1, 2], {"a": 1, "b": 2}, {"b": 2, "a": 1}]
        )
        return {"path": self._text(), "n": value} if rng.random() < 0.6 else '{"a": 1}'
