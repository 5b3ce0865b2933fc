"""``export``: dense maps of a model to prediction files, by the paper's inference protocol.

A recording SEQ is a folder of arrays: ``confidence.npy`` [F, S] in 0 .. 1, ``category.npy`` [F, S] whole
numbers 0 .. 12, ``maps.npy`` [F, S, 180, 360] with the elevation rows of the annotations and the model's
azimuth columns, and ``distance.npy`` [F, S] where the model has distances. Ten frames a second.

Protocol (seld_metrics spec, "Around scoring"): frames 0 .. the last label's; at most four slots a frame,
the most confident of those with at least 0.05; points with at least 10 % of their map's peak, most intense
first; scores and intensities with six decimals; x = (179 - column) mod 360.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from floorkit.core.errors import InputError, Problem, raise_problems
from floorkit_seld_metrics.data import label_files
from floorkit_seld_metrics.documents import read_document
from floorkit_seld_metrics.folders import annotation_text, write_document
from floorkit_seld_metrics.taxonomy import HEIGHT, N_CLASSES, WIDTH

MOST_SLOTS: Final = 4
LEAST_CONFIDENCE: Final = 0.05
LEAST_SHARE: Final = 0.1
DECIMALS: Final = 6
_LAST_COLUMN: Final = 179


@frozen(eq=False)
class DenseMaps:
    """A model's output for one recording, F frames and S slots; maps stay on disk."""

    confidence: NDArray[np.floating[Any]]
    category: NDArray[np.integer[Any]]
    maps: NDArray[np.floating[Any]]
    distance: NDArray[np.floating[Any]] | None


def load_dense(folder: Path) -> DenseMaps:
    """Open one recording's arrays.

    Raises
    ------
    InputError
        Missing files, wrong shapes or types, values out of range, all together.
    """
    arrays: dict[str, NDArray[Any]] = {}
    problems: list[Problem] = []
    for name in ("confidence", "category", "maps", "distance"):
        path = folder / f"{name}.npy"
        if name == "distance" and not path.exists():
            continue
        try:
            arrays[name] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            problems.append(Problem("cannot be read as an array", str(path), str(error), "a .npy file"))
    raise_problems(InputError, problems)
    shape = arrays["confidence"].shape
    expected: dict[str, tuple[tuple[int, ...], str]] = {
        "confidence": (shape, "f"),
        "category": (shape, "iu"),
        "maps": ((*shape, HEIGHT, WIDTH), "f"),
        "distance": (shape, "f"),
    }
    if len(shape) != 2:
        problems.append(Problem("wrong shape", str(folder / "confidence.npy"), str(shape), "[frames, slots]"))
    for name, array in arrays.items():
        wanted, kinds = expected[name]
        if array.shape != wanted or array.dtype.kind not in kinds:
            kind = "whole numbers" if kinds == "iu" else "floats"
            found = f"{array.dtype} {list(array.shape)}"
            problems.append(
                Problem("wrong shape or type", str(folder / f"{name}.npy"), found, f"{kind} {list(wanted)}")
            )
    raise_problems(InputError, problems)
    confidence, category = arrays["confidence"], arrays["category"]
    if not ((confidence >= 0) & (confidence <= 1)).all():
        problems.append(
            Problem("confidences out of range", str(folder / "confidence.npy"), expected="0 .. 1, no NaN")
        )
    if not ((category >= 0) & (category < N_CLASSES)).all():
        problems.append(Problem("categories out of range", str(folder / "category.npy"), expected="0 .. 12"))
    raise_problems(InputError, problems)
    return DenseMaps(confidence, category, arrays["maps"], arrays.get("distance"))


def export(model: Path, labels: Path, target: Path) -> dict[str, int]:
    """Write SEQ_inference.json for every recording folder of ``model``; returns annotations by recording.

    Raises
    ------
    InputError
        Nothing is written for a faulty recording; all faults of a recording are told together.
    """
    recordings = sorted(path for path in model.iterdir() if path.is_dir())
    label_paths, problems = label_files(labels, (), labels.parent)
    problems += [
        Problem(f"recording {path.name} has no label file", str(path), expected=f"{path.name}_std.json")
        for path in recordings
        if path.name not in label_paths
    ]
    if not recordings:
        problems.append(Problem("no recording", str(model), expected="a folder of arrays for each recording"))
    raise_problems(InputError, problems)
    written = {}
    for folder in recordings:
        path = label_paths[folder.name]
        frames = read_document(path, str(path), scored=False).annotations.frame
        texts = list(annotations_of(load_dense(folder), str(folder), int(frames.max(initial=-1)) + 1))
        write_document(target / f"{folder.name}_inference.json", texts)
        written[folder.name] = len(texts)
    return written


def annotations_of(dense: DenseMaps, place: str, frames: int) -> Iterator[str]:
    """The annotations of the first ``frames`` frames as JSON, by frame and confidence."""
    for frame in range(min(frames, len(dense.confidence))):
        confidence = dense.confidence[frame].astype(np.float64)
        order = np.argsort(-confidence, kind="stable")
        for slot in order[confidence[order] >= LEAST_CONFIDENCE][:MOST_SLOTS].tolist():
            points = points_of(dense.maps[frame, slot], f"{place}/maps.npy, frame {frame}, slot {slot}")
            facts: dict[str, Any] = {
                "metadata_frame_index": frame,
                "category_id": int(dense.category[frame, slot]),
                "instance_id": slot,
                "score": round(float(confidence[slot]), DECIMALS),
            }
            if dense.distance is not None:
                facts["distance"] = round(float(dense.distance[frame, slot]), DECIMALS)
            yield annotation_text(facts, [points] if len(points) else [], DECIMALS)


def points_of(energy: NDArray[np.floating[Any]], place: str) -> NDArray[np.float64]:
    """[x, y, intensity] of the pixels with at least 10 % of the map's peak, most intense first.

    Shape [P, 3]; no points where the map has no positive energy.
    """
    energy = np.asarray(energy, dtype=np.float64)
    if not np.isfinite(energy).all():
        raise InputError(Problem("the map is not finite", place, "NaN or infinity", "finite energies"))
    peak = energy.max()
    if peak <= 0:
        return np.zeros((0, 3))
    rows, columns = np.nonzero(energy >= LEAST_SHARE * peak)
    intensity = energy[rows, columns]
    order = np.argsort(-intensity, kind="stable")
    x = (_LAST_COLUMN - columns[order]) % WIDTH
    return np.column_stack((x, rows[order], intensity[order])).astype(np.float64)
