"""The shared numerics against plain loops and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from floorkit import numerics

EVENTS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.5000001, 0.9, 1.0]), st.booleans(), st.integers(0, 3)),
    min_size=1,
    max_size=40,
)


def plain_average_precision(events: list[tuple[float, bool]]) -> float | None:
    positives = sum(label for _, label in events)
    if not positives:
        return None
    total, before = 0.0, 0.0
    for score in sorted({score for score, _ in events}, reverse=True):
        above = [label for value, label in events if value >= score]
        recall = sum(above) / positives
        total += (recall - before) * sum(above) / len(above)
        before = recall
    return total


@given(EVENTS)
def test_average_precision_equals_a_plain_loop_and_scikit_learn(
    events: list[tuple[float, bool, int]],
) -> None:
    scores = [score for score, _, _ in events]
    labels = [label for _, label, _ in events]
    found = numerics.average_precision(scores, labels)
    expected = plain_average_precision(list(zip(scores, labels, strict=True)))
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-12))
    if expected is not None:
        assert found == pytest.approx(average_precision_score(labels, scores), abs=1e-12)


@given(EVENTS)
def test_weighted_average_precision_is_that_of_repeated_events(
    events: list[tuple[float, bool, int]],
) -> None:
    weights = [weight for _, _, weight in events]
    repeated = [(score, label) for score, label, weight in events for _ in range(weight)]
    found = numerics.average_precision(
        [score for score, _, _ in events], [label for _, label, _ in events], weights
    )
    expected = plain_average_precision(repeated) if repeated else None
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-12))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.floats(0.001, 1.0))
def test_threshold_is_the_highest_score_that_reaches_the_recall(
    positives: list[float], recall: float
) -> None:
    threshold = numerics.matched_recall_threshold(positives, recall)
    assert threshold in positives
    needed = recall * len(positives) - 1e-9
    assert sum(score >= threshold for score in positives) >= needed
    higher = [score for score in positives if score > threshold]
    assert len(higher) < max(1, math.ceil(needed))


@pytest.mark.parametrize(
    ("count", "recall", "rank"), [(25, 0.28, 7), (25, 0.56, 14), (10, 0.7, 7), (3, 1.0, 3), (5, 0.01, 1)]
)
def test_threshold_rank_survives_binary_fractions(count: int, recall: float, rank: int) -> None:
    scores = [float(value) for value in range(count, 0, -1)]
    assert numerics.matched_recall_threshold(scores, recall) == scores[rank - 1]


def test_what_does_not_exist_is_none() -> None:
    assert numerics.matched_recall_threshold([], 0.8) is None
    assert numerics.average_precision([0.1], [0]) is None
    assert numerics.average_precision([], []) is None
    assert numerics.rate(0, 0) is None
    assert numerics.rate(None, 3) is None
    assert numerics.rate(0, 3) == 0.0
    assert numerics.f1(0, 0, 0) is None
    assert numerics.percentiles([], (10, 50)) == [None, None]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.floats(0, 100))
def test_percentiles_interpolate_linearly(values: list[float], percent: float) -> None:
    (found,) = numerics.percentiles(values, [percent])
    assert found == pytest.approx(float(np.percentile(values, percent, method="linear")))


@pytest.mark.parametrize(
    ("seconds", "rows"),
    [(0.6, 3), (2.0, 10), (1.4, 7), (0.5, None), (0.2000001, None), (math.nan, None), (math.inf, None)],
)
def test_durations_are_whole_rows(seconds: float, rows: int | None) -> None:
    assert numerics.whole_rows(seconds) == rows


def test_a_recall_is_named_by_its_repr() -> None:
    assert [numerics.recall_name(value) for value in (0.8, 1, 0.28)] == ["0.8", "1.0", "0.28"]
