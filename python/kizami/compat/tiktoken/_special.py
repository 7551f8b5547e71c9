"""Which special tokens a call allows, and which it refuses: the two arguments of `tiktoken`.

Names are looked for leftmost, and longest first where several begin at one place.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Set
from functools import lru_cache
from typing import Literal, NoReturn

from kizami.errors import InvalidValueError

__all__ = ["Allowed", "Disallowed", "Rule", "names_pattern"]

Allowed = Literal["all"] | Set[str]
Disallowed = Literal["all"] | Collection[str]


class Rule:
    """The two arguments of one call, made definite.

    Attributes:
        allowed: Names that become special tokens.
        disallowed: Strings that raise if the text has them.
        foreign: Whether one of these is not the name of a special token.
        every: Whether all names are allowed.
    """

    __slots__ = ("allowed", "disallowed", "every", "foreign")

    def __init__(self, names: set[str], allowed: Allowed, disallowed: Disallowed) -> None:
        """For an encoding with these names.

        Raises:
            TypeError: `allowed` is no set, or `disallowed` no collection.
        """
        every = names if allowed == "all" else allowed
        refused = names - every if disallowed == "all" else disallowed
        # As there: nothing, None too, refuses nothing.
        self.disallowed = frozenset(refused or ())
        self.foreign = disallowed != "all" and not self.disallowed <= names
        if not isinstance(every, (set, frozenset)):
            kind = type(every).__name__
            raise TypeError(f'allowed_special must be "all" or a set of names, not {kind}')
        self.allowed = every
        self.every = names <= every

    def check(self, text: str) -> None:
        """Raises for a disallowed name in `text`.

        Raises:
            InvalidValueError: There is one.
        """
        if self.disallowed:
            found = names_pattern(self.disallowed).search(text)
            if found is not None:
                refuse(found.group())


@lru_cache(maxsize=128)
def names_pattern(names: frozenset[str]) -> re.Pattern[str]:
    """Finds any of the names; it is one group, so that `split` keeps them."""
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    return re.compile(f"({'|'.join(map(re.escape, longest_first))})")


def refuse(name: str) -> NoReturn:
    """The error for a disallowed name."""
    raise InvalidValueError(
        f"Encountered text corresponding to disallowed special token {name!r}.\n"
        f"To get its id, allow it: `allowed_special={{{name!r}}}`. To take it as ordinary text, "
        f"leave it out of `disallowed_special`; `disallowed_special=()` refuses nothing."
    )
