"""event_proxy as plain loops, written from the spec; tests compare the kernel with it."""

from __future__ import annotations

from typing import Any

from floorkit.formats.dense import WEARER, Prediction
from floorkit.formats.reviews_dataset import ReviewedTargets
from floorkit.formats.reviews_line import LABELS, ORIGINS
from floorkit_event_proxy.params import EventProxyParams


def score(gold: ReviewedTargets, prediction: Prediction, params: EventProxyParams) -> list[dict[str, Any]]:
    """One dictionary for each line of a scored label: status, rows, row_scores, winning_row, score."""
    found = []
    reviews = gold.reviews
    for line in range(len(reviews)):
        label = LABELS[reviews["label"][line]]
        if label in ("EXCLUDED", "UNREVIEWED"):
            continue
        found.append(_one(gold, prediction, params, line, label))
    return found


def _one(
    gold: ReviewedTargets, prediction: Prediction, params: EventProxyParams, line: int, label: str
) -> dict[str, Any]:
    reviews = gold.reviews
    n = params.window_rows
    correction = int(reviews["correction"][line])
    mined = ORIGINS[reviews["origin"][line]] == "mined"
    if label.endswith("HARD_NEGATIVE") and mined:
        start, stop = int(reviews["start"][line]), int(reviews["stop"][line])
        region = sorted({frame // 4 + correction for frame in range(start, stop)})
        place, rows = region[0], region[:n]
    else:
        place = int(reviews["anchor"][line]) // 4 + correction
        rows = list(range(place - n, place))
    low, high = _recording(gold, place)
    if len(rows) < n or rows[0] < low or rows[-1] >= high:
        return {"status": "short_region", "rows": [], "row_scores": [], "winning_row": None, "score": None}
    left_out = {
        "status": "invalid",
        "rows": rows,
        "row_scores": [None] * n,
        "winning_row": None,
        "score": None,
    }
    scores = []
    for s in rows:
        path = []
        for j in params.trajectory:
            if s + j >= high or not prediction.valid[s + j, j - 1]:
                return left_out
            path.append(float(prediction.pred[s + j, WEARER, j - 1]))
        mean = sum(path) / len(path)
        scores.append(mean if "ENTRY" in label else 1 - mean)
    best = max(scores)
    return {
        "status": "hard_negative" if label.endswith("HARD_NEGATIVE") else "positive",
        "rows": rows,
        "row_scores": scores,
        "winning_row": rows[scores.index(best)],
        "score": best,
    }


def _recording(gold: ReviewedTargets, row: int) -> tuple[int, int]:
    """First row of the recording that holds ``row``, and the row behind its last."""
    starts = [int(start) for start in gold.starts]
    low = max(start for start in starts if start <= row)
    return low, min([start for start in starts if start > row], default=gold.rows)
