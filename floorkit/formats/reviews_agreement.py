"""How far two reviewers of the same events agree, and how many events a list of candidates contains.

Conventions: C clusters (sessions, or single events) are resampled whole, seeded, with percentile intervals as
everywhere in floorkit (``floorkit.core.statistics``). What does not exist is None with a reason.

Cohen's kappa = (p_o - p_e) / (1 - p_e), p_o the share of equal labels, p_e the share that two independent
reviewers with the same label frequencies would give (Cohen, Educational and Psychological Measurement 20,
1960, pages 37 to 46).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from floorkit.core.errors import InputError, Problem, raise_problems
from floorkit.core.statistics import draw, percentile_interval
from floorkit.core.values import Interval
from floorkit.formats.reviews import FAMILIES, Reviews
from floorkit.formats.reviews_line import FRAMES_PER_ROW, LABELS, ORIGINS
from floorkit.numerics import ROW_SECONDS, rate

JUDGED = LABELS[:5]
"""Labels that are a judgement: all but UNREVIEWED."""

FRAMES_PER_SECOND = FRAMES_PER_ROW / ROW_SECONDS

Cluster = Literal["session", "event"]
Float = NDArray[np.float64]


@frozen
class Resampling:
    """How intervals are made."""

    cluster: Cluster = "session"
    resamples: int = 2000
    seed: int = 0
    level: float = 0.95


@frozen
class Disagreement:
    """One event that two reviewers labelled differently, with the lines where they did."""

    event_id: str
    session: str
    label_a: str
    label_b: str
    line_a: int
    line_b: int


@frozen(eq=False)
class Agreement:
    """Two reviewers of the same events.

    Parameters
    ----------
    matrix
        Events by A's label (rows) and B's (columns), labels JUDGED, shape [5, 5].
    only_a, only_b
        Events that only one file has.
    unreviewed
        Shared events that at least one of the two has not reviewed; they are not in the matrix.
    corrections
        Events of equal labels whose boundary corrections differ.
    kappa, agreement
        None with ``reason`` where they do not exist.
    """

    matrix: NDArray[np.int64]
    only_a: int
    only_b: int
    unreviewed: int
    corrections: int
    agreement: float | None
    agreement_interval: Interval
    kappa: float | None
    kappa_interval: Interval
    reason: str
    disagreements: tuple[Disagreement, ...]


def kappa_of(matrices: NDArray[np.int64]) -> tuple[Float, Float]:
    """Share of agreement and Cohen's kappa of confusion matrices, shape [..., K, K] to [...]; NaN where
    they do not exist."""
    counts = np.asarray(matrices, dtype=np.float64)
    total = counts.sum(axis=(-2, -1))
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = np.trace(counts, axis1=-2, axis2=-1) / total
        expected = (counts.sum(axis=-1) * counts.sum(axis=-2)).sum(axis=-1) / total**2
        kappa = np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)
    return observed, kappa


def agreement(a: Reviews, b: Reviews, how: Resampling) -> Agreement:
    """Compare two reviewers' labels of the events with the same ``event_id``.

    Raises
    ------
    InputError
        Where the files share no event, or a shared event lies in another session.
    """
    first = {event_id: index for index, event_id in enumerate(a.event_ids())}
    second = {event_id: index for index, event_id in enumerate(b.event_ids())}
    shared = [event_id for event_id in first if event_id in second]
    pairs = [(first[event_id], second[event_id]) for event_id in shared]
    raise_problems(InputError, _session_problems(a, b, shared, pairs))
    judged = [
        (event_id, i, j)
        for event_id, (i, j) in zip(shared, pairs, strict=True)
        if max(a["label"][i], b["label"][j]) < len(JUDGED)
    ]
    clusters = [a.session_name(i) if how.cluster == "session" else event_id for event_id, i, _ in judged]
    names = sorted(set(clusters))
    matrices = np.zeros((len(names), len(JUDGED), len(JUDGED)), dtype=np.int64)
    place = {name: index for index, name in enumerate(names)}
    for name, (_, i, j) in zip(clusters, judged, strict=True):
        matrices[place[name], a["label"][i], b["label"][j]] += 1
    matrix = matrices.sum(axis=0)
    share, kappa = (float(value) for value in kappa_of(matrix))
    share_interval, kappa_interval = _intervals(names, matrices, how)
    reason = (
        "" if np.isfinite(kappa) else ("no event was reviewed by both" if not judged else "only one label")
    )
    return Agreement(
        matrix=matrix,
        only_a=len(first) - len(shared),
        only_b=len(second) - len(shared),
        unreviewed=len(shared) - len(judged),
        corrections=sum(
            bool(a["label"][i] == b["label"][j] and a["correction"][i] != b["correction"][j])
            for _, i, j in judged
        ),
        agreement=share if np.isfinite(share) else None,
        agreement_interval=share_interval,
        kappa=kappa if np.isfinite(kappa) else None,
        kappa_interval=kappa_interval,
        reason=reason,
        disagreements=tuple(
            Disagreement(
                event_id,
                a.session_name(i),
                LABELS[a["label"][i]],
                LABELS[b["label"][j]],
                int(a["line"][i]),
                int(b["line"][j]),
            )
            for event_id, i, j in judged
            if a["label"][i] != b["label"][j]
        ),
    )


def _session_problems(
    a: Reviews, b: Reviews, shared: Sequence[str], pairs: Sequence[tuple[int, int]]
) -> list[Problem]:
    if not shared:
        expected = "two reviewers' files of the same events"
        return [Problem("the files share no event_id", "", f"{len(a)} and {len(b)} lines", expected)]
    return [
        Problem(
            f"event {event_id} lies in two sessions",
            f"lines {a['line'][i]} and {b['line'][j]}",
            f"{a.session_name(i)} and {b.session_name(j)}",
            "the same event under one event_id",
        )
        for event_id, (i, j) in zip(shared, pairs, strict=True)
        if a.session_name(i) != b.session_name(j)
    ]


def _intervals(
    names: Sequence[str], matrices: NDArray[np.int64], how: Resampling
) -> tuple[Interval, Interval]:
    weights = draw(names, how.resamples, how.seed).of(names)
    resampled = kappa_of(np.tensordot(weights, matrices, axes=1))
    alone = kappa_of(matrices)
    share, kappa = (
        percentile_interval(values, how.level, len(names), int(np.isfinite(single).sum()), how.cluster)
        for values, single in zip(resampled, alone, strict=True)
    )
    return share, kappa


@frozen
class Missed:
    """An event that no candidate is near; ``nearest_s`` is the distance of the nearest one, if any."""

    event_id: str
    session: str
    family: str
    time_s: float
    nearest_s: float | None


@frozen(eq=False)
class CandidateRecall:
    """The share of one family's events that the candidate list contains."""

    family: str
    found: int
    events: int
    interval: Interval
    missed: tuple[Missed, ...]

    @property
    def recall(self) -> float | None:
        return rate(self.found, self.events)


def candidate_recall(
    candidates: Reviews, events: Reviews, tolerance_frames: int, how: Resampling
) -> list[CandidateRecall]:
    """Audit a candidate list against events found by continuous annotation of whole segments.

    Parameters
    ----------
    candidates
        The list that reviewers were given. A line counts by its anchor as it stands (a later correction
        is not what the reviewer was shown); its family is that of its label, for EXCLUDED and UNREVIEWED
        lines entry for raw_onset, int for raw_offset, and either for mined ones. Lines without an anchor
        are regions of no event, and contain none.
    events
        WEARER_ENTRY and INT_YIELD lines, at their corrected anchors; other lines take no part.
    tolerance_frames
        Largest distance (inclusive) in 20 Hz frames.
    """
    frames = events["anchor"].astype(np.int64) + FRAMES_PER_ROW * events["correction"].astype(np.int64)
    distances = _nearest(candidates, events, frames)
    results = []
    for code, family in enumerate(FAMILIES):
        wanted = np.flatnonzero(events.positive & (events.family == code)).tolist()
        found = distances[wanted] <= tolerance_frames
        ids = [events.event_id(index) for index in wanted]
        sessions = [events.session_name(index) for index in wanted]
        clusters = sessions if how.cluster == "session" else ids
        results.append(
            CandidateRecall(
                family,
                int(found.sum()),
                len(wanted),
                _share_interval(clusters, found, how),
                tuple(
                    Missed(
                        ids[k],
                        sessions[k],
                        family,
                        frames[index] / FRAMES_PER_SECOND,
                        distances[index] / FRAMES_PER_SECOND if np.isfinite(distances[index]) else None,
                    )
                    for k, index in enumerate(wanted)
                    if not found[k]
                ),
            )
        )
    return results


def _nearest(candidates: Reviews, events: Reviews, frames: NDArray[np.int64]) -> Float:
    """Frames from each event to the nearest candidate of its session and family, shape [N]; infinite
    where there is none, and for lines that are no event."""
    distances = np.full(len(events), np.inf)
    candidate_family = _candidate_family(candidates)
    for code, name in enumerate(events.sessions):
        known = candidates.sessions.index(name) if name in candidates.sessions else -1
        in_session = (candidates["session"] == known) & (candidates["anchor"] >= 0)
        for family in range(len(FAMILIES)):
            mine = in_session & np.isin(candidate_family, (family, -1))
            anchors = np.sort(candidates["anchor"][mine]).astype(np.float64)
            fences = np.concatenate([[-np.inf], anchors, [np.inf]])
            wanted = events.positive & (events["session"] == code) & (events.family == family)
            place = np.searchsorted(fences, frames[wanted])
            distances[wanted] = np.minimum(frames[wanted] - fences[place - 1], fences[place] - frames[wanted])
    return distances


def _candidate_family(candidates: Reviews) -> NDArray[np.int64]:
    by_origin = np.array([{"raw_onset": 0, "raw_offset": 1}.get(origin, -1) for origin in ORIGINS])
    return np.where(candidates.scored, candidates.family, by_origin[candidates["origin"]])


def _share_interval(clusters: Sequence[str], found: NDArray[np.bool_], how: Resampling) -> Interval:
    names, index = np.unique(np.array(clusters, dtype=str), return_inverse=True)
    hits = np.bincount(index, weights=found, minlength=len(names))
    totals = np.bincount(index, minlength=len(names))
    weights = draw(names.tolist(), how.resamples, how.seed).of(names.tolist())
    with np.errstate(invalid="ignore"):
        shares = (weights @ hits) / (weights @ totals)
    return percentile_interval(shares, how.level, len(names), len(names), how.cluster)
