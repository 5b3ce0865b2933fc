"""Array code against the plain loops of ``reference.py``, on random conversations with many near ties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import evolve
from floorkit_turnbench import reference
from floorkit_turnbench.consensus import consensus, rounded
from floorkit_turnbench.conversation import TASKS, Conversation, Gold, Spans, Task, TaskGold, Track
from floorkit_turnbench.gold import build_gold
from floorkit_turnbench.kernel import committed_times, score_task
from floorkit_turnbench.labels import CLASSES
from floorkit_turnbench.thresholds import sweep_conversation
from hypothesis import given, settings
from hypothesis import strategies as st

RawTracks = dict[int, dict[str, list[tuple[float, float, str]]]]
COMMON = settings(deadline=None, max_examples=80)


def grid(low: int, high: int) -> st.SearchStrategy[float]:
    """Times on a grid of 0.05 s, so that 0.2, 0.25, 0.5 and 3.0 s apart occur all the time."""
    return st.integers(low, high).map(lambda step: step * 0.05)


@st.composite
def tracks(draw: st.DrawFn) -> RawTracks:
    """Three annotators' tracks of two speakers: real events, each seen with jitter, mislabelled or missed."""
    made: RawTracks = {}
    for speaker in (1, 2):
        real = draw(st.lists(st.tuples(grid(0, 400), grid(0, 60), st.sampled_from(CLASSES)), max_size=8))
        made[speaker] = {}
        for annotator in "abc":
            events = []
            for start, length, label in real:
                how = draw(st.integers(0, 9))
                if how == 0:
                    continue
                shift = draw(st.integers(-5, 5)) * 0.05
                stretch = draw(st.integers(-5, 5)) * 0.05
                seen = draw(st.sampled_from(CLASSES)) if how == 1 else label
                begin = max(0.0, start + shift)
                events.append((begin, max(begin, begin + length + stretch), seen))
            if draw(st.booleans()):
                events.sort()
            made[speaker][annotator] = events
    return made


def as_conversation(raw: RawTracks, duration_s: float = 40.0) -> Conversation:
    coded = {
        (speaker, annotator): Track(
            np.array([start for start, _, _ in events], float),
            np.array([end for _, end, _ in events], float),
            np.array([CLASSES.index(label) for _, _, label in events], np.int8),
        )
        for speaker, by_annotator in raw.items()
        for annotator, events in by_annotator.items()
    }
    return Conversation("x", duration_s, coded)


def listed(spans: Spans) -> list[tuple[int, float, float]]:
    return list(zip(spans.speaker.tolist(), spans.start.tolist(), spans.end.tolist(), strict=True))


def spans_of(rows: list[tuple[int, float, float]]) -> Spans:
    return Spans(
        np.array([row[0] for row in rows], np.int8),
        np.array([row[1] for row in rows], float),
        np.array([row[2] for row in rows], float),
    )


@COMMON
@given(tracks())
def test_consensus_equals_the_plain_loops(raw: RawTracks) -> None:
    found = consensus(as_conversation(raw), "label")
    accepted, excluded = [], []
    for speaker in (1, 2):
        events, intervals = reference.consensus(raw[speaker])
        accepted += [(speaker, start, end, CLASSES.index(label)) for start, end, label in events]
        excluded += [(speaker, start, end) for start, end in intervals]
    assert [
        (*row, label) for row, label in zip(listed(found.accepted), found.label_class.tolist(), strict=True)
    ] == accepted
    assert listed(found.excluded) == excluded


@COMMON
@given(tracks())
def test_gold_equals_the_plain_loops(raw: RawTracks) -> None:
    found = build_gold(as_conversation(raw))
    expected = reference.build_gold(raw)
    for task in TASKS:
        positives, negatives, excluded = expected.sets(task)
        assert listed(found.task(task).positives) == positives
        assert listed(found.task(task).negatives) == negatives
        assert listed(found.task(task).excluded) == excluded


@st.composite
def scored(draw: st.DrawFn) -> tuple[TaskGold, dict[int, list[float]]]:
    """Random gold sets and predictions on one grid."""
    speakers = st.integers(1, 2)
    positives = draw(st.lists(st.tuples(speakers, grid(0, 300)), max_size=8))
    negatives = draw(st.lists(st.tuples(speakers, grid(0, 300), grid(0, 30)), max_size=8))
    excluded = draw(st.lists(st.tuples(speakers, grid(0, 300), grid(0, 20)), max_size=3))
    predicted = {speaker: sorted(set(draw(st.lists(grid(0, 300), max_size=20)))) for speaker in (1, 2)}
    gold = TaskGold(
        spans_of([(speaker, time, time) for speaker, time in positives]),
        spans_of([(speaker, start, start + length) for speaker, start, length in negatives]),
        spans_of([(speaker, start, start + length) for speaker, start, length in excluded]),
    )
    return gold, predicted


def reference_score(gold: TaskGold, predicted: Mapping[int, Any]) -> reference.ReferenceScore:
    return reference.score_task(
        listed(gold.positives), listed(gold.negatives), listed(gold.excluded), predicted
    )


def none_for_nan(values: np.ndarray[Any, Any]) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]


@COMMON
@given(scored())
def test_scores_equal_the_plain_loops(given_: tuple[TaskGold, dict[int, list[float]]]) -> None:
    gold, predicted = given_
    found = score_task(gold, {speaker: np.array(times, float) for speaker, times in predicted.items()})
    expected = reference_score(gold, predicted)
    assert (found.tp, found.fn, found.fp, found.tn) == (expected.tp, expected.fn, expected.fp, expected.tn)
    assert none_for_nan(found.matched_s) == expected.matched
    assert none_for_nan(found.fired_s) == expected.fired
    order = np.argsort(gold.positives.start, kind="stable")
    latency = found.latency_ms[order]
    assert np.allclose(latency[~np.isnan(latency)], expected.latencies_ms, rtol=0.0, atol=1e-12)


LEVELS = (0.0, 0.1, 0.25, 0.25, 0.5, 0.75, 0.9, 1.0)


@COMMON
@given(scored(), scored(), st.data())
def test_a_sweep_equals_committing_and_scoring_each_threshold(
    one: tuple[TaskGold, Any], other: tuple[TaskGold, Any], data: st.DataObject
) -> None:
    rate = data.draw(st.sampled_from([0.3, 1.0, 2.5, 5.0, 12.5]))
    frames = data.draw(st.integers(0, 80))
    values = {
        speaker: np.array(
            data.draw(st.lists(st.sampled_from(LEVELS), min_size=frames, max_size=frames)), float
        )
        for speaker in (1, 2)
    }
    thetas = np.unique(data.draw(st.lists(st.sampled_from((*LEVELS, 0.3, 0.6, -1.0, 2.0)), min_size=1)))
    gold = Gold("x", frames / rate, eot=one[0], int=other[0])
    task: Task = data.draw(st.sampled_from(TASKS))
    found = sweep_conversation(gold, task, values, thetas, rate)
    for index, theta in enumerate(thetas.tolist()):
        times = {speaker: reference.committed(values[speaker].tolist(), theta, rate) for speaker in (1, 2)}
        for speaker in (1, 2):
            assert committed_times(values[speaker], theta, rate).tolist() == times[speaker]
        expected = reference_score(gold.task(task), times)
        hits = dict(
            zip(
                found.hit_span[found.hit_theta == index].tolist(),
                found.hit_time[found.hit_theta == index].tolist(),
                strict=True,
            )
        )
        fires = dict(
            zip(
                found.fire_span[found.fire_theta == index].tolist(),
                found.fire_time[found.fire_theta == index].tolist(),
                strict=True,
            )
        )
        assert [hits.get(number) for number in range(len(expected.matched))] == expected.matched
        assert [fires.get(number) for number in range(len(expected.fired))] == expected.fired
        alone = evolve(gold.int, positives=spans_of([]))
        assert int(found.false_int[index]) == reference_score(alone, times).fp


@COMMON
@given(scored(), st.floats(0.0, 15.0))
def test_a_prediction_outside_every_region_changes_nothing(
    given_: tuple[TaskGold, dict[int, list[float]]], time: float
) -> None:
    gold, predicted = given_
    regions = [
        *((low - 0.25, low + 3.0) for _, low, _ in listed(gold.positives)),
        *((start - 0.25, end) for _, start, end in listed(gold.negatives)),
    ]
    if any(low <= time <= high for low, high in regions):
        time = 1000.0
    arrays = {speaker: np.array(times, float) for speaker, times in predicted.items()}
    more = {speaker: np.unique(np.append(times, time)) for speaker, times in arrays.items()}
    before, after = score_task(gold, arrays), score_task(gold, more)
    assert (before.tp, before.fn, before.fp, before.tn) == (after.tp, after.fn, after.fp, after.tn)


@COMMON
@given(scored(), st.integers(1, 64))
def test_shifting_everything_changes_no_count(
    given_: tuple[TaskGold, dict[int, list[float]]], shift: int
) -> None:
    gold, predicted = given_

    def binary(values: Any) -> np.ndarray[Any, Any]:
        # on a grid of powers of two, shifting is exact
        return np.round(np.asarray(values, float) * 64) / 64

    def moved(spans: Spans, by: float) -> Spans:
        return Spans(spans.speaker, binary(spans.start) + by, binary(spans.end) + by)

    counts = []
    for by in (0.0, float(shift)):
        shifted = TaskGold(moved(gold.positives, by), moved(gold.negatives, by), moved(gold.excluded, by))
        times = {speaker: np.unique(binary(values)) + by for speaker, values in predicted.items()}
        score = score_task(shifted, times)
        counts.append((score.tp, score.fn, score.fp, score.tn))
    assert counts[0] == counts[1]


@given(st.lists(st.floats(0.0, 10_000.0) | st.integers(0, 10**7).map(lambda step: step / 2e4), max_size=50))
def test_rounding_is_pythons(values: list[float]) -> None:
    assert rounded(np.array(values, float)).tolist() == [round(value, 4) for value in values]
