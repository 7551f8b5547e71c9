"""Show how a conversation becomes typed segments: which text is control, and which is content.

    python examples/render_segments.py

Control segments are marked `*`. The look-alikes of control tokens in a tool result and in the last
message of `agent.json` are not: they stay text, whatever they spell.
"""

from __future__ import annotations

import json
from pathlib import Path

from kizami.chat.kimi_k3 import render


def main() -> None:
    """Render `agent.json`, one segment a line."""
    request = json.loads(Path(__file__).with_name("agent.json").read_text(encoding="utf-8"))
    segments = render(request.pop("messages"), **request)
    for number, segment in enumerate(segments):
        mark = "*" if segment.allow_special else " "
        print(f"{number:4} {mark} {json.dumps(segment.text, ensure_ascii=False)}")
    control = sum(segment.allow_special for segment in segments)
    print(f"{len(segments)} segments, {control} of them control")


if __name__ == "__main__":
    main()
