"""The scores of annotated, vectorised (annotated spec).

Conventions: N opportunities of one unit, H horizons. A positive has one row, its corrected anchor; a hard
negative has the corrected rows of its region and is one sample, whatever their number.
"""

from __future__ import annotations

import numpy as np

from floorkit.core.values import Tables
from floorkit.formats.dense import Prediction
from floorkit.formats.reviews import FAMILIES, Bool, Int, Reviews
from floorkit.formats.reviews_dataset import ReviewedTargets
from floorkit.formats.reviews_tables import (
    EXAMPLES,
    OPPORTUNITIES,
    UNSCORED,
    Float,
    example_table,
    opportunity_table,
    scored_lines,
    status_of,
    unscored_table,
)
from floorkit_annotated.params import AnnotatedParams

CHUNK_ROWS = 1 << 16
"""Region rows that are gathered at a time, so that long regions need no more memory than short ones."""


def occupied_rows(reviews: Reviews) -> tuple[Int, Int]:
    """The rows [first, behind) that each of N opportunities is scored by, shapes [N]."""
    region_first, region_behind = reviews.region_rows
    anchor = reviews.anchor_row
    first = np.where(reviews.positive, anchor, region_first)
    return first, np.where(reviews.positive, anchor + 1, region_behind)


def region_maxima(values: Float, valid: Bool, first: Int, behind: Int) -> tuple[Float, Bool]:
    """The largest value of each region at each horizon, and whether all its cells are valid.

    Parameters
    ----------
    values, valid
        Shape [T, H].
    first, behind
        Regions [first, behind) of at least one row within 0 .. T, shapes [N].

    Returns
    -------
    maxima, usable
        Shape [N, H]; a maximum counts only where it is usable.
    """
    count, horizons = len(first), values.shape[1]
    maxima, usable = np.empty((count, horizons)), np.empty((count, horizons), dtype=bool)
    lengths = behind - first
    ends = np.cumsum(lengths)
    start = 0
    while start < count:
        used = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, used + CHUNK_ROWS, side="right")))
        chunk = slice(start, stop)
        offsets = ends[chunk] - lengths[chunk] - used
        rows = np.arange(int(lengths[chunk].sum())) + np.repeat(first[chunk] - offsets, lengths[chunk])
        maxima[chunk] = np.maximum.reduceat(values[rows], offsets, axis=0)
        usable[chunk] = np.logical_and.reduceat(valid[rows], offsets, axis=0)
        start = stop
    return maxima, usable


def score(gold: ReviewedTargets, prediction: Prediction, params: AnnotatedParams, seed: int) -> Tables:
    """Score one unit: see ``floorkit.formats.reviews_tables`` for the tables.

    The table ``opportunities`` adds ``first_row`` and ``last_row`` (inclusive) of the rows that count.
    """
    index, reviews = scored_lines(gold)
    first, behind = occupied_rows(reviews)
    is_int = reviews.family == FAMILIES.index("int")
    wearer = np.where(prediction.valid, prediction.wearer, 0.0)
    scores, usable = (
        np.empty((len(reviews), params.horizons)),
        np.empty((len(reviews), params.horizons), bool),
    )
    for chosen, values in ((~is_int, wearer), (is_int, 1.0 - wearer)):
        scores[chosen], usable[chosen] = region_maxima(
            values, prediction.valid, first[chosen], behind[chosen]
        )

    def details(position: int, around: Int) -> tuple[Float, Bool, Float]:
        valid = prediction.valid[around]
        used = np.where(valid, wearer[around], np.nan)
        return used, valid, 1.0 - used if is_int[position] else used

    short = np.zeros(len(reviews), dtype=bool)
    return {
        OPPORTUNITIES: opportunity_table(
            gold,
            index,
            reviews,
            first,
            status_of(reviews, short, ~usable),
            scores,
            {"first_row": first, "last_row": behind - 1},
        ),
        UNSCORED: unscored_table(gold),
        EXAMPLES: example_table(
            gold,
            reviews,
            first,
            behind,
            details,
            (params.horizons, params.horizons),
            params.print_event_examples,
            seed,
        ),
    }
