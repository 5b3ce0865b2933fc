"""Golden cases, run through the command line: counts, statuses, thresholds and scores exactly."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from floorkit.testing.golden import golden_gate

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.name for path in GOLDEN.iterdir())

test_metric_changes_are_announced = golden_gate(Path(__file__).parent)


def test_there_are_golden_cases() -> None:
    assert len(CASES) >= 8


@pytest.mark.parametrize("name", CASES)
def test_golden_case(name: str, run_case: Callable[..., Any], same_figures: Callable[..., None]) -> None:
    outcome = run_case(GOLDEN / name)
    assert outcome.code == 0, outcome.err
    expected = json.loads((GOLDEN / name / "expected.json").read_text(encoding="utf-8"))["runs"]
    found = outcome.summary["runs"]
    assert list(found) == list(expected)
    for run, figures in expected.items():
        scored = figures.pop("scored")
        found[run].pop("missing")
        same_figures(found[run], figures, run)
        rows = [row for row in outcome.rows("summary_events.csv") if row["run"] == run]
        keys = [(row["event_id"], float(row["horizon_s"])) for row in rows]
        assert keys == [(event, round(0.2 * k, 9)) for event, k, _, _ in scored]
        for row, (_, _, status, score) in zip(rows, scored, strict=True):
            assert row["status"] == status
            assert (float(row["score"]) if row["score"] else None) == score
