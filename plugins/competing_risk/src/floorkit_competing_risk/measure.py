"""Tables and operating points to figures (protocols/competing_risk.spec.md, "Figures").

Figures are named like the columns of summary_events.csv and summary_framewise.csv; their coordinates are the
horizon, timing and window where these are not the default ones, and the stratum where it is not the whole.

False entries and false stops a minute count alarms at boundary candidates only, over all target rows in
which the wearer is inactive or active.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import attrs
import numpy as np

from floorkit.core.pool import Pool
from floorkit.core.values import Coordinate, Figure, OperatingPoint, figure_key
from floorkit.formats.dense import horizon_seconds
from floorkit.numerics import rate, recall_name
from floorkit_competing_risk import frames
from floorkit_competing_risk.counts import (
    TRIGGERS,
    WHOLE,
    Tally,
    average_precision,
    ranking_of,
    strata,
    tally,
)
from floorkit_competing_risk.kernel import FAMILIES, RESPONSE, STATUSES
from floorkit_competing_risk.params import CompetingRiskParams

At = Mapping[str, Coordinate]

COUNT_NAMES = ("candidates", *STATUSES)
COMPARED = tuple(name for name in STATUSES if name != "ineligible")

NO_THRESHOLD = "no_calibration_positives"
ZERO_DENOMINATOR = "zero_denominator"
NO_POSITIVES = "no_positives"
NO_ROWS = "no_rows"


@attrs.frozen
class FamilyNames:
    """What the figures of one family at a requested recall are called, before ``recall_R``."""

    threshold: str
    recall: str
    count: str
    rate: str
    per_minute: str
    short_count: str = ""
    short_rate: str = ""

    @property
    def in_order(self) -> tuple[str, ...]:
        """The names as the columns of summary_events.csv are ordered."""
        short = (self.short_count, self.short_rate) if self.short_rate else ()
        return (self.threshold, self.recall, self.count, self.rate, *short, self.per_minute)


NAMES = (
    FamilyNames(
        threshold="response_threshold_at_",
        recall="response_",
        count="no_response_trigger_count_at_",
        rate="no_response_trigger_rate_at_",
        short_count="short_resume_trigger_count_at_",
        short_rate="short_resume_trigger_rate_at_",
        per_minute="false_entries_per_minute_at_",
    ),
    FamilyNames(
        threshold="yield_threshold_at_",
        recall="yield_",
        count="continue_false_stop_count_at_",
        rate="continue_false_stop_rate_at_",
        per_minute="false_stops_per_minute_at_",
    ),
)
FRAMEWISE = (
    ("rows", "wearer_positive", "wearer_activity_ap"),
    ("entry_rows", "entry_positive", "entry_endpoint_ap"),
    ("exit_rows", "exit_positive", "exit_endpoint_ap"),
)
"""Rows, positives and AP of the framewise figures; the Brier score comes beside them."""
LABELS = {
    "response_": "response recall",
    "no_response_trigger_rate_at_": "false entry",
    "short_resume_trigger_rate_at_": "short resume",
    "yield_": "yield recall",
    "continue_false_stop_rate_at_": "false stop",
}


@attrs.frozen
class Place:
    """A horizon (0, 1, ...) and a stratum (its code, or ``WHOLE``), and how figures name them."""

    horizon: int
    stratum: int
    at: At
    headline: bool
    suffix: str = attrs.field(
        init=False, default=attrs.Factory(lambda self: figure_key("", self.at), takes_self=True)
    )
    """How the keys of its figures end."""

    @property
    def is_whole(self) -> bool:
        """Whether it is no single stratum."""
        return self.stratum == WHOLE


def places(strata: Sequence[str], params: CompetingRiskParams) -> list[Place]:
    """Every horizon, the whole first and then each of the strata (none where the manifest gives none)."""
    found = []
    for horizon in range(params.horizons):
        at: At = {"horizon_s": horizon_seconds(horizon + 1), **params.coordinates}
        found.append(Place(horizon, WHOLE, at, horizon + 1 == params.headline_horizon))
        found += [Place(horizon, code, {**at, "stratum": name}, False) for code, name in enumerate(strata)]
    return found


def measure(
    params: CompetingRiskParams,
    pool: Pool,
    points: Sequence[OperatingPoint],
    only: Collection[str] | None,
) -> list[Figure]:
    """The figures of one run; with ``only`` those of these keys alone.

    A figure that does not exist is None with a reason: ``no_calibration_positives`` (no threshold),
    ``zero_denominator``, ``no_positives`` (AP), ``no_rows`` (framewise).
    """
    if not pool.units:
        return []
    thresholds = {
        (point.at["family"], point.at["horizon"], point.at["recall"]): point.threshold for point in points
    }
    recalls = [recall_name(recall) for recall in params.matched_recalls]
    found: list[Figure] = []
    for place, names in _wanted(params, pool, only):
        chosen = [[thresholds.get((family, place.horizon + 1, r)) for r in recalls] for family in FAMILIES]
        found += event_figures(params, pool, place, chosen, names)
        if place.is_whole:
            found += framewise_figures(pool, place, names)
    return found


def _wanted(
    params: CompetingRiskParams, pool: Pool, only: Collection[str] | None
) -> list[tuple[Place, Collection[str] | None]]:
    """The places that have wanted figures, and the names of these; None for all."""
    everywhere = pool.cached("places", lambda: places(strata(pool), params))
    if only is None:
        return [(place, None) for place in everywhere]
    named = (
        (place, {key.removesuffix(place.suffix) for key in only if key.endswith(place.suffix)})
        for place in everywhere
    )
    return pool.cached(("wanted", tuple(only)), lambda: [(place, names) for place, names in named if names])


class Collected:
    """Figures of one place, made only where they are wanted."""

    def __init__(self, place: Place, names: Collection[str] | None) -> None:
        self.at = place.at
        self.names = names
        self.figures: list[Figure] = []

    def wants(self, name: str) -> bool:
        return self.names is None or name in self.names

    def count(self, name: str, count: int | None, reason: str = "") -> None:
        if self.wants(name):
            self.figures.append(Figure(name, count, "count", count=count, reason=reason, at=self.at))

    def value(self, name: str, value: float | None, unit: str, reason: str, **facts: Any) -> None:
        """A figure with a value; ``reason`` says why where there is none."""
        if self.wants(name):
            self.figures.append(
                Figure(name, value, unit, reason=reason if value is None else "", at=self.at, **facts)
            )

    def ratio(
        self, name: str, count: int | None, denominator: float, unit: str = "rate", **facts: Any
    ) -> None:
        """A count over its denominator; a count of None has no threshold."""
        reason = NO_THRESHOLD if count is None else ZERO_DENOMINATOR
        self.value(
            name, rate(count, denominator), unit, reason, count=count, denominator=denominator, **facts
        )


def event_figures(
    params: CompetingRiskParams,
    pool: Pool,
    place: Place,
    thresholds: Sequence[Sequence[float | None]],
    names: Collection[str] | None,
) -> list[Figure]:
    """Event figures at one place, in the order of the columns of summary_events.csv.

    Parameters
    ----------
    thresholds
        For each family the thresholds of the requested recalls.
    names
        Names of the wanted figures; None for all.
    """
    tallies = [tally(pool, f, place.horizon, place.stratum, thresholds[f]) for f in range(len(FAMILIES))]
    found = Collected(place, names)
    facts = {
        "headline": place.headline,
        "interval": place.is_whole,
        "support": _support(tallies) if place.headline else {},
    }
    for family, (family_name, one) in enumerate(zip(FAMILIES, tallies, strict=True)):
        for name in COUNT_NAMES:
            found.count(f"{family_name}_{name}", one.counts[name])
        if found.wants(f"{family_name}_ap"):
            found.value(
                f"{family_name}_ap",
                average_precision(pool, family, place.horizon, place.stratum),
                "AP",
                NO_POSITIVES,
                count=one.counts["positive"],
                denominator=one.counts["positive"] + one.counts["negative"],
                higher_is_better=True,
                label=f"{family_name} AP",
                rankings=(ranking_of(family, place.horizon, place.stratum),),
                **facts,
            )
    found.count("response_short_resume", tallies[RESPONSE].counts["short_resume"])
    for index, recall in enumerate(params.matched_recalls):
        for family, one in enumerate(tallies):
            headline = facts if recall == params.headline_recall else {}
            _at_recall(
                found, NAMES[family], recall_name(recall), one, index, thresholds[family][index], headline
            )
    return found.figures


def _at_recall(
    found: Collected,
    names: FamilyNames,
    recall: str,
    one: Tally,
    index: int,
    threshold: float | None,
    headline: Mapping[str, Any],
) -> None:
    """The figures of one family at one threshold; ``headline`` holds further facts of its error rates."""
    suffix = f"recall_{recall}"
    recalled, triggered, short = (
        one.triggers[index][name] if threshold is not None else None for name in TRIGGERS
    )
    reason = NO_THRESHOLD if threshold is None else ""

    def label(prefix: str) -> str:
        return f"{LABELS[prefix]} @ {recall}"

    error = {**headline, "higher_is_better": False, "read_with": figure_key(names.recall + suffix, found.at)}
    negatives = one.counts["negative"]
    found.value(names.threshold + suffix, threshold, "score", NO_THRESHOLD)
    found.ratio(
        names.recall + suffix,
        recalled,
        one.counts["positive"],
        higher_is_better=True,
        interval=headline.get("interval", False),
        label=label(names.recall),
    )
    found.count(names.count + suffix, triggered, reason)
    found.ratio(names.rate + suffix, triggered, negatives, label=label(names.rate), **error)
    if names.short_rate:
        found.count(names.short_count + suffix, short, reason)
        resumes = one.counts["short_resume"]
        found.ratio(names.short_rate + suffix, short, resumes, label=label(names.short_rate), **error)
    found.ratio(names.per_minute + suffix, triggered, one.minutes, "per minute", higher_is_better=False)


def _support(tallies: Sequence[Tally]) -> dict[str, int]:
    """Counts that comparable runs share (competing_risk.spec.md, "Comparison")."""
    shared = {
        f"{family}_{name}": one.counts[name]
        for family, one in zip(FAMILIES, tallies, strict=True)
        for name in COMPARED
    }
    return {**shared, "response_short_resume": tallies[RESPONSE].counts["short_resume"]}


def framewise_figures(pool: Pool, place: Place, names: Collection[str] | None) -> list[Figure]:
    """Framewise figures at one horizon, in the order of the columns of summary_framewise.csv."""
    found = Collected(place, names)
    if not any(map(found.wants, (*chain(*FRAMEWISE), "brier"))):
        return []
    column = frames.key_column(place.horizon + 1)
    keys = frames.join([pool.table(index, "frames")[column] for index in range(len(pool.units))])
    weights = pool.row_weights("frames")
    result = frames.framewise(keys if weights is None else np.repeat(keys, weights))
    for rows, positive, ap in FRAMEWISE:
        counts = {"count": getattr(result, positive), "denominator": getattr(result, rows)}
        found.count(rows, counts["denominator"])
        found.count(positive, counts["count"])
        found.value(ap, getattr(result, ap), "AP", NO_POSITIVES, higher_is_better=True, **counts)
    found.value(
        "brier", result.brier, "Brier score", NO_ROWS, denominator=result.rows, higher_is_better=False
    )
    return found.figures
