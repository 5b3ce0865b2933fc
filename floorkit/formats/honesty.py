"""Which sessions may choose a threshold for which, and the parameters behind it.

Dense spec, "Sessions and honesty rules"; the three EasyCom protocols share them. An operating point that was
chosen on the sessions it is then measured on flatters its model. So matched-recall figures on an official
test session need calibration sessions that are neither official test sessions nor evaluated, unless the
manifest asks for in-sample thresholds by name; the result is then marked exploratory in every output.

This module imports no NumPy: parameter classes build on it, and they are read by ``floorkit --help``.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from floorkit.core.errors import Problem
from floorkit.core.structure import param
from floorkit.core.values import Mark

EXPLORATORY = Mark(
    "exploratory",
    "Thresholds were chosen on sessions that are evaluated, or with the honesty rules lifted "
    "(allow_in_sample_thresholds): not a confirmatory result, do not report it as one.",
)


@attrs.frozen
class DenseParams:
    """Parameters that every protocol on dense future-activity predictions has."""

    matched_recalls: tuple[float, ...] = param(
        (0.7, 0.8, 0.9),
        doc="Recalls at which calibration positives choose thresholds; empty for a threshold-free run.",
        above=0,
        high=1,
        distinct=True,
    )
    allow_in_sample_thresholds: bool = param(
        False,
        doc="Lift the calibration rules for official test sessions; every output is marked exploratory.",
    )
    official_test_sessions: tuple[str, ...] = param(
        ("Session_1", "Session_2", "Session_3"),
        doc="Sessions whose matched-recall figures need disjoint calibration sessions.",
        distinct=True,
    )
    classes: int = param(
        3, doc="Classes of the arrays: 0 background, 1 wearer, 2 others; further ones are not used.", low=3
    )
    horizons: int = param(
        10, doc="Horizons of the arrays; horizon k = 1 .. this many looks 0.2 k seconds ahead.", low=1
    )

    @property
    def headline_recall(self) -> float | None:
        """0.8 where it is requested, else the first requested recall; None for a threshold-free run."""
        return 0.8 if 0.8 in self.matched_recalls else next(iter(self.matched_recalls), None)


def session_rules(
    params: DenseParams, evaluated: Sequence[str], calibration: Sequence[str], where: str
) -> tuple[list[Problem], tuple[Mark, ...]]:
    """Apply rules 1 to 3 and 5.

    Parameters
    ----------
    params
        The requested recalls, the switch and the official test sessions.
    evaluated, calibration
        Session names; ``calibration`` is empty where thresholds would be chosen in-sample.
    where
        TOML path of the dataset table, for messages.

    Returns
    -------
    problems
        What the rules forbid; the run must stop before scoring.
    marks
        ``EXPLORATORY`` where thresholds are in-sample or the switch is set.
    """
    if not params.matched_recalls:
        return [], ()
    if params.allow_in_sample_thresholds:
        return [], (EXPLORATORY,)
    official = [session for session in evaluated if session in params.official_test_sessions]
    remedy = (
        "set calibration_sessions to sessions that are neither evaluated nor official test sessions, or "
        "allow_in_sample_thresholds = true for an exploratory result, or matched_recalls = [] for none"
    )
    problems = []
    if official and not calibration:
        problems.append(
            Problem(
                "matched-recall figures on official test sessions need calibration sessions",
                f"{where}.calibration_sessions",
                found=f"no calibration sessions for {', '.join(official)}",
                expected=f"sessions other than {', '.join(params.official_test_sessions)} and the evaluated",
                remedy=remedy,
            )
        )
    overlap = [session for session in calibration if session in evaluated]
    if overlap:
        problems.append(
            Problem(
                "calibration sessions overlap the evaluated sessions",
                f"{where}.calibration_sessions",
                found=f"{', '.join(overlap)} in both",
                expected="disjoint lists",
                remedy=remedy,
            )
        )
    forbidden = [s for s in calibration if s in params.official_test_sessions and s not in overlap]
    if official and forbidden:
        problems.append(
            Problem(
                "official test sessions may not calibrate official test sessions",
                f"{where}.calibration_sessions",
                found=f"{', '.join(forbidden)} for {', '.join(official)}",
                expected=f"sessions other than {', '.join(params.official_test_sessions)}",
                remedy=remedy,
            )
        )
    return problems, () if calibration or problems else (EXPLORATORY,)
