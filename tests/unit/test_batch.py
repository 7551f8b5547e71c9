"""`encode_batch` and `Batch`."""

from __future__ import annotations

from typing import Any

import kizami
import numpy as np
import pytest
from kizami import Batch, Tokenizer
from kizami.errors import InputTypeError, InvalidValueError

TEXTS = ["one", "", "two words", "<|open|>", "naïve 🎉", " "]


def test_each_text_is_encoded_alone(tokenizer: Tokenizer) -> None:
    batch = tokenizer.encode_batch(TEXTS)

    assert isinstance(batch, Batch)
    assert len(batch) == len(TEXTS)
    assert batch.tolist() == [tokenizer.encode(text).tolist() for text in TEXTS]
    assert [ids.tolist() for ids in batch] == batch.tolist()
    assert [batch[i].tolist() for i in range(len(batch))] == batch.tolist()


def test_arrays_of_a_batch(tokenizer: Tokenizer) -> None:
    batch = tokenizer.encode_batch(TEXTS)

    assert batch.ids.dtype == np.uint32
    assert batch.offsets.dtype == np.int64
    assert batch.offsets.shape == (len(TEXTS) + 1,)
    assert batch.offsets[0] == 0
    assert batch.offsets[-1] == len(batch.ids)
    assert (np.diff(batch.offsets) >= 0).all()
    assert batch.ids.flags.owndata
    assert batch.ids.flags.writeable
    assert np.shares_memory(batch[2], batch.ids)


def test_control_names_of_a_batch(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode_batch(["<|open|>"], allow_special=True).tolist() == [[163587]]
    assert 163587 not in tokenizer.encode_batch(["<|open|>"]).ids


@pytest.mark.parametrize("form", [list, tuple, iter, np.array, dict.fromkeys])
def test_forms_of_a_batch(tokenizer: Tokenizer, form: Any) -> None:
    assert tokenizer.encode_batch(form(["one", "two words"])).tolist() == [[787], [35558, 7030]]


def test_b59_an_empty_batch(tokenizer: Tokenizer) -> None:
    batch = tokenizer.encode_batch([])

    assert (len(batch), batch.tolist(), batch.offsets.tolist()) == (0, [], [0])
    assert batch.ids.shape == (0,)
    assert tokenizer.encode_batch(["", ""]).tolist() == [[], []]
    ids, mask = batch.padded(0)
    assert ids.shape == mask.shape == (0, 0)


@pytest.mark.parametrize("bad", [None, 5, b"a", ["a"], ("a", True)])
def test_a_text_that_is_no_str_is_named(tokenizer: Tokenizer, bad: Any) -> None:
    with pytest.raises(InputTypeError) as caught:
        tokenizer.encode_batch(["a", "b", bad])

    assert caught.value.position == 2
    assert type(bad).__name__ in str(caught.value)


@pytest.mark.parametrize("texts", ["one text", None, 5])
def test_texts_must_be_an_iterable_of_str(tokenizer: Tokenizer, texts: Any) -> None:
    with pytest.raises(InputTypeError, match="iterable of str"):
        tokenizer.encode_batch(texts)


def test_indices(tokenizer: Tokenizer) -> None:
    batch = tokenizer.encode_batch(TEXTS)

    assert batch[-1].tolist() == batch[len(TEXTS) - 1].tolist()
    assert batch[np.int64(2)].tolist() == batch[2].tolist()
    assert [ids.tolist() for ids in batch[1:4]] == batch.tolist()[1:4]
    assert [ids.tolist() for ids in batch[::-2]] == batch.tolist()[::-2]
    for outside in (len(TEXTS), -len(TEXTS) - 1, 2**70):
        with pytest.raises(IndexError):
            batch[outside]


def test_padding(tokenizer: Tokenizer) -> None:
    batch = tokenizer.encode_batch(["a b c", "", "a"])
    pad = tokenizer.token_id("[PAD]")
    assert pad == 163839

    ids, mask = batch.padded(pad)
    assert ids.tolist() == [[64, 291, 275], [pad] * 3, [64, pad, pad]]
    assert mask.tolist() == [[1, 1, 1], [0, 0, 0], [1, 0, 0]]
    assert (ids.dtype, mask.dtype) == (np.uint32, np.uint8)
    assert ids.flags.c_contiguous
    assert ids.flags.owndata

    ids, mask = batch.padded(0, side="left", length=4)
    assert ids.tolist() == [[0, 64, 291, 275], [0, 0, 0, 0], [0, 0, 0, 64]]
    assert mask.tolist() == [[0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 1]]


def test_padding_is_never_cutting(tokenizer: Tokenizer) -> None:
    batch = tokenizer.encode_batch(["a", "a b c"])

    with pytest.raises(InvalidValueError, match="text 1 has 3 ids, more than length=2"):
        batch.padded(0, length=2)
    assert batch.padded(0, length=3)[0].shape == (2, 3)


@pytest.mark.parametrize(
    "options",
    [{"side": "middle"}, {"side": None}, {"pad_id": -1}, {"pad_id": 2**32}, {"length": -1}],
)
def test_padding_refuses_the_impossible(tokenizer: Tokenizer, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError):
        tokenizer.encode_batch(["a"]).padded(**{"pad_id": 0, **options})


def test_repr(tokenizer: Tokenizer) -> None:
    assert repr(tokenizer.encode_batch(["a", "b c"])) == "Batch(2 texts, 3 ids)"


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_a_large_batch_with_any_number_of_threads(tokenizer: Tokenizer, count: int) -> None:
    texts = [f"{i} words and <|sep|> {'x' * (i % 50)} 中文\n" * (i % 7) for i in range(5_000)]
    texts[2_500] = "long " * 100_000
    kizami.set_num_threads(count)
    batch = tokenizer.encode_batch(texts, allow_special=True)

    kizami.set_num_threads(1)
    alone = [tokenizer.encode(text, allow_special=True) for text in texts]
    assert np.array_equal(batch.ids, np.concatenate(alone))
    assert np.diff(batch.offsets).tolist() == [len(ids) for ids in alone]
