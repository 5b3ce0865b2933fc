"""Paired comparison of runs, and of runs with their controls (protocols/numerics.spec.md).

Run B against run A on one headline figure:

- difference: B - A in the figure's unit, with the percentile interval of the difference over resampled
  clusters that are the same for both runs (``floorkit.core.statistics``);
- relative error reduction: (A - B) / A where lower is better. Where higher is better and the figure is a
  rate, its error is 1 - rate, so that the reduction is (B - A) / (1 - A). Other figures have no error and
  no reduction;
- sign-flip permutation test, two-sided, over the differences d of the clusters on which both runs have the
  figure: p is the share of sign patterns s with abs(sum s d) >= abs(sum d). All patterns up to 12 clusters;
  beyond, N seeded patterns and the observed one, p = (1 + hits) / (1 + N) (Phipson and Smyth, Statistical
  Applications in Genetics and Molecular Biology 9(1), 2010, article 39);
- Holm's step-down adjustment over all tests of the entry (Holm, Scandinavian Journal of Statistics 6, 1979,
  pages 65 to 70).

Two runs are compared on a figure only where they scored the same clusters and the counts behind it agree:
``Figure.support`` where the protocol gives one, the denominator otherwise. Where they do not,
``Comparison.not_comparable`` says in words what differs, and there are no numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from floorkit.core.statistics import Float, Replicates, generator, percentile_interval
from floorkit.core.statistics_settings import Settings
from floorkit.core.values import Comparison, Figure, Interval

EXACT_CLUSTERS = 12
"""Up to this many clusters every sign pattern is tried (numerics spec)."""


def compare_pairs(
    runs: Mapping[str, Replicates],
    pairs: Sequence[tuple[str, str]],
    settings: Settings,
    seed: int,
    noun: str = "unit",
) -> tuple[Comparison, ...]:
    """Compare run B with run A on every headline figure of both, for every pair (A, B), Holm-adjusted."""
    return holm_adjusted(
        compare(runs[a], runs[b], key, settings, seed, noun)
        for a, b in pairs
        for key in shared_headline(runs[a], runs[b])
    )


def shared_headline(a: Replicates, b: Replicates) -> list[str]:
    """Keys of the headline figures that both runs have, in the order of ``b``."""
    return [figure.key for figure in b.headline if figure.key in a.figures]


def compare(
    a: Replicates, b: Replicates, key: str, settings: Settings, seed: int, noun: str = "unit"
) -> Comparison:
    """Run ``b`` against run ``a`` on the figure ``key`` (not yet Holm-adjusted)."""
    x, y = a.figures[key], b.figures[key]
    comparison = Comparison(key, a.run, b.run, x.value, y.value)
    obstacles = (*coverage_differences(a, b, noun), *count_differences(x, y, a.run, b.run))
    if obstacles or x.value is None or y.value is None:
        return evolve(comparison, not_comparable=obstacles)
    paired = Paired.of(a, b, key)
    difference = y.value - x.value
    p_value, smallest_p = sign_flip_p(paired.differences, settings.permutations, seed)
    better = direction(y) * paired.differences
    return evolve(
        comparison,
        difference=difference,
        relative_reduction=relative_reduction(x, y),
        interval=difference_interval(a, b, key, paired, settings.confidence, noun),
        p_value=p_value,
        smallest_p=smallest_p,
        clusters=len(better),
        excluded=paired.excluded,
        won=int((better > 0).sum()),
        lost=int((better < 0).sum()),
        tied=int((paired.differences == 0).sum()),
        cautions=tuple(_cautions(a, b, key, paired, difference, noun)),
    )


def direction(figure: Figure) -> int:
    """1 where higher is better, -1 where lower is, 0 where neither."""
    return {True: 1, False: -1, None: 0}[figure.higher_is_better]


# --- what two runs must share -------------------------------------------------------------------


def coverage_differences(a: Replicates, b: Replicates, noun: str) -> tuple[str, ...]:
    """In words, the clusters that only one of the two runs has."""
    sentences = []
    for lacking, having in ((a, b), (b, a)):
        lost = sorted(set(having.clusters) - set(lacking.clusters))
        if lost:
            shown = ", ".join(lost[:3]) + (", ..." if len(lost) > 3 else "")
            sentences.append(f"{lacking.run} lacks {len(lost)} {noun}{'s' * (len(lost) > 1)} ({shown})")
    return tuple(sentences)


def count_differences(x: Figure, y: Figure, a: str, b: str) -> tuple[str, ...]:
    """In words, why ``x`` of run ``a`` and ``y`` of run ``b`` cannot be compared; () where they can."""
    sentences = [
        f"{run} has no value ({figure.reason or 'no reason given'})"
        for run, figure in ((a, x), (b, y))
        if figure.value is None
    ]
    if (x.unit, x.higher_is_better) != (y.unit, y.higher_is_better):
        sentences.append(f"the figure's unit or direction differs ({x.unit}, {y.unit})")
    counts: tuple[Mapping[str, float | None], ...] = (x.support, y.support)
    if not any(counts):
        counts = {"denominator": x.denominator}, {"denominator": y.denominator}
    for name in {**counts[0], **counts[1]}:
        one, other = (given.get(name) for given in counts)
        if one != other:
            sentences.append(f"{name.replace('_', ' ')} differs: {a} {_count(one)}, {b} {_count(other)}")
    return tuple(sentences)


def _count(value: float | None) -> str:
    return "none" if value is None else f"{value:.15g}"


# --- numbers ------------------------------------------------------------------------------------


def relative_reduction(a: Figure, b: Figure) -> float | None:
    """Relative error reduction of ``b`` against ``a`` (module docstring); None where a has no error."""
    if a.value is None or b.value is None:
        return None
    if a.higher_is_better is False:
        return (a.value - b.value) / a.value if a.value else None
    if a.higher_is_better and a.unit == "rate":
        return (b.value - a.value) / (1 - a.value) if a.value != 1 else None
    return None


def difference_interval(
    a: Replicates, b: Replicates, key: str, paired: Paired, level: float, noun: str
) -> Interval:
    """The percentile interval of b - a over the same resampled clusters."""
    clusters = len(set(a.clusters) & set(b.clusters))
    if a.draws != b.draws:
        return Interval(None, None, level, 0, clusters, f"the runs were resampled over different {noun}s")
    resampled = b.resampled[key] - a.resampled[key]
    return percentile_interval(resampled, level, clusters, len(paired.differences), noun)


def sign_flip_p(differences: Float, permutations: int, seed: int) -> tuple[float | None, float | None]:
    """Two-sided sign-flip permutation p of paired differences, and the smallest p that so many can give.

    Parameters
    ----------
    differences
        One a cluster, shape [n]; (None, None) where n is 0.
    permutations
        Seeded sign patterns N where n is above 12.
    """
    count = len(differences)
    if not count:
        return None, None
    if count <= EXACT_CLUSTERS:
        patterns = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
        return float(_extreme(patterns, differences).mean()), 2.0 ** (1 - count)
    flips = generator(seed, "flips")
    hits = 0
    for start in range(0, permutations, 1000):
        size = (min(1000, permutations - start), count)
        hits += int(_extreme(flips.integers(0, 2, size=size), differences).sum())
    return (1 + hits) / (1 + permutations), 1 / (1 + permutations)


def _extreme(patterns: NDArray[np.int64], differences: Float) -> NDArray[np.bool_]:
    """For each pattern of bits [n], whether its signed sum is at least as far from 0 as the observed one."""
    sums = np.abs((2 * patterns - 1) @ differences)
    slack = 1e-12 * np.abs(differences).sum()  # equal sums, added up in another order
    return np.asarray(sums >= abs(differences.sum()) - slack)


def holm_adjusted(comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons with Holm's adjusted p, over all of them that have a p."""
    given = tuple(comparisons)
    tested = sorted((one.p_value, index) for index, one in enumerate(given) if one.p_value is not None)
    adjusted: dict[int, float] = {}
    largest = 0.0
    for rank, (p, index) in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - rank) * p))
        adjusted[index] = largest
    return tuple(
        evolve(one, p_adjusted=adjusted.get(index), tests=len(tested)) for index, one in enumerate(given)
    )


# --- clusters, pair by pair ---------------------------------------------------------------------


@frozen(eq=False)
class Paired:
    """B - A on the clusters on which both runs have the figure, in order of their names.

    Parameters
    ----------
    differences
        Shape [n]; rounding differences (below 1e-12) are 0.
    excluded
        Clusters on which either run lacks the figure.
    unlike
        Clusters whose denominators differ between the runs.
    """

    differences: Float
    excluded: int
    unlike: int

    @classmethod
    def of(cls, a: Replicates, b: Replicates, key: str) -> Paired:
        shared = sorted(set(a.clusters) & set(b.clusters))
        values, denominators = [], []
        for run in (a, b):
            place = {name: index for index, name in enumerate(run.clusters)}
            rows = [place[name] for name in shared]
            values.append(run.units[key][rows])
            denominators.append(run.denominators[key][rows])
        differences = values[1] - values[0]
        differences[np.abs(differences) <= 1e-12 * np.maximum(1, np.abs(values[0]))] = 0.0
        exists = np.isfinite(differences)
        alike = np.equal(*denominators) | np.isnan(denominators).all(axis=0)
        return cls(differences[exists], int((~exists).sum()), int((~alike).sum()))


def _cautions(
    a: Replicates, b: Replicates, key: str, paired: Paired, difference: float, noun: str
) -> Iterator[str]:
    yield from trade_offs(a, b, key)
    if paired.unlike and a.figures[key].denominator == b.figures[key].denominator:
        yield (
            f"the runs' denominators agree in sum, but not in {paired.unlike} of {len(b.clusters)} {noun}s"
        )
    if len(paired.differences) and difference * paired.differences.mean() < 0:
        yield (
            f"the mean of the {noun}s' differences ({paired.differences.mean():+.3g}) points the other way "
            f"than the pooled difference ({difference:+.3g})"
        )


def trade_offs(a: Replicates, b: Replicates, key: str) -> tuple[str, ...]:
    """Says when one run is better on figure ``key`` and worse on the figure that it must be read with.

    An error rate falls at will when a system is made to fire less; so a lower rate with a lower recall is no
    improvement by itself, and the sentence with both recalls stands beside the number.
    """
    x, y = a.figures[key], b.figures[key]
    other_x, other_y = (run.figures.get(y.read_with) for run in (a, b))
    if other_x is None or other_y is None or x.value is None or y.value is None:
        return ()
    if other_x.value is None or other_y.value is None:
        lacking = a.run if other_x.value is None else b.run
        return (f"not readable beside {_words(other_y)}, which {lacking} lacks",)
    gain = direction(y) * (y.value - x.value)
    if gain * direction(other_y) * (other_y.value - other_x.value) >= 0:
        return ()
    b_gains = gain > 0
    payer = b.run if b_gains else a.run
    paid, kept = (other_y.value, other_x.value) if b_gains else (other_x.value, other_y.value)
    return (
        f"{'higher' if y.higher_is_better else 'lower'} {_words(y)} bought with "
        f"{'lower' if paid < kept else 'higher'} {_words(other_y)}: "
        f"{payer} {_words(other_y)}{':' if _words(other_y)[-1].isdigit() else ''} {apart(paid, kept)}",
    )


def _words(figure: Figure) -> str:
    return figure.label or figure.name.replace("_", " ")


def apart(one: float, other: float) -> str:
    """``0.71 vs 0.80``: two numbers with as many decimals, at least 2, as tell them apart (2 where equal)."""
    if one == other:
        return f"{one:.2f} vs {other:.2f}"
    for decimals in range(2, 7):
        texts = f"{one:.{decimals}f}", f"{other:.{decimals}f}"
        if texts[0] != texts[1]:
            break
    return " vs ".join(texts)
