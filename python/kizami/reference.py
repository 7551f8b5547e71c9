"""The rules in slow, short Python: what every fast path of Kizami must equal.

Read it to learn how text becomes ids; tests use it as their oracle. It shares nothing with the
native scanner and merger but the Unicode class of each code point. In the order of a text's way:
`cuts`, `well_formed`, control names (`ReferenceTokenizer`), `split`, `merge`.

Cost: `merge` is quadratic in a piece and looks at every pair in every step; a text of some thousand
characters is fine, a book is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from kizami import _native

if TYPE_CHECKING:
    from kizami._tokenizer import Tokenizer

__all__ = ["ReferenceTokenizer", "cuts", "merge", "pattern", "split", "well_formed"]

SLICE = 400_000
"""Code points that the published path takes at a time."""

RUN = 25_000
"""Most code points of one kind (whitespace or not) in a row that it leaves uncut."""


def cuts(text: str) -> list[str]:
    """The stretches of `text` that the published path encodes one by one.

    Slices of 400,000 code points; inside each, a cut before the code point that would make a run of
    whitespace, or of anything else, longer than 25,000. Whitespace is what `str.isspace` says.

    Law: `"".join(cuts(text)) == text`.

    >>> [len(stretch) for stretch in cuts("a" * 25_001)]
    [25000, 1]
    >>> [len(stretch) for stretch in cuts("a" * 20_000 + " " + "a" * 20_000)]
    [40001]
    >>> [len(stretch) for stretch in cuts("ab " * 150_000)]
    [400000, 50000]
    """
    slices = (text[start : start + SLICE] for start in range(0, len(text), SLICE))
    return list(chain.from_iterable(map(_cut_runs, slices)))


def _cut_runs(text: str) -> Iterator[str]:
    start = run = 0
    kind = None
    for at, char in enumerate(text):
        if char.isspace() is not kind:
            kind = char.isspace()
            run = 0
        if run == RUN:
            yield text[start:at]
            start, run = at, 0
        run += 1
    yield text[start:]


def well_formed(text: str) -> str:
    """`text` read as UTF-16, unpaired surrogates replaced by U+FFFD.

    >>> well_formed("a\\ud83d"), well_formed("\\ud83d\\ude00")
    ('a�', '😀')
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@cache
def pattern() -> re.Pattern[str]:
    """The split pattern: the published one, with its Unicode sets written out.

    The sets come from the table that the native scanner uses (Unicode 16), because the tables of
    Python's own `re` and `unicodedata` change with the version of Python.
    """
    space = _set("space", "newline")
    letter = _set("upper", "lower", "caseless", "han_letter")
    number = _set("number", "han_number")
    han = _set("han_letter", "han_number", "han_other")
    head = _set("upper", "caseless", "mark")  # [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]
    tail = _set("lower", "caseless", "mark")  # [\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]
    # (?i:'s|'t|'re|'ve|'m|'ll|'d); the long s, U+017F, folds to s.
    contraction = "(?:'[sSſ]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
    alternatives = [
        rf"[{han}]+",
        rf"[^\r\n{letter}{number}]?[{head}]*[{tail}]+{contraction}?",
        rf"[^\r\n{letter}{number}]?[{head}]+[{tail}]*{contraction}?",
        rf"[{number}]{{1,3}}",
        rf" ?[^{space}{letter}{number}]+[\r\n]*",
        rf"[{space}]*[\r\n]+",
        rf"[{space}]+(?![^{space}])",
        rf"[{space}]+",
    ]
    return re.compile("|".join(alternatives))


def _set(*names: str) -> str:
    """The code points of these classes, as the inside of a bracket expression."""
    classes = re.escape(bytes(list(_native.CLASS_NAMES).index(name) for name in names))
    runs = re.finditer(b"[" + classes + b"]+", _native.char_classes())
    return "".join(rf"\U{run.start():08x}-\U{run.end() - 1:08x}" for run in runs)


def split(text: str) -> list[str]:
    """The pieces of `text` that are merged one by one. `text` holds no lone surrogate.

    Law: `"".join(split(text)) == text`.

    >>> split("Hello, world's  end")
    ['Hello', ',', " world's", ' ', ' end']
    >>> split("don'ſ 12345 中文abc ok?\\n\\n")
    ["don'ſ", ' ', '123', '45', ' ', '中文', 'abc', ' ok', '?\\n\\n']
    """
    return pattern().findall(text)


def merge(piece: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """The ids of one piece: byte pair encoding, as naive as it can be.

    A piece that is a token is that token. Else it starts as single bytes, and the adjacent pair
    that makes the token of lowest rank, the leftmost among equals, is joined, until no pair
    makes a token.

    Raises:
        KeyError: A single byte of the piece is no token.

    >>> ranks = {b"a": 0, b"b": 1, b"c": 2, b"ab": 3, b"bc": 4, b"abc": 5, b"ca": 6}
    >>> merge(b"abc", ranks), merge(b"bc", ranks)
    ([5], [4])
    >>> merge(b"bcab", ranks)  # b c a b -> b c ab -> bc ab
    [4, 3]
    >>> merge(b"aaca", ranks)  # a a c a -> a a ca
    [0, 0, 6]
    """
    if piece in ranks:
        return [ranks[piece]]
    parts = [bytes([byte]) for byte in piece]
    while True:
        joined = [a + b for a, b in pairwise(parts)]
        tokens = [(ranks[pair], at) for at, pair in enumerate(joined) if pair in ranks]
        if not tokens:
            return [ranks[part] for part in parts]
        _, at = min(tokens)
        parts[at : at + 2] = [joined[at]]


class ReferenceTokenizer:
    """Encodes and decodes by the functions of this module.

    >>> tiny = ReferenceTokenizer({b"a": 0, b"b": 1, b"<": 2, b">": 3, b"ab": 4}, {"<b>": 5})
    >>> tiny.encode("ab<b>"), tiny.encode("ab<b>", allow_special=True)
    ([4, 2, 1, 3], [4, 5])
    >>> tiny.decode([4, 5])
    'ab<b>'
    """

    def __init__(self, ranks: Mapping[bytes, int], control_tokens: Mapping[str, int]) -> None:
        """`ranks`: id of each ordinary token; `control_tokens`: id of each control name."""
        self.ranks = dict(ranks)
        self.control_tokens = dict(control_tokens)
        self._bytes = {id_: token for token, id_ in self.ranks.items()}
        self._bytes.update((id_, name.encode()) for name, id_ in control_tokens.items())
        longest_first = sorted(self.control_tokens, key=len, reverse=True)
        self._names = re.compile("(" + ("|".join(map(re.escape, longest_first)) or "(?!)") + ")")

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer) -> ReferenceTokenizer:
        """The slow twin of a tokenizer with the split pattern of the Kimi line.

        >>> import kizami
        >>> ReferenceTokenizer.from_tokenizer(kizami.load("kimi-k3")).encode("Hello, world")
        [19180, 11, 2695]
        """
        controls = tokenizer.control_tokens
        control_ids = set(controls.values())
        return cls({token: i for i, token in tokenizer.tokens() if i not in control_ids}, controls)

    def encode(
        self, text: str, *, allow_special: bool = False, legacy_chunks: bool = True
    ) -> list[int]:
        """The ids of one text; arguments as in `kizami.Tokenizer.encode`."""
        ids = []
        for stretch in map(well_formed, cuts(text) if legacy_chunks else [text]):
            # A split by a pattern with one group puts what the group matched at the odd places.
            parts = self._names.split(stretch) if allow_special else [stretch]
            for place, part in enumerate(parts):
                if place % 2:
                    ids.append(self.control_tokens[part])
                else:
                    ids += chain.from_iterable(merge(p.encode(), self.ranks) for p in split(part))
        return ids

    def encode_segments(
        self, segments: Iterable[tuple[str, bool]], *, legacy_chunks: bool = True
    ) -> list[int]:
        """The ids of each segment, one after the other."""
        encode = self.encode
        parts = (encode(t, allow_special=s, legacy_chunks=legacy_chunks) for t, s in segments)
        return list(chain.from_iterable(parts))

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes of the tokens, concatenated. An id that is no token is a `KeyError`."""
        return b"".join(self._bytes[id_] for id_ in ids)

    def decode(self, ids: Iterable[int]) -> str:
        """`decode_bytes` as text; bytes that are no UTF-8 become U+FFFD."""
        return self.decode_bytes(ids).decode("utf-8", "replace")
