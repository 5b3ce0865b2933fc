"""Time of all intervals and comparisons of a 30-session evaluation, beside a plain bootstrap of the same.

    python benchmarks/bootstrap.py [--sessions 30] [--resamples 2000] [--jobs 1]

Data: two runs and three controls, 200 candidates a session; headline figures are two average precisions
and three rates, each rate read with a recall. Yardstick, in the same process: a loop that builds a pool of
the drawn sessions' tables for every resample and measures it; timed on 50 resamples, scaled, and checked to
give the same values.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from floorkit.core.compare import compare_pairs
from floorkit.core.compare_controls import compare_with_controls
from floorkit.core.pool import Pool
from floorkit.core.statistics import Draws, Measured, Replicates, draw, intervals, replicate
from floorkit.core.statistics_settings import Settings
from floorkit.core.values import Figure, Source, Table, Unit
from floorkit.numerics import rate

FAMILIES = ("response", "yield")
CANDIDATES = 200
CHECKED = 50


def make_run(name: str, sessions: int, skill: float, gold_seed: int = 0) -> Measured:
    """A run whose scores follow the labels as closely as ``skill`` says; all runs share the labels."""
    gold = np.random.default_rng(gold_seed)
    noise = np.random.default_rng([gold_seed, *name.encode()])
    tables = []
    for _ in range(sessions):
        label = gold.integers(0, 2, CANDIDATES)
        score = skill * label + noise.random(CANDIDATES)
        family = gold.integers(0, 2, CANDIDATES)
        tables.append({"candidates": Table({"family": family, "label": label, "score": score})})
    units = [Unit(f"session_{index}", "evaluated", Source()) for index in range(sessions)]
    pool = Pool.of(units, tables)
    return Measured(name, pool, measure, measure(pool, None))


def measure(pool: Pool, only: Collection[str] | None) -> Sequence[Figure]:
    """Average precision of each family; false rates at three thresholds, with their recalls."""
    figures: list[Figure] = []
    label, score = pool.column("candidates", "label"), pool.column("candidates", "score")
    for code, family in enumerate(FAMILIES):
        if only is None or f"{family}_ap" in only:

            def select(code: int = code) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
                rows = np.flatnonzero(pool.column("candidates", "family") == code)
                return rows, score[rows], label[rows]

            value = pool.average_precision("candidates", code, select)
            rankings = (("candidates", code),)
            figures.append(
                Figure(f"{family}_ap", value, "AP", higher_is_better=True, headline=True, rankings=rankings)
            )
    for threshold in (0.4, 0.6, 0.8):
        names = f"false_rate_{threshold}", f"recall_{threshold}"
        if only is not None and not set(names) & set(only):
            continue
        for name, value in zip(names, (0, 1), strict=True):
            total = pool.count("candidates", label == value)
            count = pool.count("candidates", (label == value) & (score >= threshold))
            figures.append(
                Figure(
                    name,
                    rate(count, total),
                    count=count,
                    denominator=total,
                    higher_is_better=bool(value),
                    headline=not value,
                    read_with="" if value else names[1],
                )
            )
    return figures


def plain_bootstrap(run: Measured, draws: Draws, resamples: int) -> list[dict[str, float | None]]:
    """The yardstick: every resample as a pool of its own, with drawn sessions' tables repeated."""
    values = []
    for weights in draws.of(run.pool.clusters)[:resamples]:
        picks = np.repeat(np.arange(len(weights)), weights)
        pool = Pool.of(
            [run.pool.units[index] for index in picks],
            [{"candidates": run.pool.table(index, "candidates")} for index in picks],
        )
        values.append({figure.key: figure.value for figure in measure(pool, None)})
    return values


def check(run: Replicates, plain: Sequence[dict[str, float | None]]) -> None:
    for row, values in enumerate(plain):
        for key, resampled in run.resampled.items():
            value = values[key]
            assert value is not None and abs(resampled[row] - value) <= 1e-12, (key, row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sessions", type=int, default=30)
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    settings = Settings(resamples=arguments.resamples)
    skills = {
        "baseline": 0.3,
        "candidate": 0.5,
        "control:noise": 0.0,
        "control:ramp": 0.1,
        "control:prior": 0.05,
    }
    runs = [make_run(name, arguments.sessions, skill) for name, skill in skills.items()]

    threadpool_limits(1)  # as in a run
    start = time.perf_counter()
    draws = draw(runs[0].pool.clusters, settings.resamples, seed=0)
    replicates = replicate(runs, draws, arguments.jobs)
    resampled = time.perf_counter()
    for one in replicates.values():
        intervals(one, settings.confidence)
    compare_pairs(replicates, [("baseline", "candidate")], settings, seed=0)
    users, controls = list(replicates.values())[:2], list(replicates.values())[2:]
    compare_with_controls(users, controls, settings)
    ended = time.perf_counter()

    plain = plain_bootstrap(runs[0], draws, CHECKED)
    scaled = (time.perf_counter() - ended) * len(runs) * settings.resamples / CHECKED
    check(replicates["baseline"], plain)
    print(
        f"{arguments.sessions} sessions, {len(runs)} runs, {settings.resamples} resamples, "
        f"jobs {arguments.jobs}"
    )
    print(f"resampling               {resampled - start:8.2f} s")
    print(f"intervals, comparisons   {ended - resampled:8.2f} s")
    print(
        f"plain bootstrap          {scaled:8.2f} s (scaled from {CHECKED} resamples of one run, same values)"
    )
    print(f"ratio                    {scaled / (ended - start):8.1f}")


if __name__ == "__main__":
    main()
