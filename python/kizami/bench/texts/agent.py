"""What fills an agent's prompt: JSON results of tools, diffs, logs, listings, and prose between."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from kizami.bench.texts.grammar import language
from kizami.bench.texts.mixing import Mixer

__all__ = ["agent_text"]

_LEVELS = ("DEBUG", "INFO", "INFO", "INFO", "WARNING", "ERROR")
_ENDINGS = ("py", "py", "rs", "ts", "md", "json", "toml", "go")


def agent_text(mixer: Mixer, size: int, seed: int) -> str:
    """Exactly `size` characters of a transcript."""
    random = Random(f"agent {seed}")
    makers = (_json_result, _json_result, _diff, _diff, _log, _listing, _prose, _prose)
    parts: list[str] = []
    length = 0
    while length < size:
        part = random.choice(makers)(mixer, random)
        parts.append(part)
        length += len(part)
    return "".join(parts)[:size]


def _word(random: Random) -> str:
    """Names come again and again in one repository; every tenth is new."""
    words = language("english")
    return words.new_word(random) if random.random() < 0.1 else words.word(random)


def _path(random: Random) -> str:
    folders = "/".join(_word(random) for _ in range(random.randint(1, 3)))
    return f"{folders}/{_word(random)}_{_word(random)}.{random.choice(_ENDINGS)}"


def _stamp(random: Random) -> str:
    day, hour, minute = random.randint(1, 28), random.randint(0, 23), random.randint(0, 59)
    second = f"{random.random() * 60:06.3f}"
    return f"2026-0{random.randint(1, 9)}-{day:02}T{hour:02}:{minute:02}:{second}Z"


def _json_result(mixer: Mixer, random: Random) -> str:
    def value() -> object:
        makers: tuple[Callable[[], object], ...] = (
            lambda: random.randint(0, 10**6),
            lambda: round(random.random() * 100, 3),
            lambda: random.random() < 0.5,
            lambda: _path(random),
            lambda: mixer.part("english", random).strip(),
            lambda: [_word(random) for _ in range(random.randint(0, 5))],
            lambda: None,
        )
        return random.choice(makers)()

    rows = [
        {
            "id": f"{random.getrandbits(64):016x}",
            "path": _path(random),
            "modified_at": _stamp(random),
            **{_word(random): value() for _ in range(random.randint(2, 6))},
        }
        for _ in range(random.randint(1, 6))
    ]
    result = {"status": "ok", "total": len(rows), "results": rows}
    return json.dumps(result, indent=random.choice((None, 2))) + "\n\n"


def _diff(mixer: Mixer, random: Random) -> str:
    path = _path(random)
    lines = [f"diff --git a/{path} b/{path}", f"--- a/{path}", f"+++ b/{path}"]
    start = random.randint(1, 900)
    lines.append(f"@@ -{start},{random.randint(3, 20)} +{start},{random.randint(3, 20)} @@")
    for line in (mixer.part("code", random) + mixer.part("code", random)).splitlines()[:30]:
        lines.append(random.choice((" ", " ", " ", "-", "+")) + line)
    return "\n".join(lines) + "\n\n"


def _log(mixer: Mixer, random: Random) -> str:
    lines = []
    for _ in range(random.randint(4, 16)):
        what = mixer.part("english", random).strip()[:90]
        where = f"{_word(random)}.{_word(random)}:{random.randint(1, 900)}"
        lines.append(f"{_stamp(random)} {random.choice(_LEVELS):<7} [{where}] {what}")
    lines.append(f"finished in {random.random() * 90:.2f}s, exit code {random.randint(0, 2)}")
    return "\n".join(lines) + "\n\n"


def _listing(mixer: Mixer, random: Random) -> str:
    lines = []
    for _ in range(random.randint(5, 25)):
        mode = random.choice(("-rw-r--r--", "-rwxr-xr-x", "drwxr-xr-x"))
        size = random.randint(100, 10**7)
        owner = f"{_word(random)[:8]:<8}"
        lines.append(f"{mode} 1 {owner} {size:>9} {_stamp(random)[:16]} {_path(random)}")
    return "\n".join(lines) + "\n\n"


def _prose(mixer: Mixer, random: Random) -> str:
    return "".join(mixer.part("english", random) for _ in range(random.randint(2, 7))) + "\n\n"
