"""The tables that every protocol gets."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from floorkit.core.sections import Section
from floorkit.core.values import Comparison, Coverage, Figure, Result
from floorkit.reports import standard

Make = Callable[..., tuple[Result, list[Section]]]


def test_headline_figures_are_grouped_by_their_axes_with_controls_last(make_result: Make) -> None:
    result, _ = make_result()
    tables = standard.headline_tables(result)
    assert [table.axes for table in tables] == [("horizon_s",), ("horizon_s", "recall"), ()]
    first = tables[0].rows[:3]
    assert [(row.at, row.run, row.control) for row in first] == [
        ((0.2,), "baseline", False),
        ((0.2,), "model", False),
        ((0.2,), "control:noise", True),
    ]


def test_a_headline_figure_stands_behind_the_figure_that_it_must_be_read_with(make_result: Make) -> None:
    result, _ = make_result()
    achieved = Figure("recall", 0.71, count=71, denominator=100, higher_is_better=True)
    errors = [
        Figure(name, 0.2, headline=True, read_with="recall") for name in ("false_entry", "short_resume")
    ]
    others = [Figure("precision", 0.5), Figure("alone", 0.1, headline=True, read_with="nowhere")]
    runs = {
        name: attrs.evolve(run, figures=(*errors, achieved, *others)) for name, run in result.runs.items()
    }
    (table,) = standard.headline_tables(attrs.evolve(result, runs=runs))
    assert table.names == ("recall", "false_entry", "short_resume", "alone")
    assert table.rows[0].figures[0] == achieved


def test_headline_figures_that_are_read_with_each_other_keep_the_order_of_the_protocol(
    make_result: Make,
) -> None:
    result, _ = make_result()
    figures = (
        Figure("recall", 0.7, headline=True, read_with="fp_rate"),
        Figure("fp_rate", 0.1, headline=True, read_with="recall"),
    )
    runs = {name: attrs.evolve(run, figures=figures) for name, run in result.runs.items()}
    (table,) = standard.headline_tables(attrs.evolve(result, runs=runs))
    assert table.names == ("recall", "fp_rate")


def test_every_value_of_a_headline_figure_has_a_column_of_its_own(make_result: Make) -> None:
    result, _ = make_result()
    table = standard.standard_sections(result)[1]
    row = dict(zip((column.name for column in table.columns), next(iter(table.iterate())), strict=True))
    figure = result.runs["baseline"].figure("trigger_rate", horizon_s=0.2, recall="0.7")
    assert row["trigger_rate"] == figure.value
    assert (row["trigger_rate_count"], row["trigger_rate_denominator"]) == (28, 200)
    assert (row["trigger_rate_low"], row["trigger_rate_high"]) == (
        result.runs["baseline"].intervals[figure.key].low,
        result.runs["baseline"].intervals[figure.key].high,
    )


def test_a_refused_comparison_says_why_and_gives_no_number(make_result: Make) -> None:
    result, _ = make_result()
    refused = result.comparisons[1]
    (words,) = standard.comparison_words(refused)
    assert words == "Not comparable, so no difference is given: positives: 120 vs 118."
    assert refused.difference is None


def test_holm_says_over_how_many_tests_and_what_the_units_allow() -> None:
    two = [
        Comparison(
            key, "a", "b", 0.1, 0.2, 0.1, p_value=0.25, p_adjusted=0.5, tests=2, smallest_p=0.25, clusters=3
        )
        for key in "xy"
    ]
    words = standard.tests_words(two)
    assert "The adjusted p is Holm's over 2 tests." in words
    assert "With 3 clusters no p can be below 0.25." in words
    assert standard.tests_words([Comparison("x", "a", "b", 0.1, 0.2)]) == []


def test_coverage_words_name_the_runs_that_lack_units(make_result: Make) -> None:
    result, _ = make_result()
    assert standard.coverage_words(result) == "Not every session was scored: model scored 11 of 12."
    runs = {name: attrs.evolve(run, coverage=Coverage(12, 12)) for name, run in result.runs.items()}
    assert standard.coverage_words(attrs.evolve(result, runs=runs)) == "Every run scored all 12 sessions."
