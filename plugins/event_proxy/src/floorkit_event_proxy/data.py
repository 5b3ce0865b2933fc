"""What event_proxy demands of its dataset and parameters; the formats are floorkit's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from floorkit.core.errors import ManifestError, raise_problems
from floorkit.core.values import Context, Dataset
from floorkit.formats.reviews_dataset import reviewed_dataset
from floorkit.formats.reviews_line import Demands
from floorkit_event_proxy.params import problems


def dataset(context: Context, table: Mapping[str, Any]) -> Dataset:
    """Sessions with their reviewed opportunities, as the hook ``floorkit_dataset`` returns them.

    Raises
    ------
    ManifestError
        Where the table or the trajectory is wrong.
    """
    raise_problems(ManifestError, problems(context.params, f"protocols.{context.name}.params"))
    return reviewed_dataset(
        context,
        table,
        Demands(
            allow_provisional=context.params.allow_provisional_llm_reviews,
            provisional_remedy="have a person review it, or set allow_provisional_llm_reviews = true: "
            "every output is then marked provisional",
        ),
    )
