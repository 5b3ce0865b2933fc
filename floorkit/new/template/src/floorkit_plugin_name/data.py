"""Gold and predictions: files to arrays, with every check."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen
from floorkit.core.errors import InputError, Problem, raise_problems
from floorkit.core.paths import child, resolve, shown
from floorkit.core.structure import structure
from floorkit.core.values import Context, Dataset, Run, Source, Unit

from floorkit_plugin_name.params import DatasetTable, RunTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

METRONOME_S = 1.0
"""Period of the control."""


@frozen(eq=False)
class Gold:
    """A recording's gold: sorted onsets [N] in seconds, and its duration in seconds."""

    onsets_s: NDArray[np.float64]
    duration_s: float


def dataset(context: Context, table: Mapping[str, Any]) -> Dataset | None:
    """The recordings of a dataset table; None for a format that is not ours."""
    if table.get("format", "onsets") != "onsets":
        return None
    config = structure(DatasetTable, table, f"protocols.{context.name}.dataset")
    folder = resolve(context.root, config.gold)
    units = tuple(
        Unit(name, "evaluated", Source({"gold": child(folder, f"{name}.json")})) for name in config.recordings
    )
    missing = tuple(
        Problem("no gold file", shown(unit.gold.files["gold"], context.root))
        for unit in units
        if not unit.gold.files["gold"].is_file()
    )
    return Dataset(units, load_gold, problems=missing)


def predictions(context: Context, units: Dataset, run: str, table: Mapping[str, Any]) -> Run:
    """A run: the file of each recording that is there."""
    config = structure(RunTable, table, f"protocols.{context.name}.runs.{run}")
    folder = resolve(context.root, config.path)
    files = {unit.key: child(folder, f"{unit.name}.json") for unit in units.units}
    there = {key: Source({"prediction": path}) for key, path in files.items() if path.is_file()}
    known = {path.name for path in files.values()}
    extra = sorted(path.stem for path in folder.glob("*.json") if path.name not in known)
    return Run(run, there, load_prediction, extra=tuple(extra))


def metronome(units: Dataset) -> Run:
    """The input-free control: an onset every second."""
    return Run(
        "control:metronome", {unit.key: Source() for unit in units.units}, load_metronome, control=True
    )


def load_gold(context: Context, unit: Unit) -> Gold:
    """Read a recording's gold; InputError with all its problems."""
    path = unit.gold.files["gold"]
    record = _read(path, {"duration_s", "onsets_s"}, context)
    place = shown(path, context.root)
    duration = record["duration_s"]
    if not _is_number(duration) or duration <= 0:
        raise InputError(Problem("not a duration", f"{place}: duration_s", repr(duration), "seconds above 0"))
    return Gold(_onsets(record["onsets_s"], float(duration), place), float(duration))


def load_prediction(context: Context, unit: Unit, source: Source, gold: Gold) -> NDArray[np.float64]:
    """Read a run's onsets [M], in seconds; InputError with all their problems."""
    path = source.files["prediction"]
    record = _read(path, {"onsets_s"}, context)
    return _onsets(record["onsets_s"], gold.duration_s, shown(path, context.root))


def load_metronome(context: Context, unit: Unit, source: Source, gold: Gold) -> NDArray[np.float64]:
    """Onsets [M] at every whole period below the duration."""
    import numpy as np

    return np.arange(METRONOME_S, gold.duration_s, METRONOME_S)


def _read(path: Path, keys: set[str], context: Context) -> dict[str, Any]:
    place = shown(path, context.root)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(Problem("cannot be read as JSON", place, str(error))) from None
    if not isinstance(record, dict) or record.keys() != keys:
        found = ", ".join(sorted(record)) if isinstance(record, dict) else type(record).__name__
        raise InputError(Problem("wrong keys", place, found, ", ".join(sorted(keys))))
    return record


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _onsets(values: Any, duration_s: float, place: str) -> NDArray[np.float64]:
    import numpy as np

    if not isinstance(values, list):
        raise InputError(
            Problem("not a list", f"{place}: onsets_s", type(values).__name__, "a list of seconds")
        )
    raise_problems(
        InputError,
        [
            Problem(
                "not an onset", f"{place}: onsets_s[{index}]", repr(value), f"seconds in [0, {duration_s}]"
            )
            for index, value in enumerate(values)
            if not _is_number(value) or not 0 <= value <= duration_s
        ],
    )
    return np.sort(np.asarray(values, dtype=np.float64))
