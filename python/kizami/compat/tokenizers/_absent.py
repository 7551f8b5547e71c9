"""What `tokenizers` has and this drop-in lacks, with the way out of each."""

from __future__ import annotations

from kizami.errors import UnsupportedError

__all__ = ["ABSENT", "absent"]

_BUILD = "Kizami runs tokenizers and does not build them; use the package `tokenizers` to make one"
_STEPS = (
    "Kizami runs all steps as one, as the tokenizer.json says; change that file and load it anew, "
    "or use the package `tokenizers`"
)
_ALIGNED = "for the steps in between, use the package `tokenizers`"

ABSENT = {
    "BertWordPieceTokenizer": "Kizami knows byte-level BPE only; use the package `tokenizers`",
    "ByteLevelBPETokenizer": "use Tokenizer.from_file with a tokenizer.json",
    "CharBPETokenizer": "Kizami knows byte-level BPE only; use the package `tokenizers`",
    "NormalizedString": _ALIGNED,
    "PreTokenizedString": _ALIGNED,
    "Regex": _STEPS,
    "SentencePieceBPETokenizer": "Kizami knows byte-level BPE only; use the package `tokenizers`",
    "SentencePieceUnigramTokenizer": "Kizami knows byte-level BPE only; use the package "
    "`tokenizers`",
    "Token": _ALIGNED,
    "OffsetReferential": _ALIGNED,
    "OffsetType": _ALIGNED,
    "SplitDelimiterBehavior": _STEPS,
    "implementations": "use Tokenizer.from_file with a tokenizer.json",
    "models": _BUILD,
    "normalizers": _STEPS,
    "pre_tokenizers": _STEPS,
    "processors": _STEPS,
    "tools": "use the package `tokenizers`",
    "trainers": _BUILD,
    "decoders.BPEDecoder": _STEPS,
    "decoders.ByteFallback": _STEPS,
    "decoders.ByteLevel": "a loaded tokenizer has one as Tokenizer.decoder; " + _STEPS,
    "decoders.CTC": _STEPS,
    "decoders.Decoder": _STEPS,
    "decoders.Fuse": _STEPS,
    "decoders.Metaspace": _STEPS,
    "decoders.Replace": _STEPS,
    "decoders.Sequence": _STEPS,
    "decoders.Strip": _STEPS,
    "decoders.WordPiece": _STEPS,
    "Tokenizer.train": _BUILD,
    "Tokenizer.train_from_iterator": _BUILD,
}
"""Names of the original that raise `UnsupportedError`, and what to do instead."""


def absent(name: str, module: str, asked: str) -> Exception:
    """The error for a name: of an absent one, or of one that never was."""
    if name not in ABSENT:
        return AttributeError(f"module {module!r} has no attribute {asked!r}")
    return UnsupportedError(f"tokenizers.{name} is not in this drop-in: {ABSENT[name]}", name=name)
