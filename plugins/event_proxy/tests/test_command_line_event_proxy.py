"""The command line: exit codes, both streams, files, honesty rules and their overrides."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parent / "golden"
PROXY = "activity-derived event proxy"

RunCase = Callable[..., Any]
Entry = dict[str, Any]

METRICS = (
    "run,family,requested_recall,threshold,positive,hard_negative,short_region,invalid,ap,recall,"
    "trigger_count,trigger_rate,precision,f1,provisional_count,exploratory,provisional"
)
EVENTS = "run,event_id,session,label,family,origin,status,source_rows,row_scores,winning_row,trajectory,score"


def in_sample(entry: Entry) -> None:
    entry["dataset"]["calibration_sessions"] = []
    entry["dataset"].pop("calibration_reviews", None)


def test_a_run_writes_the_promised_files_and_says_what_its_score_is(run_case: RunCase) -> None:
    outcome = run_case(GOLDEN / "basic", process=True, change=lambda entry: entry.update(controls=True))
    assert (outcome.code, outcome.err) == (0, "")
    assert PROXY in outcome.out
    assert "control:noise" in outcome.out
    assert outcome.summary["score"] == PROXY
    assert outcome.summary["exploratory"] is outcome.summary["provisional"] is False
    header = (outcome.results / "summary_metrics.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header == METRICS + ",signature"
    header = (outcome.results / "summary_events.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header.startswith(EVENTS + ",")
    rows = outcome.rows("summary_metrics.csv")
    assert [row["run"] for row in rows[::6]] == ["model", "control:noise", "control:ramp", "control:prior"]
    assert {row["exploratory"] for row in rows} == {row["provisional"] for row in rows} == {"false"}
    page = (outcome.results.parent / "report.html").read_text(encoding="utf-8")
    assert PROXY in page


def test_the_rows_of_the_metrics_file_are_the_figures_of_the_summary(run_case: RunCase) -> None:
    outcome = run_case(GOLDEN / "no_triggers")
    runs = outcome.summary["runs"]
    rows = outcome.rows("summary_metrics.csv")
    assert len(rows) == 2 * 2 * 2
    for row in rows:
        cell = runs[row["run"]][row["family"]]
        for name in ("positive", "hard_negative", "short_region", "invalid"):
            assert row[name] == str(cell[name])
        for name, value in cell["at_recall"][row["requested_recall"]].items():
            assert (None if row[name] == "" else float(row[name])) == value


def test_matched_recalls_on_test_sessions_without_calibration_are_refused(run_case: RunCase) -> None:
    outcome = run_case(GOLDEN / "basic", process=True, change=in_sample)
    assert outcome.code == 4
    assert outcome.out == ""
    assert "Session_3, Session_1" in outcome.err
    assert "set calibration_sessions" in outcome.err
    assert not outcome.results.parent.exists()


@pytest.mark.parametrize("calibration", ["Session_1", "Session_2"])
def test_calibration_on_evaluated_or_test_sessions_is_refused(run_case: RunCase, calibration: str) -> None:
    def change(entry: Entry) -> None:
        entry["dataset"]["calibration_sessions"] = [calibration]

    def edit(folder: Path) -> None:
        for part in ("targets", "runs/model/pred"):
            (folder / part / "Session_2.npy").write_bytes((folder / part / "Session_3.npy").read_bytes())

    outcome = run_case(GOLDEN / "basic", change=change, edit=edit)
    assert outcome.code == 4
    assert calibration in outcome.err
    assert not outcome.results.exists()


def marked_everywhere(outcome: Any, mark: str) -> None:
    """A warning mark stands in JSON, in every row of every CSV, in the terminal and in the page."""
    assert outcome.code == 0, outcome.err
    assert outcome.summary[mark] is True
    statistics = json.loads((outcome.results / "statistics.json").read_text(encoding="utf-8"))
    assert statistics[mark] is True
    files = sorted(outcome.results.glob("*.csv"))
    assert [file.name for file in files] == ["summary_events.csv", "summary_metrics.csv"]
    for file in files:
        rows = list(csv.DictReader(file.open(encoding="utf-8", newline="")))
        assert rows
        assert {row[mark] for row in rows} == {"true"}
    assert mark in outcome.out.lower()
    assert mark in (outcome.results.parent / "report.html").read_text(encoding="utf-8").lower()
    index = json.loads((outcome.results.parent / "index.json").read_text(encoding="utf-8"))
    assert mark in index["entries"]["case"]["marks"]


def test_the_override_of_the_calibration_rule_is_marked_in_every_output(run_case: RunCase) -> None:
    def change(entry: Entry) -> None:
        in_sample(entry)
        entry["params"]["allow_in_sample_thresholds"] = True

    outcome = run_case(GOLDEN / "basic", change=change, process=True)
    marked_everywhere(outcome, "exploratory")
    assert all(point["in_sample"] for point in outcome.summary["operating_points"]["model"])


def test_thresholds_chosen_in_sample_are_marked_without_test_sessions_too(run_case: RunCase) -> None:
    def change(entry: Entry) -> None:
        in_sample(entry)
        entry["params"]["official_test_sessions"] = []

    marked_everywhere(run_case(GOLDEN / "basic", change=change), "exploratory")


def test_a_threshold_free_run_needs_no_calibration_and_no_mark(run_case: RunCase) -> None:
    def change(entry: Entry) -> None:
        in_sample(entry)
        entry["params"]["matched_recalls"] = []

    outcome = run_case(GOLDEN / "basic", change=change)
    assert outcome.code == 0, outcome.err
    assert outcome.summary["exploratory"] is False
    rows = outcome.rows("summary_metrics.csv")
    assert [(row["family"], row["requested_recall"]) for row in rows] == [("entry", ""), ("int", "")]
    assert all(row["ap"] for row in rows)


def test_provisional_reviews_are_refused_and_their_override_is_marked_in_every_output(
    run_case: RunCase,
) -> None:
    def refuse(entry: Entry) -> None:
        del entry["params"]["allow_provisional_llm_reviews"]

    refused = run_case(GOLDEN / "threshold_free", change=refuse, process=True)
    assert refused.code == 4
    assert refused.out == ""
    assert "llm_provisional" in refused.err
    assert not refused.results.parent.exists()
    marked_everywhere(run_case(GOLDEN / "threshold_free", process=True), "provisional")


def test_provisional_lines_of_unused_sessions_count_too(run_case: RunCase) -> None:
    def edit(folder: Path) -> None:
        line = {"event_id": "x", "session": "Session_99", "label": "UNREVIEWED", "origin": "mined"}
        with (folder / "reviews.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({**line, "reviewer": "llm_provisional"}) + "\n")

    outcome = run_case(GOLDEN / "basic", edit=edit)
    assert outcome.code == 4
    assert "(event x)" in outcome.err


def test_a_trajectory_past_the_horizons_is_refused(run_case: RunCase) -> None:
    for wrong in ([0.6, 2.2], [2.0, 0.6], [0.6], [0.5, 2.0]):
        outcome = run_case(
            GOLDEN / "basic", change=lambda entry, w=wrong: entry["params"].update(trajectory_seconds=w)
        )
        assert outcome.code == 2, wrong
        assert "params.trajectory_seconds" in outcome.err
        assert str(wrong[-1]) in outcome.err


def test_a_decision_window_of_more_than_a_minute_is_refused(run_case: RunCase) -> None:
    for wrong in (60.2, 1e300):
        outcome = run_case(
            GOLDEN / "basic", change=lambda entry, w=wrong: entry["params"].update(decision_window_seconds=w)
        )
        assert outcome.code == 2
        assert "params.decision_window_seconds" in outcome.err
        assert "at most 60" in outcome.err


def test_the_results_are_the_same_bytes_whatever_the_jobs(run_case: RunCase) -> None:
    def change(entry: Entry) -> None:
        entry["controls"] = True
        entry["params"]["print_event_examples"] = 2

    one = run_case(GOLDEN / "basic", change=change, process=True)
    two = run_case(GOLDEN / "basic", change=change, process=True, arguments=("--jobs", "2"))
    assert (one.code, two.code) == (0, 0), two.err
    files = sorted(path.name for path in one.results.iterdir() if path.name != "provenance.json")
    assert "event_examples.txt" in files
    for name in files:
        assert (one.results / name).read_bytes() == (two.results / name).read_bytes(), name


def test_examples_show_frames_rows_mask_scores_and_the_winning_trajectory(run_case: RunCase) -> None:
    outcome = run_case(
        GOLDEN / "corrections", change=lambda entry: entry["params"].update(print_event_examples=1)
    )
    text = (outcome.results / "event_examples.txt").read_text(encoding="utf-8")
    blocks = text.split("\n\n")[1:5]
    assert sorted(block.split()[0] for block in blocks) == [
        "ENTRY_HARD_NEGATIVE",
        "INT_HARD_NEGATIVE",
        "INT_YIELD",
        "WEARER_ENTRY",
    ]
    scored = {row["event_id"]: row for row in outcome.rows("summary_events.csv")}
    for block in blocks:
        event = scored[block.split()[1]]
        assert PROXY in block
        assert "20 Hz:" in block
        assert "11111111" in block
        assert f"won by source row {event['winning_row']}" in block
        assert f"{float(event['score']):.6f}" in block
        for row in event["source_rows"].split(" "):
            assert f">  {row:>6}" in block
        assert f"0.6 s {float(event['trajectory'].split(' ')[0]):.4f}" in block
    timelines = json.loads((outcome.results / "timelines.json").read_text(encoding="utf-8"))
    assert len(json.dumps(timelines)) > 1000


def test_timelines_are_in_the_page_without_being_asked_for(run_case: RunCase) -> None:
    outcome = run_case(GOLDEN / "basic")
    assert not (outcome.results / "event_examples.txt").exists()
    (section,) = json.loads((outcome.results / "timelines.json").read_text(encoding="utf-8"))["sections"]
    assert {event["kind"] for event in section["events"]} == {
        *("WEARER_ENTRY", "INT_YIELD", "ENTRY_HARD_NEGATIVE", "INT_HARD_NEGATIVE")
    }
    for event in section["events"]:
        if event["score"] is not None and event["triggered"] is not None:
            assert event["triggered"] == (event["score"] >= event["facts"]["threshold"])


def test_runs_of_other_counts_are_not_compared(run_case: RunCase) -> None:
    def edit(folder: Path) -> None:
        import numpy as np

        path = folder / "runs" / "flat" / "valid" / "Session_1.npy"
        path.parent.mkdir(exist_ok=True)
        rows = len(np.load(folder / "targets" / "Session_1.npy"))
        np.save(path, np.zeros(rows, dtype=bool))

    outcome = run_case(GOLDEN / "ties", edit=edit)
    assert outcome.code == 0, outcome.err
    for comparison in outcome.summary["comparisons"]:
        assert comparison["difference"] is None
        assert any("invalid" in words for words in comparison["not_comparable"])
    assert "Not comparable" in outcome.out
