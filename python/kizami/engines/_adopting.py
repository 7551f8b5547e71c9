"""What all engines do: run a loaded tokenizer on Kizami if that is exact, and say so."""

from __future__ import annotations

import logging
import os
from typing import Any

import kizami
from kizami.compat.transformers import adopt, is_adopted
from kizami.errors import InvalidValueError, KizamiError

__all__ = ["adopt_or_say_why", "kizami_of", "switch"]

_log = logging.getLogger("kizami")


def adopt_or_say_why(tokenizer: Any) -> Any:
    """The tokenizer, run by Kizami; one that cannot be is left as it is, and the log says why."""
    try:
        adopt(tokenizer)
    except KizamiError as error:
        _log.warning("%s does not run on Kizami: %s", type(tokenizer).__name__, error)
    else:
        _log.info("%s runs on Kizami", type(tokenizer).__name__)
    return tokenizer


def kizami_of(tokenizer: Any) -> kizami.Tokenizer | None:
    """The tokenizer of Kizami that one of `transformers` runs on, or None.

    >>> kizami_of("none") is None
    True
    """
    if not is_adopted(tokenizer):
        return None
    ours = tokenizer.__dict__.get("_kizami")
    if ours is None:
        ours = tokenizer._tokenizer.to_kizami()
    assert isinstance(ours, kizami.Tokenizer)
    return ours


def switch(name: str, default: bool) -> bool:
    """What an environment variable says: "1" or "0".

    >>> switch("KIZAMI_NO_SUCH_SWITCH", True)
    True
    """
    value = os.environ.get(name, "").strip()
    if value not in ("", "0", "1"):
        raise InvalidValueError(f"{name} is {value!r}; set it to 1 or 0")
    return default if not value else value == "1"
