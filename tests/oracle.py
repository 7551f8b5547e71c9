"""The published path, built from parts that are not ours: `tiktoken`, between the cuts of K3.

`PublishedPath` takes nothing from the tokenizer under test but its list of tokens (whose checksum a
unit test pins), so it runs wherever `tiktoken` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
import tiktoken
from kizami import Tokenizer, _native
from kizami.reference import RUN, cuts, well_formed

Ids = npt.NDArray[np.uint32]

# A special token of the oracle alone, put between texts to encode many in one call: tiktoken
# encodes what is between special tokens on its own, and no control name overlaps this one.
SEPARATOR = "<|end of text of the oracle|>"


class PublishedPath:
    """Ids as the tokenizer published with the model gives them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        controls = dict(tokenizer.control_tokens)
        control_ids = set(controls.values())
        self._separator_id = max(control_ids) + 1
        self._controls = frozenset(controls)
        self._encoding = tiktoken.Encoding(
            "published",
            pat_str=_native.KIMI_PATTERN,
            mergeable_ranks={t: i for i, t in tokenizer.tokens() if i not in control_ids},
            special_tokens={**controls, SEPARATOR: self._separator_id},
        )

    def encode(self, text: str, allow_special: bool = False) -> list[int]:
        """The ids of one text. Lone surrogates are left to tiktoken, which knows the rule."""
        allowed = self._controls if allow_special else frozenset[str]()
        encode = self._encoding.encode
        stretches = self.cuts(text)
        ids = (encode(s, allowed_special=allowed, disallowed_special=()) for s in stretches)
        return list(chain.from_iterable(ids))

    def cuts(self, text: str) -> list[str]:
        """The stretches that are encoded one by one."""
        return [text] if len(text) <= RUN else cuts(text)

    def encode_segments(self, segments: Iterable[tuple[str, bool]]) -> list[int]:
        """The ids of each segment, one after the other."""
        return list(chain.from_iterable(self.encode(*segment) for segment in segments))

    def encode_many(
        self, texts: Sequence[str], allow_special: bool = False
    ) -> tuple[Ids, npt.NDArray[np.int64]]:
        """The ids of texts that need no cuts, and `len(texts) + 1` offsets, in one call."""
        joined = SEPARATOR.join([*texts, ""])
        if not joined.isascii():
            # The separator keeps the last surrogate of a text and the first of the next apart.
            joined = well_formed(joined)
        allowed = {SEPARATOR, *self._controls} if allow_special else {SEPARATOR}
        found = self._encoding.encode_to_numpy(
            joined, allowed_special=allowed, disallowed_special=()
        )
        is_separator = found == self._separator_id
        ends = np.flatnonzero(is_separator)
        if len(ends) != len(texts) or max(map(len, texts), default=0) > RUN:
            raise ValueError("a text holds the separator, or is long enough to be cut")
        offsets = np.zeros(len(texts) + 1, np.int64)
        offsets[1:] = ends - np.arange(len(ends))
        return found[~is_separator], offsets
