"""``floorkit turnbench`` as people call it."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
BASIC = GOLDEN / "basic"


def floorkit(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "floorkit", "turnbench", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "COLUMNS": "120", "LC_ALL": "C.UTF-8"},
    )


def test_check_tells_every_problem_of_every_file() -> None:
    bad = GOLDEN / "bad"
    files = ["00_valid.json", "17_unsorted.json", "29_string_times.json", "p01_one_frame_short.json"]
    done = floorkit("check", *(bad / name for name in files), "--durations", bad / "durations.json")
    assert done.returncode == 4
    assert f"valid   {bad / '00_valid.json'}: submission, 2 conversations" in done.stdout
    for words in (
        "conversation 1, speaker_1, eot[1]: times do not strictly increase",
        "29_string_times.json: 2 problems",
        "conversation 1, speaker_1, eot[0]: time is no number",
        "374 frames",
    ):
        assert words in done.stdout


def test_check_with_a_dataset_accepts_sound_files_of_both_kinds() -> None:
    done = floorkit(
        "check",
        BASIC / "predictions.json",
        BASIC / "probs_50hz/probs-int.json",
        "--dataset",
        BASIC / "parquet",
    )
    assert done.returncode == 0
    assert "probabilities of task int at 50 Hz, 4 conversations" in done.stdout
    assert "note:" not in done.stdout


def test_check_without_durations_says_what_it_could_not_check() -> None:
    done = floorkit("check", BASIC / "predictions.json", GOLDEN / "bad" / "51_duplicate_key.json")
    assert done.returncode == 0
    assert "were not checked" in done.stdout
    assert "'eot' stands twice" in done.stdout


def test_sweep_chooses_under_the_budget_writes_rows_and_scores_another_split(tmp_path: Path) -> None:
    probs, data = BASIC / "probs_12.5hz/probs-eot.json", BASIC / "conversations.json"
    output = tmp_path / "sweep.csv"
    done = floorkit("sweep", probs, data, "--output", output, "--score", probs, "--on", data)
    assert done.returncode == 0, done.stderr
    expected = json.loads((BASIC / "expected.json").read_text(encoding="utf-8"))
    sweep = expected["sweep"]["probs_12.5hz/probs-eot.json"]
    assert done.stdout.count(f"theta           {sweep['operating_point_fp_0.1']['theta']}") == 2
    with output.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["theta"]) for row in rows] == sweep["candidate_thetas"]


def test_sweep_says_when_no_threshold_qualifies() -> None:
    empty = GOLDEN / "empty"
    done = floorkit("sweep", empty / "probs_12.5hz/probs-eot.json", empty / "conversations.json")
    assert done.returncode == 0
    assert "no threshold has an FP rate of at most 0.1" in done.stdout


def test_sweep_needs_both_the_other_split_and_its_dataset() -> None:
    done = floorkit("sweep", "a.json", "b.json", "--score", "c.json")
    assert done.returncode == 2
    assert "--score and --on go together" in done.stderr


def test_gold_export_is_the_official_gold(tmp_path: Path) -> None:
    expected = json.loads((BASIC / "expected.json").read_text(encoding="utf-8"))["gold"]
    done = floorkit("gold", "export", BASIC / "parquet")
    assert json.loads(done.stdout) == {"gold": expected}
    output = tmp_path / "gold.json"
    assert floorkit("gold", "export", BASIC / "conversations.json", "--output", output).returncode == 0
    assert json.loads(output.read_text(encoding="utf-8")) == {"gold": expected}


def test_gold_stats_counts_the_six_sets() -> None:
    done = floorkit("gold", "stats", GOLDEN / "disputed" / "conversations.json")
    assert done.returncode == 0
    for words in ("4 conversations", "eot_positive_events       39", "int_excluded             302"):
        assert words in done.stdout


def test_leaderboard_ranks_stored_results(tmp_path: Path) -> None:
    models = [
        {"model": "a", "eot": {"recall": 0.5, "fp_rate": 0.1, "latency_ms": {"p50": 100.0}}},
        {"model": "b", "eot": {"recall": 0.9, "fp_rate": 0.2, "latency_ms": {"p50": 100.0}}},
        {"model": "c", "eot": {"recall": 0.6, "fp_rate": 0.05, "latency_ms": {"p50": 300.0}}},
    ]
    path = tmp_path / "board.json"
    path.write_text(json.dumps({"models": models}), encoding="utf-8")
    done = floorkit("leaderboard", path)
    assert done.returncode == 0, done.stderr
    assert [done.stdout.index(f" {name} ") for name in "cab"] == sorted(
        done.stdout.index(f" {name} ") for name in "cab"
    )
    older = floorkit("leaderboard", path, "--older", "--fp-budget", "0.1", "--recall-floor", "0.5").stdout
    assert older.index(" a ") < older.index(" c ") < older.index(" b ")


def test_a_missing_dataset_is_one_short_error() -> None:
    done = floorkit("gold", "stats", "nowhere.json")
    assert done.returncode == 4
    assert "nowhere.json" in done.stderr
    assert "Traceback" not in done.stderr


def test_long_names_of_runs_are_shown_whole(tmp_path: Path) -> None:
    name = "a_model_whose_name_is_longer_than_the_column_that_is_left_for_it_at_eighty_columns"
    path = tmp_path / "board.json"
    path.write_text(json.dumps({"models": [{"model": name, "eot": {"recall": 0.5}}]}), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "floorkit", "turnbench", "leaderboard", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "COLUMNS": "80", "LC_ALL": "C.UTF-8"},
    )
    cells = [line.split("│")[2].strip() for line in done.stdout.splitlines() if line.count("│") > 2]
    assert "".join(cells) == 2 * name
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_budget_that_is_no_number_is_refused() -> None:
    done = floorkit("sweep", BASIC / "probs_50hz/probs-int.json", BASIC / "parquet", "--fp-budget", "nan")
    assert done.returncode == 2
    assert "--fp-budget" in done.stderr


def test_missing_conversations_are_counted_against_those_of_the_dataset() -> None:
    durations = GOLDEN / "bad" / "durations.json"
    done = floorkit("check", BASIC / "predictions.json", "--durations", durations)
    assert "found:    0 of 2 conversations" in done.stdout
