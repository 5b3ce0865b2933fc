"""``compress``: the mildest thinning that brings each prediction file below the submission limit.

Steps, each tried with all milder ones before it: shortest notation; intensities to 4, then 3 decimals;
points below 10 % of their annotation's peak dropped; points thinned to every second, third, ... pixel of
both axes around the peak; at last 2 decimals and higher shares. The peak point always stays, so that Macro
Class-F1 cannot change but by rounding, and points keep their order, on which the triangulation depends.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from floorkit.core.errors import InputError, Problem
from floorkit_seld_metrics.annotation import Annotations, Polygon
from floorkit_seld_metrics.documents import read_document
from floorkit_seld_metrics.folders import annotation_text, facts_of, write_document

SHORTEST_POINT = len("[0,0,0],")


@frozen
class Step:
    """One degree of compression.

    Parameters
    ----------
    decimals
        Decimals of the intensities; None for all.
    share
        Points below this share of their annotation's peak are dropped.
    stride
        Every how many pixels a point stays, along both axes.
    """

    decimals: int | None = None
    share: float = 0.0
    stride: int = 1

    def __str__(self) -> str:
        words = [f"{self.decimals} decimals" if self.decimals is not None else "all decimals"]
        if self.share:
            words.append(f"points from {100 * self.share:g} % of the peak")
        if self.stride > 1:
            words.append(f"every {self.stride}th pixel")
        return ", ".join(words)


STEPS = (
    Step(),
    Step(4),
    Step(3),
    Step(3, 0.1),
    *(Step(3, 0.1, stride) for stride in range(2, 17)),
    *(Step(2, share, 16) for share in (0.1, 0.2, 0.3, 0.5)),
)


@frozen
class Compressed:
    """What became of one file."""

    path: Path
    before: int
    after: int
    points_before: int
    points_after: int
    step: Step


def compress(source: Path, target: Path, limit: int) -> Compressed:
    """Write ``source`` anew with at most ``limit`` bytes, by the mildest step that fits.

    Raises
    ------
    InputError
        Invalid predictions, or annotations too many for the limit.
    """
    annotations = read_document(source, str(source), scored=True).annotations
    before = _points(annotations)
    for step in STEPS:
        kept = [tuple(thinned(annotations.polygons[index], step)) for index in range(len(annotations))]
        points = sum(len(polygon) for polygons in kept for polygon in polygons)
        if points * SHORTEST_POINT > limit:
            continue
        texts = list(_texts(annotations, kept, step))
        if sum(len(text) + 1 for text in texts) + 40 <= limit:
            after = write_document(target, texts)
            return Compressed(target, source.stat().st_size, after, before, points, step)
    raise InputError(
        Problem(
            "too many annotations for the limit",
            str(source),
            f"{len(annotations)} annotations do not fit even with {STEPS[-1]}",
            f"at most {limit:,} bytes",
            "predict fewer sources a frame, or raise --limit-bytes",
        )
    )


def _points(annotations: Annotations) -> int:
    return sum(len(polygon) for polygons in annotations.polygons for polygon in polygons)


def _texts(annotations: Annotations, kept: list[tuple[Polygon, ...]], step: Step) -> Iterator[str]:
    for index, polygons in enumerate(kept):
        yield annotation_text(facts_of(annotations, index), polygons, step.decimals)


def thinned(polygons: tuple[Polygon, ...], step: Step) -> Iterator[NDArray[np.float64]]:
    """The points that stay, in file order; polygons that lose all points are left out."""
    if not polygons:
        return
    peaks = [float(polygon[:, 2].max()) for polygon in polygons]
    strongest = int(np.argmax(peaks))
    peak = polygons[strongest][int(np.argmax(polygons[strongest][:, 2]))]
    for number, polygon in enumerate(polygons):
        stays = polygon[:, 2] >= step.share * peak[2]
        if step.stride > 1:
            from_peak = np.rint(polygon[:, :2] - peak[:2])
            stays &= (from_peak % step.stride == 0).all(axis=1)
        if number == strongest:
            stays[int(np.argmax(polygon[:, 2]))] = True
        if stays.any():
            yield polygon[stays]
