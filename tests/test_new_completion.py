"""``floorkit completion``: the scripts of the three shells, and what they ask floorkit for."""

from __future__ import annotations

import re
import shutil
import subprocess

import click
import click.testing
import pytest

from floorkit.cli import cli

from .conftest import Floorkit

COMMANDS = ("check", "completion", "doctor", "init", "lock", "new", "plugins", "run", "verify")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_calls_floorkit_in_the_way_of_the_shell(shell: str, floorkit: Floorkit) -> None:
    done = floorkit("completion", shell)
    assert done.returncode == 0, done.stderr
    assert f"_FLOORKIT_COMPLETE={shell}_complete" in done.stdout
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=done.stdout, text=True, check=True)


def test_another_shell_is_refused_with_the_known_ones(floorkit: Floorkit) -> None:
    done = floorkit("completion", "tcsh")
    assert done.returncode == 2
    assert "'bash', 'zsh', 'fish'" in done.stderr


def complete(floorkit: Floorkit, words: str, index: int) -> list[str]:
    done = floorkit(_FLOORKIT_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(index))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_commands_are_completed(floorkit: Floorkit) -> None:
    found = complete(floorkit, "floorkit ", 1)
    assert {f"plain,{name}" for name in COMMANDS} <= set(found)
    assert complete(floorkit, "floorkit doc", 1) == ["plain,doctor"]


def test_options_and_files_are_completed(floorkit: Floorkit) -> None:
    assert complete(floorkit, "floorkit run --allow", 2) == ["plain,--allow-source-drift"]
    assert complete(floorkit, "floorkit run my", 2) == ["file,my"]
    assert complete(floorkit, "floorkit completion z", 2) == ["plain,zsh"]


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if isinstance(command, click.Group):
        return [leaf for name, one in command.commands.items() for leaf in leaves(one, (*path, name))]
    return [path]


@pytest.mark.parametrize("path", leaves(cli), ids=" ".join)
def test_every_help_text_has_an_example_of_the_command(path: tuple[str, ...]) -> None:
    done = click.testing.CliRunner().invoke(cli, [*path, "--help"])
    assert done.exit_code == 0
    assert re.search(rf"Examples?:\n.*floorkit {' '.join(path)}\b", done.output, re.DOTALL), done.output
