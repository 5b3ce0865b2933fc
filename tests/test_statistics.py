"""The cluster bootstrap against plain loops that repeat whole tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floorkit.core.errors import EvaluationError, ManifestError
from floorkit.core.pool import Pool
from floorkit.core.statistics import CHECKED, Measured, draw, intervals, percentile_interval, replicate
from floorkit.core.statistics_files import statistics_to_plain
from floorkit.core.statistics_settings import Settings, cluster_problems
from floorkit.core.structure import structure
from floorkit.core.values import Figure, Protocol, Source, Table, Unit
from floorkit.numerics import average_precision, rate


def unit(name: str) -> Unit:
    return Unit(name, "evaluated", Source())


def measure(pool: Pool, only: Collection[str] | None) -> Sequence[Figure]:
    """A rate, its recall and an AP over the table ``events``."""
    label = pool.column("events", "label")
    score = pool.column("events", "score")
    positive, fired = label == 1, score >= 0.5
    positives, negatives = pool.count("events", positive), pool.count("events", ~positive)
    hits, alarms = pool.count("events", positive & fired), pool.count("events", ~positive & fired)
    figures = [
        Figure(
            "false_rate",
            rate(alarms, negatives),
            count=alarms,
            denominator=negatives,
            higher_is_better=False,
            headline=True,
            read_with="recall",
            reason="" if negatives else "zero_denominator",
        ),
        Figure("recall", rate(hits, positives), count=hits, denominator=positives, higher_is_better=True),
        Figure(
            "ap",
            average_precision(score, label, pool.row_weights("events")),
            unit="AP",
            denominator=positives,
            higher_is_better=True,
            headline=True,
        ),
        Figure("events", positives + negatives, unit="count"),
    ]
    return [figure for figure in figures if only is None or figure.key in only]


def events(rng: np.random.Generator, rows: int) -> Table:
    return Table({"label": rng.integers(0, 2, rows), "score": np.round(rng.random(rows), 1)})


def make_pool(seed: int, units: int, rows: int = 20) -> Pool:
    rng = np.random.default_rng(seed)
    names = [f"S{index}" for index in range(units)]
    return Pool.of([unit(name) for name in names], [{"events": events(rng, rows)} for _ in names])


def measured(name: str, pool: Pool) -> Measured:
    return Measured(name, pool, measure, measure(pool, None))


def repeated(pool: Pool, weights: Sequence[int]) -> Pool:
    """Explicit repetition: every unit's table as often as it was drawn."""
    picks = [index for index, times in enumerate(weights) for _ in range(times)]
    return Pool.of(
        [unit(f"copy{place}") for place in range(len(picks))],
        [{"events": pool.table(index, "events")} for index in picks],
    )


def test_resampled_figures_equal_explicit_repetition_of_the_units_tables() -> None:
    pool = make_pool(1, units=5)
    draws = draw(pool.clusters, 60, seed=3)
    found = replicate([measured("model", pool)], draws)["model"]
    for row, weights in enumerate(draws.of(pool.clusters)):
        expected = {figure.key: figure.value for figure in measure(repeated(pool, weights), None)}
        for key in ("false_rate", "recall", "ap"):
            assert found.resampled[key][row] == pytest.approx(expected[key], abs=1e-12)


def test_figures_of_single_clusters_are_those_of_the_unit_by_itself() -> None:
    pool = make_pool(2, units=4)
    found = replicate([measured("model", pool)], draw(pool.clusters, 100, 0))["model"]
    for index, name in enumerate(pool.clusters):
        alone = Pool.of([unit(name)], [{"events": pool.table(index, "events")}])
        for figure in measure(alone, {"false_rate", "ap"}):
            assert found.units[figure.key][index] == pytest.approx(figure.value, abs=1e-12)
            assert found.denominators[figure.key][index] == figure.denominator


class Counting:
    """The measure function, with a rate whose count does not add up over units, noting what it is asked."""

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.asked: list[frozenset[str]] = []

    def __call__(self, pool: Pool, only: Collection[str] | None) -> Sequence[Figure]:
        self.asked.append(frozenset(only or ()))
        count = min(self.cap, pool.count("events", pool.column("events", "label") == 1))
        total = pool.count("events", pool.column("events", "label") >= 0)
        capped = Figure("capped", count / total, count=count, denominator=total, headline=True)
        return [*measure(pool, only), capped]


def test_sums_over_units_are_not_measured_again_and_anything_else_is() -> None:
    pool = make_pool(16, units=6)
    counting = Counting(cap=61)  # reached by the whole and by some resamples only
    draws = draw(pool.clusters, 200, seed=4)
    found = replicate([Measured("m", pool, counting, counting(pool, None))], draws)["m"]
    assert counting.asked[-1] == {"ap", "capped"}
    distinct = len(np.unique(draws.weights, axis=0))
    assert distinct < 200
    assert len(counting.asked) == 1 + 6 + CHECKED + distinct
    for row, weights in enumerate(draws.of(pool.clusters)):
        for figure in counting(pool.reweighted(weights), None):
            if figure.key in found.resampled:
                assert found.resampled[figure.key][row] == figure.value


def test_rates_without_a_denominator_in_some_units_and_resamples_stay_missing_there() -> None:
    tables = [Table({"label": np.full(3, label), "score": np.array([0.2, 0.6, 0.9])}) for label in (0, 1, 1)]
    pool = Pool.of([unit(name) for name in "abc"], [{"events": table} for table in tables])
    draws = draw(pool.clusters, 100, seed=0)
    found = replicate([measured("m", pool)], draws)["m"]
    drawn = draws.of(pool.clusters)[:, 0] > 0
    assert 0 < drawn.sum() < 100
    assert (np.isfinite(found.resampled["false_rate"]) == drawn).all()
    assert (found.resampled["false_rate"][drawn] == 2 / 3).all()
    assert np.isnan(found.units["false_rate"]).tolist() == [False, True, True]


def test_interval_is_the_percentile_range_of_a_plain_loop_bootstrap() -> None:
    pool = make_pool(4, units=10)
    draws = draw(pool.clusters, 300, seed=5)
    interval = intervals(replicate([measured("model", pool)], draws)["model"], 0.9)["false_rate"]
    rates = []
    for weights in draws.of(pool.clusters):
        alarms = negatives = 0
        for index, times in enumerate(weights):
            table = pool.table(index, "events")
            for _ in range(times):
                for label, score in zip(table["label"], table["score"], strict=True):
                    negatives += label == 0
                    alarms += label == 0 and score >= 0.5
        rates.append(alarms / negatives)
    ordered = sorted(rates)

    def percentile(share: float) -> float:
        place = share * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    assert interval.low == pytest.approx(percentile(0.05), abs=1e-12)
    assert interval.high == pytest.approx(percentile(0.95), abs=1e-12)
    assert (interval.level, interval.resamples, interval.clusters) == (0.9, 300, 10)
    assert interval.remark == interval.reason == ""


@given(count=st.integers(1, 30), seed=st.integers(0, 2**32))
def test_every_resample_draws_as_many_clusters_as_there_are(count: int, seed: int) -> None:
    draws = draw([f"u{index}" for index in range(count)], 100, seed)
    assert draws.weights.shape == (100, count)
    assert (draws.weights.sum(axis=1) == count).all()
    assert draws.weights.min() >= 0


def test_drawn_clusters_have_the_variance_of_drawing_with_replacement() -> None:
    weights = draw([f"u{index}" for index in range(10)], 20_000, 0).weights
    assert weights.mean(axis=0) == pytest.approx(np.ones(10), abs=0.03)
    assert weights.var(axis=0) == pytest.approx(np.full(10, 0.9), abs=0.04)


def test_order_of_units_changes_no_draw_and_no_interval() -> None:
    pool = make_pool(6, units=9)
    order = [4, 0, 8, 2, 6, 1, 3, 7, 5]
    permuted = Pool.of(
        [pool.units[index] for index in order], [{"events": pool.table(index, "events")} for index in order]
    )
    results = []
    for one in (pool, permuted):
        draws = draw(one.clusters, 200, seed=7)
        results.append((draws.fingerprint, intervals(replicate([measured("m", one)], draws)["m"], 0.95)))
    assert results[0] == results[1]


def test_number_of_jobs_changes_no_value() -> None:
    pool = make_pool(8, units=6)
    draws = draw(pool.clusters, 101, seed=1)
    one, two = (replicate([measured("model", pool)], draws, jobs)["model"] for jobs in (1, 2))
    for key in one.resampled:
        assert one.resampled[key].tobytes() == two.resampled[key].tobytes()
        assert one.units[key].tobytes() == two.units[key].tobytes()


def test_seed_decides_the_draws() -> None:
    assert draw("abc", 100, 0).fingerprint == draw("cab", 100, 0).fingerprint
    assert draw("abc", 100, 0).fingerprint != draw("abc", 100, 1).fingerprint
    assert draw("abc", 100, 0).fingerprint != draw("abd", 100, 0).fingerprint


def test_run_that_lacks_units_sees_the_same_draws_of_the_others() -> None:
    whole = make_pool(9, units=5)
    part = Pool.of(whole.units[:4], [{"events": whole.table(index, "events")} for index in range(4)])
    draws = draw(whole.clusters, 100, seed=2)
    assert (draws.of(part.clusters) == draws.of(whole.clusters)[:, :4]).all()


def test_one_unit_gives_no_interval_and_says_why() -> None:
    pool = make_pool(10, units=1)
    found = replicate([measured("model", pool)], draw(pool.clusters, 100, 0))["model"]
    interval = intervals(found, 0.95, "session")["ap"]
    assert (interval.low, interval.high) == (None, None)
    assert interval.reason == "fewer than two sessions"


def test_seven_units_give_an_interval_with_the_remark_and_eight_without() -> None:
    remarks = []
    for units in (7, 8):
        pool = make_pool(11, units)
        found = replicate([measured("model", pool)], draw(pool.clusters, 100, 0))["model"]
        interval = intervals(found, 0.95, "session")["ap"]
        assert interval.low is not None
        remarks.append(interval.remark)
    assert remarks == ["too narrow: only 7 sessions", ""]


def test_resamples_without_the_figure_are_left_out_and_counted() -> None:
    values = np.array([0.1, np.nan, 0.3, 0.2, np.nan])
    interval = percentile_interval(values, 0.5, clusters=9, alone=9, noun="unit")
    assert interval.low == pytest.approx(0.15)
    assert interval.high == pytest.approx(0.25)
    assert interval.resamples == 3
    assert interval.remark == "2 of 5 resamples left out: no figure there"


def test_figure_that_exists_in_no_resample_has_no_interval() -> None:
    interval = percentile_interval(np.full(5, np.nan), 0.95, clusters=9, alone=0, noun="unit")
    assert (interval.low, interval.reason) == (None, "the figure exists in no resample")


def test_figure_on_few_of_many_units_is_called_probably_too_narrow() -> None:
    interval = percentile_interval(np.array([0.1, 0.2]), 0.95, clusters=20, alone=2, noun="session")
    assert interval.remark == "probably too narrow: only 2 of 20 sessions have this figure alone"


def test_interval_without_width_is_not_shown_as_certainty() -> None:
    interval = percentile_interval(np.zeros(50), 0.95, clusters=20, alone=20, noun="unit")
    assert "no measure of uncertainty" in interval.remark


def test_figure_without_value_has_no_interval_and_carries_its_reason() -> None:
    table = Table({"label": np.ones(4, int), "score": np.linspace(0, 1, 4)})
    pool = Pool.of([unit("a"), unit("b")], [{"events": table}] * 2)
    found = replicate([measured("model", pool)], draw(pool.clusters, 100, 0))["model"]
    assert "false_rate" not in found.resampled
    assert intervals(found, 0.95)["false_rate"].reason == "the figure has no value (zero_denominator)"


def test_companions_of_headline_figures_get_intervals_and_other_figures_do_not() -> None:
    pool = make_pool(12, units=8)
    found = replicate([measured("model", pool)], draw(pool.clusters, 100, 0))["model"]
    assert set(intervals(found, 0.95)) == {"false_rate", "recall", "ap"}
    assert [figure.key for figure in found.headline] == ["false_rate", "ap"]


def nan_measure(pool: Pool, only: Collection[str] | None) -> Sequence[Figure]:
    return [Figure("x", 1.0 if pool.weights is None else float("nan"), headline=True)]


def forgetful_measure(pool: Pool, only: Collection[str] | None) -> Sequence[Figure]:
    return [Figure("x", 1.0, headline=True)] if pool.weights is None else []


@pytest.mark.parametrize("bad", [nan_measure, forgetful_measure])
def test_measure_hook_that_fails_on_a_resample_is_named(bad: object) -> None:
    pool = make_pool(13, units=3)
    run = Measured("model", pool, bad, bad(pool, None))  # type: ignore[arg-type, operator]
    with pytest.raises(EvaluationError, match="run model, figure x"):
        replicate([run], draw(pool.clusters, 100, 0))


def test_figure_keys_used_twice_and_unknown_companions_are_refused() -> None:
    pool = make_pool(14, units=3)
    twice = [Figure("x", 1.0, headline=True)] * 2
    unknown = [Figure("x", 1.0, headline=True, read_with="y")]
    for figures, words in ((twice, "keys used twice"), (unknown, "no figure y")):
        with pytest.raises(EvaluationError, match=words):
            replicate([Measured("model", pool, measure, figures)], draw(pool.clusters, 100, 0))


def test_finer_clusters_are_resampled_where_the_pool_is_so() -> None:
    rng = np.random.default_rng(15)
    tables = []
    for _ in range(2):
        table = events(rng, 30)
        tables.append({"events": Table({**table.columns, "recording": np.repeat([0, 1, 2], 10)})})
    pool = Pool.of([unit("a"), unit("b")], tables).by("recording", ["events"])
    found = replicate([measured("model", pool)], draw(pool.clusters, 100, 0))["model"]
    assert len(found.clusters) == 6
    first = events_of(tables[0]["events"], 0)
    assert found.units["ap"][0] == pytest.approx(average_precision(first["score"], first["label"]), abs=1e-12)


def events_of(table: Table, recording: int) -> Table:
    rows = table["recording"] == recording
    return Table({name: column[rows] for name, column in table.columns.items()})


def test_settings_reject_what_makes_no_sense_at_its_toml_path() -> None:
    table = {"resamples": 10, "confidence": 1.0, "sede": 1}
    with pytest.raises(ManifestError) as caught:
        structure(Settings, table, "protocols.demo.statistics")
    text = str(caught.value)
    assert "protocols.demo.statistics.resamples" in text
    assert "protocols.demo.statistics.confidence" in text
    assert "sede" in text


def test_unknown_cluster_is_reported_with_those_that_the_protocol_has() -> None:
    protocol = Protocol("demo", "Demo", Settings, "something", clusters=("recording",))
    assert cluster_problems(Settings(cluster="recording"), protocol, "protocols.demo.statistics") == []
    problems = cluster_problems(Settings(cluster="speaker"), protocol, "protocols.demo.statistics")
    assert str(problems[0]) == (
        "protocols.demo.statistics.cluster: demo cannot resample by 'speaker'\n"
        "  found:    'speaker'\n  expected: one of 'unit', 'recording'"
    )


def ranked_measure(named: bool, calls: list[int]) -> Any:
    """AP by Pool.average_precision, with or without naming its ranking; counts how often it is called."""

    def measure_ranked(pool: Pool, only: Collection[str] | None) -> Sequence[Figure]:
        calls.append(1)
        label, score = pool.column("events", "label"), pool.column("events", "score")
        value = pool.average_precision("events", "all", lambda: (np.arange(len(label)), score, label))
        rankings = (("events", "all"),) if named else ()
        reason = "" if value is not None else "no_positives"
        return [Figure("ap", value, "AP", headline=True, rankings=rankings, reason=reason)]

    return measure_ranked


def test_a_named_ranking_is_resampled_to_the_same_values_without_calling_the_hook() -> None:
    found, calls = {}, {}
    for named in (False, True):
        pool, count = make_pool(5, 9), []
        hook = ranked_measure(named, count)
        run = Measured("run", pool, hook, hook(pool, None))
        found[named] = replicate([run], draw(pool.clusters, 300, 0))["run"]
        calls[named] = len(count)
    np.testing.assert_allclose(found[True].resampled["ap"], found[False].resampled["ap"], rtol=0, atol=1e-14)
    assert calls[True] < 40
    assert calls[False] > 300


def test_a_ranking_that_is_not_the_figures_own_is_not_used() -> None:
    pool = make_pool(5, 9)

    def wrong(pool: Pool, only: Collection[str] | None) -> Sequence[Figure]:
        label, score = pool.column("events", "label"), pool.column("events", "score")
        value = pool.average_precision("events", "all", lambda: (np.arange(len(label)), score, label))
        return [Figure("half", (value or 0) / 2, "AP", headline=True, rankings=(("events", "all"),))]

    draws = draw(pool.clusters, 100, 0)
    halves = replicate([Measured("run", pool, wrong, wrong(pool, None))], draws)["run"].resampled["half"]
    whole = pool.average_precisions("events", "all", draws.of(pool.clusters))
    np.testing.assert_allclose(2 * halves, whole, rtol=0, atol=1e-12)


def test_curves_get_intervals_but_are_neither_compared_nor_stored() -> None:
    pool = make_pool(5, 9)

    def curve(pool: Pool, only: Collection[str] | None) -> Sequence[Figure]:
        figures = [attrs.evolve(one, interval=True) for one in measure(pool, None)]
        return [attrs.evolve(one, headline=one.key == "ap", read_with="") for one in figures]

    figures = curve(pool, None)
    draws = draw(pool.clusters, 100, 0)
    for curves in (False, True):
        found = replicate([Measured("run", pool, curve, figures, curves=curves)], draws)["run"]
        assert ("false_rate" in intervals(found, 0.95)) is curves
        assert [figure.key for figure in found.headline] == ["ap"]
        stored = statistics_to_plain([found], Settings(), 0, "unit", "")
        assert list(stored["runs"]["run"]["figures"]) == ["ap"]
