"""Laws of sessions: whatever was asked before, the ids are those of a full encode."""

from __future__ import annotations

import random
import threading
from base64 import b64encode
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import kizami
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kizami import Session, SessionCache, Tokenizer
from kizami._native import GPT2_PATTERN

from tests.prompts import ENDS, another
from tests.property.fuzz_sessions import Check, prompts, shared, talk
from tests.texts import RUN, SLICE, segment_lists, texts


def small(control_tokens: dict[str, int]) -> Tokenizer:
    """A vocabulary of bytes, and of these names."""
    ranks = b"".join(b64encode(bytes([byte])) + b" %d\n" % byte for byte in range(256))
    with TemporaryDirectory() as folder:
        path = Path(folder, "small.tiktoken")
        path.write_bytes(ranks)
        return kizami.load(path, pattern=GPT2_PATTERN, special_tokens=control_tokens)


K3 = kizami.load("kimi-k3")
NAMED = small({"<|im_start|>": 300, "<a b>": 301, "<a b><|im": 302, "_start": 303, " ": 304})
FEWER = settings(max_examples=max(settings().max_examples // 4, 5))


@given(st.lists(segment_lists(surrogates=True), max_size=6))
def test_any_prompts_one_after_the_other(prompts: list[list[tuple[str, bool]]]) -> None:
    session, cache = K3.session(), SessionCache(K3, max_bytes=1 << 20)
    given_out = []

    for prompt in [*prompts, *prompts]:
        want = K3.encode_segments(prompt)
        for keep in (session, cache):
            ids = keep.encode_segments(prompt)
            assert np.array_equal(ids, want)
            given_out.append((ids, want))

    assert all(np.array_equal(ids, want) for ids, want in given_out)


@given(texts(surrogates=True), texts(surrogates=True), texts(surrogates=True), st.booleans())
def test_a_text_that_grows_and_changes(start: str, old: str, new: str, trusted: bool) -> None:
    session, cache = K3.session(), SessionCache(K3, max_bytes=1 << 20)

    for text in (start + old, start + new, start, start + new + old, start + new[1:]):
        want = K3.encode(text, allow_special=trusted)
        for keep in (session, cache):
            assert np.array_equal(keep.encode_segments([(text, trusted)]), want)


@FEWER
@given(st.integers(0, 1 << 32), st.sampled_from([prompts, talk]))
@pytest.mark.filterwarnings("ignore::kizami.errors.ChatWarning")
def test_walks(seed: int, steps: object) -> None:
    # `fuzz_sessions.py` goes on for as long as you like.
    rng = random.Random(seed)
    check = Check(rng, f"seed {seed}")
    steps(rng, check, shared(1 << 16), 25)  # type: ignore[operator]

    assert check.result.differences == []


def grown(session: Session, pieces: list[str], trusted: bool) -> list[int]:
    """The text grows piece by piece; for each step, how many ids were encoded anew."""
    fresh, text = [], ""
    for piece in pieces:
        text += piece
        ids = session.encode_segments([(text, trusted)])
        assert np.array_equal(ids, K3.encode(text, allow_special=trusted)), text[-200:]
        fresh.append(len(ids) - session.reused)
    return fresh


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("trusted", [False, True])
def test_every_kind_of_boundary(end: str, trusted: bool) -> None:
    words = "Some words, and more of them. " * 20
    for more in ENDS:
        fresh = grown(K3.session(), [words + end, more, " and so on", *end, *more], trusted)
        # A word or two, and never the beginning.
        assert max(fresh[1:]) < 20, (end, more)


@pytest.mark.parametrize(
    "unit", ["a", "ab ", " ", "\n", "中", "=", "1", "\u3000", "é", "\U00010400", "<|sep|>"]
)
@pytest.mark.parametrize("border", [RUN, 2 * RUN, SLICE])
@pytest.mark.parametrize("trusted", [False, True])
def test_growing_over_the_cuts(unit: str, border: int, trusted: bool) -> None:
    count = border // len(unit) - 3
    pieces = [unit * count, *([unit] * 6), "x", " ", unit * 3, "\ud83d", "\ude00", unit]
    filler = ["Some words before. "] if border == SLICE else []
    session = K3.session()

    fresh = grown(session, filler + pieces, trusted)

    # Not more than a run between two cuts is encoded again.
    run = len(K3.encode((unit * RUN)[:RUN], allow_special=trusted))
    assert max(fresh[len(filler) + 1 :]) <= run + 200


def test_only_the_end_is_new() -> None:
    text = "Words that an agent reads, again and again.\n" * 2_000
    session = K3.session()
    session.encode_segments([("<|open|>", True), (text, False)])

    ids = session.encode_segments([("<|open|>", True), (another(text), False), ("new", False)])
    assert session.reused == len(ids) - 1
    ids = session.encode_segments([("<|open|>", True), (text + "new end", False), ("new", False)])
    assert len(ids) - session.reused < 20
    # An early edit: what stands behind it is found again.
    ids = session.encode_segments([("<|close|>", True), ("new", False), (text + "new end", False)])
    assert len(ids) - session.reused == 2
    # In the middle of a text.
    middle = len(text) // 2
    ids = session.encode_segments([("<|close|>", True), ("new", False), (text[:middle], False)])
    assert len(ids) - session.reused < 10


def test_a_branch_finds_its_trunk() -> None:
    cache = SessionCache(K3, max_bytes=1 << 22)
    trunk = [("<|open|>", True)] + [(f"turn {i} " * 30, False) for i in range(40)]
    cache.encode_segments(trunk)

    for branch in range(5):
        prompt = [(another(text), trusted) for text, trusted in trunk]
        prompt += [(f"{branch} is the branch", False)]
        before = cache.statistics()
        ids = cache.encode_segments(prompt)
        after = cache.statistics()
        assert np.array_equal(ids, K3.encode_segments(prompt))
        assert after.reused - before.reused >= len(K3.encode_segments(trunk))


def test_texts_that_differ_in_few_places_are_kept_side_by_side() -> None:
    cache = SessionCache(K3, max_bytes=1 << 24)
    system = "Instructions that all users share. " * 200

    def prompts(user: int) -> list[list[tuple[str, bool]]]:
        middle = len(system) // 2 + 123
        text = f"{system[:middle]}user {user:04}{system[middle:]}"
        return [[(text, False), ("hello " * turn, False)] for turn in range(1, 5)]

    for user in range(10):
        for prompt in prompts(user):
            assert np.array_equal(cache.encode_segments(prompt), K3.encode_segments(prompt))

    held = cache.statistics()
    assert held.reused > 0.8 * held.ids
    # Those of all users are there, though they look alike at a glance, and whoever asked last.
    for user in [*range(10), *range(10)]:
        before = cache.statistics().reused
        ids = cache.encode_segments(prompts(user)[-1])
        assert cache.statistics().reused - before == len(ids), user


def test_what_is_known_at_a_glance_is_believed_only_when_it_is_true() -> None:
    cache = SessionCache(K3, max_bytes=1 << 24)
    places = range(0, 5_000, 97)

    def prompt(*changed: int) -> list[tuple[str, bool]]:
        texts = []
        for number in range(4):
            text = list("The same text in all of them. " * 170)
            for place in changed:
                if place % 4 == number:
                    text[place] = "#"
            texts.append(("".join(text), False))
        return texts

    for place in places:
        for one in (prompt(), prompt(place), prompt(place, place + 1)):
            assert np.array_equal(cache.encode_segments(one), K3.encode_segments(one)), place
    assert cache.statistics().reused > 0


def test_b69_options_are_a_part_of_what_is_known() -> None:
    text = "a" * (RUN + 10) + "<|open|>"
    session, cache = K3.session(), SessionCache(K3, max_bytes=1 << 22)

    for chunks, trusted in [
        (True, True),
        (True, False),
        (False, True),
        (True, True),
        (False, False),
    ]:
        for prompt in ([(text, trusted)], [(text + "more", trusted)]):
            want = K3.encode_segments(prompt, legacy_chunks=chunks)
            for keep in (session, cache):
                assert np.array_equal(keep.encode_segments(prompt, legacy_chunks=chunks), want)


def test_b68_a_name_that_grows_into_a_longer_one() -> None:
    names = {"<a>": 300, "<a><b>": 301}
    tokenizer = small(names)
    session, cache = tokenizer.session(), SessionCache(tokenizer, max_bytes=1 << 20)

    for text in ("x<a>", "x<a><", "x<a><b", "x<a><b>", "x<a><b>y", "x<a>y"):
        want = tokenizer.encode(text, allow_special=True)
        for keep in (session, cache):
            assert np.array_equal(keep.encode_segments([(text, True)]), want), text
    assert tokenizer.encode("x<a><b>y", allow_special=True).tolist()[1] == 301


def test_an_id_of_two_names() -> None:
    tokenizer = kizami.load("o200k_harmony")
    first, second = [name for name, id_ in tokenizer.control_tokens.items() if id_ == 200_018]
    session = tokenizer.session()

    text = ""
    for piece in (first, " a", second, " b", first, "c ", second * 3, " d", " e", first[:5], "f"):
        text += piece
        want = tokenizer.encode(text, allow_special=True)
        assert np.array_equal(session.encode_segments([(text, True)]), want), text


@given(
    st.lists(
        st.sampled_from(["<", "<|im", "_", "start|>", "|>", " ", " b", ">", "a b>", "<a", "x1"]),
        max_size=20,
    )
)
def test_names_with_pre_tokens_in_them(pieces: list[str]) -> None:
    # Here a pre-token may end inside a name, and a name is found all the same.
    session, text = NAMED.session(), ""
    for piece in pieces:
        text += piece
        ids = session.encode_segments([(text, True), (text, False)])
        want = NAMED.encode_segments([(text, True), (text, False)])
        assert np.array_equal(ids, want), text


def test_b71_two_vocabularies_side_by_side() -> None:
    other = small({"<|open|>": 300})
    sessions = [(K3, K3.session()), (other, other.session())]
    caches = [
        (K3, SessionCache(K3, max_bytes=1 << 20)),
        (other, SessionCache(other, max_bytes=1 << 20)),
    ]

    for length in range(1, 20):
        prompt = [("<|open|>" * length, True), ("<|open|> text " * length, False)]
        for tokenizer, keep in [*sessions, *caches]:
            want = tokenizer.encode_segments(prompt)
            assert np.array_equal(keep.encode_segments(prompt), want)


def test_many_threads_share_a_session_and_a_cache() -> None:
    session, cache = K3.session(), SessionCache(K3, max_bytes=300_000)
    trunk = [(f"turn {i} " * 20, False) for i in range(20)]
    wrong: list[object] = []

    def work(number: int) -> None:
        rng = random.Random(number)
        for step in range(60):
            prompt = trunk[: rng.randrange(21)] + [(f"{number} {step}", False)] * rng.randrange(3)
            want = K3.encode_segments(prompt)
            for keep in (session, cache):
                ids = keep.encode_segments(prompt)
                if not np.array_equal(ids, want):
                    wrong.append((number, step))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []
    assert cache.statistics().requests == 480


@FEWER
@given(st.lists(segment_lists(), min_size=1, max_size=12), st.sampled_from([0, 1_000, 20_000]))
def test_a_cache_keeps_its_budget(prompts: list[list[tuple[str, bool]]], max_bytes: int) -> None:
    cache = SessionCache(K3, max_bytes=max_bytes)

    for prompt in prompts:
        assert np.array_equal(cache.encode_segments(prompt), K3.encode_segments(prompt))
        assert cache.statistics().bytes <= max_bytes

    cache.clear()
    held = cache.statistics()
    assert (held.bytes, held.prompts, held.requests) == (0, 0, len(prompts))


def test_what_was_used_last_stays() -> None:
    cache = SessionCache(K3, max_bytes=200_000)
    often = [("the one that is asked for " * 100, False)]
    cache.encode_segments(often)

    for number in range(200):
        cache.encode_segments([(f"{number} something else " * 100, False)])
        before = cache.statistics().reused
        cache.encode_segments(often)
        assert cache.statistics().reused > before, number
    assert cache.statistics().evicted > 100


@given(st.lists(segment_lists(), min_size=1, max_size=8))
def test_what_is_unchanged_is_the_beginning(prompts: list[list[tuple[str, bool]]]) -> None:
    session = K3.session()
    hasher = kizami.BlockHasher(4, scheme="dynamo-sequence")
    before = np.array([], np.uint32)

    for prompt in [*prompts, *(prompts[-1][:end] for end in range(len(prompts[-1])))]:
        ids = session.encode_segments(prompt)
        assert session.unchanged <= session.reused
        assert np.array_equal(ids[: session.unchanged], before[: session.unchanged])
        hasher.push(ids[hasher.rewind(session.unchanged) :])
        want = kizami.block_hashes(K3.encode_segments(prompt), 4, scheme="dynamo-sequence")
        assert np.array_equal(hasher.hashes(), want)
        before = ids


def test_shorter_and_longer_in_turn_do_not_disturb_what_was_given() -> None:
    session = K3.session()
    prompt = [(f"turn {i} ", False) for i in range(30)]
    arrays = []

    for length in [30, 20, 25, 10, 30, 0, 15, 30]:
        ids = session.encode_segments(prompt[:length])
        arrays.append((ids, K3.encode_segments(prompt[:length])))

    assert all(np.array_equal(ids, want) for ids, want in arrays)
    for (a, _), (b, _) in pairwise(arrays):
        assert not a.flags.writeable
        assert a is not b
