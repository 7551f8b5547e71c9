"""The public names: short, documented, and exactly these."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import kizami
import pytest
from kizami import errors

PUBLIC = [
    "Batch",
    "BlockHasher",
    "DecodeStream",
    "Segment",
    "Session",
    "SessionCache",
    "Tokenizer",
    "__version__",
    "block_hashes",
    "errors",
    "get_num_threads",
    "load",
    "set_num_threads",
]
TOKENIZER = {
    "control_tokens", "count", "count_chat", "count_segments", "decode", "decode_batch",
    "decode_bytes", "encode", "encode_batch", "encode_chat", "encode_segments",
    "encode_segments_with_offsets", "encode_with_offsets", "eos_ids", "from_bytes", "name", "open",
    "pretokenizer", "render_chat", "save", "session", "stream", "to_bytes", "to_tiktoken",
    "to_tokenizer_json", "token_bytes", "token_id", "tokens", "vocab_size",
}  # fmt: skip
BATCH = {"ids", "offsets", "padded", "tolist"}


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def test_names_of_the_package() -> None:
    assert kizami.__all__ == PUBLIC
    assert all(hasattr(kizami, name) for name in PUBLIC)


def test_nothing_else_can_be_seen() -> None:
    code = "import kizami; print(*sorted(n for n in dir(kizami) if not n.startswith('_')))"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    ).stdout.split()

    # `segments` is the module of `Segment`; Python shows an imported submodule on its package.
    assert set(printed) - set(PUBLIC) <= {"segments"}


def test_names_of_a_tokenizer() -> None:
    names = public(kizami.Tokenizer)

    assert names == TOKENIZER


def test_names_of_a_batch() -> None:
    inherited = {"count", "index"}

    assert public(kizami.Batch) - inherited == BATCH


def test_names_of_a_stream() -> None:
    assert public(kizami.DecodeStream) == {"finish", "push", "stopped"}


def test_names_of_sessions() -> None:
    assert public(kizami.Session) == {
        "encode_chat", "encode_segments", "reset", "reused", "unchanged"
    }  # fmt: skip
    assert public(kizami.SessionCache) == {"clear", "encode_chat", "encode_segments", "statistics"}


def test_names_of_a_hasher() -> None:
    assert public(kizami.BlockHasher) == {
        "block_size", "copy", "hashes", "num_blocks", "num_ids", "push", "rewind", "scheme"
    }  # fmt: skip


def test_options_have_the_documented_defaults() -> None:
    def options(function: object) -> dict[str, object]:
        parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    tokenizer = kizami.Tokenizer
    assert options(kizami.load) == {
        "revision": None,
        "token": None,
        "local_files_only": False,
        "pattern": None,
        "special_tokens": None,
        "normalizer": None,
    }
    assert options(tokenizer.encode) == {"allow_special": False, "legacy_chunks": True}
    assert options(tokenizer.encode_segments) == {"legacy_chunks": True}
    assert options(tokenizer.encode_batch) == {"allow_special": False}
    assert options(tokenizer.count) == {"allow_special": False}
    assert options(tokenizer.decode) == {"skip_special": False, "errors": "replace"}
    assert options(tokenizer.stream) == {"skip_special": False, "stop": ()}
    hashed = {"scheme": "vllm-sha256-cbor", "seed": None, "extra_keys": None}
    assert options(kizami.BlockHasher.__new__) == hashed
    assert options(kizami.block_hashes) == {**hashed, "extra_keys_at": None}
    assert options(tokenizer.encode_with_offsets) == {"allow_special": False, "unit": "char"}
    assert options(tokenizer.encode_segments_with_offsets) == {"unit": "char"}
    documented = {
        "tools": None,
        "add_generation_prompt": True,
        "thinking": True,
        "thinking_effort": "max",
        "tool_choice": None,
        "response_format": None,
        "response_schema": None,
        "image_prompts": None,
    }
    assert options(tokenizer.render_chat).items() >= documented.items()


def test_corpora_use_the_same_words_on_one_machine_and_on_many() -> None:
    corpus = importlib.import_module("kizami.corpus")
    assert corpus.__all__ == [
        "Estimate", "Progress", "Report", "Totals", "Verified", "encode_arrow", "estimate",
        "tokenize", "verify",
    ]  # fmt: skip
    one = inspect.signature(corpus.tokenize).parameters
    for name in ("ray", "dask"):
        module = importlib.import_module(f"kizami.corpus.{name}")
        assert module.__all__ == ["tokenize", "totals"]
        many = inspect.signature(module.tokenize).parameters
        own = {"dataset", "frame", "column", "left_out", "workers", "num_cpus"}
        for word in set(many) - own - {"tokenizer"}:
            assert many[word].default == one[word].default, word
            assert many[word].annotation == one[word].annotation, word


def test_a_segment_is_a_pair() -> None:
    assert kizami.Segment._fields == ("text", "allow_special")
    assert kizami.Segment._field_defaults == {"allow_special": False}


def test_errors_are_also_the_built_in_that_fits() -> None:
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert kind.__doc__
        assert issubclass(kind, Exception)
        if name not in ("KizamiError", "ChatWarning"):
            assert issubclass(kind, errors.KizamiError)
            assert issubclass(
                kind, (ValueError, TypeError, KeyError, OSError, ImportError, RuntimeError)
            )


def modules() -> list[str]:
    found = pkgutil.walk_packages(kizami.__path__, "kizami.")
    return sorted(m.name for m in found if not m.name.endswith(("__main__", "._native")))


@pytest.mark.parametrize("name", ["kizami", *modules()])
def test_every_module_says_what_it_is(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"{name} needs an optional dependency: {error}")

    assert module.__doc__
    for public_name in getattr(module, "__all__", []):
        assert hasattr(module, public_name), (
            f"{name}.__all__ lists {public_name}, which is not there"
        )


@pytest.mark.parametrize(
    "kind", [kizami.Tokenizer, kizami.Batch, kizami.Session, kizami.SessionCache]
)
def test_every_public_method_is_documented(kind: type) -> None:
    for name, member in vars(kind).items():
        if name.startswith("_") or inspect.ismemberdescriptor(member):
            continue
        assert inspect.getdoc(member), f"{kind.__name__}.{name} has no docstring"


def test_the_package_is_typed() -> None:
    folder = Path(kizami.__file__).parent

    assert (folder / "py.typed").is_file()
    assert (folder / "_native.pyi").is_file()


def test_the_version_is_that_of_the_installed_package() -> None:
    from importlib.metadata import version

    assert kizami.__version__ == version("kizami")
