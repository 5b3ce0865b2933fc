"""Recall against false-trigger rate: every threshold's rates, ties, thinning."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from floorkit.formats.recall_curves import Curve

scored = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0]), st.booleans()), min_size=1, max_size=40
)


@given(scored, st.floats(-0.5, 1.5))
def test_rates_at_any_threshold_are_those_of_a_plain_count(
    events: list[tuple[float, bool]], threshold: float
) -> None:
    curve = Curve.of(np.array([score for score, _ in events]), np.array([positive for _, positive in events]))
    positives = [score for score, positive in events if positive]
    negatives = [score for score, positive in events if not positive]
    if not positives or not negatives:
        assert curve is None
        return
    assert curve is not None
    point = curve.place(threshold)
    assert curve.recall[point] == sum(score >= threshold for score in positives) / len(positives)
    assert curve.false_rate[point] == sum(score >= threshold for score in negatives) / len(negatives)


def test_tied_scores_are_passed_together_and_the_first_point_is_where_nothing_fires() -> None:
    curve = Curve.of(np.array([0.5, 0.5, 0.2, 0.9]), np.array([True, False, False, True]))
    assert curve is not None
    assert curve.threshold.tolist() == [math.inf, 0.9, 0.5, 0.2]
    assert curve.recall.tolist() == [0.0, 0.5, 1.0, 1.0]
    assert curve.false_rate.tolist() == [0.0, 0.0, 0.5, 1.0]


def test_a_long_curve_keeps_its_ends_its_chosen_points_and_its_shape() -> None:
    generator = np.random.default_rng(3)
    positive = generator.random(20_000) < 0.3
    curve = Curve.of(generator.random(20_000) + 0.4 * positive, positive)
    assert curve is not None
    chosen = curve.place(0.777)
    drawn = curve.drawn(200, [chosen])
    assert len(drawn) <= 201
    assert {0, len(curve.threshold) - 1, chosen} <= set(drawn)
    along = curve.false_rate + curve.recall
    redrawn = np.interp(along, along[drawn], curve.recall[drawn])
    assert np.abs(redrawn - curve.recall).max() < 0.02
