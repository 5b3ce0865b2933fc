"""Paired comparison against enumerations and hand values."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from floorkit.core.compare import (
    apart,
    compare,
    compare_pairs,
    holm_adjusted,
    relative_reduction,
    sign_flip_p,
    trade_offs,
)
from floorkit.core.compare_controls import best_control, compare_with_controls
from floorkit.core.statistics import Replicates
from floorkit.core.statistics_settings import Settings
from floorkit.core.values import Comparison, Figure

SETTINGS = Settings(resamples=100)
RATE = Figure("rate", 0.2, denominator=40, higher_is_better=False, headline=True, read_with="recall")
RECALL = Figure("recall", 0.8, denominator=20, higher_is_better=True)


def run(
    name: str,
    figures: Sequence[Figure],
    units: Mapping[str, Sequence[float]],
    resampled: Mapping[str, Sequence[float]] | None = None,
    clusters: Sequence[str] = (),
    draws: str = "same",
) -> Replicates:
    """A run with the given per-unit figures; resamples are the units' values where none are given."""
    arrays = {key: np.asarray(values, dtype=np.float64) for key, values in units.items()}
    count = len(next(iter(arrays.values()), ()))
    return Replicates(
        run=name,
        clusters=tuple(clusters) or tuple(f"S{index}" for index in range(count)),
        figures={figure.key: figure for figure in figures},
        units=arrays,
        denominators={key: np.where(np.isfinite(values), 10.0, 0.0) for key, values in arrays.items()},
        resampled={key: np.asarray((resampled or units)[key], dtype=np.float64) for key in units},
        draws=draws,
    )


def rates(name: str, value: float, units: Sequence[float], **options: object) -> Replicates:
    figure = evolve(RATE, value=value, read_with="")
    return run(name, [figure], {"rate": units}, **options)  # type: ignore[arg-type]


def test_difference_and_reduction_of_an_error_rate() -> None:
    comparison = compare(rates("a", 0.25, [0.2, 0.3]), rates("b", 0.2, [0.1, 0.3]), "rate", SETTINGS, seed=0)
    assert (comparison.a, comparison.b, comparison.a_value, comparison.b_value) == ("a", "b", 0.25, 0.2)
    assert comparison.difference == pytest.approx(-0.05)
    assert comparison.relative_reduction == pytest.approx(0.2)
    assert (comparison.won, comparison.lost, comparison.tied) == (1, 0, 1)
    assert comparison.not_comparable == ()


@pytest.mark.parametrize(
    ("higher", "unit", "a", "b", "expected"),
    [
        (False, "rate", 0.4, 0.1, 0.75),
        (False, "ms", 400.0, 500.0, -0.25),
        (True, "rate", 0.8, 0.9, 0.5),
        (True, "AP", 0.8, 0.9, None),
        (None, "rate", 0.8, 0.9, None),
        (False, "rate", 0.0, 0.1, None),
        (True, "rate", 1.0, 0.9, None),
        (False, "rate", None, 0.9, None),
    ],
)
def test_relative_error_reduction(
    higher: bool | None, unit: str, a: float | None, b: float | None, expected: float | None
) -> None:
    figures = [Figure("x", value, unit=unit, higher_is_better=higher) for value in (a, b)]
    found = relative_reduction(*figures)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-12))


def test_interval_of_the_difference_uses_resample_by_resample_differences() -> None:
    a = rates("a", 0.5, [0.5] * 9, resampled={"rate": [0.1, 0.5, 0.9]})
    b = rates("b", 0.4, [0.4] * 9, resampled={"rate": [0.0, 0.4, 0.8]})
    interval = compare(a, b, "rate", SETTINGS, 0).interval
    assert interval is not None
    assert interval.low == pytest.approx(-0.1)
    assert interval.high == pytest.approx(-0.1)


def test_resamples_that_either_run_lacks_are_left_out_of_the_difference() -> None:
    a = rates("a", 0.5, [0.5] * 9, resampled={"rate": [0.1, np.nan, 0.9, 0.4]})
    b = rates("b", 0.4, [0.4] * 9, resampled={"rate": [0.0, 0.4, np.nan, 0.2]})
    interval = compare(a, b, "rate", SETTINGS, 0).interval
    assert interval is not None
    assert interval.resamples == 2
    assert "2 of 4 resamples left out" in interval.remark


# --- permutation test ---------------------------------------------------------------------------


def enumerated_p(differences: Sequence[float]) -> float:
    observed = abs(sum(differences))
    hits = [
        abs(sum(sign * one for sign, one in zip(signs, differences, strict=True))) >= observed - 1e-9
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    return sum(hits) / len(hits)


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=9))
def test_exact_p_equals_full_enumeration(differences: list[int]) -> None:
    found, smallest = sign_flip_p(np.array(differences) / 7, 10_000, 0)
    assert found == enumerated_p([one / 7 for one in differences])
    assert smallest == 2.0 ** (1 - len(differences))
    assert found is not None and found >= smallest


def test_three_units_cannot_give_less_than_a_quarter() -> None:
    assert sign_flip_p(np.array([-0.1, -0.2, -0.3]), 10_000, 0) == (0.25, 0.25)


def test_twelve_units_are_enumerated_and_thirteen_are_sampled() -> None:
    differences = np.linspace(0.1, 1, 13)
    assert sign_flip_p(differences[:12], 1000, 0) == (2 / 4096, 2 / 4096)
    found, smallest = sign_flip_p(differences, 1000, 0)
    assert smallest == 1 / 1001
    assert found is not None and found * 1001 == pytest.approx(round(found * 1001))


def test_sampled_p_is_close_to_the_enumerated_one_and_seeded() -> None:
    differences = np.random.default_rng(1).normal(0.25, 1, 14)
    found = [sign_flip_p(differences, 20_000, seed)[0] for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]
    assert found[0] == pytest.approx(enumerated_p(list(differences)), abs=0.012)


def test_equal_runs_have_p_one() -> None:
    assert sign_flip_p(np.zeros(5), 1000, 0)[0] == 1.0
    assert sign_flip_p(np.zeros(20), 1000, 0)[0] == 1.0


def test_no_unit_with_both_figures_gives_no_p() -> None:
    assert sign_flip_p(np.array([]), 1000, 0) == (None, None)


def test_units_that_either_run_lacks_take_no_part_and_are_counted() -> None:
    a = rates("a", 0.3, [0.3, np.nan, 0.2, 0.5])
    b = rates("b", 0.2, [0.1, 0.2, np.nan, 0.1])
    comparison = compare(a, b, "rate", SETTINGS, 0)
    assert (comparison.clusters, comparison.excluded) == (2, 2)
    assert (comparison.p_value, comparison.smallest_p) == (0.5, 0.5)
    assert (comparison.won, comparison.lost, comparison.tied) == (2, 0, 0)


def test_units_are_paired_by_name_not_by_place() -> None:
    a = rates("a", 0.3, [0.1, 0.2, 0.3], clusters=("x", "y", "z"))
    b = rates("b", 0.3, [0.3, 0.1, 0.2], clusters=("z", "x", "y"))
    comparison = compare(a, b, "rate", SETTINGS, 0)
    assert (comparison.won, comparison.lost, comparison.tied) == (0, 0, 3)
    assert comparison.p_value == 1.0


def test_rounding_differences_are_ties() -> None:
    comparison = compare(rates("a", 0.3, [0.1 + 0.2, 0.1]), rates("b", 0.3, [0.3, 0.1]), "rate", SETTINGS, 0)
    assert comparison.tied == 2


def test_figures_without_direction_have_no_winner_but_a_difference() -> None:
    a, b = (
        run(name, [Figure("x", value, headline=True)], {"x": [value] * 3})
        for name, value in (("a", 1.0), ("b", 2.0))
    )
    comparison = compare(a, b, "x", SETTINGS, 0)
    assert (comparison.difference, comparison.relative_reduction) == (1.0, None)
    assert (comparison.won, comparison.lost, comparison.tied) == (0, 0, 0)


# --- Holm ---------------------------------------------------------------------------------------


def with_p(*values: float | None) -> list[Comparison]:
    return [Comparison(f"f{index}", "a", "b", 1.0, 2.0, p_value=p) for index, p in enumerate(values)]


def test_holm_by_hand() -> None:
    # sorted 0.005 x 4 = 0.02, 0.01 x 3 = 0.03, 0.03 x 2 = 0.06, 0.04 x 1 -> kept at 0.06
    adjusted = holm_adjusted(with_p(0.01, 0.04, None, 0.03, 0.005))
    assert [one.p_adjusted for one in adjusted] == [
        pytest.approx(0.03),
        pytest.approx(0.06),
        None,
        pytest.approx(0.06),
        pytest.approx(0.02),
    ]
    assert {one.tests for one in adjusted} == {4}


def test_holm_never_exceeds_one_and_leaves_a_single_test_alone() -> None:
    assert [one.p_adjusted for one in holm_adjusted(with_p(0.6, 0.7))] == [1.0, 1.0]
    assert holm_adjusted(with_p(0.04))[0].p_adjusted == 0.04


def test_tests_of_all_pairs_and_figures_are_adjusted_together() -> None:
    figures = [evolve(RATE, read_with=""), Figure("ap", 0.5, unit="AP", higher_is_better=True, headline=True)]
    runs = {
        name: run(name, figures, {"rate": [0.1, 0.2, shift], "ap": [shift, 0.4, 0.3]})
        for name, shift in (("a", 0.3), ("b", 0.2), ("c", 0.1))
    }
    found = compare_pairs(runs, [("a", "b"), ("a", "c")], SETTINGS, 0)
    assert [(one.a, one.b, one.key) for one in found] == [
        ("a", "b", "rate"),
        ("a", "b", "ap"),
        ("a", "c", "rate"),
        ("a", "c", "ap"),
    ]
    assert {one.tests for one in found} == {4}
    assert [one.p_adjusted for one in found] == [1.0] * 4


# --- comparability and cautions -----------------------------------------------------------------


def test_differing_support_is_listed_in_words_and_nothing_is_computed() -> None:
    a, b = (
        run(
            name,
            [evolve(RATE, read_with="", support={"negatives": 40, "invalid": invalid, "censored": None})],
            {"rate": [0.2] * 3},
        )
        for name, invalid in (("base", 0), ("cand", 3))
    )
    comparison = compare(a, b, "rate", SETTINGS, 0)
    assert comparison.not_comparable == ("invalid differs: base 0, cand 3",)
    given = (comparison.difference, comparison.relative_reduction, comparison.interval, comparison.p_value)
    assert given == (None, None, None, None)
    assert holm_adjusted([comparison])[0].tests == 0


def test_support_alone_decides_where_it_is_given() -> None:
    a, b = (
        run(name, [evolve(RATE, read_with="", denominator=n, support={"references": 7})], {"rate": [0.2] * 3})
        for name, n in (("a", 40), ("b", 44))
    )
    assert compare(a, b, "rate", SETTINGS, 0).not_comparable == ()


def test_denominators_decide_where_there_is_no_support() -> None:
    a, b = (
        run(name, [evolve(RATE, read_with="", denominator=n)], {"rate": [0.2] * 3})
        for name, n in (("a", 40), ("b", None))
    )
    found = compare(a, b, "rate", SETTINGS, 0)
    assert found.not_comparable == ("denominator differs: a 40, b none",)


def test_figure_that_one_run_lacks_is_not_comparable_and_says_why() -> None:
    a = run("a", [evolve(RATE, value=None, reason="no_calibration_positives")], {})
    found = compare(evolve(a, clusters=("S0", "S1")), rates("b", 0.2, [0.1, 0.2]), "rate", SETTINGS, 0)
    assert found.not_comparable == ("a has no value (no_calibration_positives)",)


def test_runs_on_different_units_are_not_comparable() -> None:
    a = rates("a", 0.3, [0.1, 0.2, 0.3])
    b = rates("b", 0.3, [0.1], clusters=("S1",))
    found = compare(a, b, "rate", SETTINGS, 0, noun="session")
    assert found.not_comparable == ("b lacks 2 sessions (S0, S2)",)


def test_runs_resampled_otherwise_get_no_interval() -> None:
    found = compare(
        rates("a", 0.3, [0.1, 0.2]), rates("b", 0.2, [0.1, 0.2], draws="other"), "rate", SETTINGS, 0
    )
    assert found.interval is not None
    assert found.interval.low is None
    assert found.interval.reason == "the runs were resampled over different units"


def paid(a: tuple[float, float], b: tuple[float, float]) -> tuple[str, ...]:
    baseline, candidate = (
        run(name, [evolve(RATE, value=rate, label="false rate"), evolve(RECALL, value=recall)], {})
        for name, (rate, recall) in (("baseline", a), ("candidate", b))
    )
    return trade_offs(baseline, candidate, "rate")


def test_lower_error_bought_with_lower_recall_is_said_with_both_recalls() -> None:
    assert paid((0.3, 0.80), (0.2, 0.71)) == (
        "lower false rate bought with lower recall: candidate recall 0.71 vs 0.80",
    )
    assert paid((0.2, 0.71), (0.3, 0.80)) == (
        "lower false rate bought with lower recall: baseline recall 0.71 vs 0.80",
    )


def test_companion_without_a_value_leaves_the_figure_unreadable() -> None:
    baseline = run("baseline", [RATE, RECALL], {})
    candidate = run("candidate", [RATE, evolve(RECALL, value=None, reason="no_positives")], {})
    assert trade_offs(baseline, candidate, "rate") == ("not readable beside recall, which candidate lacks",)


def test_gain_without_a_price_is_not_cautioned() -> None:
    assert paid((0.3, 0.7), (0.2, 0.8)) == paid((0.3, 0.7), (0.2, 0.7)) == paid((0.3, 0.7), (0.3, 0.6)) == ()


def test_equal_figures_are_written_with_two_decimals() -> None:
    assert apart(0.25, 0.25) == "0.25 vs 0.25"
    assert apart(3 / 14, 3 / 14) == "0.21 vs 0.21"


def test_close_recalls_are_written_with_the_decimals_that_tell_them_apart() -> None:
    assert apart(0.71, 0.8) == "0.71 vs 0.80"
    assert apart(0.8041, 0.8043) == "0.8041 vs 0.8043"


def test_unit_mean_that_contradicts_the_pooled_difference_is_cautioned() -> None:
    found = compare(rates("a", 0.3, [0.1, 0.1, 0.9]), rates("b", 0.2, [0.3, 0.3, 0.9]), "rate", SETTINGS, 0)
    assert found.difference is not None and found.difference < 0
    assert any("points the other way" in caution for caution in found.cautions)


def test_equal_totals_over_unequal_units_are_cautioned() -> None:
    a, b = rates("a", 0.3, [0.1, 0.2, 0.3]), rates("b", 0.2, [0.1, 0.2, 0.3])
    uneven = evolve(b, denominators={"rate": np.array([9.0, 11.0, 10.0])})
    found = compare(a, uneven, "rate", SETTINGS, 0, noun="session")
    assert "the runs' denominators agree in sum, but not in 2 of 3 sessions" in found.cautions


# --- controls -----------------------------------------------------------------------------------


def fires(name: str, rate: float, recall: float, spread: float = 0.0) -> Replicates:
    shifts = np.linspace(-spread, spread, 9)
    return run(
        name,
        [evolve(RATE, value=rate), evolve(RECALL, value=recall)],
        {"rate": list(rate + shifts), "recall": [recall] * 9},
    )


def test_control_that_never_fires_is_not_the_best_on_false_rates() -> None:
    silent, noise, ramp = fires("silent", 0.0, 0.0), fires("noise", 0.5, 0.8), fires("ramp", 0.4, 0.9)
    model = fires("model", 0.3, 0.8)
    best = best_control(model, [silent, noise, ramp], model.figures["rate"], SETTINGS)
    assert best is ramp


def test_no_control_competes_where_all_pay() -> None:
    model = fires("model", 0.3, 0.8)
    assert compare_with_controls([model], [fires("silent", 0.0, 0.0)], SETTINGS) == ((), ())


def test_control_with_a_companion_worse_only_by_chance_competes() -> None:
    model, noise = fires("model", 0.3, 0.8), fires("noise", 0.1, 0.79)
    jitter = np.linspace(-0.1, 0.1, 9)
    noise = evolve(noise, resampled={**noise.resampled, "recall": 0.79 + jitter})
    assert best_control(model, [noise], model.figures["rate"], SETTINGS) is noise


def test_best_control_has_the_best_value_in_the_figures_direction_and_the_first_name_among_equals() -> None:
    figure = Figure("ap", 0.6, unit="AP", higher_is_better=True, headline=True)
    model, low, second, first = (
        run(name, [evolve(figure, value=value)], {"ap": [value] * 3})
        for name, value in (("model", 0.6), ("c", 0.2), ("b", 0.5), ("a", 0.5))
    )
    assert best_control(model, [low, second, first], figure, SETTINGS) is first
    assert best_control(model, [low], evolve(figure, higher_is_better=None), SETTINGS) is None


def test_run_not_above_its_best_control_is_said() -> None:
    model, ramp = fires("model", 0.30, 0.8, spread=0.2), fires("control:ramp", 0.35, 0.8)
    found, notes = compare_with_controls([model], [ramp], SETTINGS, "session")
    assert notes == (
        "model is not above its best control (the interval of the paired difference includes 0) on 1 of 1 "
        "headline figures: rate: 0.30 vs 0.35 of control:ramp.",
    )
    assert (found[0].a, found[0].b, found[0].p_value, found[0].tests) == ("control:ramp", "model", None, 0)
    assert found[0].difference == pytest.approx(-0.05)


def test_run_above_its_best_control_needs_no_sentence_and_one_below_is_told_so() -> None:
    good, bad = fires("good", 0.1, 0.8), fires("bad", 0.5, 0.8)
    ramp = fires("control:ramp", 0.35, 0.8)
    assert compare_with_controls([good], [ramp], SETTINGS)[1] == ()
    assert compare_with_controls([bad], [ramp], SETTINGS)[1] == (
        "bad is below its best control (worse than a blind predictor) on 1 of 1 headline figures: "
        "rate: 0.50 vs 0.35 of control:ramp.",
    )


def test_single_unit_cannot_tell_whether_a_run_is_above_its_control() -> None:
    model, ramp = rates("model", 0.1, [0.1]), rates("control:ramp", 0.4, [0.4])
    notes = compare_with_controls([model], [ramp], SETTINGS, "session")[1]
    assert notes == (
        "Whether model is above its best control cannot be told (fewer than two sessions) on 1 of 1 headline "
        "figures: rate: 0.10 vs 0.40 of control:ramp.",
    )


def test_differing_counts_do_not_hide_a_control() -> None:
    model, ramp = (
        run(name, [evolve(RATE, value=0.3, read_with="", support={"invalid": invalid})], {"rate": units})
        for name, invalid, units in (("model", 2, [0.1, 0.5]), ("control:ramp", 0, [0.2, 0.4]))
    )
    found, notes = compare_with_controls([model], [ramp], SETTINGS)
    assert found[0].cautions == ("invalid differs: control:ramp 0, model 2",)
    assert len(notes) == 1
