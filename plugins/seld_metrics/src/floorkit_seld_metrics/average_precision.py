"""Average precision over 101 recall levels, as the official revisions compute it.

Detections are ordered by score, descending, tied scores by their place in the tables (recording,
frame, class, file order). Only the places of true positives matter: between two of them recall stays
and precision falls.

Two arithmetics (seld_metrics spec, "AP at a threshold" and "2026-04-02"):

- *soft*: recalls and precisions are float32, a level is reached where the float32 recall is at least
  the float64 level, the sum over levels and the division by 101 are float32. So a recall of exactly
  k/100 misses its own level for half of the levels (NumPy 2; NumPy 1 compared in float32).
- *COCO*: float64 throughout, pycocotools' ``accumulate``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

RECALL_LEVELS: Final = np.linspace(0.0, 1.0, 101)
_SOFT_GUARD: Final = np.float32(1e-9)
_COCO_GUARD: Final = np.spacing(1)

Formula = Callable[[NDArray[np.int64], NDArray[np.int64], int], float]
"""(hits, seen, number of ground truths) to AP: cumulative counts at each true positive, shape [K]."""


def soft_average_precision(hits: NDArray[np.int64], seen: NDArray[np.int64], n_gold: int) -> float:
    """Float32 AP of the revisions 2026-05-18 and later; 0 without a true positive."""
    true = hits.astype(np.float32)
    false = (seen - hits).astype(np.float32)
    recall = (true / np.float32(n_gold)).astype(np.float64)
    levels = _best_at_levels(true / (true + false + _SOFT_GUARD), recall)
    return float(np.add.accumulate(levels)[-1] / np.float32(101))


def coco_average_precision(hits: NDArray[np.int64], seen: NDArray[np.int64], n_gold: int) -> float:
    """pycocotools' AP of one category and threshold; 0 without a true positive."""
    levels = _best_at_levels(hits / (seen + _COCO_GUARD), hits / n_gold)
    return float(np.add.reduce(levels) / len(RECALL_LEVELS))


def _best_at_levels(precision: NDArray[Any], recall: NDArray[np.float64]) -> NDArray[Any]:
    """For each level the highest precision where recall has reached it, 0 where it never does."""
    best: NDArray[Any] = np.zeros(len(precision) + 1, dtype=precision.dtype)
    best[:-1] = np.maximum.accumulate(precision[::-1])[::-1]
    levels: NDArray[Any] = best[recall.searchsorted(RECALL_LEVELS)]
    return levels


@frozen(eq=False)
class Ranking:
    """Detections by descending score.

    Parameters
    ----------
    rows
        Rows of the table, best first, shape [D].
    hits
        For each threshold the places in ``rows`` that are true positives there.
    """

    rows: NDArray[np.intp]
    hits: tuple[NDArray[np.intp], ...]

    @classmethod
    def of(cls, rows: NDArray[np.intp], score: NDArray[np.float64], is_hit: NDArray[np.bool_]) -> Ranking:
        """Rank the table's ``rows`` by ``score`` [N]; ``is_hit`` [N, T]. Ties keep the order of ``rows``."""
        ordered = rows[np.argsort(-score[rows], kind="stable")]
        return cls(ordered, tuple(np.flatnonzero(column) for column in is_hit[ordered].T))

    def average_precisions(
        self, formula: Formula, n_gold: int, weights: NDArray[np.int64] | None = None
    ) -> list[float]:
        """AP at each threshold. ``weights`` [N] are multiplicities of the table's rows."""
        if weights is None:
            counted = [(np.arange(1, len(places) + 1), places + 1) for places in self.hits]
        else:
            ordered = weights[self.rows]
            seen = ordered.cumsum()
            counted = [(ordered[places].cumsum(), seen[places]) for places in self.hits]
        return [formula(*counts, n_gold) if len(counts[0]) else 0.0 for counts in counted]


def mixes_ties(rows: NDArray[np.intp], score: NDArray[np.float64], is_hit: NDArray[np.bool_]) -> bool:
    """Whether equal scores among ``rows`` stand for a true and a false positive at some threshold."""
    _, group = np.unique(score[rows], return_inverse=True)
    sizes = np.bincount(group)
    return any(
        bool(((hits > 0) & (hits < sizes)).any())
        for hits in (np.bincount(group[column], minlength=len(sizes)) for column in is_hit[rows].T)
    )


def tie_extremes(
    rows: NDArray[np.intp], score: NDArray[np.float64], is_hit: NDArray[np.bool_]
) -> tuple[Ranking, Ranking]:
    """The worst and the best order of tied detections.

    True positives last (first) within a tie; one order serves every threshold, since a detection
    that is a true positive at one is so at every lower one.
    """
    reached = is_hit[rows].sum(axis=1)
    worst, best = (rows[np.argsort(sign * reached, kind="stable")] for sign in (1, -1))
    return Ranking.of(worst, score, is_hit), Ranking.of(best, score, is_hit)
