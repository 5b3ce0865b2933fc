"""annotated as plain loops, written from the spec; tests compare the kernel with it."""

from __future__ import annotations

from typing import Any

from floorkit.formats.dense import WEARER, Prediction
from floorkit.formats.reviews_dataset import ReviewedTargets
from floorkit.formats.reviews_line import LABELS
from floorkit_annotated.params import AnnotatedParams


def score(gold: ReviewedTargets, prediction: Prediction, params: AnnotatedParams) -> list[dict[str, Any]]:
    """One dictionary for each line of a scored label and horizon: rows, horizon, status, score."""
    found = []
    reviews = gold.reviews
    for line in range(len(reviews)):
        label = LABELS[reviews["label"][line]]
        if label in ("EXCLUDED", "UNREVIEWED"):
            continue
        correction = int(reviews["correction"][line])
        positive = not label.endswith("HARD_NEGATIVE")
        if positive:
            rows = [int(reviews["anchor"][line]) // 4 + correction]
        else:
            start, stop = int(reviews["start"][line]), int(reviews["stop"][line])
            rows = sorted({frame // 4 + correction for frame in range(start, stop)})
        for k in range(1, params.horizons + 1):
            status, value = "positive" if positive else "hard_negative", None
            if all(_usable(gold, prediction, row, k) for row in rows):
                cells = [float(prediction.pred[row, WEARER, k - 1]) for row in rows]
                value = max(cell if "ENTRY" in label else 1 - cell for cell in cells)
            else:
                status = "invalid"
            found.append({"rows": rows, "horizon": k, "status": status, "score": value})
    return found


def _usable(gold: ReviewedTargets, prediction: Prediction, row: int, k: int) -> bool:
    """Whether the cell is valid and its source row lies in the recording of ``row``."""
    starts = [int(start) for start in gold.starts if start <= row]
    return bool(prediction.valid[row, k - 1]) and row - k >= max(starts)
