"""Fixtures: golden cases as manifests, evaluated through the real hooks without the engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from floorkit_competing_risk import plugin
from floorkit_competing_risk.params import CompetingRiskParams

from floorkit.core.calibration import matched_recall_points
from floorkit.core.errors import InputError, raise_problems
from floorkit.core.pool import Pool
from floorkit.core.structure import structure
from floorkit.core.values import Context, Figure, OperatingPoint, Tables, UnitKey

GOLDEN = Path(__file__).parent / "golden"


@frozen(eq=False)
class Evaluated:
    """One run of a case: its evaluated pool, thresholds and figures by key."""

    context: Context
    pool: Pool
    points: tuple[OperatingPoint, ...]
    figures: Mapping[str, Figure]


def tables_of(folder: Path, case: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest entry of a case: dataset, runs and params."""
    strata = {"strata": "strata.csv"} if (folder / "strata.csv").exists() else {}
    return {
        "dataset": {
            "format": "dense",
            "targets": "targets",
            "sessions": case["sessions"],
            "calibration_sessions": case["calibration_sessions"],
            **strata,
        },
        "runs": {run: {"path": f"runs/{run}"} for run in case["runs"]},
        "params": {"matched_recalls": case["matched_recalls"], **case["params"]},
    }


def evaluate_case(folder: Path, entry: Mapping[str, Any] | None = None) -> dict[str, Evaluated]:
    """Evaluate a case through the hooks, in the engine's order."""
    if entry is None:
        entry = tables_of(folder, json.loads((folder / "case.json").read_text(encoding="utf-8")))
    (protocol,) = plugin.floorkit_protocols()
    params = structure(CompetingRiskParams, entry["params"], "protocols.case.params")
    context = Context("case", protocol.id, params, folder)
    dataset = plugin.floorkit_dataset(context, entry["dataset"])
    assert dataset is not None
    runs = [
        plugin.floorkit_predictions(context, dataset, name, table) for name, table in entry["runs"].items()
    ]
    raise_problems(InputError, [*dataset.problems, *(problem for run in runs for problem in run.problems)])
    scored: dict[str, dict[UnitKey, Tables]] = {run.name: {} for run in runs}
    for unit in dataset.units:
        gold = dataset.load(context, unit)
        tables: dict[str, Tables] = {
            run.name: plugin.floorkit_score(
                context, gold, run.load(context, unit, run.sources[unit.key], gold)
            )
            for run in runs
        }
        tables.update(plugin.floorkit_align(context, tables) or {})
        for name, one in tables.items():
            scored[name][unit.key] = one
    assert protocol.matched_recall is not None
    evaluated = {}
    for name, by_unit in scored.items():
        pools = {
            split: Pool.of(dataset.split(split), [by_unit[unit.key] for unit in dataset.split(split)])
            for split in ("evaluated", "calibration")
        }
        pool, calibration = pools["evaluated"], pools["calibration"]
        points = matched_recall_points(
            calibration if calibration.units else pool,
            protocol.matched_recall,
            params.matched_recalls,
            not calibration.units,
        )
        figures = plugin.floorkit_measure(context, pool, points, None)
        assert len({figure.key for figure in figures}) == len(figures)
        evaluated[name] = Evaluated(context, pool, points, {figure.key: figure for figure in figures})
    return evaluated


@pytest.fixture
def evaluate() -> Callable[..., dict[str, Evaluated]]:
    return evaluate_case
