"""The score function: one recording's labels and predictions to tables of sufficient statistics.

Tables
------
``detections`` (with a revision from 2026-05-18 on)
    One row a prediction, by frame and file order: class, frame, index, score, and the IoU (float32, 0
    without a pair) and Pearson r (NaN where undefined) of its pair, class-aware and class-agnostic.
``coco`` (with 2026-04-02)
    One row a prediction that the revision keeps: class, score, whether it takes a ground truth at each of
    the ten IoU thresholds [N, 10], and whether it is among the 100 that count, both ways.
``pairs`` (with 2026-04-02)
    One row a pair by peak distance: class, Pearson r, distance error in percent.
``classes``
    One row a class and one for all categories out of range: number of labels, of labels that 2026-04-02
    keeps, and the row of the confusion matrix [14, 13] of spatially matched pairs.
``recording``
    One row: what was counted beside the figures, and what identifies the two files.
``pictures``
    The frames that the report may draw: kind, mean IoU, the maps [N, 50, 100] of both sides.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any, Final
from weakref import ref

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from floorkit.core.values import Table
from floorkit_seld_metrics import softmap
from floorkit_seld_metrics.annotation import Annotations
from floorkit_seld_metrics.class_f1 import match_peaks
from floorkit_seld_metrics.coco_matching import match_masks
from floorkit_seld_metrics.data import LABEL_ENDINGS, PREDICTION_ENDINGS, Gold
from floorkit_seld_metrics.documents import Document
from floorkit_seld_metrics.params import SeldMetricsParams
from floorkit_seld_metrics.soft_matching import Kept, SoftMatches, match_soft_maps
from floorkit_seld_metrics.taxonomy import CODED_CLASSES, N_CLASSES, OUT_OF_RANGE

PICTURE_KINDS: Final = ("best", "worst", "random")
ENDINGS: Final = (*LABEL_ENDINGS, *PREDICTION_ENDINGS)
_CLASS: Final[dict[str, tuple[str, ...]]] = {"class": CODED_CLASSES}


@lru_cache(maxsize=1)
def _rendered(gold: ref[Gold]) -> Kept:
    """The soft maps of a Gold that scoring has needed so far.

    The same Gold is scored against one run after the other, so that ground truth is rendered once. The
    reference is weak: the labels of one recording are gone before the next one's are read.
    """
    return {}


def score(
    gold: Gold, prediction: Document, params: SeldMetricsParams, name: str, seed: int
) -> dict[str, Table]:
    """Score one recording under every requested revision.

    Parameters
    ----------
    name, seed
        The recording's name and the entry's seed, which draw the random pictures.
    """
    with threadpool_limits(1):  # the matrices are tiny: BLAS threads would only wait for each other
        return _score(gold, prediction, params, name, seed)


def _score(
    gold: Gold, prediction: Document, params: SeldMetricsParams, name: str, seed: int
) -> dict[str, Table]:
    labels, predicted = gold.document.annotations, prediction.annotations
    confusion = match_peaks(labels, predicted)
    classes: dict[str, Any] = {
        "class": np.arange(len(CODED_CLASSES)),
        "n_gt": np.bincount(class_codes(labels), minlength=len(CODED_CLASSES)),
        "coco_n_gt": np.zeros(len(CODED_CLASSES), dtype=np.int64),
        "confusion": np.vstack((confusion.matrix, np.zeros((1, N_CLASSES), dtype=np.int64))),
    }
    facts = {
        "labels": len(labels),
        "predictions": len(predicted),
        "labels_out_of_range": int((~labels.in_range).sum()),
        "predictions_out_of_range": int((~predicted.in_range).sum()),
        "labels_empty": labels.polygons.count(()),
        "predictions_empty": predicted.polygons.count(()),
        "pointless_in_matched_frames": confusion.pointless,
        "coco_images": 0,
        "coco_labels_dropped": 0,
        "coco_predictions_dropped": 0,
    }
    tables: dict[str, Table] = {}
    if params.soft_revisions:
        matches = match_soft_maps(labels, predicted, _rendered(ref(gold)))
        tables["detections"] = _detections(predicted, matches)
        count = 0 if prediction.is_control else params.pictures
        tables["pictures"] = _pictures(labels, predicted, matches, count, f"{seed} {name}")
    if params.has_coco:
        coco = match_masks(labels, predicted)
        kept = coco.detection
        classes["coco_n_gt"] = np.bincount(labels.category[coco.gold_kept], minlength=len(CODED_CLASSES))
        facts["coco_images"] = coco.images
        facts["coco_labels_dropped"] = int((labels.in_range & ~coco.gold_kept).sum())
        facts["coco_predictions_dropped"] = int(predicted.in_range.sum()) - len(kept)
        tables["coco"] = Table(
            {
                "class": predicted.category[kept],
                "score": predicted.score[kept],
                "matched": coco.matched,
                "counts": coco.counts,
                "agnostic_matched": coco.agnostic_matched,
                "agnostic_counts": coco.agnostic_counts,
            },
            _CLASS,
        )
        tables["pairs"] = Table(
            {
                "class": labels.category[coco.pairs[:, 0]],
                "pearson": coco.pearson,
                "distance_error": coco.distance_error,
            },
            _CLASS,
        )
    tables["classes"] = Table(classes, _CLASS)
    tables["recording"] = Table(
        {**{key: [value] for key, value in facts.items()}, **_files(gold.document, prediction)}
    )
    return tables


def class_codes(annotations: Annotations) -> NDArray[np.int64]:
    """0 .. 12 for the task's classes, 13 for every other category, shape [N]."""
    return np.where(annotations.in_range, annotations.category, OUT_OF_RANGE)


def _detections(predicted: Annotations, matches: SoftMatches) -> Table:
    order = np.argsort(predicted.frame, kind="stable")
    columns: dict[str, NDArray[Any]] = {
        "class": class_codes(predicted),
        "frame": predicted.frame,
        "index": np.arange(len(predicted)),
        "score": predicted.score,
        "iou": matches.iou,
        "pearson": matches.pearson,
        "agnostic_iou": matches.agnostic_iou,
        "agnostic_pearson": matches.agnostic_pearson,
    }
    return Table({name: column[order] for name, column in columns.items()}, _CLASS)


def _files(gold: Document, prediction: Document) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for side, document in (("labels", gold), ("predictions", prediction)):
        ending = next(one for one in ENDINGS if document.file_name.endswith(one))
        columns[f"{side}_ending"] = [ENDINGS.index(ending)]
        columns[f"{side}_size"] = [document.size]
        columns[f"{side}_sha256"] = [np.frombuffer(bytes.fromhex(document.sha256), dtype=np.uint8)]
    return columns


# --- pictures -----------------------------------------------------------------------------------


def frame_scores(labels: Annotations, predicted: Annotations, matches: SoftMatches) -> dict[int, float]:
    """Mean class-aware IoU of every frame with ground truth: the sum over its pairs, over the larger number
    of annotations on either side, classes out of range left out.
    """
    frames, predictions = labels.by_frame(), predicted.by_frame()
    scores = {}
    for frame, golds in sorted(frames.items()):
        found = predictions.get(frame, [])
        sizes = int(labels.in_range[golds].sum()), int(predicted.in_range[found].sum())
        if sizes[0]:
            scores[frame] = float(matches.iou[found].sum(dtype=np.float64)) / max(sizes)
    return scores


def _pictures(
    labels: Annotations, predicted: Annotations, matches: SoftMatches, count: int, seed: str
) -> Table:
    scores = frame_scores(labels, predicted, matches) if count else {}
    by_score = sorted(scores, key=lambda frame: (-scores[frame], frame))
    digest = hashlib.sha256(seed.encode("utf-8")).digest()
    drawn = (
        np.random.default_rng(int.from_bytes(digest[:8], "big")).permutation(sorted(scores))[:count].tolist()
    )
    chosen: list[tuple[int, int]] = [
        (kind, frame)
        for kind, found in enumerate((by_score[:count], by_score[::-1][:count], drawn))
        for frame in found
    ]
    frames = [frame for _, frame in chosen]
    return Table(
        {
            "kind": np.array([kind for kind, _ in chosen], dtype=np.int64),
            "frame": np.array(frames, dtype=np.int64),
            "iou": np.array([scores[frame] for frame in frames], dtype=np.float64),
            "gold": _frame_maps(labels, frames),
            "predicted": _frame_maps(predicted, frames),
        },
        {"kind": PICTURE_KINDS},
    )


def _frame_maps(annotations: Annotations, frames: list[int]) -> NDArray[np.float32]:
    """For each frame all its normalised canvases, combined by maximum, shape [F, 50, 100]."""
    indices = annotations.by_frame()
    maps = np.zeros((len(frames), softmap.CANVAS_HEIGHT, softmap.CANVAS_WIDTH), dtype=np.float32)
    for number, frame in enumerate(frames):
        for index in indices.get(frame, []):
            polygons = [softmap.to_canvas(polygon) for polygon in annotations.polygons[index]]
            maps[number] = np.maximum(maps[number], softmap.render_annotation(polygons))
    return maps
