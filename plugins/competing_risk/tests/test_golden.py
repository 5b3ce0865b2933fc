"""The golden cases: counts, statuses, thresholds and scores exactly, other figures to 1e-12, AP to 1e-9."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from floorkit_competing_risk.kernel import FAMILIES, STATUSES

from floorkit.core.values import Figure, figure_key
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


def test_there_are_golden_cases() -> None:
    assert len(CASES) == 13


def close(found: float | None, expected: float | None, tolerance: float) -> bool:
    if found is None or expected is None:
        return found is expected
    return math.isclose(found, expected, rel_tol=0, abs_tol=tolerance)


class Checked:
    """Figures, looked up by name and place; every figure that is looked up is remembered."""

    def __init__(self, figures: Mapping[str, Figure], coordinates: Mapping[str, str]) -> None:
        self.figures = figures
        self.coordinates = coordinates
        self.seen: set[str] = set()

    def value(self, name: str, horizon: int, stratum: str = "") -> float | None:
        at = {"horizon_s": horizon_seconds(horizon), **self.coordinates}
        key = figure_key(name, at | ({"stratum": stratum} if stratum else {}))
        self.seen.add(key)
        figure = self.figures[key]
        assert (figure.value is None) == bool(figure.reason)
        return figure.value


def check_events(
    checked: Checked, expected: Mapping[str, Any], family: str, horizon: int, stratum: str
) -> None:
    for name in COUNTS:
        assert checked.value(f"{family}_{name}", horizon, stratum) == expected[name], name
    if family == "response":
        assert checked.value("response_short_resume", horizon, stratum) == expected["short_resume"]
    assert close(checked.value(f"{family}_ap", horizon, stratum), expected["ap"], 1e-9)
    for recall, at_recall in expected["at_recall"].items():
        assert set(at_recall) == set(AT_RECALL[family])
        for name, column in AT_RECALL[family].items():
            found = checked.value(column.format(recall), horizon, stratum)
            tolerance = 0 if name in {"threshold", "trigger_count", "short_resume_trigger_count"} else 1e-12
            assert close(found, at_recall[name], tolerance), (name, recall, found, at_recall[name])


@pytest.mark.parametrize("case", CASES)
def test_figures_are_the_golden_ones(case: str, evaluate: Callable[..., dict[str, Any]]) -> None:
    expected = json.loads((GOLDEN / case / "expected.json").read_text(encoding="utf-8"))["runs"]
    runs = evaluate(GOLDEN / case)
    assert set(runs) == set(expected)
    for run, one in runs.items():
        checked = Checked(one.figures, one.context.params.coordinates)
        for event in expected[run]["events"]:
            family, horizon = event["family"], event["horizon"]
            check_events(checked, event, family, horizon, "")
            for stratum, inner in event.get("strata", {}).items():
                check_events(checked, inner, family, horizon, stratum)
        for frame in expected[run]["framewise"]:
            for name in set(frame) - {"horizon"}:
                tolerance = 1e-9 if name.endswith("_ap") or name == "brier" else 0
                assert close(checked.value(name, frame["horizon"]), frame[name], tolerance), (name, frame)
        assert checked.seen == set(one.figures), "figures without a golden value"


@pytest.mark.parametrize("case", CASES)
def test_scored_candidates_are_the_golden_ones(case: str, evaluate: Callable[..., dict[str, Any]]) -> None:
    expected = json.loads((GOLDEN / case / "expected.json").read_text(encoding="utf-8"))["runs"]
    for run, one in evaluate(GOLDEN / case).items():
        found = []
        for index, unit in enumerate(one.pool.units):
            table = one.pool.table(index, "candidates")
            for row in range(len(table)):
                w, c = (int(table[name][row]) for name in ("outcome", "competing"))
                start = [
                    unit.name,
                    int(table["recording"][row]),
                    FAMILIES[table["family"][row]],
                    int(table["boundary"][row]),
                    int(table["source"][row]),
                    None if w < 0 else w,
                    None if c < 0 else c,
                ]
                if (table["status"][row] == 0).all():
                    found.append([*start, 0, "ineligible", None])
                    continue
                for k, (status, score) in enumerate(
                    zip(table["status"][row], table["score"][row], strict=True), start=1
                ):
                    found.append([*start, k, STATUSES[status], None if math.isnan(score) else float(score)])
        assert found == expected[run]["scored"]
