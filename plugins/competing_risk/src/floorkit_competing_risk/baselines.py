"""Two reference forecasters that see the activity so far and nothing else: a floor to compare models with.

- ``persistence``: each class keeps its state at the source row.
- ``hazard``: each class is an alternating renewal process. Its chance to change in the next row depends on
  its state and on the rows since its last change, and is estimated on training sessions. The forecast is
  exact for that process: with h(x, a) the chance of a change in state x at age a,

      q_0(x, a) = x,    q_j(x, a) = h(x, a) q_(j-1)(1 - x, 1) + (1 - h(x, a)) q_(j-1)(x, a + 1).

Ages count rows, 1 in the first row of a state and in the first row of a recording (where the true age is not
known), and are pooled from ``MAX_AGE`` on. Rates of rare ages are drawn to the state's overall rate, as if
``PRIOR_ROWS`` further rows had been seen there that changed at it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from floorkit.formats.dense import Bool, Targets

MAX_AGE = 50
"""10 s: longer ages share one rate."""
PRIOR_ROWS = 10

Forecasts = NDArray[np.float64]
"""Chance of activity by class, state (0, 1), age - 1, and horizon - 1: shape [C, 2, A, H]."""


def persistence(classes: int, horizons: int) -> Forecasts:
    """Each class keeps its state; one age is enough."""
    states = np.arange(2.0)[None, :, None, None]
    return np.broadcast_to(states, (classes, 2, 1, horizons))


def hazard(sessions: Iterable[Targets], classes: int, horizons: int) -> Forecasts:
    """Fit the change rates on training sessions (read one after the other) and compute all forecasts."""
    seen = np.zeros((classes, 2, MAX_AGE))
    changed = np.zeros_like(seen)
    for targets in sessions:
        state = targets.activity.astype(np.int64)
        age = np.minimum(ages(targets), MAX_AGE) - 1
        goes_on = np.ones(targets.rows, dtype=bool)
        goes_on[targets.stops - 1] = False
        now = np.flatnonzero(goes_on)
        changes = targets.activity[now] != targets.activity[now + 1]
        for index in range(classes):
            cell = state[now, index], age[now, index]
            np.add.at(seen[index], cell, 1)
            np.add.at(changed[index], cell, changes[:, index])
    exposed = seen.sum(axis=2, keepdims=True)
    overall = np.divide(
        changed.sum(axis=2, keepdims=True), exposed, out=np.zeros_like(exposed), where=exposed > 0
    )
    return _forecasts((changed + PRIOR_ROWS * overall) / (seen + PRIOR_ROWS), horizons)


def _forecasts(rates: NDArray[np.float64], horizons: int) -> Forecasts:
    """The recursion of the module docstring for change rates of shape [C, 2, A]."""
    active = np.broadcast_to(np.arange(2.0)[None, :, None], rates.shape)
    found = np.empty((*rates.shape, horizons))
    for index in range(horizons):
        older = np.concatenate([active[:, :, 1:], active[:, :, -1:]], axis=2)
        active = rates * active[:, ::-1, :1] + (1 - rates) * older
        found[..., index] = active
    return found


def ages(targets: Targets) -> NDArray[np.int64]:
    """Rows since the last change of each class in the recording, from 1 on, shape [T, C]."""
    rows = np.arange(targets.rows)[:, None]
    is_first = np.ones(targets.activity.shape, dtype=bool)
    is_first[1:] = targets.activity[1:] != targets.activity[:-1]
    is_first[targets.starts] = True
    return rows - np.maximum.accumulate(np.where(is_first, rows, 0), axis=0) + 1


def forecast(targets: Targets, forecasts: Forecasts) -> tuple[NDArray[np.float32], Bool]:
    """One session in the dense layout.

    Returns
    -------
    pred
        Shape [T, C, H]; NaN where the source row lies outside the recording.
    valid
        Shape [T, H].
    """
    classes, _, oldest, horizons = forecasts.shape
    state = targets.activity[:, :classes].astype(np.int64)
    age = np.minimum(ages(targets), oldest) - 1
    made = forecasts[np.arange(classes), state, age].astype(np.float32)
    valid = targets.inside(horizons)
    pred = np.full((targets.rows, classes, horizons), np.nan, dtype=np.float32)
    for index in range(horizons):
        pred[index + 1 :, :, index] = made[: -(index + 1), :, index]
    return np.where(valid[:, None, :], pred, np.float32(np.nan)), valid
