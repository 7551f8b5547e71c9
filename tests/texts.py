"""Strings that find faults: fragments of many scripts, and random texts made of them.

`texts` and `segment_lists` are hypothesis strategies, `Writer` makes strings fast from a seed; both
draw from the same fragments. No text is meant to make sense: what counts is what is beside what.
"""

from __future__ import annotations

import random

from hypothesis import strategies as st

LETTERS = [
    *"abstrevmldkzABSTREVMLDKZ", "é", "É", "ß", "ſ", "\u212a", "İ", "ı", "ŉ", "ǅ", "ᾈ", "ﬁ", "Σ",
    "ς", "π", "Ж", "ж", "Ա", "ա", "Ა", "ა", "Ꭰ", "ꭰ", "\U00010400", "\U00010428", "𝐀", "𝐚", "ª",
    "ʰ", "ˈ", "א", "ש", "ب", "م", "ـ", "अ", "क", "ক", "ก", "เ", "ᄀ", "ᅡ", "한", "국", "あ", "ー",
    "ア", "ｱ", "ㄅ", "𞤀", "𞤢",
]  # fmt: skip
HAN = [
    *"中文字漢々〇〆", "⺀", "〡", "㐀", "豈", "\U00020000", "\U0002a6a5", "\U00030000",
    "\U00016ff0", "\U00016fe2",
]  # fmt: skip
MARKS = [
    "\u0301", "\u0308", "\u064b", "\u093f", "\u094d", "\u0e31", "\u0e48", "\u3099", "\u302a",
    "\u20e3", "\ufe0f", "\U000e0100", "\u0345",
]  # fmt: skip
NUMBERS = [
    *"0123456789", "٣", "९", "๔", "５", "½", "²", "Ⅷ", "ⅳ", "①", "㉈", "\U0001d7d8", "\u3280", "〸",
]  # fmt: skip
SPACES = [
    *" \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2009\u2028\u2029\u202f\u205f\u3000",
    *[" "] * 8, "\n", "\n", "\r\n", "  ", "   ", "\n\n", " \n", "\n ", "\t\t",
]  # fmt: skip
PUNCTUATION = [
    *"'\"’.,:;!?-_/\\()[]{}<>|=+*#@$%^&~`", "''", "...", "::", "->", "」", "、", "€", "∑", "©",
    "\u00ad", "\ufffd",
]  # fmt: skip
INVISIBLE = [
    "\x00", "\x07", "\x7f", "\u180e", "\u200b", "\u200d", "\u2060", "\ufeff", "\ufffe",
    "\U0010ffff",
]  # fmt: skip
EMOJI = ["🎉", "👩\u200d💻", "👍🏽", "🇩🇪", "❤\ufe0f", "1\ufe0f\u20e3"]
# In other Unicode versions than 16 these are in other classes.
DISPUTED = ["\u088f", "\U00016ea0", "\U000323b0", "\U000187f8", "\u0378", "\ue000"]
TAILS = ["s", "S", "ſ", "t", "re", "RE", "rE", "ve", "m", "ll", "LL", "Ll", "d", "D", "x", "\u212a"]
CONTRACTIONS = [f"{quote}{tail}" for quote in ["'", "'", "'", "''", "’"] for tail in TAILS]
CONTROLS = [
    "<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>", "[BOS]", "[EOS]", "[PAD]", "[UNK]",
    "<|media_pad|>", "<osagent_mode>", "<|reserved_token_163700|>",
]  # fmt: skip
LOOKALIKES = [
    "<|", "|>", "<|open", "open|>", "<|OPEN|>", "< |sep|>", "[EOS", "EOS]", "<think>", "</think>",
    "<|im_end|>", "<|reserved_token_163587|>", "<|reserved_token_", "<<|sep|>", "<|sep|>>",
    "<|<|sep|>",
]  # fmt: skip
WORDS = [
    "Hello", " the", " world", "HTML", "fooBar", "don't", "naïve", " Straße", "привет", " Москва",
    "你好世界", "こんにちは", "สวัสดี", "नमस्ते", "مرحبا", "    return x", "std::vec", "1234567",
    "https://", "3.14", "\\u00e9",
]  # fmt: skip
SURROGATES = [*"\ud83d\ude00\udbff\udc00\ud800\udfff", "\ud83d\ude00", "\ude00\ud83d"]

KINDS = [
    LETTERS, HAN, MARKS, NUMBERS, SPACES, PUNCTUATION, INVISIBLE, EMOJI, DISPUTED, CONTRACTIONS,
    CONTROLS, LOOKALIKES, WORDS,
]  # fmt: skip
RUNS = (2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 300)
SLICE, RUN = 400_000, 25_000

_fragment = st.one_of(*(st.sampled_from(kind) for kind in KINDS))
_repeated = st.builds(lambda part, n: part * n, _fragment, st.sampled_from(RUNS))
_any = st.characters(exclude_categories=["Cs"])
_part = st.one_of(_fragment, _fragment, _fragment, _repeated, _any)


def texts(*, surrogates: bool = False, max_parts: int = 24) -> st.SearchStrategy[str]:
    """Mixed strings; with lone surrogates among them if asked."""
    part = st.one_of(_part, st.sampled_from(SURROGATES)) if surrogates else _part
    return st.lists(part, max_size=max_parts).map("".join)


def long_texts() -> st.SearchStrategy[str]:
    """Texts whose runs and slices end within a few code points of where the published path cuts."""
    near = st.integers(-12, 12)
    filler = st.sampled_from(["a", "ab", " ", "\n ", "中", "=", "A", "\u3000", "1", "é"])

    def run(part: str, delta: int) -> str:
        return (part * (RUN // len(part) + 1))[: RUN + delta]

    def fill(part: str, delta: int) -> str:
        return (f"{part * 20_000}\x1f{part * 3} \n" * (SLICE // 20_000))[: SLICE + delta]

    middle = st.one_of(st.builds(run, filler, near), st.builds(fill, filler, near))
    end = texts(surrogates=True, max_parts=8)
    return st.builds("{}{}{}".format, texts(max_parts=3), middle, end)


def segment_lists(*, surrogates: bool = False) -> st.SearchStrategy[list[tuple[str, bool]]]:
    """Lists of `(text, allow_special)`."""
    return st.lists(st.tuples(texts(surrogates=surrogates, max_parts=8), st.booleans()), max_size=8)


class Writer:
    """Random texts from a seed: the same seed, the same texts, on every machine.

    `controls` are the names of control tokens that are put in.
    """

    def __init__(self, seed: int | str, controls: list[str] = CONTROLS) -> None:
        self._random = random.Random(seed)
        kinds = [controls if kind is CONTROLS else kind for kind in KINDS]
        everything = [fragment for kind in kinds for fragment in kind]
        everything += [fragment * self._random.choice(RUNS) for fragment in everything]
        english = [*LETTERS[:24], *SPACES, *PUNCTUATION, *NUMBERS[:10], *CONTRACTIONS, *WORDS]
        surrogates = [*SURROGATES, *LETTERS, *controls]
        mixed = everything + SURROGATES
        self._palettes = [mixed, everything, everything, english, surrogates, *kinds]

    def text(self, most_parts: int = 24) -> str:
        """A mixed text of at most 2,000 code points."""
        rng = self._random
        parts = rng.choices(rng.choice(self._palettes), k=rng.randint(1, most_parts))
        if rng.random() < 0.5:  # a palette of few fragments makes rare pairs meet often
            parts += rng.choices(rng.choices(parts, k=3), k=rng.randint(1, 6))
        if rng.random() < 0.3:
            parts.insert(rng.randint(0, len(parts)), chr(rng.randrange(0x110000)))
        return "".join(parts)[:2_000]

    def run_text(self) -> str:
        """A text with a run near 25,000 code points of one kind."""
        rng = self._random
        kinds = [LETTERS, HAN, NUMBERS, PUNCTUATION, MARKS, SPACES[:20], CONTROLS, WORDS[:1]]
        kind = rng.choice(kinds)
        unit = "".join(rng.choices(kind, k=rng.choice([1, 1, 2, 5, 50])))
        run = (unit * (RUN // len(unit) + 1))[: RUN * rng.choice([1, 1, 2]) + rng.randint(-10, 10)]
        return self.text(4) + run + self.text(8)

    def slice_text(self) -> str:
        """A text near 400,000 code points, with something odd over the border."""
        page = "".join(self.text() for _ in range(60)) + "\x1e \n"
        page = (page * (SLICE // len(page) + 1))[: SLICE - self._random.randint(0, 14)]
        return page + self.text(12)
