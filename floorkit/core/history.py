"""The same entry in several results folders, over time: what changed, and which figures moved.

Between two successive folders the provenance says whether code, parameters, data or predictions changed. A
figure that moved although none of these did is told as such: something else is at work.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from attrs import frozen

from floorkit.core.changes import Change
from floorkit.core.entries import Entry, chosen, differences, read_entries
from floorkit.core.values import Figure

ROUNDING = 1e-12
"""Differences up to here, relative to the value where that is above 1, are no movement."""

_SHARED = ("protocol", "code", "parameters", "data", "packages")
"""Kinds of change that can move the figures of every run."""


@frozen
class Moved:
    """A headline figure of a run that is not what it was; a side is None where it does not exist.

    ``explained`` tells whether something that the figure depends on has changed too: code, parameters,
    data, seed, packages, or the run's own predictions.
    """

    run: str
    key: str
    before: Figure | None
    after: Figure | None
    explained: bool


@frozen(eq=False)
class Step:
    """From one folder to the next; ``figures`` is the number of headline figures that were looked at."""

    before: Entry
    after: Entry
    changes: tuple[Change, ...]
    moved: tuple[Moved, ...]
    figures: int


@frozen(eq=False)
class EntryHistory:
    """One entry's states in order of time, and the steps between them."""

    name: str
    states: tuple[Entry, ...]
    steps: tuple[Step, ...]


def history(folders: Sequence[Path], names: Sequence[str] = ()) -> list[EntryHistory]:
    """The history of every entry (or of those named) over results folders, ordered by their start times.

    Raises
    ------
    InputError, ManifestError
    """
    states: dict[str, list[Entry]] = {}
    for folder in folders:
        for name, entry in read_entries(folder).items():
            states.setdefault(name, []).append(entry)
    wanted = chosen({name: entries[0] for name, entries in states.items()}, names)
    histories = []
    for name in wanted:
        ordered = sorted(states[name], key=lambda entry: entry.started)
        steps = tuple(_step(*pair) for pair in pairwise(ordered))
        histories.append(EntryHistory(name, tuple(ordered), steps))
    return histories


def _step(before: Entry, after: Entry) -> Step:
    found = differences(before, after)
    shared = any(change.kind in _SHARED or change.what == "seed" for change in found)
    changed_runs = {change.what for change in found if change.kind == "predictions"}
    old, new = before.headline(), after.headline()
    moved = []
    count = 0
    for run in {**old, **new}:
        ours, theirs = old.get(run, {}), new.get(run, {})
        for key in {**ours, **theirs}:
            count += 1
            pair = ours.get(key), theirs.get(key)
            if _is_moved(*pair):
                moved.append(Moved(run, key, *pair, explained=shared or run in changed_runs))
    return Step(before, after, tuple(found), tuple(moved), count)


def _is_moved(before: Figure | None, after: Figure | None) -> bool:
    if before is None or after is None:
        return True
    if before.value is None or after.value is None:
        return before.value != after.value
    return abs(after.value - before.value) > ROUNDING * max(1.0, abs(before.value))
