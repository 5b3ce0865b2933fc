"""Human-annotated fixed-horizon floor events.

The hooks only call the rooms beside this module (protocols/annotated.spec.md).
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
    Tables,
    Upstream,
)
from floorkit_annotated.params import AnnotatedParams

if TYPE_CHECKING:
    from floorkit.core.guess import Guess, Listing
    from floorkit.core.pool import Pool

FLOORKIT_API = (1, 0)


@hookimpl
def floorkit_protocols() -> list[Protocol]:
    return [
        Protocol(
            id="annotated",
            title="Human-annotated fixed-horizon floor events",
            params=AnnotatedParams,
            measures="How well the forecast at each horizon tells human-confirmed wearer entries and yields "
            "from hard negatives, at a recall set on calibration data.",
            caveats=(
                "This protocol gives no committed actions and no detection latency: those need an online "
                "controller with threshold, persistence, refractory period and matching rules of its own.",
                "Horizons are nominal forecast bins of 0.2 s, not exact lead times: the boundary can lie "
                "anywhere inside its row.",
                "A hard negative is a maximum over its region and a positive is one row: read every figure "
                "beside its controls.",
                "A lower trigger rate with a lower achieved recall is no improvement.",
            ),
            upstream=(
                Upstream(
                    repository="EasyCom floor-event evaluation",
                    path="evaluate_annotated_floor_events.py",
                    note="rules taken from its runbook; no official file was at hand to hash",
                ),
            ),
            marks=("exploratory",),
            matched_recall=MatchedRecall(table="opportunities", group="family", axis="horizon"),
            clusters=("recording",),
            unit_noun="session",
        )
    ]


@hookimpl
def floorkit_dataset(context: Context, table: Mapping[str, Any]) -> Dataset:
    from floorkit_annotated import data

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
def floorkit_score(context: Context, gold: Any, prediction: Any) -> Tables:
    from floorkit_annotated import kernel

    return kernel.score(gold, prediction, context.params, context.seed)


@hookimpl
def floorkit_measure(
    context: Context, pool: Pool, points: Sequence[OperatingPoint], only: Collection[str] | None
) -> list[Figure]:
    from floorkit_annotated.measure import measure

    return measure(context.params, pool, points, only)


@hookimpl
def floorkit_report(result: Result) -> list[Section]:
    from floorkit_annotated.report import sections

    return sections(result)


@hookimpl
def floorkit_guess(listing: Listing) -> list[Guess]:
    from floorkit.formats.dense_guess import guess_dense

    return guess_dense(listing, "annotated", reviews=True)
