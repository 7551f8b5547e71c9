"""Text from nothing: sentences of common words, and words that never were.

Word lists and syllables are ours (`words.json`). A sentence draws words by a Zipf law, so that a
few are frequent and most are rare; a new word is a row of syllables.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from itertools import accumulate
from random import Random
from typing import Any

__all__ = ["LANGUAGES", "Language", "language"]

LANGUAGES = ("english", "zh", "ja", "ko", "ru", "ar", "hi", "th")


class Language:
    """Words of one language.

    Attributes:
        space: What stands between words; empty where nothing does.
    """

    def __init__(self, facts: dict[str, Any]) -> None:
        self.space: str = facts["space"]
        self._comma: str = facts["comma"]
        self._stops: list[str] = facts["stops"]
        self._syllables: list[str] = facts["syllables"].split()
        common: list[str] = facts["words"].split()
        random = Random(0)
        rare = (self.new_word(random) for _ in range(4000))
        self._words = [*common, *rare]
        self._weights = list(accumulate(1 / (rank + 3) for rank in range(len(self._words))))

    def new_word(self, random: Random) -> str:
        """A row of syllables."""
        return "".join(random.choices(self._syllables, k=random.randint(2, 4)))

    def word(self, random: Random) -> str:
        """A word of the list, or one of the 4,000 rare ones."""
        return random.choices(self._words, cum_weights=self._weights)[0]

    def sentence(self, random: Random) -> str:
        """Four to twenty words, with a stop behind."""
        words = random.choices(self._words, cum_weights=self._weights, k=random.randint(4, 20))
        words[0] = words[0][:1].upper() + words[0][1:]
        if len(words) > 8:
            middle = random.randint(3, len(words) - 3)
            head, tail = self.space.join(words[:middle]), self.space.join(words[middle:])
            return f"{head}{self._comma}{tail}{random.choice(self._stops)}"
        return self.space.join(words) + random.choice(self._stops)


@cache
def language(name: str) -> Language:
    """One of `LANGUAGES`."""
    data = files(__package__).joinpath("words.json").read_text(encoding="utf-8")
    return Language(json.loads(data)[name])
