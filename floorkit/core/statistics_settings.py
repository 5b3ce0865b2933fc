"""The manifest's table ``[protocols.NAME.statistics]``; light, so that reading a manifest loads no NumPy."""

from __future__ import annotations

from attrs import frozen

from floorkit.core.errors import Problem
from floorkit.core.structure import param
from floorkit.core.values import Protocol

UNIT = "unit"


@frozen
class Settings:
    """How intervals and comparisons are computed; the seed is the entry's (``Context.seed``)."""

    resamples: int = param(2000, doc="bootstrap resamples", low=100, high=1_000_000)
    permutations: int = param(
        10_000, doc="sign flips of the permutation test beyond 12 units", low=1000, high=10_000_000
    )
    confidence: float = param(0.95, doc="level of the intervals", above=0.5, below=1.0)
    cluster: str = param(UNIT, doc="what is resampled: 'unit', or a finer cluster that the protocol names")


def cluster_problems(settings: Settings, protocol: Protocol, where: str) -> list[Problem]:
    """The problem of a ``cluster`` that the protocol does not know, or nothing.

    ``where`` is the TOML path of the settings table.
    """
    known = (UNIT, *protocol.clusters)
    if settings.cluster in known:
        return []
    return [
        Problem(
            f"{protocol.id} cannot resample by {settings.cluster!r}",
            f"{where}.cluster",
            found=repr(settings.cluster),
            expected="one of " + ", ".join(map(repr, known)),
        )
    ]
