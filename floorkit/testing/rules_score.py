"""Rules about ``floorkit_score``: a pure function of one unit, with the same bytes wherever it runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from floorkit.core import store
from floorkit.core.store import StoredTables
from floorkit.core.values import Table, Tables
from floorkit.testing.evidence import Evidence
from floorkit.testing.fingerprint import fingerprint
from floorkit.testing.other_process import key, observed
from floorkit.testing.rules import rule


@rule("score")
def score_pure(evidence: Evidence) -> Iterator[str]:
    """Scoring leaves gold, prediction, unit and context as they were, and scores them again to the same
    bytes.

    Gold is loaded once a unit and handed to every run: a run that changes it changes the next one's figures.
    """
    context = evidence.prepared.context
    for run, unit in evidence.pairs():
        gold = evidence.gold(unit)
        prediction = evidence.prediction(run, unit, gold)
        arguments = {"gold": gold, "prediction": prediction, "unit": unit, "context": context}
        before = {name: fingerprint(value) for name, value in arguments.items()}
        first = fingerprint(evidence.score_loaded(unit, gold, prediction))
        place = key(run.name, *unit.key)
        for name, value in arguments.items():
            if fingerprint(value) != before[name]:
                yield f"{place}: scoring changes its argument {name}"
        if fingerprint(evidence.score_loaded(unit, gold, prediction)) != first:
            yield f"{place}: scoring the same objects again gives other tables"


@rule("score")
def score_deterministic(evidence: Evidence) -> Iterator[str]:
    """A unit that is loaded and scored again gives the same bytes.

    A number that differs from run to run cannot be checked by anyone.
    """
    for run, unit in evidence.pairs():
        yield from _differences(
            key(run.name, *unit.key), evidence.scored[run.name, unit.key], evidence.score(run, unit), "again"
        )


@rule("score")
def score_unit_order(evidence: Evidence) -> Iterator[str]:
    """A unit's tables do not depend on the units that were scored before it.

    Workers take units in any order.
    """
    for run, unit in evidence.pairs()[::-1]:
        yield from _differences(
            key(run.name, *unit.key),
            evidence.scored[run.name, unit.key],
            evidence.score(run, unit),
            "in reverse order",
        )


@rule("score")
def score_other_process(evidence: Evidence) -> Iterator[str]:
    """Another process with another hash seed, locale, time zone and working directory computes the same
    bytes.

    Iterating over a set, formatting by locale or a relative path gives numbers that differ between machines.
    """
    seen = observed(evidence)
    if seen.failure:
        yield f"in another process: {seen.failure}"
        return
    for (run, (split, unit)), tables in evidence.tables.items():
        place = key(run, split, unit)
        if seen.tables.get(place) != fingerprint(tables):
            yield f"{place}: another process computes other tables"


def _differences(place: str, tables: Tables, again: Tables, when: str) -> Iterator[str]:
    for name in sorted({*tables, *again}):
        if name not in tables or name not in again:
            yield f"{place}: table {name!r} is there only once of two times"
        elif fingerprint(tables[name]) != fingerprint(again[name]):
            yield f"{place}: table {name!r} differs when scored {when}"


@rule("score")
def tables_survive_store(evidence: Evidence) -> Iterator[str]:
    """Tables read back from the store are what was written: names, types, shapes, bytes and categories.

    Everything after scoring works on stored tables. Names hold no "/", and types are those that a file can
    hold.
    """
    with tempfile.TemporaryDirectory(prefix="floorkit-") as folder:
        for index, ((run, (split, unit)), tables) in enumerate(evidence.tables.items()):
            place = key(run, split, unit)
            path = Path(folder) / f"{index}.safetensors"
            try:
                store.write(path, tables)
            except (ValueError, TypeError, KeyError) as error:
                yield f"{place}: the tables cannot be stored: {error}"
                continue
            for name, table in tables.items():
                try:
                    again = StoredTables(path)(name)
                except KeyError:
                    yield f"{place}: table {name!r} is lost in the store"
                    continue
                if fingerprint(again) != fingerprint(_little_endian(table)):
                    yield f"{place}: table {name!r} comes back changed from the store"


def _little_endian(table: Table) -> Table:
    columns = {name: array.astype(array.dtype.newbyteorder("<")) for name, array in table.columns.items()}
    return Table(columns, table.categories)


@rule("score")
def tables_alike(evidence: Evidence) -> Iterator[str]:
    """Every unit of a run has the same tables, with the same columns, types, row shapes and categories.

    Pools put the tables of all units together; a code means the same in each of them.
    """
    forms: dict[str, tuple[str, dict[str, Any]]] = {}
    for (run, (split, unit)), tables in evidence.tables.items():
        found = {name: _form(table) for name, table in tables.items()}
        place = f"{split} unit {unit}"
        first, expected = forms.setdefault(run, (place, found))
        for name in sorted({*expected, *found}):
            ours, theirs = expected.get(name), found.get(name)
            if ours != theirs:
                yield f"run {run}, table {name!r}: in {first} {ours}, in {place} {theirs}"


def _form(table: Table) -> dict[str, Any]:
    columns = {name: (array.dtype.str, array.shape[1:]) for name, array in table.columns.items()}
    return {"columns": columns, "categories": dict(table.categories)}
