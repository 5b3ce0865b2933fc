"""Pieces that the terminal reports share: titles, plain tables, and the table of comparisons.

Colour only repeats what words say; tables are readable at 80 columns and in a pipe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from floorkit.core.sections import ColumnSpec
from floorkit.core.values import Comparison, Figure
from floorkit.reports import cells
from floorkit.reports.standard import comparison_words, tests_words

NUMERIC = ("integer", "float", "rate")
WIDEST_TEXT = 24
"""Cells of text wider than this are folded."""


def plain_table() -> Table:
    """A table without lines, headings dimmed."""
    return Table(box=None, padding=(0, 1), pad_edge=False, show_header=True, header_style="dim")


def print_table(console: Console, columns: Sequence[ColumnSpec], rows: Sequence[Sequence[str]]) -> None:
    """Print cells as one table, or, where it is wider than the console, as several below each other.

    Each part repeats the leading columns that tell the rows apart. Words are never broken unless one alone
    is wider than ``WIDEST_TEXT``.
    """
    numeric = [column.kind in NUMERIC for column in columns]
    headings = [cells.column_heading(column) for column in columns]
    widths = [
        min(width, WIDEST_TEXT) if not numeric[index] else width
        for index, width in enumerate(
            max(cell_len(line) for line in (heading, *(row[index] for row in rows)))
            for index, heading in enumerate(headings)
        )
    ]
    keys = _key_columns(numeric, rows)
    for number, part in enumerate(_parts(widths, keys, console.width)):
        if number:
            console.print()
        table = plain_table()
        for index in part:
            table.add_column(
                headings[index],
                justify="right" if numeric[index] else "left",
                no_wrap=numeric[index],
                width=widths[index],
                overflow="fold",
            )
        for row in rows:
            table.add_row(*(Text(row[index]) for index in part))
        console.print(table)


def _key_columns(numeric: Sequence[bool], rows: Sequence[Sequence[str]]) -> int:
    """How many leading columns a reader needs to know a row by: the text columns, and as many numbers behind
    them (a horizon, a requested recall) as make the rows differ, if any do."""
    texts = numeric.index(True) if True in numeric else len(numeric)
    for count in range(texts, len(numeric)):
        if len({tuple(row[:count]) for row in rows}) == len(rows):
            return count
    return texts


def _parts(widths: Sequence[int], keys: int, room: int) -> list[list[int]]:
    """Column indices of each part: the ``keys`` leading columns, then as many as fit into ``room``."""
    gap = 2
    leading = list(range(keys))
    taken = sum(widths[index] + gap for index in leading)
    parts: list[list[int]] = [[]]
    used = taken
    for index in range(keys, len(widths)):
        if parts[-1] and used + widths[index] > room:
            parts.append([])
            used = taken
        parts[-1].append(index)
        used += widths[index] + gap
    return [leading + part for part in parts]


def print_title(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, style="bold"))


def print_cautions(console: Console, sentences: Sequence[str]) -> None:
    """Sentences that must be read, marked and indented."""
    for sentence in sentences:
        console.print(Padding(Text("! " + sentence), (0, 0, 0, 2)))


def print_comparisons(
    console: Console, comparisons: Sequence[Comparison], figure_of: Callable[[Comparison], Figure | None]
) -> None:
    """A table for each pair of runs, with all that must be read beside its numbers.

    Parameters
    ----------
    figure_of
        The figure that was compared, for its heading and unit.
    """
    for a, b in dict.fromkeys((one.a, one.b) for one in comparisons):
        chosen = [one for one in comparisons if (one.a, one.b) == (a, b)]
        console.print(Text(f"A = {a}, B = {b}"))
        table = plain_table()
        table.add_column("\nfigure", overflow="fold", ratio=1)
        for heading in ("A\nB", "B − A\ninterval", "error\nreduction", "p\nHolm", "won–lost\ntied"):
            table.add_column(heading, justify="right", no_wrap=True)
        cautions: dict[str, list[str]] = {}
        for one in chosen:
            figure = figure_of(one)
            name = cells.figure_words(figure) if figure else one.key
            table.add_row(Text(name), *_numbers(one, figure.unit if figure else ""))
            for words in comparison_words(one):
                cautions.setdefault(words, []).append(name)
        console.print(table)
        for words, names in cautions.items():
            every = len(names) == len(chosen) > 1
            print_cautions(console, [f"{'all figures' if every else ', '.join(names)}: {words}"])
    for words in tests_words(comparisons):
        console.print(Text(words, style="dim"))


def _numbers(one: Comparison, unit: str) -> list[Text]:
    """The cells of a comparison, two lines each."""
    values = f"{cells.value_text(one.a_value, unit)}\n{cells.value_text(one.b_value, unit)}"
    if one.not_comparable:
        return [Text(values), *[Text(cells.MISSING)] * 4]
    reduction = "" if one.relative_reduction is None else cells.percent(one.relative_reduction)
    return [
        Text(values),
        Text(f"{cells.difference_text(one.difference, unit)}\n{cells.interval_text(one.interval, unit)}"),
        Text(reduction),
        Text(f"{cells.p_text(one.p_value)}\n{cells.p_text(one.p_adjusted)}" if one.tests else ""),
        Text(f"{one.won}–{one.lost}\n{one.tied}"),
    ]
