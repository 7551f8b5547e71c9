"""Options that are true or false."""

from __future__ import annotations

import numpy as np

from kizami.errors import InputTypeError


def flag(value: bool, name: str) -> bool:
    """Only real booleans say whether text is trusted: `"false"` must not.

    >>> flag(1, "allow_special")
    True
    """
    if value is True or value is False:
        return value
    if isinstance(value, (np.bool_, int, np.integer)) and value in (0, 1):
        return bool(value)
    raise InputTypeError(f"{name} must be True or False, not {value!r}")
