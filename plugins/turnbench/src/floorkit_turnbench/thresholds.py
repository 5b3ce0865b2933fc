"""All thresholds of a probability run at once, and the operating point under a false-positive budget.

A threshold matters only where the probabilities cross it. Every frame is placed among the thresholds once;
a rise from one place to a higher one is a rising edge for exactly the thresholds between the two. From there
on the work grows with the number of these crossings, not with thresholds times frames.

Source: turnbench spec, "Probabilities, sweep, operating point". ``kernel.committed_frames`` and
``kernel.score_task`` do the same for one threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attrs import frozen

from floorkit.numerics import percentiles, rate
from floorkit_turnbench.consensus import covered
from floorkit_turnbench.conversation import Gold, Spans, Task, TaskGold
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
FP_BUDGET: Final = 0.1


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
        Frame of the event in each block, shape [B + 1, T]; F, the number of frames, where there is none. The
        last block is empty.
    wait
        Length of a block.
    """

    frame: NDArray[np.int32]
    wait: int

    def without(self, dropped: NDArray[np.bool_]) -> _Commits:
        """Those whose frame is not ``dropped``, shape [F]."""
        none = len(dropped)
        return _Commits(np.where(np.append(dropped, True)[self.frame], np.int32(none), self.frame), self.wait)

    @cached_property
    def following(self) -> NDArray[np.int32]:
        """Frame of the first event in each block or a later one, shape [B + 1, T]."""
        return np.minimum.accumulate(self.frame[::-1])[::-1]

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
    for block, (first, last) in enumerate(pairwise(bounds)):
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
    return [_Commits(part, wait) for part in np.hsplit(committed, speakers)]


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
    hit_theta, hit_span, hit_time = (np.concatenate(column) for column in zip(*hits, strict=True))
    fire_theta, fire_span, fire_time = (np.concatenate(column) for column in zip(*fires, strict=True))
    return ConversationSweep(hit_theta, hit_span, hit_time, fire_theta, fire_span, fire_time, false_int)


# --- pooled over conversations ------------------------------------------------------------------


@frozen(eq=False)
class Sweep:
    """A task's counts at each of T thresholds, pooled over conversations; arrays of shape [T].

    ``latency_ms`` [T, 3] holds the 10th, 50th and 90th percentile over true positives, NaN for none.
    """

    task: Task
    theta: NDArray[np.float64]
    tp: NDArray[np.int64]
    fn: NDArray[np.int64]
    fp: NDArray[np.int64]
    tn: NDArray[np.int64]
    false_int: NDArray[np.int64]
    int_negatives: int
    latency_ms: NDArray[np.float64]

    def row(self, index: int) -> dict[str, Any]:
        """One threshold's figures under the names of sweep.csv; None where a denominator is 0."""
        tp, fn, fp, tn = (int(counts[index]) for counts in (self.tp, self.fn, self.fp, self.tn))
        latencies = [None if np.isnan(value) else float(value) for value in self.latency_ms[index]]
        return {
            "theta": float(self.theta[index]),
            "tp": tp,
            "fn": fn,
            "fp": fp,
            "tn": tn,
            "recall": rate(tp, tp + fn),
            "fp_rate": rate(fp, fp + tn),
            "false_int_rate": rate(int(self.false_int[index]), self.int_negatives),
            **{
                f"latency_p{percent}_ms": value
                for percent, value in zip(LATENCY_PERCENTS, latencies, strict=True)
            },
        }

    def rows(self) -> list[dict[str, Any]]:
        """All thresholds, ascending."""
        return [self.row(index) for index in range(len(self.theta))]

    def operating_point(self, fp_budget: float = FP_BUDGET) -> dict[str, Any] | None:
        """The row that :func:`operating_index` chooses, or None."""
        index = operating_index(self.tp, self.fp, int(self.fp[0] + self.tn[0]), fp_budget)
        return None if index is None else self.row(index)


def operating_index(
    tp: NDArray[np.int64], fp: NDArray[np.int64], negatives: int, fp_budget: float
) -> int | None:
    """Index of the operating point among thresholds in ascending order.

    The highest recall with fp_rate <= budget (inclusive), the lowest such threshold on ties; without any
    positive the lowest threshold that qualifies. None where none does, or there is no negative.
    """
    if negatives == 0:
        return None
    qualifies = fp / negatives <= fp_budget
    if not qualifies.any():
        return None
    return int(np.argmax(np.where(qualifies, tp, -1)))


def pool_sweeps(
    task: Task, thetas: NDArray[np.float64], parts: Sequence[tuple[Gold, ConversationSweep]]
) -> Sweep:
    """Pool the sweeps of conversations at the same ``thetas``."""
    count = len(thetas)
    positives = sum(len(gold.task(task).positives) for gold, _ in parts)
    negatives = sum(len(gold.task(task).negatives) for gold, _ in parts)
    tp, fp, false_int = (np.zeros(count, np.int64) for _ in range(3))
    for _, part in parts:
        tp += np.bincount(part.hit_theta, minlength=count)
        fp += np.bincount(part.fire_theta, minlength=count)
        false_int += part.false_int
    theta = np.concatenate([part.hit_theta for _, part in parts] or [np.zeros(0, np.int64)])
    latency = np.concatenate(
        [latencies_ms(gold.task(task), part.hit_span, part.hit_time) for gold, part in parts] or [np.zeros(0)]
    )
    return Sweep(
        task,
        thetas,
        tp,
        positives - tp,
        fp,
        negatives - fp,
        false_int,
        sum(len(gold.int.negatives) for gold, _ in parts),
        latency_percentiles(theta, latency, count),
    )


def latencies_ms(
    gold: TaskGold, positive: NDArray[np.intp], time: NDArray[np.float64]
) -> NDArray[np.float64]:
    """1000 (time - time of the positive) of each true positive."""
    return (time - gold.positives.start[positive]) * 1000.0


def latency_percentiles(
    theta: NDArray[np.int64], latency_ms: NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    """10th, 50th and 90th percentile of the latencies at each of ``count`` thresholds, [T, 3]; NaN: none."""
    order = np.argsort(theta, kind="stable")
    bounds = np.searchsorted(theta[order], np.arange(1, count))
    groups = np.split(latency_ms[order], bounds) if count else []
    table = [percentiles(group, LATENCY_PERCENTS) for group in groups]
    return np.array(table, dtype=np.float64).reshape(count, len(LATENCY_PERCENTS))


def sweep_probabilities(
    task: Task,
    golds: Mapping[str, Gold],
    probabilities: Mapping[str, Mapping[int, NDArray[np.float64]]],
    frame_rate_hz: float,
    thetas: NDArray[np.float64] | None = None,
) -> Sweep:
    """Sweep a task over several conversations.

    Parameters
    ----------
    golds
        Conversation id to gold; decides which conversations count.
    probabilities
        Conversation id to speaker to probability of each frame.
    thetas
        Thresholds to try; the candidates of :func:`candidate_thetas` where left out.
    """
    if thetas is None:
        thetas = candidate_thetas(
            probabilities[identifier][speaker] for identifier in golds for speaker in SPEAKERS
        )
    thetas = np.unique(np.asarray(thetas, np.float64))
    return pool_sweeps(
        task,
        thetas,
        [
            (gold, sweep_conversation(gold, task, probabilities[identifier], thetas, frame_rate_hz))
            for identifier, gold in golds.items()
        ],
    )
