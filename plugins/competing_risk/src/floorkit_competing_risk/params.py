"""Parameters of the competing-risk protocol (protocols/competing_risk.spec.md)."""

from __future__ import annotations

from typing import Literal

import attrs

from floorkit.core.structure import param
from floorkit.formats.honesty import DenseParams

DecisionTiming = Literal["pre-boundary", "post-boundary"]
Window = Literal["observable", "full"]


@attrs.frozen
class CompetingRiskParams(DenseParams):
    """Parameters of competing_risk; those of every dense protocol come first."""

    decision_timing: DecisionTiming = param(
        "pre-boundary",
        doc="Source row s of a boundary row b: b - 1 (pre-boundary), or b (post-boundary, a reactive "
        "diagnostic that is never compared with the former).",
    )
    window: Window = param(
        "observable",
        doc="Rows whose forecasts are pooled: up to the row before the competing boundary (observable), or "
        "not cut there (full, a sensitivity analysis that is never compared with the former).",
    )
    midturn_pause_max_seconds: float = param(
        2.0,
        doc="Negatives of response whose competing row follows within this time, inclusive: short resumes.",
        unit="s",
        low=0,
        multiple_of=0.2,
    )
    common_support: bool = param(
        False,
        doc="Make a candidate that is invalid at a horizon in any run invalid there in all runs.",
    )
    headline_horizon_seconds: float = param(
        2.0,
        doc="Horizon whose figures are shown first, with intervals and comparisons.",
        unit="s",
        above=0,
        multiple_of=0.2,
    )
    audit_timelines: int = param(
        0,
        doc="Candidates per family that are drawn (seeded, over all statuses) and printed row by row.",
        low=0,
        high=1000,
    )

    @property
    def headline_horizon(self) -> int:
        """The headline horizon in rows of 0.2 s, from 1."""
        return round(self.headline_horizon_seconds / 0.2)

    @property
    def coordinates(self) -> dict[str, str]:
        """What a figure's name carries where timing or window are not the default ones."""
        chosen = {"decision_timing": self.decision_timing, "window": self.window}
        default = {"decision_timing": "pre-boundary", "window": "observable"}
        return {name: value for name, value in chosen.items() if value != default[name]}
