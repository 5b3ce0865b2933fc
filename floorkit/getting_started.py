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


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--protocol", "protocols", multiple=True, metavar="ID", help="Only this protocol (repeatable).")
@click.option(
    "--set",
    "answers",
    multiple=True,
    metavar="KEY=VALUE",
    help="A key below the entry, e.g. dataset.targets=../targets (repeatable).",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Manifest [default: FOLDER/protocols.toml].",
)
@click.option(
    "--ask/--no-ask", default=None, help="Ask for what the files do not tell [default: on a terminal]."
)
@click.option("--force", is_flag=True, help="Write over an existing manifest.")
def init(
    folder: Path,
    protocols: Sequence[str],
    answers: Sequence[str],
    output: Path | None,
    ask: bool | None,
    force: bool,
) -> None:
    """Write a manifest for the predictions in FOLDER; protocol and layout are guessed from the files.

    \b
    Examples:
      floorkit init my_predictions
      floorkit init runs --protocol competing_risk --set dataset.targets=targets
    """
    from floorkit.init import Wish, write_manifest

    asking = sys.stdin.isatty() if ask is None else ask
    path, chosen = write_manifest(Wish(folder, tuple(protocols), tuple(answers), output, asking, force))
    for one in chosen:
        click.echo(f"{one.protocol.id}: {one.guess.because}")
    click.echo(f"Wrote {path}. Read it, then:\n\n  floorkit check {path}\n  floorkit run {path}")


COMMANDS: Sequence[click.Command] = (new, doctor, init, completion)
