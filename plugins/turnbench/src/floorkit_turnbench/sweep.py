"""All thresholds of a probability run at once, and the operating point under a false-positive budget.

A threshold matters only where the probabilities cross it. Every frame is placed among the thresholds once;
a rise from one place to a higher one is a rising edge for exactly the thresholds between the two. From there
on the work grows with the number of these crossings, not with thresholds times frames.

Source: turnbench spec, "Probabilities, sweep, operating point". ``kernel.committed_frames`` and
``kernel.score_task`` do the same for one threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attrs import frozen

from floorkit.numerics import percentiles, rate
from floorkit_turnbench.conversation import Gold, Spans, Task
from floorkit_turnbench.gold import covered
from floorkit_turnbench.kernel import (
    EARLY_S,
    Windows,
    frame_times,
    refractory_frames,
    windows,
)
from floorkit_turnbench.labels import SPEAKERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

QUANTILES: Final = 512
LATENCY_PERCENTS: Final = (10, 50, 90)


def candidate_thetas(probabilities: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Candidate thresholds for a task, ascending without duplicates.

    The 512 quantiles (linspace 0 .. 1) of all pooled values above 0, and 0.01 .. 0.99 in steps of 0.01;
    the latter alone when nothing is above 0.
    """
    grid = np.arange(1, 100) / 100.0
    positive = [values[values > 0.0] for values in probabilities]
    pooled = np.concatenate(positive) if positive else np.zeros(0)
    if not len(pooled):
        return grid
    pooled.sort()
    return np.unique(np.concatenate((np.quantile(pooled, np.linspace(0.0, 1.0, QUANTILES)), grid)))


@frozen(eq=False)
class ConversationSweep:
    """What one conversation adds to each of T thresholds.

    Parameters
    ----------
    hit_theta, hit_span, hit_time
        For every true positive: index of the threshold, index of the positive in the gold, time claimed.
    fire_theta, fire_span, fire_time
        For every false positive: index of the threshold, of the negative span, earliest time in it.
    false_int
        Number of INT negative spans that the same events fire on, shape [T].
    """

    hit_theta: NDArray[np.int64]
    hit_span: NDArray[np.int64]
    hit_time: NDArray[np.float64]
    fire_theta: NDArray[np.int64]
    fire_span: NDArray[np.int64]
    fire_time: NDArray[np.float64]
    false_int: NDArray[np.int64]


@frozen(eq=False)
class _Commits:
    """One speaker's committed events at T thresholds.

    The frames are cut into blocks as long as the refractory wait, so that no threshold has two events in one.

    Parameters
    ----------
    frame
        Frame of the event in each block, shape [B + 1, T]; F, the number of frames, where there is none.
    following
        Frame of the first event in each block or a later one, shape [B + 1, T]; F where there is none.
    wait
        Length of a block.
    """

    frame: NDArray[np.int32]
    following: NDArray[np.int32]
    wait: int

    @classmethod
    def of(cls, frame: NDArray[np.int32], wait: int) -> _Commits:
        return cls(frame, np.minimum.accumulate(frame[::-1])[::-1], wait)

    def without(self, dropped: NDArray[np.bool_]) -> _Commits:
        """Those whose frame is not ``dropped``, shape [F]."""
        none = len(dropped)
        gone = np.append(dropped, True)
        return _Commits.of(np.where(gone[self.frame], np.int32(none), self.frame), self.wait)

    def from_frames(self, start: NDArray[np.intp]) -> NDArray[np.int32]:
        """Frame of the first event at or after each of ``start`` [N], at every threshold: [N, T]."""
        block = start // self.wait
        after = np.minimum(block + 1, len(self.frame) - 1)
        missed = self.frame[block] < start[:, None]
        return np.where(missed, self.following[after], self.following[block])

    def from_frame_of_each(self, start: NDArray[np.intp]) -> NDArray[np.int32]:
        """Frame of the first event at or after ``start`` [T], which differs from threshold to threshold."""
        thetas = np.arange(len(start))
        block = start // self.wait
        after = np.minimum(block + 1, len(self.frame) - 1)
        missed = self.frame[block, thetas] < start
        return self.following[np.where(missed, after, block), thetas]


def _commit(
    probabilities: NDArray[np.float64], thetas: NDArray[np.float64], frame_rate_hz: float
) -> list[_Commits]:
    """Committed events at all ``thetas`` (ascending, [T]) of speakers 1 and 2 (``probabilities`` [F, 2])."""
    wait = refractory_frames(frame_rate_hz)
    frames, speakers = probabilities.shape
    place = np.searchsorted(thetas, probabilities)
    before = np.concatenate((np.zeros((1, speakers), place.dtype), place[:-1]))[:frames]
    # Rising edges in order of time. A lane is one threshold of one speaker; a rise is an edge in the lanes
    # between the two places.
    rise, speaker = np.nonzero(place > before)
    lowest = before[rise, speaker] + speaker * len(thetas)
    height = (place - before)[rise, speaker]

    blocks = -(-frames // wait)
    bounds = np.searchsorted(rise, np.arange(blocks + 1) * wait).tolist()
    committed = np.full((blocks + 1, speakers * len(thetas)), frames, np.int32)
    free = np.zeros(speakers * len(thetas), np.intp)  # the first frame at which a lane may commit again
    for block, (first, last) in enumerate(zip(bounds[:-1], bounds[1:], strict=True)):
        if first == last:
            continue
        # from late to early: of several edges of a lane the one that is written last, the earliest, stands
        heights = height[first:last][::-1]
        stops = np.cumsum(heights)
        lane = np.arange(stops[-1])
        lane -= np.repeat(stops - heights - lowest[first:last][::-1], heights)
        frame = np.repeat(rise[first:last][::-1], heights)
        commits = np.flatnonzero(frame >= free[lane])
        lane, frame = lane[commits], frame[commits]
        committed[block, lane] = frame
        free[lane] = frame + wait
    return [_Commits.of(part, wait) for part in np.hsplit(committed, speakers)]


def _inside(times: NDArray[np.float64], spans: Spans) -> NDArray[np.bool_]:
    return covered(times, times, spans, closed=True)


def _claims(
    commits: _Commits, window: Windows, times: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int32]]:
    """(threshold, positive in order of time, frame) of every true positive."""
    low = np.searchsorted(times, window.low, side="left").tolist()
    high = np.searchsorted(times, window.high, side="right").tolist()
    claimed = np.full((len(low), commits.frame.shape[1]), -1, np.int32)
    free = np.zeros(commits.frame.shape[1], np.intp)
    for number, (start, stop) in enumerate(zip(low, high, strict=True)):
        if start == len(times):
            break
        found = commits.from_frame_of_each(np.maximum(free, start))
        claims = found < stop
        claimed[number, claims] = found[claims]
        free[claims] = found[claims] + 1
    positive, theta = np.nonzero(claimed >= 0)
    return theta, positive, claimed[positive, theta]


def _fires(
    commits: _Commits, spans: Spans, times: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int32]]:
    """(threshold, span, frame) of the first event in each [start - 0.25, end] that has one."""
    low = np.searchsorted(times, spans.start - EARLY_S, side="left")
    high = np.searchsorted(times, spans.end, side="right")
    frame = commits.from_frames(low)
    span, theta = np.nonzero(frame < high[:, None])
    return theta, span, frame[span, theta]


def sweep_conversation(
    gold: Gold,
    task: Task,
    probabilities: Mapping[int, NDArray[np.float64]],
    thetas: NDArray[np.float64],
    frame_rate_hz: float,
) -> ConversationSweep:
    """Score one conversation at all thresholds.

    Parameters
    ----------
    probabilities
        Speaker to probability of each frame, shape [F].
    thetas
        Ascending, without duplicates, shape [T]. An event is a rising edge of p > theta.
    """
    scored = gold.task(task)
    both = np.stack([np.asarray(probabilities[speaker], np.float64) for speaker in SPEAKERS], axis=1)
    times = frame_times(len(both), frame_rate_hz)
    hits, fires = [], []
    false_int = np.zeros(len(thetas), np.int64)
    for speaker, commits in zip(SPEAKERS, _commit(both, thetas, frame_rate_hz), strict=True):
        window = windows(scored.positives, speaker)
        scorable = commits.without(_inside(times, scored.excluded.of(speaker)))
        theta, positive, frame = _claims(scorable, window, times)
        hits.append((theta, window.index[positive], times[frame]))

        outside = scorable.without(_inside(times, Spans.single(speaker, window.low, window.high)))
        own = np.flatnonzero(scored.negatives.speaker == speaker)
        theta, span, frame = _fires(outside, scored.negatives.at(own), times)
        fires.append((theta, own[span], times[frame]))

        spoken = commits.without(_inside(times, gold.int.excluded.of(speaker)))
        theta, _, _ = _fires(spoken, gold.int.negatives.of(speaker), times)
        false_int += np.bincount(theta, minlength=len(thetas))
    return ConversationSweep(
        *(np.concatenate(column) for column in zip(*hits, strict=True)),
        *(np.concatenate(column) for column in zip(*fires, strict=True)),
        false_int,
    )
