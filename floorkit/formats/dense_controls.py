"""Input-free predictors of the dense protocols (numerics spec, "Controls"): what a blind predictor gets.

- ``control:noise``: independent uniform values, seeded by seed, session name and class;
- ``control:ramp``: pred = (h + 1) / (2 H), (h + 1) / 20 for ten horizons, in every row;
- ``control:prior``: one constant, the wearer's rate of activity over all rows of the calibration targets, of
  the evaluated ones where there are none; the same at every horizon, so that all its scores tie.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from floorkit.core.errors import InputError
from floorkit.core.values import Context, Dataset, Run, Source, Unit
from floorkit.formats.dense import WEARER, Prediction, targets_of
from floorkit.formats.honesty import DenseParams

CONTROLS = ("noise", "ramp", "prior")


def build_controls(context: Context, dataset: Dataset) -> tuple[Run, ...]:
    """The three control runs, on every unit of the dataset.

    ``dataset.load`` must give what ``dense.targets_of`` takes.
    """
    rate = _wearer_rate(context, dataset)
    values: dict[str, dict[str, Any]] = {"noise": {}, "ramp": {}, "prior": {"rate": rate}}
    return tuple(
        Run(
            f"control:{name}",
            {unit.key: Source(values={"control": name, **values[name]}) for unit in dataset.units},
            load_control,
            control=True,
        )
        for name in CONTROLS
    )


def load_control(context: Context, unit: Unit, source: Source, gold: Any) -> Prediction:
    """One unit's control prediction; every cell inside the recording is valid."""
    params: DenseParams = context.params
    targets = targets_of(gold)
    shape = targets.rows, params.classes, params.horizons
    pred: NDArray[np.float64]
    if source.values["control"] == "noise":
        pred = np.empty(shape)
        for index in range(params.classes):
            digest = hashlib.sha256(f"{context.seed}|{unit.name}|{index}".encode()).digest()
            generator = np.random.default_rng(int.from_bytes(digest[:16], "little"))
            pred[:, index] = generator.random((targets.rows, params.horizons))
    elif source.values["control"] == "ramp":
        pred = np.broadcast_to(np.arange(1, params.horizons + 1) / (2 * params.horizons), shape)
    else:
        pred = np.broadcast_to(np.float64(source.values["rate"]), shape)
    return Prediction(pred, targets.inside(params.horizons))


def _wearer_rate(context: Context, dataset: Dataset) -> float:
    """Share of the target rows in which the wearer is active."""
    active = rows = 0
    for unit in dataset.split("calibration") or dataset.split("evaluated"):
        try:
            targets = targets_of(dataset.load(context, unit))
        except InputError:
            continue  # the unit is loaded again to be scored, and that reports the problem with all others
        active += int(np.count_nonzero(targets.activity[:, WEARER]))
        rows += targets.rows
    return active / rows if rows else 0.0
