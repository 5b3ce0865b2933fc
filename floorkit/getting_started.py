"""The commands for a first day with floorkit: doctor, init, new and completion."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.argument("name")
@click.option("--into", type=FOLDER, default=Path(), help="Folder that gets it [default: this one].")
def new(name: str, into: Path) -> None:
    """Write a complete plugin for a protocol NAME: a working one, to change room by room.

    \b
    Example:
      floorkit new onset_latency
      pip install --editable 'floorkit-onset-latency[dev]'
      floorkit run floorkit-onset-latency/example/protocols.toml
    """
    from floorkit.new import write_plugin

    folder = write_plugin(name, into)
    shown = folder.as_posix()
    click.echo(
        f"Wrote {shown}: a plugin that works, with example, tests and golden values. Next:\n\n"
        f"  pip install --editable '{shown}[dev]'\n"
        f"  floorkit run {shown}/example/protocols.toml\n"
        f"  pytest {shown}"
    )


@click.command()
@click.option(
    "--output", type=FOLDER, default=Path("results"), help="Results folder to try [default: results]."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def doctor(output: Path, as_json: bool) -> None:
    """Look at the environment and say what to fix: versions, plugins, folders, threads.

    Exit code 1 where something does not work.

    \b
    Example:
      floorkit doctor --output /scratch/results
    """
    from floorkit.doctor import examine, print_findings

    sys.exit(print_findings(examine(output), as_json))


SHELLS = {
    "bash": "~/.bashrc",
    "zsh": "~/.zshrc",
    "fish": "~/.config/fish/completions/floorkit.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(tuple(SHELLS)))
def completion(shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    Examples:
      floorkit completion bash >> ~/.bashrc
      floorkit completion zsh >> ~/.zshrc
      floorkit completion fish > ~/.config/fish/completions/floorkit.fish
    """
    from click.shell_completion import get_completion_class

    from floorkit.cli import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click has no completion for {shell}")
    click.echo(kind(cli, {}, "floorkit", "_FLOORKIT_COMPLETE").source())


COMMANDS: Sequence[click.Command] = (new, doctor, completion)
