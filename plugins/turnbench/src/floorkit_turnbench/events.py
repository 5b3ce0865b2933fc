"""Per-event outcomes of a run: what happened to every positive event and negative span."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from floorkit.core.values import OperatingPoint
from floorkit_turnbench.conversation import TASKS, Task
from floorkit_turnbench.measure import outcome
from floorkit_turnbench.tables import set_code

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from floorkit.core.pool import Pool


@frozen(eq=False)
class Outcomes:
    """Outcomes on one task, one row for each positive (in official order), then each negative span, by unit.

    Parameters
    ----------
    unit
        Index into ``pool.units``, shape [N].
    positive, fired
        Whether it is a positive; whether a prediction claimed it or fired on it, shape [N].
    speaker, start_s, end_s
        Of the event or span, shape [N].
    time_s, latency_ms
        The prediction and its latency, shape [N]; NaN where there is none.
    """

    unit: NDArray[np.int64]
    positive: NDArray[np.bool_]
    fired: NDArray[np.bool_]
    speaker: NDArray[np.int8]
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    time_s: NDArray[np.float64]
    latency_ms: NDArray[np.float64]

    def word(self, row: int) -> str:
        """tp, fn, fp or tn."""
        if self.positive[row]:
            return "tp" if self.fired[row] else "fn"
        return "fp" if self.fired[row] else "tn"


def outcomes(pool: Pool, points: Sequence[OperatingPoint], task: Task) -> tuple[Outcomes | None, str]:
    """Outcomes on one task at the run's operating point; None with the reason where there is none."""
    found = outcome(pool, points, task)
    if found.reason:
        return None, found.reason
    codes = pool.column("gold", "set")
    unit = pool.unit_index("gold")
    first_row = np.searchsorted(unit, np.arange(len(pool.units)))
    fired = np.flatnonzero(found.rows)
    gold_row = pool.column("fired", "gold_row")[fired] + first_row[pool.unit_index("fired")[fired]]
    times, latencies = np.full(len(codes), np.nan), np.full(len(codes), np.nan)
    times[gold_row] = pool.column("fired", "time_s")[fired]
    latencies[gold_row] = pool.column("fired", "latency_ms")[fired]
    rows = np.concatenate(
        [
            np.flatnonzero((codes == set_code(task, part)) & (unit == index))
            for index in range(len(pool.units))
            for part in ("positives", "negatives")
        ]
        or [np.zeros(0, np.intp)]
    )
    return (
        Outcomes(
            unit[rows],
            codes[rows] == set_code(task, "positives"),
            ~np.isnan(times[rows]),
            pool.column("gold", "speaker")[rows],
            pool.column("gold", "start_s")[rows],
            pool.column("gold", "end_s")[rows],
            times[rows],
            latencies[rows],
        ),
        "",
    )


def event_rows(run: str, pool: Pool, points: Sequence[OperatingPoint]) -> Iterator[tuple[Any, ...]]:
    """Rows of summary_events.csv for one run."""
    for task in TASKS:
        found, _ = outcomes(pool, points, task)
        if found is None:
            continue
        columns = zip(
            found.unit.tolist(),
            found.positive.tolist(),
            found.speaker.tolist(),
            found.start_s.tolist(),
            found.end_s.tolist(),
            found.time_s.tolist(),
            found.latency_ms.tolist(),
            strict=True,
        )
        for row, (unit, positive, speaker, start, end, time, latency) in enumerate(columns):
            yield (
                run,
                pool.units[unit].name,
                task,
                speaker,
                "positive" if positive else "negative",
                start,
                end,
                found.word(row),
                None if np.isnan(time) else time,
                None if np.isnan(latency) else latency,
            )
