"""Sweeps over thresholds, and latencies: tables, and plots of the same."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from floorkit.core.sections import ColumnSpec, PlotSection, Section, Series, TableSection
from floorkit.core.values import Result, RunResult
from floorkit_turnbench.columns import LATENCIES, count_columns
from floorkit_turnbench.conversation import TASKS, Task
from floorkit_turnbench.events import outcomes
from floorkit_turnbench.measure import is_swept, pooled_sweep
from floorkit_turnbench.thresholds import Sweep

if TYPE_CHECKING:
    from numpy.typing import NDArray

TASK_NAMES: dict[Task, str] = {"eot": "end of turn", "int": "interruption"}
LATENCY_BINS_MS = tuple(range(-250, 3001, 125))


def distributions(result: Result) -> list[Section]:
    """Sweep and latency sections of a result."""
    sweeps = {
        (name, task): pooled_sweep(run.pool if run.calibration is None else run.calibration, task)
        for name, run in result.runs.items()
        for task in TASKS
        if is_swept(run.pool, task)
    }
    made: list[Section] = []
    if sweeps:
        made.append(_sweep_table(sweeps))
        made += [_sweep_plot(result, sweeps, task) for task in TASKS if any(of == task for _, of in sweeps)]
    made.append(_histogram_table(result))
    made += [_histogram_plot(result, task) for task in TASKS]
    return made


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
            *count_columns(),
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
        theta = next((p.threshold for p in result.runs[name].points if p.at["task"] == task), None)
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
    """True positives of each bin. A prediction at a border of its window has, as a difference of floats, a
    latency a hair outside it (-250.00000000000003): it counts in the first or the last bin."""
    latencies = np.clip(_latencies(run, task), LATENCY_BINS_MS[0], LATENCY_BINS_MS[-1])
    counts, _ = np.histogram(latencies, LATENCY_BINS_MS)
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
