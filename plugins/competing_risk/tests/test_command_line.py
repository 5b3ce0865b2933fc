"""The command line: files with their columns, marks, comparability, controls, baselines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from floorkit.formats.dense import horizon_seconds

GOLDEN = Path(__file__).parent / "golden"
RunCase = Callable[..., Any]
Entry = dict[str, Any]


def test_the_columns_of_the_files_are_the_promised_ones(run_case: RunCase) -> None:
    outcome = run_case(
        GOLDEN / "strata", change=lambda entry: entry["params"].update(matched_recalls=[0.8, 1])
    )
    header = {
        name: (outcome.results / name).read_text(encoding="utf-8").splitlines()[0].split(",")
        for name in ("summary_events.csv", "summary_framewise.csv", "summary_scored_events.csv")
    }
    counts = ["candidates", "ineligible", "positive", "negative", "censored", "unobservable", "invalid", "ap"]
    at_recall = [
        name.format(recall)
        for recall in ("0.8", "1.0")
        for name in (
            "response_threshold_at_recall_{}",
            "response_recall_{}",
            "no_response_trigger_count_at_recall_{}",
            "no_response_trigger_rate_at_recall_{}",
            "short_resume_trigger_count_at_recall_{}",
            "short_resume_trigger_rate_at_recall_{}",
            "false_entries_per_minute_at_recall_{}",
            "yield_threshold_at_recall_{}",
            "yield_recall_{}",
            "continue_false_stop_count_at_recall_{}",
            "continue_false_stop_rate_at_recall_{}",
            "false_stops_per_minute_at_recall_{}",
        )
    ]
    assert header["summary_events.csv"] == [
        *("run", "horizon_s", "stratum", "decision_timing", "exploratory"),
        *(f"{family}_{name}" for family in ("response", "yield") for name in counts),
        "response_short_resume",
        *at_recall,
        "signature",
    ]
    framewise = (
        "run,horizon_s,rows,wearer_activity_ap,entry_rows,entry_positive,entry_endpoint_ap,exit_rows,"
        "exit_positive,exit_endpoint_ap,brier,exploratory,wearer_positive,signature"
    )
    assert header["summary_framewise.csv"] == framewise.split(",")
    events = (
        "run,session,recording,family,stratum,boundary_row,source_row,outcome_row,competing_row,horizon_s,"
        "status,label,score,trigger_at_recall_0.8,trigger_at_recall_1.0,exploratory,signature"
    )
    assert header["summary_scored_events.csv"] == events.split(",")


def test_rows_of_the_files_are_the_objects_of_the_summary(run_case: RunCase) -> None:
    outcome = run_case(GOLDEN / "two_runs")
    for kind in ("events", "framewise"):
        objects = [one for run in outcome.summary["runs"].values() for one in run[kind]]
        rows = outcome.rows(f"summary_{kind}.csv")
        assert len(rows) == len(objects) == 20
        for row, data in zip(rows, objects, strict=True):
            text = {
                k: "" if v is None else str(v).lower() if isinstance(v, bool) else str(v)
                for k, v in data.items()
            }
            assert text == {name: row[name] for name in data}


def test_triggers_are_scores_at_or_above_the_threshold(run_case: RunCase) -> None:
    outcome = run_case(GOLDEN / "ties")
    thresholds = {
        (run, point["at"]["family"], horizon_seconds(point["at"]["horizon"]), point["at"]["recall"]): point[
            "threshold"
        ]
        for run, points in outcome.summary["operating_points"].items()
        for point in points
    }
    seen = set()
    for row in outcome.rows("summary_scored_events.csv"):
        for recall in ("0.7", "0.8", "0.9"):
            flag = row[f"trigger_at_recall_{recall}"]
            if row["score"] == "":
                assert flag == row["label"] == ""
                continue
            at = thresholds[row["run"], row["family"], float(row["horizon_s"]), recall]
            assert flag == ("" if at is None else "true" if float(row["score"]) >= at else "false")
            assert row["label"] == {"positive": "1", "negative": "0"}[row["status"]]
            seen.add(flag)
    assert {"true", "false"} <= seen


def test_in_sample_thresholds_mark_every_output(run_case: RunCase) -> None:
    outcome = run_case(GOLDEN / "censoring")
    assert outcome.summary["exploratory"] is True
    assert "exploratory" in outcome.out
    for name in ("summary_events.csv", "summary_framewise.csv", "summary_scored_events.csv"):
        assert {row["exploratory"] for row in outcome.rows(name)} == {"true"}
    assert all(point["in_sample"] for point in outcome.summary["operating_points"]["model"])


def test_sessions_that_are_no_test_sessions_may_go_without_calibration_and_are_marked(
    run_case: RunCase,
) -> None:
    def without_switch(entry: Entry) -> None:
        entry["params"].pop("allow_in_sample_thresholds")

    outcome = run_case(GOLDEN / "censoring", change=without_switch)
    assert outcome.code == 0
    assert outcome.summary["exploratory"] is True


def test_a_run_without_recalls_needs_no_calibration_and_has_no_thresholds(run_case: RunCase) -> None:
    def threshold_free(entry: Entry) -> None:
        entry["dataset"]["calibration_sessions"] = []
        entry["params"]["matched_recalls"] = []

    outcome = run_case(GOLDEN / "basic", change=threshold_free)
    assert outcome.code == 0, outcome.err
    assert outcome.summary["exploratory"] is False
    assert outcome.summary["operating_points"] == {"model": []}
    row = outcome.rows("summary_events.csv")[0]
    assert row["response_ap"] != ""
    assert not [name for name in row if "recall" in name]


@pytest.mark.parametrize(
    ("case", "name", "value"),
    [("post_boundary", "decision_timing", "post-boundary"), ("full_window", "window", "full")],
)
def test_other_timings_and_windows_stand_in_the_names(
    case: str, name: str, value: str, run_case: RunCase
) -> None:
    outcome = run_case(GOLDEN / case)
    assert outcome.summary[name] == value
    assert {row[name] for row in outcome.rows("summary_events.csv")} == {value}
    assert all(figure["key"].endswith(f"{name}={value}]") for figure in outcome.summary["headline"]["model"])
    assert f"{name}: {value}" in outcome.out


def test_runs_with_other_invalid_cells_are_not_compared(run_case: RunCase) -> None:
    outcome = run_case(
        GOLDEN / "common_support", change=lambda entry: entry["params"].update(common_support=False)
    )
    words = [text for one in outcome.summary["comparisons"] for text in one["not_comparable"]]
    assert any("invalid" in text for text in words)
    assert all(one["relative_reduction"] is None for one in outcome.summary["comparisons"])
    text = (outcome.results / "comparability.txt").read_text(encoding="utf-8")
    assert text.startswith("one and two are not comparable at 0.2, 0.4")
    assert "yield positive" in text
    shared = run_case(GOLDEN / "common_support")
    assert not any(one["not_comparable"] for one in shared.summary["comparisons"])
    assert not (shared.results / "comparability.txt").exists()


def test_controls_stand_beside_the_runs(run_case: RunCase) -> None:
    outcome = run_case(GOLDEN / "basic", change=lambda entry: entry.update(controls=True))
    runs = dict.fromkeys(row["run"] for row in outcome.rows("summary_events.csv"))
    assert list(runs) == ["model", "control:noise", "control:ramp", "control:prior"]
    assert {row["run"] for row in outcome.rows("summary_scored_events.csv")} == {"model"}
    ramp = outcome.summary["runs"]["control:ramp"]["framewise"][0]
    # A constant at each horizon: all rows tie, and precision is prevalence.
    assert ramp["wearer_activity_ap"] == ramp["wearer_positive"] / ramp["rows"]


def test_audit_timelines_show_both_lanes_window_outcome_and_path(run_case: RunCase) -> None:
    outcome = run_case(GOLDEN / "invalid", change=lambda entry: entry["params"].update(audit_timelines=4))
    text = (outcome.results / "timelines.txt").read_text(encoding="utf-8")
    assert text.count("recording") == 8
    for word in ("source", "anchor", "C/excluded", "outcome", "invalid", "maximum of 1 - pred", "time_s"):
        assert word in text
    assert "anchor" in outcome.out
    again = run_case(GOLDEN / "invalid", change=lambda entry: entry["params"].update(audit_timelines=4))
    assert (again.results / "timelines.txt").read_text(encoding="utf-8") == text


def test_the_number_of_jobs_and_a_second_run_change_no_byte(run_case: RunCase) -> None:
    def results(jobs: str) -> dict[str, bytes]:
        outcome = run_case(
            GOLDEN / "two_runs",
            arguments=("--jobs", jobs),
            change=lambda entry: entry.update(controls=True),
            process=True,
        )
        assert outcome.code == 0, outcome.err
        return {
            path.name: path.read_bytes()
            for path in sorted(outcome.results.iterdir())
            if path.name != "provenance.json"
        }

    assert results("1") == results("2")


@pytest.mark.parametrize("forecaster", ["persistence", "hazard"])
def test_baselines_are_runs_that_can_be_scored(forecaster: str, run_case: RunCase, tmp_path: Path) -> None:
    import subprocess
    import sys

    outcome = run_case(
        GOLDEN / "recordings",
        command="check",
        change=lambda entry: entry.update(plugin="floorkit_competing_risk"),
    )
    folder = outcome.results.parents[1]
    train = ["--train-session", "Session_12"] if forecaster == "hazard" else []
    command = [sys.executable, "-m", "floorkit", "competing-risk", "baseline", str(folder / "protocols.toml")]
    line = [*command, "--forecaster", forecaster, "--output-dir", str(tmp_path / "run"), *train]
    done = subprocess.run(line, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    pred = np.load(tmp_path / "run/pred/Session_1.npy")
    valid = np.load(tmp_path / "run/valid/Session_1.npy")
    assert pred.dtype == np.float32
    assert np.isnan(pred[~valid[:, None, :].repeat(3, axis=1)]).all()
    origin = json.loads((tmp_path / "run/origin.json").read_text(encoding="utf-8"))["sessions"]
    assert list(origin) == ["Session_1", "Session_12", "Session_3"]
    scored = run_case(
        GOLDEN / "recordings",
        change=lambda entry: entry["runs"].update(floor={"path": str(tmp_path / "run")}),
    )
    assert scored.code == 0, scored.err
    assert {row["run"] for row in scored.rows("summary_events.csv")} == {"model", "floor"}


def test_hazard_is_not_fitted_on_evaluated_sessions(run_case: RunCase) -> None:
    outcome = run_case(GOLDEN / "basic", command="check")
    manifest = outcome.results.parents[1] / "protocols.toml"
    from click.testing import CliRunner
    from floorkit_competing_risk.commands import competing_risk

    from floorkit.core.errors import ManifestError

    arguments = [
        "baseline",
        str(manifest),
        "--forecaster",
        "hazard",
        "--output-dir",
        str(manifest.parent / "out"),
    ]
    for train in ([], ["--train-session", "Session_1"]):
        result = CliRunner().invoke(competing_risk, [*arguments, *train])
        assert isinstance(result.exception, ManifestError)
        assert "--train-session" in str(result.exception)
        assert not (manifest.parent / "out").exists()


def test_a_session_declared_absent_hides_no_problem_of_another(run_case: RunCase) -> None:
    def edit(folder: Path) -> None:
        (folder / "runs/model/pred/Session_1.npy").rename(folder / "runs/model/pred/Session_10.npy")

    outcome = run_case(
        GOLDEN / "basic", edit=edit, change=lambda entry: entry["runs"]["model"].update(absent=["Session_1"])
    )
    assert outcome.code == 4
    assert "a prediction for session Session_10, which has no targets" in outcome.err


def page_data(outcome: Any, title: str) -> Any:
    """The data of a figure of the HTML page."""
    page = (outcome.results.parent / "report.html").read_text(encoding="utf-8")
    data = re.findall(r'<script type="application/json" id="[^"]*">(.*?)</script>', page)
    titles = re.findall(r'<figure class="(?:plot|timeline)" id="[^"]*"><h3[^>]*>(.*?)</h3>', page)
    return json.loads(dict(zip(titles, data, strict=True))[title])


def test_the_chosen_points_of_the_recall_curve_are_the_figures_of_the_table(run_case: RunCase) -> None:
    outcome = run_case(GOLDEN / "two_runs", change=lambda entry: entry.update(controls=True))
    for family, rate, recall in (
        ("response", "no_response_trigger_rate", "response_recall"),
        ("yield", "continue_false_stop_rate", "yield_recall"),
    ):
        plot = page_data(outcome, f"Recall against false-trigger rate, {family} at 2.0 s")
        assert plot["kind"] == "line"
        assert [one["name"] for one in plot["series"] if one["control"]] == [
            *("control:noise", "control:ramp", "control:prior")
        ]
        for series in plot["series"]:
            last = outcome.summary["runs"][series["name"]]["events"][-1]
            expected = {(last[f"{rate}_at_recall_{r}"], last[f"{recall}_{r}"]) for r in ("0.7", "0.8", "0.9")}
            assert {(series["x"][i], series["y"][i]) for i in series["marked"]} == expected


def test_the_page_has_timelines_of_every_status_and_false_triggers_without_being_asked(
    run_case: RunCase,
) -> None:
    outcome = run_case(GOLDEN / "two_runs")
    events = page_data(outcome, "Audit timelines")
    rows = outcome.rows("summary_scored_events.csv")
    assert {event["status"] for event in events} == {
        row["status"] for row in rows if row["horizon_s"] in ("", "2.0")
    }
    assert {"true trigger", "false trigger", "missed positive", "no trigger"} <= {
        event["outcome"] for event in events
    }
    assert not (outcome.results / "timelines.txt").exists()
    for event in events:
        path = dict(event["lanes"][2]["path"])
        if event["score"] is not None and event["window"] is not None:
            start, stop = event["window"]
            pooled = [value for time, value in path.items() if start <= time < stop - 1e-9]
            assert max(pooled) == pytest.approx(event["score"], abs=1e-12)
            fires = event["outcome"] in ("true trigger", "false trigger")
            assert fires == (event["score"] >= event["threshold"])
