"""A reference forecaster's run for the sessions of a manifest entry: what ``baseline`` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from floorkit.core import manifest as manifests
from floorkit.core.errors import InputError, ManifestError, Problem, raise_problems
from floorkit.core.registry import normalized
from floorkit.core.sources import hash_file
from floorkit.core.structure import structure
from floorkit.core.values import Context, Dataset, Unit
from floorkit.formats.dense import load_targets
from floorkit.formats.dense_writer import WrittenSession, write_run
from floorkit_competing_risk import baselines, data
from floorkit_competing_risk.params import CompetingRiskParams

DISTRIBUTION = "floorkit-competing-risk"


def write_baseline(
    path: Path, entry: str | None, forecaster: str, train: Sequence[str], output: Path, add: bool
) -> list[str]:
    """Write the run; returns the names of its sessions, the evaluated ones first.

    Raises
    ------
    ManifestError, InputError
        Where the entry, its dataset or the training sessions are not what they should be.
    """
    context, table = _entry(path, entry)
    dataset = _dataset(context, table)
    evaluated = {unit.name for unit in dataset.split("evaluated")}
    wrong = [name for name in train if name in evaluated]
    if wrong or bool(train) != (forecaster == "hazard"):
        found = f"{', '.join(wrong)}, which are evaluated" if wrong else f"{len(train)} training sessions"
        expected = "sessions that are not evaluated" if forecaster == "hazard" else "none for persistence"
        raise ManifestError(Problem("wrong training sessions", "--train-session", found, expected))
    params: CompetingRiskParams = context.params
    shape = params.classes, params.horizons
    if forecaster == "hazard":
        table = {**table, "sessions": list(train), "calibration_sessions": []}
        trained = _dataset(context, table)
        forecasts = baselines.hazard((load_targets(context, unit) for unit in trained.units), *shape)
    else:
        forecasts = baselines.persistence(*shape)
    units = list({unit.name: unit for unit in dataset.units}.values())

    def written() -> Iterator[WrittenSession]:
        for unit in units:
            pred, valid = baselines.forecast(load_targets(context, unit), forecasts)
            yield WrittenSession(unit.name, pred, valid, _record(unit, train))

    names = [unit.name for unit in units]
    write_run(output, written(), names, add=add, tool=f"floorkit competing-risk baseline {forecaster}")
    return names


def _entry(path: Path, name: str | None) -> tuple[Context, Mapping[str, Any]]:
    """The entry's context, without recalls (the honesty rules of thresholds do not concern forecasts)."""
    manifest = manifests.read(path)
    entries = {
        key: entry
        for key, entry in manifest.document.protocols.items()
        if normalized(entry.plugin) == DISTRIBUTION
    }
    if name not in entries and (name is not None or len(entries) != 1):
        raise ManifestError(
            Problem(
                "which entry?",
                str(path),
                name or f"{len(entries)} entries of {DISTRIBUTION}",
                ", ".join(entries),
                "--only NAME",
            )
        )
    chosen = name or next(iter(entries))
    entry = entries[chosen]
    params = structure(CompetingRiskParams, entry.params, f"protocols.{chosen}.params")
    return Context(
        chosen, "competing_risk", attrs.evolve(params, matched_recalls=()), manifest.root
    ), entry.dataset


def _dataset(context: Context, table: Mapping[str, Any]) -> Dataset:
    without_strata = {key: value for key, value in table.items() if key != "strata"}
    dataset = data.dataset(context, without_strata)
    if dataset is None:
        where = f"protocols.{context.name}.dataset.format"
        raise ManifestError(Problem("unknown format", where, repr(table.get("format")), "dense or rttm"))
    raise_problems(InputError, dataset.problems)
    return dataset


def _record(unit: Unit, train: Sequence[str]) -> dict[str, Any]:
    targets = {path.name: hash_file(path)[0] for path in unit.gold.files.values()}
    return {"targets": targets, "train_sessions": list(train)}
