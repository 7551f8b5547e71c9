"""`Tokenizer.stream`: what it takes, what it refuses, what comes when."""

from __future__ import annotations

import codecs
import copy
import gc
import json
import pickle
import threading
from pathlib import Path
from typing import Any

import kizami
import numpy as np
import pytest
from kizami import Tokenizer
from kizami.errors import InputTypeError, InvalidIdError, InvalidValueError, KizamiError

HELLO = [19180, 11, 2695]
PARTY = [5885, 236, 231]  # the bytes of U+1F389: F0 9F, 8E, 89


def single_bytes(tokenizer: Tokenizer) -> dict[int, int]:
    return {token[0]: id_ for id_, token in tokenizer.tokens() if len(token) == 1}


def feed(tokenizer: Tokenizer, ids: list[int], **options: Any) -> tuple[list[str], str, str | None]:
    """What each `push` gives, what `finish` gives, and the stop string."""
    stream = tokenizer.stream(**options)
    texts = [stream.push(id_) for id_ in ids]
    return texts, stream.finish(), stream.stopped


def test_b42_a_stream_that_starts_inside_a_character_gives_no_text_of_the_prompt(
    tokenizer: Tokenizer,
) -> None:
    prompt = [*tokenizer.encode("secret ").tolist(), *tokenizer.encode("🎉").tolist()[:2]]
    last = tokenizer.encode("🎉").tolist()[2]
    stream = tokenizer.stream()

    # The stream is not given the prompt; a caller who wants the character gives its beginning.
    assert stream.push(prompt[-2:]) == ""
    assert stream.push(last) == "🎉"
    assert tokenizer.stream().push(last) == "\ufffd"


def test_b44_one_id_at_a_time_gives_whole_characters(tokenizer: Tokenizer) -> None:
    family = "👨\u200d👩\u200d👧"
    texts, rest, _ = feed(tokenizer, tokenizer.encode(family).tolist())

    assert "".join(texts) == family
    assert rest == ""
    assert "\ufffd" not in "".join(texts)
    assert "" in texts


def test_b45_a_stream_that_ends_inside_a_character(tokenizer: Tokenizer) -> None:
    texts, rest, _ = feed(tokenizer, tokenizer.encode("a🎉").tolist()[:-1])

    assert "".join(texts) == "a"
    assert rest == "\ufffd"


def test_b47_nothing_is_put_between_tokens(tokenizer: Tokenizer) -> None:
    texts, _, _ = feed(tokenizer, [163587, 25385, 163589])

    assert texts == ["<|open|>", "tools", "<|sep|>"]


def test_b48_only_flagged_tokens_are_skipped(tokenizer: Tokenizer) -> None:
    texts, _, _ = feed(tokenizer, [163587, 64, 163586, 163588], skip_special=True)

    assert texts == ["<|open|>", "a", "", "<|close|>"]


@pytest.mark.parametrize("bad", [163840, -1, 2**32 - 1, 2**32, 2**63, -(2**70)])
@pytest.mark.parametrize(
    "form", [int, lambda id_: [64, id_], lambda id_: (64, id_), lambda id_: iter([64, id_])]
)
def test_b49_a_bad_id_is_named_and_changes_nothing(
    tokenizer: Tokenizer, form: Any, bad: int
) -> None:
    stream = tokenizer.stream(stop="ab")
    assert stream.push([*tokenizer.encode("xa"), *PARTY[:2]]) == "x"
    with pytest.raises(InvalidIdError) as caught:
        stream.push(form(bad))

    error = caught.value
    position = 0 if form is int else 1
    assert (error.id, error.position, error.vocab_size) == (bad, position, 163840)
    assert isinstance(error, ValueError)
    assert isinstance(error, KizamiError)
    assert stream.push(PARTY[2]) == "a🎉"


@pytest.mark.parametrize(
    ("dtype", "bad"),
    [("int8", -1), ("int64", -1), ("uint32", 163840), ("uint64", 2**63), ("int64", 2**32)],
)
def test_b49_a_bad_id_in_an_array(tokenizer: Tokenizer, dtype: str, bad: int) -> None:
    ids = np.array([64, 64, 64], dtype)
    ids[2] = bad
    with pytest.raises(InvalidIdError) as caught:
        tokenizer.stream().push(ids)

    assert (caught.value.id, caught.value.position) == (bad, 2)


def test_b49_a_bad_id_after_a_stop_is_refused_all_the_same(tokenizer: Tokenizer) -> None:
    stream = tokenizer.stream(stop="a")
    with pytest.raises(InvalidIdError):
        stream.push([64, 163840])
    assert stream.stopped is None
    assert stream.push(64) == ""
    with pytest.raises(InvalidIdError):
        stream.push(163840)
    assert stream.stopped == "a"


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("stop", [(), "x", "\ufffd" * 100 + "x"])
def test_b50_many_lead_bytes_take_linear_time(
    tokenizer: Tokenizer, at_once: bool, stop: Any
) -> None:
    lead = single_bytes(tokenizer)[0xF0]
    stream = tokenizer.stream(stop=stop)
    pushes = [[lead] * 500_000] if at_once else [lead] * 500_000
    text = "".join(map(stream.push, pushes))

    # What is quadratic would take hours.
    assert text + stream.finish() == "\ufffd" * 500_000


def test_b50_no_more_is_held_than_must_be(tokenizer: Tokenizer) -> None:
    lead = single_bytes(tokenizer)[0xF0]
    stream = tokenizer.stream()
    for _ in range(3):
        text = stream.push([lead] * 1000)
    assert text == "\ufffd" * 1000


def test_b51_a_stream_begins_without_a_look_at_anything(tokenizer: Tokenizer) -> None:
    stream = tokenizer.stream()

    assert (stream.finish(), stream.stopped, stream.push([])) == ("", None, "")
    assert stream.push(PARTY[1]) == "\ufffd"


def test_invalid_bytes_are_given_as_soon_as_they_are_certain(tokenizer: Tokenizer) -> None:
    single = single_bytes(tokenizer)
    for data, texts, rest in [
        (b"\xe2\x82\xac", ["", "", "€"], ""),
        (b"\xe2\x28\xa1", ["", "\ufffd(", "\ufffd"], ""),
        (b"\xf0\x9f\x8ea", ["", "", "", "\ufffda"], ""),
        (b"\xc0\xaf", ["\ufffd", "\ufffd"], ""),
        (b"\xed\xa0\x80", ["", "\ufffd\ufffd", "\ufffd"], ""),
        (b"\xf0\xf0\x9f\x8e", ["", "\ufffd", "", ""], "\ufffd"),
        (b"\xf4\x90", ["", "\ufffd\ufffd"], ""),
        (b"\xef\xbf\xbd", ["", "", "\ufffd"], ""),
    ]:
        ids = [single[byte] for byte in data]
        assert feed(tokenizer, ids) == (texts, rest, None), data


def test_a_real_replacement_character_comes_at_once(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("a\ufffdb").tolist()
    texts, rest, _ = feed(tokenizer, ids)

    assert "".join(texts) == "a\ufffdb"
    assert rest == ""
    whole = tokenizer.token_id("\ufffd")
    if whole is not None:
        assert tokenizer.stream().push(whole) == "\ufffd"


@pytest.mark.parametrize(
    "ids",
    [
        HELLO,
        tuple(HELLO),
        iter(HELLO),
        (id_ for id_ in HELLO),
        np.array(HELLO),
        np.array(HELLO, np.uint32),
        np.array(HELLO * 2, np.uint32)[:3],
        np.array([HELLO, HELLO], np.uint32).T[:, 0],
        np.array(HELLO, np.uint64),
        [np.int64(HELLO[0]), np.uint32(11), np.int16(2695)],
    ],
)
def test_forms_of_several_ids(tokenizer: Tokenizer, ids: Any) -> None:
    assert tokenizer.stream().push(ids) == "Hello, world"


@pytest.mark.parametrize("id_", [64, np.uint32(64), np.int8(64), np.array(64), np.array([64])])
def test_forms_of_one_id(tokenizer: Tokenizer, id_: Any) -> None:
    assert tokenizer.stream().push(id_) == "a"


def test_an_object_that_stands_for_an_int_or_exports_an_array(tokenizer: Tokenizer) -> None:
    class Index:
        def __index__(self) -> int:
            return 64

    class Tensor:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.array(64)

    stream = tokenizer.stream()
    assert stream.push(Index()) == "a"
    assert stream.push([Index(), 64]) == "aa"
    assert stream.push(Tensor()) == "a"  # type: ignore[arg-type]


@pytest.mark.parametrize("empty", [[], (), np.array([], np.uint32), np.array([])])
def test_b59_no_ids_give_no_text(tokenizer: Tokenizer, empty: Any) -> None:
    stream = tokenizer.stream()

    assert stream.push(PARTY[0]) == ""
    assert stream.push(empty) == ""
    assert stream.push(PARTY[1:]) == "🎉"


@pytest.mark.parametrize(
    "bad",
    [None, "64", b"@", 1.0, True, np.True_, [True], [1.0], ["a"], [None], np.array([1.0]),
     np.array([[64]]), {64: 1}, {64}, object()],
)  # fmt: skip
def test_what_is_no_id_is_refused_and_changes_nothing(tokenizer: Tokenizer, bad: Any) -> None:
    stream = tokenizer.stream()
    stream.push(PARTY[:2])
    with pytest.raises(InputTypeError):
        stream.push(bad)

    assert stream.push(PARTY[2]) == "🎉"


def test_options_are_checked(tokenizer: Tokenizer) -> None:
    for flag in ("False", None, 2):
        with pytest.raises(InputTypeError, match="skip_special must be True or False"):
            tokenizer.stream(skip_special=flag)  # type: ignore[arg-type]
    for stop in (5, b"x", [b"x"], ["a", None], [["a"]]):
        with pytest.raises(InputTypeError, match="stop"):
            tokenizer.stream(stop=stop)  # type: ignore[arg-type]
    for values in ("", ["a", ""], "\ud800", "a\udfff"):
        with pytest.raises(InvalidValueError, match="stop string"):
            tokenizer.stream(stop=values)
    with pytest.raises(InputTypeError) as caught:
        tokenizer.stream(stop=["a", 1])  # type: ignore[list-item]
    assert caught.value.position == 1


@pytest.mark.parametrize("stop", [(), [], None, iter([])])
def test_no_stop_strings(tokenizer: Tokenizer, stop: Any) -> None:
    assert feed(tokenizer, HELLO, stop=stop) == (["Hello", ",", " world"], "", None)


@pytest.mark.parametrize("stop", ["wor", ["wor"], ("x", "wor"), iter(["wor", "wor"]), {"wor": 1}])
def test_forms_of_stop_strings(tokenizer: Tokenizer, stop: Any) -> None:
    assert feed(tokenizer, HELLO, stop=stop) == (["Hello", ",", " "], "", "wor")


@pytest.mark.parametrize(
    ("stop", "texts", "rest", "stopped"),
    [
        (["lo, w"], ["Hel", "", ""], "", "lo, w"),
        (["o, x", ", wo"], ["Hell", "", "o"], "", ", wo"),
        (["Hello"], ["", "", ""], "", "Hello"),
        (["d"], ["Hello", ",", " worl"], "", "d"),
        (["world!"], ["Hello", ",", " "], "world", None),
        # The first to begin wins, though another ends before it does.
        (["ello, w", "l"], ["H", "", ""], "", "ello, w"),
        # The longest of those that begin at one place; known when the text goes another way.
        (["ello", "ello, you"], ["H", "", ""], "", "ello"),
        (["world", "world!"], ["Hello", ",", " "], "", "world"),
        (["el", "ello"], ["H", "", ""], "", "ello"),
    ],
)
def test_stop_strings(
    tokenizer: Tokenizer, stop: list[str], texts: list[str], rest: str, stopped: str | None
) -> None:
    assert feed(tokenizer, HELLO, stop=stop) == (texts, rest, stopped)


def test_stop_strings_across_the_bytes_of_a_character(tokenizer: Tokenizer) -> None:
    assert feed(tokenizer, PARTY, stop="🎉") == (["", "", ""], "", "🎉")
    # The same first three bytes, another character.
    assert feed(tokenizer, PARTY, stop="🎈") == (["", "", "🎉"], "", None)
    # What is cut off at the end becomes U+FFFD, which may be a stop string, too.
    assert feed(tokenizer, [64, *PARTY[:2]], stop="a\ufffd") == (["", "", ""], "", "a\ufffd")


def test_names_of_control_tokens_are_text_to_stop_at(tokenizer: Tokenizer) -> None:
    ids = [64, 163586, 65]

    assert feed(tokenizer, ids, stop="<|end_of_msg|>") == (["a", "", ""], "", "<|end_of_msg|>")
    skipped = feed(tokenizer, ids, stop="<|end_of_msg|>", skip_special=True)
    assert skipped == (["a", "", "b"], "", None)
    # Text on both sides of a token that is skipped is side by side.
    assert feed(tokenizer, ids, stop="ab", skip_special=True) == (["", "", ""], "", "ab")


def test_stopped_is_read_only_and_says_nothing_too_early(tokenizer: Tokenizer) -> None:
    stream = tokenizer.stream(stop=", world")
    stream.push(HELLO[:2])
    assert stream.stopped is None
    stream.push(HELLO[2])
    assert stream.stopped == ", world"
    with pytest.raises(AttributeError):
        stream.stopped = None  # type: ignore[misc]


def test_after_finish_a_new_text_begins(tokenizer: Tokenizer) -> None:
    stream = tokenizer.stream(stop="lo!")
    assert stream.push(HELLO[0]) == "Hel"
    assert stream.finish() == "lo"
    assert stream.finish() == ""
    assert stream.push(tokenizer.encode("!lo")) == "!"
    assert stream.push(tokenizer.encode("!")) == ""
    assert (stream.finish(), stream.stopped) == ("", "lo!")
    assert stream.push(HELLO) == ""


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_copy_goes_its_own_way(tokenizer: Tokenizer, duplicate: Any) -> None:
    stream = tokenizer.stream(stop="lo!")
    stream.push(HELLO[0])
    branch = duplicate(stream)
    assert type(branch) is kizami.DecodeStream

    assert stream.push(tokenizer.encode("!")) == ""
    assert branch.push(PARTY[:2]) == ""
    assert (stream.stopped, branch.stopped) == ("lo!", None)
    assert duplicate(branch).push(PARTY[2]) == "lo🎉"
    assert branch.finish() == "lo\ufffd"
    assert duplicate(stream).stopped == "lo!"


def test_a_stream_is_not_pickled(tokenizer: Tokenizer) -> None:
    with pytest.raises(TypeError, match="pickle the tokenizer"):
        pickle.dumps(tokenizer.stream())


def test_a_stream_keeps_its_tokenizer_alive() -> None:
    stream = kizami.load("kimi-k2").stream()
    gc.collect()

    assert stream.push(64) == "a"


def test_the_text_of_a_token_is_made_once(tokenizer: Tokenizer) -> None:
    streams = [
        tokenizer.stream(),
        tokenizer.stream(skip_special=True),
        tokenizer.stream(stop="END"),
        copy.copy(tokenizer.stream()),
    ]
    (word,) = tokenizer.encode(" conversation").tolist()

    texts = [stream.push(word) for stream in streams for _ in range(2)]

    assert {id(text) for text in texts} == {id(texts[0])}
    assert texts[0] == " conversation"


def test_what_parts_of_a_character_give_is_made_once(tokenizer: Tokenizer) -> None:
    parties = []
    options: dict[str, Any]
    for options in ({}, {"skip_special": True}, {"stop": "END"}, {}):
        stream = tokenizer.stream(**options)
        for _ in range(2):
            assert [stream.push(id_) for id_ in PARTY[:2]] == ["", ""]
            parties.append(stream.push(PARTY[2]))
    assert {id(party) for party in parties} == {id(parties[0])}
    assert parties[0] == "🎉"


def test_the_text_of_a_token_is_not_given_where_it_is_not_the_answer(tokenizer: Tokenizer) -> None:
    (word,) = tokenizer.encode(" end").tolist()
    lead, *_ = tokenizer.encode("🎉").tolist()
    tokenizer.stream().push(word)

    stream = tokenizer.stream()
    assert [stream.push(id_) for id_ in (lead, word, word)] == ["", "� end", " end"]
    stream = tokenizer.stream(stop=["end!", "d e"])
    assert [stream.push(id_) for id_ in (word, word, word)] == [" ", "en", ""]
    assert stream.stopped == "d e"


def test_a_flagged_token_that_the_vocabulary_has_too_is_skipped(tmp_path: Path) -> None:
    # As in many files: the special token is among the ordinary ones, and added once more.
    alphabet = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in alphabet]
    chars = [chr(byte) for byte in alphabet] + [chr(256 + n) for n in range(len(rest))]
    vocab = {char: id_ for id_, char in enumerate(chars)} | {"<end>": 256}
    special = {"id": 256, "content": "<end>", "special": True, "normalized": False}
    flags = dict.fromkeys(["single_word", "lstrip", "rstrip"], False)
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    (tmp_path / "tokenizer.json").write_text(
        json.dumps(
            {
                "version": "1.0",
                "added_tokens": [special | flags],
                "normalizer": None,
                "pre_tokenizer": byte_level | {"trim_offsets": True},
                "post_processor": None,
                "decoder": byte_level | {"trim_offsets": True},
                "model": {"type": "BPE", "vocab": vocab, "merges": []},
            }
        )
    )
    tokenizer = kizami.load(tmp_path)
    ids = tokenizer.encode("a<end>b", allow_special=True).tolist()

    for skip, want in ((False, "a<end>b"), (True, "ab"), (False, "a<end>b"), (True, "ab")):
        stream = tokenizer.stream(skip_special=skip)
        assert "".join(stream.push(id_) for id_ in ids) + stream.finish() == want
        assert tokenizer.decode(ids, skip_special=skip) == want


def test_threads_make_the_texts_of_one_tokenizer() -> None:
    tokenizer = kizami.load("kimi-k3")
    ids = np.arange(0, 20_000, 3, dtype=np.uint32)
    want = [tokenizer.decode([id_]) for id_ in ids]
    wrong: list[int] = []

    def work() -> None:
        for id_, text in zip(ids.tolist(), want, strict=True):
            stream = tokenizer.stream()
            if stream.push(id_) + stream.finish() != text:
                wrong.append(id_)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_threads_that_share_a_stream_take_turns(tokenizer: Tokenizer) -> None:
    stream = tokenizer.stream(stop="no such text")
    texts: list[str] = []

    def work() -> None:
        texts.extend(stream.push([64] * 2000) + stream.push(64) for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert "".join(texts) + stream.finish() == "a" * (8 * 50 * 2001)


@pytest.mark.parametrize("stop", [(), "no such text"])
def test_no_byte_is_lost_or_doubled_when_threads_share_a_stream(
    tokenizer: Tokenizer, stop: Any
) -> None:
    """In whatever order they come: a byte is half an "é", or gives a U+FFFD."""
    single = single_bytes(tokenizer)
    pair = [single[0xC3], single[0xA9]]
    long = np.array(pair * 40_000, np.uint32)  # pushed without the interpreter's lock
    stream = tokenizer.stream(stop=stop)
    texts: list[str] = []

    def work(number: int) -> None:
        for count in range(5):
            texts.append(stream.push(long[number:]))
            texts.extend([stream.push(pair[(number + count + at) % 2]) for at in range(3_000)])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    text = "".join(texts) + stream.finish()
    pushed = sum(5 * (len(long) - number + 3_000) for number in range(4))
    assert set(text) <= {"é", "\ufffd"}
    assert 2 * text.count("é") + text.count("\ufffd") == pushed


def test_more_steps_than_are_kept(tokenizer: Tokenizer) -> None:
    """Parts of characters behind parts of characters: as Python's own decoder has it, once they
    are made and once they are kept, or would be if there were room."""
    tokens = dict(tokenizer.tokens())
    single = single_bytes(tokenizer)
    parts = [id_ for id_, token in tokens.items() if not is_utf8(token)]
    begun = [[single[byte] for byte in data] for data in (b"\xc3", b"\xe0\xb8", b"\xf0\x9f\x8e")]
    steps = [(before, id_) for before in [[], *begun] for id_ in [*parts, *range(300, 2_000)]]
    assert len(steps) > 8_192

    for _ in range(2):
        for before, id_ in steps:
            stream, decoder = tokenizer.stream(), codecs.getincrementaldecoder("utf-8")("replace")
            given = [stream.push(one) for one in (*before, id_)]
            assert given == [decoder.decode(tokens[one]) for one in (*before, id_)]
            assert stream.finish() == decoder.decode(b"", final=True)


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
