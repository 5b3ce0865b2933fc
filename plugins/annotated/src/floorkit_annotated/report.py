"""Sections of annotated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from floorkit.core.sections import ColumnSpec, PlotSection, Section, TableSection
from floorkit.core.values import Result
from floorkit.formats.dense import horizon_seconds
from floorkit.formats.recall_curves import recall_curves
from floorkit.formats.reviews import FAMILIES
from floorkit.formats.reviews_examples import View, example_sections
from floorkit.formats.reviews_line import POSITIVE_LABELS
from floorkit.formats.reviews_measure import coordinates
from floorkit.formats.reviews_report import (
    Opportunity,
    counts_table,
    empty_sessions,
    metrics_table,
    opportunities,
    series,
    summary,
)
from floorkit.formats.reviews_tables import STATUSES
from floorkit.numerics import recall_name
from floorkit_annotated.measure import HEADLINE_HORIZON, scope
from floorkit_annotated.params import AnnotatedParams

METRICS = (
    *("run", "family", "horizon_s", "requested_recall", "threshold", "positive", "hard_negative", "invalid"),
    *("ap", "recall", "trigger_count", "trigger_rate", "precision"),
)
EVENTS = (
    ColumnSpec("run"),
    ColumnSpec("event_id"),
    ColumnSpec("session"),
    ColumnSpec("label"),
    ColumnSpec("family"),
    ColumnSpec("horizon_s", kind="float"),
    ColumnSpec("rows"),
    ColumnSpec("status"),
    ColumnSpec("label_value", kind="integer"),
    ColumnSpec("score", kind="float"),
)
NOTE = (
    "A positive is one row, a hard negative the maximum over its region. No committed actions and no "
    "latency: horizons are nominal forecast bins."
)


def sections(result: Result) -> list[Section]:
    """Figures, plots over the horizons, examples, files."""
    params: AnnotatedParams = result.context.params
    what = scope(params)
    return [
        *empty_sessions(result),
        *_by_horizon(result, params),
        counts_table(result, what),
        *recall_curves(result, HEADLINE_HORIZON, f"at {horizon_seconds(HEADLINE_HORIZON)} s"),
        *_plots(result, params),
        *example_sections(result, _view(params)),
        metrics_table(result, what, METRICS),
        TableSection(
            "Opportunities", EVENTS, lambda: _events(result), file="summary_events.csv", shown=False
        ),
        summary(result, what, {"note": NOTE}),
    ]


def _curves(params: AnnotatedParams) -> list[tuple[str, str, float | None]]:
    """Name, heading and recall of the figures that are shown over the horizons."""
    recall = params.headline_recall
    if recall is None:
        return [("ap", "AP", None)]
    at = f"at requested recall {recall_name(recall)}"
    return [
        ("ap", "AP", None),
        ("trigger_rate", f"hard-negative trigger rate {at}", recall),
        ("recall", f"achieved recall {at}", recall),
    ]


def _by_horizon(result: Result, params: AnnotatedParams) -> list[Section]:
    """One table for each curve and family: a row for each horizon, a column for each run."""
    horizons = range(1, params.horizons + 1)
    runs = result.runs.values()
    return [
        TableSection(
            f"{heading} by horizon, {family}",
            [
                ColumnSpec("horizon_s", "horizon (s)", "float"),
                *(ColumnSpec(run.name, kind="float") for run in runs),
            ],
            [
                [
                    horizon_seconds(k),
                    *(run.figure(name, **coordinates(family, k, recall)).value for run in runs),
                ]
                for k in horizons
            ],
            note=NOTE if name == "ap" else "",
        )
        for family in FAMILIES
        for name, heading, recall in _curves(params)
    ]


def _plots(result: Result, params: AnnotatedParams) -> list[Section]:
    horizons = range(1, params.horizons + 1)
    sections: list[Section] = []
    for family in FAMILIES:
        for name, heading, recall in _curves(params):
            points = [(horizon_seconds(k), coordinates(family, k, recall)) for k in horizons]
            title = f"{heading} by horizon, {family}"
            sections.append(PlotSection(title, "horizon (s)", heading, series(result, name, points)))
    return sections


def _events(result: Result) -> Iterator[Sequence[Any]]:
    for run in result.user_runs:
        for one in opportunities(run):
            rows = " ".join(map(str, range(int(one.value("first_row")), int(one.value("last_row")) + 1)))
            statuses, scores = one.value("status").tolist(), one.value("score").tolist()
            label_value = int(one.label in POSITIVE_LABELS)
            common = (run.name, one.event_id, one.unit.name, one.label, one.family)
            for k, (status, score) in enumerate(zip(statuses, scores, strict=True), start=1):
                value = None if np.isnan(score) else score
                yield (*common, horizon_seconds(k), rows, STATUSES[status], label_value, value)


def _view(params: AnnotatedParams) -> View:
    names = tuple(f"{horizon_seconds(k)} s" for k in range(1, params.horizons + 1))

    def lines(one: Opportunity) -> list[str]:
        statuses = one.value("status").tolist()
        by_status: dict[str, list[str]] = {}
        for name, status in zip(names, statuses, strict=True):
            by_status.setdefault(STATUSES[status], []).append(name)
        return ["status: " + "; ".join(f"{status} at {', '.join(at)}" for status, at in by_status.items())]

    def facts(one: Opportunity) -> dict[str, Any]:
        scores = one.value("score").tolist()
        return {
            f"score at {name}": None if np.isnan(score) else score
            for name, score in zip(names, scores, strict=True)
        }

    return View(cells=(), scores=names, lines=lines, facts=facts, timeline_horizon=HEADLINE_HORIZON)
