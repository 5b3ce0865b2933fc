"""turnbench as plain, slow loops, written from the specification.

Nothing here is used to compute a result: the tests fuzz ``gold.py``, ``kernel.py`` and ``thresholds.py``
against it, and the benchmark takes it as the yardstick. Intervals and events are tuples, and the order
of every loop is that of the specification.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import define

Event = tuple[float, float, str]
"""(start_s, end_s, class)."""
Interval = tuple[float, float]
Tracks = Mapping[int, Mapping[str, Sequence[Event]]]
"""Speaker to annotator to events in file order, classes instead of fine labels."""

CLASSES_OF_THE_TURN_VIEW: Final = ("Turn", "Interruption")


@define
class ReferenceGold:
    """The six sets of one conversation, each a list of (speaker, start, end)."""

    eot_positive_events: list[tuple[int, float, float]]
    eot_negative_spans: list[tuple[int, float, float]]
    int_positive_events: list[tuple[int, float, float]]
    int_negative_spans: list[tuple[int, float, float]]
    eot_excluded: list[tuple[int, float, float]]
    int_excluded: list[tuple[int, float, float]]

    def sets(
        self, task: str
    ) -> tuple[
        list[tuple[int, float, float]], list[tuple[int, float, float]], list[tuple[int, float, float]]
    ]:
        """(positives, negatives, excluded) of a task."""
        if task == "eot":
            return self.eot_positive_events, self.eot_negative_spans, self.eot_excluded
        return self.int_positive_events, self.int_negative_spans, self.int_excluded


def consensus(tracks: Mapping[str, Sequence[Event]]) -> tuple[list[Event], list[Interval]]:
    """Accepted events and excluded intervals of one speaker's view."""
    names = sorted(tracks)
    used: set[tuple[str, int]] = set()
    accepted: list[Event] = []
    for position, name in enumerate(names):
        for index, anchor in enumerate(tracks[name]):
            if (name, index) in used:
                continue
            members = [(name, index)]
            for later in names[position + 1 :]:
                best: tuple[str, int] | None = None
                best_distance = math.inf
                for other_index, other in enumerate(tracks[later]):
                    distance = abs(other[0] - anchor[0])
                    if (later, other_index) in used or other[2] != anchor[2] or distance > 0.5:
                        continue
                    if distance < best_distance:
                        best, best_distance = (later, other_index), distance
                if best is not None:
                    members.append(best)
            group = _largest_subset(members, tracks)
            if len(group) >= 2:
                starts = [tracks[who][where][0] for who, where in group]
                ends = [tracks[who][where][1] for who, where in group]
                accepted.append(
                    (
                        round(statistics.median(starts), 4),
                        round(statistics.median(ends), 4),
                        anchor[2],
                    )
                )
                used.update(group)
    disputes = []
    for name in names:
        for index, (start, end, _) in enumerate(tracks[name]):
            if (name, index) in used:
                continue
            if not any(one[0] < end and start < one[1] for one in accepted):
                disputes.append((start, end))
    return accepted, _merge(disputes)


def _largest_subset(
    members: list[tuple[str, int]], tracks: Mapping[str, Sequence[Event]]
) -> list[tuple[str, int]]:
    for size in range(len(members), 1, -1):
        for subset in itertools.combinations(members, size):
            if members[0] not in subset:
                continue
            starts = [tracks[who][where][0] for who, where in subset]
            ends = [tracks[who][where][1] for who, where in subset]
            if max(starts) - min(starts) <= 0.2 and max(ends) - min(ends) <= 0.2:
                return list(subset)
    return members[:1]


def _merge(intervals: list[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return [(round(start, 4), round(end, 4)) for start, end in merged]


def build_gold(tracks: Tracks) -> ReferenceGold:
    """The six sets of a conversation."""
    label, turn = {}, {}
    for speaker in (1, 2):
        label[speaker] = consensus(tracks[speaker])
        turn[speaker] = consensus(
            {
                name: [
                    (start, end, "Turn") for start, end, kind in events if kind in CLASSES_OF_THE_TURN_VIEW
                ]
                for name, events in tracks[speaker].items()
            }
        )
    gold = ReferenceGold([], [], [], [], [], [])
    excluded = [*label[1][1], *turn[1][1], *label[2][1], *turn[2][1]]
    for speaker in (1, 2):
        other = 3 - speaker
        own_turns = sorted(turn[speaker][0], key=lambda event: event[0])
        other_turns = turn[other][0]
        for _, end, _ in own_turns:
            if any(one[0] < end < one[1] for one in own_turns):
                continue
            next_self = min((one[0] for one in own_turns if one[0] > end), default=math.inf)
            next_other = min((one[0] for one in other_turns if one[0] > end), default=math.inf)
            other_speaks = any(one[0] < end < one[1] for one in other_turns)
            if math.isinf(next_self) or next_other < next_self or other_speaks:
                if (speaker, end, end) not in gold.eot_positive_events:
                    gold.eot_positive_events.append((speaker, end, end))
                continue
            cuts = [next_self]
            cuts += [one[0] for one in excluded if one[0] < next_self and one[1] > end]
            cuts += [one[0] for one in label[speaker][0] if one[2] != "Turn" and end < one[0] < next_self]
            cuts += [
                one[0]
                for one in label[other][0]
                if one[2] in ("Interruption", "NonFloorTakingInterruption") and end < one[0] < next_self
            ]
            span = (speaker, end, min(cuts))
            if span[2] > end and span not in gold.eot_negative_spans:
                gold.eot_negative_spans.append(span)
        for start, end, kind in label[speaker][0]:
            if kind == "Interruption":
                gold.int_positive_events.append((speaker, start, start))
            elif kind in ("Backchannel", "NonContent"):
                gold.int_negative_spans.append((speaker, start, end))
        gold.eot_excluded += [(speaker, start, end) for start, end in turn[speaker][1]]
        gold.int_excluded += [(speaker, start, end) for start, end in label[speaker][1]]
    for speaker in (1, 2):
        gold.int_excluded += [
            (speaker, start, end)
            for start, end, kind in label[speaker][0]
            if kind == "NonFloorTakingInterruption"
        ]
    return gold


@define
class ReferenceScore:
    """Counts, and the latencies of the true positives in order of positive time, in ms.

    ``matched`` and ``fired`` hold the matched time of each positive and negative, in gold order, None
    where there is none.
    """

    tp: int
    fn: int
    fp: int
    tn: int
    latencies_ms: list[float]
    matched: list[float | None]
    fired: list[float | None]


def score_task(
    positives: Sequence[tuple[int, float, float]],
    negatives: Sequence[tuple[int, float, float]],
    excluded: Sequence[tuple[int, float, float]],
    predicted: Mapping[int, Sequence[float]],
) -> ReferenceScore:
    """Score one conversation's predicted times of one task."""
    kept: dict[int, list[float]] = {}
    for speaker in (1, 2):
        kept[speaker] = [
            time
            for time in predicted[speaker]
            if not any(who == speaker and start <= time <= end for who, start, end in excluded)
        ]
    claimed: set[tuple[int, float]] = set()
    windows: list[tuple[int, float, float]] = []
    score = ReferenceScore(0, 0, 0, 0, [], [None] * len(positives), [None] * len(negatives))
    for index in sorted(range(len(positives)), key=lambda number: positives[number][1]):
        speaker, gold_time, _ = positives[index]
        later = [one[1] for one in positives if one[0] == speaker and one[1] > gold_time]
        low, high = gold_time - 0.25, min([gold_time + 3.0, *later])
        windows.append((speaker, low, high))
        for time in kept[speaker]:
            if low <= time <= high and (speaker, time) not in claimed:
                claimed.add((speaker, time))
                score.tp += 1
                score.latencies_ms.append(1000.0 * (time - gold_time))
                score.matched[index] = time
                break
        else:
            score.fn += 1
    for index, (speaker, start, end) in enumerate(negatives):
        for time in kept[speaker]:
            in_a_window = any(who == speaker and low <= time <= high for who, low, high in windows)
            if start - 0.25 <= time <= end and not in_a_window and (speaker, time) not in claimed:
                score.fp += 1
                score.fired[index] = time
                break
        else:
            score.tn += 1
    return score


def committed(probabilities: Sequence[float], theta: float, frame_rate_hz: float) -> list[float]:
    """Times at which a system with threshold ``theta`` commits to an event."""
    wait = max(1, round(2.0 * frame_rate_hz))
    times: list[float] = []
    last: int | None = None
    above = False
    for index, value in enumerate(probabilities):
        rises = value > theta and not above
        above = value > theta
        if rises and (last is None or index - last >= wait):
            times.append((index + 1) / frame_rate_hz)
            last = index
    return times
