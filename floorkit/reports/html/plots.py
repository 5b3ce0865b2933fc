"""Plots (drawn by Plotly in the page), matrices (as coloured tables) and pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from floorkit.core.sections import ImageSection, MatrixSection, PlotSection, Series
from floorkit.core.values import Result
from floorkit.reports import cells
from floorkit.reports.html.markup import Child, Html, data_script, data_uri, element, json_text
from floorkit.reports.html.tables import signature_line

DRAWN_POINTS = 2000
"""Points of one series; longer ones are thinned, and the page says so."""

POINTS_WITHOUT_ROOM = 50
"""Points of a series of a plot for which the page has no room."""

DENSE_COLUMNS = 24
"""Matrices with more columns are drawn small."""

STRONGEST_SHADE = 55
"""Percent of colour behind a matrix' largest value; more would hide the number."""


def plot(identifier: str, section: PlotSection, result: Result, limit: int = DRAWN_POINTS) -> Html:
    """A plot: its data for the page's script, what it shows in words, and its data as a table on demand."""
    series, thinned = [], []
    kept: Sequence[int]
    for one in section.series:
        bars = section.kind in ("bar", "histogram")
        kept = range(len(one.x)) if bars else _kept_points(one, limit)
        series.append(_series_data(one, kept))
        if len(kept) < len(one.x):
            thinned.append(f"{one.name} ({len(kept)} of {len(one.x)} points)")
    data = {
        "kind": section.kind,
        "x": section.x_label,
        "y": section.y_label,
        "series": series,
    }
    names = ", ".join(one.name for one in section.series)
    spoken = f"{section.title}. {section.kind} plot of {section.y_label} over {section.x_label}: {names}."
    notes: list[Child] = [section.note]
    if any(one.control for one in section.series):
        notes.append("Grey series are controls: what a predictor gets that never sees the input.")
    if any(one.low for one in section.series):
        notes.append("Bands and bars are intervals.")
    if any(len(one.marked) for one in section.series):
        notes.append("Ringed points are the chosen operating points.")
    if thinned:
        notes.append(f"Drawn with fewer points, spread evenly: {', '.join(thinned)}.")
    return element(
        "figure",
        element("h3", section.title),
        element("div", class_="drawing", role="group", aria_label=spoken),
        element("details", element("summary", "Data of this plot"), class_="data"),
        [element("p", note, class_="note") for note in notes if note],
        signature_line(result.signature),
        data_script(f"{identifier}-data", json_text(data)),
        class_="plot",
        id=identifier,
    )


def _kept_points(series: Series, limit: int) -> Sequence[int]:
    """Indices of about ``limit`` points at most: evenly spread, first, last and marked ones kept."""
    count = len(series.x)
    if count <= limit:
        return range(count)
    spread = {round(index * (count - 1) / (limit - 1)) for index in range(limit)}
    return sorted(spread | set(series.marked))


def _series_data(series: Series, kept: Sequence[int]) -> dict[str, Any]:
    def chosen(values: Sequence[Any]) -> list[Any]:
        return [values[index] for index in kept] if len(values) else []

    place = {index: position for position, index in enumerate(kept)}
    return {
        "name": series.name,
        "control": series.control,
        "x": chosen(series.x),
        "y": chosen(series.y),
        "low": chosen(series.low),
        "high": chosen(series.high),
        "texts": chosen(series.texts),
        "marked": [place[index] for index in series.marked],
    }


# --- matrices -----------------------------------------------------------------------------------


def matrix(identifier: str, section: MatrixSection, result: Result) -> Html:
    """A matrix as a table whose cells are shaded by value, so that it prints and can be read aloud."""
    finite = [abs(value) for row in section.values for value in row if value is not None]
    largest = max(finite, default=0.0)
    axes = " by ".join(filter(None, (section.row_axis, section.column_axis)))
    title_id = f"{identifier}-title"
    head = element(
        "tr",
        element("th", axes, scope="col"),
        [element("th", label, scope="col") for label in section.column_labels],
    )
    body = [
        element("tr", element("th", label, scope="row"), [_shaded(value, largest) for value in row])
        for label, row in zip(section.row_labels, section.values, strict=True)
    ]
    dense = len(section.column_labels) > DENSE_COLUMNS
    return element(
        "figure",
        element("h3", section.title, id=title_id),
        element(
            "div",
            element(
                "table",
                element("thead", head),
                element("tbody", body),
                aria_labelledby=title_id,
                class_="matrix dense" if dense else "matrix",
            ),
            class_="scroll",
            tabindex=0,
            role="group",
            aria_labelledby=title_id,
        ),
        element("p", section.note, class_="note") if section.note else None,
        signature_line(result.signature),
        class_="matrix",
        id=identifier,
    )


def _shaded(value: float | None, largest: float) -> Html:
    if value is None:
        return element("td", cells.MISSING)
    share = math.ceil(STRONGEST_SHADE * abs(value) / largest) if largest else 0
    return element(
        "td",
        cells.number(float(value), 3),
        style=f"--share:{share}%" if share else None,
        class_="negative" if value < 0 else None,
    )


# --- pictures -----------------------------------------------------------------------------------


def image(identifier: str, section: ImageSection, result: Result) -> Html:
    """A picture inside the page."""
    return element(
        "figure",
        element("h3", section.title),
        element("img", src=data_uri(section.data, section.media_type), alt=section.alt),
        element("p", section.note, class_="note") if section.note else None,
        signature_line(result.signature),
        class_="picture",
        id=identifier,
    )
