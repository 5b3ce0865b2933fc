"""The real command line: run on a small manifest, and the commands of the protocol."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from floorkit_seld_metrics.documents import read_document

GOLDEN = Path(__file__).parent / "golden"
REVISIONS = ("2026-04-02", "2026-05-18", "2026-05-28", "2026-06-30")


def floorkit(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100"}
    command = [sys.executable, "-m", "floorkit", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=300
    )


def manifest(folder: Path, case: str, extra: str = "") -> Path:
    path = folder / "protocols.toml"
    path.write_text(
        f"""
[protocols.maps]
plugin = "floorkit-seld-metrics"
statistics = {{ resamples = 100 }}
dataset = {{ format = "dcase2026_task3", labels = "{GOLDEN / case / "labels_dev"}" }}
params = {{ revisions = {json.dumps(REVISIONS)} }}
[protocols.maps.runs.model]
predictions = "{GOLDEN / case / "predictions"}"
{extra}
""",
        encoding="utf-8",
    )
    return path


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the case missing_class, with its own copy as an official file."""
    folder = tmp_path_factory.mktemp("run")
    path = manifest(folder, "missing_class")
    text = path.read_text(encoding="utf-8")
    (folder / "evaluate.py").write_text("# the user's copy\n", encoding="utf-8")
    official = 'official = { "2026-06-30" = "evaluate.py" } }'
    path.write_text(text.replace('labels_dev" }', f'labels_dev", {official}', 1), encoding="utf-8")
    done = floorkit("run", path, "--jobs", "1", "--output", folder / "results")
    assert done.returncode == 0, done.stderr
    return folder / "results" / "maps"


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_metrics_json_has_the_upstream_fields_with_the_official_values(results: Path) -> None:
    metrics, expected = (
        load(results / "model" / "metrics.json"),
        load(GOLDEN / "missing_class" / "expected.json"),
    )
    wanted = {
        "official_macro_map": expected["6.30"]["macro_mAP"],
        "official_class_agnostic_ap": expected["6.30"]["class_agnostic"]["macro_mAP"],
        "official_macro_pearson_r": expected["6.30"]["macro_pearson_r"],
        "matched_class_macro_f1": expected["said_class_f1"]["matched_class_macro_f1"],
        "paper_coco_macro_map": expected["4.2"]["class_aware"]["ap"],
        "paper_coco_mask_ap": expected["4.2"]["class_agnostic"]["ap"],
    }
    for field, value in wanted.items():
        assert metrics[field] == pytest.approx(value, abs=1e-9)
    for revision, short in zip(REVISIONS[1:], ("5.18", "5.28", "6.30"), strict=True):
        found = metrics["revisions"][revision]["class_aware"]
        assert found["micro_mAP"] == pytest.approx(expected[short]["micro_mAP"], abs=1e-9)
        assert found["micro_AP_per_thr"] == pytest.approx(expected[short]["micro_AP_per_thr"], abs=1e-9)
    assert (
        metrics["class_f1"]["confusion_rows_ground_truth"] == expected["said_class_f1"]["confusion_gt_rows"]
    )
    assert (
        load(results / "summary.json")["runs"]["model"]["official_macro_map"] == metrics["official_macro_map"]
    )


def test_paper_fields_are_absent_unless_their_revision_is_asked_for(tmp_path: Path) -> None:
    path = manifest(tmp_path, "all_empty")
    setting = 'protocols.maps.params.revisions=["2026-06-30"]'
    done = floorkit("run", path, "--set", setting, "--output", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    metrics = load(tmp_path / "results" / "maps" / "model" / "metrics.json")
    assert "paper_coco_macro_map" not in metrics
    assert metrics["official_macro_map"] == 0.0
    assert metrics["official_macro_pearson_r"] is None


def test_evaluator_json_names_reference_official_file_and_own_source(results: Path) -> None:
    import hashlib

    evaluator = load(results / "model" / "evaluator.json")
    revisions = evaluator["reference"]["revisions"]
    assert list(revisions) == list(REVISIONS)
    assert revisions["2026-04-02"]["commit"].startswith("84b2cd1")
    assert revisions["2026-04-02"]["official_sha256"] is None
    copy = hashlib.sha256(b"# the user's copy\n").hexdigest()
    assert revisions["2026-06-30"]["official_sha256"] == copy
    recorded = load(results / "provenance.json")
    assert evaluator["evaluator"]["source"] in json.dumps(recorded)


def test_evaluation_manifest_has_the_hash_of_every_file(results: Path) -> None:
    import hashlib

    found = load(results / "model" / "evaluation_manifest.json")
    assert [one["recording"] for one in found["recordings"]] == ["fold4_room77_mix001", "fold4_room77_mix002"]
    for one in found["recordings"]:
        folder = GOLDEN / "missing_class"
        for side, path in (
            ("labels", folder / "labels_dev" / one["split"] / one["labels"]["file"]),
            ("predictions", folder / "predictions" / one["predictions"]["file"]),
        ):
            content = path.read_bytes()
            assert one[side]["sha256"] == hashlib.sha256(content).hexdigest()
            assert one[side]["bytes"] == len(content)


def test_summary_classes_has_a_row_for_every_run_revision_and_class(results: Path) -> None:
    with (results / "summary_classes.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2 * 4 * 14  # the run and the control, four revisions, 13 classes and all as one
    wanted = ["run", "revision", "agnostic", "class_id", "class_name", "n_gt", "n_det", "ap", "ap_at_0.25"]
    assert list(rows[0])[:9] == wanted
    expected = load(GOLDEN / "missing_class" / "expected.json")["6.30"]
    own = [row for row in rows if row["run"] == "model" and row["revision"] == "2026-06-30"]
    for row, one in zip(own, expected["per_class"], strict=False):
        assert int(row["n_gt"]) == one["n_gt"]
        assert (row["ap"] == "") == (one["mAP"] is None)
        assert row["ap_at_0.55"] == ""
    assert float(own[-1]["ap"]) == pytest.approx(expected["class_agnostic"]["macro_mAP"], abs=1e-9)


def test_confusion_and_pictures_are_written(results: Path) -> None:
    with (results / "confusion.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["run"] == "model"]
    expected = load(GOLDEN / "missing_class" / "expected.json")["said_class_f1"]["confusion_gt_rows"]
    assert [[int(row[f"predicted_{number}"]) for number in range(13)] for row in rows] == expected
    pictures = sorted(path.name for path in (results / "pictures").iterdir())
    assert pictures == ["classes.png", "model_confusion.png", "model_frames.png"]
    assert all((results / "pictures" / name).read_bytes()[:4] == b"\x89PNG" for name in pictures)


def test_svg_pictures_and_the_figures_do_not_depend_on_jobs(tmp_path: Path) -> None:
    path = manifest(tmp_path, "degenerate")
    folders = [tmp_path / "one", tmp_path / "two"]
    for jobs, folder in zip(("1", "2"), folders, strict=True):
        setting = "protocols.maps.params.picture_format='svg'"
        done = floorkit("run", path, "--set", setting, "--jobs", jobs, "--fresh", "--output", folder)
        assert done.returncode == 0, done.stderr
    for name in (
        "summary.json",
        "summary_classes.csv",
        "model/metrics.json",
        "pictures/model_frames.svg",
        "pictures/classes.svg",
    ):
        one, two = ((folder / "maps" / name).read_bytes() for folder in folders)
        assert one == two, name


def test_a_missing_recording_is_an_error_unless_declared_absent(tmp_path: Path) -> None:
    path = manifest(tmp_path, "missing_class")
    predictions = tmp_path / "predictions"
    predictions.mkdir()
    name = "fold4_room77_mix001_inference.json"
    (predictions / name).write_bytes((GOLDEN / "missing_class" / "predictions" / name).read_bytes())
    text = path.read_text(encoding="utf-8").replace(
        str(GOLDEN / "missing_class" / "predictions"), "predictions"
    )
    path.write_text(text, encoding="utf-8")
    done = floorkit("run", path, "--output", tmp_path / "results")
    assert done.returncode == 4
    assert "fold4_room77_mix002" in done.stderr
    path.write_text(text + 'absent = ["fold4_room77_mix002"]\n', encoding="utf-8")
    done = floorkit("run", path, "--output", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    found = load(tmp_path / "results" / "maps" / "model" / "evaluation_manifest.json")
    assert found["absent"] == ["fold4_room77_mix002"]


# --- commands -----------------------------------------------------------------------------------


def test_check_accepts_golden_predictions_and_tells_every_problem(tmp_path: Path) -> None:
    folder = GOLDEN / "basic"
    done = floorkit("seld-metrics", "check", folder / "predictions", "--labels", folder / "labels_dev")
    assert done.returncode == 0
    assert "valid: 2 files, 162 annotations" in done.stdout
    done = floorkit("seld-metrics", "check", folder / "predictions")
    assert done.returncode == 4
    assert "78 files" in done.stdout
    (tmp_path / "a_inference.json").write_text('{"annotations": [{}]}', encoding="utf-8")
    with (tmp_path / "b_inference.json").open("w", encoding="utf-8") as stream:
        stream.write('{"annotations": []}' + " " * (20 * 1024 * 1024))
    done = floorkit("seld-metrics", "check", tmp_path, "--recording", "a", "--recording", "c")
    assert done.returncode == 4
    for words in (
        "a_inference.json, annotation 0: missing key",
        "larger than the submission limit",
        "no predictions of recording c",
        "predictions of recording b, which is not asked for",
    ):
        assert words in done.stdout


def test_compress_keeps_files_below_the_limit_and_tells_the_cost(tmp_path: Path) -> None:
    folder, output = GOLDEN / "dense", tmp_path / "small"
    limit = 60_000
    done = floorkit(
        *("seld-metrics", "compress", folder / "predictions", output),
        *("--limit-bytes", str(limit), "--labels", folder / "labels_dev"),
    )
    assert done.returncode == 0, done.stderr
    assert "(6.30) macro mAP: " in done.stdout
    (path,) = output.iterdir()
    assert path.stat().st_size <= limit
    before = read_document(next((folder / "predictions").iterdir()), "before", scored=True).annotations
    after = read_document(path, "after", scored=True).annotations
    assert len(before) == len(after)
    assert before.score.tolist() == after.score.tolist()
    for one, other in zip(before.polygons, after.polygons, strict=True):
        peak, kept = (polygons[0][polygons[0][:, 2].argmax()] for polygons in (one, other))
        assert peak[:2].tolist() == kept[:2].tolist()
        assert kept[2] == pytest.approx(peak[2], abs=5e-4)
    too_small = floorkit("seld-metrics", "compress", folder / "predictions", output, "--limit-bytes", "300")
    assert too_small.returncode == 4
    assert "too many annotations for the limit" in too_small.stderr


def test_compress_with_a_wide_limit_changes_no_number(tmp_path: Path) -> None:
    source = next((GOLDEN / "noninteger_xy" / "predictions").iterdir())
    done = floorkit("seld-metrics", "compress", source.parent, tmp_path / "same")
    assert done.returncode == 0, done.stderr
    before = read_document(source, "before", scored=True).annotations
    after = read_document(tmp_path / "same" / source.name, "after", scored=True).annotations
    assert [[p.tolist() for p in one] for one in before.polygons] == [
        [p.tolist() for p in one] for one in after.polygons
    ]


def dense_model(folder: Path, frames: int) -> None:
    """A model's arrays for recording ``rec``: five slots, peaks at column 10 * slot + 5."""
    folder.mkdir(parents=True)
    confidence = np.tile(np.array([0.04, 0.9, 0.5, 0.051, 0.3, 0.2], dtype=np.float32), (frames, 1))
    maps = np.zeros((frames, 6, 180, 360), dtype=np.float32)
    for slot in range(6):
        maps[:, slot, 80:83, 10 * slot + 5] = [[0.05, 1.0, 0.123456789]]
    np.save(folder / "confidence.npy", confidence)
    np.save(folder / "category.npy", np.tile(np.arange(6), (frames, 1)))
    np.save(folder / "maps.npy", maps)


def test_export_follows_the_papers_inference_protocol(
    tmp_path: Path,
    write_recording: Callable[..., Path],
    annotation: Callable[..., Any],
    blob: Callable[..., Any],
) -> None:
    write_recording([annotation(f, 0, [blob(10, 80)]) for f in range(3)], [], name="rec")
    dense_model(tmp_path / "model" / "rec", frames=5)
    labels = tmp_path / "labels_dev"
    done = floorkit("seld-metrics", "export", tmp_path / "model", tmp_path / "out", "--labels", labels)
    assert done.returncode == 0, done.stderr
    found = load(tmp_path / "out" / "rec_inference.json")["annotations"]
    assert [one["metadata_frame_index"] for one in found] == [0] * 4 + [1] * 4 + [2] * 4
    assert [one["category_id"] for one in found[:4]] == [1, 2, 4, 5]  # by confidence, four at most
    assert [one["score"] for one in found[:4]] == [0.9, 0.5, 0.3, 0.2]
    assert found[0]["segmentation"] == [[[164, 81, 1], [164, 82, 0.123457]]]  # (179 - 15) mod 360
    assert found[2]["segmentation"][0][0][:2] == [(179 - 45) % 360, 81]


def test_export_tells_wrong_arrays(
    tmp_path: Path, write_recording: Callable[..., Path], annotation: Callable[..., Any]
) -> None:
    write_recording([annotation(0, 0, [])], [], name="rec")
    dense_model(tmp_path / "model" / "rec", frames=1)
    np.save(tmp_path / "model" / "rec" / "category.npy", np.full((1, 6), 0.5))
    np.save(tmp_path / "model" / "rec" / "maps.npy", np.zeros((1, 6, 360, 180)))
    arguments = (
        "seld-metrics",
        "export",
        tmp_path / "model",
        tmp_path / "out",
        "--labels",
        tmp_path / "labels_dev",
    )
    done = floorkit(*arguments)
    assert done.returncode == 4
    assert "category.npy" in done.stderr
    assert "maps.npy" in done.stderr
    assert not (tmp_path / "out").exists()


SOFT_EVALUATOR = """
import argparse, json
from pathlib import Path
from floorkit_seld_metrics import reference
from floorkit_seld_metrics.taxonomy import CLASS_NAMES
parser = argparse.ArgumentParser()
for name in ("pred_dir", "gt_dir", "frames_base", "output_dir", "n_comp_seqs"):
    parser.add_argument("--" + name, required=True)
options = parser.parse_args()
recordings = []
for path in sorted(Path(options.pred_dir).glob("*.json")):
    (labels,) = Path(options.gt_dir).glob(f"*/{path.stem}_std.json")
    recordings.append((reference.load(labels), reference.load(path)))
found = reference.soft_figures(recordings, "2026-06-30", False)
results = {key: found[key] for key in ("macro_mAP", "micro_mAP", "macro_pearson_r", "micro_pearson_r")}
nothing = float("nan")
results["per_class"] = {
    name: {
        "mAP": sum(ap) / len(ap) if ap[0] == ap[0] else None,
        "pearson_r": r if r == r else None,
    }
    for name, ap, r in zip(CLASS_NAMES, found["AP_per_thr"], found["pearson_r"])
}
results["macro_mAP"] += SHIFT
Path(options.output_dir).mkdir()
(Path(options.output_dir) / "metrics.json").write_text(json.dumps(results))
"""

COCO_EVALUATOR = """
import argparse
from pathlib import Path
from floorkit_seld_metrics import reference
parser = argparse.ArgumentParser()
for name in ("exp_dir", "gt_root", "split"):
    parser.add_argument("--" + name, required=True)
options = parser.parse_args()
recordings = []
for path in sorted(Path(options.exp_dir, "inference_outputs").glob("*_inference.json")):
    (labels,) = Path(options.gt_root).glob("*/" + path.name.replace("_inference", "_std"))
    recordings.append((reference.load(labels), reference.load(path)))
found = reference.coco_figures(recordings)
lines = [
    f"  Mask mAP  (IoU 0.50:0.95)  : {found['class_aware'][-1]:.4f}",
    f"Pearson r (alignment) : {found['pearson_r']:.4f}",
    f"Distance MAPE (Relative) : {found['distance_mape_percent']:.2f} %",
    "  PER-CLASS Mask mAP:",
]
for number, ap in enumerate(found["class_aware"][:13]):
    lines.append(f"  class {number} : " + (f"{ap:.4f}" if ap == ap else "  N/A  "))
Path(options.exp_dir, "eval_summary.txt").write_text("\\n".join(lines) + "\\n")
"""


def verify(official: Path, case: str, *more: str) -> subprocess.CompletedProcess[str]:
    folder = GOLDEN / case
    return floorkit(
        *("seld-metrics", "verify", folder / "labels_dev", folder / "predictions"),
        *("--official", official, *more),
    )


def test_verify_runs_the_users_evaluator_and_prints_both_sides(tmp_path: Path) -> None:
    official = tmp_path / "evaluate.py"
    official.write_text(SOFT_EVALUATOR.replace("SHIFT", "0.0"), encoding="utf-8")
    done = verify(official, "out_of_range_category")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "32 of 32 figures agree" in done.stdout
    official.write_text(SOFT_EVALUATOR.replace("SHIFT", "1e-6"), encoding="utf-8")
    done = verify(official, "out_of_range_category")
    assert done.returncode == 1
    assert done.stdout.count("DIFFERENT") == 2  # macro and class-agnostic
    assert "1.0e-06" in done.stdout


def test_verify_reads_the_summary_of_the_oldest_revision(tmp_path: Path) -> None:
    official = tmp_path / "evaluate.py"
    official.write_text(COCO_EVALUATOR, encoding="utf-8")
    done = verify(official, "degenerate", "--revision", "2026-04-02")
    assert "DIFFERENT" in done.stdout  # this stand-in prints no AP50
    assert "17 of 18 figures agree" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import time\ntime.sleep(60)\n", "took too long"),
        ("raise SystemExit('no such thing')\n", "no such thing"),
        ("print('done')\n", "wrote no figures"),
    ],
)
def test_verify_tells_why_an_evaluator_gave_nothing(tmp_path: Path, code: str, words: str) -> None:
    official = tmp_path / "evaluate.py"
    official.write_text(code, encoding="utf-8")
    done = verify(official, "all_empty", "--timeout", "3")
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_help_of_every_command_has_an_example() -> None:
    for command in ("check", "compress", "export", "verify"):
        done = floorkit("seld-metrics", command, "--help")
        assert done.returncode == 0
        assert "Example:" in done.stdout
