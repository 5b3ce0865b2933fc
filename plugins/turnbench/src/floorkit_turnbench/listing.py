"""What every dataset form gives: conversations listed without their annotations, then loaded one by one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen

from floorkit.core.errors import InputError, Problem, raise_problems
from floorkit_turnbench.conversation import Conversation, RawTrack, make_conversation
from floorkit_turnbench.strict_json import number, shown


@frozen
class Listed:
    """One conversation of a dataset, and where its annotations are loaded from.

    Parameters
    ----------
    conversation_id, duration_s
        ``duration_s`` is None where nothing tells it, which is a problem of the dataset.
    facts
        What the dataset says beside (conversation_type, ...).
    files, values
        Files behind it, and plain values that the loader of ``values["form"]`` needs.
    """

    conversation_id: str
    duration_s: float | None
    facts: Mapping[str, Any] = field(factory=dict)
    files: Mapping[str, Path] = field(factory=dict)
    values: Mapping[str, Any] = field(factory=dict)


def official_order(identifiers: Iterable[str]) -> list[str]:
    """Conversation ids in the official order: numbers by value, then other names."""
    return sorted(identifiers, key=lambda name: (0, int(name), name) if name.isdecimal() else (1, 0, name))


def check_listed(listed: list[Listed], where: str) -> list[Problem]:
    """No conversation at all, ids given twice, and durations that are missing or no positive number."""
    problems = [] if listed else [Problem("no conversations", where, expected="at least one conversation")]
    seen: set[str] = set()
    for one in listed:
        place = f"{where}: conversation {one.conversation_id}"
        if one.conversation_id in seen:
            problems.append(Problem("conversation stands twice", place, expected="one entry a conversation"))
        seen.add(one.conversation_id)
        if one.duration_s is None:
            problems.append(
                Problem(
                    "no duration",
                    place,
                    expected="seconds, above 0",
                    remedy='add it to a durations JSON and name that: durations = "FILE"',
                )
            )
        elif not (math.isfinite(one.duration_s) and one.duration_s > 0.0):
            problems.append(Problem("wrong duration", place, repr(one.duration_s), "seconds, above 0"))
    return problems


def build_conversation(
    listed: Listed,
    events: Mapping[tuple[int, str], Iterable[Any]],
    where: str,
    known: Sequence[Problem] = (),
) -> Conversation:
    """Validate raw events and build the conversation.

    Parameters
    ----------
    events
        (speaker, annotator) to events in file order, each (start, end, label, ...).
    where
        Place, for messages.
    known
        Problems that its loader found, to be told with those of the events.

    Raises
    ------
    InputError
        With every event that is no (number, number, string), is not finite, or ends before it starts.
    """
    problems = list(known)
    tracks: dict[tuple[int, str], RawTrack] = {}
    for (speaker, annotator), raw in events.items():
        starts: list[float] = []
        ends: list[float] = []
        labels: list[str] = []
        for index, event in enumerate(raw):
            place = f"{where}, speaker {speaker}, annotator {annotator}, event {index}"
            if not isinstance(event, list | tuple) or len(event) < 3:
                found = shown(list(event) if isinstance(event, tuple) else event)
                problems.append(Problem("no event", place, found, "[start_s, end_s, label, text]"))
                continue
            start, end, label = number(event[0]), number(event[1]), event[2]
            if start is None or end is None or not (math.isfinite(start) and math.isfinite(end)):
                problems.append(
                    Problem(
                        "event times are no finite numbers",
                        place,
                        f"{event[0]!r}, {event[1]!r}",
                        "start and end in seconds",
                    )
                )
            elif not isinstance(label, str):
                problems.append(Problem("event label is no string", place, repr(label), "a fine label"))
            elif end < start:
                problems.append(
                    Problem("event ends before it starts", place, f"{start!r} to {end!r}", "start <= end")
                )
            else:
                starts.append(start)
                ends.append(end)
                labels.append(label)
        tracks[speaker, annotator] = (starts, ends, labels)
    raise_problems(InputError, problems)
    assert listed.duration_s is not None
    return make_conversation(listed.conversation_id, listed.duration_s, tracks, listed.facts)
