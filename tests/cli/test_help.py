"""Help: every command has one, with examples that are commands, in 80 columns."""

from __future__ import annotations

import re
import shlex
from typing import Any

import click
import pytest
from kizami.cli import main

NAMES = sorted(main.commands)


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_with_examples(invoke: Any, name: str) -> None:
    result = invoke(name, "--help")

    assert result.exit_code == 0
    assert result.stderr == ""
    assert f"Usage: kizami {name}" in result.stdout
    assert re.search(rf"Examples:\n(    .+\n)*    .*kizami {name}", result.stdout)
    assert invoke(name, "-h").stdout == result.stdout


@pytest.mark.parametrize("name", ["", *NAMES])
def test_help_fits_80_columns(run: Any, name: str) -> None:
    lines = run(*filter(None, [name]), "--help", COLUMNS="80").stdout.decode().splitlines()
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", NAMES)
def test_examples_name_options_that_exist(name: str) -> None:
    text = main.commands[name].help or ""
    for line in re.findall(r"^ *((?:.*\| )?kizami .*)$", text.partition("Examples:")[2], re.M):
        for part in line.split("|"):
            words = shlex.split(part)
            if words[0] != "kizami":
                continue
            command = main.commands[words[1]]
            known = {
                option
                for parameter in command.params
                for option in (*parameter.opts, *parameter.secondary_opts)
            }
            assert {word for word in words[2:] if word.startswith("--")} <= known


@pytest.mark.parametrize("name", NAMES)
def test_every_option_has_help(name: str) -> None:
    for parameter in main.commands[name].params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


def test_allow_special_warns(invoke: Any) -> None:
    words = " ".join(invoke("encode", "--help").stdout.split())
    assert "Only for text that you wrote or trust" in words


def test_the_list_of_commands_is_not_cut(invoke: Any) -> None:
    assert "..." not in invoke("--help").stdout.partition("Commands:")[2]
