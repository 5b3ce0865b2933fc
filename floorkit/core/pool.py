"""Tables of many units seen as one, with whole units weighted: what measure and calibrate work on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from floorkit.core.values import Table, Unit
from floorkit.numerics import Ranking

T = TypeVar("T")


@frozen(eq=False)
class _Batch:
    """Weights [B, C] of the views that belong together, and what was computed for all of them."""

    weights: NDArray[np.int64]
    found: dict[Hashable, NDArray[np.float64]] = field(factory=dict)


class Pool:
    """The tables of several units, concatenated column by column when asked for.

    Parameters
    ----------
    units
        The U units, in order.
    tables
        For each unit a function from table name to Table (tables may lie on disk).

    Notes
    -----
    ``weights`` is None (every cluster once) or an array [C] of multiplicities, C the number of
    clusters: the cluster bootstrap draws whole clusters. Columns and everything in ``cached`` are shared
    between a pool and its reweighted views.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        tables: Sequence[Callable[[str], Table]],
    ) -> None:
        self.units = tuple(units)
        self.cluster = ""
        self.weights: NDArray[np.int64] | None = None
        self._tables = tuple(tables)
        self._clustered: tuple[str, ...] = ()
        self._last: dict[str, tuple[int, Table]] = {}
        self._batch: _Batch | None = None
        self._row = 0
        self._cache: dict[Hashable, Any] = {}

    @classmethod
    def of(cls, units: Sequence[Unit], tables: Sequence[Mapping[str, Table]]) -> Pool:
        """A pool of tables that are in memory."""
        return cls(units, [one.__getitem__ for one in tables])

    def cached(self, key: Hashable, build: Callable[[], T]) -> T:
        """``build()``, kept under ``key``. For what does not depend on the weights."""
        if key not in self._cache:
            self._cache[key] = build()
        value: T = self._cache[key]
        return value

    def table(self, index: int, name: str) -> Table:
        """One unit's table. The last one of each name is kept, for reports that go row by row."""
        if self._last.get(name, (-1,))[0] != index:
            self._last[name] = index, self._tables[index](name)
        return self._last[name][1]

    def column(self, table: str, name: str, *, keep: bool = True) -> NDArray[Any]:
        """Column ``name`` of all units, concatenated in unit order, shape [N, ...].

        ``keep=False`` for large columns that are needed once, so that they do not stay in memory.
        """

        def build() -> NDArray[Any]:
            parts = [self.table(i, table)[name] for i in range(len(self.units))]
            return np.concatenate(parts) if parts else np.empty(0)

        return self.cached(("column", table, name), build) if keep else build()

    def categories(self, table: str, column: str) -> tuple[str, ...]:
        """The names behind a column of codes, the same in every unit; () where there is no unit."""
        return self.table(0, table).categories[column] if self.units else ()

    def unit_index(self, table: str) -> NDArray[np.int64]:
        """For every row of ``table`` the index of its unit in ``units``, shape [N]."""
        return self.cached(
            ("unit_index", table),
            lambda: np.repeat(
                np.arange(len(self.units)),
                [len(self.table(i, table)) for i in range(len(self.units))],
            ),
        )

    def _recordings(self) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """Names of the clusters finer than units, and the first cluster's index of each unit."""

        def build() -> tuple[tuple[str, ...], NDArray[np.int64]]:
            names: list[str] = []
            offsets = []
            for index, unit in enumerate(self.units):
                offsets.append(len(names))
                count = 1 + max(
                    (
                        int(table[self.cluster].max(initial=0))
                        for table in map(self._tables[index], self._clustered)
                    ),
                    default=0,
                )
                names += [f"{unit.name}/{self.cluster} {i}" for i in range(count)]
            return tuple(names), np.asarray(offsets, dtype=np.int64)

        return self.cached(("recordings", self.cluster), build)

    def by(self, cluster: str, tables: Sequence[str]) -> Pool:
        """The same pool, resampled by the values of column ``cluster`` (0, 1, ...) within each unit.

        ``tables`` names the tables that have the column.
        """
        view = self._view()
        view.cluster = cluster
        view._clustered = tuple(tables)
        return view

    @property
    def clusters(self) -> tuple[str, ...]:
        """Names of what is resampled: the units, or the finer clusters within them."""
        return self._recordings()[0] if self.cluster else tuple(unit.name for unit in self.units)

    def cluster_index(self, table: str) -> NDArray[np.int64]:
        """For every row of ``table`` the index of its cluster in ``clusters``, shape [N]."""
        if not self.cluster:
            return self.unit_index(table)
        offsets = self._recordings()[1]
        return self.cached(
            ("cluster_index", table, self.cluster),
            lambda: (
                offsets[self.unit_index(table)] + self.column(table, self.cluster).astype(np.int64)
                if len(self.units)
                else np.empty(0, np.int64)
            ),
        )

    def row_weights(self, table: str) -> NDArray[np.int64] | None:
        """Multiplicity of every row of ``table``, shape [N], or None where every row counts once."""
        return None if self.weights is None else self.weights[self.cluster_index(table)]

    def count(self, table: str, rows: NDArray[np.bool_]) -> int:
        """Weighted number of the rows of ``table`` where the mask ``rows`` [N] is true."""
        weights = self.row_weights(table)
        return int(np.count_nonzero(rows)) if weights is None else int(weights[rows].sum())

    def total(self, table: str, values: NDArray[Any]) -> float:
        """Weighted sum of ``values`` [N] over the rows of ``table``."""
        weights = self.row_weights(table)
        return float(values.sum()) if weights is None else float((values * weights).sum())

    def reweighted(self, weights: NDArray[np.integer[Any]]) -> Pool:
        """A view with these cluster multiplicities, shape [C]."""
        return next(self.resampled(np.asarray(weights)[None]))

    def resampled(self, weights: NDArray[np.integer[Any]]) -> Iterator[Pool]:
        """A view for each row of ``weights``, shape [B, C].

        The views share their batch, so that what is costly for one of them is computed for all at once.
        """
        batch = _Batch(weights.astype(np.int64))
        for row in range(len(batch.weights)):
            view = self._view()
            view._batch, view._row = batch, row
            view.weights = batch.weights[row]
            yield view

    def average_precision(
        self, table: str, key: Hashable, select: Callable[[], tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]
    ) -> float | None:
        """Event AP (numerics spec) of some rows of ``table`` under the weights; None without positives.

        Parameters
        ----------
        key
            Names the selection; sorting is done once for it.
        select
            Returns indices of rows of ``table`` [M], their scores [M] and labels [M].
        """

        def build() -> tuple[Ranking, NDArray[Any]]:
            rows, scores, labels = select()
            return Ranking(scores, labels), rows

        ranking, _ = self.cached(("ranking", table, key), build)
        if self._batch is None:
            return ranking.average_precision()
        found = self._batch.found.get((table, key))
        if found is None:
            found = self.average_precisions(table, key, self._batch.weights)
            self._batch.found[table, key] = found
        value = float(found[self._row])
        return None if np.isnan(value) else value

    def average_precisions(
        self, table: str, key: Hashable, weights: NDArray[np.integer[Any]]
    ) -> NDArray[np.float64]:
        """AP under many cluster multiplicities [B, C], shape [B], NaN without positives.

        ``key`` is one under which :meth:`average_precision` was called before; KeyError for another.
        """
        ranking, rows = self._cache["ranking", table, key]
        precisions: NDArray[np.float64] = ranking.average_precisions(weights, self.cluster_index(table)[rows])
        return precisions

    def _view(self) -> Pool:
        view = Pool.__new__(Pool)
        view.__dict__.update(self.__dict__)
        return view
