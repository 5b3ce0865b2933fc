"""Sweeps over thresholds, and latencies: tables, and plots of the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
        for task in TASKS:
            if any(of == task for _, of in sweeps):
                made += [_curve_plot(result, sweeps, task), _threshold_plot(result, sweeps, task)]
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


def _theta(run: RunResult, task: Task) -> float | None:
    """The chosen threshold; None where there is none."""
    return next((point.threshold for point in run.points if point.at["task"] == task), None)


def attainable(rows: Sequence[Mapping[str, Any]], theta: float | None) -> list[Mapping[str, Any]]:
    """The sweep rows with more recall than any row of a lower or equal FP rate, by FP rate, and ``theta``'s.

    Recall and FP rate do not rise together as the threshold falls (an event is a rising edge, and two seconds
    must pass after each), so the rows in order of threshold go back and forth. These are what a budget can
    buy. The chosen row (``theta``) has the highest recall within the budget, but of several such rows the
    lowest threshold, so that it may stand to the right of the first.
    """
    known = [row for row in rows if row["recall"] is not None and row["fp_rate"] is not None]
    kept: list[Mapping[str, Any]] = []
    for row in sorted(known, key=lambda row: (row["fp_rate"], -row["recall"], row["theta"])):
        if not kept or row["recall"] > kept[-1]["recall"] or row["theta"] == theta:
            kept.append(row)
    return kept


def _curve_plot(result: Result, sweeps: dict[tuple[str, Task], Sweep], task: Task) -> PlotSection:
    """Recall that each FP rate can buy, and where runs of committed events and controls stand."""
    series = []
    for name, run in result.runs.items():
        if (name, task) in sweeps:
            theta = _theta(run, task)
            rows = attainable(sweeps[name, task].rows(), theta)
            texts = [f"threshold {row['theta']:.4g}" for row in rows]
            marked = [index for index, row in enumerate(rows) if row["theta"] == theta]
            x, y = [row["fp_rate"] for row in rows], [row["recall"] for row in rows]
        else:
            x, y = [[run.figure(one, task=task).value] for one in ("fp_rate", "recall")]
            texts, marked = ["committed events, on the evaluated conversations"], []
            if x[0] is None or y[0] is None:
                continue
        series.append(Series(name, x, y, control=run.control, texts=texts, marked=marked))
    return PlotSection(
        f"Recall against FP rate over thresholds, {TASK_NAMES[task]}",
        "FP rate",
        "recall",
        series,
        kind="step",
        note="The highest recall at each FP rate, on the conversations that thresholds were chosen on; all "
        "thresholds stand in sweep.csv. Single points are runs of committed events, on the evaluated "
        "conversations.",
    )


def _threshold_plot(result: Result, sweeps: dict[tuple[str, Task], Sweep], task: Task) -> PlotSection:
    series = []
    for (name, of), sweep in sweeps.items():
        if of == task:
            rows, theta = sweep.rows(), _theta(result.runs[name], task)
            thetas = [row["theta"] for row in rows]
            marked = [index for index, one in enumerate(thetas) if one == theta]
            series += [
                Series(f"{name}, {words}", thetas, [row[figure] for row in rows], marked=marked)
                for figure, words in (("recall", "recall"), ("fp_rate", "FP rate"))
            ]
    return PlotSection(
        f"Recall and FP rate by threshold, {TASK_NAMES[task]}",
        "threshold",
        "rate",
        series,
        note="On the conversations that thresholds were chosen on; the FP rate may be at most "
        f"{result.context.params.fp_budget:g}.",
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
