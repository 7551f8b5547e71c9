"""`load_tiktoken_bpe`, for files that are here; Kizami downloads none.

Code that reads a rank file this way only gives the ranks to `Encoding`. `kizami.load` reads such
files itself, in a few milliseconds from the second time on.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from pathlib import Path

from kizami.errors import SourceNotFoundError, VocabularyError

__all__ = ["load_tiktoken_bpe"]


def load_tiktoken_bpe(
    tiktoken_bpe_file: str | os.PathLike[str], expected_hash: str | None = None
) -> dict[bytes, int]:
    """Token bytes to rank.

    Args:
        tiktoken_bpe_file: A rank file.
        expected_hash: Its SHA-256, in hexadecimal digits, which is checked.

    Raises:
        SourceNotFoundError: It is the address of a file somewhere else.
        OSError: It cannot be read.
        VocabularyError: It has another hash, or a line is malformed; `.path`, `.line`.
    """
    name = os.fspath(tiktoken_bpe_file)
    if "://" in name:
        raise SourceNotFoundError(
            f"{name} is not here: download it, and give the path", source=name
        )
    data = Path(name).read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if expected_hash is not None and found != expected_hash:
        raise VocabularyError(
            f"{name} has the SHA-256 {found}, and should have {expected_hash}: get it again",
            path=name,
        )
    ranks = {}
    for number, line in enumerate(data.splitlines(), 1):
        if line:
            try:
                token, rank = line.split()
                ranks[base64.b64decode(token)] = int(rank)
            except (ValueError, binascii.Error):
                raise VocabularyError(
                    f"{name}: line {number} is no token and rank: {line!r}", path=name, line=number
                ) from None
    return ranks
