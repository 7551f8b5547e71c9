"""`kizami chat`: a conversation to ids, to its segments, or to a summary."""

from __future__ import annotations

import inspect
import time
import warnings
from typing import Any

import click

from kizami._tokenizer import Tokenizer
from kizami.chat import renderer_for
from kizami.cli._console import say, warn
from kizami.cli._faults import CommandError
from kizami.cli._files import format_for, name_of, read_json, write_ids
from kizami.cli._options import (
    errors_option,
    format_option,
    load,
    model_option,
    out_option,
)
from kizami.cli._segments import show_segments
from kizami.cli._summary import LeftOut, Timing, summarise
from kizami.segments import Segment

__all__ = ["chat"]

_OPTIONS = tuple(
    name
    for name, parameter in inspect.signature(Tokenizer.render_chat).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY
)
_BOOLEANS = ("add_generation_prompt", "thinking", "developer_as_system")
_WANTED = "a JSON list of messages, or an object with `messages`"


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@model_option
@click.option(
    "--tools",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="JSON list of tools.",
)
@click.option(
    "--generation-prompt/--no-generation-prompt",
    "add_generation_prompt",
    default=None,
    help="End with the opening of the assistant's reply, or not.  [default: do]",
)
@click.option(
    "--thinking/--no-thinking",
    default=None,
    help="Leave room for reasoning, or not.  [default: do]",
)
@click.option(
    "--thinking-effort",
    type=click.Choice(["low", "high", "max", "none"]),
    help="How much to think; `none` says nothing about it.  [default: max]",
)
@click.option(
    "--tool-choice",
    type=click.Choice(["required", "none", "auto"]),
    help="`required` and `none` add an instruction to the prompt.",
)
@click.option(
    "--developer-as-system",
    is_flag=True,
    default=None,
    help="Render messages of the role `developer`, which the model's own template leaves out.",
)
@click.option(
    "--stats", is_flag=True, help="Print a summary instead of ids: what is in this prompt, and how."
)
@click.option(
    "--segments",
    is_flag=True,
    help="Print the typed segments instead of ids: control text bare, other text in quotes;"
    " cut to the width of a terminal, in full elsewhere.",
)
@format_option
@out_option
@errors_option
def chat(
    file: str,
    model: str,
    tools: str | None,
    stats: bool,
    segments: bool,
    form: str | None,
    out: str | None,
    errors: str,
    **overrides: Any,
) -> None:
    """Print the token ids of a conversation.

    FILE is JSON: a list of messages in the style of OpenAI, or an object with `messages` and,
    as you like, `tools`, `thinking_effort` and the other options of `Tokenizer.render_chat`.
    Options on the command line win over those in FILE.

    \b
    Examples:
      kizami chat conversation.json --stats
      kizami chat conversation.json --segments | less
      kizami chat conversation.json --out ids.npy
      kizami chat messages.json --tools tools.json --thinking-effort low
    """
    instead = "--stats" if stats else "--segments" if segments else None
    if instead and form and not out:
        message = f"`--format` says how to write ids, and `{instead}` prints none"
        raise CommandError(message, "add `--out FILE` to have both")
    form = "text" if instead and not out else format_for(form, out)
    if instead and out == "-":
        message = f"`--out -` and `{instead}` both want standard output"
        raise CommandError(message, "write the ids to a file")
    messages, options = _request(file, errors)
    options.update({name: value for name, value in overrides.items() if value is not None})
    if options.get("thinking_effort") == "none":
        options["thinking_effort"] = None
    if tools is not None:
        options["tools"] = _tools(tools, errors)
    tokenizer = load(model)
    if renderer_for(tokenizer.control_tokens) is None:
        hint = "choose another `--model`; `kizami models` tells which can"
        raise CommandError(f"no chat renderer is known for `{model}`", hint)

    times = [time.perf_counter()]
    rendered, skipped = _render(tokenizer, messages, options)
    times.append(time.perf_counter())
    ids = tokenizer.encode_segments(rendered)
    times.append(time.perf_counter())
    if out or not instead:
        write_ids(ids, form, out)
    if segments:
        show_segments(tokenizer, rendered)
    if segments and stats:
        say("")
    if stats:
        warm = min(_timed(tokenizer, rendered) for _ in range(5))
        timing = Timing(times[1] - times[0], times[2] - times[1], warm)
        left_out = LeftOut(skipped, len(messages))
        say(summarise(tokenizer, rendered, ids, name_of(file).strip("`"), timing, left_out))


def _timed(tokenizer: Tokenizer, segments: list[Segment]) -> float:
    start = time.perf_counter()
    tokenizer.encode_segments(segments)
    return time.perf_counter() - start


def _request(file: str, errors: str) -> tuple[Any, dict[str, Any]]:
    """The messages in the file, and the options beside them."""
    value = read_json(file, errors, _WANTED)
    if isinstance(value, list):
        return value, {}
    name = name_of(file)
    if isinstance(value, dict) and "role" in value and "messages" not in value:
        hint = 'put it in a list: [{"role": ..., "content": ...}]'
        raise CommandError(f"{name} holds a single message, not a list", hint)
    if not isinstance(value, dict) or "messages" not in value:
        raise CommandError(f"{name} holds no messages", f"give {_WANTED}")
    messages = value.pop("messages")
    unknown = [key for key in value if key not in _OPTIONS]
    if unknown:
        keys = ", ".join(f"`{key}`" for key in unknown)
        raise CommandError(
            f"{name} has unknown key{'s' * (len(unknown) > 1)} {keys}",
            f"known are messages, {', '.join(_OPTIONS)}",
        )
    for key in _BOOLEANS:
        if key in value and not isinstance(value[key], bool):
            raise CommandError(f"{name}: `{key}` is neither true nor false", "give a JSON boolean")
    return messages, value


def _tools(file: str, errors: str) -> Any:
    wanted = "a JSON list of tools"
    tools = read_json(file, errors, wanted)
    if not isinstance(tools, list):
        raise CommandError(f"{name_of(file)} holds no list", f"give {wanted}")
    return tools


def _render(
    tokenizer: Tokenizer, messages: Any, options: dict[str, Any]
) -> tuple[list[Segment], list[int]]:
    """The segments, and which messages (0-based) are not in them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        segments = tokenizer.render_chat(messages, **options)
    skipped = []
    for warning in caught:
        text = str(warning.message)
        warn(text.replace("developer_as_system=True", "`--developer-as-system`"))
        index = getattr(warning.message, "skipped_message", None)
        if index is not None:
            skipped.append(index)
    return segments, skipped
