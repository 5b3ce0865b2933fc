"""Golden cases through the command line: counts, statuses, thresholds exactly, other figures to 1e-12."""

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
    assert len(CASES) >= 9


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
        assert [row["event_id"] for row in rows] == [one[0] for one in scored]
        for row, (_, status, sources, row_scores, winner, score) in zip(rows, scored, strict=True):
            assert row["status"] == status
            assert row["source_rows"] == " ".join(map(str, sources))
            assert row["winning_row"] == ("" if winner is None else str(winner))
            if score is None:
                assert row["row_scores"] == row["score"] == row["trajectory"] == ""
            else:
                numbers = [float(text) for text in row["row_scores"].split(" ")]
                assert numbers == pytest.approx(row_scores, abs=1e-12, rel=0)
                assert float(row["score"]) == pytest.approx(score, abs=1e-12, rel=0)
