"""A run that dies at its n-th step on the disk, for every n; then one that goes on.

    python -m tests.corpus.crash INPUT FOLDER FORMAT

Each run is a fork of this process, which has no threads. A step is a file opened, a write, a sync,
a rename or a removal. Prints how many steps a run has.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import kizami
from kizami.corpus import _files, tokenize

from .conftest import contents

SHARD_TOKENS = 1000


def run(source: str, folder: Path, form: str, resume: bool) -> None:
    tokenize(
        source, folder, kizami.load("kimi-k3"), shard_tokens=SHARD_TOKENS, format=form,
        resume=resume, broken="skip",
    )  # fmt: skip


def die_at(step: int) -> None:
    """Lets this process be killed when it comes to a step."""
    count = 0

    def counted(real: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return call

    for name in ("replace", "fsync", "unlink"):
        setattr(os, name, counted(getattr(os, name)))
    _files.File.write = counted(_files.File.write)  # type: ignore[method-assign]
    _files.File.__init__ = counted(_files.File.__init__)  # type: ignore[method-assign]
    Path.unlink = counted(Path.unlink)  # type: ignore[method-assign]


def forked(work: Any) -> int:
    """The exit status of a child that does it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def main(source: str, place: str, form: str) -> None:
    whole, folder = Path(place, "whole"), Path(place, "out")
    assert forked(lambda: run(source, whole, form, False)) == 0
    wanted = contents(whole)
    step = 0
    while True:
        step += 1
        shutil.rmtree(folder, ignore_errors=True)

        def dying(step: int = step) -> None:
            die_at(step)
            run(source, folder, form, False)

        status = forked(dying)
        if status == 0:
            break
        assert status == signal.SIGKILL, status

        # The first to go on dies as well, at another step.
        def dying_again(step: int = step) -> None:
            die_at(step % 7 + 1)
            run(source, folder, form, True)

        assert forked(dying_again) in (0, signal.SIGKILL)
        assert forked(lambda: run(source, folder, form, True)) == 0
        assert contents(folder) == wanted, f"step {step}"
    print(step - 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
