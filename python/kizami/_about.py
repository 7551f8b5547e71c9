"""What a tokenizer knows of its model beside the vocabulary."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kizami.errors import VocabularyError

__all__ = ["About"]


@dataclass(frozen=True)
class About:
    """Kept with a saved tokenizer."""

    name: str
    fingerprint: str
    eos_ids: list[int]
    template: dict[str, Any] | None = None

    def to_json(self) -> str:
        """As one line of text."""
        return json.dumps(
            {
                "name": self.name,
                "fingerprint": self.fingerprint,
                "eos_ids": self.eos_ids,
                "template": self.template,
            }
        )

    @staticmethod
    def from_json(text: str) -> About:
        """The inverse of `to_json`."""
        try:
            return About(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise VocabularyError(f"unusable saved tokenizer: {error}") from None
