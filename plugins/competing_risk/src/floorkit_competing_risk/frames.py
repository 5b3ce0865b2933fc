"""Framewise endpoint figures: every target row at every horizon, in one sort a horizon.

A cell (target row t, horizon k) with a valid forecast has the label W[t], the state W[t - k] at its source
row, and the score pred[t, 1, k - 1]. Non-negative IEEE 754 numbers are ordered like their bit patterns, and
those of numbers up to 1 leave the two highest bits unused. So one unsigned integer holds the whole cell,

    key = bits(score) << 2 | state << 1 | label,

and one sort of the keys orders wearer, entry and exit rows at once. Cells without a valid forecast have the
highest key. float16 and float32 forecasts make 32-bit keys, float64 forecasts 64-bit keys; both are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from floorkit.core.values import Table
from floorkit.formats.dense import OTHERS, WEARER, Prediction, Targets
from floorkit.numerics import average_precision_from_counts

Keys = NDArray[np.unsignedinteger[Any]]


def key_column(horizon: int) -> str:
    """Name of the column of keys for horizon k = 1, 2, ..."""
    return f"key_{horizon}"


def frame_table(targets: Targets, prediction: Prediction) -> Table:
    """One row a target row: recording, wearer, others [T], and a column of keys for each horizon."""
    wearer = targets.activity[:, WEARER]
    columns: dict[str, NDArray[np.generic]] = {
        "recording": targets.recording.astype(np.int32),
        "wearer": wearer,
        "others": targets.activity[:, OTHERS],
    }
    for index in range(prediction.valid.shape[1]):
        state = np.zeros_like(wearer)
        state[index + 1 :] = wearer[: -(index + 1)]
        forecast = prediction.pred[:, WEARER, index]
        columns[key_column(index + 1)] = encode(forecast, prediction.valid[:, index], state, wearer)
    return Table(columns)


def encode(
    forecast: NDArray[np.floating],
    valid: NDArray[np.bool_],
    state: NDArray[np.bool_],
    label: NDArray[np.bool_],
) -> Keys:
    """Keys of one horizon, all arrays of shape [T]; ``forecast`` is within [0, 1] where ``valid``."""
    size = max(forecast.dtype.itemsize, 4)
    # Adding 0.0 turns -0.0, whose bit pattern is among the highest, into 0.0.
    score = forecast.astype(f"f{size}") + 0.0
    keys: Keys = score.view(f"u{size}")
    keys <<= 2
    keys |= state.astype(np.uint8) << 1 | label
    keys[~valid] = np.iinfo(keys.dtype).max
    return keys


def decode(keys: Keys) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Scores, states and labels behind valid keys."""
    score = (keys >> 2).view(f"f{keys.dtype.itemsize}").astype(np.float64)
    return score, (keys & 2).astype(bool), (keys & 1).astype(bool)


def is_valid(keys: Keys) -> NDArray[np.bool_]:
    """Where keys stand for cells with a valid forecast."""
    return np.not_equal(keys, np.iinfo(keys.dtype).max)


def join(parts: Sequence[Keys]) -> Keys:
    """Keys of several units as one array; 32-bit keys are widened where others have 64 bits."""
    if len({part.dtype for part in parts}) <= 1:
        return np.concatenate(parts) if parts else np.empty(0, np.uint32)
    return np.concatenate([part if part.dtype.itemsize > 4 else _widened(part) for part in parts])


def _widened(keys: Keys) -> Keys:
    valid = is_valid(keys)
    score, state, label = decode(keys * valid)
    return encode(score, valid, state, label)


@attrs.frozen
class Framewise:
    """Framewise figures of one horizon; field names are those of summary_framewise.csv."""

    rows: int
    wearer_positive: int
    wearer_activity_ap: float | None
    entry_rows: int
    entry_positive: int
    entry_endpoint_ap: float | None
    exit_rows: int
    exit_positive: int
    exit_endpoint_ap: float | None
    brier: float | None


def framewise(keys: Keys) -> Framewise:
    """Figures of one horizon; ``keys`` [N] is sorted in place."""
    keys.sort()
    keys = keys[: np.searchsorted(keys, np.iinfo(keys.dtype).max)]
    is_last = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=is_last[:-1])
    last = np.flatnonzero(is_last)
    counts = np.diff(last, prepend=-1)
    score, state, label = decode(keys[last])
    rows = len(keys)
    # Descending scores first; 1 - score ascends with them, and may round two scores to one.
    descending, count, positive = score[::-1], counts[::-1], (counts * label)[::-1]
    entry = ~state[::-1]
    stop_score, stop_count, stop_positive = 1.0 - score[state], counts[state], (counts * ~label)[state]
    return Framewise(
        rows=rows,
        wearer_positive=int(positive.sum()),
        wearer_activity_ap=_average_precision(descending, positive, count),
        entry_rows=int(count[entry].sum()),
        entry_positive=int(positive[entry].sum()),
        entry_endpoint_ap=_average_precision(descending[entry], positive[entry], count[entry]),
        exit_rows=int(stop_count.sum()),
        exit_positive=int(stop_positive.sum()),
        exit_endpoint_ap=_average_precision(stop_score, stop_positive, stop_count),
        brier=float(np.dot(counts, np.square(score - label)) / rows) if rows else None,
    )


def _average_precision(
    score: NDArray[np.float64], positive: NDArray[np.int64], count: NDArray[np.int64]
) -> float | None:
    """AP of scores in descending order, shape [G], with their positives and counts; ties form one group."""
    if not len(score):
        return None
    is_last = np.append(score[1:] != score[:-1], True)
    return average_precision_from_counts(np.cumsum(positive)[is_last], np.cumsum(count)[is_last])
