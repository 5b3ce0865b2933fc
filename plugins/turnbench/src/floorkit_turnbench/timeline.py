"""Events to audit: misses and false fires of each run, each with the gold and the run around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from floorkit.core.sections import Lane, TimelineEvent, TimelineSection
from floorkit.core.values import Result, RunResult, Table
from floorkit_turnbench.conversation import TASKS, Spans, Task
from floorkit_turnbench.events import Outcomes, outcomes
from floorkit_turnbench.kernel import EARLY_S, windows
from floorkit_turnbench.tables import set_code

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from floorkit.core.pool import Pool

Role = Literal["gold", "excluded"]

MOST = 12
"""Events shown for each run, task and kind of outcome."""
CONTEXT_S = 6.0
KINDS = {"fn": "missed event", "fp": "false fire", "tp": "late event"}


def timeline(result: Result) -> TimelineSection:
    """Misses, false fires and the latest hits of the user's runs, evenly spread over the conversations."""
    events: list[TimelineEvent] = []
    total = 0
    for run in result.user_runs:
        for task in TASKS:
            found, _ = outcomes(run.pool, run.points, task)
            if found is None:
                continue
            total += len(found.unit)
            for rows in _chosen(found):
                events += [_event(run, task, found, row) for row in rows]
    return TimelineSection(
        "Events to audit",
        events,
        total,
        note=f"For each run and task up to {MOST} misses, false fires and hits with the longest latency. "
        "Consensus: what at least two annotators agree on. Predictions: those that claim a positive or fire "
        "on a negative; others are not scored.",
    )


def _chosen(found: Outcomes) -> list[list[int]]:
    missed = np.flatnonzero(found.positive & ~found.fired)
    false = np.flatnonzero(~found.positive & found.fired)
    hits = np.flatnonzero(found.positive & found.fired)
    latest = hits[np.argsort(-found.latency_ms[hits], kind="stable")[:MOST]]
    spread = [
        rows[np.unique(np.linspace(0, len(rows) - 1, MOST).astype(np.intp))] if len(rows) > MOST else rows
        for rows in (missed, false)
    ]
    return [rows.tolist() for rows in (*spread, latest)]


def _event(run: RunResult, task: Task, found: Outcomes, row: int) -> TimelineEvent:
    unit = run.pool.units[found.unit[row]]
    start, end = float(found.start_s[row]), float(found.end_s[row])
    time = None if np.isnan(found.time_s[row]) else float(found.time_s[row])
    word = found.word(row)
    positive = bool(found.positive[row])
    speaker = int(found.speaker[row])
    window = _window(found, row) if positive else (start - EARLY_S, end)
    shown = (max(0.0, window[0] - CONTEXT_S), window[1] + CONTEXT_S)
    facts: dict[str, object] = {"speaker": speaker, "task": task, "outcome": KINDS.get(word, word)}
    if positive and time is not None:
        facts["latency_ms"] = float(found.latency_ms[row])
    return TimelineEvent(
        id=f"{unit.name} {task} speaker {speaker} at {start:.3f} s",
        unit=unit.name,
        run=run.name,
        kind=f"{task} {'positive' if positive else 'negative'}",
        status=word,
        anchor_s=start,
        start_s=shown[0],
        stop_s=shown[1],
        triggered=time is not None,
        window=window,
        outcome_s=time,
        facts=facts,
        lanes=_lanes(run.pool, task, found, int(found.unit[row]), shown),
    )


def _window(found: Outcomes, row: int) -> tuple[float, float]:
    """The window in which a positive may claim a prediction: it ends at the speaker's next one."""
    mine = found.positive & (found.unit == found.unit[row]) & (found.speaker == found.speaker[row])
    of_speaker = Spans(found.speaker[mine], found.start_s[mine], found.end_s[mine])
    window = windows(of_speaker, int(found.speaker[row]))
    place = int(np.searchsorted(window.time, found.start_s[row]))
    return float(window.low[place]), float(window.high[place])


def _lanes(pool: Pool, task: Task, found: Outcomes, unit: int, shown: tuple[float, float]) -> list[Lane]:
    """For each speaker the consensus, the task's gold and what the run did; the same lanes for all."""
    gold, consensus = pool.table(unit, "gold"), pool.table(unit, "consensus")
    classes = consensus.categories["label_class"]
    lanes = []
    for speaker in (1, 2):
        agreed = _inside(consensus, consensus["speaker"] == speaker, shown)
        texts = [classes[code] for code in consensus["label_class"][agreed]]
        lanes.append(Lane(f"speaker {speaker} consensus", _intervals(consensus, agreed, texts)))
        for part in ("positives", "negatives", "excluded"):
            own = (gold["set"] == set_code(task, part)) & (gold["speaker"] == speaker)
            rows = _inside(gold, own, shown)
            role: Role = "excluded" if part == "excluded" else "gold"
            lanes.append(Lane(f"speaker {speaker} {part}", _intervals(gold, rows), role=role))
        fired = (found.unit == unit) & (found.speaker == speaker) & found.fired
        times = sorted(found.time_s[fired & (found.time_s >= shown[0]) & (found.time_s <= shown[1])].tolist())
        lanes.append(
            Lane(
                f"speaker {speaker} predictions",
                tuple((time, time, "") for time in times),
                role="prediction",
            )
        )
    return lanes


def _inside(table: Table, own: NDArray[np.bool_], shown: tuple[float, float]) -> NDArray[np.intp]:
    """Rows of ``own`` that touch the stretch ``shown``, in order of time."""
    rows = np.flatnonzero(own & (table["end_s"] >= shown[0]) & (table["start_s"] <= shown[1]))
    return rows[np.argsort(table["start_s"][rows], kind="stable")]


def _intervals(
    table: Table, rows: NDArray[np.intp], texts: Sequence[str] = ()
) -> tuple[tuple[float, float, str], ...]:
    starts, ends = table["start_s"][rows].tolist(), table["end_s"][rows].tolist()
    return tuple(zip(starts, ends, texts or [""] * len(rows), strict=True))
