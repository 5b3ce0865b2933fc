"""From pooled tables to operating points and figures.

recall = TP / (TP + FN) over positives, fp_rate = FP / (FP + TN) over negative spans, latency percentiles over
true positives; counts and latencies are pooled over conversations (turnbench spec, "Scoring").
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from floorkit.core.values import Figure, OperatingPoint, figure_key
from floorkit.numerics import percentiles, rate
from floorkit_turnbench.conversation import TASKS, Task
from floorkit_turnbench.tables import set_code
from floorkit_turnbench.thresholds import LATENCY_PERCENTS, Sweep, latency_percentiles, operating_index

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from floorkit.core.pool import Pool

HEADLINES = ("recall", "fp_rate", "latency_p50_ms")
NO_THRESHOLD = "no_threshold_within_fp_budget"
NOT_PREDICTED = "not_predicted"


def is_swept(pool: Pool, task: Task) -> bool:
    """Whether the run gives probabilities, not committed events, for the task."""
    rows = pool.column("sweep", "task") == TASKS.index(task)
    return bool(np.isfinite(pool.column("sweep", "theta")[rows]).any())


def is_predicted(pool: Pool, task: Task) -> bool:
    """Whether the run says anything about the task."""
    return bool((pool.column("sweep", "task") == TASKS.index(task)).any())


def spans_of(pool: Pool, task: Task, part: str) -> NDArray[np.bool_]:
    """Rows of the gold table that belong to a task's positives or negatives."""
    return np.asarray(pool.column("gold", "set") == set_code(task, part))


def pooled_sweep(pool: Pool, task: Task) -> Sweep:
    """A probability run's counts at every candidate threshold, over all units of the pool (unweighted)."""
    rows = pool.column("sweep", "task") == TASKS.index(task)
    index = pool.column("sweep", "theta_index")[rows]
    count = int(index.max(initial=-1)) + 1
    theta = np.zeros(count)
    theta[index] = pool.column("sweep", "theta")[rows]

    def total(name: str) -> NDArray[np.int64]:
        return np.bincount(index, pool.column("sweep", name)[rows], count).astype(np.int64)

    tp, fp = total("tp"), total("fp")
    hits = (pool.column("fired", "task") == TASKS.index(task)) & pool.column("fired", "positive")
    return Sweep(
        task,
        theta,
        tp,
        np.count_nonzero(spans_of(pool, task, "positives")) - tp,
        fp,
        np.count_nonzero(spans_of(pool, task, "negatives")) - fp,
        total("false_int"),
        int(np.count_nonzero(spans_of(pool, "int", "negatives"))),
        latency_percentiles(
            pool.column("fired", "theta_index")[hits], pool.column("fired", "latency_ms")[hits], count
        ),
    )


def calibrate(pool: Pool, fp_budget: float, in_sample: bool) -> tuple[OperatingPoint, ...]:
    """One operating point for each task that a probability run predicts: the false-positive budget.

    ``details`` holds the index among the candidates and the chosen row on the calibration conversations.
    """
    points = []
    for task in TASKS:
        if not pool.units or not is_swept(pool, task):
            continue
        sweep = pooled_sweep(pool, task)
        negatives = int(sweep.fp[0] + sweep.tn[0])
        index = operating_index(sweep.tp, sweep.fp, negatives, fp_budget)
        points.append(
            OperatingPoint(
                {"task": task},
                None if index is None else float(sweep.theta[index]),
                positives=int(sweep.tp[0] + sweep.fn[0]),
                in_sample=in_sample,
                reason=NO_THRESHOLD if index is None else "",
                details={
                    "fp_budget": fp_budget,
                    "candidates": len(sweep.theta),
                    "theta_index": index,
                    "chosen_on": None if index is None else sweep.row(index),
                },
            )
        )
    return tuple(points)


@frozen(eq=False)
class Outcome:
    """What a run does on a task at its operating point, or why there is none.

    Parameters
    ----------
    reason
        Empty where there is an operating point.
    theta
        The threshold; None for committed events.
    rows
        Mask of the rows of table ``fired`` at the operating point.
    """

    reason: str
    theta: float | None
    rows: NDArray[np.bool_]


def outcome(pool: Pool, points: Sequence[OperatingPoint], task: Task) -> Outcome:
    """A run's outcome on one task; kept in the pool, since nothing in it depends on the weights."""
    point = next((point for point in points if point.at["task"] == task), None)
    index = 0 if point is None else point.details["theta_index"]

    def build() -> Outcome:
        if not is_predicted(pool, task):
            return Outcome(NOT_PREDICTED, None, np.zeros(0, np.bool_))
        if index is None:
            return Outcome(NO_THRESHOLD, None, np.zeros(0, np.bool_))
        rows = (pool.column("fired", "task") == TASKS.index(task)) & (
            pool.column("fired", "theta_index") == index
        )
        return Outcome("", None if point is None else point.threshold, rows)

    return pool.cached(("outcome", task, index), build)


def measure(pool: Pool, points: Sequence[OperatingPoint], only: Collection[str] | None) -> list[Figure]:
    """Figures of both tasks; with ``only`` those keys (and what comes with them)."""
    figures: list[Figure] = []
    for task in TASKS:
        if only is None or any(figure_key(name, {"task": task}) in only for name in HEADLINES):
            figures += _measure_task(pool, points, task)
    return figures


def _measure_task(pool: Pool, points: Sequence[OperatingPoint], task: Task) -> list[Figure]:
    at = {"task": task}
    found = outcome(pool, points, task)
    masks = pool.cached(
        ("spans", task), lambda: (spans_of(pool, task, "positives"), spans_of(pool, task, "negatives"))
    )
    positives, negatives = (pool.count("gold", mask) for mask in masks)
    recall_key, fp_key = figure_key("recall", at), figure_key("fp_rate", at)
    if found.reason:
        names = [
            *((name, "count") for name in ("tp", "fn", "fp", "tn")),
            ("recall", "rate"),
            ("fp_rate", "rate"),
        ]
        names += [(f"latency_p{percent}_ms", "ms") for percent in LATENCY_PERCENTS]
        return [
            Figure(name, None, unit, reason=found.reason, at=at, headline=name in HEADLINES)
            for name, unit in names
        ]
    hits, fires, latency = pool.cached(("fired", task, found.theta), lambda: _fired(pool, found))
    tp, fp = _weighted_count(pool, hits), _weighted_count(pool, fires)
    fn, tn = positives - tp, negatives - fp
    weights = pool.row_weights("fired")
    values = latency if weights is None else np.repeat(latency, weights[hits])
    figures = [
        Figure(name, value, "count", count=value, at=at)
        for name, value in (("tp", tp), ("fn", fn), ("fp", fp), ("tn", tn))
    ]
    figures += [
        Figure(
            "recall",
            rate(tp, positives),
            count=tp,
            denominator=positives,
            higher_is_better=True,
            reason="" if positives else "no_positives",
            at=at,
            headline=True,
            support={"positives": positives},
            read_with=fp_key,
        ),
        Figure(
            "fp_rate",
            rate(fp, negatives),
            count=fp,
            denominator=negatives,
            higher_is_better=False,
            reason="" if negatives else "no_negatives",
            at=at,
            headline=True,
            label="false-positive rate",
            support={"negatives": negatives},
            read_with=recall_key,
        ),
    ]
    for percent, value in zip(LATENCY_PERCENTS, percentiles(values, LATENCY_PERCENTS), strict=True):
        name = f"latency_p{percent}_ms"
        figures.append(
            Figure(
                name,
                value,
                "ms",
                denominator=tp,
                higher_is_better=False,
                reason="" if value is not None else "no_true_positives",
                at=at,
                headline=name in HEADLINES,
                label=f"latency p{percent}",
                support={"positives": positives},
                read_with=recall_key,
            )
        )
    return figures


def _fired(pool: Pool, found: Outcome) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """Row numbers of the true and the false positives, and the latencies of the former."""
    rows = np.flatnonzero(found.rows)
    positive = pool.column("fired", "positive")[rows]
    hits = rows[positive]
    return hits, rows[~positive], pool.column("fired", "latency_ms")[hits]


def _weighted_count(pool: Pool, rows: NDArray[Any]) -> int:
    weights = pool.row_weights("fired")
    return len(rows) if weights is None else int(weights[rows].sum())
