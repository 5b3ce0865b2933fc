"""The kernel against plain loops, and what the score table promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from floorkit_annotated import kernel, reference
from floorkit_annotated.params import AnnotatedParams
from hypothesis import given, settings
from hypothesis import strategies as st

from floorkit.formats.reviews_tables import EXAMPLES, OPPORTUNITIES, STATUSES, UNSCORED

RandomSession = Callable[..., tuple[Any, Any]]


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_kernel_gives_what_plain_loops_give(random_session: RandomSession, seed: int) -> None:
    params = AnnotatedParams(print_event_examples=seed % 3)
    gold, prediction = random_session(seed, every_region=True)
    table = kernel.score(gold, prediction, params, 0)[OPPORTUNITIES]
    expected = reference.score(gold, prediction, params)
    assert len(table) * params.horizons == len(expected)
    for place, one in enumerate(expected):
        row, k = divmod(place, params.horizons)
        assert one["horizon"] == k + 1
        assert STATUSES[table["status"][row, k]] == one["status"]
        assert list(range(table["first_row"][row], table["last_row"][row] + 1)) == one["rows"]
        if one["score"] is None:
            assert np.isnan(table["score"][row, k])
            assert table["label"][row, k] == -1
        else:
            assert table["score"][row, k] == one["score"]
            assert table["label"][row, k] == (one["status"] == "positive")


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_region_maxima_do_not_depend_on_the_chunks(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    rng = np.random.default_rng(5)
    values, valid = rng.random((40, 4)), rng.random((40, 4)) < 0.9
    first = rng.integers(0, 39, 30)
    behind = np.minimum(40, first + rng.integers(1, 12, 30))
    monkeypatch.setattr(kernel, "CHUNK_ROWS", chunk)
    maxima, usable = kernel.region_maxima(values, valid, first, behind)
    for row, (start, stop) in enumerate(zip(first, behind, strict=True)):
        assert maxima[row].tolist() == values[start:stop].max(axis=0).tolist()
        assert usable[row].tolist() == valid[start:stop].all(axis=0).tolist()


def test_cells_that_must_not_be_used_change_nothing(random_session: RandomSession) -> None:
    gold, prediction = random_session(11, every_region=True, rows=50, lines=20)
    params = AnnotatedParams(print_event_examples=2)
    before = kernel.score(gold, prediction, params, 0)
    unusable = np.broadcast_to(~prediction.valid[:, None], prediction.pred.shape)
    assert unusable.any()
    prediction.pred[unusable] = 0.99
    after = kernel.score(gold, prediction, params, 0)
    for name in (OPPORTUNITIES, UNSCORED, EXAMPLES):
        for column, values in before[name].columns.items():
            np.testing.assert_array_equal(values, after[name][column], err_msg=f"{name}.{column}")
