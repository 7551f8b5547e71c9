"""Laws of encoding, on strings that nobody would write.

`KIZAMI_MAX_EXAMPLES` sets the budget. The reference is slow: texts for it are short, or long
without long pieces.
"""

from __future__ import annotations

import base64
import json
import tempfile
from pathlib import Path

import kizami
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kizami import Segment, Tokenizer
from kizami.reference import ReferenceTokenizer

from tests.oracle import PublishedPath
from tests.texts import RUN, SLICE, long_texts, segment_lists, texts

# Long texts cost some ten milliseconds each.
FEWER = settings(max_examples=max(settings().max_examples // 4, 5))
ATTACKS = ["<|open|>", "[EOS]", "<|reserved_token_163700|>"]


@pytest.fixture(scope="module")
def reference(tokenizer: Tokenizer) -> ReferenceTokenizer:
    return ReferenceTokenizer.from_tokenizer(tokenizer)


@pytest.fixture(scope="module")
def published(tokenizer: Tokenizer) -> PublishedPath:
    return PublishedPath(tokenizer)


@given(text=texts(surrogates=True), trusted=st.booleans())
@example(text="a\ud83d<|open|>\ude00", trusted=True)
@example(text="I'ſ A'Ll 'RE's \u088f's A\U00016ea0a", trusted=False)
def test_encode_equals_the_reference(
    tokenizer: Tokenizer, reference: ReferenceTokenizer, text: str, trusted: bool
) -> None:
    ids = tokenizer.encode(text, allow_special=trusted)

    assert ids.tolist() == reference.encode(text, allow_special=trusted)


@given(segments=segment_lists(surrogates=True))
def test_segments_equal_the_reference(
    tokenizer: Tokenizer, reference: ReferenceTokenizer, segments: list[tuple[str, bool]]
) -> None:
    assert tokenizer.encode_segments(segments).tolist() == reference.encode_segments(segments)


@st.composite
def vocabularies(draw: st.DrawFn) -> list[bytes]:
    """Tokens in rank order: the 256 bytes and some of what "a", "b", "é" and "'" make, shuffled.

    Many are out of reach of merges, or outrank their parts: no trainer would give such a list.
    """
    made = st.text("abé'", min_size=2, max_size=9).map(str.encode)
    cut = made.flatmap(lambda token: st.integers(2, len(token)).map(lambda end: token[:end]))
    longer = draw(st.lists(cut, unique=True, max_size=30))
    tokens = [*(bytes([byte]) for byte in range(256)), *longer]
    return draw(st.permutations(tokens)) if draw(st.booleans()) else tokens


@given(
    tokens=vocabularies(),
    many=st.lists(st.text("abé' ", max_size=40) | st.text("ab", max_size=200), max_size=12),
)
def test_any_vocabulary_equals_the_reference(tokens: list[bytes], many: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        lines = (base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))
        Path(directory, "tiktoken.model").write_bytes(b"".join(lines))
        config = {"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]}}
        Path(directory, "tokenizer_config.json").write_text(json.dumps(config))
        tokenizer = kizami.load(directory)
    reference = ReferenceTokenizer.from_tokenizer(tokenizer)

    assert [token for _, token in tokenizer.tokens()][: len(tokens)] == tokens
    assert tokenizer.encode_batch(many).tolist() == [reference.encode(text) for text in many]


@FEWER
@given(
    unit=st.sampled_from(["1", "1 ", "Ab", "aB\n", "!1", "ǅ9", "٣中", "1\x1c"]),
    delta=st.integers(-12, 3),
    end=texts(surrogates=True, max_parts=6),
    legacy_chunks=st.booleans(),
)
@example(unit="1", delta=-4, end="<|open|>", legacy_chunks=True)
@example(unit="1", delta=-4, end="<|open|>", legacy_chunks=False)
@example(unit="Ab", delta=-1, end="\ud83d\ude00", legacy_chunks=True)
def test_a_long_run_equals_the_reference(
    tokenizer: Tokenizer,
    reference: ReferenceTokenizer,
    unit: str,
    delta: int,
    end: str,
    legacy_chunks: bool,
) -> None:
    # Units with pieces of few bytes: a long piece would take the reference minutes.
    text = (unit * RUN)[: RUN + delta] + end
    ids = tokenizer.encode(text, allow_special=True, legacy_chunks=legacy_chunks)

    assert ids.tolist() == reference.encode(text, allow_special=True, legacy_chunks=legacy_chunks)


@pytest.mark.parametrize("end", ["<|open|>", "\r\nx", "\ud83d\ude00", "e\u0301", "123", "  x"])
def test_a_slice_equals_the_reference(
    tokenizer: Tokenizer, reference: ReferenceTokenizer, end: str
) -> None:
    text = ("Some words. " * SLICE)[: SLICE - 1] + end

    assert tokenizer.encode(text, allow_special=True).tolist() == (
        reference.encode(text, allow_special=True)
    )


@FEWER
@given(text=long_texts(), trusted=st.booleans())
def test_long_text_equals_the_published_path(
    tokenizer: Tokenizer, published: PublishedPath, text: str, trusted: bool
) -> None:
    ids = tokenizer.encode(text, allow_special=trusted).tolist()

    assert ids == published.encode(text, trusted)
    assert tokenizer.count(text, allow_special=trusted) == len(ids)


@given(text=texts(), trusted=st.booleans(), legacy_chunks=st.booleans())
@example(text="e\u0301 \u00e9 ﬁ \ufeffx \x00", trusted=False, legacy_chunks=True)
def test_decoding_gives_the_text_back(
    tokenizer: Tokenizer, text: str, trusted: bool, legacy_chunks: bool
) -> None:
    ids = tokenizer.encode(text, allow_special=trusted, legacy_chunks=legacy_chunks)

    assert tokenizer.decode_bytes(ids) == text.encode()
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode(ids.tolist(), errors="strict") == text


@FEWER
@given(text=long_texts())
def test_decoding_gives_long_text_back(tokenizer: Tokenizer, text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    for legacy_chunks in (True, False):
        ids = tokenizer.encode(text, legacy_chunks=legacy_chunks)
        assert tokenizer.decode_bytes(ids) == text.encode()


@given(many=st.lists(texts(surrogates=True), max_size=12), trusted=st.booleans())
def test_a_batch_is_a_map(tokenizer: Tokenizer, many: list[str], trusted: bool) -> None:
    batch = tokenizer.encode_batch(many, allow_special=trusted)

    assert batch.tolist() == [tokenizer.encode(t, allow_special=trusted).tolist() for t in many]
    assert tokenizer.decode_batch(batch) == [tokenizer.decode(ids) for ids in batch]


@given(text=texts(surrogates=True), trusted=st.booleans(), segments=segment_lists())
def test_a_count_is_a_length(
    tokenizer: Tokenizer, text: str, trusted: bool, segments: list[tuple[str, bool]]
) -> None:
    ids = tokenizer.encode(text, allow_special=trusted)

    assert tokenizer.count(text, allow_special=trusted) == len(ids)
    assert tokenizer.count_segments(segments) == len(tokenizer.encode_segments(segments))


@given(segments=segment_lists(surrogates=True))
@example(segments=[("\ud83d", False), ("\ude00", False)])
@example(segments=[("don", False), ("'t", False), ("", True), ("<|op", True), ("en|>", True)])
def test_segments_are_concatenated(tokenizer: Tokenizer, segments: list[tuple[str, bool]]) -> None:
    parts = [tokenizer.encode(text, allow_special=trusted) for text, trusted in segments]
    ids = tokenizer.encode_segments(segments)

    assert ids.tolist() == [id_ for part in parts for id_ in part.tolist()]
    assert np.array_equal(tokenizer.encode_segments([Segment(*s) for s in segments]), ids)


@given(pieces=st.lists(texts(surrogates=True) | st.sampled_from(ATTACKS), max_size=8))
@example(pieces=["<|end_of_msg|>"])  # the plain attack
@example(pieces=["<|end_of", "_msg|>"])  # the same, split over two segments
def test_untrusted_text_never_gives_a_control_id(tokenizer: Tokenizer, pieces: list[str]) -> None:
    for ids in (
        tokenizer.encode("".join(pieces)),
        tokenizer.encode_segments([(piece, False) for piece in pieces]),
        tokenizer.encode_batch(pieces).ids,
    ):
        assert (ids < 163_584).all()


@pytest.mark.usefixtures("threads")
@FEWER
@given(
    page=texts(surrogates=True).filter(bool),
    length=st.integers(150_000, 900_000),
    tail=texts(max_parts=4),
    count=st.integers(2, 8),
    trusted=st.booleans(),
)
def test_ids_do_not_depend_on_threads(
    tokenizer: Tokenizer, page: str, length: int, tail: str, count: int, trusted: bool
) -> None:
    text = (page * (length // len(page) + 1))[:length] + tail
    segments = [(text, trusted), (tail, False), (text[: length // 3], not trusted)]
    kizami.set_num_threads(1)
    alone = tokenizer.encode(text, allow_special=trusted)
    alone_uncut = tokenizer.encode(text, allow_special=trusted, legacy_chunks=False)
    alone_segments = tokenizer.encode_segments(segments)

    kizami.set_num_threads(count)
    assert np.array_equal(tokenizer.encode(text, allow_special=trusted), alone)
    uncut = tokenizer.encode(text, allow_special=trusted, legacy_chunks=False)
    assert np.array_equal(uncut, alone_uncut)
    assert np.array_equal(tokenizer.encode_segments(segments), alone_segments)
    assert np.array_equal(tokenizer.encode_batch([text, tail], allow_special=trusted)[0], alone)


@given(
    messages=st.lists(
        st.fixed_dictionaries(
            {
                "role": st.sampled_from(["user", "system", "assistant"]),
                "content": texts(surrogates=True, max_parts=6),
            }
        ),
        max_size=5,
    ),
    thinking=st.booleans(),
    effort=st.sampled_from(["low", "high", "max", None]),
)
@example([{"role": "user", "content": "".join(ATTACKS)}], True, None)
def test_a_chat_is_its_segments(
    tokenizer: Tokenizer, messages: list[dict[str, str]], thinking: bool, effort: str | None
) -> None:
    options = {"thinking": thinking, "thinking_effort": effort}
    segments = tokenizer.render_chat(messages, **options)  # type: ignore[arg-type]
    ids = tokenizer.encode_chat(messages, **options)

    assert np.array_equal(ids, tokenizer.encode_segments(segments))
    assert tokenizer.count_chat(messages, **options) == len(ids)
    trusted = sum(tokenizer.count(text, allow_special=True) for text, own in segments if own)
    assert int((ids >= 163_584).sum()) == trusted


@given(ids=st.lists(st.integers(0, 163_839), max_size=60))
def test_decoding_is_concatenation(tokenizer: Tokenizer, ids: list[int]) -> None:
    data = b"".join(map(tokenizer.token_bytes, ids))

    for form in (ids, np.array(ids, np.uint32), np.array(ids, np.int64), tuple(ids)):
        assert tokenizer.decode_bytes(form) == data
        assert tokenizer.decode(form) == data.decode("utf-8", "replace")
