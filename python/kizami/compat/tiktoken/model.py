"""`tiktoken.model`: which encoding a model uses.

The tables are copies: a change of them changes no answer.

>>> MODEL_TO_ENCODING["gpt-4o"], MODEL_PREFIX_TO_ENCODING["gpt-4o-"]
('o200k_base', 'o200k_base')
"""

from __future__ import annotations

from typing import NoReturn

from kizami.compat.tiktoken._models import _ENCODING, _PREFIXES, encoding_name_for_model
from kizami.compat.tiktoken._registry import encoding_for_model

__all__ = [
    "MODEL_PREFIX_TO_ENCODING",
    "MODEL_TO_ENCODING",
    "encoding_for_model",
    "encoding_name_for_model",
]

MODEL_TO_ENCODING: dict[str, str] = dict(_ENCODING)
MODEL_PREFIX_TO_ENCODING: dict[str, str] = dict(_PREFIXES)


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"kizami.compat.tiktoken.model has no {name}: it has {', '.join(__all__)}; "
        "take what else you need from tiktoken.model"
    )
