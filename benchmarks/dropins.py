"""The drop-ins against what they take the place of, call by call.

    KIZAMI_NEMO=FOLDER python benchmarks/dropins.py chat fast tiktoken

`chat`: `apply_chat_template(tokenize=True)` of a class of Kimi K3, as it is, run by Kizami, and run
by fastokens. The class is that of an unpacked `nemo-automodel` 0.7.0 (see CONTRIBUTING.md), or
without `KIZAMI_NEMO` the stand-in of the tests, whose rendering is Kizami's own, and so costs less
than the published one. `fast`: a fast tokenizer of `transformers` with the vocabulary of Kimi K2,
the same three ways. `tiktoken`: methods of `Encoding`.

All run in one process, in turns: each round makes a text that no engine has seen, and calls every
engine once (short calls: some times), in an order that moves on. A table shows the median of all
rounds, and the median of the quotients within a round. Results must be equal, or the script stops.
Needs `pip install transformers tiktoken==0.14.0 fastokens`; without fastokens its column is empty.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import sys
import tempfile
import time
import types
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import kizami
from kizami.bench.texts import Texts

# The stand-in and its folder are those of the tests.
sys.path.insert(0, str(Path(__file__).parents[1]))

TEXTS = Texts()
KINDS = {"english": 4.6, "code": 3.6, "mixed": 2.0}
CHAT_TOKENS = {2_000: 1.0, 4_000: 1.0, 140_000: 0.2}
FAST_CHARS = {20: 1.0, 400: 1.0, 4_000: 1.0, 100_000: 0.2}
SHORT_CHARS = {5: 1.0, 20: 1.0, 100: 1.0, 1_000: 1.0, 20_000: 1.0}
# Shorter calls are made several times, and their time is divided.
SHORTEST = 2e-4


def timed(call: Callable[[], Any], times: int) -> tuple[float, Any]:
    """Seconds for one call, and what it gave."""
    start = time.perf_counter()
    for _ in range(times):
        found = call()
    return (time.perf_counter() - start) / times, found


def compare(
    engines: dict[str, Any], inputs: Sequence[Any], call: Callable[[Any, Any], Any]
) -> dict[str, list[float]]:
    """Seconds of each engine for each input, in turns."""
    names = list(engines)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    one, _ = timed(lambda: call(engines[names[0]], inputs[0]), 1)
    times = max(1, int(SHORTEST / one))
    for number, given in enumerate(inputs):
        results = []
        for name in names[number % len(names) :] + names[: number % len(names)]:
            took, found = timed(lambda n=name, g=given: call(engines[n], g), times)
            seconds[name].append(took)
            results.append(found)
        if any(found != results[0] for found in results):
            raise SystemExit(f"error: results differ for {given!r:.200}")
    return seconds


def row(title: str, seconds: dict[str, list[float]]) -> str:
    """A row of a table: medians, and how many times as fast as each of the others Kizami is."""
    cells = [title]
    for name in ("plain", "kizami", "fastokens"):
        took = seconds.get(name)
        cells.append(f"{statistics.median(took) * 1e6:,.1f}" if took else "")
    for name in ("plain", "fastokens"):
        took = seconds.get(name)
        quotients = [b / a for a, b in zip(seconds["kizami"], took or (), strict=False)]
        cells.append(f"{statistics.median(quotients):.2f}" if quotients else "")
    return "| " + " | ".join(cells) + " |"


def header(first: str) -> str:
    """The top of a table."""
    columns = [first, "plain, us", "kizami, us", "fastokens, us", "plain / kizami"]
    columns.append("fastokens / kizami")
    return f"\n| {' | '.join(columns)} |\n| --- {'| ---: ' * 5}|"


def conversation(kind: str, chars: int, seed: int) -> dict[str, Any]:
    """A question with a tool and its answer: an eighth of the text each, the rest in the answer."""
    text = TEXTS.make(kind, chars, seed)
    part = len(text) // 8
    parameters = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    look = {"name": "search", "description": text[:part], "parameters": parameters}
    call = {"name": "search", "arguments": {"q": "some words", "n": 5}}
    return {
        "tools": [{"type": "function", "function": look}],
        "conversation": [
            {"role": "system", "content": text[part : 2 * part]},
            {"role": "user", "content": text[2 * part : 3 * part]},
            {
                "role": "assistant",
                "content": "",
                "reasoning_content": text[3 * part : 4 * part],
                "tool_calls": [{"id": "c1", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": text[4 * part :]},
        ],
    }


def k3_class() -> tuple[Any, str]:
    """A class of Kimi K3 and where it is from."""
    unpacked = os.environ.get("KIZAMI_NEMO")
    if unpacked is None:
        from tests.compat import kimi_class

        return kimi_class.TikTokenTokenizer, "the stand-in of the tests"
    package = types.ModuleType("kizami_bench_nemo")
    package.__path__ = [str(Path(unpacked, "nemo_automodel/components/models/kimi_k3"))]
    sys.modules[package.__name__] = package
    module = importlib.import_module(f"{package.__name__}.tokenization")
    return module.TikTokenTokenizer, "nemo-automodel 0.7.0"


def k3_engines(kind: Any, folder: Path) -> dict[str, Any]:
    """The same tokenizer three times."""
    from kizami.compat.transformers import is_adopted, patch

    engines = {"plain": kind.from_pretrained(folder)}
    with patch():
        engines["kizami"] = kind.from_pretrained(folder)
    assert is_adopted(engines["kizami"])
    try:
        from fastokens._tiktoken import accelerate_tiktoken_tokenizer
    except ImportError:
        return engines
    fast = kind.from_pretrained(folder)
    # It looks for the pattern at the class, where Moonshot has it, and takes segments alone.
    type(fast).pat_str = fast.model._pat_str
    assert accelerate_tiktoken_tokenizer(fast)
    encode = fast._encode_chat_segments
    fast._encode_chat_segments = lambda segments, **options: encode(segments)
    engines["fastokens"] = fast
    return engines


def chat(rounds: int, folder: Path) -> None:
    """`apply_chat_template(tokenize=True)` of Kimi K3."""
    from tests.compat.kimi_class import write_folder

    kind, source = k3_class()
    engines = k3_engines(kind, write_folder(folder))

    def apply(tokenizer: Any, given: dict[str, Any]) -> Any:
        return tokenizer.apply_chat_template(**given, tokenize=True, add_generation_prompt=True)

    print(f"\nKimi K3, class: {source}; apply_chat_template(tokenize=True)\n")
    print(header("text, tokens"))
    for name, chars in KINDS.items():
        for tokens, share in CHAT_TOKENS.items():
            many = range(max(3, int(rounds * share)))
            inputs = [conversation(name, int(tokens * chars), seed) for seed in many]
            count = statistics.median(len(apply(engines["kizami"], given)) for given in inputs[:9])
            seconds = compare(engines, inputs, apply)
            print(row(f"{name}, {count:,.0f}", seconds), flush=True)


def fast(rounds: int, folder: Path) -> None:
    """A fast tokenizer."""
    from kizami.compat.transformers import is_adopted, patch
    from transformers import AutoTokenizer

    text = kizami.load("kimi-k2").to_tokenizer_json()
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"}
    config["chat_template"] = "{% for m in messages %}<|im_user|>{{ m.content }}{% endfor %}"
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    engines = {"plain": AutoTokenizer.from_pretrained(folder)}
    with patch():
        engines["kizami"] = AutoTokenizer.from_pretrained(folder)
    assert is_adopted(engines["kizami"])
    try:
        import fastokens
    except ImportError:
        pass
    else:
        fastokens.patch_transformers()
        engines["fastokens"] = AutoTokenizer.from_pretrained(folder)
        fastokens.unpatch_transformers()

    def applied(tokenizer: Any, given: str) -> Any:
        talk = [{"role": "user", "content": given}]
        return list(tokenizer.apply_chat_template(talk, tokenize=True, return_dict=False))

    calls: dict[str, Callable[[Any, str], Any]] = {
        "tokenizer(text)": lambda tokenizer, given: tokenizer(given)["input_ids"],
        "apply_chat_template": applied,
    }
    for title, call in calls.items():
        print(f"\nFast tokenizer with the vocabulary of Kimi K2; {title}\n")
        print(header("text, characters"))
        for name in KINDS:
            for chars, share in FAST_CHARS.items():
                many = range(max(3, int(rounds * share)))
                inputs = [TEXTS.make(name, chars, seed)[:chars] for seed in many]
                print(row(f"{name}, {chars:,}", compare(engines, inputs, call)), flush=True)


def with_tiktoken(rounds: int, folder: Path) -> None:
    """Methods of `Encoding`."""
    import tiktoken
    from kizami.compat.tiktoken import Encoding

    ours = Encoding.from_tokenizer(kizami.load("kimi-k3"))
    parts = {
        "pat_str": ours._pat_str,
        "mergeable_ranks": ours._mergeable_ranks,
        "special_tokens": ours._special_tokens,
    }
    engines = {"plain": tiktoken.Encoding("kimi-k3", **parts), "kizami": ours}
    calls: dict[str, Callable[[Any, Any], Any]] = {
        "encode": lambda encoding, given: encoding.encode(given[0]),
        "encode_ordinary": lambda encoding, given: encoding.encode_ordinary(given[0]),
        "encode, allowed_special": lambda encoding, given: encoding.encode(
            given[0], allowed_special="all"
        ),
        "encode_to_numpy": lambda encoding, given: encoding.encode_to_numpy(given[0]).tolist(),
        "decode": lambda encoding, given: encoding.decode(given[1]),
        "decode_bytes": lambda encoding, given: encoding.decode_bytes(given[1]),
        "decode_tokens_bytes": lambda encoding, given: encoding.decode_tokens_bytes(given[1]),
    }
    print("\ntiktoken.Encoding with the vocabulary of Kimi K3\n")
    print(header("method, English text, characters"))
    for title, call in calls.items():
        for chars in SHORT_CHARS:
            texts = [TEXTS.make("english", chars, seed)[:chars] for seed in range(rounds)]
            inputs = [(text, ours.encode(text)) for text in texts]
            print(row(f"{title}, {chars:,}", compare(engines, inputs, call)), flush=True)


RUNS = {"chat": chat, "fast": fast, "tiktoken": with_tiktoken}


def about() -> str:
    """Versions and machine."""
    versions = [f"kizami {kizami.__version__}"]
    for name in ("transformers", "tokenizers", "tiktoken", "fastokens"):
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(f"{name} absent")
    load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    return (
        f"{', '.join(versions)}; Python {platform.python_version()}, {os.cpu_count()} CPUs, "
        f"load {load}"
    )


def main() -> None:
    """See the top of this file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="*", choices=list(RUNS), default=list(RUNS))
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    print(about())
    for name in options.runs:
        with tempfile.TemporaryDirectory() as folder:
            RUNS[name](options.rounds, Path(folder))


if __name__ == "__main__":
    main()
