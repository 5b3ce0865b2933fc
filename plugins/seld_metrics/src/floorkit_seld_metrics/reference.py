"""The protocol as plain, slow loops over JSON objects, written from the spec; tests fuzz the kernel
against it and benchmarks take it as their yardstick.

It shares nothing with the kernel but the names of classes and revisions. Figures of recordings are
computed from ``recordings``: pairs of annotation lists (ground truth, predictions), each annotation a
mapping as it stands in the files. NaN stands for what does not exist.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.interpolate import griddata
from scipy.ndimage import binary_dilation
from scipy.optimize import linear_sum_assignment

from floorkit_seld_metrics.taxonomy import N_CLASSES, SOFT_THRESHOLDS

Annotation = Mapping[str, Any]
Recording = tuple[Sequence[Annotation], Sequence[Annotation]]
Array = np.ndarray[Any, Any]

NAN = float("nan")


def load(path: Path) -> list[Annotation]:
    """The annotations of a plain JSON file as Python objects, their points checked."""
    annotations: list[Annotation] = json.loads(path.read_text(encoding="utf-8"))["annotations"]
    for index, annotation in enumerate(annotations):
        for polygon in filter(None, annotation["segmentation"]):
            points = np.array(polygon, dtype=np.float64)
            if points.ndim != 2 or points.shape[1] != 3:
                raise ValueError(f"annotation {index}: a polygon is no list of triplets")
            if (points[:, :2] < 0).any() or (points[:, :2] > (360, 180)).any():
                raise ValueError(f"annotation {index}: a point lies outside the sphere")
    return annotations


def _is_class(annotation: Annotation) -> bool:
    return bool(0 <= annotation["category_id"] < N_CLASSES)


def _buckets(annotations: Iterable[Annotation], *keys: str) -> dict[tuple[Any, ...], list[Annotation]]:
    found: dict[tuple[Any, ...], list[Annotation]] = {}
    for annotation in annotations:
        found.setdefault(tuple(annotation[key] for key in keys), []).append(annotation)
    return found


# --- soft maps ----------------------------------------------------------------------------------


def soft_polygon(points: Sequence[Sequence[float]]) -> Array:
    """One polygon on the 50 x 100 canvas."""
    numbers = np.array(points, dtype=np.float32)
    x = numbers[:, 0] * (100 / 360)
    y = numbers[:, 1] * (50 / 180)
    ordered = np.sort(x)
    if len(x) > 1:
        gap = int(np.argmax(ordered[1:] - ordered[:-1]))
        if ordered[gap + 1] - ordered[gap] > 50:
            x = np.where(x <= ordered[gap], x + 100, x)
    wide: Array | None = None
    if len(x) >= 3:
        try:
            nodes = np.meshgrid(np.arange(200), np.arange(50))
            wide = griddata((x, y), numbers[:, 2], tuple(nodes), method="linear", fill_value=0.0)
            wide = np.clip(np.nan_to_num(wide), 0.0, None)
        except (ValueError, RuntimeError):  # QhullError is a RuntimeError
            wide = None
    if wide is None:
        wide = np.zeros((50, 200), dtype=np.float32)
        for column, row, intensity in zip(x, y, numbers[:, 2], strict=True):
            at = min(max(round(float(row)), 0), 49), min(max(round(float(column)), 0), 199)
            wide[at] = max(wide[at], intensity)
    return np.maximum(wide[:, :100], wide[:, 100:])


def soft_map(annotation: Annotation) -> Array:
    """The normalised canvas of an annotation."""
    canvas: Array = np.zeros((50, 100), dtype=np.float32)
    for polygon in annotation["segmentation"]:
        if polygon:
            canvas = np.maximum(canvas, soft_polygon(polygon))
    largest = canvas.max()
    return canvas / largest if largest > 1e-8 else canvas


def soft_iou(a: Array, b: Array) -> float:
    union = np.maximum(a, b).sum()
    return float(np.minimum(a, b).sum() / union) if union >= 1e-8 else 0.0


def soft_pearson(gold: Array, predicted: Array) -> float:
    g = gold[gold > 0].astype(np.float64)
    p = predicted[gold > 0].astype(np.float64)
    if len(g) < 2 or g.std() < 1e-12 or p.std() < 1e-12:
        return NAN
    return float((((g - g.mean()) / g.std()) * ((p - p.mean()) / p.std())).mean())


def soft_pairs(
    golds: Sequence[Annotation], predictions: Sequence[Annotation]
) -> list[tuple[float, float, float]]:
    """(score, IoU, Pearson r) of every prediction of one bucket."""
    gold_maps, maps = [soft_map(one) for one in golds], [soft_map(one) for one in predictions]
    rows = [(float(one["score"]), 0.0, NAN) for one in predictions]
    if not golds or not predictions:
        return rows
    iou = np.array([[soft_iou(p, g) for g in gold_maps] for p in maps], dtype=np.float32)
    for p, g in zip(*linear_sum_assignment(-iou), strict=True):
        rows[p] = rows[p][0], float(iou[p, g]), soft_pearson(gold_maps[g], maps[p])
    return rows


def soft_ap(rows: Sequence[tuple[float, float, float]], threshold: float, n_gold: int) -> float:
    """Float32 AP over 101 recall levels; ties keep the order of ``rows``."""
    order = sorted(range(len(rows)), key=lambda i: -rows[i][0])
    true = np.float32(0)
    false = np.float32(0)
    recalls: list[np.float32] = []
    precisions: list[np.float32] = []
    for i in order:
        if rows[i][1] >= threshold:
            true += np.float32(1)
        else:
            false += np.float32(1)
        recalls.append(true / np.float32(n_gold))
        precisions.append(true / (true + false + np.float32(1e-9)))
    recall, precision = np.array(recalls), np.array(precisions)
    total = np.float32(0)
    for level in np.linspace(0, 1, 101):
        reached = recall.astype(np.float64) >= level
        total += precision[reached].max() if reached.any() else np.float32(0)
    return float(total / np.float32(101))


def soft_figures(recordings: Sequence[Recording], revision: str, agnostic: bool) -> dict[str, Any]:
    """AP and Pearson r of one revision from 2026-05-18 on."""
    rows: list[tuple[int, tuple[float, float, float]]] = []
    n_gold = [0] * N_CLASSES
    if agnostic:
        recordings = [
            ([{**one, "category_id": 0} for one in golds], [{**one, "category_id": 0} for one in predictions])
            for golds, predictions in recordings
        ]
    for golds, predictions in recordings:
        keys = ("metadata_frame_index", "category_id")
        gold_buckets, buckets = _buckets(golds, *keys), _buckets(predictions, *keys)
        for key in sorted(gold_buckets.keys() | buckets.keys()):
            if 0 <= key[1] < N_CLASSES:
                n_gold[key[1]] += len(gold_buckets.get(key, []))
                pairs = soft_pairs(gold_buckets.get(key, []), buckets.get(key, []))
                rows += [(key[1], row) for row in pairs]
    thresholds = SOFT_THRESHOLDS[revision]
    drops_empty = revision != "2026-06-30"

    def aps(of: Sequence[tuple[float, float, float]], n: int) -> list[float]:
        if n == 0 or (not of and drops_empty):
            return [NAN] * len(thresholds)
        return [soft_ap(of, threshold, n) if of else 0.0 for threshold in thresholds]

    by_class = [[row for c, row in rows if c == one] for one in range(N_CLASSES)]
    ap = [aps(by_class[c], n_gold[c]) for c in range(N_CLASSES)]
    r = [_mean([row[2] for row in by_class[c]]) if n_gold[c] else NAN for c in range(N_CLASSES)]
    return {
        "n_gt": n_gold,
        "n_det": [len(found) for found in by_class],
        "AP_per_thr": ap,
        "macro_mAP": _mean([_mean(found) for found in ap]),
        "micro_mAP": _mean(aps([row for _, row in rows], sum(n_gold))),
        "pearson_r": r,
        "macro_pearson_r": _mean(r),
        "micro_pearson_r": _mean([row[2] for _, row in rows]),
    }


def _mean(values: Sequence[float]) -> float:
    """Mean of the numbers among ``values``; NaN where there is none."""
    numbers = [value for value in values if not math.isnan(value)]
    return float(np.mean(numbers)) if numbers else NAN


# --- 2026-04-02 ---------------------------------------------------------------------------------

SIGMA = math.radians(6.0)
COLUMN_AZIMUTH = np.radians(np.arange(360, dtype=np.float32) / 360 * 360 - 180)
ROW_ELEVATION = np.radians(90 - np.arange(180, dtype=np.float32) / 179 * 180)


def gaussian_map(annotation: Annotation) -> Array:
    """The 180 x 360 map of an annotation, summed point by point in float32."""
    canvas = np.zeros((180, 360), dtype=np.float32)
    for polygon in annotation["segmentation"]:
        for x, y, intensity in polygon:
            azimuth = math.radians(x / 360 * 360 - 180)
            elevation = math.radians(90 - y / 179 * 180)
            top = min(math.pi / 2, elevation + 4 * SIGMA)
            bottom = max(-math.pi / 2, elevation - 4 * SIGMA)
            rows = slice(
                max(0, math.floor((math.pi / 2 - top) / math.pi * 179)),
                min(180, math.ceil((math.pi / 2 - bottom) / math.pi * 179) + 1),
            )
            half = math.degrees(min(math.pi, 4 * SIGMA / max(math.cos(elevation), 0.087)))
            centre = math.degrees(azimuth)
            left = math.floor((centre - half + 180) / 360 * 360)
            right = math.ceil((centre + half + 180) / 360 * 360) + 1
            parts = [slice(left, right)]
            if left < 0 or right > 360:
                parts = [slice(left % 360, 360), slice(0, right % 360 or 360)]
            for columns in parts:
                vertical = np.sin((ROW_ELEVATION[rows] - elevation) / 2) ** 2
                horizontal = np.sin((COLUMN_AZIMUTH[columns] - azimuth) / 2) ** 2
                cosines = math.cos(elevation) * np.cos(ROW_ELEVATION[rows])
                haversine = vertical[:, None] + cosines[:, None] * horizontal[None, :]
                canvas[rows, columns] += np.exp(haversine * (-4 * (0.5 / (SIGMA * SIGMA)))) * intensity
    return canvas


def peak(annotation: Annotation, floor: float) -> tuple[float, float]:
    """(x, y) of the first point with the highest intensity above ``floor``; (0, 0) where there is none."""
    best, where = floor, (0.0, 0.0)
    for polygon in annotation["segmentation"]:
        for x, y, intensity in polygon:
            if intensity > best:
                best, where = intensity, (x, y)
    return where


def arcs(gold: Sequence[tuple[float, float]], predicted: Sequence[tuple[float, float]], kind: type) -> Array:
    """Great-circle distances in degrees, shape [G, P]."""
    directions = []
    for points in (gold, predicted):
        places: Array = np.array(points, dtype=kind)
        azimuth = np.radians(places[:, 0] / 360 * 360 - 180)
        directions.append((azimuth, np.radians(90 - places[:, 1] / 179 * 180)))
    (a_azimuth, a_elevation), (b_azimuth, b_elevation) = directions
    haversine = (
        np.sin((a_elevation[:, None] - b_elevation) / 2) ** 2
        + np.cos(a_elevation)[:, None]
        * np.cos(b_elevation)
        * np.sin((a_azimuth[:, None] - b_azimuth) / 2) ** 2
    )
    distance: Array = np.degrees(2 * np.arcsin(np.sqrt(np.clip(haversine, 0, 1))))
    return distance


def coco_figures(recordings: Sequence[Recording]) -> dict[str, Any]:
    """AP, Pearson r and distance error of 2026-04-02, by pycocotools itself."""
    images: list[dict[str, Any]] = []
    gold_rows: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    correlations: list[float] = []
    errors: list[float] = []
    for golds, predictions in recordings:
        sides = [_buckets(filter(_is_class, side), "metadata_frame_index") for side in (golds, predictions)]
        for frame in sorted(sides[0].keys() | sides[1].keys()):
            image = len(images) + 1
            images.append({"id": image, "width": 360, "height": 180})
            g = [made for one in sides[0].get(frame, []) if (made := _masked(one))]
            p = [made for one in sides[1].get(frame, []) if (made := _masked(one))]
            for one, _, mask in g:
                row = _coco_row(one, image, mask)
                gold_rows.append(row | {"id": len(gold_rows) + 1, "iscrowd": 0, "area": int(mask.sum())})
            rows += [_coco_row(one, image, mask) | {"score": float(one["score"])} for one, _, mask in p]
            for i, j in _peak_pairs([one for one, _, _ in g], [one for one, _, _ in p]):
                true, guess = (float(side[0].get("distance", 0.0)) for side in (g[i], p[j]))
                if true > 1e-3:
                    errors.append(abs(true - guess) / true * 100)
                region = binary_dilation(g[i][2] | p[j][2], iterations=2)
                a, b = g[i][1][region], p[j][1][region]
                if np.ptp(a) > 1e-7 and np.ptp(b) > 1e-7:
                    correlations.append(float(np.corrcoef(a, b)[0, 1]))
    return {
        "n_gt": len(gold_rows),
        "n_det": len(rows),
        "n_images": len(images),
        "class_aware": _coco_ap(images, gold_rows, rows),
        "class_agnostic": _coco_ap(
            images, *([row | {"category_id": 1} for row in t] for t in (gold_rows, rows))
        ),
        "pearson_r": _mean(correlations),
        "distance_mape_percent": _mean(errors),
    }


def _masked(annotation: Annotation) -> tuple[Annotation, Array, Array] | None:
    energy = gaussian_map(annotation)
    highest = energy.max()
    return None if highest < 1e-9 else (annotation, energy, energy >= 0.1 * highest)


def _coco_row(annotation: Annotation, image: int, mask: Array) -> dict[str, Any]:
    from pycocotools import mask as coco_mask

    code = coco_mask.encode(np.asfortranarray(mask.astype(np.uint8)))
    box = [float(side) for side in coco_mask.toBbox(code)]
    return {
        "image_id": image,
        "category_id": annotation["category_id"] + 1,
        "segmentation": code,
        "bbox": box,
    }


def _coco_ap(images: Any, gold_rows: Any, rows: Any) -> list[float]:
    """AP over the thresholds and levels, one a category with ground truth, then the mean of all."""
    import contextlib
    import io

    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    if not rows or not gold_rows:
        return [NAN]
    categories = [{"id": number + 1, "name": str(number)} for number in range(N_CLASSES)]
    with contextlib.redirect_stdout(io.StringIO()):
        gold = COCO()
        gold.dataset = {"images": images, "annotations": gold_rows, "categories": categories}
        gold.createIndex()
        evaluation = COCOeval(gold, gold.loadRes(rows), iouType="segm")
        evaluation.evaluate()
        evaluation.accumulate()
    precision = evaluation.eval["precision"][:, :, :, 0, 2]
    per_class = [precision[:, :, k] for k in range(N_CLASSES)]
    aps = [float(one[one > -1].mean()) if (one > -1).any() else NAN for one in per_class]
    return [*aps, float(precision[precision > -1].mean())]


def _peak_pairs(golds: Sequence[Annotation], predictions: Sequence[Annotation]) -> list[tuple[int, int]]:
    if not golds or not predictions:
        return []
    cost = arcs([peak(one, 0.0) for one in golds], [peak(one, 0.0) for one in predictions], np.float32)
    for i, one in enumerate(golds):
        for j, other in enumerate(predictions):
            if one["category_id"] != other["category_id"] or cost[i, j] > 20:
                cost[i, j] = 1000
    return [(i, j) for i, j in zip(*linear_sum_assignment(cost), strict=True) if cost[i, j] <= 20]


# --- Macro Class-F1 -----------------------------------------------------------------------------


def class_f1_figures(recordings: Sequence[Recording]) -> dict[str, Any]:
    """Confusion matrix and Macro Class-F1; NaN where a matched frame has an annotation without points."""
    matrix = np.zeros((N_CLASSES, N_CLASSES), dtype=np.int64)
    present: set[int] = set()
    pointless = False
    for golds, predictions in recordings:
        present |= {one["category_id"] for one in golds if _is_class(one)}
        sides = [_buckets(side, "metadata_frame_index") for side in (golds, predictions)]
        for frame in sides[0].keys() & sides[1].keys():
            g, p = sides[0][frame], sides[1][frame]
            if not all(any(one["segmentation"]) for one in (*g, *p)):
                pointless = True
                continue
            cost = arcs([peak(one, -math.inf) for one in g], [peak(one, -math.inf) for one in p], np.float64)
            cost[cost > 20] = 1e9
            for i, j in zip(*linear_sum_assignment(cost), strict=True):
                if cost[i, j] <= 20 and _is_class(g[i]) and _is_class(p[j]):
                    matrix[g[i]["category_id"], p[j]["category_id"]] += 1
    scores = []
    for one in sorted(present):
        total = matrix[one].sum() + matrix[:, one].sum()
        scores.append(2 * matrix[one, one] / total if total else 0.0)
    return {"confusion": matrix, "macro_f1": NAN if pointless else _mean(scores)}
