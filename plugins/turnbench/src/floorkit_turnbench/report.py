"""From a result to sections: the summary, the tables and files of the spec, plots, and events to audit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from floorkit.core.values import (
    ColumnSpec,
    FileSection,
    PlotSection,
    Result,
    RunResult,
    Section,
    Series,
    SummarySection,
    TableSection,
)
from floorkit.numerics import percentiles, rate
from floorkit_turnbench.conversation import TASKS, Spans, Task
from floorkit_turnbench.events import event_rows, outcomes
from floorkit_turnbench.gold import set_form
from floorkit_turnbench.leaderboard import Entry, rank
from floorkit_turnbench.measure import is_swept, pooled_sweep
from floorkit_turnbench.tables import SET_NAMES
from floorkit_turnbench.thresholds import LATENCY_PERCENTS, Sweep
from floorkit_turnbench.timeline import timeline

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from floorkit.core.pool import Pool

COUNTS = ("tp", "fn", "fp", "tn")
LATENCIES = tuple(f"latency_p{percent}_ms" for percent in LATENCY_PERCENTS)
FIELDS = (*COUNTS, "recall", "fp_rate", *LATENCIES)
TASK_NAMES: dict[Task, str] = {"eot": "end of turn", "int": "interruption"}
LATENCY_BINS_MS = tuple(range(-250, 3001, 125))


def sections(result: Result) -> list[Section]:
    """All sections of a result."""
    by_type = _by_type(result)
    made: list[Section] = [
        SummarySection({"runs": {name: _summary(run) for name, run in result.runs.items()}}),
        _metrics(result),
        _ranking(result),
        *_operating_points(result),
        _types_shown(by_type),
        by_type,
        _conversations(result),
        _events(result),
    ]
    sweeps = {
        (name, task): pooled_sweep(_chosen_on(run), task)
        for name, run in result.runs.items()
        for task in TASKS
        if is_swept(run.pool, task)
    }
    if sweeps:
        made.append(_sweep_table(sweeps))
        made += [_sweep_plot(result, sweeps, task) for task in TASKS if any(of == task for _, of in sweeps)]
    made.append(_histogram_table(result))
    made += [_histogram_plot(result, task) for task in TASKS]
    made.append(_gold_file(result))
    made.append(timeline(result))
    return made


def _chosen_on(run: RunResult) -> Pool:
    """The tables on which the run's thresholds were chosen."""
    return run.pool if run.calibration is None else run.calibration


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


def _count_columns() -> list[ColumnSpec]:
    return [ColumnSpec(name, name.upper(), "integer") for name in COUNTS]


def _rate_columns() -> list[ColumnSpec]:
    return [
        ColumnSpec("recall", "recall", "rate"),
        ColumnSpec("fp_rate", "FP rate", "rate"),
        *(
            ColumnSpec(name, f"latency p{percent} (ms)", "float")
            for name, percent in zip(LATENCIES, LATENCY_PERCENTS, strict=True)
        ),
    ]


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
            *_count_columns(),
            *_rate_columns(),
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


def _operating_points(result: Result) -> list[TableSection]:
    rows: list[list[Any]] = []
    for name, run in result.runs.items():
        for point in run.points:
            task = point.at["task"]
            chosen = point.details["chosen_on"] or {}
            rows.append(
                [
                    name,
                    task,
                    point.threshold,
                    chosen.get("recall"),
                    run.figure("recall", task=task).value,
                    chosen.get("fp_rate"),
                    run.figure("fp_rate", task=task).value,
                    point.in_sample,
                ]
            )
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
                ColumnSpec("chosen_recall", "recall chosen", "rate"),
                ColumnSpec("recall", "recall", "rate"),
                ColumnSpec("chosen_fp_rate", "FP chosen", "rate"),
                ColumnSpec("fp_rate", "FP rate", "rate"),
                ColumnSpec("in_sample", "in sample", "flag"),
            ],
            rows,
            file="operating_points.csv",
            note=f"The threshold with the highest recall among those with an FP rate of at most {budget:g} "
            "on the conversations it was chosen on, the lowest on ties; then frozen for the scored ones.",
        )
    ]


def _ranking(result: Result) -> TableSection:
    ceiling = result.context.params.fp_ceiling
    rows: list[list[Any]] = []
    for task in TASKS:
        entries = [
            Entry(
                name,
                run.figure("recall", task=task).value,
                run.figure("fp_rate", task=task).value,
                run.figure("latency_p50_ms", task=task).value,
            )
            for name, run in result.runs.items()
            if not run.control
        ]
        rows += [
            [task, one.rank, one.entry.name, one.entry.recall, one.entry.fp_rate, one.qualifies]
            for one in rank(entries, ceiling)
        ]
    return TableSection(
        "Ranking",
        [
            ColumnSpec("task"),
            ColumnSpec("rank", kind="integer"),
            ColumnSpec("run"),
            ColumnSpec("recall", "recall", "rate"),
            ColumnSpec("fp_rate", "FP rate", "rate"),
            ColumnSpec("qualifies", f"FP rate at most {ceiling:g}", "flag"),
        ],
        rows,
        file="summary_ranking.csv",
        note="Qualifying runs by recall, then the others by recall; ties by lower p50 latency, then name.",
    )


# --- per conversation and type --------------------------------------------------------------------


def _grouped(
    run: RunResult, groups: Sequence[str], of_unit: NDArray[np.intp]
) -> Iterator[tuple[Task, str, list[Any]]]:
    """(task, group, counts and figures) of one run; ``of_unit`` gives each unit's group."""
    for task in TASKS:
        found, _ = outcomes(run.pool, run.points, task)
        if found is None:
            continue
        for number, group in enumerate(groups):
            inside = of_unit[found.unit] == number
            tp, fn, fp, tn = (
                int(np.count_nonzero(inside & (found.positive == positive) & (found.fired == fired)))
                for positive, fired in ((True, True), (True, False), (False, True), (False, False))
            )
            latency = found.latency_ms[inside & found.positive & found.fired]
            yield (
                task,
                group,
                [
                    tp,
                    fn,
                    fp,
                    tn,
                    rate(tp, tp + fn),
                    rate(fp, fp + tn),
                    *percentiles(latency, LATENCY_PERCENTS),
                ],
            )


def _conversation_type(info: Any) -> str | None:
    value = info.get("conversation_type")
    return None if value is None else str(value)


def _conversations(result: Result) -> TableSection:
    rows: list[list[Any]] = []
    for name, run in result.runs.items():
        units = run.pool.units
        kinds = {unit.name: _conversation_type(unit.info) for unit in units}
        everyone = np.arange(len(units))
        for task, conversation, figures in _grouped(run, [unit.name for unit in units], everyone):
            rows.append([name, conversation, kinds[conversation], task, *figures])
    return TableSection(
        "Conversations",
        [
            ColumnSpec("run"),
            ColumnSpec("conversation_id"),
            ColumnSpec("conversation_type"),
            ColumnSpec("task"),
            *_count_columns(),
            *_rate_columns(),
        ],
        rows,
        file="summary_conversations.csv",
        shown=False,
    )


def _by_type(result: Result) -> TableSection:
    rows: list[list[Any]] = []
    for name, run in result.runs.items():
        kinds = [_conversation_type(unit.info) or "unspecified" for unit in run.pool.units]
        groups = sorted(set(kinds))
        of_unit = np.array([groups.index(kind) for kind in kinds], np.intp)
        for task, group, figures in _grouped(run, groups, of_unit):
            rows.append([name, group, kinds.count(group), task, *figures])
    return TableSection(
        "By conversation type",
        [
            ColumnSpec("run"),
            ColumnSpec("conversation_type", "type"),
            ColumnSpec("conversations", kind="integer"),
            ColumnSpec("task"),
            *_count_columns(),
            *_rate_columns(),
        ],
        rows,
        file="summary_types.csv",
        shown=False,
    )


def _types_shown(by_type: TableSection) -> TableSection:
    """The table by type without counts and outer percentiles, which do not fit a terminal."""
    wanted = ("run", "conversation_type", "task", "recall", "fp_rate", "latency_p50_ms")
    names = [column.name for column in by_type.columns]
    places = [names.index(name) for name in wanted]
    return TableSection(
        by_type.title,
        [by_type.columns[place] for place in places],
        [[row[place] for place in places] for row in by_type.iterate()],
    )


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


# --- sweeps and latencies -------------------------------------------------------------------------


def _sweep_table(sweeps: dict[tuple[str, Task], Sweep]) -> TableSection:
    def rows() -> Iterator[list[Any]]:
        for (name, task), sweep in sweeps.items():
            for row in sweep.rows():
                yield [name, task, *row.values()]

    return TableSection(
        "Sweep",
        [
            ColumnSpec("run"),
            ColumnSpec("task"),
            ColumnSpec("theta", "threshold", "float"),
            *_count_columns(),
            ColumnSpec("recall", kind="rate"),
            ColumnSpec("fp_rate", kind="rate"),
            ColumnSpec("false_int_rate", kind="rate"),
            *(ColumnSpec(name, kind="float") for name in LATENCIES),
        ],
        rows,
        file="sweep.csv",
        shown=False,
        note="On the conversations that thresholds were chosen on.",
    )


def _sweep_plot(result: Result, sweeps: dict[tuple[str, Task], Sweep], task: Task) -> PlotSection:
    series = []
    for (name, of), sweep in sweeps.items():
        if of != task:
            continue
        rows = sweep.rows()
        theta = _theta(result.runs[name], task)
        series.append(
            Series(
                name,
                [row["fp_rate"] for row in rows],
                [row["recall"] for row in rows],
                texts=[f"threshold {row['theta']:.4g}" for row in rows],
                marked=[index for index, row in enumerate(rows) if row["theta"] == theta],
            )
        )
    return PlotSection(
        f"Recall against FP rate over thresholds, {TASK_NAMES[task]}",
        "FP rate",
        "recall",
        series,
        note="On the conversations that thresholds were chosen on; the chosen threshold is marked.",
    )


def _latencies(run: RunResult, task: Task) -> NDArray[np.float64]:
    found, _ = outcomes(run.pool, run.points, task)
    return np.zeros(0) if found is None else found.latency_ms[found.positive & found.fired]


def _histogram(run: RunResult, task: Task) -> list[int]:
    counts, _ = np.histogram(_latencies(run, task), LATENCY_BINS_MS)
    return [int(count) for count in counts]


def _histogram_table(result: Result) -> TableSection:
    rows = [
        [name, task, low, high, count]
        for name, run in result.runs.items()
        for task in TASKS
        for (low, high), count in zip(pairwise(LATENCY_BINS_MS), _histogram(run, task), strict=True)
    ]
    return TableSection(
        "Latencies",
        [
            ColumnSpec("run"),
            ColumnSpec("task"),
            ColumnSpec("from_ms", kind="float"),
            ColumnSpec("to_ms", kind="float"),
            ColumnSpec("true_positives", kind="integer"),
        ],
        rows,
        file="latency_histogram.csv",
        shown=False,
        note="A bin includes its lower edge; the last one also its upper edge.",
    )


def _histogram_plot(result: Result, task: Task) -> PlotSection:
    middles = [(low + high) / 2 for low, high in pairwise(LATENCY_BINS_MS)]
    return PlotSection(
        f"Latency of true positives, {TASK_NAMES[task]}",
        "latency (ms)",
        "true positives",
        [
            Series(name, middles, [float(count) for count in _histogram(run, task)], control=run.control)
            for name, run in result.runs.items()
        ],
        kind="histogram",
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
