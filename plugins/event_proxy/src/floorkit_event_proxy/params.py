"""Parameters of event_proxy. Imports no NumPy: ``floorkit --help`` reads this module."""

from __future__ import annotations

import attrs

from floorkit.core.errors import Problem
from floorkit.core.structure import param
from floorkit.formats.reviews_params import ReviewParams

ROW_SECONDS = 0.2
LONGEST_WINDOW_SECONDS = 60.0
"""A longer decision window is a slip: it would hold whole conversations, and memory grows with it."""


@attrs.frozen
class EventProxyParams(ReviewParams):
    """``[protocols.NAME.params]`` of event_proxy.

    By default no recall is requested: a threshold-free run, which reports AP alone.
    """

    matched_recalls: tuple[float, ...] = param(
        (),
        doc="Recalls at which thresholds are chosen on calibration positives; empty: threshold-free.",
        above=0,
        high=1,
        distinct=True,
    )
    decision_window_seconds: float = param(
        0.6,
        doc="Length of the decision region: the source rows right before the anchor, or the first ones of a "
        "mined region.",
        unit="s",
        low=ROW_SECONDS,
        high=LONGEST_WINDOW_SECONDS,
        multiple_of=ROW_SECONDS,
    )
    trajectory_seconds: tuple[float, ...] = param(
        (0.6, 2.0),
        doc="First and last horizon (both inclusive) of the trajectory whose mean is the score.",
        unit="s",
        low=ROW_SECONDS,
        multiple_of=ROW_SECONDS,
        non_empty=True,
    )
    allow_provisional_llm_reviews: bool = param(
        False,
        doc="Accept lines of the reviewer llm_provisional; every output is marked provisional.",
    )

    @property
    def window_rows(self) -> int:
        """n, the source rows of a decision region."""
        return round(self.decision_window_seconds / ROW_SECONDS)

    @property
    def trajectory(self) -> range:
        """The horizons j of the trajectory, counted from 1."""
        first, last = (round(seconds / ROW_SECONDS) for seconds in self.trajectory_seconds)
        return range(first, last + 1)


def problems(params: EventProxyParams, where: str) -> list[Problem]:
    """What no single parameter shows: a trajectory that is none, or longer than the arrays."""
    place = f"{where}.trajectory_seconds"
    found = repr(list(params.trajectory_seconds))
    longest = round(params.horizons * ROW_SECONDS, 9)
    if len(params.trajectory_seconds) != 2 or params.trajectory_seconds[0] > params.trajectory_seconds[1]:
        return [Problem("not a range of horizons", place, found, "[first, last] in seconds, first <= last")]
    if params.trajectory[-1] > params.horizons:
        return [
            Problem(
                "past the last horizon", place, found, f"at most {longest} s ({params.horizons} horizons)"
            )
        ]
    return []
