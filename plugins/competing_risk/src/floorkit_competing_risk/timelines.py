"""Audit timelines: a seeded draw of candidates, row by row, to be checked by eye before results are believed.

Drawn are N candidates a family over all statuses: in each status, at the headline horizon, in an order that
the seed decides, and from the statuses in turn. The first run's statuses decide; every run is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import attrs
import numpy as np

from floorkit.core.sections import Lane, Section, TextSection, TimelineEvent, TimelineSection
from floorkit.core.values import OperatingPoint, Result, RunResult, Table
from floorkit.numerics import ROW_SECONDS, recall_name
from floorkit_competing_risk import frames
from floorkit_competing_risk.kernel import FAMILIES, INELIGIBLE, NO_ROW, RESPONSE, STATUSES
from floorkit_competing_risk.params import CompetingRiskParams

ROWS_BEFORE = 5
"""Rows shown before the boundary."""
AUDIT_ORDER = np.where(np.arange(len(STATUSES)) == INELIGIBLE, len(STATUSES), np.arange(len(STATUSES)))
"""Where each status comes in a turn: as in ``STATUSES``, but ineligible last."""


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
    invalid.
    """

    run: str
    status: str
    score: float | None
    triggered: bool | None
    path: Mapping[int, float | None]


def timeline_sections(result: Result, params: CompetingRiskParams) -> list[Section]:
    """The drawn candidates as text (timelines.txt) and as a timeline; nothing where none are asked for."""
    runs = [run for run in result.user_runs if run.pool.units]
    if not params.audit_timelines or not runs:
        return []
    horizon = round(params.headline_horizon_seconds / ROW_SECONDS)
    drawn = list(_draw(runs[0], params, horizon, result.context.seed))
    seen = [[_seen(run, one, params, horizon) for run in runs] for one in drawn]
    texts, events = [], []
    for one, by_run in zip(drawn, seen, strict=True):
        present = [item for item in by_run if item is not None]
        texts.append(_text(one, present, params, horizon))
        events += [_event(one, item, params, horizon) for item in present]
    title = f"Audit timelines ({params.audit_timelines} a family, seed {result.context.seed})"
    total = sum(len(runs[0].pool.table(index, "candidates")) for index in range(len(runs[0].pool.units)))
    return [
        TextSection(title, "\n".join(texts), file="timelines.txt"),
        TimelineSection(
            title, events, total, note=f"Statuses and scores at {params.headline_horizon_seconds} s."
        ),
    ]


def _draw(run: RunResult, params: CompetingRiskParams, horizon: int, seed: int) -> Iterator[Drawn]:
    pool = run.pool
    unit = pool.unit_index("candidates")
    starts = np.flatnonzero(np.diff(unit, prepend=-1))
    family, status = pool.column("candidates", "family"), pool.column("candidates", "status")
    for code in range(len(FAMILIES)):
        generator = np.random.default_rng([seed, code])
        rows = generator.permutation(np.flatnonzero(family == code))
        turn = np.empty(len(rows), dtype=np.int64)
        for one in range(len(STATUSES)):
            mine = status[rows, horizon - 1] == one
            turn[mine] = np.arange(np.count_nonzero(mine))
        chosen = rows[np.lexsort((AUDIT_ORDER[status[rows, horizon - 1]], turn))][: params.audit_timelines]
        for row in sorted(chosen.tolist()):
            index = int(unit[row])
            first_of_unit = int(starts[np.searchsorted(starts, row, side="right") - 1])
            yield _drawn(run, index, row - first_of_unit, params)


def _drawn(run: RunResult, index: int, row: int, params: CompetingRiskParams) -> Drawn:
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
        facts={"recording": one["recording"], **{f"{name}_row": row for name, row in rows.items()}},
        lanes=[
            Lane("others", _intervals(one, "others"), role="activity"),
            Lane("wearer", _intervals(one, "wearer"), role="activity"),
            Lane("forecast", path=[(_seconds(row), value) for row, value in item.path.items()], role="score"),
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
