"""Audit timelines of the HTML page: which events are drawn, their data, and the controls around the canvas.

A page holds some hundred events, not a hundred thousand. Where a section has more, each combination of run,
kind, status and outcome keeps its share, rare ones (false triggers, often) all of theirs, spread evenly
over the section; the counts of all events stand in a table, and a sentence says what is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from floorkit.core.sections import Lane, TimelineEvent, TimelineSection
from floorkit.core.values import Result
from floorkit.reports import cells
from floorkit.reports.html.markup import Html, data_script, element, json_text, size
from floorkit.reports.html.tables import Cell, Heading, Row, signature_line, table

DRAWN_EVENTS = 600
"""Events of one section that a page holds."""

DRAWN_SAMPLES = 4000
"""Samples of one score path, and intervals of one lane, that a page holds for an event."""

POSITIVE = frozenset({"positive", "true positive", "hit", "tp", "false negative", "miss", "missed", "fn"})
"""Status words that say: a trigger is right here."""

LEGEND = (
    ("activity", "activity"),
    ("gold", "gold"),
    ("excluded", "excluded"),
    ("prediction", "prediction"),
    ("score", "score path"),
    ("window", "window"),
    ("anchor", "anchor"),
    ("competing", "competing boundary"),
    ("outcome", "outcome"),
)


def outcome(event: TimelineEvent) -> str:
    """What the run did, against the event's status: a false trigger is any trigger off a positive."""
    if event.triggered is None:
        return "not judged"
    positive = event.status.replace("_", " ").casefold() in POSITIVE
    if event.triggered:
        return "true trigger" if positive else "false trigger"
    return "missed positive" if positive else "no trigger"


def sample(events: Sequence[TimelineEvent], limit: int) -> list[int]:
    """Indices of at most ``limit`` events, in order; every stratum keeps the same number where it can."""
    if len(events) <= limit:
        return list(range(len(events)))
    strata: dict[tuple[str, ...], list[int]] = {}
    for index, event in enumerate(events):
        strata.setdefault((event.run, event.kind, event.status, outcome(event)), []).append(index)
    quotas: dict[tuple[str, ...], int] = {}
    left, by_size = limit, sorted(strata, key=lambda stratum: (len(strata[stratum]), stratum))
    for position, stratum in enumerate(by_size):
        quotas[stratum] = min(len(strata[stratum]), left // (len(by_size) - position))
        left -= quotas[stratum]
    chosen = [_spread(members, quotas[stratum]) for stratum, members in strata.items()]
    return sorted(index for members in chosen for index in members)


def _spread(items: Sequence[Any], count: int) -> list[Any]:
    """``count`` items, evenly spread."""
    if count >= len(items):
        return list(items)
    return [items[(2 * index + 1) * len(items) // (2 * count)] for index in range(count)]


# --- data ---------------------------------------------------------------------------------------


def _event_data(event: TimelineEvent) -> dict[str, Any]:
    return {
        "id": event.id,
        "unit": event.unit,
        "run": event.run,
        "kind": event.kind,
        "status": event.status,
        "outcome": outcome(event),
        "anchor": event.anchor_s,
        "span": (event.start_s, event.stop_s),
        "score": event.score,
        "threshold": _threshold(event),
        "window": event.window,
        "competing": event.competing_s,
        "end": event.outcome_s,
        "facts": [(name.replace("_", " "), _fact(value)) for name, value in event.facts.items()],
        "lanes": [_lane_data(lane) for lane in event.lanes],
    }


def _threshold(event: TimelineEvent) -> float | None:
    """The fact named ``threshold``, which is drawn across score paths."""
    value = event.facts.get("threshold")
    return float(value) if isinstance(value, int | float) else None


def _fact(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: cells.MISSING}[value]
    return cells.number(float(value), 6) if isinstance(value, int | float) else str(value)


def _lane_data(lane: Lane) -> dict[str, Any]:
    return {
        "name": lane.name,
        "role": lane.role,
        "intervals": lane.intervals[:DRAWN_SAMPLES],
        "path": _thinned(lane.path),
        "more": len(lane.intervals) > DRAWN_SAMPLES or len(lane.path) > DRAWN_SAMPLES,
    }


def _thinned(path: Sequence[tuple[float, float | None]]) -> Sequence[tuple[float, float | None]]:
    """A path of at most DRAWN_SAMPLES samples: of each bin the lowest and the highest stay."""
    if len(path) <= DRAWN_SAMPLES:
        return path
    bins = DRAWN_SAMPLES // 2
    kept: list[tuple[float, float | None]] = []
    for index in range(bins):
        part = path[index * len(path) // bins : (index + 1) * len(path) // bins]
        known = [sample for sample in part if sample[1] is not None]
        if known:
            extremes = (min(known, key=_value), max(known, key=_value))
            kept += sorted(set(extremes))
        else:
            kept.append(part[0])
    return kept


def _value(sample: tuple[float, float | None]) -> float:
    return sample[1] or 0.0


def _fitting(section: TimelineSection, room: int) -> tuple[list[int], str]:
    """Indices of the events drawn and their JSON, in at most ``room`` bytes."""
    limit = DRAWN_EVENTS
    while True:
        drawn = sample(section.events, limit)
        source = json_text([_event_data(section.events[index]) for index in drawn])
        taken = size(source)
        if taken <= room or not drawn:
            return drawn, source
        limit = len(drawn) * room // (taken + 1)


# --- page ---------------------------------------------------------------------------------------


def timeline(identifier: str, section: TimelineSection, result: Result, room: int) -> Html:
    """The controls, the canvas and the words of one section.

    Parameters
    ----------
    room
        Bytes of data that the page has left for it.
    """
    drawn, source = _fitting(section, room)
    events = [section.events[index] for index in drawn]
    title_id, words_id = f"{identifier}-title", f"{identifier}-words"
    return element(
        "figure",
        element("h3", section.title, id=title_id),
        element("p", _sampling_words(section, events), class_="note"),
        element("p", section.note, class_="note") if section.note else None,
        _controls(events),
        element(
            "div",
            [
                element("span", element("span", words), class_=f"key {role}", data_role=role)
                for role, words in LEGEND
            ],
            class_="legend",
            aria_hidden="true",
        ),
        element(
            "canvas",
            "This browser draws no canvas; the event stands as text below.",
            tabindex=0,
            role="application",
            aria_roledescription="timeline",
            aria_labelledby=title_id,
            aria_describedby=words_id,
        ),
        element("p", class_="readout"),
        element("div", id=words_id, class_="words", aria_live="polite"),
        element("details", element("summary", "The lanes of this event as text"), class_="lanes"),
        element(
            "p",
            "On the timeline: n and p go to the next and previous event, + and − zoom, the arrow keys move, "
            "0 shows the whole excerpt, Home the anchor.",
            class_="note keys",
        ),
        element("details", element("summary", "Counts of all events"), _counts(identifier, section, result)),
        signature_line(result.signature),
        data_script(f"{identifier}-data", source),
        class_="timeline",
        id=identifier,
    )


def _sampling_words(section: TimelineSection, events: Sequence[TimelineEvent]) -> str:
    given, drawn = len(section.events), len(events)
    if not given:
        return f"No events are drawn; there were {section.total}."
    words = []
    if drawn < given:
        words.append(
            f"{drawn:,} of {given:,} events are drawn: each combination of run, kind, status and outcome "
            "keeps its share, evenly spread; rare ones are complete as far as there is room."
        )
    if given < section.total:
        words.append(f"The section holds a sample of {given:,} out of {section.total:,} events.")
    cut = any(
        len(lane.intervals) > DRAWN_SAMPLES or len(lane.path) > DRAWN_SAMPLES
        for event in events
        for lane in event.lanes
    )
    if cut:
        words.append(
            f"Score paths of more than {DRAWN_SAMPLES:,} samples are drawn as the lowest and highest of "
            f"each bin; of longer lanes the first {DRAWN_SAMPLES:,} intervals are drawn."
        )
    return " ".join(words) or f"All {given:,} events are drawn."


def _controls(events: Sequence[TimelineEvent]) -> Html:
    filters: tuple[tuple[str, Callable[[TimelineEvent], str]], ...] = (
        ("run", lambda event: event.run),
        ("unit", lambda event: event.unit),
        ("kind", lambda event: event.kind),
        ("status", lambda event: event.status),
        ("outcome", outcome),
    )
    return element(
        "div",
        [element("label", name, " ", _filter(name, _counted(events, value))) for name, value in filters],
        element("label", "event ", element("select", class_="event")),
        element(
            "span",
            _button("previous", "◀ previous"),
            _button("next", "next ▶"),
            _button("out", "−", "zoom out"),
            _button("in", "+", "zoom in"),
            _button("all", "whole excerpt"),
            class_="buttons",
        ),
        element("output", class_="position", aria_live="polite"),
        class_="controls",
        role="group",
        aria_label="Choose and move between events",
    )


def _counted(events: Sequence[TimelineEvent], value: Callable[[TimelineEvent], str]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for event in events:
        counts[value(event)] = counts.get(value(event), 0) + 1
    return counts


def _filter(name: str, counts: Mapping[str, int]) -> Html:
    options = [element("option", f"all ({sum(counts.values())})", value="all", data_all=True)]
    options += [element("option", f"{value or '(none)'} ({n})", value=value) for value, n in counts.items()]
    return element("select", options, data_filter=name)


def _button(action: str, words: str, spoken: str = "") -> Html:
    return element("button", words, type="button", data_action=action, aria_label=spoken or None)


def _counts(identifier: str, section: TimelineSection, result: Result) -> Html:
    """How many of all the section's events there are of each kind; also what a sampled page leaves out."""
    counts = _counted_groups(section.events)
    headings = [Heading(name) for name in ("run", "kind", "status", "outcome")] + [Heading("events", True)]
    rows = [
        Row([*(Cell(part, part) for part in group), Cell(str(count), count, numeric=True)])
        for group, count in counts.items()
    ]
    return table(
        f"{identifier}-counts",
        "Events by run, kind, status and outcome",
        headings,
        rows,
        signature=result.signature,
    )


def _counted_groups(events: Sequence[TimelineEvent]) -> Mapping[tuple[str, ...], int]:
    counts: dict[tuple[str, ...], int] = {}
    for event in events:
        group = (event.run, event.kind, event.status, outcome(event))
        counts[group] = counts.get(group, 0) + 1
    return counts
