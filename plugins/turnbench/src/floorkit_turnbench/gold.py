"""Gold events of a conversation: from three annotators' tracks to the six sets that are scored.

From the accepted turns come end-of-turn positives and mid-turn pauses, from the other classes interruption
positives and negatives.

Source: turnbench spec, "Gold events"; equal to github SesameAILabs/turnbench, scorer of 2026-09, on every
golden case. ``reference.build_gold`` is the same as plain loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from floorkit_turnbench.consensus import Consensus, agree_on, covered, pool_events, turn_view
from floorkit_turnbench.conversation import Conversation, Gold, Spans, Task, TaskGold
from floorkit_turnbench.labels import (
    BACKCHANNEL,
    INTERRUPTION,
    NON_CONTENT,
    NON_FLOOR_TAKING,
    SPEAKERS,
    TURN,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

Float = np.float64


def _first_after(times: NDArray[Float], moments: NDArray[Float]) -> NDArray[Float]:
    """The first of the ordered ``times`` strictly after each moment; infinity where there is none."""
    padded = np.append(times, np.inf)
    return np.asarray(padded[np.searchsorted(times, moments, side="right")])


def _onsets(spans: Spans) -> NDArray[Float]:
    return np.sort(spans.start)


def _turn_ends(speaker: int, turns: Spans, label: Consensus, excluded: list[Spans]) -> tuple[Spans, Spans]:
    """EOT positives and negative spans of one speaker.

    ``excluded`` holds disjoint ordered intervals, one entry a view and speaker.
    """
    own, other = turns.of(speaker), turns.of(3 - speaker)
    own = own.at(np.argsort(own.start, kind="stable"))
    end = own.end[~covered(own.end, own.end, own)]
    next_self = _first_after(own.start, end)
    next_other = _first_after(_onsets(other), end)
    is_turn_end = np.isinf(next_self) | (next_other < next_self) | covered(end, end, other)
    positives = _once(end[is_turn_end])

    start, stop = end[~is_turn_end], next_self[~is_turn_end]
    cut = stop.copy()
    for intervals in excluded:
        # the first interval that ends after the pause begins also starts first
        after = np.searchsorted(intervals.end, start, side="right")
        begins = np.append(intervals.start, np.inf)[after]
        cut = np.where(begins < stop, np.minimum(cut, begins), cut)
    own_label, other_label = (label.accepted.speaker == who for who in (speaker, 3 - speaker))
    breaks_in = np.isin(label.label_class, (INTERRUPTION, NON_FLOOR_TAKING))
    for spans in (
        label.accepted.at(own_label & (label.label_class != TURN)),
        label.accepted.at(other_label & breaks_in),
    ):
        cut = np.minimum(cut, _first_after(_onsets(spans), start))
    kept = cut > start
    start, cut = start[kept], cut[kept]
    _, first = np.unique(np.stack((start, cut)), axis=1, return_index=True)
    first.sort()
    return (
        Spans.single(speaker, positives, positives),
        Spans.single(speaker, start[first], cut[first]),
    )


def _once(times: NDArray[Float]) -> NDArray[Float]:
    """Each value once, in the order of first appearance."""
    _, first = np.unique(times, return_index=True)
    return times[np.sort(first)]


def _gold(conversation: Conversation, label: Consensus, turn: Consensus) -> Gold:
    excluded = [view.excluded.of(speaker) for view in (label, turn) for speaker in SPEAKERS]
    ends = [_turn_ends(speaker, turn.accepted, label, excluded) for speaker in SPEAKERS]
    interruptions = label.of_class(INTERRUPTION)
    return Gold(
        conversation.conversation_id,
        conversation.duration_s,
        eot=TaskGold(
            positives=Spans.join(positives for positives, _ in ends),
            negatives=Spans.join(negatives for _, negatives in ends),
            excluded=turn.excluded,
        ),
        int=TaskGold(
            positives=Spans(interruptions.speaker, interruptions.start, interruptions.start),
            negatives=label.of_class(BACKCHANNEL, NON_CONTENT),
            excluded=Spans.join((label.excluded, label.of_class(NON_FLOOR_TAKING))),
        ),
    )


def build_gold(conversation: Conversation) -> Gold:
    """The six gold sets of a conversation."""
    pool = pool_events(conversation)
    return _gold(conversation, agree_on(pool), agree_on(turn_view(pool)))


def annotator_gold(conversation: Conversation, annotator: str) -> Gold:
    """Gold as it would be if one annotator's events were the consensus and nothing was disputed.

    Its positives are the events that this annotator would submit as a predictor.
    """
    pool = pool_events(conversation, (annotator,))
    views = []
    for view in (pool, turn_view(pool)):
        everything = np.arange(len(view.start))
        views.append(Consensus(view.spans(everything), view.label_class, view.spans(everything[:0])))
    return _gold(conversation, views[0], views[1])


OFFICIAL_SETS: Final[tuple[tuple[str, Task, str], ...]] = (
    ("eot_positive_events", "eot", "positives"),
    ("eot_negative_spans", "eot", "negatives"),
    ("int_positive_events", "int", "positives"),
    ("int_negative_spans", "int", "negatives"),
    ("eot_excluded", "eot", "excluded"),
    ("int_excluded", "int", "excluded"),
)


def set_form(name: str, spans: Spans) -> list[dict[str, Any]]:
    """One of the six sets as JSON-able data, under the keys of the official form."""
    rows = zip(spans.speaker.tolist(), spans.start.tolist(), spans.end.tolist(), strict=True)
    if name.endswith("positive_events"):
        return [{"speaker": speaker, "time_s": time} for speaker, time, _ in rows]
    return [{"speaker": speaker, "start": start, "end": end} for speaker, start, end in rows]


def official_form(gold: Gold) -> dict[str, list[dict[str, Any]]]:
    """The six event sets under the official names, as JSON-able data."""
    return {name: set_form(name, getattr(gold.task(task), part)) for name, task, part in OFFICIAL_SETS}
