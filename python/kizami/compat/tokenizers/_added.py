"""`AddedToken`: a token beside the vocabulary, as `tokenizers` describes it."""

from __future__ import annotations

import warnings
from typing import Any

from kizami.errors import InputTypeError

__all__ = ["AddedToken", "as_added_token", "ignored_option"]


def ignored_option(name: str) -> None:
    """The original prints this and goes on; a warning can be filtered."""
    warnings.warn(f"ignored unknown option {name!r}", UserWarning, stacklevel=3)


class AddedToken:
    """A token that is found in text before it is split.

    Args:
        content: The text that it stands for.
        single_word: Found only where no letter or digit is beside it.
        lstrip: White space before it belongs to it.
        rstrip: White space behind it belongs to it.
        normalized: Found in the normalized text; unless given, what `special` is not.
        special: Left out by a decode that skips special tokens.

    >>> AddedToken("<think>", special=True).normalized
    False
    """

    __slots__ = ("_lstrip", "_normalized", "_rstrip", "_single_word", "content", "special")

    content: str
    special: bool

    def __init__(
        self,
        content: str | None = None,
        *,
        single_word: bool = False,
        lstrip: bool = False,
        rstrip: bool = False,
        normalized: bool | None = None,
        special: bool = False,
        **options: Any,
    ) -> None:
        self.content = "" if content is None else content
        if not isinstance(self.content, str):
            raise InputTypeError(f"content must be str, not {type(content).__name__}")
        self.special = bool(special)
        self._single_word = bool(single_word)
        self._lstrip = bool(lstrip)
        self._rstrip = bool(rstrip)
        self._normalized = None if normalized is None else bool(normalized)
        for name in options:
            ignored_option(name)

    @property
    def single_word(self) -> bool:
        """Whether it is found only as a word of its own."""
        return self._single_word

    @property
    def lstrip(self) -> bool:
        """Whether white space before it belongs to it."""
        return self._lstrip

    @property
    def rstrip(self) -> bool:
        """Whether white space behind it belongs to it."""
        return self._rstrip

    @property
    def normalized(self) -> bool:
        """Whether it is looked for in the normalized text."""
        return not self.special if self._normalized is None else self._normalized

    def __getstate__(self) -> dict[str, Any]:
        names = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AddedToken):
            return NotImplemented
        return self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash(self.content)

    def __str__(self) -> str:
        return self.content

    def __repr__(self) -> str:
        flags = ("rstrip", "lstrip", "single_word", "normalized", "special")
        said = ", ".join(f"{name}={getattr(self, name)}" for name in flags)
        return f'AddedToken("{self.content}", {said})'


def as_added_token(token: Any, special: bool | None = None) -> AddedToken:
    """A token of a caller, as one that nobody else holds.

    >>> as_added_token("<x>", special=True)
    AddedToken("<x>", rstrip=False, lstrip=False, single_word=False, normalized=False, special=True)
    """
    if isinstance(token, str):
        return AddedToken(token, special=bool(special))
    if not isinstance(token, AddedToken):
        kind = type(token).__name__
        raise InputTypeError(f"a token to add must be str or AddedToken, not {kind}")
    copy = AddedToken(
        token.content,
        single_word=token.single_word,
        lstrip=token.lstrip,
        rstrip=token.rstrip,
        special=token.special if special is None else special,
    )
    copy._normalized = token._normalized
    return copy
