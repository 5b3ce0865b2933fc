"""How values are written for people, the same in every report.

Files keep values at full precision; here they are rounded for reading. A value that does not exist is a
dash, and its reason is given in words beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from floorkit.core.sections import ColumnSpec
from floorkit.core.values import Figure, Interval

MISSING = "–"
MINUS = "−"

_UNITS = {"_s": "s", "_ms": "ms", "_deg": "°", "_hz": "Hz"}
"""Units at the end of names."""


def number(value: float, digits: int = 4) -> str:
    """A number with ``digits`` significant digits, whole ones in full, never in powers of ten unless tiny."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value)).replace("-", MINUS)
    text = f"{value:.{digits}g}"
    if "e+" in text:
        text = f"{value:.0f}"
    return text.replace("-", MINUS, 1) if text.startswith("-") else text


def percent(value: float) -> str:
    """A fraction as percent with one decimal; more where one would show 0 or 100 that it is not.

    >>> percent(0.1234), percent(0.0001), percent(1.0)
    ('12.3 %', '0.01 %', '100.0 %')
    """
    hundred = 100 * value
    text = f"{hundred:.1f}"
    if abs(float(text)) in (0.0, 100.0) and float(text) != hundred:
        distance = abs(hundred) if float(text) == 0 else abs(100 - abs(hundred))
        decimals = next((n for n in range(2, 13) if round(distance, n) > 0), 1)
        text = f"{hundred:.{decimals}f}"
    return text.replace("-", MINUS) + " %"


def value_text(value: float | None, unit: str) -> str:
    """A figure's value: percent for rates, three decimals for AP, else four significant digits.

    The unit itself stands in the column's heading (see :func:`figure_heading`).
    """
    if value is None:
        return MISSING
    if unit == "rate":
        return percent(value)
    return f"{value:.3f}".replace("-", MINUS) if unit == "AP" else number(value)


def difference_text(value: float | None, unit: str) -> str:
    """A difference with its sign; of rates in percentage points."""
    if value is None:
        return MISSING
    text = value_text(abs(value), unit).replace(" %", " points")
    zero = value_text(0.0, unit).replace(" %", " points")
    return text if text == zero else ("+" if value > 0 else MINUS) + text


def interval_text(interval: Interval | None, unit: str) -> str:
    """``[low, high]`` in the figure's unit, empty where there is no interval."""
    if interval is None or interval.low is None or interval.high is None:
        return ""
    low, high = (value_text(bound, unit).removesuffix(" %") for bound in (interval.low, interval.high))
    return f"[{low}, {high}]"


def level_text(intervals: list[Interval]) -> str:
    """Which intervals a table shows, as a sentence; empty where it shows none."""
    given = [interval for interval in intervals if interval.low is not None]
    if not given:
        return ""
    first = given[0]
    return (
        f"Brackets hold {number(100 * first.level)} % cluster bootstrap intervals "
        f"({max(one.resamples for one in given)} resamples)."
    )


def p_text(value: float | None) -> str:
    """A p-value with three significant digits."""
    return MISSING if value is None else f"{value:.3g}"


def reason_text(reason: str) -> str:
    """A machine-readable reason as words: ``zero_denominator`` becomes "zero denominator"."""
    return reason.replace("_", " ")


def _name_and_unit(name: str) -> tuple[str, str]:
    """``horizon_s`` as "horizon" and "s"."""
    suffix = next((one for one in _UNITS if name.endswith(one)), "")
    return name.removesuffix(suffix).replace("_", " "), _UNITS.get(suffix, "")


def axis_heading(axis: str) -> str:
    """The name of a coordinate as a heading: ``horizon_s`` becomes "horizon (s)"."""
    name, unit = _name_and_unit(axis)
    return f"{name} ({unit})" if unit else name


def figure_heading(figure: Figure) -> str:
    """A figure's heading, with its unit where the values do not show it."""
    heading = figure.label or _name_and_unit(figure.name)[0]
    told = figure.unit in ("rate", "AP", "count", "") or figure.unit in heading.split()
    return heading if told else f"{heading} ({figure.unit})"


def figure_words(figure: Figure) -> str:
    """A figure's heading with its coordinates: "recall at horizon 0.2 s, stratum all"."""
    parts = []
    for axis, value in figure.at.items():
        name, unit = _name_and_unit(axis)
        parts.append(f"{name} {value} {unit}".rstrip())
    return f"{figure_heading(figure)} at {', '.join(parts)}" if parts else figure_heading(figure)


def column_heading(column: ColumnSpec) -> str:
    return column.heading or column.name.replace("_", " ")


def cell_text(value: Any, column: ColumnSpec) -> str:
    """A value of a shown table, by its column's kind."""
    if value is None or value == "":
        return MISSING
    if column.kind == "flag":
        return "yes" if value else "no"
    if column.kind == "rate":
        return percent(float(value))
    if column.kind == "float" and not isinstance(value, str):
        return number(float(value))
    if column.kind == "integer" and not isinstance(value, str):
        return str(int(value)).replace("-", MINUS)
    return str(value)


def merged_columns(columns: Sequence[ColumnSpec]) -> list[int]:
    """Indices of the columns to show: without those that stand beside the value of another one.

    These are the counts and denominators that a column names, and its interval: the columns ``NAME_low``
    and ``NAME_high`` beside ``NAME``.
    """
    names = {column.name for column in columns}
    merged = {name for column in columns for name in (column.count, column.denominator) if name}
    for name in names:
        if _interval_names(name) <= names:
            merged |= _interval_names(name)
    return [index for index, column in enumerate(columns) if column.name not in merged]


def _interval_names(name: str) -> set[str]:
    return {f"{name}_low", f"{name}_high"}


def row_details(columns: Sequence[ColumnSpec], row: Sequence[Any]) -> list[list[str]]:
    """For each column what stands beside its value in a row: interval and ``count/denominator``."""
    fields = {column.name: value for column, value in zip(columns, row, strict=True)}
    details = []
    for column, value in zip(columns, row, strict=True):
        low, high = fields.get(f"{column.name}_low"), fields.get(f"{column.name}_high")
        bounds = [cell_text(bound, column).removesuffix(" %") for bound in (low, high) if bound is not None]
        bracket = f"[{', '.join(bounds)}]" if len(bounds) == 2 else ""
        counts = count_text(value, fields.get(column.count), fields.get(column.denominator))
        details.append([words for words in (bracket, counts) if words])
    return details


def count_text(value: Any, count: Any, denominator: Any) -> str:
    """``count/denominator`` of a rate or mean, or the count alone, or nothing."""
    if value is None and count is None:
        return "" if denominator is None else f"of {number(float(denominator))}"
    if count is None:
        return "" if denominator is None else f"n = {number(float(denominator))}"
    if denominator is None:
        return number(float(count))
    return f"{number(float(count))}/{number(float(denominator))}"
