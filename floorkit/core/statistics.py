"""Cluster bootstrap of a protocol's headline figures, through its measure function alone.

Definition (protocols/numerics.spec.md, "Confidence intervals"): whole clusters (sessions, conversations,
or finer ones such as recordings) are drawn with replacement, as many as there are; the figure is measured
anew with each cluster counted as often as it was drawn, thresholds fixed; the interval is the range between
the percentiles of the resampled figures (Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
chapter 13; percentiles by linear interpolation).

Conventions
-----------
- One matrix of multiplicities is drawn for an entry, from the seed and the sorted cluster names. All runs of
  the entry, and every entry with the same clusters and seed in another results folder, see the same
  resampled clusters, whatever the number of jobs and the order of the units. A run that lacks units
  takes the columns of those that it has.
- A figure that does not exist in a resample (no positives drawn) is left out of the percentiles and
  counted in the interval's remark.
- A rate whose count and denominator are whole numbers that add up over the clusters needs no measuring:
  its resamples are quotients of weighted sums, equal to the last bit. Whether they add up is checked exactly,
  on the whole, on every cluster alone and on the first 16 resamples; any other figure is measured anew.
- Per-cluster figures come from the same measure function with weight 1 on one cluster and 0 elsewhere.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from floorkit.core.errors import EvaluationError, Problem
from floorkit.core.pool import Pool
from floorkit.core.values import Figure, Interval

Float = NDArray[np.float64]
Measure = Callable[[Pool, Collection[str] | None], Sequence[Figure]]
"""``measure(pool, only)``: the protocol's measure hook, bound to a run's operating points."""

FEW_CLUSTERS = 8
"""Below this many clusters percentile intervals are known to be too narrow (numerics spec)."""

CHECKED = 16
"""Resamples on which a figure is measured although it looks like a quotient of sums."""

_PURPOSES = ("draws", "flips")
"""Independent random streams of one seed."""


def generator(seed: int, purpose: Literal["draws", "flips"]) -> np.random.Generator:
    """The random numbers of one purpose under the entry's seed (0 or above)."""
    sequence = np.random.SeedSequence(seed, spawn_key=(_PURPOSES.index(purpose),))
    return np.random.Generator(np.random.PCG64(sequence))


# --- resampling ---------------------------------------------------------------------------------


@frozen(eq=False)
class Draws:
    """The resampled clusters of an entry.

    Parameters
    ----------
    clusters
        Names of the C clusters, sorted.
    weights
        How often each resample drew each cluster, shape [B, C]; every row sums to C.
    """

    clusters: tuple[str, ...]
    weights: NDArray[np.int32]

    @property
    def fingerprint(self) -> str:
        """Tells whether two folders resampled the same clusters alike."""
        digest = hashlib.sha256("\n".join(self.clusters).encode("utf-8"))
        digest.update(self.weights.astype("<i4").tobytes())
        return digest.hexdigest()[:16]

    def of(self, names: Sequence[str]) -> NDArray[np.int32]:
        """The columns of the clusters ``names`` (unique), in their order, shape [B, len(names)]."""
        column = {name: index for index, name in enumerate(self.clusters)}
        return self.weights[:, [column[name] for name in names]]


def draw(clusters: Iterable[str], resamples: int, seed: int) -> Draws:
    """Draw whole clusters with replacement, ``resamples`` times.

    Parameters
    ----------
    clusters
        Names of all clusters that any run has; order and repetition do not matter.
    """
    names = tuple(sorted(set(clusters)))
    count = len(names)
    if not count:
        return Draws(names, np.zeros((resamples, 0), np.int32))
    drawn = generator(seed, "draws").integers(0, count, size=(resamples, count))
    places = drawn + count * np.arange(resamples)[:, None]
    weights = np.bincount(places.ravel(), minlength=resamples * count).reshape(resamples, count)
    return Draws(names, weights.astype(np.int32))


# --- measuring ----------------------------------------------------------------------------------


@frozen(eq=False)
class Measured:
    """One run, ready to be measured again: its pool (``pool.by(...)`` applied where clusters are finer than
    units), its measure function (picklable where ``jobs`` is above 1) and its figures at weights None.
    ``curves`` asks for the figures with ``Figure.interval`` beside the headline ones."""

    name: str
    pool: Pool
    measure: Measure
    figures: Sequence[Figure]
    curves: bool = False


@frozen(eq=False)
class Replicates:
    """What one run's figures become under reweighting: all that intervals and comparisons need.

    Parameters
    ----------
    run, clusters
        Name of the run; names of its C clusters, in the pool's order.
    figures
        By key, the headline figures, those that they are read with, and curves, at weights None.
    units
        By key, the figure of each cluster alone, shape [C]; NaN where it does not exist.
    denominators
        By key, each cluster's denominator, shape [C]; NaN where there is none.
    resampled
        By key, the figure in each resample, shape [B]; NaN where it does not exist.
    draws
        Fingerprint of the resampled clusters; only replicates of equal draws are paired.

    Figures without a value have no entry in ``units``, ``denominators`` and ``resampled``.
    """

    run: str
    clusters: tuple[str, ...]
    figures: Mapping[str, Figure]
    units: Mapping[str, Float]
    denominators: Mapping[str, Float]
    resampled: Mapping[str, Float]
    draws: str

    @property
    def compared(self) -> frozenset[str]:
        """Keys of the headline figures and of those that they are read with: all but curves."""
        return frozenset(
            key for figure in self.headline for key in (figure.key, figure.read_with) if key in self.figures
        )

    @property
    def headline(self) -> tuple[Figure, ...]:
        return tuple(figure for figure in self.figures.values() if figure.headline)


def replicate(runs: Sequence[Measured], draws: Draws, jobs: int = 1) -> dict[str, Replicates]:
    """Measure every run's headline figures on each cluster alone and on each resample.

    Parameters
    ----------
    jobs
        Worker processes (joblib), at least 1. The values are the same for any number.

    Raises
    ------
    EvaluationError
        Where a measure function leaves out a figure that it was asked for, or returns NaN or infinity.
    """
    from joblib import Parallel

    with Parallel(n_jobs=jobs) as parallel:
        return {run.name: _replicate(run, draws, parallel, jobs) for run in runs}


def _replicate(run: Measured, draws: Draws, parallel: Any, jobs: int) -> Replicates:
    from joblib import delayed

    def measure(keys: Sequence[str], rows: NDArray[np.int32]) -> Float:
        parts = parallel(
            delayed(_measure_rows)(run.name, run.pool, run.measure, keys, chunk)
            for chunk in np.array_split(rows, jobs)
        )
        return np.concatenate(parts)

    figures = _resampled_figures(run)
    keys = [key for key, figure in figures.items() if figure.value is not None]
    clusters = run.pool.clusters
    count = len(clusters)
    weights = draws.of(clusters)
    rows = np.concatenate([np.eye(count, dtype=np.int32), weights[:CHECKED]])
    tables = dict(zip(keys, np.moveaxis(measure(keys, rows), 2, 0), strict=True))
    resampled = {}
    for key in keys:
        if _is_ratio_of_sums(figures[key], tables[key], rows):
            resampled[key] = _ratio(*(weights @ tables[key][:count, 1:]).T)
        elif _is_mean_of_rankings(run.pool, figures[key], tables[key], rows):
            resampled[key] = _mean_of_rankings(run.pool, figures[key], weights)
    others = [key for key in keys if key not in resampled]
    # Few clusters have few different resamples: each is measured once.
    distinct, place = np.unique(weights, axis=0, return_inverse=True)
    measured = measure(others, distinct)[:, 0].T
    resampled |= {key: values[place] for key, values in zip(others, measured, strict=True)}
    return Replicates(
        run=run.name,
        clusters=clusters,
        figures=figures,
        units={key: tables[key][:count, 0] for key in keys},
        denominators={key: tables[key][:count, 2] for key in keys},
        resampled=resampled,
        draws=draws.fingerprint,
    )


def _is_ratio_of_sums(figure: Figure, table: Float, rows: NDArray[np.int32]) -> bool:
    """Whether a figure is count / denominator with both whole numbers summed over the clusters.

    Parameters
    ----------
    table
        Value, count and denominator as measured under each row of weights, shape [C + 16, 3].
    rows
        Each cluster alone, then some resamples, shape [C + 16, C].
    """
    sums = table[: rows.shape[1], 1:]
    if not (np.isfinite(sums).all() and (sums == np.rint(sums)).all()):
        return False
    whole = np.array([[figure.value, figure.count, figure.denominator]], dtype=np.float64)
    found = np.concatenate([whole, table])
    expected = np.concatenate([[sums.sum(axis=0)], rows @ sums])
    values = _ratio(*expected.T)
    return bool((found[:, 1:] == expected).all() and np.array_equal(found[:, 0], values, equal_nan=True))


def _mean_of_rankings(pool: Pool, figure: Figure, weights: NDArray[np.int32]) -> Float:
    """The mean of the figure's average precisions under each row of weights, NaN where one does not exist."""
    found = [pool.average_precisions(table, key, weights) for table, key in figure.rankings]
    means: Float = np.mean(found, axis=0)
    return means


def _is_mean_of_rankings(pool: Pool, figure: Figure, table: Float, rows: NDArray[np.int32]) -> bool:
    """Whether the measured values are the mean of the average precisions that the figure names."""
    if not figure.rankings:
        return False
    expected = _mean_of_rankings(pool, figure, rows)
    return bool(np.allclose(table[:, 0], expected, rtol=0, atol=1e-12, equal_nan=True))


def _ratio(counts: Float, denominators: Float) -> Float:
    """counts / denominators, NaN where the denominator is 0."""
    result: Float = np.full(len(counts), np.nan)
    np.divide(counts, denominators, out=result, where=denominators != 0)
    return result


def _resampled_figures(run: Measured) -> dict[str, Figure]:
    headline = [figure for figure in run.figures if figure.headline]
    wanted = {figure.key for figure in headline} | {figure.read_with for figure in headline}
    if run.curves:
        wanted |= {figure.key for figure in run.figures if figure.interval}
    chosen = [figure for figure in run.figures if figure.key in wanted]
    figures = {figure.key: figure for figure in chosen}
    missing = {figure.read_with for figure in headline if figure.read_with} - set(figures)
    if missing or len(figures) < len(chosen):
        raise EvaluationError(
            Problem(
                "the measure hook's figures do not fit together",
                f"run {run.name}",
                found="keys used twice" if not missing else f"no figure {', '.join(sorted(missing))}",
                expected="unique keys, and every read_with the key of a figure of the same run",
            )
        )
    return figures


def _measure_rows(
    run: str, pool: Pool, measure: Measure, keys: Sequence[str], rows: NDArray[np.int32]
) -> Float:
    """Value, count and denominator (NaN for None) of every figure for each row, shape [R, 3, K]."""
    table = np.full((len(rows), 3, len(keys)), np.nan)
    if not keys:
        return table
    for index, view in enumerate(pool.resampled(rows)):
        found = {figure.key: figure for figure in measure(view, keys)}
        for column, key in enumerate(keys):
            figure = found.get(key)
            if figure is None or not math.isfinite(figure.value or 0.0):
                raise EvaluationError(
                    Problem(
                        "the measure hook failed on a resample",
                        f"run {run}, figure {key}",
                        found="no such figure" if figure is None else repr(figure.value),
                        expected="every figure of `only`, with a finite value or None with a reason",
                    )
                )
            given = (figure.value, figure.count, figure.denominator)
            table[index, :, column] = [np.nan if one is None else one for one in given]
    return table


# --- intervals ----------------------------------------------------------------------------------


def intervals(replicates: Replicates, level: float, noun: str = "unit") -> dict[str, Interval]:
    """The interval of each headline figure and companion, by key.

    Parameters
    ----------
    noun
        What a cluster is called in remarks (``Protocol.unit_noun``, or the finer cluster's name).
    """
    result = {}
    for key, figure in replicates.figures.items():
        count = len(replicates.clusters)
        if figure.value is None:
            reason = f"the figure has no value ({figure.reason or 'no reason given'})"
            result[key] = Interval(None, None, level, 0, count, reason)
        else:
            alone = int(np.isfinite(replicates.units[key]).sum())
            result[key] = percentile_interval(replicates.resampled[key], level, count, alone, noun)
    return result


def percentile_interval(resampled: Float, level: float, clusters: int, alone: int, noun: str) -> Interval:
    """The percentile interval of resampled values, with what a reader must know about it.

    Parameters
    ----------
    resampled
        Shape [B]; NaN where the figure does not exist.
    clusters, alone
        Number of clusters, and of those on which the figure exists by itself.
    """
    values = resampled[np.isfinite(resampled)]
    if clusters < 2:
        reason = f"fewer than two {noun}s"
    elif not len(values):
        reason = "the figure exists in no resample"
    else:
        tail = (1 - level) / 2
        low, high = (float(value) for value in np.quantile(values, (tail, 1 - tail)))
        remarks = _remarks(values, len(resampled), clusters, alone, noun)
        return Interval(low, high, level, len(values), clusters, remark="; ".join(remarks))
    return Interval(None, None, level, len(values), clusters, reason)


def _remarks(values: Float, resamples: int, clusters: int, alone: int, noun: str) -> list[str]:
    remarks = []
    if clusters < FEW_CLUSTERS:
        remarks.append(f"too narrow: only {clusters} {noun}s")
    elif alone < FEW_CLUSTERS:
        has = "has" if alone == 1 else "have"
        remarks.append(f"probably too narrow: only {alone} of {clusters} {noun}s {has} this figure alone")
    if len(values) < resamples:
        remarks.append(f"{resamples - len(values)} of {resamples} resamples left out: no figure there")
    if values.min() == values.max():
        remarks.append("every resample gives the same value: this is no measure of uncertainty")
    return remarks
