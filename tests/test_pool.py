"""Pools: columns of many units as one, and whole clusters weighted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floorkit.core.calibration import matched_recall_points
from floorkit.core.pool import Pool
from floorkit.core.values import MatchedRecall, Source, Table, Unit
from floorkit.numerics import average_precision


def unit(name: str) -> Unit:
    return Unit(name, "evaluated", Source())


def table(values: list[float], recordings: list[int]) -> dict[str, Table]:
    return {"events": Table({"value": np.array(values, float), "recording": np.array(recordings, int)})}


POOL = Pool.of(
    [unit("x"), unit("empty"), unit("y")],
    [table([1, 2, 3], [0, 0, 1]), table([], []), table([10], [0])],
)


def test_columns_are_concatenated_in_unit_order() -> None:
    assert POOL.column("events", "value").tolist() == [1, 2, 3, 10]
    assert POOL.unit_index("events").tolist() == [0, 0, 0, 2]
    assert POOL.clusters == ("x", "empty", "y")


def test_weights_count_whole_units_as_often_as_they_were_drawn() -> None:
    twice = POOL.reweighted(np.array([2, 1, 0]))
    values = twice.column("events", "value")
    assert twice.count("events", values > 1) == 4
    assert twice.total("events", values) == 12
    assert POOL.row_weights("events") is None
    assert POOL.total("events", values) == 16


def test_finer_clusters_number_the_recordings_of_each_unit() -> None:
    finer = POOL.by("recording", ["events"])
    assert finer.clusters == ("x/recording 0", "x/recording 1", "empty/recording 0", "y/recording 0")
    assert finer.cluster_index("events").tolist() == [0, 0, 1, 3]
    weighted = finer.reweighted(np.array([0, 3, 0, 1]))
    assert weighted.total("events", weighted.column("events", "value")) == 19


def test_a_table_refuses_unequal_columns_and_objects() -> None:
    with pytest.raises(ValueError, match="equally long"):
        Table({"a": np.zeros(2), "b": np.zeros(3)})
    with pytest.raises(ValueError, match="booleans, integers or floats"):
        Table({"a": np.array(["x"], dtype=object)})


def test_default_calibration_chooses_for_each_group_position_and_recall() -> None:
    columns = {
        "family": np.array([0, 0, 0, 1]),
        "label": np.array([[1, 0], [1, -1], [0, 0], [0, 1]]),
        "score": np.array([[0.9, 0.1], [0.4, np.nan], [0.8, 0.2], [0.3, 0.7]]),
    }
    pool = Pool.of([unit("x")], [{"events": Table(columns, {"family": ("entry", "int")})}])
    points = matched_recall_points(pool, MatchedRecall("events", "family", axis="horizon"), (0.5, 1.0), True)
    found = {(p.at["family"], p.at["horizon"], p.at["recall"]): p for p in points}
    assert found["entry", 1, "0.5"].threshold == 0.9
    assert found["entry", 1, "1.0"].threshold == 0.4
    assert found["entry", 2, "1.0"].threshold is None
    assert found["entry", 2, "1.0"].reason == "no_calibration_positives"
    assert found["int", 2, "0.5"].threshold == 0.7
    assert found["int", 2, "0.5"].positives == 1
    assert all(point.in_sample for point in points)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.1, 0.4, 0.4, 0.9]), st.booleans()), max_size=25)
)
def test_average_precision_of_a_batch_is_that_of_each_weighting(
    events: list[tuple[int, float, bool]],
) -> None:
    tables = [
        {
            "events": Table(
                {
                    "score": np.array([s for u, s, _ in events if u == unit_index], float),
                    "label": np.array([int(y) for u, _, y in events if u == unit_index], int),
                }
            )
        }
        for unit_index in range(3)
    ]
    pool = Pool.of([unit("a"), unit("b"), unit("c")], tables)
    score, label = pool.column("events", "score"), pool.column("events", "label")

    def select() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows = np.arange(len(score))[::-1]
        return rows, score[rows], label[rows]

    weights = np.array([[1, 1, 1], [0, 3, 0], [2, 0, 1], [0, 0, 0]])
    found = [view.average_precision("events", "all", select) for view in pool.resampled(weights)]
    for row, value in zip(weights, found, strict=True):
        repeated = [(s, y) for u, s, y in events for _ in range(row[u])]
        expected = average_precision([s for s, _ in repeated], [y for _, y in repeated])
        assert value == (None if expected is None else pytest.approx(expected, abs=1e-12))
    assert pool.average_precision("events", "all", select) == (
        None if found[0] is None else pytest.approx(found[0], abs=1e-12)
    )
