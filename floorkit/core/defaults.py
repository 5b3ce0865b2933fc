"""The core's own hook implementations, tried after every plugin's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from floorkit.core.hooks import hookimpl
from floorkit.core.values import Context, OperatingPoint, Protocol, Run

if TYPE_CHECKING:
    from floorkit.core.pool import Pool


@hookimpl
def floorkit_controls() -> Sequence[Run]:
    """No control runs."""
    return ()


@hookimpl
def floorkit_calibrate(
    context: Context, protocol: Protocol, pool: Pool, in_sample: bool
) -> Sequence[OperatingPoint]:
    """Matched-recall thresholds as ``Protocol.matched_recall`` says; none where it is None."""
    if protocol.matched_recall is None:
        return ()
    from floorkit.core.calibration import matched_recall_points

    return matched_recall_points(pool, protocol.matched_recall, context.params.matched_recalls, in_sample)
