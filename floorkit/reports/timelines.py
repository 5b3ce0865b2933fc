"""Audit timelines for the tools that people annotate with: Praat TextGrid, ELAN, Audacity, RTTM.

The events of a unit and the lanes around them become tiers: the lanes (activity, gold, excluded regions),
the windows of the events by kind, their anchors, competing boundaries and outcomes, and for each run what
it did. Lanes are excerpts around the sampled events, not whole recordings; excerpts that overlap are
joined. Sampled scores have no place in these formats; they stay in timelines.json.

How each format holds them is said in :mod:`floorkit.reports.timeline_formats`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from floorkit.core.sections import Lane, TimelineEvent
from floorkit.reports.timeline_formats import (
    Span,
    Tier,
    audacity_labels,
    distinct,
    eaf,
    file_name,
    rttm,
    textgrid,
)

Format = Literal["textgrid", "eaf", "audacity", "rttm"]

RUN_ROLES = frozenset({"prediction", "score", "window"})
"""Lanes that belong to a run; the others describe the unit."""


def tiers(events: Sequence[TimelineEvent]) -> list[Tier]:
    """The tiers of one unit.

    Parameters
    ----------
    events
        Events of one unit, of one run or several, each perhaps repeated.
    """
    runs = list(dict.fromkeys(event.run for event in events))
    lanes: dict[str, Tier] = {}
    shared: dict[str, Tier] = {}
    decisions: dict[str, Tier] = {}
    for event in events:
        for lane in event.lanes:
            name = f"{event.run}: {lane.name}" if lane.role in RUN_ROLES and len(runs) > 1 else lane.name
            _add(lanes, name, _lane_spans(lane))
        start, stop = event.window or (event.anchor_s, event.anchor_s)
        _add(shared, f"{event.kind} events", [_span(start, stop, _event_text(event))])
        for name, time in (
            ("anchor", event.anchor_s),
            ("competing boundary", event.competing_s),
            ("outcome", event.outcome_s),
        ):
            if time is not None:
                _add(shared, f"{event.kind} {name}", [_span(time, time, event.id)])
        decision = _decision_text(event)
        if decision:
            _add(decisions, f"{event.run} decisions", [_span(start, stop, decision)])
    joined = [Tier(tier.name, _joined(tier.spans)) for tier in lanes.values()]
    exact = [
        Tier(tier.name, sorted(dict.fromkeys(tier.spans))) for tier in (*shared.values(), *decisions.values())
    ]
    return [tier for tier in (*joined, *exact) if tier.spans]


def _add(tiers: dict[str, Tier], name: str, spans: Iterable[Span]) -> None:
    tiers.setdefault(name, Tier(name)).spans.extend(spans)


def _span(start: float, stop: float, text: str) -> Span:
    first = round(start * 1e6)
    return first, max(first, round(stop * 1e6)), text


def _lane_spans(lane: Lane) -> list[Span]:
    return [_span(start, stop, text or lane.name) for start, stop, text in lane.intervals]


def _event_text(event: TimelineEvent) -> str:
    return f"{event.id}: {event.status}" if event.status else event.id


def _decision_text(event: TimelineEvent) -> str:
    parts = []
    if event.triggered is not None:
        parts.append("triggered" if event.triggered else "not triggered")
    if event.score is not None:
        parts.append(f"score {event.score:.6g}")
    return f"{event.id}: " + ", ".join(parts) if parts else ""


def _joined(spans: Sequence[Span]) -> list[Span]:
    """Overlapping spans of the same text as one: excerpts are cut at their edges."""
    open_spans: dict[str, list[int]] = {}
    result: list[tuple[int, int, str]] = []
    for start, stop, text in sorted(spans):
        current = open_spans.get(text)
        if current is not None and start < current[1]:
            current[1] = max(current[1], stop)
        else:
            if current is not None:
                result.append((current[0], current[1], text))
            open_spans[text] = [start, stop]
    result += [(start, stop, text) for text, (start, stop) in open_spans.items()]
    return sorted(dict.fromkeys(result))


def timeline_files(
    events: Sequence[TimelineEvent], form: Format, signature: str = ""
) -> tuple[dict[str, str], int]:
    """The files of all units.

    Returns
    -------
    files
        File name to text (UTF-8, line feeds); one a unit, for Audacity one a tier.
    left_out
        Points that the format cannot hold.
    """
    by_unit: dict[str, list[TimelineEvent]] = {}
    for event in events:
        by_unit.setdefault(event.unit, []).append(event)
    files: dict[str, str] = {}
    left_out = 0
    for unit, name in zip(by_unit, distinct(by_unit, file_name), strict=True):
        unit_tiers = tiers(by_unit[unit])
        if form == "audacity":
            names = distinct([tier.name for tier in unit_tiers], file_name)
            for tier, tier_name in zip(unit_tiers, names, strict=True):
                files[f"{name}.{tier_name}.txt"] = audacity_labels(tier)
        elif form == "rttm":
            files[f"{name}.rttm"], points = rttm(unit, unit_tiers)
            left_out += points
        elif form == "eaf":
            files[f"{name}.eaf"] = eaf(unit_tiers, signature)
        else:
            files[f"{name}.TextGrid"] = textgrid(unit_tiers)
    return files, left_out
