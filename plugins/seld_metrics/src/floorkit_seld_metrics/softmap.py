"""Soft maps of the revisions 2026-05-18 and later: polygons to canvases of 50 x 100 nodes.

Definition (seld_metrics spec, "soft maps"). A polygon's points are scaled to the canvas in float32, a
polygon across the azimuth seam is moved together, and the intensities are interpolated linearly on the
Delaunay triangulation of the points, 0 outside their hull, negatives clipped to 0. Polygons combine by
maximum; an annotation's canvas is divided by its maximum.

Four corners of a pixel lie on one circle, so the triangulation, and with it the figure, is Qhull's
choice: it gets the points in file order with SciPy's own options. Everything behind the triangulation
is evaluated at the few canvas nodes that triangles cover, with SciPy's arithmetic, and not at all
where two annotations cannot overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray
from scipy.interpolate import griddata
from scipy.spatial import Delaunay, QhullError

from floorkit_seld_metrics.annotation import Polygon
from floorkit_seld_metrics.taxonomy import HEIGHT, WIDTH

CANVAS_WIDTH: Final = 100
CANVAS_HEIGHT: Final = 50
SMALLEST_MASS: Final = 1e-8
"""A maximum or a union below it counts as empty."""

_INSIDE: Final = 100 * np.finfo(np.float64).eps
"""SciPy takes a node for inside a triangle down to this negative barycentric coordinate."""
_MOST_CANDIDATES: Final = 50_000
_SLACK: Final = 1e-6
_NARROW: Final = 0.1
_ROUNDING: Final = 0.75
"""Farther than a point lies from the node that it rounds to."""
_ALMOST_ZERO: Final = 1e-9

Canvas = NDArray[np.floating[Any]]
"""Shape [50, 100]; float32 where no polygon was interpolated, else float64, as the official code has it."""


@frozen(eq=False)
class CanvasPolygon:
    """One polygon on the canvas of double width: float32 coordinates in nodes, seam closed."""

    x: NDArray[np.float32]
    y: NDArray[np.float32]
    intensity: NDArray[np.float32]


def to_canvas(polygon: Polygon) -> CanvasPolygon:
    """Scale one polygon to canvas nodes and close the seam.

    Where the largest gap between sorted x exceeds half the canvas, everything at or left of the gap
    moves right by one canvas width.
    """
    points = polygon.astype(np.float32)
    x = points[:, 0] * np.float32(CANVAS_WIDTH / WIDTH)
    y = points[:, 1] * np.float32(CANVAS_HEIGHT / HEIGHT)
    ordered = np.sort(x)
    if len(ordered) > 1:
        gaps = np.diff(ordered)
        widest = np.argmax(gaps)
        if gaps[widest] > CANVAS_WIDTH / 2:
            x = np.where(x <= ordered[widest], x + np.float32(CANVAS_WIDTH), x)
    return CanvasPolygon(x, y, points[:, 2])


def render_annotation(polygons: Sequence[CanvasPolygon]) -> Canvas:
    """The normalised canvas of one annotation; zeros without polygons or without positive intensity."""
    canvas: Canvas = np.zeros((CANVAS_HEIGHT, CANVAS_WIDTH), dtype=np.float32)
    for polygon in polygons:
        wide = _render_wide(polygon)
        canvas = np.maximum(canvas, np.maximum(wide[:, :CANVAS_WIDTH], wide[:, CANVAS_WIDTH:]))
    largest = canvas.max()
    return canvas / largest if largest > SMALLEST_MASS else canvas


def _render_wide(polygon: CanvasPolygon) -> Canvas:
    """One polygon on the canvas of double width, not yet folded, shape [50, 200]."""
    if len(polygon.x) >= 3:
        try:
            return _interpolate(polygon)
        except QhullError:  # all points on one line: no triangulation exists
            pass
    canvas = np.zeros((CANVAS_HEIGHT, 2 * CANVAS_WIDTH), dtype=np.float32)
    columns = np.clip(np.rint(polygon.x), 0, 2 * CANVAS_WIDTH - 1).astype(np.intp)
    rows = np.clip(np.rint(polygon.y), 0, CANVAS_HEIGHT - 1).astype(np.intp)
    np.maximum.at(canvas, (rows, columns), polygon.intensity)
    return canvas


def _interpolate(polygon: CanvasPolygon) -> Canvas:
    points = np.column_stack((polygon.x, polygon.y)).astype(np.float64)
    values = polygon.intensity.astype(np.float64)
    canvas = _evaluate_nodes(Delaunay(points), values)
    if canvas is None:
        columns, rows = np.meshgrid(np.arange(2 * CANVAS_WIDTH), np.arange(CANVAS_HEIGHT))
        canvas = griddata(points, values, (columns, rows), method="linear", fill_value=0.0)
    return np.maximum(canvas, 0.0)


def _evaluate_nodes(triangulation: Delaunay, values: NDArray[np.float64]) -> Canvas | None:
    """Piecewise-linear interpolation at the canvas nodes that triangles cover, 0 elsewhere.

    Returns None where the outcome may hang on which of several triangles SciPy's walk happens to end
    in: a degenerate triangle near a node, or a node on an edge whose value is 0 up to rounding (it
    decides which nodes belong to a ground truth's support); and where huge triangles make this no
    shorter way.
    """
    x, y = triangulation.points.T
    simplices = triangulation.simplices
    first_column, last_column = _node_range(x, simplices, 2 * CANVAS_WIDTH)
    first_row, last_row = _node_range(y, simplices, CANVAS_HEIGHT)
    width, height = last_column - first_column + 1, last_row - first_row + 1
    covering = np.flatnonzero((width > 0) & (height > 0))
    counts = width[covering] * height[covering]
    if counts.sum() > _MOST_CANDIDATES:
        return None
    triangle = np.repeat(covering, counts)
    within = np.arange(len(triangle)) - np.repeat(np.cumsum(counts) - counts, counts)
    column = first_column[triangle] + within % width[triangle]
    row = first_row[triangle] + within // width[triangle]
    near = _is_near(x[simplices[triangle]], y[simplices[triangle]], column, row)
    triangle, column, row = triangle[near], column[near], row[near]

    # ``transform`` is computed for the simplices that the object has when it is first asked for.
    used, triangle = np.unique(triangle, return_inverse=True)
    triangulation.simplices = simplices[used]
    transform = triangulation.transform
    if np.isnan(transform).any():
        return None
    affine = transform[triangle]
    dx, dy = column - affine[:, 2, 0], row - affine[:, 2, 1]
    first = affine[:, 0, 0] * dx + affine[:, 0, 1] * dy
    second = affine[:, 1, 0] * dx + affine[:, 1, 1] * dy
    third = 1.0 - first - second
    smallest = np.minimum(np.minimum(first, second), third)
    largest = np.maximum(np.maximum(first, second), third)
    inside = np.flatnonzero((smallest >= -_INSIDE) & (largest <= 1 + _INSIDE))

    corner = values[triangulation.simplices[triangle[inside]]]
    value = first[inside] * corner[:, 0] + second[inside] * corner[:, 1] + third[inside] * corner[:, 2]
    node = row[inside] * (2 * CANVAS_WIDTH) + column[inside]
    canvas = np.zeros(CANVAS_HEIGHT * 2 * CANVAS_WIDTH)
    canvas[node] = value
    differs = canvas[node] != value
    tiny = np.abs(value) <= _ALMOST_ZERO * np.abs(corner).max(axis=1, initial=0.0)
    if (differs & tiny).any():
        return None
    return canvas.reshape(CANVAS_HEIGHT, 2 * CANVAS_WIDTH)


def _is_near(
    x: NDArray[np.float64], y: NDArray[np.float64], column: NDArray[np.int64], row: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether node [C] lies in, or within rounding of, the triangle with the corners x, y [C, 3]."""
    cross = [
        (x[:, b] - x[:, a]) * (row - y[:, a]) - (y[:, b] - y[:, a]) * (column - x[:, a])
        for a, b in ((0, 1), (1, 2), (2, 0))
    ]
    lowest = np.minimum(np.minimum(cross[0], cross[1]), cross[2])
    highest = np.maximum(np.maximum(cross[0], cross[1]), cross[2])
    near: NDArray[np.bool_] = (lowest >= -_SLACK) | (highest <= _SLACK)
    return near


def _node_range(
    coordinate: NDArray[np.float64], simplices: NDArray[np.int32], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last node of each triangle's bounding interval on one axis, shape [T] each."""
    a, b, c = (coordinate[simplices[:, corner]] for corner in range(3))
    low = np.ceil(np.minimum(np.minimum(a, b), c) - _SLACK)
    high = np.floor(np.maximum(np.maximum(a, b), c) + _SLACK)
    return np.maximum(low, 0).astype(np.int64), np.minimum(high, size - 1).astype(np.int64)


_ANGLES: Final = np.arange(8) * np.pi / 8
_DIRECTIONS: Final = np.stack((np.cos(_ANGLES), np.sin(_ANGLES))).astype(np.float64)
_HORIZONTAL, _VERTICAL = 0, 4
_SHIFTS: Final = np.array([-CANVAS_WIDTH, 0, CANVAS_WIDTH])[:, None] * _DIRECTIONS[0]
"""What moving by one canvas width to either side does to the projections, shape [3, 8]."""


def extents_of(polygons: Sequence[CanvasPolygon]) -> NDArray[np.float64]:
    """Where an annotation's canvas can be above 0: intervals that hold each polygon in 8 directions.

    Shape [polygons, 2, 8]. A polygon so narrow that Qhull may fail on it reaches as far as rounding can
    move its points to a node; others end at the nodes within their hull.
    """
    extents = np.empty((len(polygons), 2, len(_ANGLES)))
    axes = [_HORIZONTAL, _VERTICAL]
    for extent, polygon in zip(extents, polygons, strict=True):
        projected = np.column_stack((polygon.x, polygon.y)) @ _DIRECTIONS
        extent[0], extent[1] = projected.min(axis=0), projected.max(axis=0)
        if _is_narrow(polygon):
            extent += [[-_ROUNDING], [_ROUNDING]]
        else:
            extent[0, axes] = np.ceil(extent[0, axes] - _SLACK)
            extent[1, axes] = np.floor(extent[1, axes] + _SLACK)
    return extents


def _is_narrow(polygon: CanvasPolygon) -> bool:
    """Whether all points lie within a tenth of a node of the line through two of them."""
    x, y = polygon.x - polygon.x[0], polygon.y - polygon.y[0]
    length = np.hypot(x, y)
    farthest = np.argmax(length)
    across = np.abs(x[farthest] * y - y[farthest] * x).max()
    return bool(across <= _NARROW * length[farthest])


def can_overlap(a: NDArray[np.float64], b: NDArray[np.float64]) -> bool:
    """Whether two annotations with these extents can have a canvas node in common.

    False only where some direction separates all their polygons, on the canvas and across its seam:
    their soft IoU is then 0 and their Pearson r undefined.
    """
    if not len(a) or not len(b):
        return False
    low, high = a[:, None, None, 0] + _SHIFTS, a[:, None, None, 1] + _SHIFTS
    other_low, other_high = b[None, :, None, 0], b[None, :, None, 1]
    touching = (low <= other_high + _SLACK) & (other_low <= high + _SLACK)
    return bool(touching.all(axis=-1).any())


def overlap_bound(gold: Canvas, extents: NDArray[np.float64]) -> float:
    """A number that the soft IoU of ``gold`` with any canvas of these extents cannot exceed.

    Both canvases are at most 1, so that the sum of minima is at most the ground truth's energy at the
    nodes that the other can reach, and the sum of maxima at least all its energy.
    """
    rows, columns = np.nonzero(gold)
    projected = np.column_stack((columns, rows)) @ _DIRECTIONS
    places = np.stack((projected, projected + _SHIFTS[2]))  # a node, and the one that folds onto it
    low, high = extents[:, None, None, 0], extents[:, None, None, 1]
    within = (places >= low - _SLACK) & (places <= high + _SLACK)
    reached = within.all(axis=-1).reshape(2 * len(extents), len(rows)).any(axis=0)
    energy = gold[rows, columns]
    total = energy.sum(dtype=np.float64)
    return float(energy[reached].sum(dtype=np.float64) / total) if total > 0 else 0.0


@frozen(eq=False)
class SparseCanvas:
    """A canvas by its nodes above 0: some two kilobytes instead of forty."""

    nodes: NDArray[np.uint16]
    values: NDArray[np.floating[Any]]

    @classmethod
    def of(cls, canvas: Canvas) -> SparseCanvas:
        flat = canvas.ravel()
        nodes = np.flatnonzero(flat)
        return cls(nodes.astype(np.uint16), flat[nodes])

    def dense(self) -> Canvas:
        flat = np.zeros(CANVAS_HEIGHT * CANVAS_WIDTH, dtype=self.values.dtype)
        flat[self.nodes] = self.values
        return flat.reshape(CANVAS_HEIGHT, CANVAS_WIDTH)


def soft_iou(a: Canvas, b: Canvas) -> float:
    """Sum of minima over sum of maxima of two canvases; 0 where both are empty."""
    union = np.maximum(a, b).sum()
    return float(np.minimum(a, b).sum() / union) if union >= SMALLEST_MASS else 0.0


def pearson(gold: Canvas, predicted: Canvas) -> float:
    """Pearson r over the nodes where ``gold`` is above 0.

    NaN with fewer than 2 such nodes or a standard deviation below 1e-12 on either side.
    """
    support = gold > 0
    if np.count_nonzero(support) < 2:
        return float("nan")
    g, p = gold[support].astype(np.float64), predicted[support].astype(np.float64)
    g_deviation, p_deviation = g.std(), p.std()
    if g_deviation < 1e-12 or p_deviation < 1e-12:
        return float("nan")
    return float(np.mean(((g - g.mean()) / g_deviation) * ((p - p.mean()) / p_deviation)))
