"""Checking and scoring units, in this process or in workers: the same bytes whatever the number.

A worker gets names, hashes and plain values. It imports the plugin, hashes it again, and refuses to
compute on a difference. One task is one unit with all its runs, so that gold is loaded once.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs
from attrs import field, frozen

from floorkit.core import store
from floorkit.core.errors import EvaluationError, FloorkitError, InputError, Problem, SourceDriftError
from floorkit.core.manifest import ProtocolEntry
from floorkit.core.registry import Team, core_source, team
from floorkit.core.sources import InputFile
from floorkit.core.structure import structure, unstructure
from floorkit.core.values import Context, Run, Source, Tables, Unit

Progress = Callable[[int], None]
"""Called with the number of units that were finished."""


@frozen
class Recipe:
    """All that a worker needs of an entry: names, hashes, plain values."""

    entry: ProtocolEntry
    name: str
    protocol: str
    params: Mapping[str, Any]
    root: Path
    seed: int
    cross: tuple[str, ...]
    sources: tuple[tuple[str, str], ...]
    """(distribution, source hash) of the core and every plugin of the entry."""
    load_gold: str

    @classmethod
    def of(
        cls,
        entry: ProtocolEntry,
        context: Context,
        plugins: Team,
        cross: Sequence[str],
        load: Callable[..., Any],
    ) -> Recipe:
        members = [member.plugin for member in plugins.members]
        return cls(
            entry=entry,
            name=context.name,
            protocol=context.protocol,
            params=unstructure(context.params),
            root=context.root,
            seed=context.seed,
            cross=tuple(cross),
            sources=(("floorkit", core_source()), *((p.distribution, p.source) for p in members)),
            load_gold=function_name(load, "Dataset.load"),
        )


@frozen
class RunPart:
    """One run's share of a unit's task."""

    run: str
    control: bool
    source: Source
    load: str
    out: Path | None


@frozen
class Task:
    """One unit with all its runs, and the states that its files had when they were hashed."""

    recipe: Recipe
    unit: Unit
    parts: tuple[RunPart, ...]
    files: tuple[InputFile, ...] = ()
    marker: Path | None = None


@frozen
class Outcome:
    """What became of a task: problems of the inputs, or a failure, or neither."""

    problems: tuple[Problem, ...] = ()
    failure: FloorkitError | None = None
    trace: str = field(default="", repr=False)


def function_name(function: Callable[..., Any], what: str) -> str:
    """``module:qualified name`` of a module-level function, which is how it crosses to a worker."""
    name = f"{function.__module__}:{function.__qualname__}"
    if "<" in name:
        raise EvaluationError(
            Problem("not a module-level function", what, name, "a function that a worker can import by name")
        )
    return name


def resolve_function(name: str) -> Callable[..., Any]:
    """The function behind :func:`function_name`."""
    module, _, qualified = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in qualified.split("."):
        found = getattr(found, part)
    function: Callable[..., Any] = found
    return function


_prepared: dict[str, tuple[Team, Context]] = {}


def _prepare(recipe: Recipe) -> tuple[Team, Context]:
    """The entry's plugins and context in this process, hashed again once a process."""
    key = repr((recipe.sources, recipe.name, recipe.params, recipe.root, recipe.seed, recipe.entry.protocol))
    if key not in _prepared:
        plugins = team(recipe.entry, f"protocols.{recipe.name}", recipe.cross)
        found = dict(
            (
                ("floorkit", core_source()),
                *((m.plugin.distribution, m.plugin.source) for m in plugins.members),
            )
        )
        problems = [
            Problem("a worker has other source code", name, found.get(name, "not installed"), source)
            for name, source in recipe.sources
            if found.get(name) != source
        ]
        if problems:
            raise SourceDriftError(problems)
        params: Any = structure(plugins.protocol.params, recipe.params, f"protocols.{recipe.name}.params")
        _prepared[key] = plugins, Context(recipe.name, recipe.protocol, params, recipe.root, recipe.seed)
    return _prepared[key]


def check_unit(task: Task) -> Outcome:
    """Load a unit's gold and the predictions of every run, for their problems alone."""
    return _guarded(task, _check_unit)


def score_unit(task: Task) -> Outcome:
    """Score a unit's runs and store their tables."""
    return _guarded(task, _score_unit)


def _guarded(task: Task, work: Callable[[Task, list[Problem]], None]) -> Outcome:
    problems: list[Problem] = []
    if task.marker is not None:
        task.marker.touch()
    try:
        work(task, problems)
    except FloorkitError as error:
        return Outcome(tuple(problems), error, traceback.format_exc())
    finally:
        if task.marker is not None:
            task.marker.unlink(missing_ok=True)
    return Outcome(tuple(problems))


def _call(task: Task, hook: str, run: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except FloorkitError:
        raise
    except MemoryError:
        raise EvaluationError(
            Problem("out of memory", f"{task.unit.name}, run {run}", remedy="use fewer --jobs")
        ) from None
    except Exception as error:
        sources = ", ".join(f"{name} {source[:15]}" for name, source in task.recipe.sources[1:])
        raise EvaluationError(
            Problem(
                f"{hook} failed",
                f"unit {task.unit.name}" + (f", run {run}" if run else ""),
                f"{type(error).__name__}: {error}",
                remedy=f"a defect of the plugin ({sources}); --debug shows the traceback",
            )
        ) from error


def _load_gold(task: Task, context: Context) -> Any:
    return _call(task, "Dataset.load", "", resolve_function(task.recipe.load_gold), context, task.unit)


def _check_unit(task: Task, problems: list[Problem]) -> None:
    _, context = _prepare(task.recipe)
    try:
        gold = _load_gold(task, context)
    except InputError as error:
        problems += error.problems
        return
    for part in task.parts:
        try:
            load = resolve_function(part.load)
            _call(task, "Run.load", part.run, load, context, task.unit, part.source, gold)
        except InputError as error:
            problems += error.problems


def _score_unit(task: Task, problems: list[Problem]) -> None:
    plugins, context = _prepare(task.recipe)
    gold = _load_gold(task, context)
    scored: dict[str, Tables] = {}
    keep = plugins.implements("floorkit_align")
    for part in task.parts:
        prediction = _call(
            task, "Run.load", part.run, resolve_function(part.load), context, task.unit, part.source, gold
        )
        tables = _call(
            task,
            "floorkit_score",
            part.run,
            lambda p=prediction: plugins.hook.floorkit_score(
                context=context, unit=task.unit, gold=gold, prediction=p
            ),
        )
        if tables is None:
            raise EvaluationError(Problem("no plugin scores", f"unit {task.unit.name}, run {part.run}"))
        if keep and not part.control:
            scored[part.run] = tables
        elif part.out is not None:
            store.write(part.out, tables)
    if scored:
        changed = _call(
            task,
            "floorkit_align",
            "",
            lambda: plugins.hook.floorkit_align(context=context, tables=scored),
        )
        scored.update(changed or {})
        for part in task.parts:
            if part.run in scored and part.out is not None:
                store.write(part.out, scored[part.run])
    problems += [problem for file in task.files if (problem := file.changed()) is not None]


def run_tasks(
    work: Callable[[Task], Outcome],
    tasks: Sequence[Task],
    jobs: int,
    scratch: Path,
    progress: Progress | None = None,
) -> Iterator[Outcome]:
    """Outcomes in the order of ``tasks``, computed by ``jobs`` processes (1: in this one).

    Raises
    ------
    EvaluationError
        A worker died; the units it was at are named.
    """
    if jobs == 1 or len(tasks) == 1:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            for task in tasks:
                yield work(task)
                if progress is not None:
                    progress(1)
        return
    yield from _run_in_workers(work, tasks, jobs, scratch, progress)


def _run_in_workers(
    work: Callable[[Task], Outcome],
    tasks: Sequence[Task],
    jobs: int,
    scratch: Path,
    progress: Progress | None,
) -> Iterator[Outcome]:
    import joblib
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.process_executor import BrokenProcessPool

    marked = [attrs.evolve(task, marker=scratch / f"{index}.running") for index, task in enumerate(tasks)]
    finished = False
    try:
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            outcomes = joblib.Parallel(n_jobs=jobs, return_as="generator", pre_dispatch="4*n_jobs")(
                joblib.delayed(work)(task) for task in marked
            )
            for outcome in outcomes:
                yield outcome
                if progress is not None:
                    progress(1)
        finished = True
    except BrokenProcessPool as error:
        running = [
            f"unit {task.unit.name}" for task in marked if task.marker is not None and task.marker.exists()
        ]
        raise EvaluationError(
            Problem(
                "a worker process died",
                ", ".join(running),
                str(error).splitlines()[0],
                remedy="if memory ran out, use fewer --jobs",
            )
        ) from None
    finally:
        if not finished:
            get_reusable_executor().shutdown(wait=True, kill_workers=True)


Kind = Literal["check", "score"]


def tasks_for(
    recipe: Recipe,
    units: Sequence[Unit],
    runs: Sequence[Run],
    hashed: Mapping[Path, InputFile],
    out: Callable[[str, Unit], Path] | None,
) -> list[Task]:
    """One task a unit; a run without a source for it (declared absent) takes no part in it."""
    tasks = []
    for unit in units:
        parts = tuple(
            RunPart(
                run.name,
                run.control,
                run.sources[unit.key],
                function_name(run.load, f"Run.load of {run.name}"),
                out(run.name, unit) if out is not None else None,
            )
            for run in runs
            if unit.key in run.sources
        )
        files = {*unit.gold.files.values(), *(f for part in parts for f in part.source.files.values())}
        tasks.append(
            Task(recipe, unit, parts, tuple(hashed[file] for file in sorted(files) if file in hashed))
        )
    return tasks
