"""Large tables of a fast tokenizer, which its copies share.

`transformers` 5 keeps the vocabulary and the merges that some tokenizers were built from, and never
changes them; a copy of half a second would be made of them with each tokenizer.
"""

from __future__ import annotations

from typing import Any

__all__ = ["share_tables"]

# Below, a copy costs less than a millisecond.
_LARGE = 10_000


class SharedDict(dict[Any, Any]):
    """A dict that a deep copy takes over as it is."""

    def __deepcopy__(self, memo: dict[int, Any]) -> SharedDict:
        return self


class SharedList(list[Any]):
    """A list that a deep copy takes over as it is."""

    def __deepcopy__(self, memo: dict[int, Any]) -> SharedList:
        return self


def share_tables(tokenizer: Any) -> None:
    """Lets copies of a tokenizer share what is large.

    >>> from types import SimpleNamespace
    >>> import copy
    >>> holder = SimpleNamespace(large=list(range(20_000)), small=[1, 2])
    >>> share_tables(holder)
    >>> other = copy.deepcopy(holder)
    >>> other.large is holder.large, other.small is holder.small
    (True, False)
    """
    held = tokenizer.__dict__
    for name, value in list(held.items()):
        if type(value) is dict and len(value) > _LARGE:
            held[name] = SharedDict(value)
        elif type(value) is list and len(value) > _LARGE:
            held[name] = SharedList(value)
