"""Plugins of engines, as far as they work without the engine: `tests/engines` has the rest."""

from __future__ import annotations

import importlib
import logging
import subprocess
import sys
from types import SimpleNamespace

import kizami
import pytest
from kizami.engines import _adopting, _vllm_detokenizer
from kizami.errors import InvalidValueError


def test_nothing_is_imported_before_the_engine_asks() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('vllm', 'sglang', 'transformers')))\n"
        "import kizami.engines.vllm, kizami.engines.sglang\n"
        "for module in (kizami.engines.vllm, kizami.engines.sglang):\n"
        "    try: module.register()\n"
        "    except ImportError as error: print(error.name)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    names = [name.partition(".")[0] for name in run.stdout.split()]
    assert names == ["vllm", "sglang"], run.stderr


@pytest.mark.parametrize(
    ("value", "means"), [("", True), ("1", True), ("0", False), (" 0 ", False)]
)
def test_switches(monkeypatch: pytest.MonkeyPatch, value: str, means: bool) -> None:
    monkeypatch.setenv("KIZAMI_A_SWITCH", value)
    assert _adopting.switch("KIZAMI_A_SWITCH", True) is means


def test_a_switch_is_1_or_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIZAMI_A_SWITCH", "true")
    with pytest.raises(InvalidValueError, match="KIZAMI_A_SWITCH is 'true'; set it to 1 or 0"):
        _adopting.switch("KIZAMI_A_SWITCH", True)


def test_what_cannot_be_adopted_is_said(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("transformers", reason="needs transformers")
    other = SimpleNamespace()
    with caplog.at_level(logging.WARNING, "kizami"):
        assert _adopting.adopt_or_say_why(other) is other
    assert "SimpleNamespace does not run on Kizami" in caplog.text


def test_a_stream_begins_behind_the_prompt(tokenizer: kizami.Tokenizer) -> None:
    prompt = [2**40, *tokenizer.encode("a long prompt " * 50).tolist()]
    party = tokenizer.encode("🎉").tolist()
    for cut in range(len(party)):
        stream = _vllm_detokenizer.primed(tokenizer, prompt + party[:cut], False)
        assert "".join(_vllm_detokenizer.pushed(stream, id_) for id_ in party[cut:]) == "🎉"
    assert _vllm_detokenizer.primed(tokenizer, None, True).finish() == ""


@pytest.mark.parametrize("id_", [-1, 163_840, 2**32, 2**63])
def test_ids_that_are_no_tokens_have_no_text(tokenizer: kizami.Tokenizer, id_: int) -> None:
    stream = tokenizer.stream()
    assert _vllm_detokenizer.pushed(stream, id_) == ""
    assert _vllm_detokenizer.pushed(stream, 19180) == "Hello"


def test_entry_points_name_what_is_there() -> None:
    for name in ("vllm", "sglang"):
        assert callable(importlib.import_module(f"kizami.engines.{name}").register)
