"""``RESULTS/NAME/tables.json``: every table that reports show, with values as recorded.

Beside what :mod:`floorkit.reports.stored` opens a file with, it holds ``tables``: title, note, file (the CSV
that the protocol writes it to, or empty), columns (name, heading, kind, count, denominator) and rows, whose
values stand in column order at full precision, null for an empty field.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from floorkit.core.sections import ColumnSpec, Section
from floorkit.core.values import Result
from floorkit.reports import stored
from floorkit.reports.standard import shown_tables

FILE = "tables.json"
FORMAT = "floorkit tables 1"


@frozen
class StoredTable:
    title: str
    columns: tuple[ColumnSpec, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""
    file: str = ""


@frozen
class TablesFile:
    origin: stored.Origin
    tables: tuple[StoredTable, ...]


def write_tables(result: Result, sections: Sequence[Section]) -> str:
    """The text of tables.json: the core's tables and every shown TableSection, in report order."""
    tables = [
        {
            "title": table.title,
            "note": table.note,
            "file": table.file,
            "columns": [attrs.asdict(column) for column in table.columns],
            "rows": [list(row) for row in table.iterate()],
        }
        for table in shown_tables(result, sections)
    ]
    return stored.dump(FORMAT, stored.Origin.of(result), {"tables": tables})


def read_tables(path: Path) -> TablesFile:
    """Read a tables.json.

    Raises
    ------
    InputError
        Where it is not a file of this format.
    """
    return stored.load(path, FORMAT, TablesFile)
