"""Consensus of three annotators: accepted events and excluded intervals, for two views of a speaker.

An event is accepted when at least two annotators gave it the same class and agree on its start and on its
end within 0.2 s; its times are the members' medians. What only one annotator marked, and no accepted event
overlaps, is disputed: such stretches are excluded from scoring. The label view keeps all classes apart; the
turn view holds what claims the floor (Turn and Interruption) as one class.

Source: turnbench spec, "Consensus, for one speaker and view". ``reference.consensus`` is the same as plain
loops over anchors. Here events are first cut into clusters that cannot influence each other; clusters with
at most one event an annotator, nearly all of them, are settled as arrays, the others by the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from attrs import frozen

from floorkit_turnbench.conversation import Conversation, Spans
from floorkit_turnbench.labels import ANNOTATORS, CLASSES, INTERRUPTION, SPEAKERS, TURN

if TYPE_CHECKING:
    from numpy.typing import NDArray

CANDIDATE_S: Final = 0.5
"""A later annotator's event is a candidate when its start is at most this far from the anchor's."""
AGREEMENT_S: Final = 0.2
"""Starts, and ends, of agreeing events span at most this."""
DECIMALS: Final = 4

View = Literal["label", "turn"]
Float = np.float64


@frozen(eq=False)
class Consensus:
    """One view of both speakers: accepted events with their class, and excluded intervals.

    ``accepted`` stands in the order of acceptance within a speaker; ``excluded`` is merged and ordered.
    """

    accepted: Spans
    label_class: NDArray[np.int8]
    excluded: Spans

    def of_class(self, *classes: int) -> Spans:
        return self.accepted.at(np.isin(self.label_class, classes))


def rounded(values: NDArray[Float]) -> NDArray[Float]:
    """``values`` to 4 decimals, as Python's ``round`` gives them.

    Scaling and rounding to the nearest integer can go wrong only next to a tie, where Python's exact
    rounding decides.
    """
    scaled = values * 10.0**DECIMALS
    result: NDArray[Float] = np.rint(scaled) / 10.0**DECIMALS
    near_tie = np.abs(scaled - np.floor(scaled) - 0.5) < 1e-3
    for index in np.flatnonzero(near_tie).tolist():
        result[index] = round(float(values[index]), DECIMALS)
    return result


def covered(
    start: NDArray[Float], end: NDArray[Float], others: Spans, *, closed: bool = False
) -> NDArray[np.bool_]:
    """Which intervals share more than an edge with one of ``others``; with ``closed`` edges count.

    Shapes: ``start`` and ``end`` [N], result [N]. A time t lies strictly inside one of ``others`` when
    [t, t] is covered.
    """
    if not len(others):
        return np.zeros(len(start), np.bool_)
    order = np.argsort(others.start, kind="stable")
    latest_end = np.maximum.accumulate(others.end[order])
    begun = np.searchsorted(others.start[order], end, side="right" if closed else "left")
    latest = np.where(begun > 0, latest_end[begun - 1], -np.inf)
    return np.asarray(latest >= start if closed else latest > start)


def merged(spans: Spans) -> Spans:
    """Union of one speaker's intervals, joined where they touch or overlap, in order of time."""
    if not len(spans):
        return spans
    order = np.lexsort((spans.end, spans.start))
    start, end = spans.start[order], np.maximum.accumulate(spans.end[order])
    first = np.concatenate(([True], start[1:] > end[:-1]))
    last = np.concatenate((first[1:], [True]))
    return Spans(spans.speaker[order][first], rounded(start[first]), rounded(end[last]))


@frozen(eq=False)
class Pool:
    """All events of one view, both speakers and all annotators, in official order."""

    speaker: NDArray[np.int8]
    annotator: NDArray[np.int8]
    start: NDArray[Float]
    end: NDArray[Float]
    label_class: NDArray[np.int8]

    def spans(self, which: NDArray[Any]) -> Spans:
        return Spans(self.speaker[which], self.start[which], self.end[which])


def pool_events(conversation: Conversation, annotators: tuple[str, ...] = ANNOTATORS) -> Pool:
    parts = [
        (speaker, number, conversation.track(speaker, annotator))
        for speaker in SPEAKERS
        for number, annotator in enumerate(annotators)
    ]
    lengths = [len(track) for _, _, track in parts]
    return Pool(
        np.repeat(np.array([speaker for speaker, _, _ in parts], np.int8), lengths),
        np.repeat(np.array([number for _, number, _ in parts], np.int8), lengths),
        np.concatenate([track.start for _, _, track in parts]),
        np.concatenate([track.end for _, _, track in parts]),
        np.concatenate([track.label_class for _, _, track in parts]),
    )


def turn_view(pool: Pool) -> Pool:
    kept = (pool.label_class == TURN) | (pool.label_class == INTERRUPTION)
    return Pool(
        pool.speaker[kept],
        pool.annotator[kept],
        pool.start[kept],
        pool.end[kept],
        np.full(np.count_nonzero(kept), TURN, np.int8),
    )


def _clusters(pool: Pool) -> NDArray[np.intp]:
    """Cluster number of every event, [N].

    Events of different clusters differ in speaker or class, or start more than 0.5 s apart: they can
    never be each other's candidates, so clusters are settled independently of each other.
    """
    kind = pool.speaker.astype(np.intp) * len(CLASSES) + pool.label_class
    order = np.lexsort((pool.start, kind))
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(kind[order]) != 0) | (np.diff(pool.start[order]) > CANDIDATE_S)
    clusters = np.empty(len(order), np.intp)
    clusters[order] = np.cumsum(new) - 1
    return clusters


def _settle_simple(
    members: NDArray[np.intp], start: NDArray[Float], end: NDArray[Float]
) -> NDArray[np.bool_]:
    """Who agrees, in clusters with at most one event an annotator.

    Parameters
    ----------
    members
        Event index of annotators a, b, c, shape [M, 3]; -1 where there is none.
    start, end
        Of all events, shape [N].

    Returns
    -------
    [M, 3] whether the annotator's event is a member of the accepted event (no member: none accepted).
    """
    missing = members < 0
    starts = np.where(missing, np.nan, start[members])
    ends = np.where(missing, np.nan, end[members])

    def agree(one: int, other: int) -> NDArray[np.bool_]:
        return np.asarray(
            (np.abs(starts[:, one] - starts[:, other]) <= AGREEMENT_S)
            & (np.abs(ends[:, one] - ends[:, other]) <= AGREEMENT_S)
        )

    ab, ac, bc = agree(0, 1), agree(0, 2), agree(1, 2)
    everyone = ab & ac & bc
    ab &= ~everyone
    ac &= ~(everyone | ab)
    bc &= ~(everyone | ab | ac)
    return np.stack((everyone | ab | ac, everyone | ab | bc, everyone | ac | bc), axis=1)


def _settle_crowded(
    tracks: tuple[list[int], list[int], list[int]], start: list[float], end: list[float]
) -> list[list[int]]:
    """Members of every accepted event of a cluster where an annotator has several events.

    ``tracks`` holds each annotator's event indices in file order. The anchor stands first in each group.
    """
    used: set[int] = set()
    groups: list[list[int]] = []
    for number, anchors in enumerate(tracks):
        for anchor in anchors:
            if anchor in used:
                continue
            candidates = [
                nearest
                for later in tracks[number + 1 :]
                if (nearest := _nearest(anchor, later, used, start)) is not None
            ]
            group = _largest_agreement(anchor, candidates, start, end)
            if len(group) > 1:
                used.update(group)
                groups.append(group)
    return groups


def _nearest(anchor: int, events: list[int], used: set[int], start: list[float]) -> int | None:
    free = [event for event in events if event not in used]
    if not free:
        return None
    nearest = min(free, key=lambda event: abs(start[event] - start[anchor]))
    return nearest if abs(start[nearest] - start[anchor]) <= CANDIDATE_S else None


def _largest_agreement(anchor: int, candidates: list[int], start: list[float], end: list[float]) -> list[int]:
    """The first of the largest agreeing groups of the anchor with its (at most two) candidates."""
    for group in ([anchor, *candidates], *([anchor, candidate] for candidate in candidates)):
        starts, ends = [start[event] for event in group], [end[event] for event in group]
        if max(starts) - min(starts) <= AGREEMENT_S and max(ends) - min(ends) <= AGREEMENT_S:
            return group
    return [anchor]


def _groups(pool: Pool) -> NDArray[np.intp]:
    """Event indices of every accepted event, shape [M, 3], in the order of acceptance.

    A missing third member is -1 and stands last.
    """
    clusters = _clusters(pool)
    count = int(clusters.max(initial=-1)) + 1
    cells = clusters * len(ANNOTATORS) + pool.annotator
    per_cell = np.bincount(cells, minlength=count * len(ANNOTATORS)).reshape(count, len(ANNOTATORS))
    crowded: NDArray[np.bool_] = np.asarray(np.any(per_cell > 1, axis=1))

    members = np.full(count * len(ANNOTATORS), -1, np.intp)
    members[cells] = np.arange(len(cells))
    simple = members.reshape(count, len(ANNOTATORS))[~crowded]
    groups = np.where(_settle_simple(simple, pool.start, pool.end), simple, -1)
    groups = groups[(groups >= 0).any(axis=1)]
    # members in annotator order, the missing one (-1) moved to the end
    groups = np.take_along_axis(groups, np.argsort(groups < 0, axis=1, kind="stable"), axis=1)

    if crowded.any():
        start, end = pool.start.tolist(), pool.end.tolist()
        events = np.flatnonzero(crowded[clusters])
        by_cluster: dict[int, tuple[list[int], list[int], list[int]]] = {}
        for event, cluster, annotator in zip(
            events.tolist(), clusters[events].tolist(), pool.annotator[events].tolist(), strict=True
        ):
            by_cluster.setdefault(cluster, ([], [], []))[annotator].append(event)
        more = [
            group + [-1] * (len(ANNOTATORS) - len(group))
            for tracks in by_cluster.values()
            for group in _settle_crowded(tracks, start, end)
        ]
        groups = np.concatenate((groups, np.array(more, np.intp).reshape(-1, len(ANNOTATORS))))
    return groups[np.argsort(groups[:, 0])]


def _median(values: NDArray[Float], groups: NDArray[np.intp]) -> NDArray[Float]:
    """Median of two or three members, shape [M]; a missing third is -1 in ``groups``."""
    of_two = (values[groups[:, 0]] + values[groups[:, 1]]) / 2.0
    of_three = np.sort(values[groups], axis=1)[:, 1]
    return rounded(np.where(groups[:, 2] < 0, of_two, of_three))


def agree_on(pool: Pool) -> Consensus:
    groups = _groups(pool)
    anchors = groups[:, 0]
    accepted = Spans(pool.speaker[anchors], _median(pool.start, groups), _median(pool.end, groups))
    unused = np.ones(len(pool.start), np.bool_)
    unused[groups[groups >= 0]] = False
    disputes = pool.spans(unused)
    excluded = []
    for speaker in SPEAKERS:
        own = disputes.of(speaker)
        excluded.append(merged(own.at(~covered(own.start, own.end, accepted.of(speaker)))))
    return Consensus(accepted, pool.label_class[anchors], Spans.join(excluded))


def consensus(conversation: Conversation, view: View) -> Consensus:
    """Accepted events and excluded intervals of both speakers under one view.

    Parameters
    ----------
    conversation
        Its tracks keep file order, which decides ties.
    view
        ``"label"`` keeps all classes, ``"turn"`` only Turn and Interruption, all as Turn.
    """
    pool = pool_events(conversation)
    return agree_on(pool if view == "label" else turn_view(pool))
