"""Chat renderers: messages -> typed segments.

One module per template family. A renderer is a pure function of its arguments: it decides which
text is control and which is content, never encodes, never does I/O and never changes the caller's
objects. It depends on `kizami.segments` and `kizami.errors` alone.

Read next: `kimi_k3` for the one family that there is.
"""

from __future__ import annotations

from kizami.chat.kimi_k3 import render as render_kimi_k3

__all__ = ["render_kimi_k3"]
