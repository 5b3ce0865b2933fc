"""Each run against its best control: is it above what a blind predictor gets? (numerics spec, "Controls")

The best control of a run on a figure is the one with the best value among those that do not pay for it:
where the figure must be read with another one (an error rate with the achieved recall), a control that is
worse there than the run, beyond chance (the paired interval of that difference excludes 0), is left aside.
A control that never fires has no false trigger, and is no better system for it.

No p-value is given: the control was chosen by its value, and the interval already answers the question.
Counts that differ between run and control (cells that the run marks as invalid, say) do not hide the
comparison; they are told as cautions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from attrs import frozen

from floorkit.core.compare import (
    Paired,
    apart,
    count_differences,
    coverage_differences,
    difference_interval,
    direction,
)
from floorkit.core.statistics import Replicates
from floorkit.core.statistics_settings import Settings
from floorkit.core.values import Comparison, Figure

Standing = Literal["above", "not above", "below", "unknown"]

SHOWN_FIGURES = 6
"""Figures that a sentence names before it only counts."""

_SENTENCES: dict[Standing, str] = {
    "below": "{run} is below its best control (worse than a blind predictor) on {count} of {total} headline "
    "figures: {figures}.",
    "not above": "{run} is not above its best control (the interval of the paired difference includes 0) on "
    "{count} of {total} headline figures: {figures}.",
    "unknown": "Whether {run} is above its best control cannot be told ({reason}) on {count} of {total} "
    "headline figures: {figures}.",
}


@frozen
class _Judged:
    figure: Figure
    comparison: Comparison
    standing: Standing


def compare_with_controls(
    runs: Sequence[Replicates], controls: Sequence[Replicates], settings: Settings, noun: str = "unit"
) -> tuple[tuple[Comparison, ...], tuple[str, ...]]:
    """Compare every user run (B) with its best control (A) on every headline figure that has a direction.

    Returns
    -------
    comparisons, notes
        ``difference`` is run - control; the notes say in words where a run is not above its best control, is
        below it, or where that cannot be told.
    """
    comparisons: list[Comparison] = []
    notes: list[str] = []
    for run in runs:
        judged = []
        for figure in run.headline:
            control = best_control(run, controls, figure, settings, noun)
            if control is not None:
                comparison = _against(control, run, figure, settings, noun)
                judged.append(_Judged(figure, comparison, standing(comparison, figure)))
        comparisons += [one.comparison for one in judged]
        notes += _sentences(run.run, judged)
    return tuple(comparisons), tuple(notes)


def best_control(
    run: Replicates, controls: Sequence[Replicates], figure: Figure, settings: Settings, noun: str = "unit"
) -> Replicates | None:
    """The best control of ``run`` on ``figure`` (module docstring); the first in name order among equals."""
    sign = direction(figure)
    if not sign or figure.value is None:
        return None
    scored = [
        (-sign * value, control.run, control)
        for control in controls
        if (value := _value(control, figure.key)) is not None
        and not _pays(control, run, figure.read_with, settings, noun)
    ]
    return min(scored, key=lambda entry: entry[:2])[2] if scored else None


def _value(replicates: Replicates, key: str) -> float | None:
    figure = replicates.figures.get(key)
    return None if figure is None else figure.value


def _pays(control: Replicates, run: Replicates, key: str, settings: Settings, noun: str) -> bool:
    """Whether the control is worse than the run, beyond chance, on the figure ``key``."""
    if not key or _value(run, key) is None:
        return False
    if _value(control, key) is None:
        return True
    return standing(_against(control, run, run.figures[key], settings, noun), run.figures[key]) == "above"


def _against(
    control: Replicates, run: Replicates, figure: Figure, settings: Settings, noun: str
) -> Comparison:
    key = figure.key
    blind = control.figures[key]
    paired = Paired.of(control, run, key)
    better = direction(figure) * paired.differences
    return Comparison(
        key,
        control.run,
        run.run,
        blind.value,
        figure.value,
        difference=(figure.value or 0.0) - (blind.value or 0.0),
        interval=difference_interval(control, run, key, paired, settings.confidence, noun),
        clusters=len(better),
        excluded=paired.excluded,
        won=int((better > 0).sum()),
        lost=int((better < 0).sum()),
        tied=int((better == 0).sum()),
        cautions=(
            *coverage_differences(control, run, noun),
            *count_differences(blind, figure, control.run, run.run),
        ),
    )


def standing(comparison: Comparison, figure: Figure) -> Standing:
    """Where run B stands relative to control A: by the interval of the paired difference."""
    interval = comparison.interval
    if interval is None or interval.low is None or interval.high is None:
        return "unknown"
    if interval.low <= 0 <= interval.high:
        return "not above"
    return "above" if direction(figure) * interval.low > 0 else "below"


def _sentences(run: str, judged: Sequence[_Judged]) -> list[str]:
    sentences = []
    for kind, template in _SENTENCES.items():
        chosen = [(one.figure, one.comparison) for one in judged if one.standing == kind]
        if not chosen:
            continue
        named = [
            f"{figure.words}: {apart(one.b_value or 0.0, one.a_value or 0.0)} of {one.a}"
            for figure, one in chosen[:SHOWN_FIGURES]
        ]
        if len(chosen) > SHOWN_FIGURES:
            named.append(f"and {len(chosen) - SHOWN_FIGURES} more")
        reasons = {one.interval.reason for _, one in chosen if one.interval is not None}
        sentences.append(
            template.format(
                run=run,
                count=len(chosen),
                total=len(judged),
                figures="; ".join(named),
                reason=", ".join(sorted(reasons)),
            )
        )
    return sentences
