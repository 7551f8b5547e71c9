"""SGLang with the plugin: its real loader, detokenizer and hooks, no model.

Opt-in, see `.ci/engines`: needs an installed SGLang, and kizami installed so that its entry points
are found.
"""

from __future__ import annotations

import copy
import itertools
import pickle
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import kizami
import pytest
from kizami.compat.transformers import is_adopted

plugins: Any = pytest.importorskip(
    "sglang.srt.plugins", reason="needs SGLang", exc_type=ImportError
)
hooks: Any = pytest.importorskip("sglang.srt.plugins.hook_registry", exc_type=ImportError)
loaders: Any = pytest.importorskip(
    "sglang.srt.utils.hf_transformers.tokenizer", exc_type=ImportError
)
manager: Any = pytest.importorskip("sglang.srt.managers.detokenizer_manager", exc_type=ImportError)
patches: Any = pytest.importorskip("sglang.srt.utils.patch_tokenizer", exc_type=ImportError)

pytestmark = pytest.mark.filterwarnings("ignore")

TEXTS = [
    "Hello, world! 中文 🎉 don't",
    "👨‍👩‍👧 naïve\n\n  x",
    "<|endoftext|> a <|open|>tools<|sep|>",
]
TALK = [{"role": "user", "content": "Hi 🎉 <|sep|>"}]


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    plugins._plugins_loaded = False
    plugins.load_plugins()


@pytest.fixture(scope="module")
def both(folder: Path) -> tuple[Any, Any]:
    plain = loaders.get_tokenizer.__wrapped__(str(folder), trust_remote_code=True)
    return plain, loaders.get_tokenizer(str(folder), trust_remote_code=True)


def test_sglang_finds_the_plugin() -> None:
    found = {point.name: point.value for point in entry_points(group="sglang.srt.plugins")}
    assert found["kizami"] == "kizami.engines.sglang:register"
    # Also where the name was imported before the hook was applied.
    assert manager.get_tokenizer is loaders.get_tokenizer
    assert hasattr(loaders.get_tokenizer, "__wrapped__")


def test_a_tokenizer_has_all_that_sglang_reads(both: tuple[Any, Any]) -> None:
    plain, ours = both
    assert is_adopted(ours)
    assert not is_adopted(plain)
    values = (
        "all_special_ids eos_token_id bos_token_id pad_token_id unk_token_id sep_token_id "
        "cls_token_id pad_token special_tokens_map vocab_size is_fast chat_template "
        "additional_stop_token_ids padding_side model_max_length"
    )
    for name in values.split():
        assert getattr(ours, name, None) == getattr(plain, name, None), name
    for name in ("get_vocab", "get_added_vocab", "num_special_tokens_to_add", "__len__"):
        assert getattr(ours, name)() == getattr(plain, name)(), name
    for text in TEXTS:
        ids = plain.encode(text)
        assert ours.encode(text) == ids
        assert ours([text, ""])["input_ids"] == plain([text, ""])["input_ids"]
        assert ours.convert_ids_to_tokens(ids) == plain.convert_ids_to_tokens(ids)
        if hasattr(plain, "build_inputs_with_special_tokens"):
            expected = plain.build_inputs_with_special_tokens(ids)
            assert ours.build_inputs_with_special_tokens(ids) == expected


def test_what_sglang_sets_stays_set(both: tuple[Any, Any]) -> None:
    _, ours = both
    other = copy.deepcopy(ours)
    for name, value in (
        ("chat_template", "{{ messages[0]['content'] }}"),
        ("padding_side", "left"),
        ("additional_stop_token_ids", {5}),
        ("_sglang_jinja_apply_chat_template", None),
        ("apply_chat_template", lambda *args, **kwargs: "set"),
    ):
        setattr(other, name, value)
        assert getattr(other, name) == value
    assert other.apply_chat_template(TALK) == "set"
    assert ours.padding_side != "left" or ours.padding_side == both[0].padding_side
    assert is_adopted(other)


def test_copies_and_pickles(both: tuple[Any, Any]) -> None:
    plain, ours = both
    for other in (copy.copy(ours), copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert is_adopted(other)
        assert other.encode(TEXTS[0]) == plain.encode(TEXTS[0])


# The detokenizer


def detokenizer(tokenizer: Any, batch_decode: bool) -> Any:
    made = manager.DetokenizerManager.__new__(manager.DetokenizerManager)
    made.tokenizer = tokenizer
    made.vocab_size = len(tokenizer)
    made.decode_status = manager.LimitedCapacityDict(capacity=100)
    made.disable_tokenizer_batch_decode = not batch_decode
    made.is_tool_call_parser_gpt_oss = False
    made.tool_close_token_ids = ()
    return made


def stream(tokenizer: Any, rows: list[list[int]], skip: list[bool], batch_decode: bool) -> Any:
    """The deltas of several requests whose ids come one by one, decoded together."""
    made = detokenizer(tokenizer, batch_decode)
    deltas: list[list[str]] = [[] for _ in rows]
    for step in range(max(map(len, rows)) + 1):
        live = [i for i, ids in enumerate(rows) if step <= len(ids)]
        output = SimpleNamespace(
            rids=[str(i) for i in live],
            decoded_texts=[""] * len(live),
            decode_ids=[rows[i][step : step + 1] for i in live],
            read_offsets=[0] * len(live),
            finished_reasons=[{"type": "length"} if step == len(rows[i]) else None for i in live],
            no_stop_trim=[False] * len(live),
            skip_special_tokens=[skip[i] for i in live],
            spaces_between_special_tokens=[False] * len(live),
        )
        for i, text in zip(live, made._decode_batch_token_id_output(output), strict=True):
            deltas[i].append(text)
    return deltas


@pytest.mark.parametrize("batch_decode", [True, False])
@pytest.mark.parametrize("skip", list(itertools.product([False, True], repeat=2)))
def test_batches_are_decoded_alike(
    both: tuple[Any, Any], skip: tuple[bool, bool], batch_decode: bool
) -> None:
    plain, ours = both
    rows = [plain.encode(TEXTS[0]), plain.encode(TEXTS[2]) + plain.encode(TEXTS[1])]
    flags = list(skip)
    assert stream(ours, rows, flags, batch_decode) == stream(plain, rows, flags, batch_decode)


def test_placeholders_of_images_are_decoded(both: tuple[Any, Any]) -> None:
    plain, ours = both
    rows = [[-101, *plain.encode("word"), 2**40]]
    assert stream(ours, rows, [True], True) == stream(plain, rows, [True], True)


# Kimi K3


def test_k3(k3: Path) -> None:
    ours = loaders.get_tokenizer(str(k3), trust_remote_code=True)
    tokenizer = kizami.load("kimi-k3")
    ids = ours.apply_chat_template(
        TALK, add_generation_prompt=True, tokenize=True, return_dict=False
    )
    assert ids == tokenizer.encode_chat(TALK).tolist()
    ids = ours.encode("<|open|>a<|end_of_msg|><|close|>")
    text = patches.decode_without_hf_kwargs(ours, ids, True)
    assert text == tokenizer.decode(ids, skip_special=True) == "<|open|>a<|close|>"


def test_a_processor_has_an_adopted_tokenizer(qwen3: Path) -> None:
    from kizami.engines.sglang import _after_processor

    plain = loaders.get_tokenizer.__wrapped__(str(qwen3))
    processor = SimpleNamespace(tokenizer=plain)
    assert _after_processor(processor) is processor
    assert is_adopted(plain)


def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    from kizami.engines.sglang import register

    seen: list[str] = []
    monkeypatch.setattr(hooks.HookRegistry, "register", lambda target, *rest: seen.append(target))
    register()
    assert [target.rpartition(".")[2] for target in seen] == ["get_tokenizer", "get_processor"]
    monkeypatch.setenv("KIZAMI_SGLANG", "0")
    register()
    assert len(seen) == 2
