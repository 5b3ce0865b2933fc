"""Tables to figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from floorkit.core.values import Figure

if TYPE_CHECKING:
    from floorkit.core.pool import Pool

SECONDS_PER_MINUTE = 60.0


def figures(pool: Pool) -> list[Figure]:
    """Recall, precision, F1 and false onsets per minute, with their counts.

    Every count honours the pool's weights, so that the core can bootstrap.
    """
    found, right = pool.column("gold", "found"), pool.column("predicted", "right")
    hits, misses = pool.count("gold", found != 0), pool.count("gold", found == 0)
    false = pool.count("predicted", right == 0)
    minutes = pool.total("recording", pool.column("recording", "duration_s")) / SECONDS_PER_MINUTE
    support = {"gold onsets": hits + misses}
    return [
        _ratio("recall", hits, hits + misses, support, headline=True),
        _ratio("precision", hits, hits + false, support),
        _ratio("f1", 2 * hits, 2 * hits + misses + false, support, headline=True, label="F1"),
        _ratio(
            "false_onsets_per_minute",
            false,
            minutes,
            support,
            unit="per minute",
            higher_is_better=False,
            headline=True,
            label="false onsets",
            read_with="recall",
        ),
    ]


def _ratio(
    name: str,
    count: int,
    denominator: float,
    support: Mapping[str, int],
    *,
    unit: str = "rate",
    higher_is_better: bool = True,
    headline: bool = False,
    label: str = "",
    read_with: str = "",
) -> Figure:
    return Figure(
        name,
        count / denominator if denominator else None,
        unit,
        count=count,
        denominator=denominator,
        higher_is_better=higher_is_better,
        reason="" if denominator else "zero_denominator",
        headline=headline,
        label=label,
        support=support,
        read_with=read_with,
    )
