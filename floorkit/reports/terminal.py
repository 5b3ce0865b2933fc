"""The terminal report: header, headline figures, comparisons, counts and warnings of each entry.

It is readable at 80 columns, in a pipe and with NO_COLOR: colour only repeats what words say, and only the
terminal's own colours are used, which fit light and dark backgrounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from floorkit.core.sections import ColumnSpec, Section, TableSection, TextSection
from floorkit.core.values import Comparison, Figure, Result, RunResult
from floorkit.reports import cells
from floorkit.reports.console import (
    plain_table,
    print_cautions,
    print_comparisons,
    print_table,
    print_title,
)
from floorkit.reports.standard import figure_of, headline_figures

ARROWS = {True: "higher is better", False: "lower is better", None: ""}
SHOWN_ROWS = 40


def print_report(
    console: Console, evaluated: Sequence[tuple[Result, Sequence[Section]]], hash_states: Sequence[str]
) -> None:
    """Print every entry; ``hash_states`` says for each in words whether its source hash was verified."""
    for (result, sections), state in zip(evaluated, hash_states, strict=True):
        _print_entry(console, result, sections, state)


def _print_entry(console: Console, result: Result, sections: Sequence[Section], state: str) -> None:
    console.print()
    console.print(Rule(Text(result.context.name, style="bold"), align="left", characters="━", style=""))
    _print_header(console, result, state)
    for mark in result.marks:
        if mark.level == "warning":
            console.print(Text(f"{mark.name.upper()}: {mark.text}", style="bold red"))
        else:
            console.print(Text(f"{mark.name}: {mark.text}"))
    _print_headline(console, result)
    _print_comparisons(console, "Comparisons (B against A)", result, result.comparisons)
    for section in sections:
        if isinstance(section, TableSection) and section.shown:
            _print_table(console, section, result)
        elif isinstance(section, TextSection) and section.shown:
            print_title(console, section.title)
            console.print(Text(section.text.rstrip("\n")), soft_wrap=True)
    _print_notes(console, result)


def _print_header(console: Console, result: Result, state: str) -> None:
    protocol = result.protocol
    header = Table.grid(padding=(0, 2))
    header.add_column(style="dim", no_wrap=True)
    header.add_column(overflow="fold")
    header.add_row("protocol", Text(f"{protocol.title}"))
    header.add_row("plugin", Text(f"{result.plugin} {result.version}, {state}"))
    units = result.dataset.split("evaluated")
    calibration = len(result.dataset.split("calibration"))
    words = (
        f"{len(units)} evaluated, {calibration} for calibration" if calibration else f"{len(units)} evaluated"
    )
    header.add_row(f"{protocol.unit_noun}s", Text(words))
    header.add_row("runs", Text(", ".join(run.name for run in result.user_runs)))
    header.add_row("coverage", Text("; ".join(_coverage(run) for run in result.user_runs)))
    header.add_row("measures", Text(protocol.measures))
    console.print(header)


def _coverage(run: RunResult) -> str:
    coverage = run.coverage
    text = f"{run.name} {coverage.scored} of {coverage.expected} scored"
    if coverage.missing:
        text += f", declared missing: {', '.join(coverage.missing)}"
    if coverage.extra:
        text += f", {len(coverage.extra)} extra"
    return text


def _print_signature(console: Console, result: Result) -> None:
    flags = " ".join(mark.name for mark in result.marks if mark.level == "warning")
    console.print(Text(result.signature + (f" [{flags}]" if flags else ""), style="dim"), soft_wrap=True)


def _figure_title(figure: Figure) -> str:
    direction = ARROWS[figure.higher_is_better]
    return cells.figure_words(figure) + (f" ({direction})" if direction else "")


def _headline_keys(result: Result) -> dict[str, Figure]:
    keys: dict[str, Figure] = {}
    for run in result.runs.values():
        for figure in headline_figures(run):
            keys.setdefault(figure.key, figure)
    return keys


def _print_headline(console: Console, result: Result) -> None:
    print_title(console, "Headline")
    table = plain_table()
    table.add_column("run", overflow="fold")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("count", justify="right", no_wrap=True)
    table.add_column("interval", no_wrap=True)
    runs = sorted(result.runs.values(), key=lambda run: run.control)
    intervals = []
    for index, (key, figure) in enumerate(_headline_keys(result).items()):
        if index:
            table.add_row()
        table.add_row(Text(_figure_title(figure), style="bold"))
        for run in runs:
            found = {one.key: one for one in run.figures}.get(key)
            if found is None:
                continue
            interval = run.intervals.get(key)
            intervals += [interval] if interval is not None else []
            value = cells.value_text(found.value, found.unit)
            count = cells.count_text(found.value, found.count, found.denominator)
            shown = cells.interval_text(interval, found.unit)
            if found.value is None:
                shown = cells.reason_text(found.reason)
            table.add_row(Text("  " + run.name), value, count, shown, style="dim" if run.control else "")
    console.print(table)
    remarks = dict.fromkeys(one.remark or cells.reason_text(one.reason) for one in intervals)
    for words in (cells.level_text(intervals), *(f"Intervals: {one}." for one in remarks if one)):
        if words:
            console.print(Text(words, style="dim"))
    _print_signature(console, result)


def _print_comparisons(
    console: Console, title: str, result: Result, comparisons: Sequence[Comparison]
) -> None:
    if comparisons:
        print_title(console, title)
        print_comparisons(console, comparisons, lambda one: figure_of(result, one))
        _print_signature(console, result)


def _print_table(console: Console, section: TableSection, result: Result) -> None:
    print_title(console, section.title)
    shown = cells.merged_columns(section.columns)
    columns = [section.columns[index] for index in shown]
    texts: list[list[str]] = []
    left_out = 0
    for row in section.iterate():
        if len(texts) == SHOWN_ROWS:
            left_out += 1
            continue
        details = cells.row_details(section.columns, row)
        texts.append([_cell(row[index], section.columns[index], details[index]) for index in shown])
    print_table(console, columns, texts)
    if left_out:
        where = f"; all are in {section.file}" if section.file else ""
        console.print(Text(f"{left_out} more rows{where}", style="dim"))
    if section.note:
        console.print(Text(section.note, style="dim"))
    _print_signature(console, result)


def _cell(value: object, column: ColumnSpec, details: Sequence[str]) -> str:
    beside = " ".join(one if one.startswith("[") else f"({one})" for one in details)
    return f"{cells.cell_text(value, column)} {beside}".rstrip()


def _print_notes(console: Console, result: Result) -> None:
    if result.notes or result.protocol.caveats:
        print_title(console, "Read this before you quote a number")
    print_cautions(console, result.notes)
    for caveat in result.protocol.caveats:
        console.print(Padding(Text("· " + caveat), (0, 0, 0, 2)))
