"""Recall against false-trigger rate over all thresholds, for protocols with matched-recall thresholds.

At each threshold the recall is the share of positives with score >= threshold, the false-trigger rate that of
negatives; tied scores are passed together. The ringed points are the thresholds that calibration chose,
so that a reader sees what another recall would have cost, and whether two runs' curves cross.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from floorkit.core.sections import PlotSection, Series
from floorkit.core.values import MatchedRecall, OperatingPoint, Result, RunResult

DRAWN_POINTS = 200
"""Points of a curve beside the chosen ones; longer ones are thinned, evenly along the curve."""

Float = NDArray[np.float64]


@frozen(eq=False)
class Curve:
    """Rates at G + 1 thresholds in descending order; at the first one, infinity, nothing fires.

    Parameters
    ----------
    threshold
        Infinity, then the distinct scores, shape [G + 1].
    false_rate, recall
        Shares of negatives and positives with a score at or above each threshold, shape [G + 1].
    """

    threshold: Float
    false_rate: Float
    recall: Float

    @classmethod
    def of(cls, scores: Float, positive: NDArray[np.bool_]) -> Curve | None:
        """The curve of N scored events; None without a positive or without a negative."""
        if not positive.any() or positive.all():
            return None
        values, group = np.unique(-scores, return_inverse=True)
        rates = []
        for chosen in (~positive, positive):
            reached = np.cumsum(np.bincount(group[chosen], minlength=len(values)))
            rates.append(np.concatenate([[0.0], reached / reached[-1]]))
        return cls(np.concatenate([[np.inf], -values]), *rates)

    def place(self, threshold: float) -> int:
        """Index of the point that a threshold gives, whether or not any event has just that score."""
        return int(np.searchsorted(-self.threshold, -threshold, side="right")) - 1

    def drawn(self, limit: int, chosen: Sequence[int]) -> list[int]:
        """Indices of at most ``limit`` points, evenly spread along the curve, and of the ``chosen`` ones."""
        if len(self.threshold) <= limit:
            return list(range(len(self.threshold)))
        length = self.false_rate + self.recall
        spread = np.searchsorted(length, np.linspace(0, length[-1], limit))
        return sorted({*spread.tolist(), *chosen})


def recall_curves(result: Result, position: int, at: str = "", note: str = "") -> list[PlotSection]:
    """One plot for each category of the protocol's matched-recall group, one curve for each run.

    Parameters
    ----------
    position
        Position 1 .. H on the second axis of scores and labels; 0 where they have none.
    at
        Where the curves are taken, for their titles (``"at 2.0 s"``).

    Returns
    -------
    Without a plot for a category in which no run has a positive and a negative.
    """
    where = result.protocol.matched_recall
    runs = [run for run in result.runs.values() if run.pool.units]
    if where is None or not runs:
        return []
    plots = []
    for code, category in enumerate(runs[0].pool.categories(where.table, where.group)):
        series = []
        for run in runs:
            curve = Curve.of(*_scored(run, where, code, position))
            if curve is not None:
                series.append(_series(run, curve, list(_chosen(run, where, category, position))))
        if series:
            title = " ".join(filter(None, ("Recall against false-trigger rate,", category, at)))
            told = "Each point is a threshold, on the evaluated units. "
            plots.append(
                PlotSection(title, "false-trigger rate", "recall", series, note=(told + note).strip())
            )
    return plots


def _scored(
    run: RunResult, where: MatchedRecall, code: int, position: int
) -> tuple[Float, NDArray[np.bool_]]:
    """Scores and labels of the events of one category that take part."""
    columns = (run.pool.column(where.table, name) for name in (where.score, where.label))
    scores, labels = (column[:, position - 1] if position else column for column in columns)
    taking_part = (run.pool.column(where.table, where.group) == code) & (labels >= 0)
    return scores[taking_part], labels[taking_part] == 1


def _chosen(run: RunResult, where: MatchedRecall, category: str, position: int) -> Iterator[OperatingPoint]:
    for point in run.points:
        here = point.at[where.group] == category and point.at.get(where.axis, 0) == position
        if here and point.threshold is not None:
            yield point


def _series(run: RunResult, curve: Curve, chosen: Sequence[OperatingPoint]) -> Series:
    texts = [f"threshold {threshold:.6g}" for threshold in curve.threshold.tolist()]
    texts[0] = "nothing fires"
    marked: dict[int, list[str]] = {}
    for point in chosen:
        if point.threshold is not None:
            words = f"threshold {point.threshold:.6g} for recall {point.at['recall']}"
            marked.setdefault(curve.place(point.threshold), []).append(words)
    texts = [", ".join(marked.get(index, [words])) for index, words in enumerate(texts)]
    drawn = curve.drawn(DRAWN_POINTS, list(marked))
    return Series(
        run.name,
        curve.false_rate[drawn].tolist(),
        curve.recall[drawn].tolist(),
        control=run.control,
        texts=[texts[index] for index in drawn],
        marked=[number for number, index in enumerate(drawn) if index in marked],
    )
