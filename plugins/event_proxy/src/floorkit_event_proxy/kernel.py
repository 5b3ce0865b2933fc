"""The score of event_proxy, vectorised (event_proxy spec, "Decision region" and "Score").

Conventions: N opportunities of one unit, n source rows of a decision region, J horizons of the trajectory.
The forecast path of source row s is pred[s + j, wearer, j - 1].
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
from floorkit_event_proxy.params import EventProxyParams


def decision_region(gold: ReviewedTargets, reviews: Reviews, rows: int) -> tuple[Int, Int, Bool]:
    """Where each opportunity is decided.

    Parameters
    ----------
    gold
        Recordings of the session.
    reviews
        N lines of scored labels.
    rows
        n, the length of a decision region.

    Returns
    -------
    place
        The row whose recording counts, shape [N]: the anchor, for mined hard negatives the first row of
        their region.
    first
        First of the n source rows, shape [N]: place - n at an anchor, place in a mined region.
    short
        True where the n rows do not exist within that recording (and the region), shape [N].
    """
    by_region = reviews.mined & ~reviews.positive
    region_first, region_behind = reviews.region_rows
    place = np.where(by_region, region_first, reviews.anchor_row)
    first = np.where(by_region, place, place - rows)
    recording = gold.recording[place]
    short = (
        (by_region & (region_behind - region_first < rows))
        | (first < gold.starts[recording])
        | (first + rows > gold.stops[recording])
    )
    return place, first, short


def trajectories(prediction: Prediction, sources: Int, horizons: range) -> tuple[Float, Bool]:
    """Forecast paths of source rows.

    Parameters
    ----------
    prediction
        Arrays of T rows; ``valid`` includes the recording rule.
    sources
        Source rows s, any shape.
    horizons
        The J horizons j, counted from 1.

    Returns
    -------
    path
        pred[s + j, wearer, j - 1], shape [..., J]; NaN where it must not be used.
    usable
        True where the cell exists and is valid, same shape.
    """
    steps = np.asarray(horizons)
    rows = sources[..., None] + steps
    last = len(prediction.valid) - 1
    inside = (rows >= 0) & (rows <= last)
    cells = np.clip(rows, 0, last), np.broadcast_to(steps - 1, rows.shape)
    usable = inside & prediction.valid[cells]
    return np.where(usable, prediction.wearer[cells], np.nan), usable


def score(gold: ReviewedTargets, prediction: Prediction, params: EventProxyParams, seed: int) -> Tables:
    """Score one unit: see ``floorkit.formats.reviews_tables`` for the tables.

    The table ``opportunities`` adds ``first_row`` (of the n source rows, -1 where the region is short),
    ``row_scores`` [N, n], ``winning_row`` and ``trajectory`` [N, J] of the winning row.
    """
    index, reviews = scored_lines(gold)
    rows, horizons = params.window_rows, params.trajectory
    place, first, short = decision_region(gold, reviews, rows)
    sources = np.where(short, 0, first)[:, None] + np.arange(rows)
    path, usable = trajectories(prediction, sources, horizons)
    invalid = np.logical_not(np.all(usable, axis=(1, 2)))
    left_out = short | invalid
    mean = path.mean(axis=2)
    is_int = reviews.family == FAMILIES.index("int")
    row_scores = np.where(is_int[:, None], 1.0 - mean, mean)
    kept = np.where(left_out[:, None], -np.inf, row_scores)
    best = kept.argmax(axis=1)
    each = np.arange(len(reviews))

    def details(position: int, around: Int) -> tuple[Float, Bool, Float]:
        shown = np.arange(len(around))
        return path[position, shown], usable[position, shown], row_scores[position, shown, None]

    return {
        OPPORTUNITIES: opportunity_table(
            gold,
            index,
            reviews,
            place,
            status_of(reviews, short, invalid),
            kept[each, best],
            {
                "first_row": np.where(short, -1, first),
                "row_scores": np.where(left_out[:, None], np.nan, row_scores),
                "winning_row": np.where(left_out, -1, first + best),
                "trajectory": np.where(left_out[:, None], np.nan, path[each, best]),
            },
        ),
        UNSCORED: unscored_table(gold),
        EXAMPLES: example_table(
            gold,
            reviews,
            np.where(short, place, first),
            np.where(short, place, first + rows),
            details,
            (len(horizons), 1),
            params.print_event_examples,
            seed,
        ),
    }
