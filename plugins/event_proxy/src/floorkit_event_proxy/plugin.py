"""Activity-derived event proxy for reviewed opportunities.

The hooks only call the rooms beside this module (protocols/event_proxy.spec.md).
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
from floorkit_event_proxy.params import EventProxyParams

if TYPE_CHECKING:
    from floorkit.core.guess import Guess, Listing
    from floorkit.core.pool import Pool

FLOORKIT_API = (1, 0)


@hookimpl
def floorkit_protocols() -> list[Protocol]:
    return [
        Protocol(
            id="event_proxy",
            title="Activity-derived event proxy for reviewed opportunities",
            params=EventProxyParams,
            measures="How well the wearer's forecast trajectory ranks reviewed entries and yields above hard "
            "negatives, from the rows right before each: an activity-derived event proxy.",
            caveats=(
                "The score is an activity-derived event proxy: voice activity of the wearer, no semantic "
                "detector of floor events.",
                "A boundary-centred diagnostic: it judges reviewed opportunities alone, not all alarms that "
                "a running system gives.",
                "A lower trigger rate with a lower achieved recall is no improvement.",
            ),
            upstream=(
                Upstream(
                    repository="EasyCom floor-event evaluation",
                    path="evaluate_egospeak_event_proxy.py",
                    note="rules taken from its runbook; no official file was at hand to hash",
                ),
            ),
            marks=("exploratory", "provisional"),
            matched_recall=MatchedRecall(table="opportunities", group="family"),
            clusters=("recording",),
            unit_noun="session",
        )
    ]


@hookimpl
def floorkit_dataset(context: Context, table: Mapping[str, Any]) -> Dataset:
    from floorkit_event_proxy import data

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
    from floorkit_event_proxy import kernel

    return kernel.score(gold, prediction, context.params, context.seed)


@hookimpl
def floorkit_measure(
    context: Context, pool: Pool, points: Sequence[OperatingPoint], only: Collection[str] | None
) -> list[Figure]:
    from floorkit_event_proxy.measure import measure

    return measure(context.params, pool, points, only)


@hookimpl
def floorkit_report(result: Result) -> list[Section]:
    from floorkit_event_proxy.report import sections

    return sections(result)


@hookimpl
def floorkit_guess(listing: Listing) -> list[Guess]:
    from floorkit.formats.dense_guess import guess_dense

    return guess_dense(listing, "event_proxy", reviews=True)
