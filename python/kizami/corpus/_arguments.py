"""Arguments that runs over files and over tables have in common, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from kizami._tokenizer import Tokenizer
from kizami.errors import InputTypeError, InvalidIdError, InvalidValueError

__all__ = ["BROKEN", "ERRORS", "around", "check_choices", "check_numbers", "check_texts"]

ERRORS = ("strict", "replace")
BROKEN = ("stop", "skip")


def check_choices(**choices: tuple[object, tuple[object, ...]]) -> None:
    """Each value is one of those that are known."""
    for name, (value, known) in choices.items():
        if value not in known:
            words = ", ".join(repr(word) for word in known)
            raise InvalidValueError(f"{name} must be one of {words}, not {value!r}")


def check_numbers(**numbers: Any) -> None:
    """Each is an int of at least 1; bytes of a document are also bounded from above."""
    for name, number in numbers.items():
        if not isinstance(number, int) or isinstance(number, bool):
            raise InputTypeError(f"{name} must be an int, not {number!r}")
        if number < 1:
            raise InvalidValueError(f"{name} must be at least 1, not {number}")
    if numbers.get("max_document_bytes", 0) > 1 << 30:
        raise InvalidValueError(f"max_document_bytes must be at most {1 << 30}")


def check_texts(**texts: object) -> None:
    """Each is a str."""
    for name, text in texts.items():
        if not isinstance(text, str):
            raise InputTypeError(f"{name} must be str, not {type(text).__name__}")


def around(tokenizer: Tokenizer, token: int | str | None, name: str) -> list[int]:
    """The ids that `bos` or `eos` puts around each document."""
    if token is None:
        return []
    if isinstance(token, str):
        if token not in tokenizer.control_tokens:
            known = ", ".join(list(tokenizer.control_tokens)[:6])
            message = f"{name} {token!r} is no control token of {tokenizer.name}"
            raise InvalidValueError(f"{message}; it has {known}, ...")
        return [tokenizer.control_tokens[token]]
    if not isinstance(token, (int, np.integer)) or isinstance(token, bool):
        raise InputTypeError(f"{name} must be an id or a name, not {token!r}")
    try:
        tokenizer.token_bytes(token)
    except InvalidIdError:
        message = f"{name} {token} is outside the vocabulary of {tokenizer.name}"
        hint = f"give one from 0 to {tokenizer.vocab_size - 1}, or the name of a control token"
        facts = {"id": int(token), "position": 0, "vocab_size": tokenizer.vocab_size}
        raise InvalidIdError(f"{message}; {hint}", **facts) from None
    return [int(token)]
