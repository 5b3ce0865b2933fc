"""Scoring one recording: which onsets belong together.

A gold and a predicted onset can be paired where they lie at most a tolerance apart, and each takes part in
one pair at most. Taken in time order, pairing each onset with the first partner that is left gives the
largest number of pairs, because all tolerances are equal. ``reference`` has the definition itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from floorkit.core.values import Table
from numpy.typing import NDArray

if TYPE_CHECKING:
    from floorkit_plugin_name.data import Gold

MICROSECONDS = 1_000_000


def microseconds(seconds: NDArray[np.float64] | float) -> NDArray[np.int64]:
    """Times as whole microseconds, so that a distance of exactly the tolerance is inside on every machine."""
    whole: NDArray[np.int64] = np.rint(np.asarray(seconds) * MICROSECONDS).astype(np.int64)
    return whole


def pairs(
    gold_s: NDArray[np.float64], predicted_s: NDArray[np.float64], tolerance_s: float
) -> NDArray[np.int64]:
    """The paired onsets.

    Parameters
    ----------
    gold_s, predicted_s
        Sorted onsets [N] and [M], in seconds.
    tolerance_s
        Largest distance (inclusive), in seconds.

    Returns
    -------
    ndarray [TP, 2]
        Index of the gold and of the predicted onset of each pair, in time order.
    """
    gold, predicted, tolerance = microseconds(gold_s), microseconds(predicted_s), microseconds(tolerance_s)
    found = []
    i = j = 0
    while i < len(gold) and j < len(predicted):
        distance = predicted[j] - gold[i]
        if abs(distance) <= tolerance:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif distance < 0:
            j += 1
        else:
            i += 1
    return np.asarray(found, dtype=np.int64).reshape(-1, 2)


def score(gold: Gold, predicted_s: NDArray[np.float64], tolerance_s: float) -> dict[str, Table]:
    """The tables of one recording.

    Returns
    -------
    dict
        ``gold``: a row each gold onset with its time, whether it was found, and the error (predicted -
        gold, NaN where it was not found). ``predicted``: a row each predicted onset, whether it was right.
        ``recording``: one row with the duration. All times in seconds.
    """
    index = pairs(gold.onsets_s, predicted_s, tolerance_s)
    found = np.zeros(len(gold.onsets_s), dtype=np.bool_)
    right = np.zeros(len(predicted_s), dtype=np.bool_)
    error = np.full(len(gold.onsets_s), np.nan)
    found[index[:, 0]] = True
    right[index[:, 1]] = True
    error[index[:, 0]] = predicted_s[index[:, 1]] - gold.onsets_s[index[:, 0]]
    return {
        "gold": Table({"onset_s": gold.onsets_s, "found": found, "error_s": error}),
        "predicted": Table({"onset_s": predicted_s, "right": right}),
        "recording": Table({"duration_s": np.asarray([gold.duration_s])}),
    }
