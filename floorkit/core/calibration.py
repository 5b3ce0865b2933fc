"""The default calibration: matched-recall thresholds (numerics spec)."""

from __future__ import annotations

from collections.abc import Sequence

from floorkit.core.pool import Pool
from floorkit.core.values import MatchedRecall, OperatingPoint
from floorkit.numerics import matched_recall_threshold, recall_name


def matched_recall_points(
    pool: Pool, where: MatchedRecall, recalls: Sequence[float], in_sample: bool
) -> tuple[OperatingPoint, ...]:
    """One operating point for each group, position on the second axis, and requested recall.

    Parameters
    ----------
    pool
        Calibration units (or, in-sample, the evaluated ones). Weights are not used: thresholds stay
        fixed under resampling.
    where
        Table and columns.
    recalls
        Requested recalls in (0, 1].

    Returns
    -------
    tuple of OperatingPoint
        ``at`` is {group column: category, axis: 1 .. H (where there is one), "recall": repr}. The
        threshold is None with reason ``no_calibration_positives`` where there is no positive.
    """
    if not recalls or not pool.units:
        return ()
    codes = pool.column(where.table, where.group)
    labels = pool.column(where.table, where.label)
    scores = pool.column(where.table, where.score)
    if not where.axis:
        labels, scores = labels[:, None], scores[:, None]
    points = []
    for code, category in enumerate(pool.categories(where.table, where.group)):
        for position in range(labels.shape[1]):
            positives = scores[(codes == code) & (labels[:, position] == 1), position]
            at = {where.group: category} | ({where.axis: position + 1} if where.axis else {})
            for recall in recalls:
                threshold = matched_recall_threshold(positives, recall)
                points.append(
                    OperatingPoint(
                        at={**at, "recall": recall_name(recall)},
                        threshold=threshold,
                        positives=len(positives),
                        in_sample=in_sample,
                        reason="" if threshold is not None else "no_calibration_positives",
                    )
                )
    return tuple(points)
