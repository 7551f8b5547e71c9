"""Texts of the benchmark: the same for a seed, new for another, of the size asked for."""

from __future__ import annotations

from pathlib import Path

import kizami
import pytest
from kizami.bench.lab.inputs import random_words, read_prompts, write_prompts
from kizami.bench.prompts import SHAPES, Prompts
from kizami.bench.texts import KINDS, WORST, Sources, Texts


@pytest.fixture(scope="module")
def texts() -> Texts:
    """Without a corpus: what runs with nothing but the wheel."""
    return Texts(Sources(Path()))


@pytest.mark.parametrize("kind", [*KINDS, *WORST])
def test_a_text_follows_from_its_arguments(texts: Texts, kind: str) -> None:
    text = texts.make(kind, 5000, 1)

    assert len(text) == 5000
    assert text == Texts(Sources(Path())).make(kind, 5000, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_another_seed_gives_another_text(texts: Texts, kind: str) -> None:
    one, two = (texts.make(kind, 5000, seed) for seed in (1, 2))
    lines = set(one.splitlines()) & set(two.splitlines())

    assert one[:200] != two[:200]
    assert sum(map(len, lines)) < 0.5 * len(one)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_have_words_that_no_earlier_text_had(texts: Texts, kind: str) -> None:
    seen = set(texts.make(kind, 300_000, 1).split())
    new = [word for word in texts.make(kind, 20_000, 2).split() if word not in seen]

    assert len(new) > 10


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["agent", "english", "code", "zh", "mixed"])
@pytest.mark.parametrize("tokens", [300, 1500, 16_000])
def test_prompts_have_the_size_that_was_asked(
    texts: Texts, shape: str, kind: str, tokens: int
) -> None:
    prompts = Prompts(texts)
    for seed in (1, 2):
        prompt = prompts.of_tokens(shape, kind, tokens, seed)
        count = kizami.load("kimi-k3").count_segments(prompt)

        assert abs(count - tokens) <= 0.03 * tokens
        assert len(prompt) == {"text": 1, "54": 54, "118": 118}[shape]


def test_a_prompt_does_not_depend_on_what_was_made_before(texts: Texts) -> None:
    fresh = Prompts(texts).of_tokens("118", "agent", 1500, 7)
    used = Prompts(texts)
    used.of_tokens("118", "agent", 16_000, 3)

    assert used.of_tokens("118", "agent", 1500, 7) == fresh


@pytest.mark.parametrize("kind", ["random-han", "emoji", "digits"])
def test_a_megabyte_is_one(texts: Texts, kind: str) -> None:
    [(text, special)] = Prompts(texts).of_bytes(kind, 1_000_000, 1)

    assert abs(len(text.encode()) - 1_000_000) <= 30_000
    assert not special


def test_prompts_survive_the_way_to_a_worker(tmp_path: Path) -> None:
    prompts = [[("<|open|>", True), ("naïve 語 \ud83d \n", False)], [("", False)]]
    write_prompts(tmp_path / "prompts.json", prompts)

    assert read_prompts(str(tmp_path / "prompts.json")) == prompts


def test_random_words_are_words() -> None:
    words = random_words(10_000, 1).split(" ")

    assert len(random_words(10_000, 1)) == 10_000
    assert len(set(words)) > 0.9 * len(words)
    assert max(map(len, words)) <= 12


def test_a_corpus_is_used_and_named(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    sentences = "".join(f"Номер {n} идёт дальше. " for n in range(2000))
    corpus.write_text(f"{sentences}<|endoftext|>hello", encoding="utf-8")
    sources = Sources(corpus)

    assert sources.origin("ru").startswith("corpus/")
    assert sources.origin("hi").startswith("generated/")
    assert "идёт" in Texts(sources).make("ru", 500, 1)
