"""Scoring of committed events, and the commit rule that turns probabilities into events.

A prediction inside one of the speaker's excluded intervals (both ends included) takes no part. Each
positive t has the window [t - 0.25, min(t + 3.0, next)], next being the speaker's next positive of the
task, both ends included, and claims the earliest unclaimed prediction in it: a true positive with
latency 1000 (p - t) ms, else a false negative. A negative span is a false positive when a prediction in
[start - 0.25, end] lies in no positive window of the speaker, else a true negative.

Source: turnbench spec, "Scoring" and "Probabilities, sweep, operating point".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from attrs import frozen

from floorkit_turnbench.consensus import covered
from floorkit_turnbench.conversation import Gold, Spans, TaskGold, Times
from floorkit_turnbench.labels import SPEAKERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

EARLY_S: Final = 0.25
"""How long before an event, or a span, a prediction may fall."""
LATE_S: Final = 3.0
REFRACTORY_S: Final = 2.0
"""Shortest time between two committed events of a speaker, counted in frames."""


@frozen(eq=False)
class Windows:
    """One speaker's positives of a task in order of time, with their windows; shape [P] each.

    ``index`` is the position in the gold's order.
    """

    index: NDArray[np.intp]
    time: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def windows(positives: Spans, speaker: int) -> Windows:
    """Windows of one speaker's positives. Both borders never decrease."""
    index = np.flatnonzero(positives.speaker == speaker)
    index = index[np.argsort(positives.start[index], kind="stable")]
    time = positives.start[index]
    later = np.append(time, np.inf)[np.searchsorted(time, time, side="right")]
    return Windows(index, time, time - EARLY_S, np.minimum(time + LATE_S, later))


@frozen(eq=False)
class TaskScore:
    """One conversation's outcome for one task.

    Parameters
    ----------
    matched_s
        Time of the prediction that each positive claimed, in the gold's order, shape [P]; NaN: missed.
    latency_ms
        1000 (matched - gold time), shape [P]; NaN: missed.
    fired_s
        Earliest prediction that makes each negative span a false positive, shape [N]; NaN: none.
    """

    matched_s: NDArray[np.float64]
    latency_ms: NDArray[np.float64]
    fired_s: NDArray[np.float64]

    @property
    def tp(self) -> int:
        return int(np.count_nonzero(~np.isnan(self.matched_s)))

    @property
    def fn(self) -> int:
        return len(self.matched_s) - self.tp

    @property
    def fp(self) -> int:
        return int(np.count_nonzero(~np.isnan(self.fired_s)))

    @property
    def tn(self) -> int:
        return len(self.fired_s) - self.fp


def kept(times: NDArray[np.float64], excluded: Spans) -> NDArray[np.float64]:
    """The times that lie in none of ``excluded`` (ends count as inside)."""
    return times[~covered(times, times, excluded, closed=True)]


def score_task(gold: TaskGold, predicted: Times) -> TaskScore:
    """Score one conversation's predicted times of one task.

    Parameters
    ----------
    gold
        Positives, negatives and excluded intervals of both speakers.
    predicted
        Speaker to strictly increasing times in seconds, shape [K].
    """
    matched = np.full(len(gold.positives), np.nan)
    fired = np.full(len(gold.negatives), np.nan)
    for speaker in SPEAKERS:
        times = kept(np.asarray(predicted[speaker], np.float64), gold.excluded.of(speaker))
        window = windows(gold.positives, speaker)
        matched[window.index] = _claims(times, window)

        outside = times[~covered(times, times, Spans.single(speaker, window.low, window.high), closed=True)]
        own = np.flatnonzero(gold.negatives.speaker == speaker)
        first = np.searchsorted(outside, gold.negatives.start[own] - EARLY_S, side="left")
        time = np.append(outside, np.inf)[first]
        fired[own] = np.where(time <= gold.negatives.end[own], time, np.nan)
    return TaskScore(matched, (matched - gold.positives.start) * 1000.0, fired)


def _claims(times: NDArray[np.float64], window: Windows) -> NDArray[np.float64]:
    """The time that each positive claims, in order of time, shape [P]; NaN where none.

    Windows only move forward, so what lies before the last claim is never wanted again.
    """
    claimed = np.full(len(window.time), np.nan)
    first = np.searchsorted(times, window.low, side="left").tolist()
    free = 0
    for number, (earliest, high) in enumerate(zip(first, window.high.tolist(), strict=True)):
        candidate = max(free, earliest)
        if candidate < len(times) and times[candidate] <= high:
            claimed[number] = times[candidate]
            free = candidate + 1
    return claimed


def false_interruptions(gold: Gold, predicted: Times) -> int:
    """INT negative spans that the events fire on, INT excluded intervals dropped, no positive windows.

    The count behind ``false_int_rate``, for events of either task.
    """
    probes = gold.int.negatives
    alone = TaskGold(probes.at(slice(0)), probes, gold.int.excluded)
    return score_task(alone, predicted).fp


# --- from probabilities to events ---------------------------------------------------------------


def refractory_frames(frame_rate_hz: float) -> int:
    """Frames that must pass between two committed events: max(1, round(2.0 rate)), Python's round."""
    return max(1, round(REFRACTORY_S * frame_rate_hz))


def frame_times(count: int, frame_rate_hz: float) -> NDArray[np.float64]:
    """The time at which each frame has been heard, (i + 1) / rate, shape [count]."""
    return np.arange(1, count + 1, dtype=np.float64) / frame_rate_hz


def committed_frames(
    probabilities: NDArray[np.float64], theta: float, frame_rate_hz: float
) -> NDArray[np.intp]:
    """Frames at which a system with threshold ``theta`` commits, shape [K].

    An event at each rising edge of p > theta, unless fewer than ``refractory_frames`` have passed since
    the last committed one; a suppressed edge does not extend the wait.
    """
    above = probabilities > theta
    edges = np.flatnonzero(above & ~np.concatenate(([False], above[:-1])))
    wait = refractory_frames(frame_rate_hz)
    chosen = []
    position = 0
    while position < len(edges):
        chosen.append(edges[position])
        position = int(np.searchsorted(edges, edges[position] + wait, side="left"))
    return np.array(chosen, np.intp)


def committed_times(
    probabilities: NDArray[np.float64], theta: float, frame_rate_hz: float
) -> NDArray[np.float64]:
    """Times in seconds at which a system with threshold ``theta`` commits, shape [K]."""
    frames = committed_frames(probabilities, theta, frame_rate_hz)
    return (frames + 1).astype(np.float64) / frame_rate_hz
