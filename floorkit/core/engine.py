"""Checking and scoring one unit: what a worker does, be it this process, another, or one on a cluster.

A worker gets names, hashes and plain values. Before it imports the plugin it hashes its sources again, and
it refuses to compute on a difference. One task is one unit with all its runs, so that gold is loaded once.
"""

from __future__ import annotations

import importlib
import os
import socket
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import attrs
from attrs import field, frozen

from floorkit.core import registry, store
from floorkit.core.errors import EvaluationError, FloorkitError, InputError, Problem, SourceDriftError
from floorkit.core.manifest import ProtocolEntry
from floorkit.core.paths import shown
from floorkit.core.registry import Team, core_source, normalized, team
from floorkit.core.sources import InputFile, hash_plain
from floorkit.core.structure import structure, unstructure
from floorkit.core.values import Context, Run, Source, Tables, Unit


@frozen
class Recipe:
    """All that a worker needs of an entry: names, hashes, plain values."""

    entry: ProtocolEntry
    """The entry without its tables, which can be long and which no worker needs."""
    name: str
    protocol: str
    params: Mapping[str, Any]
    root: Path
    seed: int
    cross: tuple[str, ...]
    plugin: str
    """The protocol's plugin with its version, for messages."""
    sources: tuple[tuple[str, str], ...]
    """(distribution, source hash) of the core and every plugin of the entry."""
    load_gold: str
    host: str
    """Where the input files were hashed."""
    identity: str
    """Tells recipes apart."""

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
        sources = (("floorkit", core_source()), *((p.distribution, p.source) for p in members))
        params = unstructure(context.params)
        identity = [sources, context.name, context.protocol, params, str(context.root), context.seed]
        return cls(
            entry=attrs.evolve(entry, dataset={}, runs={}, params={}, statistics={}),
            name=context.name,
            protocol=context.protocol,
            params=params,
            root=context.root,
            seed=context.seed,
            cross=tuple(cross),
            plugin=f"{plugins.main.distribution} {plugins.main.version}",
            sources=sources,
            load_gold=function_name(load, "Dataset.load"),
            host=socket.gethostname(),
            identity=hash_plain(identity),
        )


@frozen
class RunPart:
    """One run's share of a unit's task: its prediction, and the key that its tables are stored under."""

    run: str
    control: bool
    source: Source
    load: str
    key: str


@frozen
class Task:
    """One unit with some of its runs, and the states that its files had when they were hashed."""

    recipe: Recipe
    unit: Unit
    parts: tuple[RunPart, ...]
    files: tuple[InputFile, ...]
    cache: Path
    """The cache folder."""


@frozen
class Outcome:
    """What became of a task: problems of the inputs, or a failure, or neither."""

    problems: tuple[Problem, ...] = ()
    failure: FloorkitError | None = None
    trace: str = field(default="", repr=False)

    def stop(self) -> None:
        """Raise the failure, if there is one, with the worker's traceback as a note."""
        if self.failure is not None:
            self.failure.__notes__ = [self.trace]
            raise self.failure


def function_name(function: Callable[..., Any], what: str) -> str:
    """``module:qualified name`` of a module-level function, which is how it crosses to a worker."""
    name = f"{function.__module__}:{function.__qualname__}"
    if "<" in name:
        raise EvaluationError(
            Problem("not a module-level function", what, name, "a function that a worker can import by name")
        )
    return name


@cache
def resolve_function(name: str) -> Callable[..., Any]:
    """The function behind :func:`function_name`."""
    module, _, qualified = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in qualified.split("."):
        found = getattr(found, part)
    function: Callable[..., Any] = found
    return function


def this_process() -> str:
    """This process, as messages from a worker name it."""
    return f"process {os.getpid()} on {socket.gethostname()}"


_prepared: dict[str, tuple[Team, Context]] = {}
_imported: dict[str, str] = {}
"""Source hash of every distribution when this process imported it."""


def refusals(recipe: Recipe) -> list[Problem]:
    """Why this process must not compute for a recipe: code that it lacks, or that is not the recorded one.

    Hashes again what is on disk; runs no plugin code.
    """
    plugins = {normalized(plugin.distribution): plugin for plugin in registry.discover()}
    problems = []
    for name, source in recipe.sources:
        plugin = plugins.get(normalized(name))
        found = core_source() if name == "floorkit" else plugin.source if plugin else "not installed"
        if found != source:
            remedy = "install the same versions wherever units are computed, and start the workers anew"
            problems.append(
                Problem(f"a worker has other code: {name}", this_process(), found, source, remedy)
            )
        elif _imported.get(name, source) != source:
            problems.append(
                Problem(
                    f"a worker still runs older code: {name}",
                    this_process(),
                    _imported[name],
                    source,
                    "start the workers anew",
                )
            )
    return problems


def _prepare(recipe: Recipe) -> tuple[Team, Context]:
    """The entry's plugins and context in this process, hashed again once a process."""
    if recipe.identity not in _prepared:
        problems = refusals(recipe)
        if problems:
            raise SourceDriftError(problems)
        _imported.update(recipe.sources)
        plugins = team(recipe.entry, f"protocols.{recipe.name}", recipe.cross)
        params: Any = structure(plugins.protocol.params, recipe.params, f"protocols.{recipe.name}.params")
        context = Context(recipe.name, recipe.protocol, params, recipe.root, recipe.seed)
        _prepared[recipe.identity] = plugins, context
    return _prepared[recipe.identity]


def check_unit(task: Task) -> Outcome:
    """Load a unit's gold and the predictions of every run, for their problems alone."""
    return _guarded(task, _check_unit)


def score_unit(task: Task) -> Outcome:
    """Score a unit's runs and store their tables."""
    return _guarded(task, _score_unit)


def _guarded(task: Task, work: Callable[[Task, list[Problem]], None]) -> Outcome:
    problems: list[Problem] = []
    try:
        work(task, problems)
    except FloorkitError as error:
        return Outcome(tuple(problems), error, traceback.format_exc())
    return Outcome(tuple(problems))


def _call(task: Task, hook: str, run: str, function: Callable[..., Any], *arguments: Any) -> Any:
    place = f"{task.recipe.plugin}, {hook}, unit {task.unit.name}" + (f", run {run}" if run else "")
    try:
        return function(*arguments)
    except FloorkitError:
        raise
    except MemoryError:
        raise EvaluationError(Problem("out of memory", place, remedy="use fewer --jobs")) from None
    except Exception as error:
        raise EvaluationError(
            Problem(
                "a hook of the plugin failed",
                place,
                f"{type(error).__name__}: {error}",
                remedy="this is a defect of the plugin; --debug shows the traceback",
            )
        ) from error


def _load_gold(task: Task, context: Context) -> Any:
    return _call(task, "Dataset.load", "", resolve_function(task.recipe.load_gold), context, task.unit)


def _load(task: Task, part: RunPart, context: Context, gold: Any) -> Any:
    load = resolve_function(part.load)
    return _call(task, "Run.load", part.run, load, context, task.unit, part.source, gold)


def _changed(task: Task) -> list[Problem]:
    """Files that this process does not see, or not as they were hashed."""
    here = socket.gethostname()
    problems = []
    for file in task.files:
        try:
            problem = file.changed(here == task.recipe.host)
        except InputError as error:
            problem = Problem(
                "a worker cannot read an input file",
                shown(file.path),
                f"{error.problems[0].found} ({this_process()})",
                "inputs under the same path wherever units are computed",
                "put them on a file system that all workers share",
            )
        if problem is not None:
            problems.append(problem)
    return problems


def _check_unit(task: Task, problems: list[Problem]) -> None:
    _, context = _prepare(task.recipe)
    problems += _changed(task)
    if problems:
        return
    try:
        gold = _load_gold(task, context)
    except InputError as error:
        problems += error.problems
        return
    for part in task.parts:
        try:
            _load(task, part, context, gold)
        except InputError as error:
            problems += error.problems


def _score_unit(task: Task, problems: list[Problem]) -> None:
    plugins, context = _prepare(task.recipe)
    problems += _changed(task)
    if problems:
        return
    gold = _load_gold(task, context)
    scored: dict[str, Tables] = {}
    for part in task.parts:
        prediction = _load(task, part, context, gold)
        tables = _call(
            task,
            "floorkit_score",
            part.run,
            lambda p=prediction: plugins.hook.floorkit_score(
                context=context, unit=task.unit, gold=gold, prediction=p
            ),
        )
        del prediction  # before the next run's is loaded: it may be as large as memory allows
        if tables is None:
            raise EvaluationError(Problem("no plugin scores", f"unit {task.unit.name}, run {part.run}"))
        scored[part.run] = tables
    user = {part.run: scored[part.run] for part in task.parts if not part.control}
    if user and plugins.implements("floorkit_align"):
        scored |= (
            _call(
                task,
                "floorkit_align",
                "",
                lambda: plugins.hook.floorkit_align(context=context, tables=user),
            )
            or {}
        )
    problems += _changed(task)
    if not problems:
        for part in task.parts:
            _store(task, part.key, scored[part.run])


def _store(task: Task, key: str, tables: Tables) -> None:
    try:
        store.write(store.place(task.cache, key), tables, key)
    except OSError as error:
        raise cannot_store(task.cache, error) from None


def cannot_store(folder: Path, error: OSError) -> EvaluationError:
    """The failure of a worker that cannot write below the cache folder."""
    return EvaluationError(
        Problem(
            "a worker cannot write to the cache",
            str(folder),
            f"{error.strerror or error} ({this_process()})",
            "a cache folder that can be written to wherever units are computed",
            "name another one in $FLOORKIT_CACHE",
        )
    )


def tasks_for(
    recipe: Recipe,
    units: Iterable[Unit],
    runs: Callable[[Unit], Sequence[Run]],
    hashed: Mapping[Path, InputFile],
    cache: Path,
    key: Callable[[str, Unit], str],
) -> list[Task]:
    """One task for every unit that has ``runs(unit)`` to load.

    Parameters
    ----------
    cache, key
        The cache folder, and the key that a run's tables of a unit are stored under.
    """
    tasks = []
    for unit in units:
        parts = tuple(
            RunPart(
                run.name,
                run.control,
                run.sources[unit.key],
                function_name(run.load, f"Run.load of {run.name}"),
                key(run.name, unit),
            )
            for run in runs(unit)
        )
        if parts:
            sources = [unit.gold, *(part.source for part in parts)]
            files = dict.fromkeys(file for source in sources for file in source.files.values())
            tasks.append(
                Task(recipe, unit, parts, tuple(hashed[file] for file in files if file in hashed), cache)
            )
    return tasks
