"""Plots of the differences on each unit, from a real run of the toy protocol."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from floorkit.core.statistics import Replicates
from floorkit.core.values import Comparison, Figure
from floorkit.reports import unit_differences
from floorkit.reports.unit_differences import unit_difference_plots


class OneResult:
    """The parts of a Result that the plots read."""

    def __init__(self, figure: Figure, comparison: Comparison) -> None:
        run = type("Run", (), {"figures": (figure,)})
        self.runs = {"a": run, "b": run}
        self.comparisons = (comparison,)
        self.protocol = type("Protocol", (), {"unit_noun": "session"})


def replicates(run: str, values: list[float]) -> Replicates:
    names = tuple(f"S{index}" for index in range(len(values)))
    return Replicates(run, names, {}, {"rate": np.array(values)}, {}, {}, "")


def plots(difference: float | None) -> list[unit_differences.PlotSection]:
    figure = Figure("rate", 0.2, label="false entry")
    result = OneResult(figure, Comparison("rate", "a", "b", 0.3, 0.2, difference))
    runs = {
        "a": replicates("a", [0.3, np.nan, 0.5]),
        "b": replicates("b", [0.1, 0.4, 0.75]),
    }
    return unit_difference_plots(result, runs)  # type: ignore[arg-type]


def test_each_unit_has_the_difference_of_its_own_figures_and_missing_ones_have_none() -> None:
    (plot,) = plots(-0.1)
    assert "false entry" in plot.title
    assert (plot.kind, plot.x_label) == ("bar", "session")
    (line,) = plot.series
    assert list(line.x) == ["S0", "S2"]
    assert list(line.y) == pytest.approx([-0.2, 0.25])


def test_runs_that_are_not_compared_have_no_plot() -> None:
    assert plots(None) == []


def test_many_units_are_shown_as_a_histogram(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_differences, "MANY", 1)
    (plot,) = plots(-0.1)
    assert plot.kind == "histogram"
    assert sum(value or 0 for value in plot.series[0].y) == 2


def test_the_report_page_holds_them(toy_data: Path, floorkit: object) -> None:
    assert floorkit("run", "protocols.toml", cwd=toy_data).returncode == 0  # type: ignore[operator]
    page = (toy_data / "results/report.html").read_text("utf-8")
    assert "difference on each unit" in page
    assert json.loads((toy_data / "results/index.json").read_text("utf-8"))["entries"]["toy"]
