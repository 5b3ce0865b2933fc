"""``floorkit seld-metrics``: check, compress, export, verify."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from floorkit_seld_metrics.taxonomy import CURRENT_REVISION, REVISIONS, SUBMISSION_LIMIT_BYTES

FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)
NEW_FOLDER = click.Path(path_type=Path, file_okay=False)
FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
INVALID = 4
DIFFERENT = 1


@click.group(name="seld-metrics")
def seld_metrics() -> None:
    """DCASE2026 Task 3 acoustic maps: check, compress, export, verify."""


REVISION = click.option(
    "--revision",
    type=click.Choice(list(REVISIONS)),
    default=CURRENT_REVISION,
    show_default=True,
    help="Official revision.",
)


@seld_metrics.command()
@click.argument("predictions", type=FOLDER)
@click.option("--labels", type=FOLDER, help="Folder of labels: every labelled recording is expected.")
@click.option(
    "--recording", "recordings", multiple=True, metavar="SEQ", help="An expected recording (repeatable)."
)
def check(predictions: Path, labels: Path | None, recordings: Sequence[str]) -> None:
    """Check a folder of PREDICTIONS as a submission: 20 MiB a file, schema, coverage.

    Without --labels or --recording the 78 recordings of the development test are expected.

    \b
    Example:
      floorkit seld-metrics check inference_outputs --labels labels_dev
    """
    from floorkit_seld_metrics import submission

    checked = submission.check(predictions, labels, recordings)
    for problem in checked.problems:
        click.echo(str(problem))
    state = f"{len(checked.problems)} problems" if checked.problems else "valid"
    click.echo(
        f"{state}: {checked.files} files, {checked.annotations} annotations, "
        f"largest file {checked.largest / 2**20:.2f} MiB of 20"
    )
    if checked.problems:
        raise SystemExit(INVALID)


@seld_metrics.command()
@click.argument("predictions", type=FOLDER)
@click.argument("output", type=NEW_FOLDER)
@click.option(
    "--limit-bytes",
    type=click.IntRange(min=1),
    default=SUBMISSION_LIMIT_BYTES,
    show_default=True,
    help="Largest file.",
)
@click.option("--labels", type=FOLDER, help="Folder of labels, to report what compression costs in AP.")
@REVISION
def compress(predictions: Path, output: Path, limit_bytes: int, labels: Path | None, revision: Any) -> None:
    """Write PREDICTIONS anew into OUTPUT, each file by the mildest thinning that fits the limit.

    \b
    Example:
      floorkit seld-metrics compress inference_outputs small --labels labels_dev
    """
    from floorkit.core.errors import InputError, ManifestError, Problem, raise_problems
    from floorkit_seld_metrics import compression, data, folders

    if output.resolve() == predictions.resolve():
        raise ManifestError(Problem("OUTPUT is the folder of predictions itself", str(output)))
    found, problems = data.prediction_files(predictions, predictions.parent)
    raise_problems(InputError, problems)
    for name, path in sorted(found.items()):
        made = compression.compress(path, output / f"{name}_inference.json", limit_bytes)
        click.echo(
            f"{name}: {made.before:,} to {made.after:,} bytes, {made.points_before:,} to "
            f"{made.points_after:,} points ({made.step})"
        )
    if labels is None:
        click.echo("note: with --labels, what this costs in AP is told")
        return
    before, after = (
        folders.figures(folders.pairs(labels, folder), [revision]) for folder in (predictions, output)
    )
    for key, figure in before.items():
        if figure.headline:
            values = figure.value, after[key].value
            was, now = (f"{value:.6f}" if value is not None else "–" for value in values)
            change = "" if None in values else f" ({values[1] - values[0]:+.6f})"  # type: ignore[operator]
            click.echo(f"{figure.label}: {was} to {now}{change}")


@seld_metrics.command()
@click.argument("model", type=FOLDER)
@click.argument("output", type=NEW_FOLDER)
@click.option(
    "--labels", type=FOLDER, required=True, help="Folder of labels: they say how many frames there are."
)
def export(model: Path, output: Path, labels: Path) -> None:
    """Write prediction files from dense maps by the paper's inference protocol.

    MODEL holds a folder SEQ for each recording with confidence.npy [frames, slots], category.npy, maps.npy
    [frames, slots, 180, 360] and, optionally, distance.npy.

    \b
    Example:
      floorkit seld-metrics export model_outputs inference_outputs --labels labels_dev
    """
    from floorkit_seld_metrics.export import export as write

    for name, count in write(model, labels, output).items():
        click.echo(f"{name}: {count} annotations")


@seld_metrics.command()
@click.argument("labels", type=FOLDER)
@click.argument("predictions", type=FOLDER)
@click.option(
    "--official", type=FILE, required=True, help="Your copy of that revision's evaluate.py. It is run."
)
@REVISION
@click.option(
    "--timeout", type=click.FloatRange(min=1), default=3600.0, show_default=True, help="Seconds a run."
)
def verify(labels: Path, predictions: Path, official: Path, revision: Any, timeout: float) -> None:
    """Compare with an official evaluator on the same LABELS and PREDICTIONS.

    The file is run in a process of its own, in a temporary folder. Exit code 1 where figures differ by
    more than 1e-9 (2026-04-02: by more than its four decimals). Ties are the one known reason.

    \b
    Example:
      floorkit seld-metrics verify labels_dev inference_outputs --official evaluate.py
    """
    from floorkit.core.sources import hash_file
    from floorkit_seld_metrics import folders
    from floorkit_seld_metrics.official import verify as both

    lines = both(official, folders.pairs(labels, predictions), revision, timeout)
    click.echo(f"official: {official}, sha256 {hash_file(official)[0]}, revision {revision}")
    click.echo(f"{'':<32}{'floorkit':>18}{'official':>18}{'difference':>12}")
    for line in lines:
        values = [f"{value:.12f}" if value is not None else "–" for value in (line.ours, line.official)]
        difference = f"{line.difference:.1e}" if line.difference is not None else ""
        mark = "" if line.agrees else "  DIFFERENT"
        click.echo(f"{line.name:<32}{values[0]:>18}{values[1]:>18}{difference:>12}{mark}")
    different = sum(not line.agrees for line in lines)
    click.echo(f"{len(lines) - different} of {len(lines)} figures agree")
    if different:
        raise SystemExit(DIFFERENT)
