"""Counts behind the figures, taken once for each cluster, so that a resample costs next to nothing.

A resampled count is the product of the clusters' multiplicities with the counts of this module; a resampled
average precision reuses an order that was sorted once. Clusters are the sessions, or their recordings.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from floorkit.core.pool import Pool
from floorkit.numerics import ROW_SECONDS
from floorkit_competing_risk.kernel import FAMILIES, NEGATIVE, POSITIVE, STATUSES

COUNTS = ("candidates", *STATUSES, "short_resume")
"""Counts of a family; the yield family has no short resumes."""
TRIGGERS = ("recalled", "triggered", "short_triggered")
"""Further counts at each threshold: positives, negatives and short-resume negatives at or above it."""
WHOLE = -1
"""The stratum of everything."""

Thresholds = Sequence[float | None]


@attrs.frozen(eq=False)
class Tally:
    """Weighted counts of one family at one horizon and stratum.

    Parameters
    ----------
    counts
        By name, those of ``COUNTS``.
    triggers
        By name, those of ``TRIGGERS``, for each threshold; zeros where the threshold is None.
    minutes
        Minutes of the state in which the family's alarms are false: wearer inactive for response, active for
        yield.
    """

    counts: dict[str, int]
    triggers: tuple[dict[str, int], ...]
    minutes: float


def strata(pool: Pool) -> tuple[str, ...]:
    """Names of the strata; none where the manifest gives none."""
    names = pool.categories("candidates", "stratum")
    return names if len(names) > 1 else ()


def tally(pool: Pool, family: int, horizon: int, stratum: int, thresholds: Thresholds) -> Tally:
    """Counts of one family, horizon (0, 1, ...) and stratum (its code, or ``WHOLE``)."""
    key = ("counts", pool.cluster, family, horizon, tuple(thresholds))
    counts = pool.cached(key, lambda: _cluster_counts(pool, family, horizon, thresholds))
    minutes = pool.cached(("minutes", pool.cluster), lambda: _cluster_minutes(pool))
    values = _summed(pool, counts, stratum).tolist()
    first, width = len(COUNTS), len(TRIGGERS)
    return Tally(
        dict(zip(COUNTS, values, strict=False)),
        tuple(
            dict(zip(TRIGGERS, values[first + width * index :], strict=False))
            for index in range(len(thresholds))
        ),
        float(_summed(pool, minutes, stratum)[family]) * ROW_SECONDS / 60,
    )


def average_precision(pool: Pool, family: int, horizon: int, stratum: int) -> float | None:
    """Event AP of one family, horizon and stratum."""
    table, key = ranking_of(family, horizon, stratum)
    return pool.average_precision(table, key, lambda: _scored(pool, family, horizon, stratum))


def ranking_of(family: int, horizon: int, stratum: int) -> tuple[str, tuple[int, int, int]]:
    """The table and key under which the pool keeps the ranking of :func:`average_precision`."""
    return "candidates", (family, horizon, stratum)


def _summed(pool: Pool, counts: NDArray[np.int64], stratum: int) -> NDArray[np.int64]:
    """Counts [C, S, n] over the weighted clusters, of one stratum or the whole, shape [n]."""
    chosen = counts.sum(axis=1) if stratum == WHOLE else counts[:, stratum]
    summed: NDArray[np.int64] = chosen.sum(axis=0) if pool.weights is None else pool.weights @ chosen
    return summed


def _family_rows(pool: Pool, family: int) -> NDArray[np.int64]:
    return pool.cached(
        ("family", family), lambda: np.flatnonzero(pool.column("candidates", "family") == family)
    )


def _cells(pool: Pool, table: str) -> tuple[NDArray[np.int64], int, int]:
    """For every row of a table its cluster and stratum as one number below C * S; C and S."""
    codes = max(1, len(pool.categories(table, "stratum")))
    stratum = pool.column(table, "stratum").astype(np.int64)
    return pool.cluster_index(table) * codes + stratum, len(pool.clusters), codes


def _cluster_counts(pool: Pool, family: int, horizon: int, thresholds: Thresholds) -> NDArray[np.int64]:
    """``COUNTS``, then ``TRIGGERS`` for each threshold, shape [C, S, 8 + 3 R]."""
    cells, clusters, codes = _cells(pool, "candidates")
    size = clusters * codes
    rows = _family_rows(pool, family)
    cell = cells[rows]
    status = pool.column("candidates", "status")[rows, horizon]
    score = pool.column("candidates", "score")[rows, horizon]
    by_status = np.bincount(cell * len(STATUSES) + status, minlength=size * len(STATUSES))
    by_status = by_status.reshape(size, len(STATUSES))
    negative = status == NEGATIVE
    short = negative & pool.column("candidates", "short_resume")[rows]
    columns = [by_status.sum(axis=1), *by_status.T, np.bincount(cell[short], minlength=size)]
    for threshold in thresholds:
        # Statuses without a score hold NaN, which is above no threshold.
        above = score >= (np.inf if threshold is None else threshold)
        columns += [
            np.bincount(cell[above & one], minlength=size) for one in (status == POSITIVE, negative, short)
        ]
    return np.stack(columns, axis=1).reshape(clusters, codes, -1)


def _cluster_minutes(pool: Pool) -> NDArray[np.int64]:
    """Rows with an inactive and with an active wearer (in the order of ``FAMILIES``), shape [C, S, 2]."""
    cells, clusters, codes = _cells(pool, "minutes")
    total = np.zeros((clusters * codes, len(FAMILIES)), dtype=np.int64)
    for family, column in enumerate(("inactive", "active")):
        np.add.at(total[:, family], cells, pool.column("minutes", column))
    return total.reshape(clusters, codes, -1)


def _scored(
    pool: Pool, family: int, horizon: int, stratum: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int8]]:
    """The scored candidates: rows of the table, scores, labels."""
    rows = _family_rows(pool, family)
    labels = pool.column("candidates", "label")
    rows = rows[labels[rows, horizon] >= 0]
    if stratum != WHOLE:
        rows = rows[pool.column("candidates", "stratum")[rows] == stratum]
    return rows, pool.column("candidates", "score")[rows, horizon], labels[rows, horizon]
