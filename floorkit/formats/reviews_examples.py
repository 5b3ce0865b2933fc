"""Examples of reviewed opportunities for audit: 20 Hz frames, rows, forecasts, valid mask and scores.

Before a protocol is frozen, people check such examples against the source timeline: that the boundary lies
where the annotator meant it, that the row is the right one, and that mask and scores belong to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from floorkit.core.sections import Lane, Section, TextSection, TimelineEvent, TimelineSection
from floorkit.core.values import OperatingPoint, Result, RunResult
from floorkit.formats.reviews_line import FRAMES_PER_ROW, ORIGINS, REVIEWERS
from floorkit.formats.reviews_report import Opportunity, opportunities
from floorkit.formats.reviews_tables import (
    EXAMPLES,
    OPPORTUNITIES,
    STATUSES,
    TIMELINE_EXAMPLES,
    rank_of,
)
from floorkit.numerics import ROW_SECONDS, recall_name

FRAME_SECONDS = ROW_SECONDS / FRAMES_PER_ROW


@frozen
class View:
    """How a protocol shows its examples.

    Parameters
    ----------
    cells
        Headings of the P forecasts used in a row; () where the scores say the same.
    scores
        Headings of the S scores of a row.
    lines
        Further lines of text for one opportunity (status, score, what won).
    facts
        Further facts of one opportunity for the timeline.
    timeline_horizon
        Horizon whose threshold and score the timeline shows; 0 where there is none.
    """

    cells: tuple[str, ...]
    scores: tuple[str, ...]
    lines: Callable[[Opportunity], list[str]]
    facts: Callable[[Opportunity], dict[str, Any]]
    timeline_horizon: int = 0


def example_sections(result: Result, view: View) -> list[Section]:
    """Timelines of examples of every user run, and those asked for as text (``event_examples.txt``)."""
    count, seed = result.context.params.print_event_examples, result.context.seed
    shown = max(count, TIMELINE_EXAMPLES)
    blocks: list[str] = []
    events: list[TimelineEvent] = []
    total = 0
    for run in result.user_runs:
        blocks += ["\n".join(_text(example, view)) for example in _chosen(run, count, seed)]
        events += [_timeline(example, view, result) for example in _chosen(run, shown, seed)]
        total += sum(len(run.pool.table(i, OPPORTUNITIES)) for i in range(len(run.pool.units)))
    made: list[Section] = []
    if count:
        title = f"Event examples: up to {count} of each label and run, chosen by the seed"
        legend = (
            "Row t covers 0.2 t .. 0.2 (t + 1) s; frames count at 20 Hz, frame // 4 is the row.\n"
            "W and O: wearer and others active. > marks the rows that are scored;\n"
            "valid: 1 for every cell that may be used, by horizon.\n"
        )
        text = legend + "\n" + "\n\n".join(blocks) + "\n"
        made.append(TextSection(title, text, file="event_examples.txt"))
    note = f"Up to {shown} of each label and run, chosen by seed {seed}."
    return [*made, TimelineSection("Audit timelines", events, total, note=note)]


def _chosen(run: RunResult, count: int, seed: int) -> Iterator[Opportunity]:
    """The ``count`` opportunities of lowest rank of each label, in file order.

    Units keep the rows of their own lowest ranks, so those of the lowest over all units are there.
    """
    kept = {
        (index, int(row))
        for index in range(len(run.pool.units))
        for row in np.unique(run.pool.table(index, EXAMPLES)["opportunity"])
    }
    candidates = [one for one in opportunities(run) if (one.unit_index, one.row) in kept]
    ranked = sorted(candidates, key=lambda one: rank_of(one.event_id, seed))
    taken: Counter[str] = Counter()
    chosen = set()
    for one in ranked:
        if taken[one.label] < count:
            taken[one.label] += 1
            chosen.add((one.unit_index, one.row))
    return (one for one in candidates if (one.unit_index, one.row) in chosen)


@frozen(eq=False)
class _Rows:
    """An example's part of the table ``examples``: R session rows."""

    row: NDArray[np.int64]
    wearer: NDArray[np.bool_]
    others: NDArray[np.bool_]
    cells: NDArray[np.float64]
    valid: NDArray[np.bool_]
    scores: NDArray[np.float64]
    scored: NDArray[np.bool_]


def _rows(example: Opportunity) -> _Rows:
    table = example.run.pool.table(example.unit_index, EXAMPLES)
    mine = table["opportunity"] == example.row
    parts = {
        name: table[name][mine] for name in ("row", "wearer", "others", "cells", "valid", "scores", "scored")
    }
    return _Rows(**parts)


def _text(example: Opportunity, view: View) -> list[str]:
    reviews, index = example.reviews, example.index
    correction = int(reviews["correction"][index])
    places = []
    if reviews["anchor"][index] >= 0:
        places.append(f"anchor {_frame(reviews['anchor'][index])}")
    if reviews["start"][index] >= 0:
        start, stop = int(reviews["start"][index]), int(reviews["stop"][index])
        places.append(
            f"region [{start}, {stop}) = {start * FRAME_SECONDS:.2f} .. {stop * FRAME_SECONDS:.2f} s"
        )
    corrected = (
        f"corrected by {correction:+d} row ({correction * ROW_SECONDS:+.1f} s)"
        if correction
        else "not corrected"
    )
    rows = []
    if reviews["anchor"][index] >= 0:
        rows.append(f"anchor row {_row(reviews.anchor_row[index])}")
    if reviews["start"][index] >= 0:
        first, behind = (int(part[index]) for part in reviews.region_rows)
        rows.append(f"region rows {_row(first)} .. {_row(behind - 1)}")
    lines = [
        f"{example.label} {example.event_id} (line {int(reviews['line'][index])}), {example.unit.name}, "
        f"run {example.run.name}",
        f"  family {example.family}, origin {ORIGINS[int(reviews['origin'][index])]}, "
        f"reviewer {REVIEWERS[int(reviews['reviewer'][index])]}",
        f"  20 Hz:  {'; '.join(places)}",
        f"  5 Hz:   {'; '.join(rows)}; {corrected}",
        *(f"  {line}" for line in view.lines(example)),
    ]
    return lines + _grid(_rows(example), view)


def _grid(rows: _Rows, view: View) -> list[str]:
    width = rows.valid.shape[1]
    head = ["  ", f"{'row':>6}", f"{'second':>8}", "W", "O", f"{'valid':<{max(width, 5)}}"]
    head += [f"{name:>7}" for name in (*view.cells, *view.scores)]
    lines = [" ".join(head)]
    for r in range(len(rows.row)):
        scored = bool(rows.scored[r])
        mask = "".join("01"[int(cell)] for cell in rows.valid[r]) if scored else ""
        fields = [
            "> " if scored else "  ",
            f"{rows.row[r]:>6}",
            f"{rows.row[r] * ROW_SECONDS:>8.1f}",
            "#" if rows.wearer[r] else ".",
            "#" if rows.others[r] else ".",
            f"{mask:<{max(width, 5)}}",
        ]
        if scored:
            values = [*(rows.cells[r] if view.cells else ()), *rows.scores[r]]
            fields += [f"{'-':>7}" if np.isnan(value) else f"{value:>7.4f}" for value in values]
        lines.append(" ".join(fields).rstrip())
    return [*lines, *_winners(rows, view, indent=len(" ".join(head[:6])))]


def _winners(rows: _Rows, view: View, indent: int) -> list[str]:
    """The score of each score column and the row that gave it; a dash where a needed cell is invalid."""
    scores, places = rows.scores[rows.scored], rows.row[rows.scored]
    if not len(scores):
        return []
    usable = [bool(np.isfinite(column).all()) for column in scores.T]
    best = np.where(np.isnan(scores), -np.inf, scores).argmax(axis=0)
    columns = range(scores.shape[1])
    skipped = "        " * len(view.cells)
    score = [f"{scores[best[c], c]:>7.4f}" if usable[c] else f"{'-':>7}" for c in columns]
    row = [f"{places[best[c]]:>7}" if usable[c] else f"{'-':>7}" for c in columns]
    return [
        f"{name:>{indent}} {skipped}{' '.join(values)}"
        for name, values in (("score (maximum)", score), ("first row that gives it", row))
    ]


def _frame(frame: Any) -> str:
    return f"frame {int(frame)} = {int(frame) * FRAME_SECONDS:.2f} s"


def _row(row: Any) -> str:
    return f"{int(row)} = {int(row) * ROW_SECONDS:.1f} s"


def _timeline(example: Opportunity, view: View, result: Result) -> TimelineEvent:
    rows = _rows(example)
    horizon = view.timeline_horizon
    status, score = example.value("status"), example.value("score")
    if horizon:
        status, score = status[horizon - 1], score[horizon - 1]
    known = None if np.isnan(score) else float(score)
    threshold = _threshold(example, horizon, result.context.params.headline_recall)
    seconds = [float(row) * ROW_SECONDS for row in rows.row]
    used = np.flatnonzero(rows.scored)
    window = (seconds[used[0]], seconds[used[-1]] + ROW_SECONDS) if len(used) else None
    reviews, index = example.reviews, example.index
    by_anchor = reviews["anchor"][index] >= 0
    anchor_row = reviews.anchor_row[index] if by_anchor else reviews.region_rows[0][index]
    path = [
        (seconds[i] + ROW_SECONDS / 2, None if np.isnan(value) else float(value))
        for i in used
        for value in rows.scores[i, :1]
    ]
    return TimelineEvent(
        id=example.event_id,
        unit=example.unit.name,
        run=example.run.name,
        kind=example.label,
        status=STATUSES[int(status)],
        anchor_s=float(anchor_row) * ROW_SECONDS,
        start_s=seconds[0],
        stop_s=seconds[-1] + ROW_SECONDS,
        triggered=known >= threshold if known is not None and threshold is not None else None,
        score=known,
        window=window,
        facts={
            "family": example.family,
            "line": int(reviews["line"][index]),
            "anchor_frame_20hz": int(reviews["anchor"][index]) if by_anchor else None,
            "correction_rows": int(reviews["correction"][index]),
            "threshold": threshold,
            **view.facts(example),
        },
        lanes=(
            Lane("wearer", _intervals(rows.row, rows.wearer)),
            Lane("others", _intervals(rows.row, rows.others)),
            Lane("scored rows", _intervals(rows.row, rows.scored), role="window"),
            Lane(f"score at {view.scores[0]}" if horizon else "score", path=path, role="score"),
        ),
    )


def _threshold(example: Opportunity, horizon: int, recall: float | None) -> float | None:
    """The run's threshold at the headline recall, in the example's family and horizon."""

    def fits(point: OperatingPoint) -> bool:
        return (
            point.at["family"] == example.family
            and point.at.get("horizon", 0) == horizon
            and recall is not None
            and point.at["recall"] == recall_name(recall)
        )

    return next((point.threshold for point in example.run.points if fits(point)), None)


def _intervals(rows: NDArray[np.int64], active: NDArray[np.bool_]) -> list[tuple[float, float, str]]:
    """Runs of active rows as (start, stop, "") in seconds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], active.astype(np.int8), [0]])))
    return [
        (float(rows[start]) * ROW_SECONDS, float(rows[stop - 1] + 1) * ROW_SECONDS, "")
        for start, stop in zip(edges[::2], edges[1::2], strict=True)
    ]
