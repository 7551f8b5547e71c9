"""What a chat template gets to see: plain data, made anew.

Text of every kind becomes an exact `str`, which is untrusted, whatever marks it had; objects with
methods never reach a template, because the sandbox cannot know what their methods do.

Read next: `_jinja_marks`, which says what marks are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """A copy out of dicts, lists, tuples, text, numbers, bools and None.

    Dataclasses and pydantic models become dicts, NumPy scalars become Python's, and anything else
    becomes the name of its type, as in transformers.

    >>> plain({"content": [{"type": "image", "image": object()}], "n": np.int64(3)})
    {'content': [{'type': 'image', 'image': '<object>'}], 'n': 3}
    """
    if value is None or type(value) in (str, bool, int, float):
        return value
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if callable(getattr(value, "model_dump", None)):
        return plain(value.model_dump())
    return f"<{type(value).__name__}>"
