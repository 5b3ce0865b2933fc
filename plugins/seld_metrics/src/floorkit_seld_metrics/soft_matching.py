"""Pairs of the revisions 2026-05-18 and later: Hungarian assignment by soft IoU.

Definition (seld_metrics spec, "soft maps"): in each (frame, class), and class-agnostic in each frame,
predictions and ground truths are assigned so that the sum of their IoU (float32) is highest. A canvas
is rendered at most once for both, and only where it can overlap another of its frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from floorkit_seld_metrics import softmap
from floorkit_seld_metrics.annotation import Annotations
from floorkit_seld_metrics.taxonomy import N_CLASSES


@define(eq=False)
class _Canvases:
    """Canvases of one side, each rendered at most once and only when asked for."""

    annotations: Annotations
    _made: dict[int, softmap.Canvas] = field(factory=dict, init=False)
    _scaled: dict[int, tuple[softmap.CanvasPolygon, ...]] = field(factory=dict, init=False)

    def extents(self, index: int) -> NDArray[np.float64]:
        self._scaled[index] = tuple(map(softmap.to_canvas, self.annotations.polygons[index]))
        return softmap.extents_of(self._scaled[index])

    def canvas(self, index: int) -> softmap.Canvas:
        if index not in self._made:
            self._made[index] = softmap.render_annotation(self._scaled[index])
        return self._made[index]

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


def match_soft_maps(gold: Annotations, predicted: Annotations) -> SoftMatches:
    """Hungarian assignment by soft IoU, class-aware and class-agnostic, from one rendering."""
    count = len(predicted)
    matches = SoftMatches(
        np.zeros(count, dtype=np.float32),
        np.full(count, np.nan),
        np.zeros(count, dtype=np.float32),
        np.full(count, np.nan),
    )
    gold_frames, predicted_frames = gold.by_frame(), predicted.by_frame()
    gold_canvases, canvases = _Canvases(gold), _Canvases(predicted)
    for frame in sorted(gold_frames.keys() & predicted_frames.keys()):
        _match_frame(gold_canvases, gold_frames[frame], canvases, predicted_frames[frame], matches)
        gold_canvases.forget()
        canvases.forget()
    return matches


def _match_frame(
    gold: _Canvases,
    golds: Sequence[int],
    predicted: _Canvases,
    predictions: Sequence[int],
    matches: SoftMatches,
) -> None:
    gold_extents = [gold.extents(g) for g in golds]
    iou = np.zeros((len(predictions), len(golds)), dtype=np.float32)
    for row, p in enumerate(predictions):
        extents = predicted.extents(p)
        for column, g in enumerate(golds):
            if softmap.can_overlap(extents, gold_extents[column]):
                iou[row, column] = softmap.soft_iou(predicted.canvas(p), gold.canvas(g))
    pearsons: dict[tuple[int, int], float] = {}

    def assign(rows: list[int], columns: list[int], ious: NDArray[Any], r: NDArray[Any]) -> None:
        part = iou[np.ix_(rows, columns)]
        if not part.any():
            return
        for row, column in zip(*linear_sum_assignment(-part), strict=True):
            if part[row, column] > 0:
                pair = rows[row], columns[column]
                p, g = predictions[pair[0]], golds[pair[1]]
                if pair not in pearsons:
                    pearsons[pair] = softmap.pearson(gold.canvas(g), predicted.canvas(p))
                ious[p], r[p] = part[row, column], pearsons[pair]

    assign(
        list(range(len(predictions))), list(range(len(golds))), matches.agnostic_iou, matches.agnostic_pearson
    )
    gold_class = gold.annotations.category[list(golds)]
    predicted_class = predicted.annotations.category[list(predictions)]
    for category in np.intersect1d(gold_class, predicted_class).tolist():
        if 0 <= category < N_CLASSES:
            rows = np.flatnonzero(predicted_class == category).tolist()
            columns = np.flatnonzero(gold_class == category).tolist()
            assign(rows, columns, matches.iou, matches.pearson)
