"""Chat renderers: messages -> typed segments.

One module per template family. A renderer is a pure function of its arguments: it decides which
text is control and which is content, never encodes, never does I/O and never changes the caller's
objects. It depends on `kizami.segments` and `kizami.errors` alone.

Read next: `kimi_k3` for the one family that is written by hand; `jinja`, which needs jinja2 and is
not loaded here, for templates that models publish.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from kizami.chat.kimi_k3 import render as render_kimi_k3
from kizami.segments import Segment

__all__ = ["render_kimi_k3", "renderer_for"]

# The markers that a K3 template writes; a vocabulary that has them all speaks this family.
_K3_MARKERS = ("<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>")


def renderer_for(control_tokens: Container[str]) -> Callable[..., list[Segment]] | None:
    """The renderer of the family that these control tokens belong to, or None.

    >>> renderer_for(["<|im_start|>"]) is None
    True
    """
    if all(marker in control_tokens for marker in _K3_MARKERS):
        return render_kimi_k3
    return None
