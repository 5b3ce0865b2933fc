"""Fixtures: golden cases evaluated through the real hooks without the engine, and small synthetic maps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from floorkit_seld_metrics import plugin
from floorkit_seld_metrics.params import SeldMetricsParams
from floorkit_seld_metrics.taxonomy import REVISIONS
from threadpoolctl import threadpool_limits

from floorkit.core.errors import InputError, raise_problems
from floorkit.core.pool import Pool
from floorkit.core.structure import structure
from floorkit.core.values import Context, Figure, figure_key

GOLDEN = Path(__file__).parent / "golden"


@frozen(eq=False)
class Evaluated:
    """A run of a case: its pool and its figures by key."""

    params: SeldMetricsParams
    pool: Pool
    figures: Mapping[str, Figure]

    def value(self, name: str, **at: Any) -> float | None:
        return self.figures[figure_key(name, at)].value


def evaluate_folder(folder: Path, revisions: Sequence[str] = tuple(REVISIONS)) -> Evaluated:
    """Evaluate FOLDER/predictions against FOLDER/labels_dev through the hooks, in the engine's order."""
    (protocol,) = plugin.floorkit_protocols()
    params = structure(SeldMetricsParams, {"revisions": list(revisions)}, "protocols.case.params")
    context = Context("case", protocol.id, params, folder)
    dataset = plugin.floorkit_dataset(context, {"format": "dcase2026_task3", "labels": "labels_dev"})
    assert dataset is not None
    run = plugin.floorkit_predictions(context, dataset, "run", {"predictions": "predictions"})
    raise_problems(InputError, [*dataset.problems, *run.problems])
    tables = []
    for unit in dataset.units:
        gold = dataset.load(context, unit)
        prediction = run.load(context, unit, run.sources[unit.key], gold)
        tables.append(plugin.floorkit_score(context, unit, gold, prediction))
    pool = Pool.of(dataset.units, tables)
    figures = plugin.floorkit_measure(context, pool, None)
    keyed = {figure.key: figure for figure in figures}
    assert len(keyed) == len(figures)
    return Evaluated(params, pool, keyed)


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread() -> Iterator[None]:
    """As the engine does: the matrices here are tiny, and threads would only wait for each other."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="session")
def evaluated() -> Callable[[str], Evaluated]:
    """A golden case, evaluated once a session under all revisions."""
    known: dict[str, Evaluated] = {}

    def evaluate(case: str) -> Evaluated:
        if case not in known:
            known[case] = evaluate_folder(GOLDEN / case)
        return known[case]

    return evaluate


@pytest.fixture(scope="session")
def evaluate() -> Callable[..., Evaluated]:
    """:func:`evaluate_folder`, for folders that a test writes."""
    return evaluate_folder


@pytest.fixture
def write_recording(tmp_path: Path) -> Callable[..., Path]:
    """Write one recording in the official layout below ``tmp_path``, which is returned."""

    def write(labels: Sequence[Any], predictions: Sequence[Any], name: str = "rec1", into: str = "") -> Path:
        folder = tmp_path / into
        for path, found in (
            (folder / "labels_dev" / "dev-test-sony" / f"{name}_std.json", labels),
            (folder / "predictions" / f"{name}_inference.json", predictions),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"annotations": found}), encoding="utf-8")
        return folder

    return write


@pytest.fixture(scope="session")
def annotation() -> Callable[..., dict[str, Any]]:
    """An annotation as it stands in a file."""

    def make(frame: int, category: int, polygons: Any, **facts: Any) -> dict[str, Any]:
        return {
            "metadata_frame_index": frame,
            "category_id": category,
            "segmentation": polygons,
            **facts,
        }

    return make


@pytest.fixture(scope="session")
def blob() -> Callable[..., list[list[float]]]:
    """Points of a round blob on whole pixels around (x, y), wrapped in azimuth, most intense first."""

    def make(x: int, y: int, radius: int = 12, step: int = 4, scale: float = 1.0) -> list[list[float]]:
        points = []
        for row in range(-radius, radius + 1, step):
            for column in range(-radius, radius + 1, step):
                squared = row * row + column * column
                if squared <= radius * radius and 0 <= y + row <= 179:
                    intensity = round(scale * float(np.exp(-squared / (radius * radius))), 6)
                    points.append([(x + column) % 360, y + row, intensity])
        return sorted(points, key=lambda point: -point[2])

    return make
