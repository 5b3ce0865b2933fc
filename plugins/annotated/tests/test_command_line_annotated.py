"""The command line: exit codes, both streams, files, honesty rules and their overrides."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GOLDEN = Path(__file__).parent / "golden"

RunCase = Callable[..., Any]
Entry = dict[str, Any]

METRICS = (
    "run,family,horizon_s,requested_recall,threshold,positive,hard_negative,invalid,ap,recall,trigger_count,"
    "trigger_rate,precision,exploratory"
)
EVENTS = "run,event_id,session,label,family,horizon_s,rows,status,label_value,score"


def in_sample(entry: Entry) -> None:
    entry["dataset"]["calibration_sessions"] = []
    entry["dataset"].pop("calibration_reviews", None)


def test_a_run_writes_the_promised_files_and_says_what_it_does_not_give(run_case: RunCase) -> None:
    outcome = run_case(GOLDEN / "invalid", process=True, change=lambda entry: entry.update(controls=True))
    assert (outcome.code, outcome.err) == (0, "")
    assert "no committed actions" in outcome.out
    assert "control:noise" in outcome.out
    header = (outcome.results / "summary_metrics.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header == METRICS + ",signature"
    header = (outcome.results / "summary_events.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header.startswith(EVENTS + ",")
    metrics = outcome.rows("summary_metrics.csv")
    assert len(metrics) == 4 * 2 * 10 * 3
    assert [row["horizon_s"] for row in metrics[:30:3]] == [
        *("0.2", "0.4", "0.6", "0.8", "1.0", "1.2", "1.4", "1.6", "1.8", "2.0")
    ]


def test_the_headline_is_the_first_horizon_at_recall_0_8_with_its_counts(run_case: RunCase) -> None:
    outcome = run_case(GOLDEN / "basic")
    keys = [figure["key"] for figure in outcome.summary["headline"]["model"]]
    assert keys == [
        "trigger_rate[family=entry,horizon_s=0.2,recall=0.8]",
        "trigger_rate[family=int,horizon_s=0.2,recall=0.8]",
        "mean_ap[family=entry]",
        "mean_ap[family=int]",
    ]
    for figure in outcome.summary["headline"]["model"][:2]:
        cell = outcome.summary["runs"]["model"][figure["at"]["family"]]["horizons"][0]
        assert (figure["count"], figure["denominator"]) == (
            cell["at_recall"]["0.8"]["trigger_count"],
            cell["hard_negative"],
        )


def test_the_events_file_has_a_row_for_each_opportunity_and_horizon(run_case: RunCase) -> None:
    outcome = run_case(GOLDEN / "invalid")
    rows = outcome.rows("summary_events.csv")
    counts = outcome.summary["runs"]["model"]
    for family in ("entry", "int"):
        for k, cell in enumerate(counts[family]["horizons"], start=1):
            at = [r for r in rows if r["family"] == family and float(r["horizon_s"]) == round(0.2 * k, 9)]
            for status in ("positive", "hard_negative", "invalid"):
                assert sum(row["status"] == status for row in at) == cell[status]
    for row in rows:
        assert (row["score"] == "") == (row["status"] == "invalid")
        assert row["label_value"] == str(int(row["label"] in ("WEARER_ENTRY", "INT_YIELD")))
        assert row["label_value"] == "0" or " " not in row["rows"], "a positive occupies one row"


def test_matched_recalls_on_test_sessions_without_calibration_are_refused(run_case: RunCase) -> None:
    outcome = run_case(GOLDEN / "basic", process=True, change=in_sample)
    assert outcome.code == 4
    assert outcome.out == ""
    assert "Session_3, Session_1" in outcome.err
    assert "set calibration_sessions" in outcome.err
    assert not outcome.results.parent.exists()


def test_the_override_of_the_calibration_rule_is_marked_in_every_output(run_case: RunCase) -> None:
    def change(entry: Entry) -> None:
        in_sample(entry)
        entry["params"]["allow_in_sample_thresholds"] = True

    outcome = run_case(GOLDEN / "basic", change=change, process=True)
    assert outcome.code == 0, outcome.err
    assert outcome.summary["exploratory"] is True
    for name in ("summary_metrics.csv", "summary_events.csv"):
        assert {row["exploratory"] for row in outcome.rows(name)} == {"true"}
    assert "exploratory" in outcome.out.lower()
    assert "exploratory" in (outcome.results.parent / "report.html").read_text(encoding="utf-8").lower()


def test_provisional_reviews_are_refused_whatever_the_parameters(run_case: RunCase) -> None:
    def edit(folder: Path) -> None:
        path = folder / "calibration_reviews.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines()
        lines[2] = lines[2].replace('"human"', '"llm_provisional"')
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    outcome = run_case(GOLDEN / "basic", edit=edit)
    assert outcome.code == 4
    assert "calibration_reviews.jsonl:3" in outcome.err
    assert "event_proxy with allow_provisional_llm_reviews" in outcome.err
    unknown = run_case(
        GOLDEN / "basic", change=lambda entry: entry["params"].update(allow_provisional_llm_reviews=True)
    )
    assert unknown.code == 2
    assert "allow_provisional_llm_reviews" in unknown.err


def test_without_recalls_there_is_one_row_a_horizon_and_the_mean_ap_is_the_headline(
    run_case: RunCase,
) -> None:
    def change(entry: Entry) -> None:
        in_sample(entry)
        entry["params"]["matched_recalls"] = []

    outcome = run_case(GOLDEN / "basic", change=change)
    assert outcome.code == 0, outcome.err
    rows = outcome.rows("summary_metrics.csv")
    assert len(rows) == 2 * 10
    assert {row["requested_recall"] for row in rows} == {row["threshold"] for row in rows} == {""}
    keys = [figure["key"] for figure in outcome.summary["headline"]["model"]]
    assert keys == ["mean_ap[family=entry]", "mean_ap[family=int]"]


def test_a_missing_figure_says_why(run_case: RunCase) -> None:
    outcome = run_case(GOLDEN / "no_positives")
    missing = outcome.summary["runs"]["model"]["missing"]
    assert missing
    assert set(missing.values()) <= {"no_positives", "no_calibration_positives", "zero_denominator"}


def test_runs_of_other_counts_are_not_compared(run_case: RunCase) -> None:
    def edit(folder: Path) -> None:
        path = folder / "runs" / "coarse" / "valid" / "Session_1.npy"
        path.parent.mkdir(exist_ok=True)
        rows = len(np.load(folder / "targets" / "Session_1.npy"))
        np.save(path, np.arange(rows) % 3 > 0)

    outcome = run_case(GOLDEN / "ties", edit=edit)
    assert outcome.code == 0, outcome.err
    assert outcome.summary["comparisons"]
    for comparison in outcome.summary["comparisons"]:
        assert comparison["difference"] is None
        assert any("invalid" in words for words in comparison["not_comparable"])


def test_recordings_can_be_resampled_instead_of_sessions(run_case: RunCase) -> None:
    def change(entry: Entry) -> None:
        entry["statistics"]["cluster"] = "recording"

    outcome = run_case(GOLDEN / "invalid", change=change)
    assert outcome.code == 0, outcome.err
    recordings = sum(
        len(json.loads((GOLDEN / "invalid" / "targets" / f"{name}.recordings.json").read_text()))
        for name in ("Session_1", "Session_3")
    )
    intervals = [figure["interval"] for figure in outcome.summary["headline"]["model"]]
    assert recordings > 2
    assert {interval["clusters"] for interval in intervals} == {recordings}


def test_examples_show_frames_rows_mask_and_the_scores_at_every_horizon(run_case: RunCase) -> None:
    outcome = run_case(
        GOLDEN / "regions", change=lambda entry: entry["params"].update(print_event_examples=2)
    )
    assert outcome.code == 0, outcome.err
    text = (outcome.results / "event_examples.txt").read_text(encoding="utf-8")
    _, *blocks, signature = text.split("\n\n")
    assert len(blocks) == 8
    assert signature.startswith("annotated@")
    events = outcome.rows("summary_events.csv")
    for block in blocks:
        mine = [row for row in events if row["event_id"] == block.split()[1]]
        for row in mine[0]["rows"].split(" "):
            assert f"\n>  {row:>6}" in block
        (total,) = [line for line in block.splitlines() if "score (maximum)" in line]
        shown = total.split("(maximum)")[1].split()
        assert shown == [f"{float(row['score']):.4f}" if row["score"] else "-" for row in mine]


def test_the_results_are_the_same_bytes_whatever_the_jobs_and_the_hash_seed(
    run_case: RunCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(entry: Entry) -> None:
        entry["params"]["print_event_examples"] = 1

    monkeypatch.setenv("PYTHONHASHSEED", "1")
    one = run_case(GOLDEN / "basic", change=change, process=True)
    monkeypatch.setenv("PYTHONHASHSEED", "2")
    two = run_case(GOLDEN / "basic", change=change, process=True, arguments=("--jobs", "2"))
    assert (one.code, two.code) == (0, 0), two.err
    for path in one.results.iterdir():
        if path.name != "provenance.json":
            assert path.read_bytes() == (two.results / path.name).read_bytes(), path.name
