"""What the rules look at: one manifest entry, prepared, scored and measured as the engine does it."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Collection, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import attrs
from attrs import define, field

from floorkit.core import manifest as manifests
from floorkit.core import registry, results
from floorkit.core.cache import Cache
from floorkit.core.errors import FloorkitError, Problem
from floorkit.core.evaluate import evaluate
from floorkit.core.executors import Executor
from floorkit.core.manifest import Manifest
from floorkit.core.pool import Pool
from floorkit.core.prepare import Findings, Hashed, Prepared, check_contents, hash_inputs, prepare, units_of
from floorkit.core.registry import Failed, Loaded, Plugin
from floorkit.core.reuse import plan
from floorkit.core.sections import Section, TableSection
from floorkit.core.values import Figure, OperatingPoint, Result, Run, Split, Tables, Unit, UnitKey
from floorkit.testing.watch import Deed, watching

RESAMPLES = 100
"""Bootstrap resamples of the kit: intervals are not what it looks at."""

ScoredKey = tuple[str, UnitKey]
"""(run, unit key)."""


class Unprepared(FloorkitError):
    """The kit's own manifest cannot be run, so that no rule can be checked on it."""

    headline = "the conformance kit cannot start"


def prepare_entry(manifest: Manifest, name: str, findings: Findings) -> Prepared | None:
    """Steps 1 to 4 of a run for one entry, in this process, contents checked."""
    hashed: Hashed = {}
    prepared = prepare(manifest, name, hashed, findings)
    if prepared is not None:
        hash_inputs([prepared], hashed, 1, findings)
        if not findings.all:
            with tempfile.TemporaryDirectory(prefix="floorkit-") as scratch:
                check_contents(prepared, prepared.all_runs, Executor(), Path(scratch), findings)
    return prepared


@define(eq=False, slots=False)
class Evidence:
    """One entry of a manifest and, computed when a rule asks, everything that comes of it.

    Parameters
    ----------
    path
        The manifest.
    entry
        Name of its ``[protocols.NAME]`` table.
    watched
        Whether to note what hooks do beside returning values, in ``deeds``.
    backwards
        Whether to score runs and units in reverse order.
    """

    path: Path
    entry: str
    watched: bool = False
    backwards: bool = False
    deeds: list[Deed] = field(factory=list)

    @cached_property
    def manifest(self) -> Manifest:
        return manifests.read(self.path)

    @cached_property
    def plugin(self) -> Plugin:
        """The entry's plugin: its first entry point."""
        wanted = self.manifest.document.protocols[self.entry].plugin
        return registry.find(wanted, f"protocols.{self.entry}.plugin", registry.discover())[0]

    @cached_property
    def loaded(self) -> Loaded | Failed:
        return registry.load(self.plugin)

    @cached_property
    def prepared(self) -> Prepared:
        findings = Findings()
        prepared = prepare_entry(self.manifest, self.entry, findings)
        if prepared is None or findings.all:
            raise Unprepared(findings.all)
        settings = attrs.evolve(prepared.statistics, resamples=RESAMPLES)
        return attrs.evolve(prepared, statistics=settings)

    # --- hooks, one call at a time -------------------------------------------------------------

    def call(self, hook: str, place: str = "", /, **arguments: Any) -> Any:
        """Call a hook of the entry's plugins, watched where this evidence is."""
        with self._watch(f"{hook}, {place}" if place else hook):
            return self.prepared.team.guarded(hook, place, **arguments)

    def _watch(self, place: str) -> Any:
        return watching(place, self.plugin.package, self.deeds) if self.watched else contextlib.nullcontext()

    def gold(self, unit: Unit) -> Any:
        """A unit's gold, freshly loaded."""
        with self._watch(f"Dataset.load, unit {unit.name}"):
            return self.prepared.dataset.load(self.prepared.context, unit)

    def prediction(self, run: Run, unit: Unit, gold: Any) -> Any:
        """A run's prediction for a unit, freshly loaded."""
        with self._watch(f"Run.load, run {run.name}, unit {unit.name}"):
            return run.load(self.prepared.context, unit, run.sources[unit.key], gold)

    def score(self, run: Run, unit: Unit) -> Tables:
        """One unit of one run, loaded and scored afresh."""
        gold = self.gold(unit)
        return self.score_loaded(unit, gold, self.prediction(run, unit, gold))

    def score_loaded(self, unit: Unit, gold: Any, prediction: Any) -> Tables:
        """Score what was loaded."""
        tables: Tables | None = self.call(
            "floorkit_score",
            f"unit {unit.name}",
            context=self.prepared.context,
            unit=unit,
            gold=gold,
            prediction=prediction,
        )
        if tables is None:
            raise Unprepared(Problem("no plugin scores", f"protocols.{self.entry}"))
        return tables

    def pairs(self) -> list[tuple[Run, Unit]]:
        """Every run with every unit that it has a prediction for, runs and units in order."""
        return [
            (run, unit)
            for run in self.prepared.runs
            for unit in self.prepared.dataset.units
            if unit.key in run.sources
        ]

    @cached_property
    def scored(self) -> Mapping[ScoredKey, Tables]:
        """The tables of every run and unit, as ``floorkit_score`` gives them."""
        pairs = self.pairs()[::-1] if self.backwards else self.pairs()
        return {(run.name, unit.key): self.score(run, unit) for run, unit in pairs}

    @cached_property
    def tables(self) -> Mapping[ScoredKey, Tables]:
        """The same after ``floorkit_align``."""
        aligned = dict(self.scored)
        if self.prepared.team.implements("floorkit_align"):
            user = [run.name for run in self.prepared.runs if not run.control]
            for unit in self.prepared.dataset.units:
                together = {run: aligned[run, unit.key] for run in user if (run, unit.key) in aligned}
                changed = self.call("floorkit_align", context=self.prepared.context, tables=together)
                aligned.update({(run, unit.key): tables for run, tables in (changed or {}).items()})
        return aligned

    def pool(self, run: Run, split: Split = "evaluated", units: Sequence[Unit] | None = None) -> Pool:
        """A fresh pool of a run's tables, of these ``units`` where given."""
        if units is None:
            units = units_of(self.prepared.dataset, run, split)
        return Pool.of(units, [self.tables[run.name, unit.key] for unit in units])

    def points(self, run: Run) -> tuple[OperatingPoint, ...]:
        """The run's operating points, as the engine chooses them."""
        pool = self.pool(run, "calibration")
        in_sample = not pool.units
        points = self.call(
            "floorkit_calibrate",
            context=self.prepared.context,
            protocol=self.prepared.team.protocol,
            pool=self.pool(run) if in_sample else pool,
            in_sample=in_sample,
        )
        return tuple(points or ())

    def measure(
        self, pool: Pool, points: Sequence[OperatingPoint], only: Collection[str] | None = None
    ) -> tuple[Figure, ...]:
        """The figures of a pool."""
        figures = self.call(
            "floorkit_measure", context=self.prepared.context, pool=pool, points=points, only=only
        )
        return tuple(figures or ())

    @cached_property
    def figures(self) -> Mapping[str, tuple[Figure, ...]]:
        """Every run's figures over its evaluated units."""
        return {run.name: self.measure(self.pool(run), self.points(run)) for run in self.prepared.runs}

    def read_rows(self, sections: Sequence[Section]) -> list[tuple[TableSection, list[Any]]]:
        """Every table of the sections with its rows, read to the end."""
        with self._watch("floorkit_report, rows of a table"):
            return [
                (section, [tuple(row) for row in section.iterate()])
                for section in sections
                if isinstance(section, TableSection)
            ]

    # --- the whole, by the engine ----------------------------------------------------------------

    @cached_property
    def _scratch(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="floorkit-conformance-")

    def scratch(self, name: str) -> Path:
        """A new folder that lives as long as this evidence."""
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._scratch.name))

    def evaluated(self, prepared: Prepared) -> results.Evaluated:
        """The entry, or a changed one, through the engine; its tables stay as long as this evidence."""
        folder = self.scratch("tables")
        cache = Cache.within(folder, folder / "work")
        result, sections, _ = evaluate(plan(prepared, cache), self.manifest.document.compare, Executor())
        return results.Evaluated(result, sections, {})

    @cached_property
    def whole(self) -> results.Evaluated:
        return self.evaluated(self.prepared)

    @property
    def result(self) -> Result:
        return self.whole.result

    @property
    def sections(self) -> tuple[Section, ...]:
        return self.whole.sections

    def written(self, evaluated: results.Evaluated) -> Path:
        """The folder of the entry's result files, as the core writes them."""
        output = self.scratch("results") / "results"
        results.write(output, [evaluated], {}, keep=False)
        return output / self.entry

    def written_hashes(self) -> dict[str, str]:
        """SHA-256 of the entry's result files by name, without the signature, which tells of the core's
        sources.
        """
        folder, signature = self.written(self.whole), self.result.signature.encode()
        return {
            path.relative_to(folder).as_posix(): hashlib.sha256(
                path.read_bytes().replace(signature, b"")
            ).hexdigest()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    def with_units(self, units: Sequence[Unit]) -> Prepared:
        """The entry with these units alone: what another manifest would have prepared."""
        keys = {unit.key for unit in units}
        dataset = attrs.evolve(self.prepared.dataset, units=tuple(units))
        runs = tuple(
            attrs.evolve(run, sources={key: source for key, source in run.sources.items() if key in keys})
            for run in self.prepared.runs
        )
        return attrs.evolve(self.prepared, dataset=dataset, runs=runs)


@cache
def evidence(path: Path, entry: str) -> Evidence:
    """The evidence of an entry, shared by all rules of one process."""
    return Evidence(path, entry)
