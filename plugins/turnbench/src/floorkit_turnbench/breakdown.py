"""Figures of each conversation, and of each conversation type that the metadata names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from floorkit.core.sections import ColumnSpec, TableSection
from floorkit.core.values import Result, RunResult
from floorkit.numerics import percentiles, rate
from floorkit_turnbench.columns import COUNTS, LATENCIES, SHARES, count_columns, rate_columns, shares
from floorkit_turnbench.conversation import TASKS, Task
from floorkit_turnbench.events import outcomes
from floorkit_turnbench.thresholds import LATENCY_PERCENTS

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _grouped(
    run: RunResult, groups: Sequence[str], of_unit: NDArray[np.intp]
) -> Iterator[tuple[Task, str, list[Any]]]:
    """(task, group, counts and figures) of one run; ``of_unit`` gives each unit's group."""
    for task in TASKS:
        found, _ = outcomes(run.pool, run.points, task)
        if found is None:
            continue
        for number, group in enumerate(groups):
            inside = of_unit[found.unit] == number
            tp, fn, fp, tn = (
                int(np.count_nonzero(inside & (found.positive == positive) & (found.fired == fired)))
                for positive, fired in ((True, True), (True, False), (False, True), (False, False))
            )
            latency = found.latency_ms[inside & found.positive & found.fired]
            yield (
                task,
                group,
                [
                    tp,
                    fn,
                    fp,
                    tn,
                    rate(tp, tp + fn),
                    rate(fp, fp + tn),
                    *percentiles(latency, LATENCY_PERCENTS),
                ],
            )


def _conversation_type(info: Any) -> str | None:
    value = info.get("conversation_type")
    return None if value is None else str(value)


def conversations_table(result: Result) -> TableSection:
    rows: list[list[Any]] = []
    for name, run in result.runs.items():
        units = run.pool.units
        thetas = {point.at["task"]: point.threshold for point in run.points}
        kinds = {unit.name: _conversation_type(unit.info) for unit in units}
        everyone = np.arange(len(units))
        for task, conversation, figures in _grouped(run, [unit.name for unit in units], everyone):
            rows.append([name, conversation, kinds[conversation], task, *figures, thetas.get(task)])
    return TableSection(
        "Conversations",
        [
            ColumnSpec("run"),
            ColumnSpec("conversation_id"),
            ColumnSpec("conversation_type"),
            ColumnSpec("task"),
            *count_columns(),
            *rate_columns(),
            ColumnSpec("theta", "threshold", "float"),
        ],
        rows,
        file="summary_conversations.csv",
        shown=False,
    )


def types_table(result: Result) -> TableSection:
    rows: list[list[Any]] = []
    for name, run in result.runs.items():
        kinds = [_conversation_type(unit.info) or "unspecified" for unit in run.pool.units]
        groups = sorted(set(kinds))
        of_unit = np.array([groups.index(kind) for kind in kinds], np.intp)
        for task, group, figures in _grouped(run, groups, of_unit):
            rows.append([name, group, kinds.count(group), task, *figures])
    return TableSection(
        "By conversation type",
        [
            ColumnSpec("run"),
            ColumnSpec("conversation_type", "type"),
            ColumnSpec("conversations", kind="integer"),
            ColumnSpec("task"),
            *count_columns(),
            *rate_columns(),
        ],
        rows,
        file="summary_types.csv",
        shown=False,
    )


def types_shown(by_type: TableSection) -> TableSection:
    """The table by type with both rates and the median latency alone, to fit a terminal."""
    names = [column.name for column in by_type.columns]
    places = {name: names.index(name) for name in ("run", "conversation_type", "task", *COUNTS, *LATENCIES)}
    rows = [
        [
            *(row[places[name]] for name in ("run", "conversation_type", "task")),
            *shares(*(row[places[name]] for name in COUNTS)),
            row[places["latency_p50_ms"]],
        ]
        for row in by_type.iterate()
    ]
    return TableSection(
        by_type.title,
        [
            ColumnSpec("run"),
            ColumnSpec("conversation_type", "type"),
            ColumnSpec("task"),
            *SHARES,
            ColumnSpec("latency_p50_ms", "p50 (ms)", "float"),
        ],
        rows,
    )
