"""competing_risk as plain, slow loops, written from the specification: what the fast code is tested against.

Sessions are lists: ``wearer[t]`` and ``others[t]`` are 0 or 1, ``starts`` the first rows of the recordings,
``pred[t][h]`` the wearer's forecast and ``valid[t][h]`` whether the mask allows it, h = 0 .. H - 1. Nothing
here uses NumPy or the other rooms of the plugin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ROW_SECONDS = 0.2

Session = dict[str, Any]
"""``session``, ``wearer``, ``others``, ``starts``, ``pred``, ``valid``."""


def recording_of(session: Session, row: int) -> tuple[int, int, int]:
    """Index, first row and stop row of the recording of a row."""
    starts = session["starts"]
    index = max(i for i, start in enumerate(starts) if start <= row)
    stop = starts[index + 1] if index + 1 < len(starts) else len(session["wearer"])
    return index, starts[index], stop


def candidates(session: Session, decision_timing: str) -> list[dict[str, Any]]:
    """Every boundary candidate, ineligible ones included, by recording and row."""
    wearer, others = session["wearer"], session["others"]
    found = []
    for b in range(1, len(wearer)):
        index, first, stop = recording_of(session, b)
        if b == first or others[b - 1] == others[b]:
            continue
        family = "response" if others[b - 1] == 1 else "yield"
        s = b - 1 if decision_timing == "pre-boundary" else b
        wanted = 1 if family == "response" else 0
        w = next((t for t in range(s + 1, stop) if wearer[t] == wanted), None)
        c = next(
            (t for t in range(b + 1, stop) if others[t - 1] != others[t] and others[t] != others[b]), None
        )
        eligible = wearer[s] == (0 if family == "response" else 1)
        found.append(
            {
                "family": family,
                "recording": index,
                "b": b,
                "s": s,
                "w": w,
                "c": c,
                "stop": stop,
                "eligible": eligible,
            }
        )
    return found


def scored(session: Session, candidate: dict[str, Any], k: int, window: str) -> tuple[str, float | None]:
    """Status and score of an eligible candidate at horizon k."""
    infinite = float("inf")
    s, stop = candidate["s"], candidate["stop"]
    w = infinite if candidate["w"] is None else candidate["w"]
    c = infinite if candidate["c"] is None else candidate["c"]
    e = s + k
    if w < c and w <= e:
        status = "positive"
    elif c <= e or e <= stop - 1:
        status = "negative"
    else:
        return "censored", None
    m = min(e, stop - 1) if window == "full" else min(e, c - 1, stop - 1)
    rows = [t for t in range(s + 1, e + 1) if t <= m]
    if not rows:
        return "unobservable", None
    if not all(usable(session, t, t - s - 1) for t in rows):
        return "invalid", None
    path = [float(session["pred"][t][t - s - 1]) for t in rows]
    return status, max(path) if candidate["family"] == "response" else max(1 - p for p in path)


def usable(session: Session, row: int, h: int) -> bool:
    """Whether a cell may be used: the mask allows it and its source row lies in the recording of its row."""
    source = row - (h + 1)
    return bool(session["valid"][row][h]) and source >= recording_of(session, row)[1]


def average_precision(scores: Sequence[float], labels: Sequence[int]) -> float | None:
    """AP over groups of tied scores, descending; None without a positive."""
    positives = sum(labels)
    if not positives:
        return None
    total, recall_before = 0.0, 0.0
    for value in sorted(set(scores), reverse=True):
        chosen = [label for score, label in zip(scores, labels, strict=True) if score >= value]
        recall = sum(chosen) / positives
        total += (recall - recall_before) * sum(chosen) / len(chosen)
        recall_before = recall
    return total


def threshold(positive_scores: Sequence[float], recall: float) -> float | None:
    """The lowest score that a share ``recall`` of the positives reaches."""
    ordered = sorted(positive_scores, reverse=True)
    for count, score in enumerate(ordered, start=1):
        if count >= recall * len(ordered) - 1e-9:
            return score
    return None


def family_figures(
    evaluated: Sequence[Session],
    calibration: Sequence[Session],
    family: str,
    k: int,
    params: dict[str, Any],
) -> dict[str, Any]:
    """Counts, AP and the figures at each recall of one family and horizon; calibration [] means in-sample."""
    rows = _family_rows(evaluated, family, k, params)
    chosen_on = _family_rows(calibration or evaluated, family, k, params)
    positive = [score for status, score, _ in rows if status == "positive"]
    negative = [(score, short) for status, score, short in rows if status == "negative"]
    counts = {
        name: sum(status == name for status, _, _ in rows)
        for name in ("ineligible", "positive", "negative", "censored", "unobservable", "invalid")
    }
    wearer = [active for session in evaluated for active in session["wearer"]]
    state = 0 if family == "response" else 1
    minutes = sum(active == state for active in wearer) * ROW_SECONDS / 60
    at_recall: dict[float, dict[str, float | None] | None] = {}
    for recall in params["matched_recalls"]:
        at = threshold([score for status, score, _ in chosen_on if status == "positive"], recall)
        if at is None:
            at_recall[recall] = None
            continue
        fired = [(score, short) for score, short in negative if score >= at]
        at_recall[recall] = {
            "threshold": at,
            "recall": _rate(sum(score >= at for score in positive), len(positive)),
            "trigger_count": len(fired),
            "trigger_rate": _rate(len(fired), len(negative)),
            "short_resume_trigger_rate": _rate(sum(s for _, s in fired), sum(s for _, s in negative)),
            "per_minute": _rate(len(fired), minutes),
        }
    return {
        "candidates": len(rows),
        **counts,
        "short_resume": sum(short for _, short in negative),
        "ap": average_precision(
            [*positive, *(score for score, _ in negative)], [1] * len(positive) + [0] * len(negative)
        ),
        "at_recall": at_recall,
    }


def _family_rows(
    sessions: Sequence[Session], family: str, k: int, params: dict[str, Any]
) -> list[tuple[str, Any, bool]]:
    """Status, score and short resume (c - b within the pause) of every candidate of a family."""
    pause = round(params["midturn_pause_max_seconds"] / ROW_SECONDS)
    rows = []
    for session in sessions:
        for one in candidates(session, params["decision_timing"]):
            if one["family"] == family:
                status, score = (
                    scored(session, one, k, params["window"]) if one["eligible"] else ("ineligible", None)
                )
                short = family == "response" and one["c"] is not None and one["c"] - one["b"] <= pause
                rows.append((status, score, short))
    return rows


def _rate(count: float, denominator: float) -> float | None:
    return count / denominator if denominator else None


def framewise(sessions: Sequence[Session], k: int) -> dict[str, Any]:
    """Framewise endpoint figures at horizon k."""
    cells = []
    for session in sessions:
        wearer = session["wearer"]
        for s in range(len(wearer) - k):
            if usable(session, s + k, k - 1):
                cells.append((wearer[s], wearer[s + k], float(session["pred"][s + k][k - 1])))
    entry = [(label, p) for state, label, p in cells if state == 0]
    leaving = [(1 - label, 1 - p) for state, label, p in cells if state == 1]
    return {
        "rows": len(cells),
        "wearer_positive": sum(label for _, label, _ in cells),
        "wearer_activity_ap": average_precision([p for _, _, p in cells], [label for _, label, _ in cells]),
        "entry_rows": len(entry),
        "entry_positive": sum(label for label, _ in entry),
        "entry_endpoint_ap": average_precision([p for _, p in entry], [label for label, _ in entry]),
        "exit_rows": len(leaving),
        "exit_positive": sum(label for label, _ in leaving),
        "exit_endpoint_ap": average_precision([p for _, p in leaving], [label for label, _ in leaving]),
        "brier": _rate(sum((p - label) ** 2 for _, label, p in cells), len(cells)),
    }
