"""Masks of the revision 2026-04-02: what a map's 10 % contour encloses, and how two of them compare.

The official code sums its maps in float32. Ours are exact to float64, so that a pixel within float32's
error of the contour could fall on the other side of it: such pixels, and the peak, are summed again
as the official code does it, point by point in file order in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from floorkit_seld_metrics.annotation import Polygon
from floorkit_seld_metrics.gaussian import EXPONENT, LAST_ROW, Map, PointWindows
from floorkit_seld_metrics.peaks import peak_point
from floorkit_seld_metrics.taxonomy import HEIGHT, WIDTH

Mask = NDArray[np.bool_]
"""Shape [180, 360]."""

MASK_SHARE: Final = 0.1
SMALLEST_PEAK: Final = 1e-9
_FLOAT32_ERROR: Final = 5e-5
"""Relative difference up to which a float32 sum of some thousand points may stray from the exact one."""

_COS_NEAR: Final = math.cos(math.radians(10.0))
_CAP_SLACK: Final = 1e-6

_AZIMUTH: Final = np.radians((np.arange(WIDTH, dtype=np.float32) / WIDTH) * 360.0 - 180.0)
_ELEVATION: Final = np.radians(90.0 - (np.arange(HEIGHT, dtype=np.float32) / LAST_ROW) * 180.0)
_COS_ELEVATION: Final = np.cos(_ELEVATION)


def mask_of(energy: Map, polygons: Sequence[Polygon]) -> Mask | None:
    """Pixels with at least 10 % of the map's peak.

    ``energy`` is the map of ``polygons``. None for a map that the revision drops: peak below 1e-9.
    """
    peak = float(energy.max())
    if peak < SMALLEST_PEAK:
        return None
    contour = MASK_SHARE * peak
    mask: Mask = energy >= contour
    doubtful = np.argwhere(np.abs(energy - contour) <= _FLOAT32_ERROR * contour)
    if len(doubtful):
        candidates = np.argwhere(energy >= peak * (1 - _FLOAT32_ERROR))
        single = _SinglePrecision(polygons)
        highest = max(single.value(row, column) for row, column in candidates.tolist())
        for row, column in doubtful.tolist():
            mask[row, column] = single.value(row, column) >= np.float32(MASK_SHARE) * highest
    return mask


@frozen(eq=False)
class Cap:
    """A spherical cap that holds an annotation's mask: unit vector of its centre, radius in radians."""

    centre: NDArray[np.float64]
    radius: float

    def meets(self, other: Cap) -> bool:
        """False only where no pixel can be in both masks."""
        cosine = float(self.centre @ other.centre)
        return math.acos(min(max(cosine, -1.0), 1.0)) <= self.radius + other.radius + _CAP_SLACK


def cap_of(polygons: Sequence[Polygon]) -> Cap | None:
    """The cap around the pixel at the most intense point; None where there is no simple bound.

    A pixel farther than d from every point gets at most 2 * sum(intensities) * exp(-4 hav(d) * 0.5 /
    sigma^2), 2 since a column can count twice. That is below the mask's threshold where it is below 10 % of
    what the centre's pixel gets from the points within 10 degrees alone, all of which reach it.
    """
    peak = peak_point(polygons)
    if peak is None or peak[2] < SMALLEST_PEAK:
        return None
    points = np.concatenate(polygons) if len(polygons) > 1 else polygons[0]
    intensity = points[:, 2]
    if intensity.min() < 0:
        return None
    centre = _unit_vectors(np.array([[round(peak[0]) % WIDTH, min(round(peak[1]), LAST_ROW)]]))[0]
    cosine = np.clip(_unit_vectors(points[:, :2]) @ centre, -1.0, 1.0)
    near = cosine >= _COS_NEAR
    at_centre = float(intensity[near] @ np.exp((1 - cosine[near]) / 2 * EXPONENT))
    share = MASK_SHARE * at_centre * (1 - _FLOAT32_ERROR) / (2 * float(intensity.sum()))
    haversine = math.log(share) / EXPONENT
    return Cap(centre, math.acos(float(cosine.min())) + 2 * math.asin(math.sqrt(min(haversine, 1.0))))


def _unit_vectors(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Directions of x and y, shape [P, 2], as unit vectors [P, 3]."""
    azimuth = np.radians(places[:, 0] / WIDTH * 360.0 - 180.0)
    elevation = np.radians(90.0 - places[:, 1] / LAST_ROW * 180.0)
    cosine = np.cos(elevation)
    return np.column_stack((cosine * np.cos(azimuth), cosine * np.sin(azimuth), np.sin(elevation)))


class _SinglePrecision:
    """The official float32 sum of an annotation's map, pixel by pixel."""

    def __init__(self, polygons: Sequence[Polygon]) -> None:
        points = np.concatenate(polygons)
        self.windows = PointWindows.of(points[:, 0], points[:, 1])
        self.elevation = self.windows.elevation.astype(np.float32)
        self.azimuth = self.windows.azimuth.astype(np.float32)
        self.cosine = self.windows.cosine.astype(np.float32)
        self.intensity = points[:, 2].astype(np.float32)

    def value(self, row: int, column: int) -> np.float32:
        """Sum over the points whose window has the pixel, in file order; twice where it has it twice."""
        reached = (self.windows.first_row <= row) & (row < self.windows.stop_row)
        point = np.repeat(np.arange(len(reached)), self.windows.times(column) * reached)
        haversine = np.square(np.sin((_ELEVATION[row] - self.elevation[point]) / np.float32(2)))
        across = np.square(np.sin((_AZIMUTH[column] - self.azimuth[point]) / np.float32(2)))
        haversine += (self.cosine[point] * _COS_ELEVATION[row]) * across
        terms = np.exp(haversine * np.float32(EXPONENT)) * self.intensity[point]
        total: np.float32 = np.add.accumulate(terms)[-1] if len(terms) else np.float32(0)
        return total


def mask_iou(gold: Sequence[Mask], predicted: Sequence[Mask]) -> NDArray[np.float64]:
    """Intersection over union of every prediction with every ground truth, shape [P, G]."""
    packed_gold = [np.packbits(mask) for mask in gold]
    packed_predicted = [np.packbits(mask) for mask in predicted]
    overlaps = np.zeros((len(predicted), len(gold)))
    for row, p in enumerate(packed_predicted):
        for column, g in enumerate(packed_gold):
            union = int(np.bitwise_count(p | g).sum(dtype=np.int64))
            both = int(np.bitwise_count(p & g).sum(dtype=np.int64))
            overlaps[row, column] = both / union
    return overlaps


def dilated(mask: Mask) -> Mask:
    """The mask grown twice by its four neighbours, without wrapping."""
    for _ in range(2):
        grown = mask.copy()
        grown[1:] |= mask[:-1]
        grown[:-1] |= mask[1:]
        grown[:, 1:] |= mask[:, :-1]
        grown[:, :-1] |= mask[:, 1:]
        mask = grown
    return mask


def map_pearson(gold: Map, gold_mask: Mask, predicted: Map, predicted_mask: Mask) -> float:
    """The revision's own Pearson r, over the twice dilated union of both masks; NaN where a side is flat."""
    region = dilated(gold_mask | predicted_mask)
    g, p = gold[region], predicted[region]
    if np.ptp(g) <= 1e-7 or np.ptp(p) <= 1e-7:
        return float("nan")
    return float(np.corrcoef(g, p)[0, 1])
