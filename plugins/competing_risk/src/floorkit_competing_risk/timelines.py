"""Audit timelines: a seeded draw of candidates, row by row, to be checked by eye before results are believed.

Printed are N candidates a family over all statuses: in each status, at the headline horizon, in an order that
the seed decides, and from the statuses in turn. The first run's statuses decide; every run is shown. The HTML
report holds these and ``TIMELINE_CANDIDATES`` more a family, for whose draw negatives that trigger in any run
count as a status of their own, since they are what an audit looks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import attrs
import numpy as np
from numpy.typing import NDArray

from floorkit.core.sections import Lane, Section, TextSection, TimelineEvent, TimelineSection
from floorkit.core.values import OperatingPoint, Result, RunResult, Table
from floorkit.numerics import ROW_SECONDS, recall_name
from floorkit_competing_risk import frames
from floorkit_competing_risk.kernel import FAMILIES, INELIGIBLE, NEGATIVE, NO_ROW, RESPONSE, STATUSES
from floorkit_competing_risk.params import CompetingRiskParams

ROWS_BEFORE = 5
"""Rows shown before the boundary."""
TIMELINE_CANDIDATES = 40
"""Candidates a family that the HTML report shows whether or not any are printed."""
FALSE_TRIGGER = len(STATUSES)
"""Beside the codes of ``STATUSES``: a negative that triggers."""
AUDIT_ORDER = np.arange(FALSE_TRIGGER + 1)
AUDIT_ORDER[INELIGIBLE] = FALSE_TRIGGER + 1
"""Where each status comes in a turn: as in ``STATUSES``, then negatives that trigger, ineligible last."""


@attrs.frozen(eq=False)
class Drawn:
    """One drawn candidate: its session, its row in the session's table, and the session's lanes.

    ``first`` and ``last`` are the shown rows, both inside the recording.
    """

    session: str
    row: int
    candidates: Table
    frames: Table
    first: int
    last: int

    def __getitem__(self, column: str) -> int:
        return int(self.candidates[column][self.row])

    @property
    def family(self) -> str:
        return FAMILIES[self["family"]]


@attrs.frozen
class Seen:
    """What one run did with a candidate at the headline horizon.

    ``path`` is the forecast path (pred, never 1 - pred) from the source row, by target row; None where
    invalid. ``threshold`` is the run's at the headline recall.
    """

    run: str
    status: str
    score: float | None
    triggered: bool | None
    path: Mapping[int, float | None]
    threshold: float | None


def timeline_sections(result: Result, params: CompetingRiskParams) -> list[Section]:
    """The drawn candidates as a timeline, and those that are asked for as text (timelines.txt)."""
    runs = [run for run in result.user_runs if run.pool.units]
    if not runs:
        return []
    seed, horizon = result.context.seed, params.headline_horizon
    status = runs[0].pool.column("candidates", "status")[:, horizon - 1]
    printed = _draw(runs[0], status, params.audit_timelines, seed)
    shown = _draw(runs[0], _audit_strata(runs, status, params), TIMELINE_CANDIDATES, seed)
    texts, events = [], []
    for row in sorted({*printed, *shown}):
        one = _drawn(runs[0], row, params)
        present = [item for run in runs if (item := _seen(run, one, params, horizon)) is not None]
        if row in printed:
            texts.append((one.family, _text(one, present, params, horizon)))
        events += [_event(one, item, params, horizon) for item in present]
    note = (
        f"Statuses and scores at {params.headline_horizon_seconds} s. Drawn by seed {seed}, evenly over "
        "statuses and false triggers: no picture of how frequent they are."
    )
    return [
        *_printed(texts, params, seed),
        TimelineSection("Audit timelines", events, _total(runs), note=note),
    ]


def _printed(texts: Sequence[tuple[str, str]], params: CompetingRiskParams, seed: int) -> list[TextSection]:
    """Texts of (family, candidate), by family; nothing where none are asked for."""
    if not params.audit_timelines:
        return []
    ordered = [text for family in FAMILIES for of, text in texts if of == family]
    title = f"Audit timelines as text ({params.audit_timelines} a family, seed {seed})"
    return [TextSection(title, "\n".join(ordered), file="timelines.txt")]


def _total(runs: Sequence[RunResult]) -> int:
    """Candidates of all runs: what the timeline is a sample of."""
    return sum(len(run.pool.column("candidates", "family")) for run in runs)


def _audit_strata(
    runs: Sequence[RunResult], status: NDArray[np.int8], params: CompetingRiskParams
) -> NDArray[np.int8]:
    """The first run's statuses, shape [N], with a code of its own for negatives that trigger in any run.

    Runs that lack a session are left aside, since their rows are not those of the first run.
    """
    horizon = params.headline_horizon
    family = runs[0].pool.column("candidates", "family")
    fires = np.zeros(len(status), dtype=bool)
    for run in runs:
        scores = run.pool.column("candidates", "score")[:, horizon - 1]
        if run.pool.units == runs[0].pool.units:
            for code, name in enumerate(FAMILIES):
                threshold = _threshold(run.points, name, horizon, params)
                if threshold is not None:
                    fires |= (family == code) & (scores >= threshold)
    strata = status.copy()
    strata[(status == NEGATIVE) & fires] = FALSE_TRIGGER
    return strata


def _draw(run: RunResult, strata: NDArray[np.int8], count: int, seed: int) -> set[int]:
    """Rows of ``count`` candidates a family, taken from the strata in turn."""
    family = run.pool.column("candidates", "family")
    drawn: set[int] = set()
    for code in range(len(FAMILIES)):
        generator = np.random.default_rng([seed, code])
        rows = generator.permutation(np.flatnonzero(family == code))
        turn = np.empty(len(rows), dtype=np.int64)
        for one in np.unique(strata):
            mine = strata[rows] == one
            turn[mine] = np.arange(np.count_nonzero(mine))
        drawn.update(rows[np.lexsort((AUDIT_ORDER[strata[rows]], turn))][:count].tolist())
    return drawn


def _drawn(run: RunResult, pooled_row: int, params: CompetingRiskParams) -> Drawn:
    """The candidate at a row of the pooled table."""
    unit = run.pool.unit_index("candidates")
    index = int(unit[pooled_row])
    row = pooled_row - int(np.searchsorted(unit, index))
    candidates, lanes = run.pool.table(index, "candidates"), run.pool.table(index, "frames")
    recording = np.flatnonzero(lanes["recording"] == candidates["recording"][row])
    return Drawn(
        session=run.pool.units[index].name,
        row=row,
        candidates=candidates,
        frames=lanes,
        first=max(int(recording[0]), int(candidates["boundary"][row]) - ROWS_BEFORE),
        last=min(int(recording[-1]), int(candidates["source"][row]) + params.horizons),
    )


def _window(one: Drawn, params: CompetingRiskParams, horizon: int) -> tuple[int, int]:
    """First and last row of the window at a horizon; the last is below the first where it is empty."""
    last = min(one["source"] + horizon, one.last)
    if params.window == "observable" and one["competing"] != NO_ROW:
        last = min(last, one["competing"] - 1)
    return one["source"] + 1, last


def _seen(run: RunResult, one: Drawn, params: CompetingRiskParams, horizon: int) -> Seen | None:
    """What a run did; None where it lacks the session."""
    index = next((i for i, unit in enumerate(run.pool.units) if unit.name == one.session), None)
    if index is None:
        return None
    table, lanes = run.pool.table(index, "candidates"), run.pool.table(index, "frames")
    path: dict[int, float | None] = {}
    for k in range(1, params.horizons + 1):
        row = one["source"] + k
        if row <= one.last:
            key = lanes[frames.key_column(k)][row : row + 1]
            path[row] = float(frames.decode(key)[0][0]) if frames.is_valid(key)[0] else None
    score = float(table["score"][one.row, horizon - 1])
    threshold = _threshold(run.points, one.family, horizon, params)
    is_scored = not np.isnan(score)
    return Seen(
        run=run.name,
        status=STATUSES[int(table["status"][one.row, horizon - 1])],
        score=score if is_scored else None,
        triggered=score >= threshold if is_scored and threshold is not None else None,
        path=path,
        threshold=threshold,
    )


def _threshold(
    points: Sequence[OperatingPoint], family: str, horizon: int, params: CompetingRiskParams
) -> float | None:
    if params.headline_recall is None:
        return None
    at = {"family": family, "horizon": horizon, "recall": recall_name(params.headline_recall)}
    return next((point.threshold for point in points if point.at == at), None)


# --- as text ------------------------------------------------------------------------------------


def _text(one: Drawn, seen: Sequence[Seen], params: CompetingRiskParams, horizon: int) -> str:
    start, stop = _window(one, params, horizon)
    pooled = "pred" if one["family"] == RESPONSE else "1 - pred"
    lines = [
        f"{one.family}, session {one.session}, recording {one['recording']}",
        f"  boundary {_at(one['boundary'])}, source {_at(one['source'])}",
        f"  window {_at(start)} .. {_at(stop)}: maximum of {pooled}" if start <= stop else "  window empty",
        f"  C/excluded {_at(one['competing'])}, outcome {_at(one['outcome'])}",
    ]
    for item in seen:
        score = "no score" if item.score is None else f"score {item.score:.6g}"
        fired = {None: "", True: ", triggers", False: ", does not trigger"}[item.triggered]
        lines.append(f"  {item.run}: {item.status} at {params.headline_horizon_seconds} s, {score}{fired}")
    header = f"  {'row':>8} {'time_s':>9}  O W  {'mark':<18}"
    lines.append(header + "".join(f" {item.run[:12]:>12}" for item in seen))
    wearer, others = one.frames["wearer"], one.frames["others"]
    for row in range(one.first, one.last + 1):
        lanes = f"{'#' if others[row] else '.'} {'#' if wearer[row] else '.'}"
        cells = "".join(f" {_cell(item.path, row):>12}" for item in seen)
        mark = _mark(one, row, start <= row <= stop)
        lines.append(f"  {row:>8} {row * ROW_SECONDS:>9.1f}  {lanes}  {mark:<18}{cells}".rstrip())
    return "\n".join([*lines, ""])


def _at(row: int) -> str:
    return "none" if row == NO_ROW else f"row {row} ({row * ROW_SECONDS:.1f} s)"


def _mark(one: Drawn, row: int, in_window: bool) -> str:
    marks = [
        ("source", row == one["source"]),
        ("anchor", row == one["boundary"]),
        ("C/excluded", row == one["competing"]),
        ("outcome", row == one["outcome"]),
        ("|", in_window),
    ]
    return " ".join(text for text, holds in marks if holds)


def _cell(path: Mapping[int, float | None], row: int) -> str:
    if row not in path:
        return ""
    value = path[row]
    return "invalid" if value is None else f"{value:.4f}"


# --- as a timeline ------------------------------------------------------------------------------


def _event(one: Drawn, item: Seen, params: CompetingRiskParams, horizon: int) -> TimelineEvent:
    start, stop = _window(one, params, horizon)
    rows = {name: one[name] for name in ("boundary", "source", "outcome", "competing") if one[name] != NO_ROW}
    facts = {"recording": one["recording"], **{f"{name}_row": row for name, row in rows.items()}}
    is_response = one["family"] == RESPONSE
    words = "pred" if is_response else "1 - pred"
    path = {row: p if p is None or is_response else 1.0 - p for row, p in item.path.items()}
    return TimelineEvent(
        id=f"{one.family} {one.session} {one['boundary']}",
        unit=one.session,
        run=item.run,
        kind=one.family,
        status=item.status,
        anchor_s=_seconds(one["boundary"]),
        start_s=_seconds(one.first),
        stop_s=_seconds(one.last + 1),
        triggered=item.triggered,
        score=item.score,
        window=(_seconds(start), _seconds(stop + 1)) if start <= stop else None,
        competing_s=None if one["competing"] == NO_ROW else _seconds(one["competing"]),
        outcome_s=None if one["outcome"] == NO_ROW else _seconds(one["outcome"]),
        facts={**facts, "threshold": item.threshold},
        lanes=[
            Lane("others", _intervals(one, "others"), role="activity"),
            Lane("wearer", _intervals(one, "wearer"), role="activity"),
            Lane(
                f"scores ({words})",
                path=[(_seconds(row), value) for row, value in path.items()],
                role="score",
            ),
        ],
    )


def _seconds(row: int) -> float:
    return round(row * ROW_SECONDS, 9)


def _intervals(one: Drawn, lane: str) -> list[tuple[float, float, str]]:
    rows = range(one.first, one.last + 1)
    runs = [
        (active, list(group)) for active, group in groupby(rows, key=lambda row: bool(one.frames[lane][row]))
    ]
    return [(_seconds(group[0]), _seconds(group[-1] + 1), "") for active, group in runs if active]
