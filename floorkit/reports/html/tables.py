"""Tables of the HTML page: headline, comparisons, and every shown TableSection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from attrs import frozen

from floorkit.core.sections import TableSection
from floorkit.core.values import Comparison, Figure, Interval, Result
from floorkit.reports import cells
from floorkit.reports.html.markup import Child, Html, element, join
from floorkit.reports.standard import (
    HeadlineTable,
    comparison_words,
    coverage_section,
    coverage_words,
    figure_of,
    tests_words,
)

SHOWN_ROWS = 1000
"""Rows of one table; longer ones are cut, and the page says so."""

SIDE_BY_SIDE = 3
"""Headline figures whose intervals and counts stand beside their values; of more they stand below."""

ROWS_WITHOUT_ROOM = 20
"""Rows of a table for which the page has no room."""


@frozen
class Cell:
    """A cell: what is read, and what it is sorted by (None sorts last)."""

    shown: Child
    key: str | float | None = None
    numeric: bool = False
    head: bool = False


@frozen
class Row:
    cells: Sequence[Cell]
    reference: bool = False
    """A control: shown as a reference row."""


@frozen
class Heading:
    words: Child
    numeric: bool = False
    hint: str = ""


def table(
    identifier: str,
    title: str,
    headings: Sequence[Heading],
    rows: Iterable[Row],
    *notes: Child,
    signature: str,
    stacked: bool = False,
) -> Html:
    """A titled, sortable table in a scrolling region, with its notes and the signature line below.

    Parameters
    ----------
    stacked
        Put what stands beside a number (interval, counts) below it, for tables of many columns.
    """
    head = [
        element(
            "th",
            heading.words,
            scope="col",
            class_="number" if heading.numeric else None,
            title=heading.hint or None,
        )
        for heading in headings
    ]
    title_id = f"{identifier}-title"
    return element(
        "figure",
        element("h3", title, id=title_id),
        element(
            "div",
            element(
                "table",
                element("thead", element("tr", *head)),
                element("tbody", [_row(row) for row in rows]),
                class_="sortable stacked" if stacked else "sortable",
                aria_labelledby=title_id,
            ),
            class_="scroll",
            tabindex=0,
            role="group",
            aria_labelledby=title_id,
        ),
        [element("p", note, class_="note") for note in notes if note],
        signature_line(signature),
        class_="table",
        id=identifier,
    )


def signature_line(signature: str) -> Html:
    """The line that identifies the numbers above it."""
    return element("p", signature, class_="signature")


def _row(row: Row) -> Html:
    made = []
    for cell in row.cells:
        key = "" if cell.key is None else str(cell.key)
        made.append(
            element(
                "th" if cell.head else "td",
                cell.shown,
                scope="row" if cell.head else None,
                class_="number" if cell.numeric else None,
                data_key=key if key != cell.shown else None,
            )
        )
    return element("tr", *made, class_="control" if row.reference else None)


# --- headline -----------------------------------------------------------------------------------


def headline(identifier: str, shown: HeadlineTable, result: Result) -> Html:
    """One headline table: each figure with interval and counts, controls as reference rows."""
    headings = [Heading(cells.axis_heading(axis)) for axis in shown.axes] + [Heading("run")]
    headings += [Heading(_figure_heading(result, name, words), True) for name, words in _names(shown)]
    rows = [
        Row(
            [
                *(Cell(str(value), _sort_key(value)) for value in row.at),
                Cell(row.run, row.run, head=True),
                *(
                    figure_cell(figure, interval)
                    for figure, interval in zip(row.figures, row.intervals, strict=True)
                ),
            ],
            row.control,
        )
        for row in shown.rows
    ]
    controls = any(row.control for row in shown.rows)
    return table(
        identifier,
        shown.title,
        headings,
        rows,
        "Rows in italics are controls: what a predictor gets that never sees the input."
        if controls
        else None,
        shown.note,
        signature=result.signature,
        stacked=len(shown.names) > SIDE_BY_SIDE,
    )


def _names(shown: HeadlineTable) -> Iterable[tuple[str, str]]:
    return zip(shown.names, shown.headings, strict=True)


def _figure_heading(result: Result, name: str, words: str) -> Child:
    directions = {
        figure.higher_is_better
        for run in result.runs.values()
        for figure in run.figures
        if figure.name == name
    }
    told = {True: "higher is better", False: "lower is better", None: None}
    direction = told[directions.pop()] if len(directions) == 1 else None
    return [words, element("small", direction)] if direction else words


def _sort_key(value: Any) -> Any:
    try:
        return float(value)
    except ValueError:
        return value


def figure_cell(figure: Figure | None, interval: Interval | None) -> Cell:
    """A figure: value, interval below it, counts below that; why there is none where there is none."""
    if figure is None:
        return Cell(cells.MISSING, numeric=True)
    bracket = cells.interval_text(interval, figure.unit)
    counts = cells.count_text(figure.value, figure.count, figure.denominator)
    below = [bracket, "" if figure.unit == "count" else counts]
    if figure.value is None and figure.reason:
        below.append(cells.reason_text(figure.reason))
    shown = join(
        element("b", cells.value_text(figure.value, figure.unit)),
        [element("small", words) for words in below if words],
    )
    return Cell(shown, figure.value, numeric=True)


# --- comparisons --------------------------------------------------------------------------------


def comparisons(identifier: str, title: str, shown: Sequence[Comparison], result: Result) -> Html:
    """Run B against run A on each figure, with what must be read beside the numbers in words.

    Columns that would repeat the same two runs in every row are a sentence instead.
    """
    tested = any(one.p_value is not None for one in shown)
    pairs = {(one.a, one.b) for one in shown}
    headings = [Heading("figure")]
    headings += [Heading("run A"), Heading("run B")] if len(pairs) > 1 else []
    headings += [
        Heading("A", True, "value of run A"),
        Heading("B", True, "value of run B"),
        Heading("B − A", True, "difference, with the interval of the paired difference"),
        Heading("error reduction", True, "(A − B) / A of the error, which is 1 − recall for a recall"),
    ]
    headings += [Heading("p", True), Heading("p (Holm)", True, "adjusted for the tests")] if tested else []
    headings += [
        Heading("better / worse / tied", True, "clusters on which B is better, worse, tied"),
        Heading("in words"),
    ]
    rows = [Row(_comparison_cells(one, figure_of(result, one), len(pairs) > 1, tested)) for one in shown]
    same = [f"A is {a}, B is {b}." for a, b in pairs] if len(pairs) == 1 else []
    notes = [*same, *tests_words(shown)]
    return table(identifier, title, headings, rows, *notes, signature=result.signature, stacked=True)


def _comparison_cells(one: Comparison, figure: Figure | None, named: bool, tested: bool) -> list[Cell]:
    unit = figure.unit if figure else ""
    words = " ".join(comparison_words(one))
    bracket = cells.interval_text(one.interval, unit)
    difference = join(
        element("b", cells.difference_text(one.difference, unit)),
        element("small", bracket) if bracket else None,
    )
    reduction = None if one.relative_reduction is None else cells.percent(one.relative_reduction)
    units = cells.MISSING if one.not_comparable else f"{one.won} / {one.lost} / {one.tied}"
    return [
        Cell(cells.figure_words(figure) if figure else one.key, one.key, head=True),
        *([Cell(one.a, one.a), Cell(one.b, one.b)] if named else []),
        Cell(cells.value_text(one.a_value, unit), one.a_value, numeric=True),
        Cell(cells.value_text(one.b_value, unit), one.b_value, numeric=True),
        Cell("not comparable" if one.not_comparable else difference, one.difference, numeric=True),
        Cell(reduction or cells.MISSING, one.relative_reduction, numeric=True),
        *(_p_cells(one) if tested else []),
        Cell(units, one.won - one.lost, numeric=True),
        Cell(element("span", words, class_="caution") if words else "", words),
    ]


def _p_cells(one: Comparison) -> list[Cell]:
    return [Cell(cells.p_text(value), value, numeric=True) for value in (one.p_value, one.p_adjusted)]


# --- sections -----------------------------------------------------------------------------------


def coverage(identifier: str, result: Result) -> Html:
    """Coverage as a sentence and a table."""
    return section(identifier, coverage_section(result), result, coverage_words(result))


def section(
    identifier: str, shown: TableSection, result: Result, *notes: Child, limit: int = SHOWN_ROWS
) -> Html:
    """A protocol's table; counts stand in the cell of their rate, rows of controls are reference rows."""
    columns = shown.columns
    kept = cells.merged_columns(columns)
    run_column = next((index for index, column in enumerate(columns) if column.name == "run"), None)
    controls = {run.name for run in result.runs.values() if run.control}
    rows = []
    source = shown.iterate()
    for values in islice(source, limit):
        details = cells.row_details(columns, values)
        made = []
        for index in kept:
            column, value = columns[index], values[index]
            words = cells.cell_text(value, column)
            content = join(words, [element("small", one) for one in details[index]])
            made.append(
                Cell(content, _plain_key(value), column.kind not in ("text", "flag"), index == run_column)
            )
        rows.append(Row(made, run_column is not None and values[run_column] in controls))
    more = sum(1 for _ in source)
    where = f"; all are in {result.context.name}/{shown.file}" if shown.file else ""
    cut = f"The first {len(rows)} of {len(rows) + more} rows are shown{where}." if more else None
    headings = [
        Heading(cells.column_heading(columns[index]), columns[index].kind not in ("text", "flag"))
        for index in kept
    ]
    return table(identifier, shown.title, headings, rows, shown.note, *notes, cut, signature=result.signature)


def _plain_key(value: Any) -> str | float | None:
    if value is None or isinstance(value, str):
        return value
    return float(value) if isinstance(value, float) else str(value)
