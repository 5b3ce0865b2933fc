"""What reports show and results folders hold: the sections that ``floorkit_report`` returns.

Plain frozen data; the core renders it to the terminal, to files and to the HTML page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from attrs import field, frozen


@frozen
class ColumnSpec:
    """A column of a shown or written table.

    ``kind`` says how people see it: text, integer, float (full precision in files), rate (percent in
    reports), flag. ``count`` and ``denominator`` name the columns that a rate is shown with.
    """

    name: str
    heading: str = ""
    kind: Literal["text", "integer", "float", "rate", "flag"] = "text"
    count: str = ""
    denominator: str = ""


@frozen(eq=False)
class TableSection:
    """A table: written to ``file`` (CSV, below the entry's results folder) where one is named, shown
    in reports where ``shown``. ``rows`` are sequences in column order, None for an empty field; it may
    be a function that returns an iterator, for tables too long to hold."""

    title: str
    columns: Sequence[ColumnSpec]
    rows: Sequence[Sequence[Any]] | Callable[[], Any]
    file: str = ""
    shown: bool = True
    note: str = ""

    def iterate(self) -> Any:
        return self.rows() if callable(self.rows) else iter(self.rows)


@frozen
class Series:
    """One line or point set of a plot; ``low`` and ``high`` give an interval band."""

    name: str
    x: Sequence[float | str | None]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    control: bool = False
    texts: Sequence[str] = ()
    marked: Sequence[int] = ()
    """Indices of chosen operating points."""


@frozen
class PlotSection:
    """A plot; ``kind`` is line, scatter, bar, histogram (y are counts of bins x) or step."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    kind: Literal["line", "scatter", "bar", "histogram", "step"] = "line"
    note: str = ""


@frozen
class MatrixSection:
    """A labelled matrix (a confusion matrix): values [rows, columns]."""

    title: str
    row_labels: Sequence[str]
    column_labels: Sequence[str]
    values: Sequence[Sequence[float | None]]
    row_axis: str = ""
    column_axis: str = ""
    note: str = ""


@frozen
class Lane:
    """One lane of a timeline: intervals (start_s, stop_s, text) or a sampled path (time_s, value)."""

    name: str
    intervals: Sequence[tuple[float, float, str]] = ()
    path: Sequence[tuple[float, float | None]] = ()
    role: Literal["activity", "gold", "excluded", "prediction", "score", "window"] = "activity"


@frozen
class TimelineEvent:
    """One event of a timeline: an anchor with its window, status and what the run did.

    Times are seconds from the start of the unit.
    """

    id: str
    unit: str
    run: str
    kind: str
    status: str
    anchor_s: float
    start_s: float
    stop_s: float
    triggered: bool | None = None
    score: float | None = None
    window: tuple[float, float] | None = None
    competing_s: float | None = None
    outcome_s: float | None = None
    facts: Mapping[str, Any] = field(factory=dict)
    lanes: Sequence[Lane] = ()


@frozen
class TimelineSection:
    """Events to audit, each with the lanes around it; ``total`` says how many there were in all."""

    title: str
    events: Sequence[TimelineEvent]
    total: int
    note: str = ""


@frozen
class TextSection:
    """Plain text: shown in reports where ``shown``, written to ``file`` where one is named."""

    title: str
    text: str
    file: str = ""
    shown: bool = True


@frozen
class ImageSection:
    """A picture: PNG or SVG bytes with a text for those who cannot see it; written to ``file``."""

    title: str
    data: bytes
    media_type: Literal["image/png", "image/svg+xml"]
    alt: str
    file: str = ""
    note: str = ""


@frozen
class FileSection:
    """A file below the entry's results folder, as bytes or as JSON-able data. Never shown.

    Data becomes UTF-8 JSON, keys in their given order, NaN refused; the core adds ``signature`` and
    the marks to a JSON object that lacks them.
    """

    file: str
    data: bytes | Mapping[str, Any]


@frozen
class SummarySection:
    """What the protocol adds to summary.json: keys beside the core's own (``runs``, say)."""

    data: Mapping[str, Any]


Section = (
    TableSection
    | PlotSection
    | MatrixSection
    | TimelineSection
    | TextSection
    | ImageSection
    | FileSection
    | SummarySection
)


def to_json(data: Any, *, indent: int | None = 1) -> str:
    """JSON text as floorkit writes it: floats round-trip, NaN and infinities are refused."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent) + "\n"
