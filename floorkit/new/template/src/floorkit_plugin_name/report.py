"""Figures to sections: what is shown and what is written."""

from __future__ import annotations

import math
from collections.abc import Iterator

from floorkit.core.sections import ColumnSpec, Section, SummarySection, TableSection
from floorkit.core.values import Result

METRICS = (
    ColumnSpec("run"),
    ColumnSpec("recall", kind="rate", count="true_positive", denominator="gold"),
    ColumnSpec("precision", kind="rate", count="true_positive", denominator="predicted"),
    ColumnSpec("f1", "F1", kind="rate", count="f1_count", denominator="f1_denominator"),
    ColumnSpec("false_onsets_per_minute", "false per minute", kind="float"),
    ColumnSpec("true_positive", kind="integer"),
    ColumnSpec("gold", kind="integer"),
    ColumnSpec("predicted", kind="integer"),
    ColumnSpec("f1_count", kind="integer"),
    ColumnSpec("f1_denominator", kind="integer"),
)
ONSETS = (
    ColumnSpec("run"),
    ColumnSpec("recording"),
    ColumnSpec("onset_s", "onset (s)", kind="float"),
    ColumnSpec("found", kind="flag"),
    ColumnSpec("error_s", "error (s)", kind="float"),
)


def sections(result: Result) -> list[Section]:
    """The table of figures, the list of gold onsets, and the figures for summary.json."""
    runs = {name: {figure.name: figure.value for figure in run.figures} for name, run in result.runs.items()}
    return [
        TableSection("Onsets", METRICS, list(_metrics(result)), file="summary_metrics.csv"),
        TableSection("Gold onsets", ONSETS, lambda: _onsets(result), file="summary_onsets.csv", shown=False),
        SummarySection({"runs": runs}),
    ]


def _metrics(result: Result) -> Iterator[tuple[object, ...]]:
    for name, run in result.runs.items():
        recall, precision, f1 = run.figure("recall"), run.figure("precision"), run.figure("f1")
        false = run.figure("false_onsets_per_minute")
        yield (
            name,
            recall.value,
            precision.value,
            f1.value,
            false.value,
            recall.count,
            recall.denominator,
            precision.denominator,
            f1.count,
            f1.denominator,
        )


def _onsets(result: Result) -> Iterator[tuple[object, ...]]:
    for name, run in result.runs.items():
        for index, unit in enumerate(run.pool.units):
            table = run.pool.table(index, "gold")
            for onset, found, error in zip(table["onset_s"], table["found"], table["error_s"], strict=True):
                yield name, unit.name, float(onset), bool(found), None if math.isnan(error) else float(error)
