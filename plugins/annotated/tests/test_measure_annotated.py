"""Figures under weights, and one at a time, as the bootstrap asks for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from floorkit_annotated import kernel, plugin
from floorkit_annotated.measure import measure
from floorkit_annotated.params import AnnotatedParams
from hypothesis import given, settings
from hypothesis import strategies as st

from floorkit.core.calibration import matched_recall_points
from floorkit.core.pool import Pool
from floorkit.core.values import Source, Unit

RandomSession = Callable[..., tuple[Any, Any]]
PARAMS = AnnotatedParams(matched_recalls=(0.5, 0.8))
(PROTOCOL,) = plugin.floorkit_protocols()


def pool_of(sessions: list[tuple[Any, Any]]) -> Pool:
    units = [Unit(f"s{i}", "evaluated", Source()) for i in range(len(sessions))]
    return Pool.of(units, [kernel.score(*session, PARAMS, 0) for session in sessions])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), drawn=st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_weights_count_like_repeated_sessions(
    random_session: RandomSession, seed: int, drawn: list[int]
) -> None:
    sessions = [random_session(seed + i, every_region=True, rows=50) for i in range(4)]
    pool = pool_of(sessions)
    assert PROTOCOL.matched_recall is not None
    points = matched_recall_points(pool, PROTOCOL.matched_recall, PARAMS.matched_recalls, True)
    weighted = measure(PARAMS, pool.reweighted(np.array(drawn)), points, None)
    repeated = pool_of([one for one, times in zip(sessions, drawn, strict=True) for _ in range(times)])
    plain = {figure.key: figure for figure in measure(PARAMS, repeated, points, None)}
    for figure in weighted:
        other = plain[figure.key]
        assert (figure.count, figure.denominator, figure.reason) == (
            other.count,
            other.denominator,
            other.reason,
        )
        assert (figure.value is None) == (other.value is None)
        if figure.value is not None and other.value is not None:
            assert abs(figure.value - other.value) < 1e-12


def test_a_figure_asked_for_alone_is_the_same_and_alone(random_session: RandomSession) -> None:
    pool = pool_of([random_session(i, every_region=True, rows=50, lines=20) for i in range(3)])
    assert PROTOCOL.matched_recall is not None
    points = matched_recall_points(pool, PROTOCOL.matched_recall, PARAMS.matched_recalls, True)
    for figure in measure(PARAMS, pool, points, None):
        (alone,) = measure(PARAMS, pool, points, [figure.key])
        assert (alone.key, alone.value, alone.count, alone.denominator, alone.headline) == (
            figure.key,
            figure.value,
            figure.count,
            figure.denominator,
            figure.headline,
        )


def test_the_mean_ap_is_missing_where_one_horizon_has_no_positive(run_case: Callable[..., Any]) -> None:
    golden = Path(__file__).parent / "golden" / "partial_ap"
    runs = run_case(golden).summary["runs"]["model"]
    families = [runs[family] for family in ("entry", "int")]
    assert any(family["mean_ap"] is None for family in families)
    for family in families:
        values = [cell["ap"] for cell in family["horizons"]]
        assert (family["mean_ap"] is None) == any(value is None for value in values)
