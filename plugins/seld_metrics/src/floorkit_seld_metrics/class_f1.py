"""Macro Class-F1: do spatially matched sources have the right class? (SAID's diagnostic.)

Definition (seld_metrics spec, "Macro Class-F1"): in each frame annotations are paired by the arc between
their peaks whatever their class, pairs within 20 degrees enter a confusion matrix over all recordings,
and F1 is averaged over the classes that the ground truth has.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from floorkit.numerics import f1
from floorkit_seld_metrics.annotation import Annotations
from floorkit_seld_metrics.peaks import arc_degrees, gated_pairs, peak_point
from floorkit_seld_metrics.taxonomy import N_CLASSES


@frozen(eq=False)
class Confusion:
    """Spatially matched pairs of one recording by class.

    ``matrix`` [13, 13] counts pairs by ground-truth (rows) and predicted class; pairs with a category
    out of range are dropped from it. ``pointless`` counts annotations without any point in frames that
    have both sides: with one of them the figure does not exist.
    """

    matrix: NDArray[np.int64]
    pointless: int


def match_peaks(gold: Annotations, predicted: Annotations) -> Confusion:
    """Pair annotations of every frame by peak distance, whatever their class."""
    matrix = np.zeros((N_CLASSES, N_CLASSES), dtype=np.int64)
    pointless = 0
    gold_frames, predicted_frames = gold.by_frame(), predicted.by_frame()
    for frame in gold_frames.keys() & predicted_frames.keys():
        golds, predictions = gold_frames[frame], predicted_frames[frame]
        g_peaks = [peak_point(gold.polygons[g]) for g in golds]
        p_peaks = [peak_point(predicted.polygons[p]) for p in predictions]
        without = sum(peak is None for peak in (*g_peaks, *p_peaks))
        pointless += without
        if without:
            continue
        arcs = arc_degrees(np.array(g_peaks), np.array(p_peaks))
        for row, column in gated_pairs(arcs, 1e9):
            true, guess = int(gold.category[golds[row]]), int(predicted.category[predictions[column]])
            if 0 <= true < N_CLASSES and 0 <= guess < N_CLASSES:
                matrix[true, guess] += 1
    return Confusion(matrix, pointless)


def class_f1(matrix: NDArray[np.int64]) -> NDArray[np.float64]:
    """F1 of every class from a confusion matrix [13, 13]; 0 for a class without any pair. Shape [13]."""
    true = np.diag(matrix)
    false_negative, false_positive = matrix.sum(axis=1) - true, matrix.sum(axis=0) - true
    return np.array([f1(*counts) or 0.0 for counts in zip(true, false_positive, false_negative, strict=True)])
