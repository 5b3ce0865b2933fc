"""Figures of event_proxy."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from floorkit.core.pool import Pool
from floorkit.core.values import Figure, OperatingPoint
from floorkit.formats import reviews_measure
from floorkit.formats.reviews_measure import Scope
from floorkit_event_proxy.params import EventProxyParams

SCOPE = Scope(
    counts=("positive", "hard_negative", "short_region", "invalid"),
    at_recall=("recall", "trigger_rate", "precision", "f1"),
    headline=(("ap", 0), ("trigger_rate", 0)),
    provisional=True,
)


def measure(
    params: EventProxyParams, pool: Pool, points: Sequence[OperatingPoint], only: Collection[str] | None
) -> list[Figure]:
    """Counts, AP, and at each requested recall the achieved recall, trigger rate, precision and F1.

    The headline is AP, and the trigger rate at the headline recall, of each family.
    """
    return reviews_measure.measure(pool, points, only, params, SCOPE)
