"""From a result to sections: the summary, the tables and files of the spec, plots, and events to audit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from floorkit.core.sections import (
    ColumnSpec,
    FileSection,
    Section,
    SummarySection,
    TableSection,
    TextSection,
)
from floorkit.core.values import Result, RunResult
from floorkit_turnbench.breakdown import conversations_table, types_shown, types_table
from floorkit_turnbench.columns import COUNTS, LATENCIES, SHARES, count_columns, rate_columns, shares
from floorkit_turnbench.conversation import TASKS, Spans, Task
from floorkit_turnbench.distributions import distributions
from floorkit_turnbench.events import event_rows
from floorkit_turnbench.gold import set_form
from floorkit_turnbench.leaderboard import Entry, rank
from floorkit_turnbench.measure import is_swept
from floorkit_turnbench.tables import SET_NAMES
from floorkit_turnbench.timeline import timeline

FIELDS = (*COUNTS, "recall", "fp_rate", *LATENCIES)


def sections(result: Result) -> list[Section]:
    """All sections of a result."""
    by_type = types_table(result)
    return [
        SummarySection({"runs": {name: _summary(run) for name, run in result.runs.items()}}),
        _metrics(result),
        _ranking(result),
        *_operating_points(result),
        *_dropped_labels(result),
        types_shown(by_type),
        by_type,
        conversations_table(result),
        _events(result),
        *distributions(result),
        _gold_file(result),
        timeline(result),
    ]


def _figures(run: RunResult, task: Task) -> dict[str, float | None]:
    return {name: run.figure(name, task=task).value for name in FIELDS}


def _as_counts(figures: dict[str, float | None]) -> dict[str, Any]:
    return {
        name: int(value) if name in COUNTS and value is not None else value for name, value in figures.items()
    }


def _theta(run: RunResult, task: Task) -> float | None:
    return next((point.threshold for point in run.points if point.at["task"] == task), None)


def _summary(run: RunResult) -> dict[str, Any]:
    """runs.RUN of summary.json."""
    return {
        task: {
            **_as_counts(_figures(run, task)),
            **({"theta": _theta(run, task)} if is_swept(run.pool, task) else {}),
        }
        for task in TASKS
    }


def _metrics(result: Result) -> TableSection:
    rows = []
    for name, run in result.runs.items():
        for task in TASKS:
            figures = _as_counts(_figures(run, task))
            in_sample = any(point.in_sample for point in run.points if point.at["task"] == task)
            rows.append([name, task, *(figures[field] for field in FIELDS), _theta(run, task), in_sample])
    return TableSection(
        "Scores",
        [
            ColumnSpec("run"),
            ColumnSpec("task"),
            *count_columns(),
            *rate_columns(),
            ColumnSpec("theta", "threshold", "float"),
            ColumnSpec("exploratory", kind="flag"),
        ],
        rows,
        file="summary_metrics.csv",
        shown=False,
        note="Latencies over true positives. A threshold is chosen for the highest recall with an FP rate of "
        f"at most {result.context.params.fp_budget:g} on the calibration conversations; exploratory: on the "
        "evaluated ones.",
    )


def _scored_shares(run: RunResult, task: Task) -> list[Any]:
    figures = _as_counts(_figures(run, task))
    return shares(*(figures[name] for name in COUNTS))


def _operating_points(result: Result) -> list[TableSection]:
    rows: list[list[Any]] = []
    for name, run in result.runs.items():
        for task in TASKS:
            point = next((point for point in run.points if point.at["task"] == task), None)
            if point is None:
                continue
            chosen = point.details["chosen_on"] or {}
            theta = point.threshold
            on = "evaluated" if point.in_sample else "calibration"
            rows.append([name, task, theta, "chosen", on, *shares(*(chosen.get(one) for one in COUNTS))])
            rows.append([name, task, theta, "scored", "evaluated", *_scored_shares(run, task)])
    if not rows:
        return []
    budget = result.context.params.fp_budget
    return [
        TableSection(
            "Operating points",
            [
                ColumnSpec("run"),
                ColumnSpec("task"),
                ColumnSpec("theta", "threshold", "float"),
                ColumnSpec("step", ""),
                ColumnSpec("split", "on"),
                *SHARES,
            ],
            rows,
            file="operating_points.csv",
            note=f"The threshold with the highest recall among those with an FP rate of at most {budget:g}, "
            "the lowest on ties; then frozen for the scored conversations.",
        )
    ]


def _ranking(result: Result) -> TableSection:
    ceiling = result.context.params.fp_ceiling
    rows: list[list[Any]] = []
    for task in TASKS:
        entries = [
            Entry(
                run.name,
                run.figure("recall", task=task).value,
                run.figure("fp_rate", task=task).value,
                run.figure("latency_p50_ms", task=task).value,
            )
            for run in result.user_runs
        ]
        rows += [
            [
                task,
                one.rank,
                one.entry.name,
                *_scored_shares(result.runs[one.entry.name], task),
                one.entry.latency_p50_ms,
                one.qualifies,
            ]
            for one in rank(entries, ceiling)
        ]
    return TableSection(
        "Ranking",
        [
            ColumnSpec("task"),
            ColumnSpec("rank", kind="integer"),
            ColumnSpec("run"),
            *SHARES,
            ColumnSpec("latency_p50_ms", "p50 (ms)", "float"),
            ColumnSpec("qualifies", kind="flag"),
        ],
        rows,
        file="summary_ranking.csv",
        note=f"Runs with an FP rate of at most {ceiling:g} qualify and come first, by recall; then the "
        "others, by recall; ties by lower p50 latency, then name.",
    )


def _dropped_labels(result: Result) -> list[TextSection]:
    pool = next(iter(result.runs.values())).pool
    kept, dropped = (int(pool.column("annotations", name).sum()) for name in ("kept", "dropped"))
    if not dropped:
        return []
    return [
        TextSection(
            "Annotations left out",
            f"{dropped} of {kept + dropped} annotated events have a label that is not one of the protocol's "
            "and were dropped, as the official scorer does: `floorkit turnbench gold stats` names them.",
        )
    ]


def _events(result: Result) -> TableSection:
    def rows() -> Iterator[tuple[Any, ...]]:
        for name, run in result.runs.items():
            yield from event_rows(name, run.pool, run.points)

    return TableSection(
        "Events",
        [
            ColumnSpec("run"),
            ColumnSpec("conversation_id"),
            ColumnSpec("task"),
            ColumnSpec("speaker", kind="integer"),
            ColumnSpec("kind"),
            ColumnSpec("start_s", kind="float"),
            ColumnSpec("end_s", kind="float"),
            ColumnSpec("outcome"),
            ColumnSpec("matched_s", kind="float"),
            ColumnSpec("latency_ms", kind="float"),
        ],
        rows,
        file="summary_events.csv",
        shown=False,
    )


def _gold_file(result: Result) -> FileSection:
    pool = next(iter(result.runs.values())).pool
    conversations: dict[str, Any] = {}
    for index, unit in enumerate(pool.units):
        table = pool.table(index, "gold")
        everything = Spans(table["speaker"], table["start_s"], table["end_s"])
        conversations[unit.name] = {
            name: set_form(name, everything.at(table["set"] == code)) for code, name in enumerate(SET_NAMES)
        }
    return FileSection("gold.json", {"gold": conversations})
