"""The drop-in as an interface: names, errors, parts, threads, processes, `asyncio`."""

from __future__ import annotations

import asyncio
import copy
import gzip
import importlib
import inspect
import json
import multiprocessing
import pickle
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kizami
import numpy as np
import pytest
from hypothesis import given
from kizami.compat import tokenizers as ours
from kizami.compat.tokenizers import ABSENT, decoders
from kizami.errors import (
    InputTypeError,
    InvalidIdError,
    InvalidValueError,
    SourceNotFoundError,
    UnknownFormatError,
    UnsupportedError,
    VocabularyError,
)

from tests.compat.hf import BOS, PROCESSORS, both, file_of, model, seen, small, theirs, tried
from tests.texts import texts

# Not of the library: what Python shows of it.
INCIDENTAL = {"Enum", "List", "Tuple", "Union", "tokenizers"}


def public(thing: Any) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


# Names


def test_every_name_of_the_original_is_there_or_absent_by_name() -> None:
    names = dict.fromkeys(public(theirs) - INCIDENTAL, ours)
    steps = public(theirs.decoders) - INCIDENTAL - {"decoders"}
    names |= {f"decoders.{name}": decoders for name in steps}
    for name, module in names.items():
        last = name.rpartition(".")[2]
        if name in ABSENT:
            with pytest.raises(UnsupportedError, match=last) as caught:
                getattr(module, last)
            assert caught.value.name == name
            assert caught.value.message.partition(": ")[2] == ABSENT[name]
        else:
            assert hasattr(module, last), name
    # Nothing is called absent that never was; `tools` is a module that one imports.
    assert {n for n in ABSENT if "Tokenizer." not in n} - names.keys() <= {"tools"}


@pytest.mark.parametrize("kind", ["Tokenizer", "Encoding", "AddedToken"])
def test_every_method_of_the_original_is_there_or_absent_by_name(kind: str) -> None:
    mine, original = getattr(ours, kind), getattr(theirs, kind)
    for name in public(original):
        assert hasattr(mine, name), name
        if f"{kind}.{name}" in ABSENT:
            with pytest.raises(UnsupportedError) as caught:
                getattr(both(small()).ours, name)([])
            assert caught.value.name == f"{kind}.{name}"
    added = {"Tokenizer": {"from_kizami", "to_kizami"}}.get(kind, set())
    assert public(mine) - public(original) == added


def test_arguments_have_the_names_and_defaults_of_the_original() -> None:
    for kind in ("Tokenizer", "Encoding"):
        for name in public(getattr(theirs, kind)):
            original = getattr(getattr(theirs, kind), name)
            if not callable(original) or f"{kind}.{name}" in ABSENT:
                continue
            mine = getattr(getattr(ours, kind), name)
            stated = inspect.signature(original).parameters
            for parameter, given_ in inspect.signature(mine).parameters.items():
                if given_.kind in (given_.VAR_KEYWORD, given_.VAR_POSITIONAL):
                    continue
                assert parameter in stated, (name, parameter)
                default = stated[parameter].default
                if default is not ...:
                    assert given_.default == default, (name, parameter)


def test_names_that_never_were_are_attribute_errors() -> None:
    for module in (ours, decoders):
        assert not hasattr(module, "colour")
    with pytest.raises(ImportError):
        importlib.import_module("kizami.compat.tokenizers.colour")


def test_the_way_out_of_a_missing_part_is_said() -> None:
    tokenizer = both(small()).ours
    for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder", "model"):
        with pytest.raises(UnsupportedError, match=r"cannot be set.*load it anew") as caught:
            setattr(tokenizer, part, None)
        assert isinstance(caught.value, NotImplementedError)
        assert caught.value.name == f"Tokenizer.{part}"
    with pytest.raises(UnsupportedError, match="get_vocab"):
        _ = tokenizer.model
    with pytest.raises(UnsupportedError, match="from_file"):
        ours.Tokenizer(None)


def test_parts_say_what_they_are() -> None:
    pair = both(small(processor=PROCESSORS["bos"], normalizer={"type": "NFC"}))
    for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        original, mine = pair.each(lambda t, p=part: getattr(t, p))
        stated = json.loads(mine.__getstate__())
        assert json.loads(original.__getstate__()).items() >= stated.items()
        assert pickle.loads(pickle.dumps(mine)).__getstate__() == mine.__getstate__()
    assert both(small()).ours.normalizer is None


# Loading


def test_all_ways_to_load(tmp_path: Path) -> None:
    text = small(processor=PROCESSORS["bos"])
    plain, packed = tmp_path / "tokenizer.json", tmp_path / "packed.json.gz"
    plain.write_text(text, encoding="utf-8")
    packed.write_bytes(gzip.compress(text.encode()))
    loaded = [
        ours.Tokenizer.from_str(text),
        ours.Tokenizer.from_buffer(text.encode()),
        ours.Tokenizer.from_file(str(plain)),
        ours.Tokenizer.from_file(plain),
        ours.Tokenizer.from_file(packed),
        ours.Tokenizer.from_pretrained(str(tmp_path)),
    ]
    expected = seen(theirs.Tokenizer.from_str(text).encode("the abc é"))
    for tokenizer in loaded:
        assert seen(tokenizer.encode("the abc é")) == expected


def test_what_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError):
        ours.Tokenizer.from_file(tmp_path / "nothing.json")
    with pytest.raises(SourceNotFoundError, match=r"has no tokenizer\.json"):
        ours.Tokenizer.from_pretrained(str(tmp_path))
    for text, kind in (
        ("{", VocabularyError),
        ("[]", VocabularyError),
        ("{}", UnknownFormatError),
        (small(model={"type": "WordPiece", "vocab": {}}), UnknownFormatError),
        (small(processor={"type": "Colour"}), UnknownFormatError),
        (small(processor={"type": "TemplateProcessing"}), VocabularyError),
        (small(truncation={"max_length": 3}), VocabularyError),
        (small(padding={"strategy": "Fixed"}), VocabularyError),
    ):
        assert isinstance(tried(lambda t=text: theirs.Tokenizer.from_str(t)).error, Exception)
        with pytest.raises(kind):
            ours.Tokenizer.from_str(text)
    for wrong in (5, None, b"{}"):
        with pytest.raises(InputTypeError):
            ours.Tokenizer.from_str(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError):
        ours.Tokenizer.from_buffer("{}")  # type: ignore[arg-type]
    with pytest.raises(InputTypeError):
        ours.Tokenizer.from_kizami("kimi-k3")  # type: ignore[arg-type]


def test_other_decoders_are_refused_when_asked() -> None:
    pair = both(small(decoder={"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"}))
    ids = pair.theirs.encode("the abc").ids
    assert pair.ours.encode("the abc").ids == ids
    for call in (
        lambda: pair.ours.decode(ids),
        lambda: pair.ours.decoder.decode(["a"]),
        lambda: decoders.DecodeStream().step(pair.ours, ids),
    ):
        with pytest.raises(UnsupportedError, match="decoder 'Metaspace' is not supported"):
            call()


def test_no_decoder_puts_spaces_between_names() -> None:
    pair = both(small(decoder=None))
    ids = pair.theirs.encode(f"the abc{BOS} é").ids
    for skip in (True, False):
        original, mine = pair.each(lambda t, s=skip: t.decode([*ids, 9999], s))
        assert mine == original
    assert pair.ours.decoder is None


@given(texts(max_parts=6))
def test_a_tokenizer_of_kizami(text: str) -> None:
    k3 = kizami.load("kimi-k3")
    tokenizer = ours.Tokenizer.from_kizami(k3)
    encoding = tokenizer.encode(text)
    ids, starts, ends = k3.encode_with_offsets(text, allow_special=True)
    assert encoding.ids == ids.tolist()
    assert encoding.offsets == list(zip(starts.tolist(), ends.tolist(), strict=True))
    assert tokenizer.decode(encoding.ids, skip_special_tokens=False) == k3.decode(ids)
    assert tokenizer.decode(encoding.ids) == k3.decode(ids, skip_special=True)
    assert [tokenizer.token_to_id(token) for token in encoding.tokens] == encoding.ids


def test_b08_the_vocabulary_of_kizami() -> None:
    k3 = kizami.load("kimi-k3")
    tokenizer = ours.Tokenizer.from_kizami(k3)
    vocab = tokenizer.get_vocab()
    assert len(vocab) == tokenizer.get_vocab_size() == k3.vocab_size
    assert tokenizer.token_to_id("[PAD]") == vocab["[PAD]"] == 163839
    assert tokenizer.id_to_token(163605) == "<|media_pad|>"
    assert tokenizer.id_to_token(163840) is None
    assert tokenizer.to_kizami() is k3
    twin = pickle.loads(pickle.dumps(tokenizer))
    assert twin.encode("Hello <|open|>").ids == tokenizer.encode("Hello <|open|>").ids
    assert tokenizer.add_tokens(["<new>"]) == 1
    assert tokenizer.token_to_id("<new>") == 163840
    assert tokenizer.encode("a<new>").ids[-1] == 163840


# Input


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.encode(5),
        lambda t: t.encode(None),
        lambda t: t.encode(b"abc"),
        lambda t: t.encode(["a", "b"]),
        lambda t: t.encode("a", ["b"]),
        lambda t: t.encode("a", is_pretokenized=True),
        lambda t: t.encode(["a", 5], is_pretokenized=True),
        lambda t: t.encode_batch("abc"),
        lambda t: t.encode_batch(5),
        lambda t: t.encode_batch([5]),
        lambda t: t.encode_batch([("a",)]),
        lambda t: t.encode_batch([["a", "b", "c"]]),
        lambda t: t.encode_batch(["a"], is_pretokenized=True),
        lambda t: t.enable_truncation(5, strategy="all"),
        lambda t: t.enable_truncation(5, direction="up"),
        lambda t: t.enable_truncation(-1),
        lambda t: t.enable_truncation("5"),
        lambda t: t.enable_truncation(5, stride=6),
        lambda t: t.enable_padding(direction="up"),
        lambda t: t.enable_padding(pad_id=-1),
        lambda t: t.enable_padding(pad_id=1 << 32),
        lambda t: t.enable_padding(pad_token=5),
        lambda t: t.enable_padding(length="5"),
        lambda t: t.decode("abc"),
        lambda t: t.decode(5),
        lambda t: t.decode(None),
        lambda t: t.decode([1.5]),
        lambda t: t.decode([-1]),
        lambda t: t.decode([1 << 32]),
        lambda t: t.decode_batch(5),
        lambda t: t.id_to_token(-1),
        lambda t: t.id_to_token(1 << 32),
        lambda t: t.id_to_token("a"),
        lambda t: t.token_to_id(5),
        lambda t: t.post_process("abc"),
    ],
)
def test_b49_b84_what_is_refused(call: Any) -> None:
    pair = both(small())
    original, mine = pair.each(lambda t: tried(lambda: call(t)))
    assert mine == original
    assert isinstance(mine.error, (InputTypeError, InvalidValueError, InvalidIdError))
    assert (pair.ours.truncation, pair.ours.padding) == (None, None)


def test_forms_of_a_batch() -> None:
    pair = both(small(processor=PROCESSORS["bos"]))
    for items in (
        [],
        ("the", "abc"),
        [("the", "abc"), ["abc", "hello"], "x"],
        np.array(["the", "abc é"]),
    ):
        original, mine = pair.each(lambda t, i=items: [seen(e) for e in t.encode_batch(i)])
        assert mine == original
    for items in ([["a", "b"], (["a", "b"], ["c"]), ["x"], []], [("a", "b")], [[["a"], ["b"]]]):
        original, mine = pair.each(
            lambda t, i=items: [seen(e) for e in t.encode_batch(i, is_pretokenized=True)]
        )
        assert mine == original
    # The original reads the padding of such an array as text.
    encoding = pair.ours.encode(np.array(["a", "the"]), is_pretokenized=True)
    assert encoding.ids == pair.ours.encode(["a", "the"], is_pretokenized=True).ids


def test_b84_an_error_names_the_item() -> None:
    with pytest.raises(InputTypeError, match="item 1 of the batch") as caught:
        both(small()).ours.encode_batch(["a", 5])
    assert caught.value.position == 1


@pytest.mark.parametrize("text", ["a\ud83d", "\ude00\ud83d"])
def test_b22_lone_surrogates_count_as_replacement_characters(text: str) -> None:
    pair = both(small())
    with pytest.raises(TypeError):
        pair.theirs.encode(text)
    replaced = "".join("\ufffd" if "\ud800" <= char < "\ue000" else char for char in text)
    original, mine = pair.theirs.encode(replaced), pair.ours.encode(text)
    assert seen(mine) == seen(original)


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_b59_tiny_texts(text: str) -> None:
    for name in PROCESSORS:
        pair = both(small(processor=PROCESSORS[name]))
        for second in (None, "", "a"):
            original, mine = pair.each(lambda t, s=second: seen(t.encode(text, s)))
            assert mine == original


@pytest.mark.parametrize(
    ("ids", "kind"),
    [((260, 97), "tuple"), (np.array([260, 97]), "array"), (np.array([260, 9], "uint32"), "u32")],
)
def test_forms_of_ids(ids: Any, kind: str) -> None:
    original, mine = both(small()).each(lambda t: (t.decode(ids), t.decode_batch([ids, ids])))
    assert mine == original


def test_unknown_options_warn() -> None:
    # The original prints to stdout.
    tokenizer = both(small()).ours
    for call in (
        lambda: tokenizer.enable_truncation(5, colour=1),
        lambda: tokenizer.enable_padding(colour=1),
        lambda: tokenizer.encode("a").pad(5, colour=1),
    ):
        with pytest.warns(UserWarning, match="colour"):
            call()


# As Python objects, in threads and processes


def test_b60_a_call_sees_one_setting() -> None:
    tokenizer = both(small(processor=PROCESSORS["bos"])).ours
    text = "the abc hello " * 20
    whole = tokenizer.encode(text).ids
    allowed = [whole, whole[:8], whole + [0] * (200 - len(whole)), whole[:8] + [0] * 192]
    stop = threading.Event()
    faults: list[Any] = []

    def encode() -> None:
        while not stop.is_set():
            try:
                ids = tokenizer.encode(text).ids
                pieces = [e.ids for e in tokenizer.encode_batch([text, text])]
            except Exception as error:
                faults.append(error)
                return
            if ids not in allowed or pieces[0] != pieces[1] or pieces[0] not in allowed:
                faults.append((ids, pieces))

    threads = [threading.Thread(target=encode) for _ in range(16)]
    for thread in threads:
        thread.start()
    for i in range(300):
        tokenizer.enable_truncation(8)
        tokenizer.enable_padding(length=200)
        tokenizer.no_truncation()
        if i % 50 == 0:
            tokenizer.add_tokens([f"<{i}>"])
        tokenizer.no_padding()
    stop.set()
    for thread in threads:
        thread.join()
    assert faults == []


def test_b61_copies_cost_next_to_nothing() -> None:
    tokenizer = model("qwen3").ours
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    copies = [copy.deepcopy(tokenizer) for _ in range(32)]
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert used < 100_000
    assert all(twin.to_kizami() is tokenizer.to_kizami() for twin in copies)


def test_b86_objects() -> None:
    tokenizer = both(small()).ours
    tokenizer.note = "mine"  # type: ignore[attr-defined]
    assert copy.copy(tokenizer).note == "mine"  # type: ignore[attr-defined]
    assert weakref.ref(tokenizer)() is tokenizer
    assert tokenizer in {tokenizer}
    twin = copy.copy(tokenizer)
    twin.enable_truncation(2)
    assert tokenizer.truncation is None
    tokenizer.encode_special_tokens = True
    assert pickle.loads(pickle.dumps(tokenizer)).encode_special_tokens is True
    assert "vocab_size=281" in repr(tokenizer)


def _ids_of(tokenizer: ours.Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text).ids


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_b62_b86_processes(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    tokenizer = both(small(processor=PROCESSORS["bos"])).ours
    text = "the abc hello 🎉 " * 4_000
    expected = tokenizer.encode(text).ids
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.starmap_async(_ids_of, [(tokenizer, text)] * 4).get(timeout=60)
    assert results == [expected] * 4


def test_asyncio() -> None:
    tokenizer = both(small(processor=PROCESSORS["bos"])).ours
    long = "the abc hello " * 4_000

    async def run() -> None:
        for text in ("the abc", long):
            future = tokenizer.async_encode(text, "abc")
            assert asyncio.isfuture(future)
            # What is set later has no part in it.
            tokenizer.enable_truncation(4)
            result = await future
            tokenizer.no_truncation()
            assert seen(result) == seen(tokenizer.encode(text, "abc"))
            batch = [text, (text, "abc")]
            several = await asyncio.gather(
                tokenizer.async_encode_batch(batch), tokenizer.async_encode_batch_fast(batch)
            )
            assert [e.ids for e in several[0]] == [e.ids for e in tokenizer.encode_batch(batch)]
            assert [e.ids for e in several[1]] == [e.ids for e in several[0]]
            ids = [e.ids for e in several[0]]
            assert await tokenizer.async_decode_batch(ids) == tokenizer.decode_batch(ids)
        with pytest.raises(InputTypeError):
            await tokenizer.async_encode(5)

    asyncio.run(run())
    with pytest.raises(RuntimeError):
        tokenizer.async_encode("abc")


def test_b41_input_is_not_changed() -> None:
    tokenizer = both(small()).ours
    batch: list[Any] = [["the", "abc"], [["x"], ["y"]]]
    before = copy.deepcopy(batch)
    tokenizer.encode_batch(batch, is_pretokenized=True)
    tokens = [ours.AddedToken("<n>")]
    tokenizer.add_special_tokens(tokens)
    assert tokens[0].special is False
    assert batch == before


@pytest.mark.parametrize("name", ["gpt2", "llama3_1"])
def test_saved_text_is_the_file(name: str) -> None:
    stated = json.loads(file_of(name))
    assert json.loads(model(name).ours.to_str()) == stated


OUT_OF_RANGE: dict[str, Callable[[Any], Any]] = {
    "decode": lambda t: t.decode([1, -1]),
    "decode large": lambda t: t.decode([1 << 32]),
    "decode an array": lambda t: t.decode(np.array([1, -5])),
    "decode_batch": lambda t: t.decode_batch([[1], [1 << 40]]),
    "id_to_token": lambda t: t.id_to_token(-1),
    "id_to_token large": lambda t: t.id_to_token(1 << 32),
    "token_to_chars": lambda t: t.encode("a").token_to_chars(-1),
    "enable_truncation": lambda t: t.enable_truncation(-1),
    "enable_padding": lambda t: t.enable_padding(pad_id=-1),
}


@pytest.mark.parametrize("call", OUT_OF_RANGE)
def test_numbers_out_of_range_are_overflow_errors(call: str) -> None:
    # vLLM catches this class around a step of a stream.
    for tokenizer in both(small()):
        with pytest.raises(OverflowError):
            OUT_OF_RANGE[call](tokenizer)
