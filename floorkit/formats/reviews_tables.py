"""The score tables of the protocols on reviewed opportunities: what event_proxy and annotated have in common.

- ``opportunities``: one row for each line of a scored label, in file order; where the protocol has horizons,
  status, label and score have a second axis of H. A protocol may add columns.
- ``unscored``: one row for each EXCLUDED or UNREVIEWED line.
- ``examples``: for the opportunities chosen for audit one row for each session row around them.

All have the column ``recording``, so that recordings can be resampled instead of sessions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from floorkit.core.values import Table
from floorkit.formats.dense import OTHERS, WEARER
from floorkit.formats.reviews import FAMILIES, SCORED_LABELS, Bool, Int, Reviews
from floorkit.formats.reviews_dataset import ReviewedTargets
from floorkit.formats.reviews_line import LABELS

OPPORTUNITIES, UNSCORED, EXAMPLES = "opportunities", "unscored", "examples"
STATUSES = ("positive", "hard_negative", "short_region", "invalid")
POSITIVE, HARD_NEGATIVE, SHORT_REGION, INVALID = range(4)
UNSCORED_LABELS = LABELS[len(SCORED_LABELS) :]

CONTEXT_ROWS = 10
"""Session rows shown before and behind an example's region: 2 s."""

TIMELINE_EXAMPLES = 10
"""Opportunities of each label that timelines show, however few are printed."""

Float = NDArray[np.float64]
Details = Callable[[int, Int], tuple[Float, Bool, Float]]
"""(position of an opportunity, its rows [R]) -> values used [R, P], valid [R, P], scores [R, S]."""


def scored_lines(gold: ReviewedTargets) -> tuple[Int, Reviews]:
    """Positions (in the unit's reviews) and lines of the four scored labels, in file order."""
    index = np.flatnonzero(gold.reviews.scored)
    return index, gold.reviews.take(index)


def status_of(reviews: Reviews, short: Bool, invalid: Bool) -> NDArray[np.int8]:
    """Codes of STATUSES; ``short`` and ``invalid`` are [N] or [N, H], and a short region comes first."""
    sound = np.where(reviews.positive, POSITIVE, HARD_NEGATIVE)
    if invalid.ndim == 2:
        sound, short = sound[:, None], short[:, None]
    return np.where(short, SHORT_REGION, np.where(invalid, INVALID, sound)).astype(np.int8)


def opportunity_table(
    gold: ReviewedTargets,
    index: Int,
    reviews: Reviews,
    place: Int,
    status: NDArray[np.int8],
    score: Float,
    more: Mapping[str, NDArray[Any]],
) -> Table:
    """The table ``opportunities`` of one unit.

    Parameters
    ----------
    index, reviews
        From :func:`scored_lines`.
    place
        The row that says in which recording the opportunity lies, shape [N].
    status, score
        Shape [N] or [N, H]; the score is taken only where the status is positive or hard_negative.
    more
        Further columns of the protocol.
    """
    label = np.where(status == POSITIVE, 1, np.where(status == HARD_NEGATIVE, 0, -1)).astype(np.int8)
    return Table(
        {
            "index": index.astype(np.int32),
            "family": reviews.family,
            "origin": reviews["origin"],
            "provisional": reviews.provisional,
            "recording": gold.recording[place].astype(np.int32),
            "status": status,
            "label": label,
            "score": np.where(label >= 0, score, np.nan),
            **more,
        },
        {"family": FAMILIES, "status": STATUSES},
    )


def unscored_table(gold: ReviewedTargets) -> Table:
    """The table ``unscored`` of one unit."""
    reviews = gold.reviews.take(~gold.reviews.scored)
    frames = np.where(reviews["anchor"] >= 0, reviews.anchor_row, reviews.region_rows[0])
    rows = np.clip(frames, 0, gold.rows - 1)
    return Table(
        {
            "reviewed_as": (reviews["label"] - len(SCORED_LABELS)).astype(np.int8),
            "recording": gold.recording[rows].astype(np.int32),
        },
        {"reviewed_as": UNSCORED_LABELS},
    )


# --- examples for audit -------------------------------------------------------------------------


def rank_of(event_id: str, seed: int) -> bytes:
    """What examples are chosen by, lowest first: the same whatever the order of lines and units."""
    return hashlib.sha256(f"{seed}\0{event_id}".encode()).digest()


def example_table(
    gold: ReviewedTargets,
    reviews: Reviews,
    first: Int,
    behind: Int,
    details: Details,
    widths: tuple[int, int],
    count: int,
    seed: int,
) -> Table:
    """The table ``examples`` of one unit: of each label the opportunities of lowest rank, ``count`` or
    ``TIMELINE_EXAMPLES`` of them, whichever is more.

    Parameters
    ----------
    reviews
        The scored lines, N of them.
    first, behind
        The rows that each is scored by, [first, behind); equal where it has none, shape [N].
    details
        What was used and computed in those rows.
    widths
        P and S of ``details``.
    """
    chosen = _chosen(reviews, max(count, TIMELINE_EXAMPLES), seed)
    values, figures = widths
    opportunity: list[Int] = []
    rows: list[Int] = []
    cells: list[Float] = []
    valid: list[Bool] = []
    scores: list[Float] = []
    scored: list[Bool] = []
    for position in chosen:
        start = max(0, int(first[position]) - CONTEXT_ROWS)
        stop = min(gold.rows, int(behind[position]) + CONTEXT_ROWS)
        around = np.arange(start, stop)
        inside = (around >= first[position]) & (around < behind[position])
        parts = details(position, around[inside])
        opportunity.append(np.full(len(around), position))
        rows.append(around)
        scored.append(inside)
        cells.append(_spread(parts[0], inside, np.nan))
        valid.append(_spread(parts[1], inside, False))
        scores.append(_spread(parts[2], inside, np.nan))
    all_rows = np.concatenate([np.empty(0, np.int64), *rows])
    return Table(
        {
            "opportunity": np.concatenate([np.empty(0, np.int64), *opportunity]),
            "recording": gold.recording[all_rows].astype(np.int32),
            "row": all_rows,
            "wearer": gold.activity[all_rows, WEARER],
            "others": gold.activity[all_rows, OTHERS],
            "scored": np.concatenate([np.empty(0, bool), *scored]),
            "cells": np.concatenate([np.empty((0, values)), *cells]),
            "valid": np.concatenate([np.empty((0, values), bool), *valid]),
            "scores": np.concatenate([np.empty((0, figures)), *scores]),
        }
    )


def _spread(part: NDArray[Any], inside: Bool, missing: float) -> NDArray[Any]:
    """Rows of ``part`` where ``inside`` [R] is true, ``missing`` elsewhere."""
    wide = np.full((len(inside), part.shape[1]), missing, dtype=part.dtype)
    wide[inside] = part
    return wide


def _chosen(reviews: Reviews, count: int, seed: int) -> list[int]:
    ranks = [rank_of(event_id, seed) for event_id in reviews.event_ids()]
    chosen: list[int] = []
    for label in range(len(SCORED_LABELS)):
        positions = np.flatnonzero(reviews["label"] == label).tolist()
        chosen += sorted(positions, key=ranks.__getitem__)[:count]
    return sorted(chosen)
