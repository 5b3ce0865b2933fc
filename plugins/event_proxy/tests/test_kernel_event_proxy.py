"""The kernel against plain loops, and what the score table promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from floorkit_event_proxy import kernel, reference
from floorkit_event_proxy.params import EventProxyParams
from hypothesis import given, settings
from hypothesis import strategies as st

from floorkit.formats.reviews_tables import EXAMPLES, OPPORTUNITIES, STATUSES, UNSCORED

RandomSession = Callable[..., tuple[Any, Any]]
WINDOWS = st.sampled_from([0.2, 0.6, 1.0])
TRAJECTORIES = st.sampled_from([(0.6, 2.0), (0.2, 0.2), (0.4, 1.6), (2.0, 2.0)])


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), window=WINDOWS, trajectory=TRAJECTORIES)
def test_the_kernel_gives_what_plain_loops_give(
    random_session: RandomSession, seed: int, window: float, trajectory: tuple[float, float]
) -> None:
    params = EventProxyParams(
        decision_window_seconds=window, trajectory_seconds=trajectory, print_event_examples=seed % 3
    )
    gold, prediction = random_session(seed, every_region=False)
    tables = kernel.score(gold, prediction, params, 0)
    table = tables[OPPORTUNITIES]
    expected = reference.score(gold, prediction, params)
    assert len(table) == len(expected)
    assert len(tables[UNSCORED]) == int((~gold.reviews.scored).sum())
    for row, one in enumerate(expected):
        assert STATUSES[table["status"][row]] == one["status"]
        first, n = int(table["first_row"][row]), params.window_rows
        assert (list(range(first, first + n)) if first >= 0 else []) == one["rows"]
        if one["score"] is None:
            assert np.isnan(table["score"][row])
            assert np.isnan(table["row_scores"][row]).all()
            assert table["label"][row] == table["winning_row"][row] == -1
            continue
        assert table["label"][row] == (one["status"] == "positive")
        assert table["score"][row] == pytest.approx(one["score"], abs=1e-12, rel=0)
        assert table["row_scores"][row].tolist() == pytest.approx(one["row_scores"], abs=1e-12, rel=0)
        won = one["rows"].index(int(table["winning_row"][row]))
        assert one["row_scores"][won] == pytest.approx(one["score"], abs=1e-12, rel=0)


def test_on_ties_the_earliest_source_row_wins(random_session: RandomSession) -> None:
    gold, prediction = random_session(3, every_region=False, rows=50, lines=20)
    prediction.pred[:] = 0.5
    prediction.valid[:] = gold.inside(10)
    table = kernel.score(gold, prediction, EventProxyParams(), 0)[OPPORTUNITIES]
    scored = table["label"] >= 0
    assert scored.any()
    assert (table["winning_row"] == table["first_row"])[scored].all()


def test_cells_that_must_not_be_used_change_nothing(random_session: RandomSession) -> None:
    gold, prediction = random_session(11, every_region=False, rows=50, lines=20)
    before = kernel.score(gold, prediction, EventProxyParams(print_event_examples=2), 0)
    unusable = np.broadcast_to(~prediction.valid[:, None], prediction.pred.shape)
    assert unusable.any()
    prediction.pred[unusable] = 0.99
    after = kernel.score(gold, prediction, EventProxyParams(print_event_examples=2), 0)
    for name in (OPPORTUNITIES, UNSCORED, EXAMPLES):
        for column, values in before[name].columns.items():
            np.testing.assert_array_equal(values, after[name][column], err_msg=f"{name}.{column}")


def test_a_session_without_lines_gives_empty_tables_of_the_same_columns(
    random_session: RandomSession,
) -> None:
    empty = random_session(1, every_region=False, rows=30, lines=0)
    full = random_session(1, every_region=False, rows=30, lines=9)
    params = EventProxyParams(print_event_examples=1)
    for name, table in kernel.score(*full, params, 0).items():
        other = kernel.score(*empty, params, 0)[name]
        assert len(other) == 0
        assert {k: (v.dtype, v.shape[1:]) for k, v in table.columns.items()} == {
            k: (v.dtype, v.shape[1:]) for k, v in other.columns.items()
        }
