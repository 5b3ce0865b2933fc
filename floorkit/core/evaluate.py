"""Score, calibrate, measure, compare, report: from a prepared entry to a Result and its sections."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import closing

from floorkit.core import statistics
from floorkit.core.compare import compare_pairs
from floorkit.core.compare_controls import compare_with_controls
from floorkit.core.engine import score_unit
from floorkit.core.errors import EvaluationError, InputError, Problem
from floorkit.core.executors import Executor, Progress
from floorkit.core.manifest import CompareEntry
from floorkit.core.pool import Pool
from floorkit.core.prepare import Prepared, units_of
from floorkit.core.registry import core_source
from floorkit.core.reuse import Plan
from floorkit.core.sections import Section
from floorkit.core.sources import hash_plain
from floorkit.core.statistics import Measured, Replicates
from floorkit.core.structure import unstructure
from floorkit.core.values import Comparison, Figure, Interval, OperatingPoint, Result, Run, RunResult

SHORT = 8
"""Hexadecimal digits of each hash in a signature."""


def signature(prepared: Prepared) -> str:
    """The line that identifies a number: protocol, version, and the hashes of all that it depends on."""
    plugin = prepared.team.main
    parts = {
        "src": plugin.source.removeprefix("sha256:"),
        "core": core_source().removeprefix("sha256:"),
        "params": params_hash(prepared),
        "data": prepared.data_fingerprint(),
    }
    hashes = " ".join(f"{name}:{value[:SHORT]}" for name, value in parts.items())
    return f"{prepared.team.protocol.id}@{plugin.version} {hashes} seed:{prepared.context.seed}"


def params_hash(prepared: Prepared) -> str:
    """SHA-256 over every parameter, defaults included."""
    return hash_plain(unstructure(prepared.context.params))


def score(plan: Plan, executor: Executor, progress: Progress | None = None) -> None:
    """Score every unit of every run that the plan does not take from the cache.

    Raises
    ------
    InputError, EvaluationError
    """
    tasks = plan.tasks()
    if progress is not None:
        progress(len(plan.prepared.dataset.units) - len(tasks))
    problems: list[Problem] = []
    with closing(executor.map(score_unit, tasks, plan.cache.work, progress)) as outcomes:
        for task, outcome in zip(tasks, outcomes, strict=True):
            problems += outcome.problems
            outcome.stop()
            if not outcome.problems:
                plan.collect(task.unit)
    if problems:
        raise InputError(dict.fromkeys(problems))


def evaluate(
    plan: Plan,
    comparing: CompareEntry,
    executor: Executor,
    progress: Progress | None = None,
) -> tuple[Result, tuple[Section, ...], dict[str, Replicates]]:
    """Evaluate a prepared entry.

    Parameters
    ----------
    plan
        The entry, without problems, and what of its score tables the cache has. They are read from there
        until the results are written.
    comparing
        The manifest's ``[compare]`` table.
    executor
        Where units are scored.
    progress
        A function that is told the number of units done.

    Returns
    -------
    result, sections
        For the writers.
    replicates
        Bootstrap material of every run, for ``statistics.json``.
    """
    from threadpoolctl import threadpool_limits

    score(plan, executor, progress)
    # One BLAS thread: the matrices are small, and figures must not depend on how many there are.
    with threadpool_limits(1):
        return _evaluate(plan, comparing)


def _evaluate(
    plan: Plan, comparing: CompareEntry
) -> tuple[Result, tuple[Section, ...], dict[str, Replicates]]:
    prepared = plan.prepared
    team, context = prepared.team, prepared.context
    runs: dict[str, RunResult] = {}
    measured: list[Measured] = []
    for run in prepared.runs:
        pool = _pool(plan, run, "evaluated")
        calibration = _pool(plan, run, "calibration")
        in_sample = not calibration.units
        points = tuple(
            team.guarded(
                "floorkit_calibrate",
                run.name,
                context=context,
                protocol=team.protocol,
                pool=pool if in_sample else calibration,
                in_sample=in_sample,
            )
            or ()
        )
        measure = _measure(prepared, run, points)
        figures = tuple(measure(pool, None))
        _check_figures(figures, run.name)
        measured.append(
            Measured(run.name, _clustered(plan, pool, run), measure, figures, curves=not run.control)
        )
        runs[run.name] = RunResult(
            run.name,
            run.control,
            prepared.coverage[run.name],
            points,
            figures,
            pool,
            None if in_sample else calibration,
        )
    replicates, intervals, comparisons, controls, notes = _statistics(prepared, comparing, measured)
    result = Result(
        context=context,
        protocol=team.protocol,
        plugin=team.main.distribution,
        version=team.main.version,
        signature=signature(prepared),
        dataset=prepared.dataset,
        runs={name: _with_intervals(run, intervals[name]) for name, run in runs.items()},
        marks=prepared.marks,
        comparisons=comparisons,
        controls=controls,
        notes=notes,
    )
    sections: list[Section] = []
    # pluggy calls the last registered first; the protocol's own sections come first.
    for returned in reversed(team.guarded("floorkit_report", context=context, result=result)):
        sections += returned
    return result, tuple(sections), replicates


def _with_intervals(run: RunResult, intervals: dict[str, Interval]) -> RunResult:
    import attrs

    return attrs.evolve(run, intervals=intervals)


def _pool(plan: Plan, run: Run, split: str) -> Pool:
    units = units_of(plan.prepared.dataset, run, split)
    return Pool(units, [plan.stored(run.name, unit) for unit in units])


def _clustered(plan: Plan, pool: Pool, run: Run) -> Pool:
    cluster = plan.prepared.statistics.cluster
    if cluster == "unit" or not pool.units:
        return pool
    tables = plan.stored(run.name, pool.units[0]).read()
    return pool.by(cluster, [name for name, table in tables.items() if cluster in table.columns])


def _measure(prepared: Prepared, run: Run, points: Sequence[OperatingPoint]) -> statistics.Measure:
    def measure(pool: Pool, only: Collection[str] | None) -> Sequence[Figure]:
        figures: Sequence[Figure] | None = prepared.team.guarded(
            "floorkit_measure", run.name, context=prepared.context, pool=pool, points=points, only=only
        )
        if figures is None:
            raise EvaluationError(Problem("no plugin measures", f"protocols.{prepared.context.name}"))
        return figures

    return measure


def _check_figures(figures: Sequence[Figure], run: str) -> None:
    problems = [
        Problem(
            "figure without a finite value",
            f"run {run}, {figure.key}",
            repr(figure.value),
            "a number or None",
        )
        for figure in figures
        if figure.value is not None and not math.isfinite(figure.value)
    ]
    problems += [
        Problem("figure is None without a reason", f"run {run}, {figure.key}")
        for figure in figures
        if figure.value is None and not figure.reason
    ]
    twice = [key for key, times in Counter(figure.key for figure in figures).items() if times > 1]
    problems += [Problem("two figures of one key", f"run {run}", key) for key in twice]
    if problems:
        raise EvaluationError(problems)


def _statistics(
    prepared: Prepared, comparing: CompareEntry, measured: Sequence[Measured]
) -> tuple[
    dict[str, Replicates],
    dict[str, dict[str, Interval]],
    tuple[Comparison, ...],
    tuple[Comparison, ...],
    tuple[str, ...],
]:
    settings, seed = prepared.statistics, prepared.context.seed
    noun = prepared.team.protocol.unit_noun if settings.cluster == "unit" else settings.cluster
    draws = statistics.draw(
        (name for run in measured for name in run.pool.clusters), settings.resamples, seed
    )
    replicates = statistics.replicate(measured, draws)
    intervals = {
        name: statistics.intervals(one, settings.confidence, noun) for name, one in replicates.items()
    }
    user = [run.name for run in prepared.runs if not run.control]
    ours = [replicates[run.name] for run in prepared.runs if not run.control]
    blind = [replicates[run.name] for run in prepared.runs if run.control]
    comparisons = compare_pairs(replicates, pairs(comparing, user), settings, seed, noun)
    against, sentences = compare_with_controls(ours, blind, settings, noun)
    return replicates, intervals, comparisons, against, sentences


def pairs(comparing: CompareEntry, runs: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs (A, B) of an entry's runs to compare: the manifest's, or each run with the baseline.

    The baseline is the first run where the manifest names none. Pairs whose runs this entry does not
    have belong to other entries.
    """
    if comparing.pairs:
        return [(a, b) for a, b in comparing.pairs if a in runs and b in runs]
    baseline = comparing.baseline or runs[0]
    return [(baseline, run) for run in runs if run != baseline] if baseline in runs else []
