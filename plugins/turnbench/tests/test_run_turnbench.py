"""Through the engine: figures, frozen thresholds, exploratory marks, files and their columns."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from floorkit_turnbench import reference
from floorkit_turnbench.distributions import attainable
from floorkit_turnbench.labels import CLASSES, FINE_LABELS

from floorkit.core.errors import InputError, ManifestError
from floorkit.core.values import Context

GOLDEN = Path(__file__).parent / "golden"
EXPECTED = json.loads((GOLDEN / "basic" / "expected.json").read_text(encoding="utf-8"))
PROBABILITIES = [str(GOLDEN / f"basic/probs_12.5hz/probs-{task}.json") for task in ("eot", "int")]


def run(tmp_path: Path, text: str, *options: str) -> tuple[Path, subprocess.CompletedProcess[str]]:
    manifest = tmp_path / "protocols.toml"
    manifest.write_text('[protocols.tb]\nplugin = "floorkit-turnbench"\n' + text, encoding="utf-8")
    output = tmp_path / "results"
    done = subprocess.run(
        [sys.executable, "-m", "floorkit", "run", str(manifest), "--output", str(output), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    return output / "tb", done


def dataset(calibration: str = "") -> str:
    return f'[protocols.tb.dataset]\npath = "{GOLDEN}/basic/conversations.json"\n{calibration}\n'


SPLIT = '[protocols.tb.dataset.calibration]\nconversations = ["20", "101"]\n'
EVENTS = f'[protocols.tb.runs.events]\nevents = "{GOLDEN}/basic/predictions.json"\n'
PROBS = f"[protocols.tb.runs.probs]\nprobabilities = {json.dumps(PROBABILITIES)}\n"
FAST = "[protocols.tb.statistics]\nresamples = 100\n"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def read(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return data


def test_a_run_of_events_gives_the_official_figures_and_files(tmp_path: Path) -> None:
    folder, done = run(tmp_path, dataset() + EVENTS + FAST)
    assert done.returncode == 0, done.stderr
    found = read(folder)["runs"]["events"]
    for task, expected in EXPECTED["aggregate"].items():
        for name in ("tp", "fn", "fp", "tn", "recall", "fp_rate"):
            assert found[task][name] == pytest.approx(expected[name], abs=1e-12, rel=0)
        for percent in ("p10", "p50", "p90"):
            assert found[task][f"latency_{percent}_ms"] == pytest.approx(
                expected["latency_ms"][percent], abs=1e-12, rel=0
            )
        assert "theta" not in found[task]

    gold = json.loads((folder / "gold.json").read_text(encoding="utf-8"))
    assert gold["gold"] == EXPECTED["gold"]
    assert "signature" in gold
    assert not (folder / "sweep.csv").exists()

    events = [row for row in rows(folder / "summary_events.csv") if row["run"] == "events"]
    assert list(events[0])[:10] == [
        "run",
        "conversation_id",
        "task",
        "speaker",
        "kind",
        "start_s",
        "end_s",
        "outcome",
        "matched_s",
        "latency_ms",
    ]
    for task, expected in EXPECTED["aggregate"].items():
        ours = [row for row in events if row["task"] == task]
        for outcome in ("tp", "fn", "fp", "tn"):
            assert sum(row["outcome"] == outcome for row in ours) == expected[outcome]
        latencies = sorted(float(row["latency_ms"]) for row in ours if row["outcome"] == "tp")
        assert latencies == pytest.approx(sorted(expected["latencies_ms"]), abs=1e-12, rel=0)
        assert all(bool(row["matched_s"]) == (row["outcome"] in ("tp", "fp")) for row in ours)
        assert all(float(row["end_s"]) == float(row["start_s"]) for row in ours if row["kind"] == "positive")

    conversations = [row for row in rows(folder / "summary_conversations.csv") if row["run"] == "events"]
    assert len(conversations) == 8
    for row in conversations:
        expected = EXPECTED["conversations"][row["conversation_id"]][row["task"]]
        assert [int(row[name]) for name in ("tp", "fn", "fp", "tn")] == [
            expected[name] for name in ("tp", "fn", "fp", "tn")
        ]

    metrics = rows(folder / "summary_metrics.csv")
    assert list(metrics[0])[:13] == [
        "run",
        "task",
        "tp",
        "fn",
        "fp",
        "tn",
        "recall",
        "fp_rate",
        "latency_p10_ms",
        "latency_p50_ms",
        "latency_p90_ms",
        "theta",
        "exploratory",
    ]
    assert {row["run"] for row in metrics} == {"events", "control:metronome", "control:silent"}
    histogram = rows(folder / "latency_histogram.csv")
    total = sum(
        int(row["true_positives"]) for row in histogram if (row["run"], row["task"]) == ("events", "eot")
    )
    assert total == EXPECTED["aggregate"]["eot"]["tp"]


def test_events_at_the_borders_of_their_windows_are_all_drawn(tmp_path: Path) -> None:
    """Their latencies are a hair outside -250 .. 3000 ms, and their windows end at the next positive."""
    case = f"{GOLDEN}/exact_boundaries"
    text = (
        f'[protocols.tb.dataset]\npath = "{case}/conversations.json"\n'
        f'[protocols.tb.runs.events]\nevents = "{case}/predictions.json"\n'
    )
    folder, done = run(tmp_path, text + FAST)
    assert done.returncode == 0, done.stderr
    histogram = rows(folder / "latency_histogram.csv")
    for row in rows(folder / "summary_metrics.csv"):
        bins = [one for one in histogram if (one["run"], one["task"]) == (row["run"], row["task"])]
        assert sum(int(one["true_positives"]) for one in bins) == int(row["tp"])

    gold = json.loads((folder / "gold.json").read_text(encoding="utf-8"))["gold"]
    shown = json.loads((folder / "timelines.json").read_text(encoding="utf-8"))["sections"][0]["events"]
    ends = []
    for event in shown:
        task, kind = event["kind"].split()
        if kind == "positive":
            times = [
                one["time_s"]
                for one in gold[event["unit"]][f"{task}_positive_events"]
                if one["speaker"] == event["facts"]["speaker"] and one["time_s"] > event["anchor_s"]
            ]
            ends.append(min([3.0, *(time - event["anchor_s"] for time in times)]))
            assert event["window"] == [event["anchor_s"] - 0.25, min([event["anchor_s"] + 3.0, *times])]
    assert min(ends) < 3.0 <= max(ends)


def test_a_threshold_is_chosen_on_the_calibration_split_and_frozen(tmp_path: Path) -> None:
    import floorkit_turnbench as tb

    folder, done = run(tmp_path, dataset(SPLIT) + EVENTS + PROBS + FAST)
    assert done.returncode == 0, done.stderr
    summary = read(folder)
    assert summary["exploratory"] is False
    whole = tb.load_dataset(GOLDEN / "basic/conversations.json")
    for task, file in zip(("eot", "int"), PROBABILITIES, strict=True):
        raw = json.loads(Path(file).read_text(encoding="utf-8"))
        values = {
            one["conversation_id"]: {s: one[f"speaker_{s}"]["prob"] for s in (1, 2)} for one in raw["probs"]
        }

        def part(names: list[str], values: dict[str, Any] = values, task: Any = task) -> Any:
            dataset = tb.AnnotatedDataset.of(whole.conversation(name) for name in names)
            return tb.Probabilities.of(task, 12.5, {name: values[name] for name in names}), dataset

        chosen = tb.sweep(*part(["20", "101"])).operating_point(0.1)
        assert chosen is not None
        (scored,) = tb.sweep(*part(["3", "7"]), [chosen["theta"]]).rows()
        found = summary["runs"]["probs"][task]
        assert found["theta"] == chosen["theta"]
        for name in ("tp", "fn", "fp", "tn", "recall", "fp_rate", "latency_p50_ms"):
            assert found[name] == scored[name]
        in_file = [
            row
            for row in rows(folder / "sweep.csv")
            if row["task"] == task and float(row["theta"]) == chosen["theta"]
        ]
        assert [float(row["recall"]) for row in in_file] == [chosen["recall"]]
        assert [float(row["false_int_rate"]) for row in in_file] == [chosen["false_int_rate"]]
        by_conversation = [
            row
            for row in rows(folder / "summary_conversations.csv")
            if (row["run"], row["task"]) == ("probs", task)
        ]
        assert [row["conversation_id"] for row in by_conversation] == ["3", "7"]
        assert {float(row["theta"]) for row in by_conversation} == {chosen["theta"]}
    assert list(rows(folder / "sweep.csv")[0])[:13] == [
        "run",
        "task",
        "theta",
        "tp",
        "fn",
        "fp",
        "tn",
        "recall",
        "fp_rate",
        "false_int_rate",
        "latency_p10_ms",
        "latency_p50_ms",
        "latency_p90_ms",
    ]


def test_a_threshold_chosen_in_sample_is_marked_exploratory(tmp_path: Path) -> None:
    folder, done = run(tmp_path, dataset() + EVENTS + PROBS + FAST)
    assert done.returncode == 0, done.stderr
    summary = read(folder)
    assert summary["exploratory"] is True
    flags = {(row["run"], row["task"]): row["exploratory"] for row in rows(folder / "summary_metrics.csv")}
    assert flags["probs", "eot"] == "true"
    assert flags["events", "eot"] == "false"
    expected = EXPECTED["sweep"]["probs_12.5hz/probs-eot.json"]["operating_point_fp_0.1"]
    assert summary["runs"]["probs"]["eot"]["theta"] == expected["theta"]
    assert summary["runs"]["probs"]["eot"]["tp"] == expected["tp"]


def test_no_threshold_within_the_budget_is_told_not_hidden(tmp_path: Path) -> None:
    # without any EOT negative no fp_rate exists, and none can be within the budget
    text = dataset().replace("basic", "empty")
    file = GOLDEN / "empty/probs_12.5hz/probs-eot.json"
    probs = f'[protocols.tb.runs.probs]\nprobabilities = ["{file}"]\n'
    folder, done = run(tmp_path, text + probs + FAST)
    assert done.returncode == 0, done.stderr
    summary = read(folder)
    (point,) = summary["operating_points"]["probs"]
    assert (point["threshold"], point["reason"]) == (None, "no_threshold_within_fp_budget")
    found = summary["runs"]["probs"]
    for task in ("eot", "int"):
        assert all(value is None for value in found[task].values())
    reasons = {figure["at"]["task"]: figure["reason"] for figure in summary["headline"]["probs"]}
    assert reasons == {"eot": "no_threshold_within_fp_budget", "int": "not_predicted"}


def test_references_and_controls_are_scored_by_the_same_path(tmp_path: Path) -> None:
    text = '[protocols.tb.runs.gold]\nreference = "gold"\n'
    text += '[protocols.tb.runs.person]\nreference = "annotator_b"\n'
    folder, done = run(tmp_path, dataset() + text + FAST)
    assert done.returncode == 0, done.stderr
    found = read(folder)["runs"]
    assert (found["gold"]["eot"]["recall"], found["gold"]["eot"]["fp_rate"]) == (1.0, 0.0)
    assert 0.5 < found["person"]["eot"]["recall"] < 1.0
    assert (found["control:silent"]["eot"]["recall"], found["control:silent"]["eot"]["fp"]) == (0.0, 0)
    assert found["control:metronome"]["eot"]["recall"] > 0.9


def test_dropped_labels_are_told_in_the_report(tmp_path: Path) -> None:
    data = json.loads((GOLDEN / "basic/conversations.json").read_text(encoding="utf-8"))
    for entry in data["conversations"]:
        entry["annotations"]["1"]["a"][0][2] = "Backchannel, misspelt"
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    text = f'[protocols.tb.dataset]\npath = "{path}"\n'
    _, done = run(tmp_path, text + EVENTS + FAST)
    assert done.returncode == 0, done.stderr
    assert "4 of " in done.stdout
    assert "label that is not one of the protocol's" in " ".join(done.stdout.split())


def test_problems_of_dataset_and_runs_are_told_together_with_their_places(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"schema_version": 1, "predictions": [{"conversation_id": "99"}]}', encoding="utf-8")
    probs = tmp_path / "probs.json"
    probs.write_text('{"schema_version": 1, "task": "eot"}', encoding="utf-8")
    text = f'[protocols.tb.runs.a]\nevents = "{bad}"\n[protocols.tb.runs.b]\nprobabilities = ["{probs}"]\n'
    _, done = run(tmp_path, dataset() + text)
    assert done.returncode == 4
    for words in ("unknown conversation '99'", "bad.json", "probs.json", "'frame_rate_hz' is missing"):
        assert words in done.stderr


def test_a_submission_that_lacks_a_conversation_stops_unless_declared_absent(tmp_path: Path) -> None:
    data = json.loads((GOLDEN / "basic/predictions.json").read_text(encoding="utf-8"))
    data["predictions"] = [one for one in data["predictions"] if one["conversation_id"] != "7"]
    path = tmp_path / "part.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    text = f'[protocols.tb.runs.part]\nevents = "{path}"\n'
    _, done = run(tmp_path, dataset() + text)
    assert done.returncode == 4
    assert "7 (evaluated) is missing" in done.stderr
    folder, done = run(tmp_path, dataset() + text + 'absent = ["7"]\n' + FAST)
    assert done.returncode == 0, done.stderr
    assert read(folder)["coverage"]["part"]["scored"] == 3


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "one of path and hub"),
        ({"path": "x", "hub": "y/z"}, "one of path and hub"),
        ({"path": "basic/conversations.json", "pth": "x"}, "unknown key 'pth'"),
        ({"path": "basic/conversations.json", "calibration": {}}, "no calibration source"),
        (
            {
                "path": "basic/conversations.json",
                "conversations": ["3", "7"],
                "calibration": {"conversations": ["7"]},
            },
            "both splits",
        ),
        (
            {
                "path": "basic/conversations.json",
                "calibration": {"path": "disputed/../basic/conversations.json", "conversations": ["7"]},
            },
            "both splits",
        ),
        ({"path": "basic/conversations.json", "revision": "main"}, "dataset.revision: key of a hub dataset"),
        (
            {
                "path": "basic/conversations.json",
                "calibration": {"conversations": ["7"], "revision": "v2"},
            },
            "calibration.revision: key of a hub dataset",
        ),
    ],
)
def test_a_wrong_dataset_table_is_told(table: dict[str, Any], words: str) -> None:
    from floorkit_turnbench.params import TurnbenchParams
    from floorkit_turnbench.splits import build_dataset

    with pytest.raises(ManifestError, match=words):
        build_dataset(Context("tb", "turnbench", TurnbenchParams(), GOLDEN), table)


def test_one_file_for_two_splits_that_share_ids_is_refused(tmp_path: Path) -> None:
    """It would pair the evaluated split's probabilities with the calibration split's gold."""
    other = tmp_path / "dev.json"
    other.write_bytes((GOLDEN / "basic/conversations.json").read_bytes())
    _, done = run(tmp_path, dataset(f'[protocols.tb.dataset.calibration]\npath = "{other}"\n') + PROBS)
    assert done.returncode == 4
    assert "calibration_probabilities is missing" in done.stderr
    assert "conversations 3, 7, 20, 101 in both splits" in done.stderr


def test_a_broken_dataset_makes_no_problem_of_the_runs(tmp_path: Path) -> None:
    text = f'[protocols.tb.dataset]\npath = "{tmp_path}/nowhere.json"\n'
    _, done = run(tmp_path, text + EVENTS + PROBS)
    assert done.returncode == 4
    assert "nowhere.json: cannot be read" in done.stderr
    assert "unknown conversation" not in done.stderr
    folder = tmp_path / "shards"
    folder.mkdir()
    (folder / "a.parquet").write_bytes(b"PAR1")
    _, done = run(tmp_path, f'[protocols.tb.dataset]\npath = "{folder}"\n' + EVENTS + PROBS)
    assert done.returncode == 4
    assert "cannot be read as parquet" in done.stderr
    assert "unknown conversation" not in done.stderr


def test_a_selected_conversation_that_does_not_exist_is_told() -> None:
    from floorkit_turnbench.params import TurnbenchParams
    from floorkit_turnbench.splits import build_dataset

    context = Context("tb", "turnbench", TurnbenchParams(), GOLDEN)
    units = build_dataset(context, {"path": "basic/conversations.json", "conversations": ["3", "4"]})
    assert [unit.name for unit in units.units] == ["3"]
    assert "no conversation '4'" in str(units.problems[0])


def test_another_format_is_left_to_other_plugins() -> None:
    from floorkit_turnbench.params import TurnbenchParams
    from floorkit_turnbench.plugin import floorkit_dataset

    context = Context("tb", "turnbench", TurnbenchParams(), GOLDEN)
    assert floorkit_dataset(context, {"format": "mine", "path": "x"}) is None


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "exactly one"),
        ({"events": "a", "reference": "gold"}, "exactly one"),
        ({"reference": "oracle"}, "wrong type"),
    ],
)
def test_a_wrong_run_table_is_told(table: dict[str, Any], words: str) -> None:
    from floorkit_turnbench.params import TurnbenchParams
    from floorkit_turnbench.runs import build_run
    from floorkit_turnbench.splits import build_dataset

    context = Context("tb", "turnbench", TurnbenchParams(), GOLDEN)
    units = build_dataset(context, {"path": "basic/conversations.json"})
    with pytest.raises(ManifestError, match=words):
        build_run(context, units, "x", table)


def test_two_files_of_one_task_and_calibration_files_without_a_split_are_told() -> None:
    from floorkit_turnbench.params import TurnbenchParams
    from floorkit_turnbench.runs import build_run
    from floorkit_turnbench.splits import build_dataset

    context = Context("tb", "turnbench", TurnbenchParams(), GOLDEN)
    units = build_dataset(context, {"path": "basic/conversations.json"})
    files = ["basic/probs_12.5hz/probs-eot.json", "basic/probs_50hz/probs-eot.json"]
    table = {"probabilities": files, "calibration_probabilities": files[:1]}
    made = build_run(context, units, "x", table)
    text = "\n".join(map(str, made.problems))
    assert "two files of task 'eot'" in text
    assert "without a calibration split" in text


def test_a_selection_of_conversations_is_evaluated_in_its_order(tmp_path: Path) -> None:
    selection = dataset().replace("\n\n", '\nconversations = ["101", "3"]\n')
    folder, done = run(tmp_path, selection + EVENTS + FAST)
    assert done.returncode == 0, done.stderr
    found = read(folder)
    assert found["coverage"]["events"]["expected"] == 2
    assert sorted(found["coverage"]["events"]["extra"]) == ["20", "7"]
    names = [row["conversation_id"] for row in rows(folder / "summary_conversations.csv")]
    assert list(dict.fromkeys(names)) == ["101", "3"]
    expected = sum(EXPECTED["conversations"][name]["eot"]["tp"] for name in ("101", "3"))
    assert found["runs"]["events"]["eot"]["tp"] == expected


def test_results_do_not_depend_on_the_number_of_jobs(tmp_path: Path) -> None:
    text = dataset(SPLIT) + EVENTS + PROBS + FAST
    contents = []
    for jobs in ("1", "2"):
        place = tmp_path / jobs
        place.mkdir()
        folder, done = run(place, text, "--jobs", jobs)
        assert done.returncode == 0, done.stderr
        contents.append(
            {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "provenance.json"}
        )
    assert contents[0] == contents[1]


def test_a_dataset_problem_raises_input_errors() -> None:
    from floorkit_turnbench.data import open_source

    with pytest.raises(InputError, match="no dataset"):
        open_source()


def test_the_recall_curve_is_what_each_budget_can_buy_and_holds_the_chosen_point() -> None:
    rows = [
        {"theta": theta, "recall": recall, "fp_rate": fp_rate}
        for theta, recall, fp_rate in (
            (0.1, 0.8, 0.6),  # two rising edges have grown together: less recall at a lower threshold
            (0.2, 0.9, 0.5),
            (0.3, 0.6, 0.2),
            (0.4, 0.6, 0.1),
            (0.5, 0.0, 0.0),
            (0.6, None, 0.0),
        )
    ]
    assert [row["theta"] for row in attainable(rows, 0.3)] == [0.5, 0.4, 0.3, 0.2]
    assert [row["theta"] for row in attainable(rows, None)] == [0.5, 0.4, 0.2]


def test_timelines_show_both_speakers_consensus_and_the_window_that_was_scored(tmp_path: Path) -> None:
    folder, done = run(tmp_path, dataset() + EVENTS + FAST)
    assert done.returncode == 0, done.stderr
    (section,) = json.loads((folder / "timelines.json").read_text(encoding="utf-8"))["sections"]
    document = json.loads((GOLDEN / "basic/conversations.json").read_text(encoding="utf-8"))
    whole = {one["conversation_id"]: one["annotations"] for one in document["conversations"]}
    parts = ("consensus", "positives", "negatives", "excluded", "predictions")
    for event in section["events"]:
        assert [lane["name"] for lane in event["lanes"]] == [
            f"speaker {speaker} {part}" for speaker in (1, 2) for part in parts
        ]
        for lane, who in ((event["lanes"][0], 1), (event["lanes"][5], 2)):
            accepted, _ = reference.consensus(
                {
                    annotator: [
                        (start, end, CLASSES[FINE_LABELS[label]])
                        for start, end, label, _ in track
                        if label in FINE_LABELS
                    ]
                    for annotator, track in whole[event["unit"]][str(who)].items()
                }
            )
            shown = [
                [start, end]
                for start, end, *_ in sorted(accepted)
                if end >= event["start_s"] and start <= event["stop_s"]
            ]
            assert [one[:2] for one in lane["intervals"]] == shown
        speaker, task = event["facts"]["speaker"], event["facts"]["task"]
        if event["kind"].endswith("positive"):
            times = [
                one["time_s"]
                for one in EXPECTED["gold"][event["unit"]][f"{task}_positive_events"]
                if one["speaker"] == speaker and one["time_s"] > event["anchor_s"]
            ]
            assert event["window"][1] == min([event["anchor_s"] + 3.0, *times])
