"""The numeric definitions that every protocol shares (protocols/numerics.spec.md).

Conventions: scores are float64, higher triggers first; labels are 1 (positive) and 0; an event triggers
when score >= threshold; what does not exist is None, never 0 or NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

ROW_SECONDS = 0.2

Float = NDArray[np.float64]

_GROUPS_AT_ONCE = 512
"""Groups of tied scores that one block holds in memory for all weightings."""


class Ranking:
    """Scores with labels, sorted once, for average precision under many weightings.

    Parameters
    ----------
    scores
        Shape [N], finite.
    labels
        Shape [N], truthy for positives.
    """

    def __init__(self, scores: ArrayLike, labels: ArrayLike) -> None:
        values = np.asarray(scores, dtype=np.float64)
        self.order = np.argsort(-values, kind="stable")
        ordered = values[self.order]
        self.positive = np.asarray(labels, dtype=bool)[self.order]
        is_last = np.ones(len(ordered), dtype=bool)
        is_last[:-1] = ordered[1:] != ordered[:-1]
        self.group_ends = np.flatnonzero(is_last)
        positives = np.diff(np.cumsum(self.positive)[self.group_ends], prepend=0)
        self.scoring = np.flatnonzero(positives)

    def average_precision(self, weights: ArrayLike | None = None) -> float | None:
        """AP = sum over groups of tied scores of (R_n - R_(n-1)) * P_n; None without a positive.

        ``weights`` are multiplicities of shape [N] in the order of the given scores.
        """
        if weights is None:
            hits = np.cumsum(self.positive)[self.group_ends]
            seen = self.group_ends + 1
        else:
            ordered = np.asarray(weights)[self.order]
            hits = np.cumsum(ordered * self.positive)[self.group_ends]
            seen = np.cumsum(ordered)[self.group_ends]
        return average_precision_from_counts(hits, seen)

    def average_precisions(
        self, weights: NDArray[np.integer[Any]], clusters: NDArray[np.integer[Any]]
    ) -> Float:
        """AP under each of B weightings of whole clusters, shape [B]; NaN where there is no positive.

        Parameters
        ----------
        weights
            Multiplicities of the C clusters, shape [B, C].
        clusters
            The cluster of each event, shape [N], in the order of the given scores.

        Notes
        -----
        Only groups with positives add to AP. At each of them a cluster's cumulative counts do not depend on
        its weight, so that all weightings are one product of matrices, exact in float64.
        """
        multiplicities = weights.astype(np.float64)
        ordered = clusters[self.order]
        places = [np.flatnonzero(ordered == cluster) for cluster in range(multiplicities.shape[1])]
        positives = [rows[self.positive[rows]] for rows in places]
        ends = self.group_ends[self.scoring]
        total = np.zeros(len(multiplicities))
        before = np.zeros(len(multiplicities))
        for start in range(0, len(ends), _GROUPS_AT_ONCE):
            block = ends[start : start + _GROUPS_AT_ONCE]
            hits = multiplicities @ _counts_up_to(positives, block)
            seen = multiplicities @ _counts_up_to(places, block)
            gained = np.diff(hits, axis=1, prepend=before[:, None])
            before = hits[:, -1]
            total += (gained * np.divide(hits, seen, out=np.zeros_like(hits), where=seen > 0)).sum(axis=1)
        result: Float = np.full(len(multiplicities), np.nan)
        return np.divide(total, before, out=result, where=before > 0)


def _counts_up_to(places: Sequence[NDArray[np.signedinteger[Any]]], ends: NDArray[Any]) -> Float:
    """For each sorted list of places the number at or before each of ``ends`` [G], shape [C, G]."""
    return np.array([np.searchsorted(rows, ends, side="right") for rows in places], dtype=np.float64)


def average_precision_from_counts(
    hits: NDArray[np.signedinteger[Any]], seen: NDArray[np.signedinteger[Any]]
) -> float | None:
    """AP from cumulative counts at the end of each group of tied scores, descending.

    Parameters
    ----------
    hits, seen
        Positives and all events with a score at least that of the group, shape [G].
    """
    if not len(hits) or hits[-1] <= 0:
        return None
    gained = np.diff(hits, prepend=hits.dtype.type(0))
    groups = np.flatnonzero(gained != 0)
    return float(np.sum(gained[groups] * (hits[groups] / seen[groups])) / hits[-1])


def average_precision(scores: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None) -> float | None:
    """Event AP (numerics spec), scikit-learn's ``average_precision_score``; None without a positive."""
    return Ranking(scores, labels).average_precision(weights)


def matched_recall_threshold(positive_scores: ArrayLike, recall: float) -> float | None:
    """s_m of the positives' scores sorted descending, m = max(1, ceil(recall * P - 1e-9)).

    None without positives (reason ``no_calibration_positives``).

    Parameters
    ----------
    positive_scores
        Scores of the P calibration positives, any order.
    recall
        Requested recall in (0, 1].
    """
    scores = np.sort(np.asarray(positive_scores, dtype=np.float64))[::-1]
    if not len(scores):
        return None
    rank = max(1, math.ceil(recall * len(scores) - 1e-9))
    return float(scores[rank - 1])


def rate(count: float | None, denominator: float | None) -> float | None:
    """count / denominator; None where either is missing or the denominator is 0."""
    if count is None or not denominator:
        return None
    return count / denominator


def f1(true_positives: float, false_positives: float, false_negatives: float) -> float | None:
    """2 TP / (2 TP + FP + FN); None where that is 0 / 0."""
    return rate(2 * true_positives, 2 * true_positives + false_positives + false_negatives)


def percentiles(values: ArrayLike, percents: Sequence[float]) -> list[float | None]:
    """Percentiles by linear interpolation between order statistics; None for no values."""
    array = np.asarray(values, dtype=np.float64)
    if not array.size:
        return [None] * len(percents)
    return [float(value) for value in np.percentile(array, percents)]


def recall_name(recall: float) -> str:
    """How a requested recall is named in keys and columns: Python's repr (``0.8``, ``1.0``)."""
    return repr(float(recall))


def whole_rows(seconds: float) -> int | None:
    """Number of 0.2 s rows in a duration; None where it is no whole multiple (within 1e-9), or not finite."""
    if not math.isfinite(seconds):
        return None
    rows = round(seconds / ROW_SECONDS)
    return rows if abs(rows * ROW_SECONDS - seconds) <= 1e-9 else None
