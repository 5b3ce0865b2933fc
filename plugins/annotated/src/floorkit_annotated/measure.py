"""Figures of annotated."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from floorkit.core.pool import Pool
from floorkit.core.values import Figure, OperatingPoint
from floorkit.formats import reviews_measure
from floorkit.formats.reviews_measure import Scope
from floorkit_annotated.params import AnnotatedParams

HEADLINE_HORIZON = 1
"""The horizon of the headline figures, 0.2 s."""


def scope(params: AnnotatedParams) -> Scope:
    """What annotated measures; the headline is 0.2 s at recall 0.8, beside the mean AP of each family."""
    return Scope(
        counts=("positive", "hard_negative", "invalid"),
        at_recall=("recall", "trigger_rate", "precision"),
        headline=(("trigger_rate", HEADLINE_HORIZON), ("mean_ap", 0)),
        horizons=params.horizons,
        mean_ap=True,
    )


def measure(
    params: AnnotatedParams, pool: Pool, points: Sequence[OperatingPoint], only: Collection[str] | None
) -> list[Figure]:
    """Per family and horizon counts and AP, and at each requested recall the achieved recall, trigger rate
    and precision; per family the mean AP over the horizons."""
    return reviews_measure.measure(pool, points, only, params, scope(params))
