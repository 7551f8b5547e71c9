"""SGLang: nothing to configure; `pip install kizami` beside it is all.

SGLang finds `register` as an entry point of the group `sglang.srt.plugins` in every process. Every
tokenizer that its `get_tokenizer` gives, and that of each processor of its `get_processor`, is run
on Kizami when SGLang has done with it what it does after loading.

`KIZAMI_SGLANG=0` in the environment turns it off, as does `SGLANG_PLUGINS` without `kizami`.

Made for SGLang 0.5.23.
"""

from __future__ import annotations

import importlib
from typing import Any

from kizami.engines._adopting import adopt_or_say_why, switch

__all__ = ["register"]

_LOADERS = "sglang.srt.utils.hf_transformers"


def register() -> None:
    """Registers the hooks with SGLang, which applies them."""
    if not switch("KIZAMI_SGLANG", True):
        return
    hooks = importlib.import_module("sglang.srt.plugins.hook_registry")
    after = hooks.HookType.AFTER
    hooks.HookRegistry.register(f"{_LOADERS}.tokenizer.get_tokenizer", _after_tokenizer, after)
    hooks.HookRegistry.register(f"{_LOADERS}.processor.get_processor", _after_processor, after)


def _after_tokenizer(tokenizer: Any, *args: Any, **kwargs: Any) -> Any:
    return adopt_or_say_why(tokenizer)


def _after_processor(processor: Any, *args: Any, **kwargs: Any) -> Any:
    # Without images or sounds, the processor is the tokenizer.
    adopt_or_say_why(getattr(processor, "tokenizer", processor))
    return processor
