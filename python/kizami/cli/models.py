"""`kizami models`: what this installation holds."""

from __future__ import annotations

import click

import kizami
from kizami import _native
from kizami.chat import renderer_for
from kizami.cli._console import say

__all__ = ["models"]


@click.command()
def models() -> None:
    """List the bundled models: they load without a download.

    CHAT tells whether `kizami chat` can render conversations for the model.

    \b
    Examples:
      kizami models
      kizami encode prompt.txt --model kimi-k2
    """
    names = _native.bundled_names()
    width = max(len("MODEL"), *map(len, names))
    say(f"{'MODEL':<{width}}  {'IDS':>7}  {'CONTROL':>7}  CHAT")
    for name in names:
        tokenizer = kizami.load(name)
        controls = tokenizer.control_tokens
        chat = "no" if renderer_for(controls) is None else "yes"
        say(f"{name:<{width}}  {tokenizer.vocab_size:>7}  {len(controls):>7}  {chat}")
