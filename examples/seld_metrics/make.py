"""Make the small example of seld_metrics: two short recordings in the official layout and two runs.

    python examples/seld_metrics/make.py

Synthetic, seeded, no real data. Two or three moving sources a frame, maps on every fifth pixel. The run
``sharp`` places sources well and misses some; ``broad`` finds more of them with wider, less exact maps and
more false ones.
"""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import numpy as np

HERE = Path(__file__).parent
SEED = 20260630
FRAMES = 24
STRIDE = 5
RECORDINGS = {
    "fold4_room23_mix001": ("dev-test-sony", (0, 6, 8)),
    "fold4_room2_mix001": ("dev-test-tau", (1, 3)),
}
N_CLASSES = 13


@attrs.frozen
class Model:
    """How a run errs: position error and map width in degrees, and the rates of misses, false sources and
    wrong classes.
    """

    error: float
    width: float
    miss: float
    false: float
    confused: float


RUNS = {"sharp": Model(3.5, 8.0, 0.2, 0.25, 0.1), "broad": Model(7.0, 13.0, 0.1, 0.6, 0.15)}


def polygon(azimuth: float, elevation: float, width: float) -> list[list[float]]:
    """[x, y, intensity] of a spherical Gaussian, in degrees, down to a tenth of its peak."""
    rows, columns = (grid.ravel() for grid in np.mgrid[0:180:STRIDE, 0:360:STRIDE])
    row_elevation, column_azimuth = np.radians(90 - rows / 179 * 180), np.radians(columns - 180.0)
    az, el = np.radians(azimuth), np.radians(elevation)
    cosine = np.sin(el) * np.sin(row_elevation) + np.cos(el) * np.cos(row_elevation) * np.cos(
        column_azimuth - az
    )
    energy = np.exp(-0.5 * (np.degrees(np.arccos(np.clip(cosine, -1, 1))) / width) ** 2)
    kept = np.flatnonzero(energy >= 0.1 * energy.max())
    kept = kept[np.argsort(-energy[kept], kind="stable")]
    return [[int(columns[i]), int(rows[i]), round(float(energy[i]), 4)] for i in kept]


def wrapped(azimuth: float) -> float:
    return (azimuth + 180) % 360 - 180


def main() -> None:
    for number, (recording, (split, classes)) in enumerate(RECORDINGS.items()):
        rng = np.random.default_rng([SEED, number])
        starts = [(rng.uniform(-180, 180), rng.uniform(-30, 30), rng.normal(0, 2)) for _ in classes]
        labels: list[dict[str, object]] = []
        predictions: dict[str, list[dict[str, object]]] = {name: [] for name in RUNS}
        for frame in range(FRAMES):
            for source, (category, (azimuth, elevation, speed)) in enumerate(
                zip(classes, starts, strict=True)
            ):
                if (frame + 7 * source) % 20 >= 14:
                    continue
                place = wrapped(azimuth + speed * frame), elevation
                labels.append(
                    {
                        "metadata_frame_index": frame,
                        "category_id": category,
                        "instance_id": source,
                        "segmentation": [polygon(*place, 10.0)],
                        "distance": 150.0,
                    }
                )
                for name, model in RUNS.items():
                    if rng.random() < model.miss:
                        continue
                    guess = int(rng.integers(N_CLASSES)) if rng.random() < model.confused else category
                    at = wrapped(place[0] + rng.normal(0, model.error)), place[1] + rng.normal(0, model.error)
                    predictions[name].append(
                        predicted(frame, guess, polygon(*at, model.width), rng.uniform(0.3, 1), rng)
                    )
            for name, model in RUNS.items():
                if rng.random() < model.false:
                    at = rng.uniform(-180, 180), rng.uniform(-40, 40)
                    shape = polygon(*at, model.width)
                    category = int(rng.integers(N_CLASSES))
                    predictions[name].append(predicted(frame, category, shape, rng.uniform(0.05, 0.5), rng))
        write(HERE / "labels_dev" / split / f"{recording}_std.json", labels)
        for name, found in predictions.items():
            write(HERE / "runs" / name / f"{recording}_inference.json", found)


def predicted(
    frame: int, category: int, shape: list[list[float]], score: float, rng: np.random.Generator
) -> dict[str, object]:
    return {
        "metadata_frame_index": frame,
        "category_id": category,
        "segmentation": [shape],
        "score": round(float(score), 6),
        "distance": round(float(rng.uniform(120, 180)), 2),
    }


def write(path: Path, annotations: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"annotations": annotations}, separators=(",", ":"))
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
