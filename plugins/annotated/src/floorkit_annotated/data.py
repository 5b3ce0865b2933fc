"""What annotated demands of its dataset; the formats are floorkit's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from floorkit.core.values import Context, Dataset
from floorkit.formats.reviews_dataset import reviewed_dataset
from floorkit.formats.reviews_line import Demands


def dataset(context: Context, table: Mapping[str, Any]) -> Dataset:
    """Sessions with their human-reviewed opportunities, as the hook ``floorkit_dataset`` returns them."""
    return reviewed_dataset(
        context,
        table,
        Demands(
            every_region=True,
            allow_provisional=False,
            provisional_remedy="annotated takes human reviews alone: have a person review the line, or use "
            "event_proxy with allow_provisional_llm_reviews",
        ),
    )
