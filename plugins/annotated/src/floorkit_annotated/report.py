"""Sections of annotated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from floorkit.core.values import ColumnSpec, PlotSection, Result, Section, TableSection
from floorkit.formats.dense import horizon_seconds
from floorkit.formats.reviews import FAMILIES
from floorkit.formats.reviews_examples import View, example_sections
from floorkit.formats.reviews_measure import coordinates
from floorkit.formats.reviews_report import (
    Opportunity,
    empty_sessions,
    metrics_table,
    opportunities,
    series,
    summary,
)
from floorkit.formats.reviews_tables import STATUSES
from floorkit.numerics import recall_name
from floorkit_annotated.measure import scope
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
        metrics_table(result, what, METRICS, NOTE),
        *_plots(result, params),
        *example_sections(result, _view(params)),
        TableSection(
            "Opportunities", EVENTS, lambda: _events(result), file="summary_events.csv", shown=False
        ),
        summary(result, what, {"note": NOTE}),
    ]


def _plots(result: Result, params: AnnotatedParams) -> list[Section]:
    horizons = range(1, params.horizons + 1)
    recall = params.headline_recall
    plots: list[Section] = []
    for family in FAMILIES:
        figures: list[tuple[str, str, float | None]] = [("ap", "AP", None)]
        if recall is not None:
            at = f"at recall {recall_name(recall)}"
            figures += [
                ("trigger_rate", f"hard-negative trigger rate {at}", recall),
                ("recall", f"achieved recall {at}", recall),
            ]
        for name, heading, at_recall in figures:
            points = [(horizon_seconds(k), coordinates(family, k, at_recall)) for k in horizons]
            plots.append(
                PlotSection(
                    f"{heading} ({family}) by horizon", "horizon (s)", heading, series(result, name, points)
                )
            )
    return plots


def _events(result: Result) -> Iterator[Sequence[Any]]:
    for run in result.user_runs:
        for one in opportunities(run):
            rows = " ".join(map(str, range(int(one.value("first_row")), int(one.value("last_row")) + 1)))
            statuses, scores = one.value("status").tolist(), one.value("score").tolist()
            label_value = int(one.reviews.positive[one.index])
            common = (run.name, one.event_id, one.unit.name, one.label, one.family)
            for k, (status, score) in enumerate(zip(statuses, scores, strict=True), start=1):
                value = None if np.isnan(score) else score
                yield (*common, horizon_seconds(k), rows, STATUSES[status], label_value, value)


def _view(params: AnnotatedParams) -> View:
    names = tuple(f"{horizon_seconds(k)} s" for k in range(1, params.horizons + 1))

    def lines(one: Opportunity) -> list[str]:
        statuses, scores = one.value("status"), one.value("score")
        return [
            "by horizon: "
            + ", ".join(
                f"{name} {STATUSES[status]}" + ("" if np.isnan(score) else f" {score:.4f}")
                for name, status, score in zip(names, statuses, scores, strict=True)
            )
        ]

    def facts(one: Opportunity) -> dict[str, Any]:
        scores = one.value("score").tolist()
        return {
            f"score at {name}": None if np.isnan(score) else score
            for name, score in zip(names, scores, strict=True)
        }

    return View(cells=(), scores=names, lines=lines, facts=facts, timeline_horizon=1)
