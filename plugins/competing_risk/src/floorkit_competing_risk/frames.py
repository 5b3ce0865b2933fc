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
    keys: Keys = forecast.astype(f"f{size}").view(f"u{size}")
    keys <<= 2  # drops the sign of -0.0, too
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
    last = _run_ends(keys)
    counts = np.diff(last, prepend=-1).astype(np.int32)
    score, state, label = decode(keys[last])
    squares = np.sum(counts * np.square(score - label))  # no BLAS: the same bits whatever its threads
    # 1 - score is the score of an exit: it may round two forecasts to one, and ascends where they descend.
    wearer = _Ranked.of(score[::-1], counts[::-1], label[::-1])
    inactive, active = np.flatnonzero(~state)[::-1], np.flatnonzero(state)
    entry = _Ranked.of(score[inactive], counts[inactive], label[inactive])
    leaving = _Ranked.of(1.0 - score[active], counts[active], ~label[active])
    return Framewise(
        rows=wearer.rows,
        wearer_positive=wearer.positive,
        wearer_activity_ap=wearer.average_precision,
        entry_rows=entry.rows,
        entry_positive=entry.positive,
        entry_endpoint_ap=entry.average_precision,
        exit_rows=leaving.rows,
        exit_positive=leaving.positive,
        exit_endpoint_ap=leaving.average_precision,
        brier=float(squares / len(keys)) if len(keys) else None,
    )


def _run_ends(ordered: NDArray[Any]) -> NDArray[np.int64]:
    """Indices of the last element of every run of equal elements."""
    is_last = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_last[:-1])
    return np.flatnonzero(is_last)


@attrs.frozen
class _Ranked:
    """Rows, positives and AP of rows that are sorted by descending score."""

    rows: int
    positive: int
    average_precision: float | None

    @classmethod
    def of(cls, score: NDArray[np.float64], count: NDArray[np.int32], label: NDArray[np.bool_]) -> _Ranked:
        """From distinct scores (or more finely split) with their counts and labels, shape [G]."""
        if not len(score):
            return cls(0, 0, None)
        ends = _run_ends(score)
        seen = np.cumsum(count, dtype=np.int32)[ends]
        hits = np.cumsum(count * label, dtype=np.int32)[ends]
        return cls(int(seen[-1]), int(hits[-1]), average_precision_from_counts(hits, seen))
