"""vLLM: `vllm serve MODEL --tokenizer-mode kizami`.

vLLM finds `register` as an entry point of the group `vllm.general_plugins` in every process. The
mode loads the tokenizer as vLLM's own mode `hf` does, runs it on Kizami, and renders conversations
as vLLM does: those of Kimi K3 with its renderer `kimi_k3`, all others with `hf`. Ids of tokenizers
that run on Kizami become text in `_vllm_detokenizer`.

With `KIZAMI_VLLM=1` in the environment, every mode does so that loads its tokenizer by
`transformers` (such as the modes of DeepSeek), and no flag is needed.

Made for vLLM 0.33.
"""

from __future__ import annotations

import importlib
from typing import Any

from kizami.chat import renderer_for
from kizami.compat.transformers import patch
from kizami.engines._adopting import kizami_of, switch

__all__ = ["MODE", "KizamiRenderer", "KizamiTokenizer", "register"]

MODE = "kizami"
"""The name of the tokenizer mode and of its renderer."""


def register() -> None:
    """Makes the mode known to vLLM. It can be called again."""
    tokenizers = importlib.import_module("vllm.tokenizers.registry").TokenizerRegistry
    renderers = importlib.import_module("vllm.renderers.registry").RENDERER_REGISTRY
    if MODE not in tokenizers.tokenizers:
        tokenizers.register(MODE, __name__, KizamiTokenizer.__name__)
    if MODE not in renderers.renderers:
        renderers.register(MODE, __name__, KizamiRenderer.__name__)
    importlib.import_module("kizami.engines._vllm_detokenizer").install()
    if switch("KIZAMI_VLLM", False):
        patch()


class KizamiTokenizer:
    """The mode's way to load a tokenizer; what it gives is one of vLLM's mode `hf`."""

    @classmethod
    def from_pretrained(cls, path_or_repo_id: Any, *args: Any, **kwargs: Any) -> Any:
        """See `vllm.tokenizers.TokenizerLike`. One that Kizami cannot run exactly is a plain one.

        Warns:
            UserWarning: It is one of these; the message says why.
        """
        hf = importlib.import_module("vllm.tokenizers.hf")
        with patch():
            return hf.CachedHfTokenizer.from_pretrained(path_or_repo_id, *args, **kwargs)


class KizamiRenderer:
    """The mode's renderer: one of vLLM's, by the tokenizer that it has."""

    def __new__(cls, config: Any, tokenizer: Any) -> Any:
        """The renderer for one model."""
        ours = kizami_of(tokenizer)
        is_k3 = ours is not None and renderer_for(ours.control_tokens) is not None
        renderers = importlib.import_module("vllm.renderers.registry").RENDERER_REGISTRY
        return renderers.load_renderer("kimi_k3" if is_k3 else "hf", config, tokenizer)
