"""`tokenizers`, run by Kizami: change the import, keep the rest.

    from kizami.compat.tokenizers import Tokenizer

The encoding and decoding side of `tokenizers` 0.23: `Tokenizer`, `Encoding`, `AddedToken`,
`decoders.DecodeStream`. `ABSENT` lists what is missing; each of these names raises
`kizami.errors.UnsupportedError` with the way out.
"""

from typing import Any

from kizami.compat.tokenizers import decoders as decoders
from kizami.compat.tokenizers._absent import ABSENT as ABSENT
from kizami.compat.tokenizers._absent import absent
from kizami.compat.tokenizers._added import AddedToken as AddedToken
from kizami.compat.tokenizers._encoding import Encoding as Encoding
from kizami.compat.tokenizers._tokenizer import Tokenizer as Tokenizer

__all__ = ["ABSENT", "AddedToken", "Encoding", "Tokenizer", "decoders"]

Offsets = tuple[int, int]
TextInputSequence = str
PreTokenizedInputSequence = list[str] | tuple[str]
TextEncodeInput = TextInputSequence | tuple[str, str] | list[str]
PreTokenizedEncodeInput = (
    PreTokenizedInputSequence
    | tuple[PreTokenizedInputSequence, PreTokenizedInputSequence]
    | list[PreTokenizedInputSequence]
)
InputSequence = TextInputSequence | PreTokenizedInputSequence
EncodeInput = TextEncodeInput | PreTokenizedEncodeInput


def __getattr__(name: str) -> Any:
    raise absent(name, __name__, name)
