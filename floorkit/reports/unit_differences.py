"""Where a difference comes from: run B minus run A on each unit alone, as plots of the report."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from floorkit.core.sections import PlotSection, Series
from floorkit.core.statistics import Replicates
from floorkit.core.values import Result
from floorkit.reports.cells import figure_words
from floorkit.reports.standard import figure_of

MANY = 200
"""Beyond so many units the plot shows how the differences are distributed, not each unit."""


def unit_difference_plots(result: Result, replicates: Mapping[str, Replicates]) -> list[PlotSection]:
    """One plot for each compared headline figure, one series for each pair of runs.

    A unit on which the figure does not exist for one of the runs has no bar.
    """
    series: dict[str, list[Series]] = {}
    titles: dict[str, str] = {}
    kinds: dict[str, bool] = {}
    for one in result.comparisons:
        figure = figure_of(result, one)
        if one.difference is None or figure is None:
            continue
        a, b = replicates[one.a], replicates[one.b]
        of_a = dict(zip(a.clusters, a.units[one.key], strict=True))
        values = {
            name: float(value - of_a[name])
            for name, value in zip(b.clusters, b.units[one.key], strict=True)
            if name in of_a and np.isfinite(value - of_a[name])
        }
        titles[one.key] = f"{figure_words(figure)}, difference on each {result.protocol.unit_noun}"
        kinds[one.key] = len(values) > MANY
        name = f"{one.b} − {one.a}"
        if kinds[one.key]:
            counts, edges = np.histogram(list(values.values()), bins=40)
            middles = ((edges[:-1] + edges[1:]) / 2).tolist()
            series.setdefault(one.key, []).append(Series(name, middles, counts.tolist()))
        else:
            series.setdefault(one.key, []).append(Series(name, list(values), list(values.values())))
    return [
        PlotSection(
            titles[key],
            "difference" if kinds[key] else result.protocol.unit_noun,
            f"{result.protocol.unit_noun}s" if kinds[key] else "B − A",
            lines,
            kind="histogram" if kinds[key] else "bar",
            note="Each unit alone; small units scatter widely.",
        )
        for key, lines in series.items()
    ]
