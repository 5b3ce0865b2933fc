"""Whole folders of labels and predictions, for the commands: pairing, scoring without the engine, writing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from floorkit.core.errors import InputError, Problem, raise_problems
from floorkit.core.pool import Pool
from floorkit.core.values import Figure, Source, Unit
from floorkit_seld_metrics.annotation import Annotations
from floorkit_seld_metrics.data import Gold, label_files, prediction_files
from floorkit_seld_metrics.documents import read_document
from floorkit_seld_metrics.kernel import score
from floorkit_seld_metrics.measure import measure
from floorkit_seld_metrics.params import Revision, SeldMetricsParams


@frozen
class Pair:
    """One recording's files."""

    recording: str
    labels: Path
    predictions: Path


def pairs(labels: Path, predictions: Path) -> list[Pair]:
    """Recordings that have both, by name.

    Raises
    ------
    InputError
        No pair, a prediction without labels, two files of one recording.
    """
    found_labels, problems = label_files(labels, (), labels.parent)
    found, more = prediction_files(predictions, predictions.parent)
    problems += more
    problems += [
        Problem(f"recording {name} has no label file", str(path), expected=f"{name}_std.json in {labels}")
        for name, path in found.items()
        if name not in found_labels
    ]
    raise_problems(InputError, problems)
    both = [Pair(name, found_labels[name], path) for name, path in sorted(found.items())]
    if not both:
        raise InputError(Problem("no prediction file", str(predictions), expected="SEQ_inference.json"))
    return both


def figures(chosen: Iterable[Pair], revisions: Sequence[Revision]) -> dict[str, Figure]:
    """Figures of a run over these recordings, by key."""
    params = SeldMetricsParams(revisions=tuple(revisions), pictures=0)
    units, tables = [], []
    for pair in chosen:
        gold = Gold(read_document(pair.labels, str(pair.labels), scored=False))
        prediction = read_document(pair.predictions, str(pair.predictions), scored=True)
        units.append(Unit(pair.recording, "evaluated", Source({"labels": pair.labels})))
        tables.append(score(gold, prediction, params, pair.recording, 0))
    return {figure.key: figure for figure in measure(params, Pool.of(units, tables), None)}


# --- writing ------------------------------------------------------------------------------------


def document_text(annotations: Iterable[str]) -> Iterator[str]:
    """The text of a document of these annotations, part by part."""
    yield '{"annotations":['
    for number, annotation in enumerate(annotations):
        yield ("," if number else "") + annotation
    yield "]}\n"


def annotation_text(
    facts: dict[str, Any], polygons: Iterable[NDArray[np.float64]], decimals: int | None
) -> str:
    """One annotation as compact JSON.

    Parameters
    ----------
    facts
        Its keys but "segmentation", in order.
    polygons
        Points [P, 3] each.
    decimals
        Decimals of the intensities; None for all that the number has.
    """
    shapes = ",".join(f"[{_points_text(polygon, decimals)}]" for polygon in polygons)
    rest = json.dumps(facts, separators=(",", ":"), allow_nan=False)[1:-1]
    return f'{{{rest},"segmentation":[{shapes}]}}'


def _points_text(polygon: NDArray[np.float64], decimals: int | None) -> str:
    if decimals is not None:
        polygon = np.column_stack((polygon[:, :2], polygon[:, 2].round(decimals)))
    return ",".join(f"[{_short(x)},{_short(y)},{_short(z)}]" for x, y, z in polygon.tolist())


def _short(value: float) -> str:
    """The number that reads back as ``value``, whole ones without a point."""
    return str(int(value)) if value == int(value) else repr(value)


def facts_of(annotations: Annotations, index: int) -> dict[str, Any]:
    """Everything of a predicted annotation but its points."""
    facts: dict[str, Any] = {
        "metadata_frame_index": int(annotations.frame[index]),
        "category_id": int(annotations.category[index]),
        "score": float(annotations.score[index]),
    }
    if not np.isnan(annotations.distance[index]):
        facts["distance"] = float(annotations.distance[index])
    return facts


def write_document(path: Path, annotations: Iterable[str]) -> int:
    """Write a document; returns its size in bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(document_text(annotations))
    return path.stat().st_size
