"""Rules about what is reported and written."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from floorkit.core.sections import FileSection, MatrixSection, PlotSection, SummarySection, TableSection
from floorkit.testing.evidence import Evidence
from floorkit.testing.other_process import observed
from floorkit.testing.rules import rule


@rule("report")
def json_without_nan(evidence: Evidence) -> Iterator[str]:
    """No NaN and no infinity stands in a figure, a table, a plot or a JSON file; what does not exist is None.

    NaN is not JSON, and a NaN in a table is a number that nobody explains.
    """
    for run, figures in evidence.figures.items():
        for figure in figures:
            for name in ("value", "count", "denominator"):
                yield from _bad_numbers(getattr(figure, name), f"run {run}, {name} of figure {figure.key}")
            if figure.value is None and not figure.reason:
                yield f"run {run}: figure {figure.key} is None without a reason"
    for section in evidence.sections:
        if isinstance(section, SummarySection):
            yield from _bad_numbers(section.data, "summary.json")
        elif isinstance(section, FileSection) and not isinstance(section.data, bytes):
            yield from _bad_numbers(section.data, section.file)
        elif isinstance(section, PlotSection):
            for series in section.series:
                for values in (series.x, series.y, series.low, series.high):
                    yield from _bad_numbers(values, f"plot {section.title!r}, {series.name}")
        elif isinstance(section, MatrixSection):
            yield from _bad_numbers(section.values, f"matrix {section.title!r}")
    for table, rows in evidence.read_rows(evidence.sections):
        names = [column.name for column in table.columns]
        for index, row in enumerate(rows):
            for name, value in zip(names, row, strict=False):
                yield from _bad_numbers(value, f"table {table.title!r}, row {index}, column {name}")


def _bad_numbers(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from _bad_numbers(one, f"{place}, {name}")
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for index, one in enumerate(value):
            yield from _bad_numbers(one, f"{place}[{index}]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{place} is {value}"


@rule("report")
def tables_complete(evidence: Evidence) -> Iterator[str]:
    """Every row of a table has a value or None for each column, and count and denominator columns exist.

    A short row shifts every value after it into the wrong column.
    """
    for table, rows in evidence.read_rows(evidence.sections):
        names = [column.name for column in table.columns]
        for index, row in enumerate(rows):
            if len(row) != len(names):
                yield f"table {table.title!r}, row {index}: {len(row)} values for {len(names)} columns"
        for column in table.columns:
            for name in (column.count, column.denominator):
                if name and name not in names:
                    yield f"table {table.title!r}: column {column.name} names {name!r}, which is no column"
            if column.kind == "rate" and table.shown and not column.denominator:
                yield f"table {table.title!r}: the rate column {column.name} is shown without a denominator"
    for section in evidence.sections:
        if isinstance(section, TableSection) and section.file and not section.file.endswith(".csv"):
            yield f"table {section.title!r} is written to {section.file!r}, which is no .csv"


@rule("report")
def results_reproducible(evidence: Evidence) -> Iterator[str]:
    """Another process writes the same files, byte for byte.

    Results can be compared by their hashes.
    """
    seen = observed(evidence)
    if seen.failure:
        yield f"in another process: {seen.failure}"
        return
    files = evidence.written_hashes()
    for name in sorted({*files, *seen.files}):
        if name not in files or name not in seen.files:
            yield f"{name} is written only once of two times"
        elif files[name] != seen.files[name]:
            yield f"{name} differs between two processes"
