"""Typed segments: the unit in which a prompt's trust is stated.

Holds `Segment` and nothing else, so that renderers (`kizami.chat`) can depend on it alone.
The rule is short: the text of a segment with `allow_special=True` may name control tokens, all
other text never becomes one. `docs/concepts/prompt-integrity.md` tells what follows from it.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Segment"]


class Segment(NamedTuple):
    """A piece of a prompt and whether control-token names in it count.

    Attributes:
        text: The characters. A lone surrogate is encoded as U+FFFD, as the published K3 path does.
        allow_special: True: names of control tokens in `text` become their ids. False (default):
            they are ordinary text. Set it only for text that your own code wrote.

    >>> Segment("<|open|>", True)
    Segment(text='<|open|>', allow_special=True)
    >>> Segment("from a user").allow_special
    False
    """

    text: str
    allow_special: bool = False
