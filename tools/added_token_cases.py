"""Writes `crates/core/tests/data/added_tokens.jsonl`: what `tokenizers` makes of added tokens.

    python tools/added_token_cases.py > crates/core/tests/data/added_tokens.jsonl

One line a tokenizer: its `added_tokens` and `normalizer` as in a `tokenizer.json`, the version of
the package, and cases `[text, trusted, untrusted]`. The vocabulary is the 256 bytes, id = byte,
without merges, and nothing splits the text. Results are lists of text (bytes that are ordinary
tokens) and token ids. Untrusted text is encoded with a tokenizer that has only those added tokens
that are white space and not special.

`--cases N` makes N texts a tokenizer in place of 24, from another seed with `--seed`: for a
comparison by hand.
"""

import argparse
import json
import random
import sys
from typing import Any

import tokenizers

WORDS = [
    "tea",
    "Tea",
    "mask",
    "unmasked",
    "don't",
    "x1",
    "été",
    "e\u0301",
    "茶",
    "が",
    "か\u3099",
    "İ",
    "ﬁ",
    "①",
    "_",
    "9",
]
SPACES = [" ", "  ", "   ", "\n", "\t", "\u3000", "\u00a0", "\r\n", "\u2028", "\x1c", "\u200b"]
MARKS = [
    ",",
    ".",
    "-",
    "!",
    "<",
    ">",
    "|",
    "😀",
    "\u0301",
    "\u0330",
    "\U0001e4ec",
    "\U00016d67",
    "\U00011938",
    "A\u030a",
]
NAMES = [
    "<mask>",
    "<MASK>",
    "<a>",
    "<a><b>",
    "tea",
    "Té",
    "te\u0301",
    "  ",
    "    ",
    "\n\n",
    "|mid|",
    "茶",
    "<a> ",
    " <b>",
]
NORMALIZERS: list[dict[str, Any] | None] = [
    None,
    {"type": "NFC"},
    {"type": "NFD"},
    {"type": "NFKC"},
    {"type": "NFKD"},
    {"type": "Lowercase"},
    {"type": "Strip", "strip_left": True, "strip_right": True},
    {"type": "Strip", "strip_left": False, "strip_right": True},
    {
        "type": "Sequence",
        "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}],
    },
    {
        "type": "Sequence",
        "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        ],
    },
    {
        "type": "Sequence",
        "normalizers": [
            {"type": "NFC"},
            {"type": "Lowercase"},
            {"type": "Replace", "pattern": {"Regex": "\\s+|^-"}, "content": " $0 "},
        ],
    },
]


def byte_letters() -> dict[int, str]:
    """The letter by which a byte stands in a byte-level vocabulary."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    return {byte: chr(byte) for byte in own} | {byte: chr(256 + i) for i, byte in enumerate(others)}


def tokenizer(
    added: list[dict[str, Any]], normalizer: dict[str, Any] | None
) -> tokenizers.Tokenizer:
    """One that knows bytes and these tokens."""
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
    vocab = {letter: byte for byte, letter in byte_letters().items()}
    return tokenizers.Tokenizer.from_str(
        json.dumps(
            {
                "version": "1.0",
                "added_tokens": added,
                "normalizer": normalizer,
                "pre_tokenizer": byte_level,
                "post_processor": None,
                "decoder": byte_level,
                "model": {"type": "BPE", "vocab": vocab, "merges": []},
            }
        )
    )


def result(made: tokenizers.Tokenizer, text: str, given: dict[str, int]) -> list[str | int]:
    """The ids of a text; runs of bytes as text, added tokens by their id in the file."""
    names = {id_: token.content for id_, token in made.get_added_tokens_decoder().items()}
    out: list[str | int] = []
    run = b""
    for id_ in made.encode(text).ids:
        if id_ in names:
            if run:
                out.append(run.decode())
                run = b""
            out.append(given[names[id_]])
        else:
            run += bytes([id_])
    return [*out, run.decode()] if run else out


def added_tokens(rng: random.Random, normalizer: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Some tokens with flags at random."""
    names = rng.sample(NAMES, rng.randint(1, len(NAMES)))
    if normalizer:
        # Of names that are the same once normalized, the package takes any; one that is nothing
        # makes it run away.
        normalize = tokenizer([], normalizer).normalizer.normalize_str
        names = list({normalize(name): name for name in names if normalize(name)}.values())
    odds = rng.choice([0.0, 0.2, 0.5])
    flags = ["single_word", "lstrip", "rstrip", "normalized"]
    return [
        {
            "id": 256 + i,
            "content": name,
            **{flag: rng.random() < odds for flag in flags},
            "special": rng.random() < 0.5,
        }
        for i, name in enumerate(names)
    ]


def text(rng: random.Random, added: list[dict[str, Any]]) -> str:
    """A text in which such tokens are likely."""
    names = [token["content"] for token in added] or NAMES
    kinds = rng.choices([WORDS, SPACES, MARKS, names], [3, 4, 1, 4], k=rng.randint(0, 14))
    return "".join(rng.choice(kind) for kind in kinds)


def main() -> None:
    """Writes the cases."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    for normalizer in NORMALIZERS * options.rounds:
        added = added_tokens(rng, normalizer)
        given = {token["content"]: token["id"] for token in added}
        trusted = tokenizer(added, normalizer)
        white = [token for token in added if token["content"].isspace() and not token["special"]]
        untrusted = tokenizer(white, normalizer)
        cases = []
        for _ in range(options.cases):
            sample = text(rng, added)
            try:
                cases.append(
                    [sample, result(trusted, sample, given), result(untrusted, sample, given)]
                )
            except BaseException as error:
                # The package crashes where strips of two tokens meet, and on some text that grows
                # in lower case.
                if type(error).__name__ != "PanicException":
                    raise
        head = {
            "tokenizers": tokenizers.__version__,
            "added_tokens": added,
            "normalizer": normalizer,
        }
        json.dump({**head, "cases": cases}, sys.stdout, ensure_ascii=False)
        sys.stdout.write("\n")


if __name__ == "__main__":
    main()
