"""Maps of the revision 2026-04-02: spherical Gaussians on the grid of 180 x 360 pixels.

Definition (seld_metrics spec, "2026-04-02"). A point at (x, y) with an intensity adds intensity *
exp(-4 * hav * 0.5 / sigma^2) to the pixels of its window: hav is the haversine term of the arc between
point and pixel, sigma = 6 degrees, the window reaches 4 sigma.

On the integer grid a point's window and weights depend on its row alone, so that a map is, for each
pair of rows, a circular convolution along azimuth: a product in the Fourier domain. Near the poles
the official window is the whole circle and takes one of its columns twice; that column depends on
rounding, so it is added point by point. Points off the grid are summed directly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from floorkit_seld_metrics.annotation import Polygon
from floorkit_seld_metrics.taxonomy import HEIGHT, WIDTH

SIGMA: Final = math.radians(6.0)
CUTOFF: Final = 4.0 * SIGMA
EXPONENT: Final = -4.0 * (0.5 / (SIGMA * SIGMA))
LAST_ROW: Final = HEIGHT - 1

Map = NDArray[np.float64]
"""Shape [180, 360]: elevation rows from the zenith, azimuth columns from -180 degrees."""

_AZIMUTH: Final = np.radians(np.arange(WIDTH) / WIDTH * 360.0 - 180.0)
_ELEVATION: Final = np.radians(90.0 - np.arange(HEIGHT) / LAST_ROW * 180.0)


@frozen(eq=False)
class PointWindows:
    """Directions of P points and the pixels that each of them reaches; all of shape [P].

    Rows ``first_row`` .. ``stop_row`` - 1. Columns ``first`` .. ``stop`` - 1 where they lie on the grid;
    otherwise the window crosses the seam and is the two ranges from ``first`` mod 360 to the right edge
    and from the left edge to ``stop`` mod 360 (0 standing for 360), and a column in both counts twice.
    Floor and ceil are taken of degrees that went through radians, as the official code does it: near
    the poles half a unit in the last place decides.
    """

    azimuth: NDArray[np.float64]
    elevation: NDArray[np.float64]
    cosine: NDArray[np.float64]
    first_row: NDArray[np.int64]
    stop_row: NDArray[np.int64]
    first: NDArray[np.int64]
    stop: NDArray[np.int64]

    @classmethod
    def of(cls, x: NDArray[np.float64], y: NDArray[np.float64]) -> PointWindows:
        """The windows of points at ``x``, ``y``; row 180 lies one degree behind the nadir."""
        azimuth = np.radians(x / WIDTH * 360.0 - 180.0)
        elevation = np.radians(90.0 - y / LAST_ROW * 180.0)
        cosine = np.array([math.cos(angle) for angle in elevation.tolist()])
        highest = np.minimum(math.pi / 2, elevation + CUTOFF)
        lowest = np.maximum(-math.pi / 2, elevation - CUTOFF)
        first_row = np.floor((math.pi / 2 - highest) / math.pi * LAST_ROW)
        stop_row = np.ceil((math.pi / 2 - lowest) / math.pi * LAST_ROW) + 1
        half = np.degrees(np.minimum(math.pi, CUTOFF / np.maximum(cosine, 0.087)))
        centre = np.degrees(azimuth)
        first = np.floor((centre - half + 180.0) / 360.0 * WIDTH)
        stop = np.ceil((centre + half + 180.0) / 360.0 * WIDTH) + 1
        return cls(
            azimuth,
            elevation,
            cosine,
            np.maximum(first_row, 0).astype(np.int64),
            np.minimum(stop_row, HEIGHT).astype(np.int64),
            first.astype(np.int64),
            stop.astype(np.int64),
        )

    @property
    def crosses(self) -> NDArray[np.bool_]:
        """Whether the window crosses the seam."""
        return (self.first < 0) | (self.stop > WIDTH)

    def times(self, column: int | NDArray[np.int64]) -> NDArray[np.int64]:
        """How often the window has the column: 0, 1 or 2. ``column`` is one, or broadcasts with [P]."""
        inside = (column >= self.first) & (column < self.stop)
        right = column >= self.first % WIDTH
        left = column < np.where(self.stop % WIDTH, self.stop % WIDTH, WIDTH)
        return np.where(self.crosses, right.astype(np.int64) + left, inside)


def _weights(elevation: float, azimuth: float, rows: slice, columns: slice) -> Map:
    """What a point of intensity 1 adds to the pixels of a window."""
    across = math.cos(elevation) * np.cos(_ELEVATION[rows])
    haversine = (
        np.square(np.sin((_ELEVATION[rows] - elevation) / 2))[:, None]
        + across[:, None] * np.square(np.sin((_AZIMUTH[columns] - azimuth) / 2))[None, :]
    )
    return np.exp(haversine * EXPONENT)


@frozen(eq=False)
class _Kernels:
    """What points on the grid add to a map, for every row of points.

    Parameters
    ----------
    spectra
        Shape [181, 180, 181]: azimuth frequency, row of the map, row of the point. A window is symmetric
        in azimuth, so that its spectrum is real. 47 MB.
    first_row, stop_row
        Rows of the map that a row of points reaches, shape [181].
    times
        For rows whose windows are the whole circle: how often the window of a point at x has a column,
        shape [361, 360]; the spectrum has every column once.
    """

    spectra: NDArray[np.float64]
    first_row: NDArray[np.int64]
    stop_row: NDArray[np.int64]
    times: Mapping[int, NDArray[np.int64]]


@cache
def _kernels() -> _Kernels:
    """Every row's kernel; computed once in a process."""
    places = np.arange(WIDTH + 1)
    ends = np.zeros((2, HEIGHT + 1), dtype=np.int64)
    spectra = np.zeros((WIDTH // 2 + 1, HEIGHT, HEIGHT + 1))
    times = {}
    for y in range(HEIGHT + 1):
        windows = PointWindows.of(places.astype(np.float64), np.full(WIDTH + 1, float(y)))
        rows = slice(int(windows.first_row[0]), int(windows.stop_row[0]))
        unit = _weights(float(windows.elevation[0]), _AZIMUTH[0], rows, slice(None))
        before, behind = places - windows.first, windows.stop - 1 - places
        reach = int(before[0])
        if (before == reach).all() and (behind == reach).all() and 2 * reach < WIDTH:
            unit[:, reach + 1 : WIDTH - reach] = 0.0
        else:
            times[y] = np.stack([windows.times(column) for column in range(WIDTH)], axis=1)
        spectra[:, rows, y] = np.fft.rfft(unit, axis=1).real.T
        ends[:, y] = rows.start, rows.stop
    return _Kernels(spectra, ends[0], ends[1], times)


def energy_map(polygons: Sequence[Polygon]) -> Map:
    """The map of one annotation, shape [180, 360]."""
    result = np.zeros((HEIGHT, WIDTH))
    if not polygons:
        return result
    points = np.concatenate(polygons) if len(polygons) > 1 else polygons[0]
    on_grid = (points[:, :2] == np.rint(points[:, :2])).all(axis=1)
    if on_grid.all():
        _add_gridded(result, points)
    else:
        _add_gridded(result, points[on_grid])
        _add_directly(result, points[~on_grid])
    return result


def _add_gridded(result: Map, points: NDArray[np.float64]) -> None:
    x, y = points[:, 0].astype(np.intp), points[:, 1].astype(np.intp)
    size = (HEIGHT + 1) * WIDTH
    energy = np.bincount(y * WIDTH + x % WIDTH, weights=points[:, 2], minlength=size).reshape(-1, WIDTH)
    occupied = np.flatnonzero(energy.any(axis=1))
    if not len(occupied):
        return
    kernels = _kernels()
    of_points = slice(occupied[0], occupied[-1] + 1)
    of_map = slice(kernels.first_row[occupied[0]], kernels.stop_row[occupied[-1]])
    spectra = np.ascontiguousarray(np.fft.rfft(energy[of_points], axis=1).T)
    mixed = kernels.spectra[:, of_map, of_points] @ spectra.view(np.float64).reshape(*spectra.shape, 2)
    result[of_map] += np.fft.irfft(mixed.view(np.complex128)[..., 0].T, n=WIDTH, axis=1)
    for row in occupied.tolist():
        if row in kernels.times:
            here = y == row
            _correct(result, kernels.times[row], x[here], float(row), points[here, 2])


def _correct(
    result: Map, times: NDArray[np.int64], x: NDArray[np.intp], y: float, intensity: NDArray[np.float64]
) -> None:
    """Add what the whole-circle windows of points of row ``y`` have twice, take away what they lack."""
    windows = PointWindows.of(x.astype(np.float64), np.full(len(x), y))
    for point, column in np.argwhere(times[x] != 1).tolist():
        rows = slice(int(windows.first_row[point]), int(windows.stop_row[point]))
        pixel = slice(column, column + 1)
        weight = _weights(windows.elevation[point], windows.azimuth[point], rows, pixel)
        result[rows, pixel] += (times[x[point], column] - 1) * intensity[point] * weight


def _add_directly(result: Map, points: NDArray[np.float64]) -> None:
    windows = PointWindows.of(points[:, 0], points[:, 1])
    for point, crosses in enumerate(windows.crosses.tolist()):
        first, stop = int(windows.first[point]), int(windows.stop[point])
        ranges = [slice(first, stop)]
        if crosses:
            ranges = [slice(first % WIDTH, WIDTH), slice(0, stop % WIDTH or WIDTH)]
        rows = slice(int(windows.first_row[point]), int(windows.stop_row[point]))
        for columns in ranges:
            result[rows, columns] += points[point, 2] * _weights(
                windows.elevation[point], windows.azimuth[point], rows, columns
            )
