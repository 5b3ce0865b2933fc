"""Committed events at all thresholds at once.

A threshold matters only where the probabilities cross it. Every frame is placed among the thresholds once; a
rise from one place to a higher one is a rising edge for exactly the thresholds between the two. From there on
the work grows with the number of these crossings, not with thresholds times frames; and crossings of
thresholds that are still waiting after an event are passed over together.

The frames are cut into blocks as long as the refractory wait, so that a threshold has at most one committed
event in a block. ``kernel.committed_frames`` does the same for one threshold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

STEPS: Final = 2
"""Steps in which a block is gone through; between them the waiting thresholds are told from the others."""


def commit_all(
    probabilities: NDArray[np.float64], thetas: NDArray[np.float64], wait: int
) -> NDArray[np.int32]:
    """Frame of the committed event of each block, speaker and threshold, shape [B + 1, S, T]; F: none.

    Parameters
    ----------
    probabilities
        Shape [F, S].
    thetas
        Ascending, shape [T].
    wait
        Frames that must pass between two events; B blocks of as many frames hold all F.
    """
    frames, speakers = probabilities.shape
    place = np.searchsorted(thetas, probabilities)
    before = np.concatenate((np.zeros((1, speakers), place.dtype), place[:-1]))[:frames]
    # A lane is one threshold of one speaker; a rise at a frame is an edge in the lanes lowest .. above - 1.
    rise, speaker = np.nonzero(place > before)
    lowest = before[rise, speaker] + speaker * len(thetas)
    above = place[rise, speaker] + speaker * len(thetas)

    blocks = -(-frames // wait)
    step = max(1, wait // STEPS)
    starts = (np.arange(blocks)[:, None] * wait + np.arange(0, wait, step)).ravel()
    steps_a_block = len(starts) // max(blocks, 1)
    bounds = [*np.searchsorted(rise, starts).tolist(), len(rise)]
    ends = [*starts[1:].tolist(), frames]
    committed = np.full((blocks + 1, speakers * len(thetas)), frames, np.int32)
    free = np.zeros(speakers * len(thetas), np.intp)  # the first frame at which a lane may commit again
    for number, end in enumerate(ends[: len(starts)]):
        # from late to early: of several edges of a lane the one that is written last, the earliest, stands
        rises = slice(bounds[number], bounds[number + 1])
        edge = rise[rises][::-1]
        ready = free < end
        rank = np.concatenate(([0], np.cumsum(ready)))
        first = rank[lowest[rises][::-1]]
        count = rank[above[rises][::-1]] - first
        stop = np.cumsum(count)
        if not len(stop) or not stop[-1]:
            continue
        lane = np.flatnonzero(ready)[np.arange(stop[-1]) - np.repeat(stop - count - first, count)]
        frame = np.repeat(edge, count)
        commits = (frame >= free[lane]).nonzero()[0]
        lane, frame = lane[commits], frame[commits]
        committed[number // steps_a_block, lane] = frame
        free[lane] = frame + wait
    return committed.reshape(blocks + 1, speakers, len(thetas))


def first_between(
    committed: NDArray[np.int32], low: NDArray[np.intp], high: NDArray[np.intp], wait: int, none: int
) -> NDArray[np.int32]:
    """Frame of the first event with low <= frame < high, at every threshold: [N, T]; ``none``: no event.

    Parameters
    ----------
    committed
        Frame of the event of each block, shape [B + 1, T]; at least ``none`` where there is none.
    low, high
        Shape [N].
    wait
        Length of a block.
    """
    block = np.minimum(low // wait, len(committed) - 1)
    found = committed[block]
    found[found < low[:, None]] = none
    further = np.minimum((high - 1) // wait, len(committed) - 1) - block
    for ahead in range(1, int(further.max(initial=0)) + 1):
        rows = np.flatnonzero(further >= ahead)
        found[rows] = np.minimum(found[rows], committed[block[rows] + ahead])
    found[found >= high[:, None]] = none
    return found
