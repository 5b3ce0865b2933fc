"""seld_metrics: the DCASE2026 Task 3 acoustic-map metrics of four official revisions.

The hooks only call the rooms beside this module (protocols/seld_metrics.spec.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from floorkit.core.hooks import hookimpl
from floorkit.core.sections import Section
from floorkit.core.values import Context, Dataset, Figure, Protocol, Result, Run, Table, Unit, Upstream
from floorkit_seld_metrics.params import SeldMetricsParams
from floorkit_seld_metrics.taxonomy import REPOSITORY, REVISIONS

if TYPE_CHECKING:
    import click

    from floorkit.core.guess import Guess, Listing
    from floorkit.core.pool import Pool

FLOORKIT_API = (1, 0)


@hookimpl
def floorkit_protocols() -> list[Protocol]:
    return [
        Protocol(
            id="seld_metrics",
            title="DCASE2026 Task 3 acoustic-map metrics",
            params=SeldMetricsParams,
            measures="How well predicted maps of acoustic energy overlap the annotated ones, as average "
            "precision under the official revision named, and how well they correlate where they do.",
            caveats=(
                "The revisions are different metrics under one name: never compare figures of two revisions.",
                "Pearson r is a mean over matched, overlapping pairs: misses and pairs without overlap cost "
                "nothing, so that a model that finds one frame well has a high r.",
                "Macro Class-F1 counts spatially matched pairs only; unmatched sources do not enter it.",
                "The official code leaves the order of tied scores undefined; here ties follow recording, "
                "frame, class and file order, and tie_low and tie_high bound what other orders give.",
            ),
            upstream=tuple(
                Upstream(REPOSITORY, commit, "evaluate.py", note=f"revision {revision}")
                for revision, commit in REVISIONS.items()
            ),
            unit_noun="recording",
        )
    ]


@hookimpl
def floorkit_dataset(context: Context, table: Mapping[str, Any]) -> Dataset | None:
    from floorkit_seld_metrics import data

    return data.dataset(context, table)


@hookimpl
def floorkit_predictions(context: Context, dataset: Dataset, run: str, table: Mapping[str, Any]) -> Run:
    from floorkit_seld_metrics import data

    return data.predictions(context, dataset, run, table)


@hookimpl
def floorkit_controls(dataset: Dataset) -> Sequence[Run]:
    from floorkit_seld_metrics import data

    return data.controls(dataset)


@hookimpl
def floorkit_score(context: Context, unit: Unit, gold: Any, prediction: Any) -> dict[str, Table]:
    from floorkit_seld_metrics import kernel

    return kernel.score(gold, prediction, context.params, unit.name, context.seed)


@hookimpl
def floorkit_measure(context: Context, pool: Pool, only: Collection[str] | None) -> list[Figure]:
    from floorkit_seld_metrics.measure import measure

    return measure(context.params, pool, only)


@hookimpl
def floorkit_report(result: Result) -> list[Section]:
    from floorkit_seld_metrics.report import sections

    return sections(result)


@hookimpl
def floorkit_commands() -> list[click.Command]:
    from floorkit_seld_metrics.commands import seld_metrics

    return [seld_metrics]


@hookimpl
def floorkit_guess(listing: Listing) -> list[Guess]:
    from floorkit_seld_metrics.guess import guess

    return guess(listing)
