"""Gold, scores and sweeps are the official scorer's on every golden case: integers equal, floats to 1e-12."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from floorkit_turnbench import load_dataset, score_events, sweep
from floorkit_turnbench.consensus import Consensus, consensus
from floorkit_turnbench.gold import official_form
from floorkit_turnbench.kernel import committed_times
from floorkit_turnbench.labels import CLASSES
from floorkit_turnbench.probabilities import read_probabilities
from floorkit_turnbench.thresholds import candidate_thetas

from floorkit.testing import golden_gate

Agrees = Callable[[Any, Any], bool]
LATENCIES = {"p10": "latency_p10_ms", "p50": "latency_p50_ms", "p90": "latency_p90_ms"}

test_metric_changes_are_announced = golden_gate(Path(__file__).parent)


def test_conversations_come_in_the_official_order(case: Any) -> None:
    assert list(case.dataset.durations) == list(case.expected["gold"])


@pytest.mark.parametrize("view", ["label", "turn"])
def test_consensus_is_the_official_one(case: Any, view: Literal["label", "turn"]) -> None:
    for name in case.dataset.durations:
        found = consensus(case.dataset.conversation(name), view)
        assert _events(found) == case.consensus[name][f"{view}_events"]
        excluded = found.excluded
        rows = zip(excluded.speaker.tolist(), excluded.start.tolist(), excluded.end.tolist(), strict=True)
        assert [
            {"speaker": speaker, "start": start, "end": end} for speaker, start, end in rows
        ] == case.consensus[name][f"{view}_excluded"]


def _events(found: Consensus) -> list[dict[str, Any]]:
    spans = found.accepted
    return [
        {"speaker": speaker, "start": start, "end": end, "label": CLASSES[label]}
        for speaker, start, end, label in zip(
            spans.speaker.tolist(),
            spans.start.tolist(),
            spans.end.tolist(),
            found.label_class.tolist(),
            strict=True,
        )
    ]


def test_gold_is_the_official_one(case: Any) -> None:
    for name, gold in case.dataset.golds.items():
        assert official_form(gold) == case.expected["gold"][name]


def test_scores_are_the_official_ones(case: Any, agrees: Agrees) -> None:
    scores = score_events(case.folder / "predictions.json", case.dataset)
    found: dict[str, Any] = {"eot": scores.eot, "int": scores.int}
    pairs = [(found[task], expected) for task, expected in case.expected["aggregate"].items()]
    for name, tasks in case.expected["conversations"].items():
        pairs += [(scores.conversations[name][task], expected) for task, expected in tasks.items()]
    assert len(pairs) == 2 + 2 * len(case.dataset.durations)
    for figures, expected in pairs:
        for field in ("tp", "fn", "fp", "tn", "recall", "fp_rate"):
            assert agrees(getattr(figures, field), expected[field])
        for percent, field in LATENCIES.items():
            assert agrees(getattr(figures, field), expected["latency_ms"][percent])
        assert np.allclose(figures.latencies_ms, expected["latencies_ms"], rtol=0.0, atol=1e-12)
        assert len(figures.latencies_ms) == len(expected["latencies_ms"])


def test_sweeps_are_the_official_ones(case: Any, agrees: Agrees) -> None:
    assert len(case.expected["sweep"]) == (4 if case.expected["case"] == "basic" else 2)
    for file, expected in case.expected["sweep"].items():
        probabilities = read_probabilities(case.folder / file, case.dataset.durations)
        assert probabilities.frame_rate_hz == expected["frame_rate_hz"]
        assert probabilities.task == expected["task"]

        thetas = candidate_thetas(
            values for of_speaker in probabilities.values.values() for values in of_speaker.values()
        ).tolist()
        assert thetas == expected["candidate_thetas"]
        assert len(thetas) == expected["candidate_thetas_len"]
        text = "\n".join(map(repr, thetas))
        assert hashlib.sha256(text.encode()).hexdigest() == expected["candidate_thetas_sha256"]

        fixed = [row["theta"] for row in expected["rows_at_fixed_thetas"]]
        table = sweep(probabilities, case.dataset)
        rows = {row["theta"]: row for row in table.rows()}
        rows |= {row["theta"]: row for row in sweep(probabilities, case.dataset, fixed).rows()}
        for row in (*expected["rows_at_fixed_thetas"], *expected["rows_at_candidates"]):
            _check_row(rows[row["theta"]], row, agrees)

        point = table.operating_point(0.1)
        chosen = expected["operating_point_fp_0.1"]
        assert (point is None) == (chosen is None)
        if point is not None:
            _check_row(point, chosen, agrees)
        ties = [
            row
            for row in table.rows()
            if point is not None
            and row["recall"] is not None
            and row["recall"] == point["recall"]
            and row["fp_rate"] <= 0.1
        ]
        assert len(ties) == expected["ties_at_operating_point"]


def _check_row(found: dict[str, Any], expected: dict[str, Any], agrees: Agrees) -> None:
    names = {"lat_p10": "latency_p10_ms", "lat_p50": "latency_p50_ms", "lat_p90": "latency_p90_ms"}
    for field, value in expected.items():
        assert agrees(found[names.get(field, field)], value), field


def test_committed_events_are_the_official_ones(case: Any) -> None:
    for file, expected in case.expected["sweep"].items():
        events = expected["committed_events_theta_0.5"]
        probabilities = read_probabilities(case.folder / file, case.dataset.durations)
        of_speaker = probabilities.values[events["conversation_id"]]
        for speaker in (1, 2):
            times = committed_times(of_speaker[speaker], 0.5, probabilities.frame_rate_hz)
            assert times.tolist() == events[f"speaker_{speaker}"]


def test_parquet_shards_give_the_gold_of_the_json_form(golden_case: Callable[[str], Any]) -> None:
    case = golden_case("basic")
    shards = load_dataset(case.folder / "parquet")
    assert shards.durations == case.dataset.durations
    for name, gold in shards.golds.items():
        assert official_form(gold) == case.expected["gold"][name]


def test_every_golden_case_is_read() -> None:
    folders = {path.name for path in (Path(__file__).parent / "golden").iterdir()}
    assert folders == {"bad", "basic", "dense_overlap", "disputed", "empty", "exact_boundaries", "long"}
    assert json.loads((Path(__file__).parent / "golden/bad/durations.json").read_text(encoding="utf-8"))
