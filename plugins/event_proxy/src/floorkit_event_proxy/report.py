"""Sections of event_proxy. Every one calls the score an activity-derived event proxy."""

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
from floorkit.formats.reviews_line import ORIGINS
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
from floorkit.numerics import ROW_SECONDS
from floorkit_event_proxy.measure import SCOPE
from floorkit_event_proxy.params import EventProxyParams

SCORE = "activity-derived event proxy"

METRICS = (
    *(
        "run",
        "family",
        "requested_recall",
        "threshold",
        "positive",
        "hard_negative",
        "short_region",
        "invalid",
    ),
    *("ap", "recall", "trigger_count", "trigger_rate", "precision", "f1", "provisional_count"),
)
_HEADINGS = {
    "ap": "AP",
    "recall": "recall",
    "trigger_rate": "trigger rate",
    "precision": "precision",
    "f1": "F1",
}
EVENTS = (
    ColumnSpec("run"),
    ColumnSpec("event_id"),
    ColumnSpec("session"),
    ColumnSpec("label"),
    ColumnSpec("family"),
    ColumnSpec("origin"),
    ColumnSpec("status"),
    ColumnSpec("source_rows"),
    ColumnSpec("row_scores"),
    ColumnSpec("winning_row", kind="integer"),
    ColumnSpec("trajectory"),
    ColumnSpec("score", kind="float"),
)


def sections(result: Result) -> list[Section]:
    """Figures, plots, examples, files."""
    params: EventProxyParams = result.context.params
    return [
        *empty_sessions(result),
        _shown(result, params),
        counts_table(result, SCOPE),
        *recall_curves(result, 0, note=f"The score is an {SCORE}."),
        *_plots(result, params),
        *example_sections(result, _view(params)),
        metrics_table(result, SCOPE, METRICS),
        TableSection(
            "Opportunities", EVENTS, lambda: _events(result), file="summary_events.csv", shown=False
        ),
        summary(result, SCOPE, {"score": SCORE}),
    ]


def _shown(result: Result, params: EventProxyParams) -> TableSection:
    """One row a run and family, with every figure at each requested recall; AP alone without recalls."""
    columns = [ColumnSpec("run"), ColumnSpec("family")]
    if params.matched_recalls:
        columns.append(ColumnSpec("requested_recall", "at", "float"))
    names = ("recall", "trigger_rate", "precision", "f1") if params.matched_recalls else ("ap",)
    for name in names:
        count = (f"{name}_count", f"{name}_of") if name in ("recall", "trigger_rate") else ("", "")
        columns.append(ColumnSpec(name, _HEADINGS[name], "rate" if any(count) else "float", *count))
        columns += [ColumnSpec(one, kind="integer") for one in count if one]
    rows = []
    for run in result.runs.values():
        for family in FAMILIES:
            for recall in params.matched_recalls or (None,):
                row: list[Any] = [run.name, family, *([] if recall is None else [recall])]
                for name in names:
                    figure = run.figure(name, **coordinates(family, 0, recall))
                    counts = [figure.count, figure.denominator] if name in ("recall", "trigger_rate") else []
                    row += [figure.value, *counts]
                rows.append(row)
    first, last = params.trajectory_seconds
    note = (
        f"The score is an {SCORE}: mean wearer forecast (INT: one minus it) over {first} to {last} s, "
        f"maximum over {params.window_rows} source rows."
    )
    if params.matched_recalls:
        note += " at: requested recall; recall: achieved."
    return TableSection(f"Figures of the {SCORE}", columns, rows, note=note)


def _plots(result: Result, params: EventProxyParams) -> list[Section]:
    """Trigger rate over the achieved and requested recalls; AP has no axis and stands in the tables."""
    recalls = params.matched_recalls
    if not recalls:
        return []
    return [
        PlotSection(
            f"{name} ({family}) by requested recall: {SCORE}",
            "requested recall",
            name,
            series(result, figure, [(recall, coordinates(family, 0, recall)) for recall in sorted(recalls)]),
            note="Thresholds come from calibration positives; read a rate beside the achieved recall.",
        )
        for family in FAMILIES
        for figure, name in (("trigger_rate", "hard-negative trigger rate"), ("recall", "achieved recall"))
    ]


def _events(result: Result) -> Iterator[Sequence[Any]]:
    for run in result.user_runs:
        for one in opportunities(run):
            first = int(one.value("first_row"))
            row_scores = one.value("row_scores")
            winner = int(one.value("winning_row"))
            score = float(one.value("score"))
            yield (
                run.name,
                one.event_id,
                one.unit.name,
                one.label,
                one.family,
                ORIGINS[int(one.reviews["origin"][one.index])],
                STATUSES[int(one.value("status"))],
                " ".join(map(str, range(first, first + len(row_scores)))) if first >= 0 else None,
                _numbers(row_scores),
                winner if winner >= 0 else None,
                _numbers(one.value("trajectory")),
                None if np.isnan(score) else score,
            )


def _numbers(values: Any) -> str | None:
    """Space-separated at full precision; None where there is none."""
    return None if np.isnan(values).any() else " ".join(map(repr, values.tolist()))


def _view(params: EventProxyParams) -> View:
    def lines(one: Opportunity) -> list[str]:
        status = STATUSES[int(one.value("status"))]
        if np.isnan(one.value("score")):
            return [f"status: {status}"]
        winner = int(one.value("winning_row"))
        return [
            f"status: {status}; {SCORE} {one.value('score'):.6f}, won by source row {winner} = "
            f"{winner * ROW_SECONDS:.1f} s",
            "winning trajectory: "
            + ", ".join(
                f"{horizon_seconds(j)} s {value:.4f}"
                for j, value in zip(params.trajectory, one.value("trajectory"), strict=True)
            ),
        ]

    def facts(one: Opportunity) -> dict[str, Any]:
        winner = int(one.value("winning_row"))
        return {"score is": SCORE, "winning_row": winner if winner >= 0 else None}

    return View(
        cells=tuple(f"{horizon_seconds(j)} s" for j in params.trajectory),
        scores=("score",),
        lines=lines,
        facts=facts,
    )
