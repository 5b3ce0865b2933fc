"""Parameters that the protocols on reviewed opportunities share; imports no NumPy."""

from __future__ import annotations

import attrs

from floorkit.core.structure import param
from floorkit.formats.honesty import DenseParams


@attrs.frozen
class ReviewParams(DenseParams):
    """Parameters of event_proxy and annotated alike, beside those of all dense protocols."""

    print_event_examples: int = param(
        0,
        doc="Reviewed opportunities of each label that reports show for audit, chosen by the seed.",
        low=0,
        high=1000,
    )
