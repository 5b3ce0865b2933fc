"""The commands ``floorkit convert ...``: other layouts to the dense one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.group()
def convert() -> None:
    """Convert predictions of other tools to the layouts that floorkit reads."""


@convert.command()
@click.option(
    "--prediction-root",
    required=True,
    type=click.Path(path_type=Path, exists=True),
    help="Folder of SESSION.npy files of shape [T - 10, 10, 3], or one .pkl file {session: array}.",
)
@click.option("--target-root", required=True, type=FOLDER, help="Folder of the targets SESSION.npy.")
@click.option(
    "--output-dir",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The run's folder to write: pred/, valid/ and origin.json.",
)
@click.option(
    "--sessions", "first", required=True, multiple=True, metavar="SESSION...", help="Sessions to convert."
)
@click.option("--add", is_flag=True, help="Keep other sessions that the output folder holds.")
@click.argument("more", nargs=-1, metavar="[SESSION]...")
def egospeak(
    prediction_root: Path,
    target_root: Path,
    output_dir: Path,
    first: Sequence[str],
    add: bool,
    more: Sequence[str],
) -> None:
    """Align EgoSpeak's source-indexed predictions with the rows that they forecast.

    \b
    Example:
      floorkit convert egospeak --prediction-root raw/eval --target-root targets \\
        --output-dir runs/miniroada --sessions Session_12 Session_3 Session_2 Session_1
    """
    from floorkit.formats.egospeak import Conversion, convert

    sessions = tuple(dict.fromkeys([*first, *more]))
    convert(Conversion(prediction_root, target_root, output_dir, sessions, add))
    click.echo(f"{len(sessions)} sessions written to {output_dir}", err=True)
