"""From a manifest entry to checked units and runs: everything before scoring, every problem collected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
from attrs import Factory, define, frozen

import floorkit
from floorkit.core import registry
from floorkit.core.digests import Digests
from floorkit.core.engine import Recipe, check_unit, tasks_for
from floorkit.core.errors import (
    FloorkitError,
    InputError,
    ManifestError,
    Problem,
    SourceDriftError,
)
from floorkit.core.executors import Executor, Progress
from floorkit.core.manifest import Manifest, ProtocolEntry, absent_units
from floorkit.core.registry import Team
from floorkit.core.sources import InputFile, hash_values, package_location
from floorkit.core.statistics_settings import Settings, cluster_problems
from floorkit.core.structure import try_structure, unknown_key
from floorkit.core.values import Context, Coverage, Dataset, Mark, Run, Unit

UNVERIFIED = "unverified"
Hashed = dict[Path, InputFile]


@define
class Findings:
    """Problems by kind; raised as the gravest kind, all of it together."""

    drift: list[Problem] = Factory(list)
    manifest: list[Problem] = Factory(list)
    inputs: list[Problem] = Factory(list)

    def add(self, error: FloorkitError) -> None:
        """Sort a caught error in; one that is no kind of finding is raised again."""
        kinds: list[tuple[type[FloorkitError], list[Problem]]] = [
            (SourceDriftError, self.drift),
            (ManifestError, self.manifest),
            (InputError, self.inputs),
        ]
        for kind, known in kinds:
            if isinstance(error, kind):
                known.extend(error.problems)
                return
        raise error

    def stop(self) -> None:
        """Raise the first kind that has problems, in the order of exit codes 2, 3, 4."""
        for kind, problems in (
            (ManifestError, self.manifest),
            (SourceDriftError, self.drift),
            (InputError, self.inputs),
        ):
            if problems:
                raise kind(dict.fromkeys(problems))

    @property
    def all(self) -> list[Problem]:
        return list(dict.fromkeys([*self.manifest, *self.drift, *self.inputs]))


@frozen(eq=False)
class Prepared:
    """A manifest entry, ready to be scored."""

    entry: ProtocolEntry
    team: Team
    context: Context
    statistics: Settings
    dataset: Dataset
    runs: tuple[Run, ...]
    """The user's runs, then the controls."""
    coverage: Mapping[str, Coverage]
    recipe: Recipe
    marks: tuple[Mark, ...]
    hashed: Hashed

    @property
    def files(self) -> dict[Path, InputFile]:
        """Every input file of the entry."""
        named = set(self.dataset.files.values())
        for unit in self.dataset.units:
            named.update(unit.gold.files.values())
        for run in self.runs:
            for source in run.sources.values():
                named.update(source.files.values())
        return {path: self.hashed[path] for path in sorted(named)}

    def all_runs(self, unit: Unit) -> list[Run]:
        """The runs that have predictions for a unit."""
        return [run for run in self.runs if unit.key in run.sources]

    def data_fingerprint(self) -> str:
        """Hash of the gold: units, their splits, files by content, and plain values."""
        return hash_values(
            {
                "shared": self._contents(self.dataset.files),
                "units": [
                    [unit.split, unit.name, self._contents(unit.gold.files), hash_values(unit.gold.values)]
                    for unit in self.dataset.units
                ],
            }
        )

    def run_fingerprint(self, run: Run) -> str:
        """Hash of one run's predictions: files by content, and plain values, for each unit."""
        return hash_values(
            [
                [*key, self._contents(source.files), hash_values(source.values)]
                for key, source in sorted(run.sources.items())
            ]
        )

    def _contents(self, files: Mapping[str, Path]) -> dict[str, str]:
        return {role: self.hashed[path].sha256 for role, path in files.items()}


@frozen
class Options:
    """What the command line says about checking sources."""

    frozen: bool = False
    allow_source_drift: bool = False


def check_sources(manifest: Manifest, options: Options) -> tuple[list[Problem], list[str]]:
    """Compare recorded versions and hashes of the core and every plugin with what is installed.

    Returns
    -------
    problems
        Differences (SourceDriftError unless allowed).
    unrecorded
        Names of what the manifest records no source hash for.
    """
    problems: list[Problem] = []
    unrecorded: list[str] = []
    document = manifest.document

    def compare(
        recorded: tuple[str, str], found: tuple[str, str], where: str, name: str, location: Path
    ) -> None:
        difference = registry.drift(recorded, found, where, location)
        if difference is not None:
            problems.append(difference)
        if not recorded[1]:
            unrecorded.append(name)

    core = document.floorkit
    compare(
        (core.version, core.source),
        (floorkit.__version__, registry.core_source()),
        "[floorkit]",
        "floorkit",
        package_location("floorkit"),
    )
    plugins = registry.discover()
    recorded = [
        (f"[protocols.{name}]", entry.plugin, entry.version, entry.source)
        for name, entry in document.protocols.items()
    ]
    recorded += [
        (f"[plugins.{name}]", name, entry.version, entry.source) for name, entry in document.plugins.items()
    ]
    for where, distribution, version, source in recorded:
        wanted = registry.normalized(distribution)
        for plugin in [one for one in plugins if registry.normalized(one.distribution) == wanted][:1]:
            compare((version, source), (plugin.version, plugin.source), where, distribution, plugin.location)
    if options.frozen and unrecorded:
        raise ManifestError(
            Problem(
                "no source hash recorded, which --frozen requires",
                str(manifest.path),
                ", ".join(dict.fromkeys(unrecorded)),
                remedy=f"record them: floorkit lock {manifest.path.name}",
            )
        )
    return problems, list(dict.fromkeys(unrecorded))


def prepare(manifest: Manifest, name: str, hashed: Hashed, findings: Findings) -> Prepared | None:
    """Prepare one entry; problems go into ``findings``. None where they do not allow to go on."""
    entry = manifest.document.protocols[name]
    where = f"protocols.{name}"
    try:
        plugins = registry.team(entry, where, tuple(manifest.document.plugins))
        params: Any
        params, problems = try_structure(plugins.protocol.params, entry.params, f"{where}.params")
        settings, more = try_structure(Settings, entry.statistics, f"{where}.statistics")
        findings.manifest += [*problems, *more]
        if params is None or settings is None:
            return None
        findings.manifest += cluster_problems(settings, plugins.protocol, f"{where}.statistics")
        seed = manifest.document.floorkit.seed
        context = Context(name, plugins.protocol.id, params, manifest.root, seed)
        dataset: Dataset | None = plugins.guarded("floorkit_dataset", context=context, table=entry.dataset)
        if dataset is None:
            raise ManifestError(
                Problem(
                    "no plugin reads this dataset format",
                    f"{where}.dataset.format",
                    repr(entry.dataset.get("format")),
                    remedy="see the protocol's README for its formats",
                )
            )
        findings.inputs += dataset.problems
        runs, coverage = _runs(entry, where, plugins, context, dataset, findings)
        if entry.controls:
            runs += tuple(plugins.guarded("floorkit_controls", context=context, dataset=dataset) or ())
    except FloorkitError as error:
        findings.add(error)
        return None
    evaluated = dataset.split("evaluated")
    if not evaluated:
        findings.inputs.append(Problem("no unit to evaluate", f"{where}.dataset"))
    for run in runs:
        if run.control:
            present = sum(unit.key in run.sources for unit in evaluated)
            coverage[run.name] = Coverage(len(evaluated), present)
    recipe = Recipe.of(entry, context, plugins, tuple(manifest.document.plugins), dataset.load)
    marks = {mark.name: mark for mark in (*dataset.marks, *(mark for run in runs for mark in run.marks))}
    return Prepared(
        entry, plugins, context, settings, dataset, runs, coverage, recipe, tuple(marks.values()), hashed
    )


def _runs(
    entry: ProtocolEntry,
    where: str,
    plugins: Team,
    context: Context,
    dataset: Dataset,
    findings: Findings,
) -> tuple[tuple[Run, ...], dict[str, Coverage]]:
    runs: list[Run] = []
    coverage: dict[str, Coverage] = {}
    names = {unit.name for unit in dataset.units}
    for name, table in entry.runs.items():
        place = f"{where}.runs.{name}"
        try:
            rest, absent = absent_units(table, place)
            run: Run | None = plugins.guarded(
                "floorkit_predictions", name, context=context, dataset=dataset, run=name, table=rest
            )
        except FloorkitError as error:
            findings.add(error)
            continue
        if run is None:
            findings.manifest.append(Problem("no plugin reads this run", place, str(rest)))
            continue
        findings.inputs += run.problems
        findings.manifest += [
            unknown_key(unit, sorted(names), f"{place}.absent") for unit in absent if unit not in names
        ]
        findings.manifest += [
            Problem("declared absent, but its prediction is there", f"{place}.absent", key[1])
            for key in run.sources
            if key[1] in absent
        ]
        missing = [unit for unit in dataset.units if unit.key not in run.sources]
        findings.inputs += [
            Problem(
                "no prediction for a unit of the dataset",
                place,
                f"{unit.name} ({unit.split}) is missing",
                f"predictions for all {len(dataset.units)} units",
                f"add it, or declare it: absent = [{unit.name!r}]",
            )
            for unit in missing
            if unit.name not in absent
        ]
        runs.append(run)
        evaluated = dataset.split("evaluated")
        coverage[name] = Coverage(
            len(evaluated),
            sum(unit.key in run.sources for unit in evaluated),
            tuple(unit.name for unit in missing if unit.split == "evaluated"),
            run.extra,
        )
    return tuple(runs), coverage


def hash_inputs(
    prepared: Iterable[Prepared],
    hashed: Hashed,
    jobs: int,
    findings: Findings,
    digests: Digests | None = None,
) -> None:
    """Hash every input file of the entries once, in threads (hashing releases the interpreter lock).

    Digests that are remembered are taken from there, and new ones remembered.
    """
    from concurrent.futures import ThreadPoolExecutor

    wanted: set[Path] = set()
    for one in prepared:
        wanted.update(one.dataset.files.values())
        sources = [unit.gold for unit in one.dataset.units]
        sources += [source for run in one.runs for source in run.sources.values()]
        for source in sources:
            wanted.update(source.files.values())
    unknown = sorted(wanted - hashed.keys())
    if digests is not None:
        hashed.update(digests.known(unknown))
        unknown = [path for path in unknown if path not in hashed]

    def read(path: Path) -> InputFile | InputError:
        try:
            return InputFile.read(path)
        except InputError as error:
            return error

    with ThreadPoolExecutor(jobs) as pool:
        for path, outcome in zip(unknown, (pool.map if jobs > 1 else map)(read, unknown), strict=True):
            if isinstance(outcome, InputError):
                findings.add(outcome)
                continue
            hashed[path] = outcome
            if digests is not None:
                digests.learn(outcome)
    if digests is not None:
        digests.save()


def check_contents(
    one: Prepared,
    runs: Callable[[Unit], Sequence[Run]],
    executor: Executor,
    scratch: Path,
    findings: Findings,
    progress: Progress | None = None,
) -> None:
    """Load every unit's gold and the predictions of ``runs(unit)`` once, in workers, for their problems.

    Controls have none.
    """

    def of_user(unit: Unit) -> list[Run]:
        return [run for run in runs(unit) if not run.control]

    tasks = tasks_for(one.recipe, one.dataset.units, of_user, one.hashed, scratch, lambda *_: "")
    if progress is not None:
        progress(len(one.dataset.units) - len(tasks))
    with closing(executor.map(check_unit, tasks, scratch, progress)) as outcomes:
        for outcome in outcomes:
            findings.inputs += outcome.problems
            outcome.stop()


def units_of(dataset: Dataset, run: Run, split: str) -> tuple[Unit, ...]:
    """The dataset's units of a split that the run has predictions for, in order."""
    return tuple(unit for unit in dataset.units if unit.split == split and unit.key in run.sources)


def unverified_mark(problems: Sequence[Problem]) -> Mark:
    """The mark of results whose code is not the recorded one."""
    names = ", ".join(problem.where for problem in problems)
    return Mark(UNVERIFIED, f"installed code differs from the recorded hashes: {names}")


def with_mark(prepared: Prepared, mark: Mark) -> Prepared:
    """The same entry with a further mark."""
    return attrs.evolve(prepared, marks=(*prepared.marks, mark))
