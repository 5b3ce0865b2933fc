"""What a unit's score tables depend on, which of them the cache has, and why the others are computed.

A table's key is the SHA-256 of the source hashes of the core and of all plugins of the entry, the
versions of Python and of the packages that the plugins compute with, the protocol, every parameter, the
seed, the dataset's shared files, the unit, and the files and plain values of gold and prediction, with
the functions that load them. Where the plugin implements ``floorkit_align``, the keys of all user runs
of the unit go in as well. What stands in a file counts by its contents and name, not by its folder; names
of entries and runs do not count, because no score depends on them.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from floorkit.core import sealed
from floorkit.core.cache import Cache
from floorkit.core.engine import Task, function_name, tasks_for
from floorkit.core.environment import package_versions
from floorkit.core.errors import EvaluationError, Problem
from floorkit.core.prepare import Prepared
from floorkit.core.registry import core_source
from floorkit.core.sources import hash_plain, hash_values
from floorkit.core.store import StoredTables
from floorkit.core.structure import unstructure
from floorkit.core.values import Run, Source, Unit, UnitKey

Facts = Mapping[str, str]
"""What something depends on, each thing by name, as a hash or a version."""

Place = tuple[str, UnitKey]
"""(run, unit)."""

READABLE = 40
"""Longest text of a fact that is told as it is; of hashes the first digits are."""


def entry_facts(prepared: Prepared) -> Facts:
    """What every table of the entry depends on."""
    plugins = [member.plugin for member in prepared.team.members]
    facts = {
        "the core's source": core_source(),
        **{f"the source of {plugin.distribution}": plugin.source for plugin in plugins},
        "Python": f"{platform.python_implementation()} {platform.python_version()} {platform.machine()}",
        "the protocol": prepared.team.protocol.id,
        "the seed": str(prepared.context.seed),
        "the shared files of the dataset": _digest(_contents(prepared, prepared.dataset.files)),
        "the function that loads gold": function_name(prepared.dataset.load, "Dataset.load"),
    }
    packages = package_versions(["numpy", *(one.distribution for one in plugins)], without=["floorkit"])
    facts |= {f"package {name}": version for name, version in packages.items()}
    params = unstructure(prepared.context.params)
    return facts | {f"parameter {name}": _text(value) for name, value in params.items()}


def _text(value: Any) -> str:
    """A parameter's value as JSON where that is short enough to be read, else its hash."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= READABLE else hash_plain(value)


def unit_facts(prepared: Prepared, unit: Unit) -> Facts:
    """What a unit's tables depend on beside: the unit and its gold."""
    info = [hash_values(unit.info)] if unit.info else []
    return {"the unit": _digest([unit.split, unit.name, *info]), "gold": _source_digest(prepared, unit.gold)}


def run_facts(prepared: Prepared, run: Run, unit: Unit) -> Facts:
    """What the tables of one run's unit depend on beside: the prediction."""
    return {
        "the prediction": _source_digest(prepared, run.sources[unit.key]),
        "the function that loads predictions": function_name(run.load, f"Run.load of {run.name}"),
    }


def _source_digest(prepared: Prepared, source: Source) -> str:
    values = [hash_values(source.values)] if source.values else []
    return _digest([*_contents(prepared, source.files), *values])


def _contents(prepared: Prepared, files: Mapping[str, Path]) -> list[str]:
    """Role, name and digest of each file, sorted by role."""
    rows = sorted((role, path.name, prepared.hashed[path].sha256) for role, path in files.items())
    return [text for row in rows for text in row]


def _digest(texts: Iterable[str]) -> str:
    """SHA-256 (hex) of texts in their order; no two sequences share one."""
    return hashlib.sha256(
        "".join(f"{len(text)}:{text}" for text in texts).encode("utf-8", "surrogatepass")
    ).hexdigest()


@frozen(eq=False)
class Plan:
    """Which tables of an entry are taken from the cache and which are computed.

    Parameters
    ----------
    keys
        The key of every unit of every run.
    tables
        What the cache had; :meth:`collect` adds what was computed.
    reasons
        Why tables are computed.
    """

    prepared: Prepared
    cache: Cache
    keys: Mapping[Place, str]
    tables: dict[Place, StoredTables]
    reasons: Mapping[Place, str]
    _record: Mapping[str, Any] = field(repr=False)

    def missing(self, unit: Unit) -> list[Run]:
        """The runs whose tables of this unit are computed."""
        return [run for run in self.prepared.runs if (run.name, unit.key) in self.reasons]

    def tasks(self) -> list[Task]:
        """What is left to compute."""
        one = self.prepared
        return tasks_for(
            one.recipe, one.dataset.units, self.missing, one.hashed, self.cache.folder, self._key
        )

    def _key(self, run: str, unit: Unit) -> str:
        return self.keys[run, unit.key]

    def collect(self, unit: Unit) -> None:
        """Fetch what was computed for a unit.

        Raises
        ------
        EvaluationError
            Where it is gone already.
        """
        for run in self.missing(unit):
            place = run.name, unit.key
            found = self.cache.fetch(self.keys[place])
            if isinstance(found, str):
                raise EvaluationError(
                    Problem(
                        "score tables vanished or changed while the run went on",
                        f"unit {unit.name}, run {run.name}",
                        found,
                        remedy="run again; do not clear or change the cache meanwhile",
                    )
                )
            self.tables[place] = found

    def stored(self, run: str, unit: Unit) -> StoredTables:
        """A unit's tables of a run, reused or collected."""
        return self.tables[run, unit.key]

    @property
    def reused(self) -> int:
        """Units of which nothing is computed."""
        return sum(not self.missing(unit) for unit in self.prepared.dataset.units)

    def explain(self) -> Iterator[str]:
        """For each unit a line that says whether it was reused or computed, and why."""
        entry = self.prepared.context.name
        for unit in self.prepared.dataset.units:
            runs = self.missing(unit)
            reasons: dict[str, list[str]] = {}
            for run in runs:
                reasons.setdefault(self.reasons[run.name, unit.key], []).append(run.name)
            told = "; ".join(f"{reason} (run {', '.join(names)})" for reason, names in reasons.items())
            yield f"{entry}: {unit.name} ({unit.split}): " + (f"computed: {told}" if runs else "reused")

    def save(self) -> None:
        """Keep what everything depended on, to explain the next run."""
        sealed.write_json(self.cache.entry_record(_entry_name(self.prepared)), self._record)


def plan(prepared: Prepared, cache: Cache) -> Plan:
    """Look up every unit of every run of an entry whose input files were hashed."""
    entry = entry_facts(prepared)
    entry_hash = hash_plain(entry)
    units: dict[str, Any] = {}
    keys: dict[Place, str] = {}
    aligned = prepared.team.implements("floorkit_align")
    for unit in prepared.dataset.units:
        facts = unit_facts(prepared, unit)
        runs = {run.name: run_facts(prepared, run, unit) for run in prepared.runs if unit.key in run.sources}
        own = {name: hash_plain([entry_hash, facts, more]) for name, more in runs.items()}
        together = [[run.name, own[run.name]] for run in prepared.runs if run.name in own and not run.control]
        for run in prepared.runs:
            if run.name in own:
                key = own[run.name]
                keys[run.name, unit.key] = hash_plain([key, together]) if aligned and not run.control else key
        units["/".join(unit.key)] = {"facts": _short(facts), "runs": {n: _short(f) for n, f in runs.items()}}
    record = {"facts": _short(entry), "aligned": aligned, "units": units}
    tables, absent = _look_up(prepared, cache, keys, aligned)
    reasons: dict[Place, str] = absent
    if absent and not cache.fresh:
        last = sealed.read_json(cache.entry_record(_entry_name(prepared)))
        reasons = {place: _reason(place, why, record, last) for place, why in absent.items()}
    return Plan(prepared, cache, keys, tables, reasons, record)


def _look_up(
    prepared: Prepared, cache: Cache, keys: Mapping[Place, str], aligned: bool
) -> tuple[dict[Place, StoredTables], dict[Place, str]]:
    tables: dict[Place, StoredTables] = {}
    absent: dict[Place, str] = {}
    for place, key in keys.items():
        found = "--fresh" if cache.fresh else cache.fetch(key)
        if isinstance(found, str):
            absent[place] = found
        else:
            tables[place] = found
    if aligned:
        user = [run.name for run in prepared.runs if not run.control]
        for unit in prepared.dataset.units:
            places = [(run, unit.key) for run in user if (run, unit.key) in keys]
            if any(place in absent for place in places):
                for place in places:
                    if tables.pop(place, None) is not None:
                        absent[place] = "is aligned with a run that is not in the cache"
    return tables, absent


def _entry_name(prepared: Prepared) -> str:
    return f"{prepared.context.root}\n{prepared.context.name}"


def _short(facts: Facts) -> dict[str, str]:
    """Facts as they are told: hashes by their first digits."""
    return {
        name: value if len(value) <= READABLE else value.removeprefix("sha256:")[:12]
        for name, value in facts.items()
    }


def _reason(place: Place, why: str, record: Mapping[str, Any], last: Any) -> str:
    """Why a table is not in the cache: what differs from the last finished run of the entry."""
    if why != "not in the cache":
        return why
    if not isinstance(last, Mapping):
        return "first run of this entry"
    run, key = place
    unit = "/".join(key)
    now, before = record["units"][unit], last["units"].get(unit)
    if before is None:
        return "new unit"
    if run not in before["runs"]:
        return "new run"
    differences = [
        *_differences(last["facts"], record["facts"]),
        *_differences(before["facts"], now["facts"]),
        *_differences(before["runs"][run], now["runs"][run]),
    ]
    if not differences and record["aligned"] and before["runs"] != now["runs"]:
        return "another run that it is aligned with changed"
    return ", ".join(differences) or "no longer in the cache"


def _differences(before: Facts, now: Facts) -> Iterator[str]:
    for name in dict.fromkeys([*now, *before]):
        if before.get(name) != now.get(name):
            yield f"{name} differs ({before.get(name, 'none')} -> {now.get(name, 'none')})"
