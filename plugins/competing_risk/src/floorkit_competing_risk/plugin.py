"""Competing-risk floor events: false wearer entries and false wearer stops at boundaries of the others.

The hooks only call the rooms beside this module (protocols/competing_risk.spec.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from floorkit.core.hooks import hookimpl
from floorkit.core.sections import Section
from floorkit.core.values import (
    Context,
    Dataset,
    Figure,
    MatchedRecall,
    OperatingPoint,
    Protocol,
    Result,
    Run,
    Table,
    Tables,
    Upstream,
)
from floorkit_competing_risk.params import CompetingRiskParams

if TYPE_CHECKING:
    import click

    from floorkit.core.guess import Guess, Listing
    from floorkit.core.pool import Pool

FLOORKIT_API = (1, 0)


@hookimpl
def floorkit_protocols() -> list[Protocol]:
    return [
        Protocol(
            id="competing_risk",
            title="Floor events with competing boundaries",
            params=CompetingRiskParams,
            measures="How often a model fires a wearer entry or a wearer stop at a boundary of the others' "
            "activity where none follows before the competing boundary, at a recall set on calibration data.",
            caveats=(
                "Events are derived from activity timing: no semantic ends of turn, addressees or single "
                "speakers; the class others is the aggregate of everybody but the wearer.",
                "Scores are maxima over the window and rank events; they are no event probabilities. "
                "Positives and negatives have windows of different lengths: read every figure beside its "
                "controls.",
                "Alarms a minute count boundary candidates only, not all alarms that a running system gives.",
                "A lower error rate with a lower achieved recall is no improvement.",
            ),
            upstream=(
                Upstream(
                    repository="EasyCom floor-event evaluation",
                    path="evaluate_floor_state_changes.py",
                    note="rules taken from its runbook; no official file was at hand to hash",
                ),
            ),
            marks=("exploratory",),
            matched_recall=MatchedRecall(table="candidates", group="family", axis="horizon"),
            clusters=("recording",),
            unit_noun="session",
        )
    ]


@hookimpl
def floorkit_dataset(context: Context, table: Mapping[str, Any]) -> Dataset | None:
    from floorkit_competing_risk import data

    return data.dataset(context, table)


@hookimpl
def floorkit_predictions(context: Context, dataset: Dataset, run: str, table: Mapping[str, Any]) -> Run:
    from floorkit.formats.dense_dataset import build_run

    return build_run(context, dataset, run, table)


@hookimpl
def floorkit_controls(context: Context, dataset: Dataset) -> Sequence[Run]:
    from floorkit.formats.dense_controls import build_controls

    return build_controls(context, dataset)


@hookimpl
def floorkit_score(context: Context, gold: Any, prediction: Any) -> dict[str, Table]:
    from floorkit_competing_risk import kernel

    return kernel.score(gold, prediction, context.params)


@hookimpl
def floorkit_align(context: Context, tables: Mapping[str, Tables]) -> Mapping[str, Tables] | None:
    if not context.params.common_support:
        return None
    from floorkit_competing_risk.align import common_support

    return common_support(tables)


@hookimpl
def floorkit_measure(
    context: Context, pool: Pool, points: Sequence[OperatingPoint], only: Collection[str] | None
) -> list[Figure]:
    from floorkit_competing_risk.measure import measure

    return measure(context.params, pool, points, only)


@hookimpl
def floorkit_report(result: Result) -> list[Section]:
    from floorkit_competing_risk.report import sections

    return sections(result)


@hookimpl
def floorkit_commands() -> list[click.Command]:
    from floorkit_competing_risk.commands import competing_risk

    return [competing_risk]


@hookimpl
def floorkit_guess(listing: Listing) -> list[Guess]:
    from floorkit.formats.dense_guess import guess_dense

    return guess_dense(listing, "competing_risk", strata=True)
