"""Properties: the vectorised code equals the plain loops, and what must not matter does not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from floorkit_competing_risk import frames, kernel, plugin, reference
from floorkit_competing_risk.align import common_support
from floorkit_competing_risk.data import UNSPECIFIED, Gold
from floorkit_competing_risk.params import CompetingRiskParams
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from floorkit.core.calibration import matched_recall_points
from floorkit.core.pool import Pool
from floorkit.core.values import Context, Figure, Source, Tables, Unit, figure_key
from floorkit.formats.dense import Prediction, Targets, horizon_seconds
from floorkit.numerics import recall_name

HORIZONS = 10
RECALLS = (0.5, 0.8, 1.0)

MANY, SOME, FEW = (settings(deadline=None, max_examples=n, derandomize=True) for n in (150, 40, 25))


@st.composite
def lanes(draw: st.DrawFn, rows: int) -> np.ndarray:
    """A lane of activity: runs of random length."""
    runs = draw(st.lists(st.integers(1, 9), min_size=1, max_size=12))
    first = draw(st.integers(0, 1))
    values = np.concatenate([np.full(length, (first + i) % 2) for i, length in enumerate(runs)])
    return np.resize(values, rows).astype(bool)


@st.composite
def sessions(draw: st.DrawFn, dtype: Any = None) -> tuple[Gold, Prediction]:
    """A session with recordings, tied forecasts, a mask, and nonsense wherever the mask forbids to look."""
    rows = draw(st.integers(1, 45))
    wearer, others = draw(lanes(rows)), draw(lanes(rows))
    inner = draw(st.sets(st.integers(1, max(1, rows - 1)), max_size=3)) if rows > 1 else set()
    starts = np.array([0, *sorted(inner)], dtype=np.int64)
    activity = np.stack([~(wearer | others), wearer, others], axis=1)
    levels = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 0.75, 1.0])
    chosen = draw(st.sampled_from([np.float16, np.float32, np.float64])) if dtype is None else dtype
    wearer_pred = draw(hnp.arrays(np.float64, (rows, HORIZONS), elements=levels, fill=levels))
    pred = np.zeros((rows, 3, HORIZONS), dtype=chosen)
    pred[:, 1] = wearer_pred
    targets = Targets("s", activity, starts)
    mask = draw(hnp.arrays(bool, (rows, HORIZONS), fill=st.just(True)))
    valid = mask & targets.inside(HORIZONS)
    pred[:, 1][~valid] = draw(st.sampled_from([np.nan, 0.999, -0.0]))
    gold = Gold(targets, np.zeros(rows, dtype=np.int64), (UNSPECIFIED,))
    return gold, Prediction(pred, valid)


def plain(name: str, gold: Gold, prediction: Prediction) -> reference.Session:
    """The same session for the reference."""
    return {
        "session": name,
        "wearer": gold.targets.activity[:, 1].astype(int).tolist(),
        "others": gold.targets.activity[:, 2].astype(int).tolist(),
        "starts": gold.targets.starts.tolist(),
        "pred": prediction.pred[:, 1].astype(np.float64).tolist(),
        "valid": prediction.valid.tolist(),
    }


PARAMS = st.builds(
    CompetingRiskParams,
    matched_recalls=st.just(RECALLS),
    decision_timing=st.sampled_from(["pre-boundary", "post-boundary"]),
    window=st.sampled_from(["observable", "full"]),
    midturn_pause_max_seconds=st.sampled_from([0.4, 1.0, 2.0]),
    headline_horizon_seconds=st.sampled_from([0.2, 2.0]),
)


def unit(name: str) -> Unit:
    return Unit(name, "evaluated", Source())


def measured(params: CompetingRiskParams, pool: Pool, calibration: Pool) -> dict[str, Figure]:
    context = Context("case", "competing_risk", params, Path())
    (protocol,) = plugin.floorkit_protocols()
    assert protocol.matched_recall is not None
    points = matched_recall_points(calibration, protocol.matched_recall, params.matched_recalls, False)
    return {figure.key: figure for figure in plugin.floorkit_measure(context, pool, points, None)}


def score(gold: Gold, prediction: Prediction, params: CompetingRiskParams) -> Tables:
    return kernel.score(gold, prediction, params)


@given(sessions(), PARAMS)
@MANY
def test_candidates_statuses_and_scores_equal_the_plain_loops(
    session: tuple[Gold, Prediction], params: CompetingRiskParams
) -> None:
    table = score(*session, params)["candidates"]
    loops = plain("s", *session)
    expected = reference.candidates(loops, params.decision_timing)
    assert len(table) == len(expected)
    for row, one in enumerate(expected):
        found = {
            name: int(table[name][row])
            for name in ("boundary", "source", "outcome", "competing", "recording")
        }
        wanted = {
            "boundary": one["b"],
            "source": one["s"],
            "outcome": -1 if one["w"] is None else one["w"],
            "competing": -1 if one["c"] is None else one["c"],
            "recording": one["recording"],
        }
        assert found == wanted
        assert kernel.FAMILIES[table["family"][row]] == one["family"]
        pause = round(params.midturn_pause_max_seconds / 0.2)
        is_short = one["family"] == "response" and one["c"] is not None and one["c"] - one["b"] <= pause
        assert table["short_resume"][row] == is_short
        for k in range(1, HORIZONS + 1):
            status, value = (
                reference.scored(loops, one, k, params.window) if one["eligible"] else ("ineligible", None)
            )
            assert kernel.STATUSES[table["status"][row, k - 1]] == status
            assert table["label"][row, k - 1] == {"positive": 1, "negative": 0}.get(status, -1)
            got = float(table["score"][row, k - 1])
            assert math.isnan(got) if value is None else got == value


@given(st.lists(sessions(), min_size=1, max_size=3), st.lists(sessions(), max_size=2), PARAMS)
@FEW
def test_figures_equal_the_plain_loops(
    evaluated: list[tuple[Gold, Prediction]],
    calibration: list[tuple[Gold, Prediction]],
    params: CompetingRiskParams,
) -> None:
    pools = [
        Pool.of([unit(f"s{i}") for i in range(len(part))], [score(*one, params) for one in part])
        for part in (evaluated, calibration)
    ]
    figures = measured(params, pools[0], pools[1] if calibration else pools[0])
    loops = [[plain(f"s{i}", *one) for i, one in enumerate(part)] for part in (evaluated, calibration)]
    plain_params = attrs.asdict(params)
    for k in (1, 4, 10):
        at = {"horizon_s": horizon_seconds(k), **params.coordinates}

        def value(name: str, at: Any = at) -> Any:
            return figures[figure_key(name, at)].value

        for family, rate_name, minute in (
            ("response", "no_response_trigger_rate", "false_entries_per_minute"),
            ("yield", "continue_false_stop_rate", "false_stops_per_minute"),
        ):
            expected = reference.family_figures(loops[0], loops[1], family, k, plain_params)
            for name in ("candidates", *kernel.STATUSES):
                assert value(f"{family}_{name}") == expected[name]
            assert value(f"{family}_ap") == pytest.approx(expected["ap"], abs=1e-9)
            for recall in RECALLS:
                suffix = f"_at_recall_{recall_name(recall)}"
                at_recall = expected["at_recall"][recall]
                if at_recall is None:
                    for name in (f"{family}_threshold", rate_name, minute):
                        assert value(name + suffix) is None
                        assert figures[figure_key(name + suffix, at)].reason == "no_calibration_positives"
                    continue
                assert value(f"{family}_threshold{suffix}") == at_recall["threshold"]
                assert value(f"{family}_recall_{recall_name(recall)}") == pytest.approx(at_recall["recall"])
                assert value(rate_name + suffix) == pytest.approx(at_recall["trigger_rate"])
                assert value(minute + suffix) == pytest.approx(at_recall["per_minute"])
                if family == "response":
                    short = value(f"short_resume_trigger_rate{suffix}")
                    assert short == pytest.approx(at_recall["short_resume_trigger_rate"])
        expected = reference.framewise(loops[0], k)
        for name, wanted in expected.items():
            assert value(name) == pytest.approx(wanted, abs=1e-9), name


@given(st.lists(sessions(), min_size=2, max_size=4), st.randoms(use_true_random=False))
@FEW
def test_the_order_of_sessions_changes_nothing(evaluated: list[tuple[Gold, Prediction]], random: Any) -> None:
    params = CompetingRiskParams(matched_recalls=RECALLS)
    tables = [score(*one, params) for one in evaluated]
    order = list(range(len(tables)))
    random.shuffle(order)
    pool = Pool.of([unit(f"s{i}") for i in range(len(tables))], tables)
    shuffled = Pool.of([unit(f"s{i}") for i in order], [tables[i] for i in order])
    assert measured(params, pool, pool) == measured(params, shuffled, shuffled)


@given(sessions(), PARAMS, st.integers(0, 2**32 - 1))
@SOME
def test_predictions_change_a_status_only_to_or_from_invalid(
    session: tuple[Gold, Prediction], params: CompetingRiskParams, seed: int
) -> None:
    gold, prediction = session
    rng = np.random.default_rng(seed)
    other = Prediction(rng.random(prediction.pred.shape), rng.random(prediction.valid.shape) < 0.7)
    one, two = (score(gold, p, params)["candidates"]["status"] for p in (prediction, other))
    differ = one != two
    assert (one[differ] == kernel.INVALID).sum() + (two[differ] == kernel.INVALID).sum() == differ.sum()
    scored = {kernel.POSITIVE, kernel.NEGATIVE, kernel.INVALID}
    assert set(one[differ].tolist()) | set(two[differ].tolist()) <= scored


@given(sessions(), PARAMS)
@SOME
def test_a_row_after_a_recordings_end_changes_only_censored_candidates(
    session: tuple[Gold, Prediction], params: CompetingRiskParams
) -> None:
    gold, prediction = session
    longer = attrs.evolve(
        gold,
        targets=attrs.evolve(
            gold.targets, activity=np.vstack([gold.targets.activity, gold.targets.activity[-1:]])
        ),
        stratum=np.append(gold.stratum, 0),
    )
    more = Prediction(
        np.concatenate([prediction.pred, np.full_like(prediction.pred[:1], 0.5)]),
        np.vstack([prediction.valid, longer.targets.inside(HORIZONS)[-1:]]),
    )
    before = score(gold, prediction, params)["candidates"]
    after = score(longer, more, params)["candidates"]
    # The new row repeats the last one: no new boundary, so the candidates are the same.
    assert np.array_equal(before["boundary"], after["boundary"])
    settled = before["status"] != kernel.CENSORED
    assert np.array_equal(before["status"][settled], after["status"][settled])
    ended = before["source"][:, None] + np.arange(1, HORIZONS + 1) < gold.targets.rows
    assert np.array_equal(before["score"][ended], after["score"][ended], equal_nan=True)


@given(sessions(), sessions(), PARAMS)
@FEW
def test_common_support_makes_invalid_what_is_invalid_in_any_run(
    session: tuple[Gold, Prediction], other: tuple[Gold, Prediction], params: CompetingRiskParams
) -> None:
    gold, prediction = session
    rng = np.random.default_rng(other[0].targets.rows)
    masked = Prediction(prediction.pred, prediction.valid & (rng.random(prediction.valid.shape) < 0.8))
    tables = {"a": score(gold, prediction, params), "b": score(gold, masked, params)}
    aligned = common_support(tables)
    status = {run: one["candidates"]["status"] for run, one in tables.items()}
    shared = aligned["a"]["candidates"]["status"]
    assert np.array_equal(shared, aligned["b"]["candidates"]["status"])
    either = (status["a"] == kernel.INVALID) | (status["b"] == kernel.INVALID)
    assert np.array_equal(shared == kernel.INVALID, either)
    assert np.array_equal(shared[~either], status["a"][~either])
    for run, one in aligned.items():
        table = one["candidates"]
        assert np.isnan(table["score"][either]).all()
        assert (table["label"][either] == -1).all()
        for column, values in tables[run]["frames"].columns.items():
            assert np.array_equal(one["frames"][column], values)


@given(hnp.arrays(np.float64, 30, elements=st.floats(0, 1)), st.integers(0, 2**30 - 1))
@SOME
def test_framewise_keys_give_back_what_they_were_made_of(values: np.ndarray, bits: int) -> None:
    rng = np.random.default_rng(bits)
    valid, state, label = rng.random((3, 30)) < 0.5
    for dtype in (np.float16, np.float32, np.float64):
        keys = frames.encode(values.astype(dtype), valid, state, label)
        assert np.array_equal(frames.is_valid(keys), valid)
        score_back, state_back, label_back = frames.decode(keys[valid])
        assert np.array_equal(score_back, values.astype(dtype).astype(np.float64)[valid])
        assert np.array_equal(state_back, state[valid])
        assert np.array_equal(label_back, label[valid])


@given(st.lists(sessions(np.float32), min_size=1, max_size=2), sessions(np.float64))
@FEW
def test_runs_of_mixed_precision_are_pooled_exactly(
    narrow: list[tuple[Gold, Prediction]], wide: tuple[Gold, Prediction]
) -> None:
    parts = [*narrow, wide]
    for k in (1, 10):
        tables = [frames.frame_table(gold.targets, prediction) for gold, prediction in parts]
        found = frames.framewise(frames.join([table[frames.key_column(k)] for table in tables]))
        expected = reference.framewise([plain(f"s{i}", *one) for i, one in enumerate(parts)], k)
        assert attrs.asdict(found) == pytest.approx(expected, abs=1e-9)


def one_cell_each(values: list[float], labels: list[int], states: list[int]) -> frames.Framewise:
    """Framewise figures of float64 cells that are all valid."""
    everything = np.ones(len(values), dtype=bool)
    keys = frames.encode(np.array(values), everything, np.array(states, bool), np.array(labels, bool))
    return frames.framewise(keys)


def test_exit_scores_that_round_to_one_number_are_tied() -> None:
    # 1 - 1e-20 is 1.0 in float64, so that the two rows form one group of precision 1 / 2.
    assert one_cell_each([0.0, 1e-20], [0, 1], [1, 1]).exit_endpoint_ap == 0.5
    assert one_cell_each([0.0, 0.25], [1, 0], [1, 1]).exit_endpoint_ap == 0.5
    assert one_cell_each([0.25, 0.0], [1, 0], [1, 1]).exit_endpoint_ap == 1.0


def test_negative_zero_is_zero() -> None:
    assert one_cell_each([-0.0, 0.0, 0.5], [1, 0, 0], [0, 0, 0]).wearer_activity_ap == 1 / 3
    assert one_cell_each([-0.0, 0.5], [0, 1], [0, 0]).wearer_activity_ap == 1.0


def test_no_valid_cell_gives_no_figure() -> None:
    keys = frames.encode(np.full(3, np.nan), *np.zeros((3, 3), dtype=bool))
    found = frames.framewise(keys)
    assert (found.rows, found.wearer_activity_ap, found.exit_endpoint_ap, found.brier) == (
        0,
        None,
        None,
        None,
    )
