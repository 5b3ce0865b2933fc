"""Speed and memory of seld_metrics against a plain transcription of the spec, on a generated recording.

    python benchmarks/seld_metrics.py speed [--frames 200]
    python benchmarks/seld_metrics.py memory [--megabytes 370]
    python benchmarks/seld_metrics.py jobs [--recordings 8] [--frames 60] [--most 2]

``speed`` times, in CPU seconds of one process and one BLAS thread, the plugin's kernel and the yardstick
``floorkit_seld_metrics.reference`` on the same recording, the latter run as the official pipeline runs:
the predictions are parsed four times; the soft maps are rendered for the class-aware figures, for the
class-agnostic ones and once more for Pearson r; the 2026-04-02 maps once. It also compares the figures.

``memory`` scores one recording with a prediction file of the given size in a child process and prints
the highest resident memory over the file's size.

``jobs`` times ``floorkit run`` on several recordings with 1 up to ``--most`` worker processes.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

sys.path.insert(0, str(Path(__file__).parent))
from seld_recording import generate

BYTES_A_FRAME = 250_000


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = process_time()
    made = work()
    return made, process_time() - started


def best_of_three(work: Callable[[], Any]) -> tuple[Any, float]:
    """For what takes less than a second or three: the quickest of three times."""
    made, seconds = timed(work)
    return made, min(seconds, timed(work)[1], timed(work)[1])


def speed(frames: int) -> None:
    from floorkit_seld_metrics import reference
    from floorkit_seld_metrics.coco_matching import match_masks
    from floorkit_seld_metrics.documents import read_document
    from floorkit_seld_metrics.soft_matching import match_soft_maps

    with tempfile.TemporaryDirectory() as folder:
        labels, predictions = generate(Path(folder), frames)
        size = predictions.stat().st_size / 1e6

        gold = read_document(labels, labels.name, scored=False).annotations
        document, parsing = best_of_three(lambda: read_document(predictions, predictions.name, scored=True))
        soft, soft_time = timed(lambda: match_soft_maps(gold, document.annotations))
        coco, coco_time = timed(lambda: match_masks(gold, document.annotations))

        raw_gold = reference.load(labels)
        raw, plain_parsing = best_of_three(lambda: reference.load(predictions))
        recordings = [(raw_gold, raw)]
        points = sum(len(polygon) for one in raw for polygon in one["segmentation"])
        print(f"{frames} frames, {size:.1f} MB, {len(raw)} predictions of {points / len(raw):.0f} points")
        (aware, agnostic), plain_soft = timed(
            lambda: [reference.soft_figures(recordings, "2026-06-30", flag) for flag in (False, True)]
        )
        _, plain_pearson = timed(lambda: reference.soft_figures(recordings, "2026-06-30", False))
        plain_coco_figures, plain_coco = timed(lambda: reference.coco_figures(recordings))

    plain_soft += plain_pearson
    rows = [
        ("parsing, once", plain_parsing, parsing, 8),
        ("2026-04-02", plain_coco, coco_time, 30),
        (
            "everything of 2026-06-30, parsing included",
            plain_soft + 3 * plain_parsing,
            soft_time + parsing,
            6,
        ),
        (
            "the whole",
            plain_soft + plain_coco + 4 * plain_parsing,
            soft_time + coco_time + parsing,
            10,
        ),
    ]
    print(f"{'':<44}{'yardstick s':>12}{'kernel s':>10}{'ratio':>8}{'asked':>7}")
    for name, plain, ours, asked in rows:
        print(f"{name:<44}{plain:>12.2f}{ours:>10.2f}{plain / ours:>8.1f}{asked:>7}")

    difference = abs(mean(soft.pearson) - aware["micro_pearson_r"])
    difference = max(difference, abs(mean(soft.agnostic_pearson) - agnostic["micro_pearson_r"]))
    print(f"Pearson r, 2026-06-30: largest difference {difference:.1e}")
    print(
        f"Pearson r, 2026-04-02: difference {abs(mean(coco.pearson) - plain_coco_figures['pearson_r']):.1e}"
    )


def mean(values: Any) -> float:
    numbers = [value for value in values.tolist() if not math.isnan(value)]
    return math.fsum(numbers) / len(numbers)


def memory(megabytes: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        labels, predictions = generate(Path(folder), math.ceil(megabytes * 1e6 / BYTES_A_FRAME))
        size = predictions.stat().st_size
        command = [sys.executable, __file__, "score", str(labels), str(predictions)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    peak, seconds = map(float, output.split())
    print(f"prediction file {size / 1e6:.1f} MB: peak {peak / 1e6:.1f} MB, {peak / size:.2f} times the file")
    print(f"parsed and scored under all revisions in {seconds:.0f} s of CPU time")


def score(labels: Path, predictions: Path) -> None:
    from floorkit_seld_metrics import kernel
    from floorkit_seld_metrics.data import Gold
    from floorkit_seld_metrics.documents import read_document
    from floorkit_seld_metrics.params import SeldMetricsParams
    from floorkit_seld_metrics.taxonomy import REVISIONS

    def work() -> None:
        params = SeldMetricsParams(revisions=tuple(REVISIONS))
        gold = Gold(read_document(labels, labels.name, scored=False))
        kernel.score(gold, read_document(predictions, predictions.name, scored=True), params, "bench", 0)

    _, seconds = timed(work)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, seconds)


def jobs(recordings: int, frames: int, most: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(recordings):
            generate(folder, frames, seed=number, name=f"bench{number}")
        manifest = folder / "protocols.toml"
        manifest.write_text(MANIFEST, encoding="utf-8")
        first = 0.0
        for count in range(1, most + 1):
            command = [sys.executable, "-m", "floorkit", "run", str(manifest), "--fresh", "--quiet"]
            started, used = perf_counter(), children_seconds()
            subprocess.run([*command, "--jobs", str(count)], check=True)
            seconds, used = perf_counter() - started, children_seconds() - used
            first = first or seconds
            print(
                f"--jobs {count}: {seconds:.1f} s of wall time ({first / seconds:.2f} times as quick), "
                f"{used:.1f} s of CPU time"
            )


def children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


MANIFEST = """
[protocols.bench]
plugin = "floorkit-seld-metrics"
controls = false
statistics = { resamples = 100 }
dataset = { format = "dcase2026_task3", labels = "labels_dev" }
params = { revisions = ["2026-04-02", "2026-05-18", "2026-05-28", "2026-06-30"] }
runs.model.predictions = "predictions"
"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("speed").add_argument("--frames", type=int, default=200)
    commands.add_parser("memory").add_argument("--megabytes", type=float, default=370.0)
    scaling = commands.add_parser("jobs")
    scaling.add_argument("--recordings", type=int, default=8)
    scaling.add_argument("--frames", type=int, default=60)
    scaling.add_argument("--most", type=int, default=2)
    scoring = commands.add_parser("score")
    scoring.add_argument("labels", type=Path)
    scoring.add_argument("predictions", type=Path)
    options = parser.parse_args()
    if options.command == "speed":
        speed(options.frames)
    elif options.command == "memory":
        memory(options.megabytes)
    elif options.command == "jobs":
        jobs(options.recordings, options.frames, options.most)
    else:
        score(options.labels, options.predictions)
