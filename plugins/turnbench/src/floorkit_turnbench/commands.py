"""``floorkit turnbench``: check files, sweep thresholds, rank results, export gold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from floorkit_turnbench.data import AnnotatedDataset

FILE = click.Path(path_type=Path, dir_okay=False)
DATASET = "DATASET: a JSON file, parquet shards, a folder of annotators' files, or a hub id OWNER/NAME."
INVALID = 4


class Share(click.FloatRange):
    """A number from 0 to 1; click's own range lets NaN pass."""

    def __init__(self) -> None:
        super().__init__(0.0, 1.0)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value} is not in the range 0 to 1.", param, ctx)
        return number


@click.group()
def turnbench() -> None:
    """End-of-turn and interruption events: check, sweep, leaderboard, gold."""


def _load(source: str, revision: str, durations: Path | None) -> AnnotatedDataset:
    from floorkit_turnbench.data import load_dataset

    return load_dataset(source, revision=revision, durations=durations)


REVISION = click.option("--revision", default="", help="Branch, tag or commit of a hub dataset.")
DURATIONS = click.option("--durations", type=FILE, help='A JSON file {"durations": {ID: seconds}}.')
BUDGET = click.option("--fp-budget", type=Share(), default=0.1, show_default=True, help="Highest FP rate.")


@turnbench.command()
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("--dataset", default="", help=DATASET)
@REVISION
@DURATIONS
def check(files: Sequence[Path], dataset: str, revision: str, durations: Path | None) -> None:
    """Check submission and probability FILES; every problem of every file is told.

    Ids, ends and frame counts are checked against --dataset, or --durations alone.

    \b
    Example:
      floorkit turnbench check predictions.json probs-eot.json --durations durations.json
    """
    from floorkit_turnbench.checking import check_file
    from floorkit_turnbench.data import read_durations

    lengths = None
    if dataset:
        lengths = _load(dataset, revision, durations).durations
    elif durations is not None:
        lengths = read_durations(durations)
    invalid = 0
    for path in files:
        checked = check_file(path, lengths)
        for note in checked.notes:
            click.echo(f"note: {note}")
        if checked.problems:
            invalid += 1
            count = len(checked.problems)
            click.echo(f"INVALID {path}: {count} problem{'s' if count > 1 else ''}")
            for problem in checked.problems:
                click.echo(str(problem))
        else:
            click.echo(f"valid   {path}: {checked.summary}")
    if lengths is None:
        click.echo("note: without --dataset or --durations, ids, ends and frame counts were not checked")
    if invalid:
        raise SystemExit(INVALID)


@turnbench.command()
@click.argument("probabilities", type=FILE)
@click.argument("dataset")
@REVISION
@DURATIONS
@BUDGET
@click.option("--output", type=FILE, help="Write the rows of all thresholds to this CSV file.")
@click.option("--score", type=FILE, help="Probabilities of another split to score with the chosen threshold.")
@click.option("--on", default="", help="The dataset of --score.")
def sweep(
    probabilities: Path,
    dataset: str,
    revision: str,
    durations: Path | None,
    fp_budget: float,
    output: Path | None,
    score: Path | None,
    on: str,
) -> None:
    """Try all candidate thresholds of PROBABILITIES on DATASET and choose one under the FP budget.

    \b
    Example:
      floorkit turnbench sweep dev/probs-eot.json dev.json --score test/probs-eot.json --on test.json
    """
    from floorkit_turnbench import api

    if bool(score) != bool(on):
        raise click.UsageError("--score and --on go together")
    table = api.sweep(probabilities, _load(dataset, revision, durations))
    rows = table.rows()
    click.echo(f"{probabilities}: task {table.task}, {len(rows)} thresholds on {dataset}")
    if output is not None:
        output.write_text(_csv(table.task, rows), encoding="utf-8", newline="\n")
        click.echo(f"rows written to {output}")
    point = table.operating_point(fp_budget)
    if point is None:
        click.echo(f"no threshold has an FP rate of at most {fp_budget:g}")
        return
    click.echo(f"chosen (highest recall with FP rate <= {fp_budget:g}):")
    _show(point)
    if score is not None:
        frozen = api.sweep(score, _load(on, "", None), [point["theta"]])
        if frozen.task != table.task:
            raise click.UsageError(f"{score} is of task {frozen.task}, {probabilities} of {table.task}")
        click.echo(f"{score} on {on}, threshold frozen:")
        _show(frozen.row(0))


def _show(row: dict[str, Any]) -> None:
    for name, value in row.items():
        click.echo(f"  {name:<15} {'-' if value is None else value}")


def _csv(task: str, rows: list[dict[str, Any]]) -> str:
    import csv
    import io

    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["task", *rows[0]])
    writer.writerows([task, *row.values()] for row in rows)
    return stream.getvalue()


@turnbench.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--fp-ceiling",
    type=Share(),
    default=0.15,
    show_default=True,
    help="Highest FP rate with which a run qualifies.",
)
@click.option("--older", is_flag=True, help="The older view: budget and recall floor, by p50 latency.")
@BUDGET
@click.option(
    "--recall-floor",
    type=Share(),
    default=0.5,
    show_default=True,
    help="Lowest recall of the older view.",
)
def leaderboard(
    results: Sequence[Path], fp_ceiling: float, older: bool, fp_budget: float, recall_floor: float
) -> None:
    """Rank the runs of RESULTS: results folders, summary.json files, or the official leaderboard JSON.

    \b
    Example:
      floorkit turnbench leaderboard results/ leaderboard-test.json
    """
    from rich.console import Console
    from rich.table import Table

    from floorkit_turnbench.leaderboard import rank, rank_by_latency
    from floorkit_turnbench.stored_results import read_entries

    entries = read_entries(results)
    console = Console(width=None)
    for task, ours in entries.items():
        ranked = rank_by_latency(ours, fp_budget, recall_floor) if older else rank(ours, fp_ceiling)
        title = f"{task}: FP rate <= {fp_budget:g}, recall >= {recall_floor:g}, by latency"
        table = Table(title=title if older else f"{task}: FP rate <= {fp_ceiling:g} first, by recall")
        for heading in ("rank", "run", "recall", "FP rate", "p50 (ms)", "qualifies"):
            name = heading == "run"
            table.add_column(heading, justify="left" if name else "right", overflow="fold", no_wrap=not name)
        for one in ranked:
            table.add_row(
                "-" if one.rank is None else str(one.rank),
                one.entry.name,
                _number(one.entry.recall, 4),
                _number(one.entry.fp_rate, 4),
                _number(one.entry.latency_p50_ms, 1),
                "yes" if one.qualifies else "no",
            )
        console.print(table)


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


@turnbench.group()
def gold() -> None:
    """The gold events that a dataset's annotations give."""


@gold.command()
@click.argument("dataset")
@REVISION
@DURATIONS
@click.option("--output", type=FILE, help="Write to this file instead of standard output.")
def export(dataset: str, revision: str, durations: Path | None, output: Path | None) -> None:
    """Export the six event sets of every conversation of DATASET as JSON."""
    from floorkit.core.sections import to_json
    from floorkit_turnbench.gold import official_form

    known = _load(dataset, revision, durations)
    text = to_json({"gold": {name: official_form(one) for name, one in known.golds.items()}})
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8", newline="\n")
        click.echo(f"gold of {len(known.golds)} conversations written to {output}")


@gold.command()
@click.argument("dataset")
@REVISION
@DURATIONS
def stats(dataset: str, revision: str, durations: Path | None) -> None:
    """Count gold events of DATASET, and the labels that were dropped."""
    from collections import Counter

    from floorkit_turnbench.gold import OFFICIAL_SETS

    known = _load(dataset, revision, durations)
    hours = sum(known.durations.values()) / 3600.0
    click.echo(f"{len(known.golds)} conversations, {hours:.2f} h")
    for name, task, part in OFFICIAL_SETS:
        counts = [len(getattr(one.task(task), part)) for one in known.golds.values()]
        empty = sum(count == 0 for count in counts)
        click.echo(f"  {name:<20} {sum(counts):>7}  (none in {empty} conversations)")
    dropped: Counter[str] = Counter()
    for conversation in known:
        dropped.update(conversation.dropped_labels)
    for label, count in sorted(dropped.items()):
        click.echo(f"  dropped: label {label!r}, {count} events (not a label of this protocol)")
