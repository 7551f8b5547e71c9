"""What a text that may go on can become: the rules of tiktoken's `encode_with_unstable`.

Text may end inside a word; then its last ids need not be those of the longer text. Ids before the
last pre-token are taken to be stable, except white space, whose pre-tokens may join. The rest, as
bytes, is completed in every way that one token of the vocabulary allows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kizami.compat.tiktoken._encoding import Encoding

__all__ = ["complete", "encode_bytes"]


def complete(encoding: Encoding, ids: list[int], tail: str) -> tuple[list[int], list[list[int]]]:
    """The stable ones of `ids`, and completions; `tail`: the text behind the last special token."""
    stable, rest = _part(encoding, ids, tail)
    if not rest:
        return stable, []
    found: dict[tuple[int, ...], None] = {}
    found.update(((encoding._mergeable_ranks[token],), None) for token in _begun(encoding, rest))
    longer = [
        rest[:at] + token for at in range(1, len(rest)) for token in _begun(encoding, rest[at:])
    ]
    for sequence in _encode_each(encoding, longer):
        found.setdefault(_covering(encoding, sequence, len(rest)))
    last = _last_space(rest)
    if last and len(rest) > last:
        merge = encoding._merge
        apart = [*merge(rest[:-last], whole=False), *merge(rest[-last:], whole=False)]
        found.setdefault(tuple(apart))
    return stable, [list(sequence) for sequence in found]


def encode_bytes(encoding: Encoding, text: bytes) -> list[int]:
    """The ids of bytes: what is no UTF-8 is one pre-token with the last one before."""
    try:
        return encoding.encode_ordinary(text.decode())
    except UnicodeDecodeError as error:
        valid, rest = text[: error.start].decode(), text[error.start :]
    ids, last = _part(encoding, encoding.encode_ordinary(valid), valid)
    return [*ids, *encoding._merge(last + rest, whole=True)]


def _part(encoding: Encoding, ids: list[int], tail: str) -> tuple[list[int], bytes]:
    """The stable ids, and the bytes of the others."""
    starts, ends = encoding.tokenizer._native.split(tail)
    if not len(ends):
        return ids, b""
    last = tail.encode()[starts[-1] : ends[-1]]
    first = len(ids) - len(encoding._encode_single_piece(last))
    if _is_space(encoding, ids[first]):
        while first > 0 and _is_space(encoding, ids[first - 1]):
            first -= 1
    return ids[:first], encoding.decode_bytes(ids[first:])


def _is_space(encoding: Encoding, id_: int) -> bool:
    if id_ in encoding._special_token_values:
        return False
    return not encoding.decode_single_token_bytes(id_).strip(b" \n\t")


def _begun(encoding: Encoding, start: bytes) -> Iterator[bytes]:
    """The tokens that begin with these bytes."""
    tokens = encoding._sorted_tokens
    first = bisect_left(tokens, start)
    candidates = (tokens[at] for at in range(first, len(tokens)))
    return takewhile(lambda token: token.startswith(start), candidates)


def _encode_each(encoding: Encoding, many: list[bytes]) -> Iterator[list[int]]:
    """The ids of each, as text where it is UTF-8; texts go in one call."""
    texts: list[str | None] = []
    for piece in many:
        try:
            texts.append(piece.decode())
        except UnicodeDecodeError:
            texts.append(None)
    encoded = iter(encoding.encode_ordinary_batch(t for t in texts if t is not None))
    for piece, text in zip(many, texts, strict=True):
        yield encoding._merge(piece, whole=False) if text is None else next(encoded)


def _covering(encoding: Encoding, ids: list[int], length: int) -> tuple[int, ...]:
    """The first ids that have together at least so many bytes."""
    covered = 0
    for count, id_ in enumerate(ids, 1):
        covered += len(encoding.decode_single_token_bytes(id_))
        if covered >= length:
            return tuple(ids[:count])
    return tuple(ids)


def _last_space(piece: bytes) -> int:
    """The length in bytes of the last character if it is white space, else 0."""
    for length in range(1, min(4, len(piece)) + 1):
        if piece[-length] & 0xC0 != 0x80:
            try:
                character = piece[-length:].decode()
            except UnicodeDecodeError:
                return 0
            # Python also counts four separators, which are no white space in Unicode.
            return length if character.isspace() and character not in "\x1c\x1d\x1e\x1f" else 0
    return 0
