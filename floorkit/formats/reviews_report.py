"""Tables, plots and summary of the protocols on reviewed opportunities, from a result's figures."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from floorkit.core.sections import ColumnSpec, Section, Series, SummarySection, TableSection, TextSection
from floorkit.core.values import Figure, Result, RunResult, Table, Unit, figure_key
from floorkit.formats.dense import horizon_seconds
from floorkit.formats.honesty import DenseParams
from floorkit.formats.reviews import FAMILIES, Reviews
from floorkit.formats.reviews_dataset import reviews_of
from floorkit.formats.reviews_line import LABELS
from floorkit.formats.reviews_measure import Scope, coordinates
from floorkit.formats.reviews_tables import OPPORTUNITIES, UNSCORED_LABELS
from floorkit.numerics import recall_name

_METRIC_COLUMNS = {
    "run": ColumnSpec("run"),
    "family": ColumnSpec("family"),
    "horizon_s": ColumnSpec("horizon_s", "horizon (s)", "float"),
    "requested_recall": ColumnSpec("requested_recall", "requested recall", "float"),
    "threshold": ColumnSpec("threshold", kind="float"),
    "positive": ColumnSpec("positive", kind="integer"),
    "hard_negative": ColumnSpec("hard_negative", "hard negative", "integer"),
    "short_region": ColumnSpec("short_region", "short region", "integer"),
    "invalid": ColumnSpec("invalid", kind="integer"),
    "ap": ColumnSpec("ap", "AP", "float"),
    "recall": ColumnSpec("recall", "achieved recall", "rate", denominator="positive"),
    "trigger_count": ColumnSpec("trigger_count", "hard negatives triggered", "integer"),
    "trigger_rate": ColumnSpec(
        "trigger_rate", "trigger rate", "rate", count="trigger_count", denominator="hard_negative"
    ),
    "precision": ColumnSpec("precision", kind="rate"),
    "f1": ColumnSpec("f1", "F1", "float"),
    "provisional_count": ColumnSpec("provisional_count", "provisional lines", "integer"),
}


def horizons_of(scope: Scope) -> Sequence[int]:
    """The horizons 1 .. H, or 0 alone where the protocol has none."""
    return range(1, scope.horizons + 1) if scope.horizons else (0,)


@frozen(eq=False)
class _Reader:
    """The figures and thresholds of one run by name and cell."""

    figures: Mapping[str, Figure]
    thresholds: Mapping[tuple[Any, Any, Any], float | None]

    @classmethod
    def of(cls, run: RunResult) -> _Reader:
        points = {(p.at["family"], p.at.get("horizon", 0), p.at["recall"]): p.threshold for p in run.points}
        return cls({figure.key: figure for figure in run.figures}, points)

    def figure(self, name: str, family: str = "", horizon: int = 0, recall: float | None = None) -> Figure:
        at = coordinates(family, horizon, recall) if family else {}
        return self.figures[figure_key(name, at)]

    def at_recall(self, scope: Scope, family: str, horizon: int, recall: float) -> dict[str, Any]:
        """Threshold, and the figures at it, of one cell and requested recall."""
        values: dict[str, Any] = {"threshold": self.thresholds[family, horizon, recall_name(recall)]}
        for name in scope.at_recall:
            figure = self.figure(name, family, horizon, recall)
            if name == "trigger_rate":
                values["trigger_count"] = figure.count
            values[name] = figure.value
        return values

    def cell(self, scope: Scope, family: str, horizon: int) -> dict[str, Any]:
        """Counts and AP of one cell."""
        counts = {name: int(self.figure(name, family, horizon).count or 0) for name in scope.counts}
        return {**counts, "ap": self.figure("ap", family, horizon).value}


def metrics_table(result: Result, scope: Scope, columns: Sequence[str]) -> TableSection:
    """summary_metrics.csv: a row for each run, family, horizon (if any) and requested recall (or one)."""
    params: DenseParams = result.context.params
    recalls: tuple[float | None, ...] = params.matched_recalls or (None,)
    rows = []
    for run in result.runs.values():
        reader = _Reader.of(run)
        for family in FAMILIES:
            common: dict[str, Any] = {"run": run.name, "family": family}
            if scope.provisional:
                common["provisional_count"] = int(reader.figure("provisional", family).count or 0)
            for horizon in horizons_of(scope):
                cell = {**common, **reader.cell(scope, family, horizon)}
                if horizon:
                    cell["horizon_s"] = horizon_seconds(horizon)
                for recall in recalls:
                    values = {**cell, "requested_recall": recall}
                    if recall is not None:
                        values |= reader.at_recall(scope, family, horizon, recall)
                    rows.append([values.get(name) for name in columns])
    specs = [_METRIC_COLUMNS[name] for name in columns]
    return TableSection("All figures", specs, rows, file="summary_metrics.csv", shown=False)


def counts_table(result: Result, scope: Scope) -> TableSection:
    """The counts of every run and family; where they change with the horizon, lowest .. highest."""
    headings = {"hard_negative": "hard neg.", "short_region": "short"}
    names = (*scope.counts, *(("provisional",) if scope.provisional else ()))
    rows = []
    unscored: dict[str, None] = {}
    for run in result.runs.values():
        reader = _Reader.of(run)
        counts = {label.lower(): int(reader.figure(label.lower()).count or 0) for label in UNSCORED_LABELS}
        unscored[", ".join(f"{count} {label}" for label, count in counts.items())] = None
        for family in FAMILIES:
            row: list[Any] = [run.name, family]
            for name in names:
                horizons = (0,) if name == "provisional" else horizons_of(scope)
                numbers = [int(reader.figure(name, family, horizon).count or 0) for horizon in horizons]
                low, high = min(numbers), max(numbers)
                row.append(str(low) if low == high else f"{low} .. {high}")
            rows.append(row)
    columns = [ColumnSpec("run"), ColumnSpec("family")]
    columns += [ColumnSpec(name, headings.get(name, name)) for name in names]
    note = f"Lines without a family, in no figure: {' or '.join(unscored)}."
    if scope.horizons:
        note += " Counts that change with the horizon are given as lowest .. highest."
    return TableSection("Counts", columns, rows, note=note)


def summary(result: Result, scope: Scope, more: Mapping[str, Any]) -> SummarySection:
    """summary.json: for each run the counts, AP and figures at each requested recall.

    Where the protocol has horizons a family holds ``horizons``, a list over k = 1 .. H, and ``mean_ap``.
    """
    params: DenseParams = result.context.params
    runs = {}
    for run in result.runs.values():
        reader = _Reader.of(run)
        data: dict[str, Any] = {
            name.lower(): int(reader.figure(name.lower()).count or 0) for name in UNSCORED_LABELS
        }
        for family in FAMILIES:
            cells = []
            for horizon in horizons_of(scope):
                cell = reader.cell(scope, family, horizon)
                cell["at_recall"] = {
                    recall_name(recall): reader.at_recall(scope, family, horizon, recall)
                    for recall in params.matched_recalls
                }
                cells.append({"horizon": horizon, **cell} if horizon else cell)
            data[family] = {"horizons": cells} if scope.horizons else cells[0]
            if scope.mean_ap:
                data[family]["mean_ap"] = reader.figure("mean_ap", family).value
            if scope.provisional:
                data[family]["provisional"] = int(reader.figure("provisional", family).count or 0)
        data["missing"] = {figure.key: figure.reason for figure in run.figures if figure.value is None}
        runs[run.name] = data
    return SummarySection({**more, "runs": runs})


@frozen(eq=False)
class Opportunity:
    """One scored line of a run: its unit, its reviews and position there, its row in the score table."""

    run: RunResult
    unit: Unit
    unit_index: int
    reviews: Reviews
    table: Table
    index: int
    row: int

    @property
    def event_id(self) -> str:
        return self.reviews.event_id(self.index)

    @property
    def label(self) -> str:
        return LABELS[int(self.reviews["label"][self.index])]

    @property
    def family(self) -> str:
        return FAMILIES[int(self.table["family"][self.row])]

    def value(self, column: str) -> Any:
        """The opportunity's entry in a column of the score table."""
        return self.table[column][self.row]


def opportunities(run: RunResult) -> Iterator[Opportunity]:
    """A run's scored lines in the order of the reviews file."""
    units = [_of_unit(run, index) for index in range(len(run.pool.units))]
    return heapq.merge(*units, key=lambda one: int(one.reviews["line"][one.index]))


def _of_unit(run: RunResult, unit_index: int) -> Iterator[Opportunity]:
    unit = run.pool.units[unit_index]
    reviews = reviews_of(unit)
    table = run.pool.table(unit_index, OPPORTUNITIES)
    for row, position in enumerate(table["index"].tolist()):
        yield Opportunity(run, unit, unit_index, reviews, table, position, row)


def empty_sessions(result: Result) -> list[Section]:
    """A warning that names the evaluated and calibration sessions without a scored line."""
    empty = [unit for unit in result.dataset.units if not reviews_of(unit).scored.any()]
    if not empty:
        return []
    named = ", ".join(f"{unit.name} ({unit.split})" for unit in empty)
    text = (
        f"The reviews hold no line of a scored label for {named}: these sessions add nothing to any figure."
    )
    return [TextSection("Sessions without reviewed opportunities", text)]


def series(result: Result, name: str, points: Sequence[tuple[float, Mapping[str, Any]]]) -> list[Series]:
    """One line a run of the figure ``name`` at (x, coordinates), with a band where all have intervals."""
    lines = []
    for run in result.runs.values():
        by_key = {figure.key: figure for figure in run.figures}
        figures = [by_key[figure_key(name, at)] for _, at in points]
        known = [run.intervals.get(figure.key) for figure in figures]
        lows = [one.low for one in known if one is not None and one.low is not None]
        highs = [one.high for one in known if one is not None and one.high is not None]
        band = len(lows) == len(figures)
        lines.append(
            Series(
                run.name,
                [x for x, _ in points],
                [figure.value for figure in figures],
                lows if band else (),
                highs if band else (),
                control=run.control,
            )
        )
    return lines
