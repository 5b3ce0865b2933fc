"""Peak points of annotations and great-circle distances between them.

Both the pairs of the revision 2026-04-02 and Macro Class-F1 (seld_metrics spec) match annotations by the
arc between their most intense points, gated at 20 degrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from floorkit_seld_metrics.annotation import Polygon
from floorkit_seld_metrics.taxonomy import HEIGHT, WIDTH

GATE_DEGREES: Final = 20.0


def peak_point(polygons: Sequence[Polygon]) -> tuple[float, float, float] | None:
    """(x, y, intensity) of the most intense point, the first of equals; None without any point."""
    best: tuple[float, float, float] | None = None
    for polygon in polygons:
        x, y, intensity = polygon[np.argmax(polygon[:, 2])].tolist()
        if best is None or intensity > best[2]:
            best = (x, y, intensity)
    return best


def arc_degrees(gold: NDArray[Any], predicted: NDArray[Any]) -> NDArray[Any]:
    """Great-circle distances in degrees between points [G, 2] and [P, 2] of x and y, shape [G, P].

    Computed in the precision of the inputs.
    """
    (gold_azimuth, gold_elevation), (azimuth, elevation) = map(_direction, (gold, predicted))
    haversine = np.sin((gold_elevation[:, None] - elevation[None, :]) / 2) ** 2 + (
        np.cos(gold_elevation)[:, None]
        * np.cos(elevation)[None, :]
        * np.sin((gold_azimuth[:, None] - azimuth[None, :]) / 2) ** 2
    )
    arc: NDArray[Any] = np.degrees(2 * np.arcsin(np.sqrt(np.clip(haversine, 0, 1))))
    return arc


def _direction(points: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    azimuth = np.radians(points[:, 0] / WIDTH * 360 - 180)
    elevation = np.radians(90 - points[:, 1] / (HEIGHT - 1) * 180)
    return azimuth, elevation


def gated_pairs(cost: NDArray[Any], beyond: float) -> list[tuple[int, int]]:
    """Pairs (ground truth, prediction) of the cheapest assignment, those beyond the gate left out.

    Parameters
    ----------
    cost
        Arcs in degrees, shape [G, P].
    beyond
        What stands for every arc above 20 degrees in the assignment.
    """
    gated = np.where(cost > GATE_DEGREES, cost.dtype.type(beyond), cost)
    pairs = zip(*linear_sum_assignment(gated), strict=True)
    return [(int(g), int(p)) for g, p in pairs if gated[g, p] <= GATE_DEGREES]
