"""The tables that every protocol gets from the core: headline figures, comparisons, coverage.

They are built here once, for the terminal, the HTML page and the exports alike. A headline table holds the
figures that share the same coordinate axes; its rows are coordinates and runs, controls last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from floorkit.core.sections import ColumnSpec, Section, TableSection
from floorkit.core.values import Comparison, Coordinate, Figure, Interval, Result, RunResult
from floorkit.reports import cells

_KINDS: Mapping[str, Any] = {"rate": "rate", "count": "integer"}


@frozen
class HeadlineRow:
    """One run at one set of coordinates: a figure, or None where the run has none, for each name."""

    run: str
    control: bool
    at: tuple[Coordinate, ...]
    figures: tuple[Figure | None, ...]
    intervals: tuple[Interval | None, ...]


@frozen
class HeadlineTable:
    """Headline figures over the same ``axes``; ``headings`` are those of the figures ``names``."""

    title: str
    axes: tuple[str, ...]
    names: tuple[str, ...]
    headings: tuple[str, ...]
    units: tuple[str, ...]
    rows: tuple[HeadlineRow, ...]

    @property
    def note(self) -> str:
        """Which intervals the table shows, and every distinct remark on them."""
        intervals = [one for row in self.rows for one in row.intervals if one is not None]
        told = [part for one in intervals for part in (one.remark or one.reason).split("; ") if part]
        sentences = [cells.level_text(intervals)]
        if told:
            remarks = dict.fromkeys(cells.reason_text(part) for part in told)
            sentences.append("On intervals: " + "; ".join(remarks) + ".")
        return " ".join(filter(None, sentences))


def headline_figures(run: RunResult) -> tuple[Figure, ...]:
    """The headline figures, each behind the figure that it must be read with (its achieved recall) where that
    is none itself."""
    figures = {figure.key: figure for figure in run.figures}
    headline = {figure.key: figure for figure in run.figures if figure.headline}
    keys = dict.fromkeys(
        key
        for figure in headline.values()
        for key in (figure.read_with, figure.key)
        if key == figure.key or key not in headline
    )
    return tuple(figures[key] for key in keys if key in figures)


def headline_tables(result: Result) -> tuple[HeadlineTable, ...]:
    """The headline figures of all runs, one table for each set of axes, in order of first appearance."""
    ordered = sorted(result.runs.values(), key=lambda run: run.control)
    groups: dict[tuple[str, ...], dict[tuple[Coordinate, ...], None]] = {}
    named: dict[tuple[str, ...], dict[str, list[Figure]]] = {}
    for run in ordered:
        for figure in headline_figures(run):
            axes = tuple(figure.at)
            groups.setdefault(axes, {})[tuple(figure.at.values())] = None
            named.setdefault(axes, {}).setdefault(figure.name, []).append(figure)
    return tuple(_table(ordered, axes, list(groups[axes]), named[axes]) for axes in groups)


def _table(
    runs: Sequence[RunResult],
    axes: tuple[str, ...],
    coordinates: Sequence[tuple[Coordinate, ...]],
    named: Mapping[str, Sequence[Figure]],
) -> HeadlineTable:
    rows = []
    found = {
        run.name: {(one.name, tuple(one.at.values())): one for one in run.figures if tuple(one.at) == axes}
        for run in runs
    }
    for at in coordinates:
        for run in runs:
            figures = tuple(found[run.name].get((name, at)) for name in named)
            intervals = tuple(run.intervals.get(one.key) if one else None for one in figures)
            if any(figures):
                rows.append(HeadlineRow(run.name, run.control, at, figures, intervals))
    by = " and ".join(cells.axis_heading(axis) for axis in axes)
    return HeadlineTable(
        title=f"Headline figures by {by}" if by else "Headline figures",
        axes=axes,
        names=tuple(named),
        headings=tuple(_heading(figures) for figures in named.values()),
        units=tuple(figures[0].unit for figures in named.values()),
        rows=tuple(rows),
    )


def _heading(figures: Sequence[Figure]) -> str:
    """The heading that all rows share: the label only where it does not change with the coordinates."""
    headings = {cells.figure_heading(figure) for figure in figures}
    return headings.pop() if len(headings) == 1 else figures[0].name.replace("_", " ")


# --- comparisons --------------------------------------------------------------------------------


def figure_of(result: Result, comparison: Comparison) -> Figure | None:
    """The figure that was compared, from run B or else from run A."""
    for name in (comparison.b, comparison.a):
        run = result.runs.get(name)
        for figure in run.figures if run else ():
            if figure.key == comparison.key:
                return figure
    return None


def comparison_words(comparison: Comparison) -> list[str]:
    """What must be read beside a comparison's numbers, as sentences."""
    words = []
    if comparison.not_comparable:
        words.append("Not comparable, so no difference is given: " + "; ".join(comparison.not_comparable))
    words += comparison.cautions
    if comparison.interval is not None:
        told = comparison.interval.remark or cells.reason_text(comparison.interval.reason)
        words += [f"Interval: {told}"] if told else []
    if comparison.excluded:
        words.append(
            f"{comparison.excluded} of {comparison.excluded + comparison.clusters} clusters took no part"
        )
    return [word if word.endswith((".", "!", "?")) else word + "." for word in words]


def tests_words(comparisons: Sequence[Comparison]) -> list[str]:
    """How the p-values of a table were made and adjusted, as sentences; nothing where there are none."""
    tested = [one for one in comparisons if one.p_value is not None]
    if not tested:
        return []
    words = ["p is a two-sided sign-flip permutation test over clusters."]
    tests = max(one.tests for one in tested)
    words.append(
        f"The adjusted p is Holm's over {tests} tests."
        if tests > 1
        else "One test was made: no adjustment for several."
    )
    smallest: dict[tuple[int, float], None] = {}
    for one in tested:
        if one.smallest_p is not None:
            smallest[one.clusters, one.smallest_p] = None
    words += [
        f"With {clusters} clusters no p can be below {cells.p_text(p)}." for clusters, p in sorted(smallest)
    ]
    return words


COMPARISON_COLUMNS = (
    ColumnSpec("figure"),
    ColumnSpec("run_a", "A"),
    ColumnSpec("run_b", "B"),
    ColumnSpec("a_value", "A", "float"),
    ColumnSpec("b_value", "B", "float"),
    ColumnSpec("difference", "B − A", "float"),
    ColumnSpec("difference_low", "low", "float"),
    ColumnSpec("difference_high", "high", "float"),
    ColumnSpec("relative_reduction", "error reduction", "rate"),
    ColumnSpec("p_value", "p", "float"),
    ColumnSpec("p_adjusted", "p (Holm)", "float"),
    ColumnSpec("tests", "tests", "integer"),
    ColumnSpec("clusters", "clusters", "integer"),
    ColumnSpec("excluded", "excluded", "integer"),
    ColumnSpec("won", "B better", "integer"),
    ColumnSpec("lost", "B worse", "integer"),
    ColumnSpec("tied", "tied", "integer"),
    ColumnSpec("in_words", "in words"),
)


def _comparison_row(one: Comparison) -> tuple[Any, ...]:
    low, high = (one.interval.low, one.interval.high) if one.interval else (None, None)
    return (
        one.key,
        one.a,
        one.b,
        one.a_value,
        one.b_value,
        one.difference,
        low,
        high,
        one.relative_reduction,
        one.p_value,
        one.p_adjusted,
        one.tests,
        one.clusters,
        one.excluded,
        one.won,
        one.lost,
        one.tied,
        " ".join(comparison_words(one)),
    )


# --- as plain tables ----------------------------------------------------------------------------


def standard_sections(result: Result) -> list[TableSection]:
    """Headline, control, comparison and coverage tables with every value in a column of its own."""
    sections = [_flat(table) for table in headline_tables(result)]
    for title, comparisons in comparison_groups(result):
        sections.append(
            TableSection(
                title,
                COMPARISON_COLUMNS,
                [_comparison_row(one) for one in comparisons],
                note=" ".join(tests_words(comparisons)),
            )
        )
    return [*sections, coverage_section(result)]


def comparison_groups(result: Result) -> Iterator[tuple[str, tuple[Comparison, ...]]]:
    """The comparisons that a result has, with the titles of their tables."""
    if result.controls:
        yield "Each run against its best control", result.controls
    if result.comparisons:
        yield "Comparisons of runs", result.comparisons


def _flat(table: HeadlineTable) -> TableSection:
    columns = [ColumnSpec(axis, cells.axis_heading(axis)) for axis in table.axes]
    columns += [ColumnSpec("run"), ColumnSpec("control", kind="flag")]
    for name, heading, unit in zip(table.names, table.headings, table.units, strict=True):
        kind = _KINDS.get(unit, "float")
        columns += [
            ColumnSpec(name, heading, kind, count=f"{name}_count", denominator=f"{name}_denominator"),
            ColumnSpec(f"{name}_low", f"{heading} low", kind),
            ColumnSpec(f"{name}_high", f"{heading} high", kind),
            ColumnSpec(f"{name}_count", f"{heading} count", "float"),
            ColumnSpec(f"{name}_denominator", f"{heading} denominator", "float"),
            ColumnSpec(f"{name}_reason", f"{heading} reason"),
        ]
    rows = []
    for row in table.rows:
        fields: list[Any] = [*row.at, row.run, row.control]
        for figure, interval in zip(row.figures, row.intervals, strict=True):
            low, high = (interval.low, interval.high) if interval else (None, None)
            fields += (
                [figure.value, low, high, figure.count, figure.denominator, figure.reason or None]
                if figure
                else [None] * 6
            )
        rows.append(fields)
    return TableSection(table.title, columns, rows, note=table.note)


def coverage_section(result: Result) -> TableSection:
    """Units expected, scored, missing and extra, a row for each run, controls last."""
    noun = result.protocol.unit_noun
    columns = [
        ColumnSpec("run"),
        ColumnSpec("expected", kind="integer"),
        ColumnSpec("scored", kind="integer"),
        ColumnSpec("missing", f"missing {noun}s"),
        ColumnSpec("extra", f"extra {noun}s"),
    ]
    rows = [
        (
            run.name,
            run.coverage.expected,
            run.coverage.scored,
            ", ".join(run.coverage.missing) or None,
            ", ".join(run.coverage.extra) or None,
        )
        for run in sorted(result.runs.values(), key=lambda run: run.control)
    ]
    return TableSection("Coverage", columns, rows)


def coverage_words(result: Result) -> str:
    """Coverage in one sentence, naming the runs that did not cover every unit."""
    noun = result.protocol.unit_noun
    partial = [
        f"{run.name} scored {run.coverage.scored} of {run.coverage.expected}"
        for run in result.runs.values()
        if run.coverage.scored != run.coverage.expected
    ]
    if partial:
        return f"Not every {noun} was scored: " + "; ".join(partial) + "."
    expected = max((run.coverage.expected for run in result.runs.values()), default=0)
    return f"Every run scored all {expected} {noun}s."


def shown_tables(result: Result, sections: Sequence[Section]) -> list[TableSection]:
    """Every table that reports show: the core's own, then the protocol's."""
    shown = [one for one in sections if isinstance(one, TableSection) and one.shown]
    return [*standard_sections(result), *shown]
