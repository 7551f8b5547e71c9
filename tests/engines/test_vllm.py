"""vLLM with the plugin: real registries, loaders, renderers and detokenizers, no model.

Opt-in, see `.ci/engines`: needs an installed vLLM, and kizami installed so that its entry points
are found.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import copy
import pickle
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import kizami
import pytest
from kizami.compat.transformers import is_adopted, unpatch

plugins: Any = pytest.importorskip("vllm.plugins", reason="needs vLLM", exc_type=ImportError)
registry: Any = pytest.importorskip("vllm.tokenizers.registry", exc_type=ImportError)
renderers: Any = pytest.importorskip("vllm.renderers.registry", exc_type=ImportError)
detokenizers: Any = pytest.importorskip("vllm.v1.engine.detokenizer", exc_type=ImportError)
hf: Any = pytest.importorskip("vllm.tokenizers.hf", exc_type=ImportError)
engine: Any = pytest.importorskip("vllm.v1.engine", exc_type=ImportError)
sampling: Any = pytest.importorskip("vllm.sampling_params", exc_type=ImportError)
params: Any = pytest.importorskip("vllm.renderers.params", exc_type=ImportError)

pytestmark = pytest.mark.filterwarnings("ignore")

TEXTS = [
    "Hello, world! 中文 🎉 don't",
    "",
    "👨‍👩‍👧 naïve\n\n  x",
    "<|endoftext|> a <|open|>tools<|sep|>",
]
TALK = [{"role": "user", "content": "Hi 🎉 <|sep|>"}]


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    plugins.plugins_loaded = False
    plugins.load_general_plugins()


def load(folder: Path, mode: str) -> Any:
    return registry.get_tokenizer(str(folder), tokenizer_mode=mode, trust_remote_code=True)


@pytest.fixture(scope="module")
def both(folder: Path) -> tuple[Any, Any]:
    return load(folder, "hf"), load(folder, "kizami")


def test_vllm_finds_the_plugin() -> None:
    found = {point.name: point.value for point in entry_points(group="vllm.general_plugins")}
    assert found["kizami"] == "kizami.engines.vllm:register"
    assert "kizami" in registry.TokenizerRegistry.tokenizers
    assert "kizami" in renderers.RENDERER_REGISTRY.renderers


def test_registering_again_changes_nothing() -> None:
    before = detokenizers.IncrementalDetokenizer.__dict__["from_new_request"]
    entry_points(group="vllm.general_plugins")["kizami"].load()()
    assert detokenizers.IncrementalDetokenizer.__dict__["from_new_request"] is before


def test_a_tokenizer_has_all_that_vllm_asks_for(both: tuple[Any, Any]) -> None:
    plain, ours = both
    assert is_adopted(ours)
    assert not is_adopted(plain)
    values = (
        "all_special_tokens all_special_ids bos_token_id eos_token_id pad_token_id is_fast "
        "vocab_size max_token_id max_chars_per_token truncation_side name_or_path"
    )
    for name in values.split():
        assert getattr(ours, name) == getattr(plain, name), name
    calls = ("num_special_tokens_to_add", "get_vocab", "get_added_vocab", "__len__")
    for name in calls:
        assert getattr(ours, name)() == getattr(plain, name)(), name
    assert isinstance(hash(ours), int)
    for text in TEXTS:
        ids = plain.encode(text, add_special_tokens=False)
        assert ours.encode(text, add_special_tokens=False) == ids
        assert ours.encode(text) == plain.encode(text)
        for options in ({}, {"truncation": True, "max_length": 3}):
            assert ours(text, **options)["input_ids"] == plain(text, **options)["input_ids"]
        assert ours.decode(ids) == plain.decode(ids)
        names = plain.convert_ids_to_tokens(ids)
        assert ours.convert_ids_to_tokens(ids) == names
        assert ours.convert_tokens_to_ids(names) == plain.convert_tokens_to_ids(names)
        assert ours.convert_tokens_to_string(names) == plain.convert_tokens_to_string(names)


def test_copies_and_pickles(both: tuple[Any, Any]) -> None:
    plain, ours = both
    for other in (copy.copy(ours), copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert is_adopted(other)
        assert other.max_token_id == plain.max_token_id
        assert other.encode(TEXTS[0]) == plain.encode(TEXTS[0])
    from kizami.engines._adopting import kizami_of

    assert kizami_of(copy.deepcopy(ours)) is kizami_of(ours)


def test_a_pool_of_copies_serves_threads(both: tuple[Any, Any]) -> None:
    plain, ours = both
    pool = hf.maybe_make_thread_pool(copy.copy(ours), 4)
    expected = [plain(text, truncation=True, max_length=5)["input_ids"] for text in TEXTS]

    def call(number: int) -> None:
        which = number % len(TEXTS)
        if number % 2:
            assert pool.encode(TEXTS[which]) == plain.encode(TEXTS[which])
        assert pool(TEXTS[which], truncation=True, max_length=5)["input_ids"] == expected[which]

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(call, number) for number in range(64)]:
            done.result()


# Detokenizers


def request(prompt: list[int] | None, **options: Any) -> Any:
    return engine.EngineCoreRequest(
        request_id="1",
        prompt_token_ids=prompt,
        mm_features=None,
        sampling_params=sampling.SamplingParams(**options),
        pooling_params=None,
        arrival_time=0.0,
        lora_request=None,
        cache_salt=None,
        data_parallel_rank=None,
    )


def stream(tokenizer: Any, prompt: list[int] | None, ids: list[int], **options: Any) -> Any:
    """The deltas of ids that come one by one, the stop string, and the whole text."""
    choose = detokenizers.IncrementalDetokenizer.from_new_request
    detokenizer = choose(tokenizer, request(prompt, **options))
    deltas, stop = [], None
    for i, id_ in enumerate(ids):
        stop = detokenizer.update([id_], False)
        is_last = stop is not None or i == len(ids) - 1
        deltas.append(detokenizer.get_next_output_text(is_last, True))
        if is_last:
            break
    return deltas, stop, detokenizer.get_next_output_text(True, False)


@pytest.mark.parametrize("skip", [False, True])
def test_deltas_are_the_text(both: tuple[Any, Any], skip: bool) -> None:
    plain, ours = both
    for text in TEXTS:
        ids = plain.encode(text, add_special_tokens=False)
        deltas, stop, whole = stream(ours, [1, 2, 3], ids, skip_special_tokens=skip)
        expected = "".join(deltas)
        assert stop is None
        assert whole == expected
        skipped = set(plain.all_special_ids) if skip else set()
        kept = [id_ for id_ in ids if id_ not in skipped]
        assert whole == plain.decode(kept)
        if detokenizers.uses_fast_detokenizer(plain):
            theirs, _, all_of_theirs = stream(plain, [1, 2, 3], ids, skip_special_tokens=skip)
            assert whole == all_of_theirs
            # Text comes as soon as it is certain, never later than there.
            for i in range(len(ids)):
                assert "".join(deltas[:i]).startswith("".join(theirs[:i]))


def test_a_slow_class_gets_no_spaces_between_added_tokens(k3: Path) -> None:
    ours = load(k3, "kizami")
    ids = ours.encode("<|open|>tools<|sep|>a<|end_of_msg|><|close|>")
    text = "<|open|>tools<|sep|>a<|close|>"
    assert stream(ours, [], ids, skip_special_tokens=True)[2] == text


def test_characters_over_borders(k3: Path) -> None:
    ours = load(k3, "kizami")
    party = kizami.load("kimi-k3").encode("🎉").tolist()
    prompt = ours.encode("secret ") + party[:2]
    assert stream(ours, prompt, party[2:])[0] == ["🎉"]
    deltas, _, whole = stream(ours, None, ours.encode("a") + party[:-1])
    assert deltas == ["a", "", "\ufffd"]
    assert whole == "a\ufffd"
    lead = kizami.load("kimi-k3").token_id(b"\xf0")
    assert stream(ours, None, [lead] * 50)[2] == "\ufffd" * 50


def test_ids_that_are_no_tokens_have_no_text(both: tuple[Any, Any]) -> None:
    _, ours = both
    word = ours.encode("word", add_special_tokens=False)
    assert stream(ours, [2**31 - 1, -5], [*word, 2**31 - 1, -1, *word])[2] == "wordword"


@pytest.mark.parametrize("include", [False, True])
def test_stop_strings(both: tuple[Any, Any], include: bool) -> None:
    plain, ours = both
    ids = plain.encode("one two three four five", add_special_tokens=False)
    options = {"stop": ["three f", "five"], "include_stop_str_in_output": include}
    deltas, stop, whole = stream(ours, [1], ids, **options)
    assert stop == "three f"
    assert whole == "".join(deltas) == ("one two three f" if include else "one two ")
    if detokenizers.uses_fast_detokenizer(plain):
        assert (stop, whole) == stream(plain, [1], ids, **options)[1:]


def test_other_tokenizers_keep_the_detokenizers_of_vllm(both: tuple[Any, Any]) -> None:
    plain, ours = both
    choose = detokenizers.IncrementalDetokenizer.from_new_request
    kinds = [type(choose(tokenizer, request([1]))).__name__ for tokenizer in (plain, ours)]
    assert kinds[0] in ("FastIncrementalDetokenizer", "SlowIncrementalDetokenizer")
    assert kinds[1] == "KizamiDetokenizer"
    assert type(choose(None, request([1]))).__name__ == "IncrementalDetokenizer"


# Grammars


def test_libraries_of_grammars_read_a_tokenizer(both: tuple[Any, Any]) -> None:
    plain, _ = both
    xgrammar = pytest.importorskip("xgrammar")
    infos = [xgrammar.TokenizerInfo.from_huggingface(tokenizer) for tokenizer in both]
    assert infos[0].dump_metadata() == infos[1].dump_metadata()
    assert infos[0].decoded_vocab == infos[1].decoded_vocab
    if not plain.is_fast:
        # vLLM says itself that llguidance takes fast ones only.
        return
    llguidance = pytest.importorskip("llguidance.hf")
    found = [llguidance.from_tokenizer(tokenizer) for tokenizer in both]
    for text in ("Hello <|endoftext|> 中文 🎉", "naïve\n\n x"):
        ids = [tokenizer.tokenize_str(text) for tokenizer in found]
        assert ids[0] == ids[1]
    assert found[0].vocab_size == found[1].vocab_size
    assert found[0].eos_token == found[1].eos_token


# Renderers


def config(folder: Path) -> Any:
    """What renderers read of vLLM's configuration."""
    model = SimpleNamespace(
        tokenizer=str(folder),
        model=str(folder),
        tokenizer_mode="kizami",
        tokenizer_revision=None,
        code_revision=None,
        revision=None,
        trust_remote_code=True,
        runner_type="generate",
        renderer_num_workers=2,
        skip_tokenizer_init=False,
        supports_multimodal_inputs=False,
        is_multimodal_model=False,
        is_encoder_decoder=False,
        enable_prompt_embeds=False,
        allowed_local_media_path="",
        allowed_media_domains=None,
        multimodal_config=None,
        hf_config=SimpleNamespace(model_type="any"),
        hf_text_config=SimpleNamespace(model_type="any"),
        max_model_len=4096,
        encoder_config=None,
        renderer="hf",
    )
    parallel = SimpleNamespace(_api_process_rank=0, _api_process_count=1)
    return SimpleNamespace(
        model_config=model, parallel_config=parallel, observability_config=SimpleNamespace()
    )


def test_conversations_of_k3(k3: Path) -> None:
    given = config(k3)
    renderer = renderers.renderer_from_config(given)
    assert type(renderer).__name__ == "KimiK3Renderer"
    assert is_adopted(renderer.get_tokenizer())
    tokenizer = kizami.load("kimi-k3")
    chat = params.ChatParams(chat_template_kwargs={"add_generation_prompt": True})
    _, prompt = renderer.render_messages(TALK, chat)
    assert prompt["prompt_token_ids"] == tokenizer.encode_chat(TALK).tolist()

    chat = params.ChatParams(chat_template_kwargs={"reasoning_effort": "low"})
    _, prompt = asyncio.run(renderer.render_messages_async(TALK, chat))
    assert prompt["prompt_token_ids"] == tokenizer.encode_chat(TALK, thinking_effort="low").tolist()


def test_other_conversations(qwen3: Path) -> None:
    given = config(qwen3)
    renderer = renderers.renderer_from_config(given)
    assert type(renderer).__name__ == "HfRenderer"
    assert is_adopted(renderer.get_tokenizer())
    chat = params.ChatParams(chat_template_kwargs={"add_generation_prompt": True})
    found = []
    for tokenizer in (load(qwen3, "hf"), load(qwen3, "kizami")):
        one = renderers.RENDERER_REGISTRY.load_renderer("kizami", given, tokenizer)
        assert type(one).__name__ == "HfRenderer"
        found.append(one.render_messages(TALK, chat)[1])
    assert found[0] == found[1]


def test_all_modes_by_a_switch(qwen3: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kizami.engines.vllm import register

    monkeypatch.setenv("KIZAMI_VLLM", "1")
    try:
        register()
        assert is_adopted(load(qwen3, "hf"))
    finally:
        unpatch()
    assert not is_adopted(load(qwen3, "hf"))
    monkeypatch.setenv("KIZAMI_VLLM", "yes")
    with pytest.raises(ValueError, match="KIZAMI_VLLM is 'yes'"):
        register()
