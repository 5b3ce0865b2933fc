"""Counts of a reviews file, for people who look at it before they score with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from floorkit.formats.reviews import Reviews
from floorkit.formats.reviews_line import CORRECTIONS_S, LABELS, ORIGINS, REVIEWERS


def counts(reviews: Reviews) -> dict[str, dict[str, Any]]:
    """Lines by label, origin, reviewer and boundary correction, and by session and label.

    Sessions stand in the order in which the file names them; labels that do not occur are left out of the
    sessions' rows.
    """

    def by(codes: NDArray[Any], names: tuple[str, ...]) -> dict[str, int]:
        return dict(zip(names, np.bincount(codes, minlength=len(names)).tolist(), strict=True))

    corrections = tuple(f"{seconds:+.1f} s" if seconds else "0.0 s" for seconds in CORRECTIONS_S)
    by_session: dict[str, dict[str, int]] = {}
    for code, session in enumerate(reviews.sessions):
        mine = reviews["session"] == code
        labels = by(reviews["label"][mine], LABELS)
        by_session[session] = {"lines": int(mine.sum())} | {k: n for k, n in labels.items() if n}
    return {
        "by_label": by(reviews["label"], LABELS),
        "by_origin": by(reviews["origin"], ORIGINS),
        "by_reviewer": by(reviews["reviewer"], REVIEWERS),
        "by_boundary_correction": by(reviews["correction"] + 1, corrections),
        "by_session": by_session,
    }
