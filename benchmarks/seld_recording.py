"""Generate one recording of the DCASE2026 Task 3 layout at full resolution, for benchmarks.

    python benchmarks/seld_recording.py FOLDER [--frames 200] [--seed 1]

writes FOLDER/labels_dev/dev-test-sony/bench_std.json and FOLDER/predictions/bench_inference.json. The
ground truth has one or two moving sources a frame; a prediction has up to four slots: found sources
with an error of some degrees and sometimes another class, the others anywhere. Maps are spherical
Gaussians of 11 to 16 degrees cut at a tenth of their peak, one point a pixel, sorted by intensity, six
decimals, as the paper's inference protocol writes them: 200 frames make about 48 MB.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

N_CLASSES = 13
_ROWS, _COLUMNS = np.mgrid[0:180, 0:360]
_ELEVATION = np.radians(90 - _ROWS / 179 * 180)
_AZIMUTH = np.radians(_COLUMNS - 180.0)


def polygon_text(azimuth: float, elevation: float, width: float, rng: np.random.Generator) -> str:
    """Points of a Gaussian at (azimuth, elevation), all in degrees, with some texture."""
    az, el = np.radians(azimuth), np.radians(elevation)
    cosine = np.sin(el) * np.sin(_ELEVATION) + np.cos(el) * np.cos(_ELEVATION) * np.cos(_AZIMUTH - az)
    arc = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
    energy = np.exp(-0.5 * (arc / width) ** 2) * rng.uniform(0.9, 1.1, size=arc.shape)
    energy /= energy.max()
    rows, columns = np.nonzero(energy >= 0.1)
    order = np.argsort(-energy[rows, columns], kind="stable")
    points = zip(
        columns[order].tolist(), rows[order].tolist(), energy[rows, columns][order].tolist(), strict=True
    )
    return ",".join(f"[{x}.0,{y}.0,{z:.6f}]" for x, y, z in points)


def annotation_text(frame: int, category: int, polygon: str, distance: float, score: float | None) -> str:
    ending = "" if score is None else f',"score":{score:.6f}'
    return (
        f'{{"metadata_frame_index":{frame},"category_id":{category},"instance_id":0,'
        f'"segmentation":[[{polygon}]],"distance":{distance:.4f}{ending}}}'
    )


def generate(folder: Path, frames: int = 200, seed: int = 1, name: str = "bench") -> tuple[Path, Path]:
    """Write the recording ``name``; returns the paths of its labels and of its predictions."""
    rng = np.random.default_rng(seed)
    labels = folder / "labels_dev" / "dev-test-sony" / f"{name}_std.json"
    predictions = folder / "predictions" / f"{name}_inference.json"
    for path in (labels, predictions):
        path.parent.mkdir(parents=True, exist_ok=True)
    sources = [
        {
            "class": c,
            "azimuth": rng.uniform(-180, 180),
            "elevation": rng.uniform(-35, 35),
            "speed": rng.normal(0, 1),
        }
        for c in rng.choice(N_CLASSES, size=2, replace=False).tolist()
    ]
    label_ends, prediction_ends = "", ""
    with labels.open("w", encoding="utf-8") as gold, predictions.open("w", encoding="utf-8") as predicted:
        gold.write('{"annotations":[')
        predicted.write('{"annotations":[')
        for frame in range(frames):
            active = sources[: 1 + (frame // 20) % 2]
            slots = []
            for source in active:
                azimuth = source["azimuth"] + source["speed"] * frame
                azimuth = (azimuth + 180) % 360 - 180
                text = polygon_text(azimuth, source["elevation"], rng.uniform(11, 15), rng)
                gold.write(label_ends + annotation_text(frame, int(source["class"]), text, 150.0, None))
                label_ends = ","
                if rng.random() < 0.9:
                    category = int(source["class"]) if rng.random() < 0.8 else int(rng.integers(N_CLASSES))
                    place = azimuth + rng.normal(0, 5), source["elevation"] + rng.normal(0, 4)
                    slots.append((category, *place, rng.uniform(0.3, 1)))
            while len(slots) < 4 and rng.random() < 0.95:
                slots.append(
                    (
                        int(rng.integers(N_CLASSES)),
                        rng.uniform(-180, 180),
                        rng.uniform(-45, 45),
                        rng.uniform(0.05, 0.4),
                    )
                )
            for category, azimuth, elevation, score in slots:
                text = polygon_text(azimuth, elevation, rng.uniform(11, 16), rng)
                predicted.write(prediction_ends + annotation_text(frame, category, text, 140.0, score))
                prediction_ends = ","
        gold.write("]}")
        predicted.write("]}")
    return labels, predictions


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for written in generate(options.folder, options.frames, options.seed):
        print(written, f"{written.stat().st_size / 1e6:.1f} MB")
