"""The commands ``floorkit competing-risk ...``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click


@click.group(name="competing-risk")
def competing_risk() -> None:
    """Tools of the competing-risk protocol."""


@competing_risk.command()
@click.argument("manifest", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--only", "entry", metavar="NAME", help="The manifest's entry, where several use the protocol.")
@click.option("--forecaster", required=True, type=click.Choice(["persistence", "hazard"]), help="Which one.")
@click.option(
    "--train-session",
    "train",
    multiple=True,
    metavar="SESSION",
    help="hazard: a session to fit the rates on (repeatable); none that is evaluated.",
)
@click.option(
    "--output-dir",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The run's folder to write: pred/, valid/ and origin.json.",
)
@click.option("--add", is_flag=True, help="Keep other sessions that the output folder holds.")
def baseline(
    manifest: Path, entry: str | None, forecaster: str, train: Sequence[str], output_dir: Path, add: bool
) -> None:
    """Forecast every session of an entry with a reference forecaster, in the dense layout.

    persistence keeps each class in its state; hazard uses onset and offset rates by the time since the last
    change, fitted on the training sessions alone. Name the folder as one more run of the entry.

    \b
    Example:
      floorkit competing-risk baseline protocols.toml --forecaster hazard \\
        --train-session demo_train --output-dir runs/hazard
    """
    from floorkit_competing_risk.write_baseline import write_baseline

    sessions = write_baseline(manifest, entry, forecaster, tuple(dict.fromkeys(train)), output_dir, add)
    click.echo(f"{len(sessions)} sessions written to {output_dir}", err=True)
