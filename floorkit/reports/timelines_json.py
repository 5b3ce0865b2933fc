"""``RESULTS/NAME/timelines.json``: the audit timelines, events with the lanes around them.

Beside what :mod:`floorkit.reports.stored` opens a file with, it holds ``sections``: title, note, total and
events, each with the fields of :class:`floorkit.core.values.TimelineEvent`. Times are seconds from the
start of the unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from floorkit.core.sections import Lane, Section, TimelineEvent, TimelineSection
from floorkit.core.values import Result
from floorkit.reports import stored

FILE = "timelines.json"
FORMAT = "floorkit timelines 1"


@frozen
class TimelinesFile:
    origin: stored.Origin
    sections: tuple[TimelineSection, ...]

    @property
    def events(self) -> tuple[TimelineEvent, ...]:
        """The events of all sections."""
        return tuple(event for section in self.sections for event in section.events)


def plain_event(event: TimelineEvent) -> dict[str, Any]:
    """An event as plain data, its lanes too; the numbers stay as they are."""
    plain = {one.name: getattr(event, one.name) for one in attrs.fields(TimelineEvent)}
    plain["lanes"] = [
        {one.name: getattr(lane, one.name) for one in attrs.fields(Lane)} for lane in event.lanes
    ]
    return plain


def write_timelines(result: Result, sections: Sequence[Section]) -> str:
    """The text of timelines.json; call it where there is a TimelineSection."""
    timelines = [
        {
            "title": one.title,
            "note": one.note,
            "total": one.total,
            "events": [plain_event(event) for event in one.events],
        }
        for one in sections
        if isinstance(one, TimelineSection)
    ]
    return stored.dump(FORMAT, stored.Origin.of(result), {"sections": timelines})


def read_timelines(path: Path) -> TimelinesFile:
    """Read a timelines.json.

    Raises
    ------
    InputError
        Where it is not a file of this format.
    """
    return stored.load(path, FORMAT, TimelinesFile)
