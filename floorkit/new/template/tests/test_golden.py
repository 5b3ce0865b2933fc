"""Golden values, worked out by hand, and the gate that ties them to the version."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from floorkit.core.pool import Pool
from floorkit.core.values import Source, Unit
from floorkit.testing import golden_gate

from floorkit_plugin_name.data import Gold
from floorkit_plugin_name.kernel import score
from floorkit_plugin_name.measure import figures

BASIC = Path(__file__).parent / "golden" / "basic"

test_metric_changes_are_announced = golden_gate(Path(__file__).parent)


def test_figures_are_the_ones_worked_out_by_hand() -> None:
    case = json.loads((BASIC / "case.json").read_text(encoding="utf-8"))
    expected = json.loads((BASIC / "expected.json").read_text(encoding="utf-8"))
    units, tables = [], []
    for name, recording in case["recordings"].items():
        gold = Gold(np.asarray(recording["gold_s"], float), recording["duration_s"])
        units.append(Unit(name, "evaluated", Source()))
        tables.append(score(gold, np.asarray(recording["predicted_s"], float), case["tolerance_s"]))
    found = {figure.name: figure for figure in figures(Pool.of(units, tables))}
    assert {name: [one.value, one.count, one.denominator] for name, one in found.items()} == expected
