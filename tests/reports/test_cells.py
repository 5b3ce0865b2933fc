"""How values are written for people."""

from __future__ import annotations

import pytest

from floorkit.core.sections import ColumnSpec
from floorkit.core.values import Figure, Interval
from floorkit.reports import cells


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0 %"),
        (1.0, "100.0 %"),
        (0.1234, "12.3 %"),
        (0.0001, "0.01 %"),
        (0.00001234, "0.001 %"),
        (0.99996, "99.996 %"),
        (-0.17, "−17.0 %"),
    ],
)
def test_percent_never_shows_zero_or_hundred_for_what_is_neither(value: float, text: str) -> None:
    assert cells.percent(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, "3"),
        (12345.678, "12346"),
        (0.123456, "0.1235"),
        (-2.5, "−2.5"),
        (1e-9, "1e-09"),
        (10**14, "1" + "0" * 14),
    ],
)
def test_numbers_keep_four_significant_digits_and_whole_numbers_in_full(value: float, text: str) -> None:
    assert cells.number(value) == text


def test_a_missing_value_is_a_dash_in_every_unit() -> None:
    assert {cells.value_text(None, unit) for unit in ("rate", "AP", "count", "ms")} == {cells.MISSING}


def test_differences_of_rates_are_in_percentage_points_with_their_sign() -> None:
    assert cells.difference_text(0.05, "rate") == "+5.0 points"
    assert cells.difference_text(-0.05, "AP") == "−0.050"
    assert cells.difference_text(0.0, "rate") == "0.0 points"


def test_an_interval_is_written_in_the_unit_of_its_figure() -> None:
    assert cells.interval_text(Interval(0.1, 0.25), "rate") == "[10.0, 25.0]"
    assert cells.interval_text(Interval(None, None, reason="fewer than two units"), "rate") == ""


def test_headings_tell_units_once() -> None:
    assert cells.figure_heading(Figure("latency_ms", 1.0, "ms")) == "latency (ms)"
    assert cells.figure_heading(Figure("event_ap", 1.0, "AP", label="event AP")) == "event AP"
    assert cells.figure_heading(Figure("class_f1", 1.0, "F1", label="class F1")) == "class F1"
    figure = Figure("recall", 1.0, at={"horizon_s": 0.2, "stratum": "all"})
    assert cells.figure_words(figure) == "recall at horizon 0.2 s, stratum all"


def test_intervals_and_counts_are_merged_into_the_column_that_they_belong_to() -> None:
    columns = [
        ColumnSpec("recall", kind="rate", count="hits", denominator="positives"),
        ColumnSpec("recall_low", kind="rate"),
        ColumnSpec("recall_high", kind="rate"),
        ColumnSpec("hits", kind="integer"),
        ColumnSpec("positives", kind="integer"),
        ColumnSpec("note"),
        ColumnSpec("gain_low", kind="float"),
    ]
    assert [columns[index].name for index in cells.merged_columns(columns)] == ["recall", "note", "gain_low"]
    details = cells.row_details(columns, (0.5, 0.25, 0.75, 1, 2, "x", 0.1))
    assert details[0] == ["[25.0, 75.0]", "1/2"]
    assert details[5:] == [[], []]
    assert cells.row_details(columns, (0.5, None, None, 1, 2, "x", None))[0] == ["1/2"]
