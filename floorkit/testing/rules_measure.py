"""Rules about ``floorkit_measure`` and its figures: pure, weighted, with counts, whatever the units."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from floorkit.core.pool import Pool
from floorkit.core.values import Figure, Run
from floorkit.testing.evidence import Evidence
from floorkit.testing.fingerprint import fingerprint
from floorkit.testing.rules import rule

TOLERANCE = 1e-9
"""Relative; sums of floats over units in another order differ in the last bits."""


def _differences(before: Sequence[Figure], after: Sequence[Figure], place: str) -> Iterator[str]:
    ours = {figure.key: figure for figure in before}
    theirs = {figure.key: figure for figure in after}
    for key in [*ours, *(key for key in theirs if key not in ours)]:
        if key not in ours or key not in theirs:
            yield f"{place}: figure {key} is there only once of two times"
            continue
        for name in ("value", "count", "denominator"):
            one, other = getattr(ours[key], name), getattr(theirs[key], name)
            if not _equal(one, other):
                yield f"{place}: {name} of figure {key} is {one}, then {other}"


def _equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=1e-12)


def _with_units(evidence: Evidence) -> Iterator[tuple[Run, Pool]]:
    for run in evidence.prepared.runs:
        pool = evidence.pool(run)
        if pool.units:
            yield run, pool


@rule("measure")
def measure_repeatable(evidence: Evidence) -> Iterator[str]:
    """Measuring a pool again gives the same figures, leaves its columns as they were, and ``only`` gives
    the same.

    The bootstrap measures one pool thousands of times, asking for the headline figures alone.
    """
    for run, pool in _with_units(evidence):
        points = evidence.points(run)
        columns = _columns(pool, evidence, run)
        first = evidence.measure(pool, points)
        yield from _differences(first, evidence.measure(pool, points), f"run {run.name}, measured twice")
        if _columns(pool, evidence, run) != columns:
            yield f"run {run.name}: measuring changes the pool's tables"
        headline = [figure for figure in first if figure.headline]
        if not headline:
            yield f"run {run.name}: no figure is a headline figure"
        only = {figure.key for figure in headline}
        asked = {figure.key: figure for figure in evidence.measure(evidence.pool(run), points, only)}
        found = [asked[key] for key in only if key in asked]
        yield from _differences(headline, found, f"run {run.name}, asked for the headline alone")


def _columns(pool: Pool, evidence: Evidence, run: Run) -> str:
    return fingerprint([evidence.tables[run.name, unit.key] for unit in pool.units])


@rule("measure")
def measure_unit_order(evidence: Evidence) -> Iterator[str]:
    """Figures do not depend on the order of the units (counts exactly, values to 1e-9).

    The order in a manifest is for people.
    """
    for run, pool in _with_units(evidence):
        points = evidence.points(run)
        backwards = evidence.pool(run, units=pool.units[::-1])
        before, after = evidence.measure(pool, points), evidence.measure(backwards, points)
        yield from _differences(before, after, f"run {run.name}, units in reverse order")


@rule("measure")
def measure_weights(evidence: Evidence) -> Iterator[str]:
    """A unit of weight 2 counts as if it stood there twice, and one of weight 0 as if it were not there.

    That is how the bootstrap draws units. A count that ignores ``pool.row_weights`` makes intervals that
    are wrong without looking so.
    """
    for run, pool in _with_units(evidence):
        points = evidence.points(run)
        headline = {figure.key for figure in evidence.measure(pool, points) if figure.headline}
        count = len(pool.units)
        for weights in (np.ones(count, np.int64), np.arange(count, dtype=np.int64) % 3, np.full(count, 2)):
            repeated = [unit for unit, times in zip(pool.units, weights, strict=True) for _ in range(times)]
            if not repeated:
                continue
            drawn = evidence.measure(pool.reweighted(weights), points, headline)
            meant = evidence.measure(evidence.pool(run, units=repeated), points, headline)
            place = f"run {run.name}, weights {weights.tolist()} against repeated units"
            yield from _differences(
                [figure for figure in meant if figure.key in headline],
                [figure for figure in drawn if figure.key in headline],
                place,
            )


@rule("measure")
def no_units(evidence: Evidence) -> Iterator[str]:
    """Without any unit there are figures still, each without a value or counting nothing, and a report.

    A run whose units are all declared absent must not stop the others.
    """
    for run in evidence.prepared.runs:
        points = evidence.points(run)
        for figure in evidence.measure(evidence.pool(run, units=()), points):
            if figure.value is None and not figure.reason:
                yield f"run {run.name} without units: figure {figure.key} is None without a reason"
            if figure.value is not None and (not math.isfinite(figure.value) or figure.value != 0):
                yield f"run {run.name} without units: figure {figure.key} is {figure.value}"
    calibration = evidence.prepared.dataset.split("calibration")
    evidence.written(evidence.evaluated(evidence.with_units(calibration)))


@rule("measure")
def single_unit(evidence: Evidence) -> Iterator[str]:
    """One unit alone is evaluated and reported like many.

    People try a protocol on one recording first.
    """
    calibration = evidence.prepared.dataset.split("calibration")
    for unit in evidence.prepared.dataset.split("evaluated")[:1]:
        evaluated = evidence.evaluated(evidence.with_units((unit, *calibration)))
        folder = evidence.written(evaluated)
        if not (folder / "summary.json").is_file():
            yield f"unit {unit.name} alone: no summary.json"


@rule("measure")
def figures_have_counts(evidence: Evidence) -> Iterator[str]:
    """Every figure says out of how many: a rate has count and denominator, a count its count, others (but for
    thresholds, whose unit is "score") a denominator.

    100 % of 2 is not 100 % of 2000.
    """
    needed = {"rate": ("count", "denominator"), "count": ("count",), "score": ()}
    for run, figures in evidence.figures.items():
        for figure in figures:
            for name in needed.get(figure.unit, ("denominator",)):
                unknown = figure.value is None and name == "count"
                if getattr(figure, name) is None and not unknown:
                    yield f"run {run}: figure {figure.key} ({figure.unit}) has no {name}"


@rule("measure")
def counts_add_up(evidence: Evidence) -> Iterator[str]:
    """A rate is its count over its denominator, a count its value, and counts over all units are sums over
    units.

    Otherwise the number and the counts beside it contradict each other.
    """
    for run, pool in _with_units(evidence):
        points = evidence.points(run)
        figures = evidence.measure(pool, points)
        for figure in figures:
            yield from _ratio(figure, run.name)
        alone = [
            {figure.key: figure for figure in evidence.measure(evidence.pool(run, units=(unit,)), points)}
            for unit in pool.units
        ]
        for figure in figures:
            if figure.unit in ("rate", "count"):
                yield from _sums(figure, alone, run.name)


def _ratio(figure: Figure, run: str) -> Iterator[str]:
    value, count, denominator = figure.value, figure.count, figure.denominator
    place = f"run {run}: figure {figure.key}"
    if value is None:
        return
    if figure.unit == "count" and count is not None and value != count:
        yield f"{place} is {value}, its count {count}"
    if figure.unit == "rate" and count is not None and denominator is not None:
        if denominator <= 0:
            yield f"{place} is {value} although its denominator is {denominator}"
        elif not 0 <= count <= denominator:
            yield f"{place}: count {count} is not between 0 and its denominator {denominator}"
        elif not _equal(value, count / denominator):
            yield f"{place} is {value}, but {count}/{denominator} is {count / denominator}"


def _sums(figure: Figure, alone: Sequence[Mapping[str, Figure]], run: str) -> Iterator[str]:
    for name in ("count", "denominator"):
        whole = getattr(figure, name)
        parts = [getattr(one[figure.key], name) for one in alone if figure.key in one]
        known = [part for part in parts if part is not None]
        if whole is not None and len(known) == len(alone) and not _equal(whole, math.fsum(known)):
            yield f"run {run}: {name} of figure {figure.key} is {whole}, over units {math.fsum(known)}"
