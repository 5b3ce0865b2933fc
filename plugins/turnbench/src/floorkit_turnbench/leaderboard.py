"""Ranking runs per task, by the current rule or the older one.

Current: a run qualifies with fp_rate <= 0.15; qualifiers by recall descending, then the others by recall
descending; ties by lower p50 latency, then name. Older: a run qualifies with fp_rate within the budget and
recall at or above a floor, and qualifiers are ranked by p50 latency, then recall, then name.

Source: turnbench spec, "Leaderboard".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from attrs import frozen

FP_CEILING: Final = 0.15


@frozen
class Entry:
    """One run's figures on one task; None where a figure does not exist."""

    name: str
    recall: float | None
    fp_rate: float | None
    latency_p50_ms: float | None


@frozen
class Ranked:
    """An entry with its rank (1 is best), or None where it has no recall to rank by."""

    rank: int | None
    entry: Entry
    qualifies: bool


def _latency(entry: Entry) -> float:
    return math.inf if entry.latency_p50_ms is None else entry.latency_p50_ms


def _recall(entry: Entry) -> float:
    return -1.0 if entry.recall is None else entry.recall


def rank(entries: Iterable[Entry], fp_ceiling: float = FP_CEILING) -> list[Ranked]:
    """Rank by the current rule; an entry without fp_rate does not qualify, one without recall comes last,
    unranked."""
    return _ranked(
        entries,
        lambda entry: entry.fp_rate is not None and entry.fp_rate <= fp_ceiling,
        lambda entry: (-_recall(entry), _latency(entry), entry.name),
    )


def rank_by_latency(entries: Iterable[Entry], fp_budget: float, recall_floor: float) -> list[Ranked]:
    """Rank by the older rule: within budget and above the floor by p50 latency, then the others by recall."""

    def qualifies(entry: Entry) -> bool:
        return entry.fp_rate is not None and entry.fp_rate <= fp_budget and _recall(entry) >= recall_floor

    return _ranked(
        entries,
        qualifies,
        lambda entry: (
            (_latency(entry), -_recall(entry), entry.name)
            if qualifies(entry)
            else (-_recall(entry), _latency(entry), entry.name)
        ),
    )


def _ranked(
    entries: Iterable[Entry],
    qualifies: Callable[[Entry], bool],
    key: Callable[[Entry], tuple[float, float, str]],
) -> list[Ranked]:
    everyone = list(entries)
    ranked = [one for one in everyone if one.recall is not None]
    ranked.sort(key=lambda entry: (not qualifies(entry), *key(entry)))
    rest = sorted((one for one in everyone if one.recall is None), key=lambda entry: entry.name)
    return [
        *(Ranked(place, one, qualifies(one)) for place, one in enumerate(ranked, start=1)),
        *(Ranked(None, one, False) for one in rest),
    ]
