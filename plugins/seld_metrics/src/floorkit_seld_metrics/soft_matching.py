"""Pairs of the revisions 2026-05-18 and later: Hungarian assignment by soft IoU.

Definition (seld_metrics spec, "soft maps"): in each (frame, class), and class-agnostic in each frame,
predictions and ground truths are assigned so that the sum of their IoU (float32) is highest. A canvas
is rendered at most once for both, and only where the assignment can hang on it: where bounds on its IoU
show that it cannot be part of the best assignment, its IoU is never needed. Pairs without overlap take
no part: their r is undefined (the one exception, two maps with less than 1e-8 of energy, is left out).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from floorkit_seld_metrics import softmap
from floorkit_seld_metrics.annotation import Annotations
from floorkit_seld_metrics.taxonomy import N_CLASSES

_MARGIN: Final = 1e-5
"""Far above what float32 rounding can change in a sum of a frame's IoUs."""

Kept = dict[int, softmap.SparseCanvas]
"""Canvases of ground truth by index, kept from one run of a recording to the next."""


@define(eq=False)
class _Canvases:
    """Canvases of one side, each rendered at most once and only when asked for."""

    annotations: Annotations
    kept: Kept | None = None
    _made: dict[int, softmap.Canvas] = field(factory=dict, init=False)
    _scaled: dict[int, tuple[softmap.CanvasPolygon, ...]] = field(factory=dict, init=False)

    def extents(self, index: int) -> NDArray[np.float64]:
        self._scaled[index] = tuple(map(softmap.to_canvas, self.annotations.polygons[index]))
        return softmap.extents_of(self._scaled[index])

    def canvas(self, index: int) -> softmap.Canvas:
        if index not in self._made:
            self._made[index] = self._render(index)
        return self._made[index]

    def _render(self, index: int) -> softmap.Canvas:
        if self.kept is None:
            return softmap.render_annotation(self._scaled[index])
        if index not in self.kept:
            self.kept[index] = softmap.SparseCanvas.of(softmap.render_annotation(self._scaled[index]))
        return self.kept[index].dense()

    def forget(self) -> None:
        self._made.clear()
        self._scaled.clear()


@frozen(eq=False)
class SoftMatches:
    """For every prediction the IoU and Pearson r of its pair, all of shape [P], in file order.

    ``iou`` is float32, 0 without a pair; ``pearson`` is NaN where undefined. The first two come from
    assignments within (frame, class), the others from assignments within the frame.
    """

    iou: NDArray[np.float32]
    pearson: NDArray[np.float64]
    agnostic_iou: NDArray[np.float32]
    agnostic_pearson: NDArray[np.float64]


def match_soft_maps(gold: Annotations, predicted: Annotations, kept: Kept | None = None) -> SoftMatches:
    """Hungarian assignment by soft IoU, class-aware and class-agnostic, from one rendering.

    ``kept`` holds canvases of ``gold`` that earlier runs needed, and gets those that this one needs.
    """
    count = len(predicted)
    matches = SoftMatches(
        np.zeros(count, dtype=np.float32),
        np.full(count, np.nan),
        np.zeros(count, dtype=np.float32),
        np.full(count, np.nan),
    )
    gold_frames, predicted_frames = gold.by_frame(), predicted.by_frame()
    gold_canvases, canvases = _Canvases(gold, kept), _Canvases(predicted)
    for frame in sorted(gold_frames.keys() & predicted_frames.keys()):
        _match_frame(gold_canvases, gold_frames[frame], canvases, predicted_frames[frame], matches)
        gold_canvases.forget()
        canvases.forget()
    return matches


@define(eq=False)
class _Frame:
    """One frame's soft IoUs, computed as far as the assignments need them.

    ``iou`` [P, G] holds, for a prediction that is not rendered yet, upper bounds (0 where the canvases
    cannot overlap); ``is_exact`` [P] says which rows hold the IoUs themselves.
    """

    gold: _Canvases
    golds: Sequence[int]
    predicted: _Canvases
    predictions: Sequence[int]
    iou: NDArray[np.float32] = field(init=False)
    is_exact: NDArray[np.bool_] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.iou = np.zeros((len(self.predictions), len(self.golds)), dtype=np.float32)
        gold_extents = [self.gold.extents(g) for g in self.golds]
        for row, p in enumerate(self.predictions):
            extents = self.predicted.extents(p)
            for column, g in enumerate(self.golds):
                if softmap.can_overlap(extents, gold_extents[column]):
                    bound = softmap.overlap_bound(self.gold.canvas(g), extents)
                    self.iou[row, column] = bound * (1 + _MARGIN)
        self.is_exact = (self.iou == 0).all(axis=1)

    def _render(self, row: int) -> None:
        canvas = self.predicted.canvas(self.predictions[row])
        for column in np.flatnonzero(self.iou[row]).tolist():
            self.iou[row, column] = softmap.soft_iou(canvas, self.gold.canvas(self.golds[column]))
        self.is_exact[row] = True

    def assign(self, rows: list[int], columns: list[int]) -> list[tuple[int, int]]:
        """Pairs (row, column) with an IoU above 0 of the best assignment of these rows and columns.

        With bounds in the place of some IoUs the best assignment can only be better. Where it uses
        exact values alone and every other is worse, it is the best one of the IoUs themselves too.
        """
        while True:
            part = self.iou[np.ix_(rows, columns)]
            chosen = [
                (int(r), int(c)) for r, c in zip(*linear_sum_assignment(-part), strict=True) if part[r, c] > 0
            ]
            bounded = [rows[r] for r, _ in chosen if not self.is_exact[rows[r]]]
            if not bounded:
                unknown = [row for row in rows if not self.is_exact[row]]
                if not unknown or _is_only_best(part, chosen):
                    return [(rows[r], columns[c]) for r, c in chosen]
                bounded = unknown
            for row in bounded:
                self._render(row)


def _is_only_best(values: NDArray[np.float32], chosen: Sequence[tuple[int, int]]) -> bool:
    """Whether every assignment that lacks one of the ``chosen`` pairs has a clearly lower sum."""
    best = sum(float(values[pair]) for pair in chosen)
    for pair in chosen:
        without = values.astype(np.float64)
        without[pair] = 0.0
        if without[linear_sum_assignment(-without)].sum() > best - _MARGIN:
            return False
    return True


def _match_frame(
    gold: _Canvases,
    golds: Sequence[int],
    predicted: _Canvases,
    predictions: Sequence[int],
    matches: SoftMatches,
) -> None:
    frame = _Frame(gold, golds, predicted, predictions)

    def assign(rows: list[int], columns: list[int], ious: NDArray[Any], r: NDArray[Any]) -> None:
        for row, column in frame.assign(rows, columns):
            p, g = predictions[row], golds[column]
            ious[p] = frame.iou[row, column]
            r[p] = softmap.pearson(gold.canvas(g), predicted.canvas(p))

    everything = list(range(len(predictions))), list(range(len(golds)))
    assign(*everything, matches.agnostic_iou, matches.agnostic_pearson)
    gold_class = gold.annotations.category[list(golds)]
    predicted_class = predicted.annotations.category[list(predictions)]
    for category in np.intersect1d(gold_class, predicted_class).tolist():
        if 0 <= category < N_CLASSES:
            rows = np.flatnonzero(predicted_class == category).tolist()
            columns = np.flatnonzero(gold_class == category).tolist()
            assign(rows, columns, matches.iou, matches.pearson)
