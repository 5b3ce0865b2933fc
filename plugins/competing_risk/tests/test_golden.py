"""The golden cases through the command line.

Counts, statuses, thresholds and scores exactly, other figures to 1e-12, AP and the Brier score to 1e-9.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from floorkit.formats.dense import horizon_seconds

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.name for path in GOLDEN.iterdir())
COUNTS = ("candidates", "ineligible", "positive", "negative", "censored", "unobservable", "invalid")
AT_RECALL = {
    "response": {
        "threshold": "response_threshold_at_recall_{}",
        "recall": "response_recall_{}",
        "trigger_count": "no_response_trigger_count_at_recall_{}",
        "trigger_rate": "no_response_trigger_rate_at_recall_{}",
        "short_resume_trigger_count": "short_resume_trigger_count_at_recall_{}",
        "short_resume_trigger_rate": "short_resume_trigger_rate_at_recall_{}",
        "per_minute": "false_entries_per_minute_at_recall_{}",
    },
    "yield": {
        "threshold": "yield_threshold_at_recall_{}",
        "recall": "yield_recall_{}",
        "trigger_count": "continue_false_stop_count_at_recall_{}",
        "trigger_rate": "continue_false_stop_rate_at_recall_{}",
        "per_minute": "false_stops_per_minute_at_recall_{}",
    },
}
Row = Mapping[str, Any]


def close(found: float | None, expected: float | None, tolerance: float) -> bool:
    if found is None or expected is None:
        return found is expected
    return math.isclose(found, expected, rel_tol=0, abs_tol=tolerance)


def check_events(row: Row, expected: Row, family: str) -> set[str]:
    """Compare a family's part of a row; returns the columns that were compared."""
    exact = {f"{family}_{name}": expected[name] for name in COUNTS}
    if family == "response":
        exact["response_short_resume"] = expected["short_resume"]
    other = {}
    for recall, at_recall in expected["at_recall"].items():
        assert set(at_recall) == set(AT_RECALL[family])
        for name, value in at_recall.items():
            is_exact = name == "threshold" or name.endswith("_count")
            (exact if is_exact else other)[AT_RECALL[family][name].format(recall)] = value
    assert {name: row[name] for name in exact} == exact
    assert close(row[f"{family}_ap"], expected["ap"], 1e-9)
    for name, value in other.items():
        assert close(row[name], value, 1e-12), (name, row[name], value)
    return {*exact, *other, f"{family}_ap"}


def check_run(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Compare every figure of a run; no row and no column is left over."""
    rows = {(row["horizon_s"], row["stratum"]): row for row in found["events"]}
    seen: dict[tuple[float, str], set[str]] = {place: set() for place in rows}
    for event in expected["events"]:
        for stratum, values in {"all": event, **event.get("strata", {})}.items():
            place = horizon_seconds(event["horizon"]), stratum
            seen[place] |= check_events(rows[place], values, event["family"])
    labels = {"run", "horizon_s", "stratum", "decision_timing", "exploratory"}
    for place, row in rows.items():
        assert set(row) - labels == seen[place]
    for row, frame in zip(found["framewise"], expected["framewise"], strict=True):
        assert row["horizon_s"] == horizon_seconds(frame["horizon"])
        assert set(row) - labels == set(frame) - {"horizon"}
        for name in set(frame) - {"horizon"}:
            tolerance = 1e-9 if name.endswith("_ap") or name == "brier" else 0
            assert close(row[name], frame[name], tolerance), (name, row, frame)


def scored_rows(run: str, expected: list[list[Any]]) -> list[dict[str, str]]:
    """The golden candidates as rows of summary_scored_events.csv."""
    rows = [
        {
            "run": run,
            "session": session,
            "recording": recording,
            "family": family,
            "boundary_row": b,
            "source_row": s,
            "outcome_row": w,
            "competing_row": c,
            "status": status,
            "horizon_s": horizon_seconds(k) if k else None,
            "score": score,
        }
        for session, recording, family, b, s, w, c, k, status, score in expected
    ]
    return [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]


def test_there_are_golden_cases() -> None:
    assert len(CASES) == 13


@pytest.mark.parametrize("case", CASES)
def test_a_golden_case_gives_its_figures_statuses_and_scores(case: str, run_case: Callable[..., Any]) -> None:
    outcome = run_case(GOLDEN / case, process=case in {"basic", "common_support"})
    assert outcome.code == 0, outcome.err
    expected = json.loads((GOLDEN / case / "expected.json").read_text(encoding="utf-8"))["runs"]
    assert list(outcome.summary["runs"]) == list(expected)
    for run, figures in expected.items():
        check_run(outcome.summary["runs"][run], figures)
    scored = [row for run, figures in expected.items() for row in scored_rows(run, figures["scored"])]
    found = [{name: row[name] for name in scored[0]} for row in outcome.rows("summary_scored_events.csv")]
    assert found == scored
