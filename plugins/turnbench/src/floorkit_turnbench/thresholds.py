"""Scoring probabilities at all thresholds, and the operating point under a false-positive budget.

``commits.commit_all`` turns probabilities into committed events at all thresholds at once; here they are
scored as ``kernel.score_task`` scores those of one threshold.

Source: turnbench spec, "Probabilities, sweep, operating point".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attrs import evolve, frozen

from floorkit.numerics import rate
from floorkit_turnbench.commits import commit_all, first_between
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
FRAMES_AT_ONCE: Final = 1 << 17
"""Frames a speaker that are committed together; bounds the memory of a sweep."""
EXCLUDED, IN_WINDOW, INT_EXCLUDED = 1, 2, 4


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


def _inside(times: NDArray[np.float64], spans: Spans) -> NDArray[np.bool_]:
    return covered(times, times, spans, closed=True)


@frozen(eq=False)
class _Commits:
    """One speaker's committed events at T thresholds: see ``commits.commit_all``.

    ``frame`` has shape [B + 1, T], ``none`` or more where there is none; ``times`` [F] is each frame's time.
    """

    frame: NDArray[np.int32]
    wait: int
    none: int
    times: NDArray[np.float64]

    def keeping(self, kept: NDArray[np.bool_]) -> _Commits:
        """Those that are ``kept``, shape [B + 1, T]."""
        return evolve(self, frame=np.where(kept, self.frame, np.int32(self.none)))

    def first(self, start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.int32]:
        """Frame of the first event in each [start, end] [N] (ends included) at every threshold: [N, T]."""
        low = np.searchsorted(self.times, start, side="left")
        high = np.searchsorted(self.times, end, side="right")
        return first_between(self.frame, low, high, self.wait, self.none)


Fired = tuple["NDArray[np.intp]", "NDArray[np.intp]", "NDArray[np.float64]"]
"""(threshold, position of the event or span, time) of everything that fired."""


def _fired(frame: NDArray[np.int32], commits: _Commits) -> Fired:
    span, theta = np.nonzero(frame < commits.none)
    return theta, span, commits.times[frame[span, theta]]


def _claims(commits: _Commits, window: Windows) -> Fired:
    """True positives; positions are those in order of time."""
    claimed = commits.first(window.low, window.high)
    free = np.zeros(claimed.shape[1], np.int32)
    for number, row in enumerate(claimed):
        # what an earlier positive has claimed is not free: look again behind it
        taken = np.flatnonzero(row < free)
        if len(taken):
            behind = commits.keeping(commits.frame >= free)
            again = behind.first(window.low[number : number + 1], window.high[number : number + 1])
            row[taken] = again[0, taken]
        np.maximum(free, np.where(row < commits.none, row + 1, 0), out=free)
    return _fired(claimed, commits)


def _fires(commits: _Commits, spans: Spans) -> Fired:
    """False positives: the first event in each [start - 0.25, end] that has one."""
    return _fired(commits.first(spans.start - EARLY_S, spans.end), commits)


def sweep_conversation(
    gold: Gold,
    task: Task,
    probabilities: Mapping[int, NDArray[np.float64]],
    thetas: NDArray[np.float64],
    frame_rate_hz: float,
) -> ConversationSweep:
    """Score one conversation at all thresholds; see :func:`sweep_conversations`."""
    (swept,) = sweep_conversations([(gold, probabilities)], task, thetas, frame_rate_hz)
    return swept


def sweep_conversations(
    conversations: Iterable[tuple[Gold, Mapping[int, NDArray[np.float64]]]],
    task: Task,
    thetas: NDArray[np.float64],
    frame_rate_hz: float,
) -> Iterator[ConversationSweep]:
    """Score conversations at all thresholds, a few at a time.

    Parameters
    ----------
    conversations
        For each its gold and, by speaker, the probability of each frame, shape [F].
    thetas
        Ascending, without duplicates, shape [T]. An event is a rising edge of p > theta.
    """
    wait = refractory_frames(frame_rate_hz)
    for batch in _batches(conversations):
        lengths = [len(of[SPEAKERS[0]]) for _, of in batch]
        # a conversation that is shorter than others of its batch ends in silence, where nothing rises
        stacked = np.zeros((max(lengths), len(batch) * len(SPEAKERS)))
        for number, (_, of) in enumerate(batch):
            for place, speaker in enumerate(SPEAKERS):
                stacked[: lengths[number], number * len(SPEAKERS) + place] = of[speaker]
        committed = commit_all(stacked, thetas, wait)
        for number, (gold, _) in enumerate(batch):
            times = frame_times(lengths[number], frame_rate_hz)
            own = [
                _Commits(
                    np.ascontiguousarray(committed[:, number * len(SPEAKERS) + place]),
                    wait,
                    max(lengths),
                    times,
                )
                for place in range(len(SPEAKERS))
            ]
            yield _score(gold, task, own, len(thetas))


def _batches(
    conversations: Iterable[tuple[Gold, Mapping[int, NDArray[np.float64]]]],
) -> Iterator[list[tuple[Gold, Mapping[int, NDArray[np.float64]]]]]:
    """Consecutive conversations with at most FRAMES_AT_ONCE frames a speaker (or a single one)."""
    batch: list[tuple[Gold, Mapping[int, NDArray[np.float64]]]] = []
    frames = 0
    for one in conversations:
        length = len(one[1][SPEAKERS[0]])
        if batch and frames + length > FRAMES_AT_ONCE:
            yield batch
            batch, frames = [], 0
        batch.append(one)
        frames += length
    if batch:
        yield batch


def _score(gold: Gold, task: Task, committed: Sequence[_Commits], thetas: int) -> ConversationSweep:
    """Score one conversation's committed events, given by speaker."""
    scored = gold.task(task)
    hits, fires = [], []
    false_int = np.zeros(thetas, np.int64)
    for speaker, commits in zip(SPEAKERS, committed, strict=True):
        window = windows(scored.positives, speaker)
        masks = (
            _inside(commits.times, scored.excluded.of(speaker)) * EXCLUDED
            | _inside(commits.times, Spans.single(speaker, window.low, window.high)) * IN_WINDOW
            | _inside(commits.times, gold.int.excluded.of(speaker)) * INT_EXCLUDED
        )
        nowhere = np.full(commits.none - len(masks) + 1, EXCLUDED | IN_WINDOW | INT_EXCLUDED)
        where = np.concatenate((masks, nowhere)).astype(np.uint8)[commits.frame]

        theta, positive, time = _claims(commits.keeping(where & EXCLUDED == 0), window)
        hits.append((theta, window.index[positive], time))

        own = np.flatnonzero(scored.negatives.speaker == speaker)
        outside = commits.keeping(where & (EXCLUDED | IN_WINDOW) == 0)
        theta, span, time = _fires(outside, scored.negatives.at(own))
        fires.append((theta, own[span], time))

        spoken = commits.keeping(where & INT_EXCLUDED == 0)
        theta, _, _ = _fires(spoken, gold.int.negatives.of(speaker))
        false_int += np.bincount(theta, minlength=thetas)
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
    """10th, 50th and 90th percentile of the latencies at each of ``count`` thresholds, [T, 3]; NaN: none.

    Linear interpolation between order statistics, as ``floorkit.numerics.percentiles`` for one threshold.
    """
    ordered = latency_ms[np.lexsort((latency_ms, theta))]
    sizes = np.bincount(theta, minlength=count)[:, None]
    first = np.cumsum(sizes, axis=0) - sizes
    position = np.asarray(LATENCY_PERCENTS) / 100.0 * (sizes - 1)
    below = np.clip(np.floor(position), 0, None).astype(np.intp)
    share = position - below
    padded = np.append(ordered, [np.nan, np.nan])
    low, high = padded[first + below], padded[first + np.minimum(below + 1, np.maximum(sizes - 1, 0))]
    return np.asarray(np.where(sizes > 0, low + (high - low) * share, np.nan))


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
    swept = sweep_conversations(
        [(gold, probabilities[identifier]) for identifier, gold in golds.items()], task, thetas, frame_rate_hz
    )
    return pool_sweeps(task, thetas, list(zip(golds.values(), swept, strict=True)))
