"""Candidates, statuses and scores of one session, vectorised (protocols/competing_risk.spec.md).

Within a recording O[t] and W[t] are the activity of others and wearer. A candidate is a row b where O
changes: its offset for the family response (will the wearer take the floor?), its onset for the family yield
(will the wearer give it up?). The competing row c is the next change of O, the outcome row w the first row
after the source row s in which the wearer is active (response) or inactive (yield). Horizon k = 1 .. H ends
at row e = s + k.

Conventions: rows are session rows; -1 stands for no row; statuses are codes into ``STATUSES``; scores are
float64 and NaN where there is none.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from floorkit.core.values import Table
from floorkit.formats.dense import OTHERS, WEARER, Prediction, Targets
from floorkit.numerics import ROW_SECONDS
from floorkit_competing_risk.data import Gold
from floorkit_competing_risk.frames import frame_table
from floorkit_competing_risk.params import CompetingRiskParams, DecisionTiming, Window

FAMILIES = ("response", "yield")
RESPONSE, YIELD = range(2)
STATUSES = ("ineligible", "positive", "negative", "censored", "unobservable", "invalid")
INELIGIBLE, POSITIVE, NEGATIVE, CENSORED, UNOBSERVABLE, INVALID = range(6)
NO_ROW = -1
NEVER = np.iinfo(np.int64).max

Rows = NDArray[np.int64]


@attrs.frozen(eq=False)
class Candidates:
    """The N candidates of one session, by boundary row; they depend on the targets alone.

    Parameters
    ----------
    family
        Codes into ``FAMILIES``, shape [N].
    recording, stop
        Index of the recording, and one past its last row, shape [N].
    boundary, source, outcome, competing
        Rows b, s, w, c, shape [N].
    eligible
        Whether the wearer's state at s fits, shape [N].
    """

    family: Rows
    recording: Rows
    stop: Rows
    boundary: Rows
    source: Rows
    outcome: Rows
    competing: Rows
    eligible: NDArray[np.bool_]


def find_candidates(targets: Targets, decision_timing: DecisionTiming) -> Candidates:
    """Every boundary of the others inside a recording, with its source, outcome and competing row."""
    wearer, others = targets.activity[:, WEARER], targets.activity[:, OTHERS]
    recordings = targets.recording
    boundary = 1 + np.flatnonzero((others[1:] != others[:-1]) & (recordings[1:] == recordings[:-1]))
    family = others[boundary].astype(np.int64)
    recording = recordings[boundary]
    stop = targets.stops[recording]
    source = boundary - (decision_timing == "pre-boundary")
    following = np.append(boundary[1:], NEVER)[: len(boundary)]
    outcome = np.where(
        family == RESPONSE,
        _first_after(source, np.flatnonzero(wearer)),
        _first_after(source, np.flatnonzero(~wearer)),
    )
    return Candidates(
        family=family,
        recording=recording,
        stop=stop,
        boundary=boundary,
        source=source,
        outcome=np.where(outcome < stop, outcome, NO_ROW),
        competing=np.where(following < stop, following, NO_ROW),
        eligible=wearer[source] == (family == YIELD),
    )


def _first_after(rows: Rows, among: Rows) -> Rows:
    """For each row the first later one ``among`` sorted rows, NEVER where there is none."""
    return np.append(among, NEVER)[np.searchsorted(among, rows, side="right")]


def outcomes(candidates: Candidates, horizons: int, window: Window) -> tuple[NDArray[np.int8], Rows]:
    """Status before any prediction is seen, and the length of the window.

    Parameters
    ----------
    candidates, horizons, window
        N candidates, H horizons, and whether the window is cut at the competing row.

    Returns
    -------
    status
        Shape [N, H]: ineligible, positive, negative, censored or unobservable.
    length
        Rows s + 1 .. s + length are the window, shape [N, H]; at most the horizon, 0 where it is empty.
    """
    ahead = np.arange(1, horizons + 1)
    end = candidates.source[:, None] + ahead
    outcome = np.where(candidates.outcome == NO_ROW, NEVER, candidates.outcome)
    competing = np.where(candidates.competing == NO_ROW, NEVER, candidates.competing)
    last = candidates.stop - 1
    if window == "observable":
        last = np.minimum(last, competing - 1)
    length = np.minimum(ahead, (last - candidates.source)[:, None])
    positive = (outcome < competing)[:, None] & (outcome[:, None] <= end)
    negative = (competing[:, None] <= end) | (end < candidates.stop[:, None])
    status = np.select(
        [
            np.broadcast_to(~candidates.eligible[:, None], end.shape),
            ~(positive | negative),
            length <= 0,
            positive,
        ],
        [INELIGIBLE, CENSORED, UNOBSERVABLE, POSITIVE],
        NEGATIVE,
    )
    return status.astype(np.int8), length


def pool_scores(
    candidates: Candidates, length: Rows, forecast: NDArray[np.floating], valid: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Maximum over the window of the forecast path, for every candidate and horizon.

    Parameters
    ----------
    candidates, length
        N candidates and their window lengths [N, H].
    forecast, valid
        The wearer's forecasts and their validity, shape [T, H].

    Returns
    -------
    score
        Shape [N, H]; of any value where the window is empty or broken.
    broken
        Shape [N, H]: an invalid cell lies in the window.
    """
    horizons = forecast.shape[1]
    rows = candidates.source[:, None] + np.arange(1, horizons + 1)
    inside = rows < candidates.stop[:, None]
    cells = np.where(inside, rows, 0), np.arange(horizons)
    usable = valid[cells] & inside
    path = np.where(usable, forecast[cells].astype(np.float64), 0.0)
    path = np.where((candidates.family == YIELD)[:, None], 1.0 - path, path)
    last = np.maximum(length - 1, 0)
    best = np.maximum.accumulate(path, axis=1)
    broken = np.logical_or.accumulate(~usable, axis=1)
    return np.take_along_axis(best, last, axis=1), np.take_along_axis(broken, last, axis=1)


def score(gold: Gold, prediction: Prediction, params: CompetingRiskParams) -> dict[str, Table]:
    """Tables of one session and run.

    Returns
    -------
    ``candidates``
        One row a candidate, by boundary row: family, recording, boundary, source, outcome, competing,
        stratum, short_resume (c - b within the mid-turn pause; response family) and, per horizon [N, H],
        status, label (1, 0, or -1 where neither positive nor negative) and score.
    ``frames``
        One row a target row: recording, wearer, others, and the framewise keys (see frames.py).
    ``minutes``
        One row for each recording and stratum that has rows: rows with an active and an inactive wearer.
    """
    targets, strata = gold.targets, {"stratum": gold.strata}
    candidates = find_candidates(targets, params.decision_timing)
    status, length = outcomes(candidates, params.horizons, params.window)
    forecast = prediction.pred[:, WEARER, :]
    values, broken = pool_scores(candidates, length, forecast, prediction.valid)
    status[broken & ((status == POSITIVE) | (status == NEGATIVE))] = INVALID
    pause = round(params.midturn_pause_max_seconds / ROW_SECONDS)
    resumed = candidates.competing - candidates.boundary
    table = Table(
        {
            "family": candidates.family.astype(np.int8),
            "recording": candidates.recording.astype(np.int32),
            "boundary": candidates.boundary,
            "source": candidates.source,
            "outcome": candidates.outcome,
            "competing": candidates.competing,
            "stratum": gold.stratum[candidates.boundary].astype(np.int16),
            "short_resume": (candidates.family == RESPONSE)
            & (candidates.competing != NO_ROW)
            & (resumed <= pause),
            **labelled(status, values),
        },
        {"family": FAMILIES, "status": STATUSES, **strata},
    )
    frames = frame_table(targets, prediction)
    return {"candidates": table, "frames": frames, "minutes": _minutes(gold)}


def labelled(status: NDArray[np.int8], score: NDArray[np.float64]) -> dict[str, NDArray[np.generic]]:
    """The columns status, label and score [N, H]: labels follow from statuses, other scores are dropped."""
    label = np.select([status == POSITIVE, status == NEGATIVE], [1, 0], -1).astype(np.int8)
    return {"status": status, "label": label, "score": np.where(label >= 0, score, np.nan)}


def _minutes(gold: Gold) -> Table:
    """Rows with an active and with an inactive wearer, by recording and stratum."""
    count = len(gold.strata)
    place = gold.targets.recording * count + gold.stratum
    cells = len(gold.targets.starts) * count
    rows = np.bincount(place, minlength=cells)
    active = np.bincount(place[gold.targets.activity[:, WEARER]], minlength=cells)
    used = np.flatnonzero(rows)
    return Table(
        {
            "recording": (used // count).astype(np.int32),
            "stratum": (used % count).astype(np.int16),
            "active": active[used],
            "inactive": (rows - active)[used],
        },
        {"stratum": gold.strata},
    )
