"""Pooled score tables to AP, Pearson r and F1: what the figures of a run are made of.

Everything honours the pool's weights, and what does not depend on them (rankings) is kept in the pool.
An AP is None where it does not exist: no ground truth, or, before 2026-06-30, no detection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from floorkit.core.pool import Pool
from floorkit_seld_metrics.average_precision import (
    Formula,
    Ranking,
    coco_average_precision,
    mixes_ties,
    soft_average_precision,
    tie_extremes,
)
from floorkit_seld_metrics.class_f1 import class_f1
from floorkit_seld_metrics.coco_matching import COCO_THRESHOLDS
from floorkit_seld_metrics.taxonomy import (
    COCO_REVISION,
    CURRENT_REVISION,
    N_CLASSES,
    OUT_OF_RANGE,
    SOFT_THRESHOLDS,
)

ALL: Final = "all"
"""Every prediction with every category taken for one: class-agnostic."""
MICRO: Final = "micro"
"""Every prediction of the task's classes, matched within its class."""
Group = int | str
"""A class, or one of the two."""

AveragePrecisions = list[float] | None
"""One AP a threshold; None where there is none."""


@define(eq=False)
class RevisionScores:
    """AP and Pearson r of one revision from one run's pool.

    Parameters
    ----------
    pool
        Evaluated recordings of one run, weighted or not.
    revision
        Official revision by date.
    """

    pool: Pool
    revision: str
    _known: dict[Group, AveragePrecisions] = field(factory=dict, init=False)
    _n_gold: NDArray[np.int64] | None = field(default=None, init=False)

    @property
    def is_coco(self) -> bool:
        return self.revision == COCO_REVISION

    @property
    def _table(self) -> str:
        return "coco" if self.is_coco else "detections"

    @property
    def thresholds(self) -> tuple[float, ...]:
        """IoU thresholds, ascending."""
        return COCO_THRESHOLDS if self.is_coco else SOFT_THRESHOLDS[self.revision]

    def n_gold(self, group: Group) -> int:
        """Ground-truth annotations of a group; in 2026-04-02 those that the revision keeps."""
        if self._n_gold is None:
            self._n_gold = class_totals(self.pool, "coco_n_gt" if self.is_coco else "n_gt")
        by_class = self._n_gold
        if group == ALL:
            return int(by_class.sum())
        return int(by_class[:N_CLASSES].sum()) if group == MICRO else int(by_class[int(group)])

    def n_detections(self, group: Group) -> int:
        """Predictions of a group; in 2026-04-02 those that the revision keeps."""
        rows = self._group_mask(self._table, group)
        return self.pool.count(self._table, rows)

    def average_precisions(self, group: Group) -> AveragePrecisions:
        """AP of a group at each threshold."""
        if group not in self._known:
            self._known[group] = self._average_precisions(group, self._ranking(group))
        return self._known[group]

    def mean_ap(self, group: Group) -> float | None:
        """AP of a group, averaged over the thresholds."""
        return mean_ap(self.average_precisions(group))

    def macro_map(self) -> float | None:
        """Class-aware AP, averaged over the classes that have one."""
        return mean([self.mean_ap(category) for category in range(N_CLASSES)])

    def macro_aps(self) -> list[float | None]:
        """The same at each threshold."""
        found = [self.average_precisions(category) for category in range(N_CLASSES)]
        return [mean([None if one is None else one[t] for one in found]) for t in range(len(self.thresholds))]

    def tie_bounds(self, group: Group) -> tuple[float | None, float | None]:
        """Lowest and highest mean AP over the orders of tied scores.

        2026-04-02 orders ties by frame and file, as pycocotools does: there is nothing to bound.
        """
        rows = self._rows(group)
        if not self.is_coco:
            score, is_hit = self.pool.column("detections", "score"), self._is_hit(group)
            if mixes_ties(rows, score, is_hit):
                worst, best = (
                    self._average_precisions(group, one) for one in tie_extremes(rows, score, is_hit)
                )
                return mean_ap(worst), mean_ap(best)
        return self.mean_ap(group), self.mean_ap(group)

    def pearson(self, group: Group) -> tuple[float | None, int]:
        """Mean r over a group's defined pairs, and their number."""
        table, column = ("pairs", "pearson") if self.is_coco else ("detections", "pearson")
        if group == ALL and not self.is_coco:
            column = "agnostic_pearson"
        return self._mean(table, column, group)

    def macro_pearson(self) -> float | None:
        """Mean over the classes with ground truth of the class's mean r, where it has one."""
        classes = [category for category in range(N_CLASSES) if self.n_gold(category)]
        return mean([self.pearson(category)[0] for category in classes])

    def distance_error(self) -> tuple[float | None, int]:
        """Mean absolute percentage error of distance (2026-04-02), and the number of pairs."""
        return self._mean("pairs", "distance_error", MICRO)

    # --- how --------------------------------------------------------------------------------

    def _has_detections(self, group: Group) -> bool:
        """Whether there is enough to rank: before 2026-06-30 a group, in 2026-04-02 a run, without any
        detection has no AP.
        """
        if self.revision == CURRENT_REVISION:
            return True
        return self.n_detections(MICRO if self.is_coco else group) > 0

    @property
    def _formula(self) -> Formula:
        return coco_average_precision if self.is_coco else soft_average_precision

    def _average_precisions(self, group: Group, ranking: Ranking) -> AveragePrecisions:
        n_gold = self.n_gold(group)
        if not n_gold or not self._has_detections(group):
            return None
        weights = self.pool.row_weights(self._table)
        return ranking.average_precisions(self._formula, n_gold, weights)

    def _ranking(self, group: Group) -> Ranking:
        def build() -> Ranking:
            return Ranking.of(self._rows(group), self.pool.column(self._table, "score"), self._is_hit(group))

        return self.pool.cached(("ranking", self._table, self.thresholds, group), build)

    def _rows(self, group: Group) -> NDArray[np.intp]:
        """Rows of a group in tie order: recording, frame, class, file order."""
        table = self._table
        mask = self._group_mask(table, group)
        if self.is_coco:
            counts = self.pool.column(table, "agnostic_counts" if group == ALL else "counts")
            mask = mask & counts.astype(bool)
        rows = np.flatnonzero(mask)
        if group == MICRO and not self.is_coco:
            place = [self.pool.column(table, name)[rows] for name in ("index", "class", "frame")]
            rows = rows[np.lexsort((*place, self.pool.unit_index(table)[rows]))]
        return rows

    def _group_mask(self, table: str, group: Group) -> NDArray[np.bool_]:
        def build() -> NDArray[np.bool_]:
            classes = self.pool.column(table, "class")
            if group == ALL:
                return np.ones(len(classes), dtype=bool)
            chosen: NDArray[np.bool_] = classes != OUT_OF_RANGE if group == MICRO else classes == group
            return chosen

        return self.pool.cached(("group", table, group), build)

    def _mean(self, table: str, column: str, group: Group) -> tuple[float | None, int]:
        """Mean of a column over those rows of a group where it is a number, and how many there are."""

        def build() -> tuple[NDArray[np.intp], NDArray[np.float64]]:
            values = self.pool.column(table, column)
            rows = np.flatnonzero(self._group_mask(table, group) & ~np.isnan(values))
            return rows, values[rows]

        rows, values = self.pool.cached(("numbers", table, column, group), build)
        weights = self.pool.row_weights(table)
        if weights is None:
            return (float(np.mean(values)), len(rows)) if len(rows) else (None, 0)
        count = int(weights[rows].sum())
        return (float((values * weights[rows]).sum() / count), count) if count else (None, 0)

    def _is_hit(self, group: Group) -> NDArray[np.bool_]:
        if self.is_coco:
            column = "agnostic_matched" if group == ALL else "matched"
            return self.pool.column("coco", column).reshape(-1, len(COCO_THRESHOLDS))
        iou = self.pool.column("detections", "agnostic_iou" if group == ALL else "iou")
        hits: NDArray[np.bool_] = iou.astype(np.float64)[:, None] >= np.array(self.thresholds)
        return hits


def mean(values: Sequence[float | None]) -> float | None:
    """Mean of those that exist; None where none does."""
    numbers = [value for value in values if value is not None]
    return float(np.mean(numbers)) if numbers else None


def mean_ap(found: AveragePrecisions) -> float | None:
    """Mean over the thresholds."""
    return None if found is None else mean(found)


def class_totals(pool: Pool, column: str) -> NDArray[np.int64]:
    """A column of the table ``classes``, summed over recordings, shape [14]."""
    weights = pool.row_weights("classes")
    values = pool.column("classes", column)
    if weights is not None:
        values = values * weights
    totals = np.bincount(
        pool.column("classes", "class").astype(np.intp), weights=values, minlength=N_CLASSES + 1
    )
    return totals.astype(np.int64)


def confusion(pool: Pool) -> NDArray[np.int64]:
    """Spatially matched pairs by ground-truth (rows) and predicted class, shape [13, 13]."""
    rows = pool.column("classes", "confusion").reshape(-1, N_CLASSES)
    weights = pool.row_weights("classes")
    if weights is not None:
        rows = rows * weights[:, None]
    category = pool.column("classes", "class")
    return np.stack([rows[category == one].sum(axis=0) for one in range(N_CLASSES)])


def macro_class_f1(pool: Pool) -> tuple[float | None, list[float | None], str]:
    """Macro Class-F1, each class's F1 (None for one without ground truth), and why there is no macro."""
    present = class_totals(pool, "n_gt")[:N_CLASSES] > 0
    if pool.total("recording", pool.column("recording", "pointless_in_matched_frames")):
        return None, [None] * N_CLASSES, "annotation_without_points"
    scores = class_f1(confusion(pool)).tolist()
    by_class = [score if here else None for score, here in zip(scores, present, strict=True)]
    return mean(by_class), by_class, "" if present.any() else "no_ground_truth"
