"""Figures of the protocols on reviewed opportunities, from the tables of ``reviews_tables``.

A cell is one family, at one horizon where the protocol has horizons. Its figures are the counts by status,
average precision over positives and hard negatives, and at every requested recall the achieved recall, the
hard negatives that trigger, precision and F1 (numerics spec). Every figure can be had alone, under weights:
what does not depend on the weights is kept in the pool.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from floorkit.core.pool import Pool
from floorkit.core.values import Figure, OperatingPoint, figure_key
from floorkit.formats.dense import horizon_seconds
from floorkit.formats.honesty import DenseParams
from floorkit.formats.reviews import FAMILIES
from floorkit.formats.reviews_tables import OPPORTUNITIES, STATUSES, UNSCORED, UNSCORED_LABELS
from floorkit.numerics import rate, recall_name

NO_POSITIVES = "no_positives"
ZERO_DENOMINATOR = "zero_denominator"

AT_RECALL = ("recall", "trigger_rate", "precision", "f1")
_LABELS = {
    "ap": "AP",
    "mean_ap": "mean AP over horizons",
    "recall": "achieved recall",
    "trigger_rate": "hard-negative trigger rate",
    "f1": "F1",
}


@frozen
class Scope:
    """What a protocol measures.

    Parameters
    ----------
    counts
        Statuses that are counted in each cell.
    at_recall
        Figures of AT_RECALL at each requested recall.
    horizons
        H where the tables have a second axis, else 0.
    provisional
        Count the lines of llm_provisional reviewers in each family.
    mean_ap
        The mean of AP over the horizons.
    headline
        Figures shown first: (name, horizon or 0); those at a recall at the headline recall alone.
    """

    counts: tuple[str, ...]
    at_recall: tuple[str, ...]
    headline: tuple[tuple[str, int], ...]
    horizons: int = 0
    provisional: bool = False
    mean_ap: bool = False


@frozen
class _Wanted:
    """One figure: name, family, horizon (0: none), recall (None: none)."""

    name: str
    family: str
    horizon: int = 0
    recall: float | None = None


@frozen(eq=False)
class _Cell:
    """The positives and hard negatives of one cell: their rows in the table, M of them."""

    rows: NDArray[np.int64]
    positive: NDArray[np.bool_]
    scores: NDArray[np.float64]


def coordinates(family: str, horizon: int = 0, recall: float | None = None) -> dict[str, Any]:
    """Coordinates of a figure, in the order of its key."""
    at: dict[str, Any] = {"family": family}
    if horizon:
        at["horizon_s"] = horizon_seconds(horizon)
    if recall is not None:
        at["recall"] = recall_name(recall)
    return at


def measure(
    pool: Pool,
    points: Sequence[OperatingPoint],
    only: Collection[str] | None,
    params: DenseParams,
    scope: Scope,
) -> list[Figure]:
    """All figures of a run, or those whose keys are in ``only``."""
    wanted: Mapping[str, _Wanted] = pool.cached(("reviews", "wanted"), lambda: _wanted(params, scope))
    keys = wanted if only is None else [key for key in only if key in wanted]
    meter = _Meter(pool, points, params, scope, with_support=only is None)
    return [meter.figure(wanted[key]) for key in keys]


def _wanted(params: DenseParams, scope: Scope) -> dict[str, _Wanted]:
    """Every figure by key, in the order of the outputs."""
    figures = [_Wanted(name.lower(), "") for name in UNSCORED_LABELS]
    for family in FAMILIES:
        if scope.provisional:
            figures.append(_Wanted("provisional", family))
        for horizon in range(1, scope.horizons + 1) if scope.horizons else (0,):
            figures += [_Wanted(name, family, horizon) for name in (*scope.counts, "ap")]
            figures += [
                _Wanted(name, family, horizon, recall)
                for recall in params.matched_recalls
                for name in scope.at_recall
            ]
    if scope.mean_ap:
        figures += [_Wanted("mean_ap", family) for family in FAMILIES]
    return {figure_key(one.name, _at(one)): one for one in figures}


def _at(one: _Wanted) -> dict[str, Any]:
    return coordinates(one.family, one.horizon, one.recall) if one.family else {}


class _Meter:
    """Measures single figures of one pool."""

    def __init__(
        self,
        pool: Pool,
        points: Sequence[OperatingPoint],
        params: DenseParams,
        scope: Scope,
        with_support: bool,
    ) -> None:
        self._pool = pool
        self._params = params
        self._scope = scope
        self._with_support = with_support
        self._weights = pool.row_weights(OPPORTUNITIES)
        self._points = {
            (point.at["family"], point.at.get("horizon", 0), point.at["recall"]): point for point in points
        }

    def figure(self, one: _Wanted) -> Figure:
        """The figure ``one``, its coordinates, direction and headline flag included."""
        if one.name in AT_RECALL:
            found = self._at_recall(one)
        elif one.name in ("ap", "mean_ap"):
            found = self._ap(one)
        else:
            number = self._count(one)
            return Figure(one.name, number, "count", count=number, at=_at(one))
        return found

    def _ap(self, one: _Wanted) -> Figure:
        horizons = range(1, self._scope.horizons + 1) if one.name == "mean_ap" else (one.horizon,)
        values = [self._average_precision(one.family, horizon) for horizon in horizons]
        numbers = [value for value in values if value is not None]
        whole = len(numbers) == len(values)
        return Figure(
            one.name,
            float(np.mean(numbers)) if whole else None,
            "AP",
            denominator=(
                len(values)
                if one.name == "mean_ap"
                else self._number(self._cell(one.family, one.horizon).rows)
            ),
            higher_is_better=True,
            reason="" if whole else NO_POSITIVES,
            at=_at(one),
            headline=self._is_headline(one),
            label=_LABELS[one.name],
            support=self._support(one.family, horizons),
            interval=one.name == "ap",
            rankings=tuple((OPPORTUNITIES, (one.family, horizon)) for horizon in horizons),
        )

    def _average_precision(self, family: str, horizon: int) -> float | None:
        cell = self._cell(family, horizon)
        return self._pool.average_precision(
            OPPORTUNITIES, (family, horizon), lambda: (cell.rows, cell.scores, cell.positive)
        )

    def _at_recall(self, one: _Wanted) -> Figure:
        assert one.recall is not None
        point = self._points[one.family, one.horizon, recall_name(one.recall)]
        count: int | None = None
        denominator: int | None = None
        value, reason = None, point.reason
        if point.threshold is not None:
            hits, positives, alarms, negatives = self._counts_at(one.family, one.horizon, point.threshold)
            count, denominator = {
                "recall": (hits, positives),
                "trigger_rate": (alarms, negatives),
                "precision": (hits, hits + alarms),
                "f1": (2 * hits, hits + alarms + positives),
            }[one.name]
            value = rate(count, denominator)
            reason = "" if value is not None else ZERO_DENOMINATOR
        recall_key = figure_key("recall", coordinates(one.family, one.horizon, one.recall))
        return Figure(
            one.name,
            value,
            "F1" if one.name == "f1" else "rate",
            count=count,
            denominator=denominator,
            higher_is_better=one.name != "trigger_rate",
            reason=reason,
            at=_at(one),
            headline=self._is_headline(one),
            interval=one.recall == self._params.headline_recall,
            label=_LABELS.get(one.name, one.name),
            support=self._support(one.family, (one.horizon,)),
            read_with="" if one.name == "recall" else recall_key,
        )

    def _counts_at(self, family: str, horizon: int, threshold: float) -> tuple[int, int, int, int]:
        """Triggering and all positives, triggering and all hard negatives."""
        cell = self._cell(family, horizon)

        def groups() -> tuple[NDArray[np.int64], ...]:
            triggered = cell.scores >= threshold
            masks = (cell.positive & triggered, cell.positive, ~cell.positive & triggered, ~cell.positive)
            return tuple(cell.rows[mask] for mask in masks)

        key = ("reviews", "triggered", family, horizon, threshold)
        hits, positives, alarms, negatives = (self._number(rows) for rows in self._pool.cached(key, groups))
        return hits, positives, alarms, negatives

    def _number(self, rows: NDArray[np.int64]) -> int:
        return len(rows) if self._weights is None else int(self._weights[rows].sum())

    def _cell(self, family: str, horizon: int) -> _Cell:
        def build() -> _Cell:
            label = self._column("label", horizon)
            rows = np.flatnonzero((label >= 0) & (self._family() == FAMILIES.index(family)))
            scores, positive = self._column("score", horizon)[rows], label[rows] == 1
            return _Cell(rows, positive, scores)

        return self._pool.cached(("reviews", "cell", family, horizon), build)

    def _family(self) -> NDArray[np.int8]:
        return self._pool.column(OPPORTUNITIES, "family")

    def _column(self, name: str, horizon: int) -> NDArray[Any]:
        column = self._pool.column(OPPORTUNITIES, name)
        return column[:, horizon - 1] if column.ndim == 2 else column

    def _count(self, one: _Wanted) -> int:
        if not one.family:
            code = [name.lower() for name in UNSCORED_LABELS].index(one.name)
            return self._pool.count(UNSCORED, self._pool.column(UNSCORED, "reviewed_as") == code)
        family = self._family() == FAMILIES.index(one.family)
        if one.name == "provisional":
            return self._pool.count(
                OPPORTUNITIES, family & self._pool.column(OPPORTUNITIES, "provisional").astype(bool)
            )
        status = self._column("status", one.horizon)
        return self._pool.count(OPPORTUNITIES, family & (status == STATUSES.index(one.name)))

    def _support(self, family: str, horizons: Sequence[int]) -> dict[str, int]:
        """Counts by status, which two runs must share; left out under ``only``, where nobody asks."""
        if not self._with_support:
            return {}
        return {
            f"{name} ({family}, {horizon_seconds(horizon)} s)"
            if horizon
            else f"{name} ({family})": self._count(_Wanted(name, family, horizon))
            for horizon in horizons
            for name in self._scope.counts
        }

    def _is_headline(self, one: _Wanted) -> bool:
        return (one.name, one.horizon) in self._scope.headline and (
            one.recall is None or one.recall == self._params.headline_recall
        )
