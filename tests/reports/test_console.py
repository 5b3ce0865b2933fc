"""Tables on a terminal that is narrower than they are."""

from __future__ import annotations

from rich.console import Console

from floorkit.core.sections import ColumnSpec
from floorkit.reports.console import print_table


def printed(columns: list[ColumnSpec], rows: list[list[str]], width: int) -> list[str]:
    console = Console(width=width, force_terminal=False, no_color=True)
    with console.capture() as capture:
        print_table(console, columns, rows)
    return capture.get().splitlines()


def test_every_part_of_a_wide_table_repeats_the_numbers_that_tell_its_rows_apart() -> None:
    columns = [ColumnSpec("run"), *(ColumnSpec(name, kind="float") for name in ("at", "recall", "precision"))]
    rows = [["model", at, "0.9123", "0.8123"] for at in ("0.7", "0.8")]
    lines = printed(columns, rows, width=22)
    assert [line.split() for line in lines if line] == [
        ["run", "at", "recall"],
        ["model", "0.7", "0.9123"],
        ["model", "0.8", "0.9123"],
        ["run", "at", "precision"],
        ["model", "0.7", "0.8123"],
        ["model", "0.8", "0.8123"],
    ]


def test_a_first_column_of_numbers_is_repeated() -> None:
    columns = [ColumnSpec(name, kind="float") for name in ("horizon", "one", "two")]
    lines = printed(columns, [["0.2", "1.111111", "2.222222"], ["0.4", "3.333333", "4.444444"]], width=18)
    assert [line.split() for line in lines if line][3:] == [
        ["horizon", "two"],
        ["0.2", "2.222222"],
        ["0.4", "4.444444"],
    ]
