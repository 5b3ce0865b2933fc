"""The values that pass between the rooms: annotation tracks, gold sets, predicted times.

All times are seconds on the conversation's clock, float64. A speaker is 1 or 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from attrs import field, frozen

from floorkit_turnbench.labels import ANNOTATORS, DROPPED, FINE_LABELS, SPEAKERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

Task = Literal["eot", "int"]
TASKS: tuple[Task, Task] = ("eot", "int")


def floats(values: Iterable[float]) -> NDArray[np.float64]:
    """``values`` as a float64 array of shape [N]."""
    return np.asarray(list(values), dtype=np.float64)


@frozen(eq=False)
class Track:
    """One annotator's events of one speaker, in file order.

    Parameters
    ----------
    start, end
        Seconds, shape [N].
    label_class
        Index into ``labels.CLASSES``, shape [N]; labels outside the table never get here.
    """

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    label_class: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.start)


EMPTY_TRACK = Track(np.zeros(0), np.zeros(0), np.zeros(0, np.int8))


@frozen(eq=False)
class Conversation:
    """Two speakers, each with the tracks of annotators a, b and c (an absent track is empty).

    ``facts`` holds what the dataset says beside (conversation_type, ...), ``dropped_labels`` how often
    each label outside the table occurred.
    """

    conversation_id: str
    duration_s: float
    tracks: Mapping[tuple[int, str], Track]
    facts: Mapping[str, Any] = field(factory=dict)
    dropped_labels: Mapping[str, int] = field(factory=dict)

    def track(self, speaker: int, annotator: str) -> Track:
        return self.tracks.get((speaker, annotator), EMPTY_TRACK)


RawTrack = tuple[Iterable[float], Iterable[float], Iterable[str]]
"""(starts, ends, fine labels), equally long, in file order."""


def make_conversation(
    conversation_id: str,
    duration_s: float,
    tracks: Mapping[tuple[int, str], RawTrack],
    facts: Mapping[str, Any] | None = None,
) -> Conversation:
    """Build a Conversation from fine labels, dropping and counting those outside the table.

    Raises
    ------
    ValueError
        For a speaker other than 1 and 2, or an annotator other than a, b and c.
    """
    coded: dict[tuple[int, str], Track] = {}
    dropped: Counter[str] = Counter()
    for (speaker, annotator), (starts, ends, labels) in tracks.items():
        if speaker not in SPEAKERS or annotator not in ANNOTATORS:
            raise ValueError(f"no such track: speaker {speaker!r}, annotator {annotator!r}")
        names = list(labels)
        codes = np.array([FINE_LABELS.get(name, DROPPED) for name in names], dtype=np.int8)
        kept = codes != DROPPED
        dropped.update(name for name, keep in zip(names, kept.tolist(), strict=True) if not keep)
        coded[speaker, annotator] = Track(floats(starts)[kept], floats(ends)[kept], codes[kept])
    return Conversation(
        conversation_id, float(duration_s), coded, dict(facts or {}), dict(sorted(dropped.items()))
    )


@frozen(eq=False)
class Spans:
    """Intervals of speakers; shape [N] each. A point event has ``end`` equal to ``start``."""

    speaker: NDArray[np.int8]
    start: NDArray[np.float64]
    end: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.start)

    def of(self, speaker: int) -> Spans:
        """Those of one speaker, order kept."""
        return self.at(self.speaker == speaker)

    def at(self, which: NDArray[Any] | slice) -> Spans:
        """Those at an index array, a mask or a slice."""
        return Spans(self.speaker[which], self.start[which], self.end[which])

    @classmethod
    def join(cls, parts: Iterable[Spans]) -> Spans:
        """All parts, one after the other."""
        several = tuple(parts)
        return cls(
            np.concatenate([part.speaker for part in several]),
            np.concatenate([part.start for part in several]),
            np.concatenate([part.end for part in several]),
        )

    @classmethod
    def single(cls, speaker: int, start: NDArray[np.float64], end: NDArray[np.float64]) -> Spans:
        """Spans that all belong to ``speaker``."""
        return cls(np.full(len(start), speaker, np.int8), start, end)


@frozen(eq=False)
class TaskGold:
    """What one task is scored on: positive events, negative spans, excluded intervals.

    ``positives`` and ``negatives`` stand in the official order (speaker 1 before 2, each in the order
    in which consensus accepted them), which is not always that of time.
    """

    positives: Spans
    negatives: Spans
    excluded: Spans


@frozen(eq=False)
class Gold:
    """A conversation's gold for both tasks."""

    conversation_id: str
    duration_s: float
    eot: TaskGold
    int: TaskGold

    def task(self, task: Task) -> TaskGold:
        return self.eot if task == "eot" else self.int


Times = Mapping[int, "NDArray[np.float64]"]
"""Speaker to strictly increasing times, shape [N]."""

Events = Mapping[Task, Times]
"""Task to what a run commits to in one conversation."""


def no_events() -> dict[Task, dict[int, NDArray[np.float64]]]:
    """Committed events of a predictor that never fires."""
    return {task: {speaker: np.zeros(0) for speaker in SPEAKERS} for task in TASKS}
