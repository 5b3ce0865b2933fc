"""Predictors that ship with the plugin: the gold itself, one annotator, and two that never listen.

The first two are upper references (what a perfect system, and a person, would get), the others the controls
that every table shows beside a run.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from floorkit_turnbench.conversation import TASKS, Conversation, Events, Gold, no_events
from floorkit_turnbench.gold import annotator_gold
from floorkit_turnbench.labels import SPEAKERS

METRONOME_S: Final = 2.0


def gold_events(gold: Gold) -> Events:
    """The gold's positives as predictions: recall 1 and fp_rate 0 wherever no excluded interval hides one."""
    return {
        task: {speaker: np.unique(gold.task(task).positives.of(speaker).start) for speaker in SPEAKERS}
        for task in TASKS
    }


def within_audio(events: Events, duration_s: float) -> Events:
    """The events as a submission may have them: what lies past the end of the audio is moved to the end."""
    return {
        task: {speaker: np.unique(np.minimum(of[speaker], duration_s)) for speaker in SPEAKERS}
        for task, of in events.items()
    }


def annotator_events(conversation: Conversation, annotator: str) -> Events:
    """What one annotator alone would submit: the positives of gold built from that one's track."""
    return gold_events(annotator_gold(conversation, annotator))


def metronome_events(duration_s: float) -> Events:
    """An EOT and an interruption of each speaker at 2, 4, 6, ... seconds, up to the end."""
    count = math.floor(duration_s / METRONOME_S)
    times = np.arange(1, count + 1, dtype=np.float64) * METRONOME_S
    return {task: dict.fromkeys(SPEAKERS, times) for task in TASKS}


def silent_events() -> Events:
    """No event ever."""
    return no_events()
