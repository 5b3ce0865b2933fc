"""Pairs of the revision 2026-04-02: COCO matching of masks, and pairs by peak distance.

Definition (seld_metrics spec, "2026-04-02"): COCO segmentation AP over images = frames, class-aware and
with all classes as one; beside it the revision's own Pearson r and distance error, over pairs of equal
class whose peaks lie within 20 degrees. Categories outside 0 .. 12 take no part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from floorkit_seld_metrics.annotation import Annotations, Polygon
from floorkit_seld_metrics.gaussian import Map, energy_map
from floorkit_seld_metrics.masks import SMALLEST_PEAK, Cap, Mask, cap_of, map_pearson, mask_iou, mask_of
from floorkit_seld_metrics.peaks import arc_degrees, gated_pairs, peak_point

COCO_THRESHOLDS: Final = tuple(np.linspace(0.5, 0.95, 10).tolist())
MOST_DETECTIONS: Final = 100
"""Detections that COCO AP looks at in one image and category."""
_SMALLEST_DISTANCE: Final = 1e-3


@frozen(eq=False)
class CocoMatches:
    """What COCO AP and the revision's own figures need of one recording.

    Parameters
    ----------
    detection
        Indices of the predictions that the revision keeps, by frame and file order, shape [D].
    matched, agnostic_matched
        Whether a detection takes a ground truth at each of the ten IoU thresholds, shape [D, 10].
    counts, agnostic_counts
        Whether it is among the 100 best of its image and category, shape [D].
    gold_kept
        Whether the revision keeps a label, shape [G].
    pairs
        Pairs by peak distance (gold index, predicted index), with ``pearson`` and ``distance_error``
        (percent), each of shape [K], NaN where undefined.
    images
        Number of frames with any annotation of the task's classes.
    """

    detection: NDArray[np.int64]
    matched: NDArray[np.bool_]
    agnostic_matched: NDArray[np.bool_]
    counts: NDArray[np.bool_]
    agnostic_counts: NDArray[np.bool_]
    gold_kept: NDArray[np.bool_]
    pairs: NDArray[np.int64]
    pearson: NDArray[np.float64]
    distance_error: NDArray[np.float64]
    images: int


@frozen(eq=False)
class _Rendered:
    index: int
    energy: Map
    mask: Mask


def match_masks(gold: Annotations, predicted: Annotations) -> CocoMatches:
    """COCO matching of the 10 % masks, and the pairs by peak distance."""
    gold_frames, predicted_frames = _frames_in_range(gold), _frames_in_range(predicted)
    frames = sorted(gold_frames.keys() | predicted_frames.keys())
    gold_kept = np.zeros(len(gold), dtype=bool)
    parts: list[tuple[Any, ...]] = []
    pairs: list[tuple[int, int, float, float]] = []
    for frame in frames:
        golds, predictions = gold_frames.get(frame, []), predicted_frames.get(frame, [])
        g_maps, p_maps = _rendered(gold, golds, predicted, predictions)
        kept_golds = [g for g in golds if g in g_maps or _is_kept(gold.polygons[g])]
        kept = [p for p in predictions if p in p_maps or _is_kept(predicted.polygons[p])]
        gold_kept[kept_golds] = True
        pairs += _pairs(gold, g_maps, predicted, p_maps)
        if kept:
            overlaps = np.zeros((len(kept), len(kept_golds)))
            rows, columns = _places(kept, p_maps), _places(kept_golds, g_maps)
            overlaps[np.ix_(rows, columns)] = mask_iou(
                [one.mask for one in g_maps.values()], [one.mask for one in p_maps.values()]
            )
            score, category = predicted.score[kept], predicted.category[kept]
            by_class = _coco_by_class(overlaps, score, category, gold.category[kept_golds])
            parts.append((kept, *by_class, *_coco(overlaps, score)))
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else None
    none = np.zeros((0, len(COCO_THRESHOLDS)), dtype=bool)
    detection, matched, counts, agnostic_matched, agnostic_counts = joined or (
        np.zeros(0, dtype=np.int64),
        none,
        none[:, 0],
        none,
        none[:, 0],
    )
    table = np.array(pairs, dtype=np.float64).reshape(-1, 4)
    return CocoMatches(
        detection,
        matched,
        agnostic_matched,
        counts,
        agnostic_counts,
        gold_kept,
        table[:, :2].astype(np.int64),
        table[:, 2],
        table[:, 3],
        len(frames),
    )


def _frames_in_range(annotations: Annotations) -> dict[int, list[int]]:
    """Annotations of the task's classes by frame; frames without any are left out."""
    in_range = annotations.in_range
    frames = {
        frame: [index for index in found if in_range[index]]
        for frame, found in annotations.by_frame().items()
    }
    return {frame: found for frame, found in frames.items() if found}


def _is_kept(polygons: Sequence[Polygon]) -> bool:
    """Whether the map's peak reaches 1e-9; without rendering where that is plain."""
    if not polygons:
        return False
    lowest = min(polygon[:, 2].min() for polygon in polygons)
    highest = max(polygon[:, 2].max() for polygon in polygons)
    if lowest >= 0 and (highest >= 2 * SMALLEST_PEAK or highest == 0):
        return bool(highest > 0)  # the pixel next to a point gets more than 0.9 of its intensity
    return float(energy_map(polygons).max()) >= SMALLEST_PEAK


def _places(kept: Sequence[int], maps: Mapping[int, _Rendered]) -> list[int]:
    return [place for place, index in enumerate(kept) if index in maps]


def _rendered(
    gold: Annotations, golds: Sequence[int], predicted: Annotations, predictions: Sequence[int]
) -> tuple[dict[int, _Rendered], dict[int, _Rendered]]:
    """Maps and masks, by index, of those annotations of a frame that can overlap one of the other side.

    Others have IoU 0 with all of them, and no peak within 20 degrees of theirs (a cap's radius is at least
    14 degrees). Annotations that the revision drops are left out.
    """
    g_caps = {g: cap_of(gold.polygons[g]) for g in golds} if predictions else {}
    p_caps = {p: cap_of(predicted.polygons[p]) for p in predictions} if golds else {}

    def near(one: Cap | None, others: Iterable[Cap | None]) -> bool:
        return any(one is None or other is None or one.meets(other) for other in others)

    def render(side: Annotations, caps: Mapping[int, Cap | None], others: Iterable[Cap | None]) -> Any:
        for index, cap in caps.items():
            if near(cap, others):
                energy = energy_map(side.polygons[index])
                mask = mask_of(energy, side.polygons[index])
                if mask is not None:
                    yield index, _Rendered(index, energy, mask)

    return dict(render(gold, g_caps, p_caps.values())), dict(render(predicted, p_caps, g_caps.values()))


def _coco(overlaps: NDArray[Any], score: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Greedy matching of one image and category as pycocotools does it.

    Parameters
    ----------
    overlaps
        IoU, shape [D, G].
    score
        Shape [D]; equal scores keep their order.

    Returns
    -------
    matched
        Whether a detection takes a ground truth, shape [D, 10] over the IoU thresholds.
    counts
        Whether the detection is among the 100 best, shape [D].
    """
    matched = np.zeros((len(score), len(COCO_THRESHOLDS)), dtype=bool)
    counts = np.zeros(len(score), dtype=bool)
    order = np.argsort(-score, kind="stable")[:MOST_DETECTIONS].tolist()
    counts[order] = True
    highest = overlaps.max(initial=0.0)
    rows = overlaps.tolist()
    for number, threshold in enumerate(COCO_THRESHOLDS):
        if highest < threshold:
            break
        free = set(range(overlaps.shape[1]))
        for detection in order:
            best, taken = min(threshold, 1 - 1e-10), -1
            for candidate in sorted(free):
                if rows[detection][candidate] >= best:
                    best, taken = rows[detection][candidate], candidate
            if taken >= 0:
                free.remove(taken)
                matched[detection, number] = True
    return matched, counts


def _coco_by_class(
    overlaps: NDArray[Any], score: NDArray[Any], category: NDArray[Any], gold_class: NDArray[Any]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    matched = np.zeros((len(score), len(COCO_THRESHOLDS)), dtype=bool)
    counts = np.zeros(len(score), dtype=bool)
    for one in np.unique(category):
        rows = np.flatnonzero(category == one)
        part = overlaps[np.ix_(rows, np.flatnonzero(gold_class == one))]
        matched[rows], counts[rows] = _coco(part, score[rows])
    return matched, counts


def _pairs(
    gold: Annotations,
    golds: Mapping[int, _Rendered],
    predicted: Annotations,
    predictions: Mapping[int, _Rendered],
) -> list[tuple[int, int, float, float]]:
    """Pairs of equal class whose peaks lie within 20 degrees: indices, Pearson r, distance error."""
    if not golds or not predictions:
        return []
    g, p = list(golds), list(predictions)
    arcs = arc_degrees(_peaks(gold, g), _peaks(predicted, p))
    arcs[gold.category[g][:, None] != predicted.category[p][None, :]] = 1000.0
    found = []
    for row, column in gated_pairs(arcs, 1000.0):
        a, b = golds[g[row]], predictions[p[column]]
        true, guess = np.nan_to_num([gold.distance[a.index], predicted.distance[b.index]], nan=0.0).tolist()
        error = abs(true - guess) / true * 100.0 if true > _SMALLEST_DISTANCE else np.nan
        found.append((a.index, b.index, map_pearson(a.energy, a.mask, b.energy, b.mask), error))
    return found


def _peaks(annotations: Annotations, indices: Sequence[int]) -> NDArray[np.float32]:
    """Peak x and y as float32, shape [N, 2]; (0, 0) for an annotation without positive intensity."""
    peaks = np.zeros((len(indices), 2), dtype=np.float32)
    for row, index in enumerate(indices):
        peak = peak_point(annotations.polygons[index])
        if peak is not None and peak[2] > 0:
            peaks[row] = peak[:2]
    return peaks
