"""Dense future-activity arrays: targets, recording boundaries and predictions (protocols/dense.spec.md).

Row t covers [0.2 t, 0.2 (t + 1)) seconds. ``pred[t, c, h]`` is the probability that class c is active in
row t, forecast from source row t - (h + 1): the forecast path of source row s is pred[s + j, c, j - 1],
j = 1 .. H. Nothing is ever transposed, padded or clipped: what does not fit is an InputError with the file,
what was found and what was expected.
"""

from __future__ import annotations

import json
import math
import tokenize
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from floorkit.core.errors import InputError, Problem, raise_problems
from floorkit.core.paths import shown
from floorkit.core.values import Context, Source, Unit
from floorkit.formats.honesty import DenseParams
from floorkit.numerics import ROW_SECONDS

BACKGROUND, WEARER, OTHERS = 0, 1, 2
MISSING = "missing"
"""Key of a unit's gold values: problems of targets that are not there, as plain data."""

Bool = NDArray[np.bool_]


def horizon_seconds(horizon: int) -> float:
    """Seconds that horizon k = 1, 2, ... looks ahead, as people write them (0.6, not 0.6000000000000001)."""
    return round(horizon * ROW_SECONDS, 9)


@attrs.frozen(eq=False)
class Targets:
    """What happened in one session.

    Parameters
    ----------
    session
        Its name.
    activity
        Shape [T, C], true where class c is active in row t.
    starts
        First rows of the R recordings that the session concatenates, shape [R], starts[0] = 0.
    """

    session: str
    activity: Bool
    starts: NDArray[np.int64]

    @property
    def rows(self) -> int:
        """T, the number of rows."""
        return len(self.activity)

    @property
    def stops(self) -> NDArray[np.int64]:
        """One past the last row of each recording, shape [R]."""
        return np.append(self.starts[1:], self.rows)

    @property
    def recording(self) -> NDArray[np.int64]:
        """Index of the recording of each row, shape [T]."""
        return np.repeat(np.arange(len(self.starts)), self.stops - self.starts)

    def inside(self, horizons: int) -> Bool:
        """Shape [T, H]: whether the source row t - (h + 1) lies in the recording of row t."""
        into_recording = np.arange(self.rows) - self.starts[self.recording]
        return into_recording[:, None] > np.arange(horizons)


@attrs.frozen(eq=False)
class Prediction:
    """One session's forecasts.

    Parameters
    ----------
    pred
        Shape [T, C, H], float16, 32 or 64, by custom a memory map.
    valid
        Shape [T, H]: cells that may be used, mask and recording rule together. Their values are finite and
        within [0, 1]; those of other cells may be anything and must not be used.
    """

    pred: NDArray[Any]
    valid: Bool

    @property
    def wearer(self) -> NDArray[np.float64]:
        """The wearer's forecasts in float64, shape [T, H]."""
        return np.ascontiguousarray(self.pred[:, WEARER, :], dtype=np.float64)


def targets_of(gold: Any) -> Targets:
    """The targets behind a protocol's gold: itself, or its attribute ``targets``."""
    return gold if isinstance(gold, Targets) else gold.targets


def load_targets(context: Context, unit: Unit) -> Targets:
    """Read and check one unit's targets.

    ``unit.gold.files`` holds ``targets`` and, where the session concatenates recordings, ``recordings``; or
    ``rttm`` and perhaps ``uem`` (see ``floorkit.formats.rttm``). ``context.params`` is a DenseParams.

    Raises
    ------
    InputError
        With every problem of the unit's target files.
    """
    params: DenseParams = context.params
    files = unit.gold.files
    if MISSING in unit.gold.values:
        raise InputError(Problem(**problem) for problem in unit.gold.values[MISSING])
    if "rttm" in files:
        from floorkit.formats.rttm import load_rttm_targets

        return load_rttm_targets(context, unit)
    activity = read_activity(files["targets"], params.classes, context.root)
    starts = np.zeros(1, dtype=np.int64)
    if "recordings" in files:
        starts = read_recordings(files["recordings"], len(activity), context.root)
    return Targets(unit.name, activity, starts)


def read_activity(path: Path, classes: int, root: Path) -> Bool:
    """TARGET_ROOT/SESSION.npy as booleans of shape [T, C]. Raises InputError."""
    array = open_array(path, root, kinds="biuf", kind_names="numbers")
    place = shown(path, root)
    if array.ndim != 2 or array.shape[1] != classes:
        raise InputError(
            Problem(
                "wrong shape of the targets", place, _shape(array.shape), f"[T, {classes}]: rows, classes"
            )
        )
    raise_problems(InputError, [*_no_rows(array, place), *_not_binary(array, "targets", place)])
    return np.asarray(array, dtype=bool)


def read_recordings(path: Path, rows: int, root: Path) -> NDArray[np.int64]:
    """TARGET_ROOT/SESSION.recordings.json, a bare list of start rows, for a session of ``rows`` rows.

    Raises
    ------
    InputError
        Unless it is a list of integers, the first one 0, strictly increasing and below ``rows``.
    """
    place = shown(path, root)
    expected = f"a bare JSON list of start rows, strictly increasing from 0, all below {rows}"
    try:
        starts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(Problem("the recordings cannot be read", place, str(error), expected)) from error
    if not isinstance(starts, list) or not starts or any(type(start) is not int for start in starts):
        raise InputError(Problem("not a list of start rows", place, json.dumps(starts)[:200], expected))
    problems = []
    if starts[0] != 0:
        problems.append(Problem("the first recording must start at row 0", place, str(starts[0]), expected))
    for index, (before, start) in enumerate(pairwise(starts), start=1):
        if start <= before:
            problems.append(
                Problem(
                    f"start row at index {index} is not above the one before",
                    place,
                    f"{start} after {before}",
                    expected,
                )
            )
    if max(starts) >= rows:
        problems.append(
            Problem(f"a recording starts past the session's {rows} rows", place, str(max(starts)), expected)
        )
    raise_problems(InputError, problems)
    return np.asarray(starts, dtype=np.int64)


def load_prediction(context: Context, unit: Unit, source: Source, gold: Any) -> Prediction:
    """Map and check one unit's prediction.

    ``source.files`` holds ``pred`` and perhaps ``valid``; ``gold`` gives rows and recordings (see
    :func:`targets_of`).

    Raises
    ------
    InputError
        With every problem of the unit's prediction files: shape, length, dtype, mask, and values
        outside [0, 1] in valid cells of any class.
    """
    params: DenseParams = context.params
    root, path = context.root, source.files["pred"]
    problems: list[Problem] = []
    targets = targets_of(gold)
    valid = targets.inside(params.horizons)
    if "valid" in source.files:
        try:
            valid &= _read_mask(source.files["valid"], targets.rows, params.horizons, root)
        except InputError as error:
            problems += error.problems
    try:
        pred = open_array(path, root, kinds="f", kind_names="float16, float32 or float64")
        expected = (targets.rows, params.classes, params.horizons)
        if pred.shape != expected:
            raise InputError(_wrong_prediction_shape(pred.shape, expected, unit.name, shown(path, root)))
        problems += _out_of_range(pred, valid, shown(path, root))
    except InputError as error:
        problems += error.problems
    raise_problems(InputError, problems)
    return Prediction(pred, valid)


def open_array(path: Path, root: Path, kinds: str, kind_names: str) -> NDArray[Any]:
    """Memory-map a ``.npy`` file; never unpickles.

    Parameters
    ----------
    path, root
        The file, and the manifest's folder (for messages).
    kinds, kind_names
        Allowed NumPy dtype kinds (``"biuf"``), and how messages call them. Floats have 2, 4 or 8 bytes.

    Raises
    ------
    InputError
        Where the file is missing, no ``.npy`` file, cut off, or of another dtype.
    """
    place = shown(path, root)
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            readers = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }
            if version not in readers:
                raise ValueError(f"version {version} of the format, which holds no plain number arrays")
            shape, fortran_order, dtype = readers[version](file)
            if min(shape, default=0) < 0:
                raise ValueError(f"shape {_shape(shape)}")
            offset = file.tell()
            size = path.stat().st_size
    except OSError as error:
        raise InputError(
            Problem("the file cannot be read", place, str(error.strerror), "a NumPy .npy file")
        ) from error
    except (ValueError, tokenize.TokenError) as error:
        raise InputError(
            Problem(
                "not a NumPy .npy file (pickles are never loaded)",
                place,
                str(error),
                f"an array of {kind_names}",
            )
        ) from error
    if dtype.hasobject or dtype.kind not in kinds or (dtype.kind == "f" and dtype.itemsize > 8):
        found = "object (needs pickle, which is never loaded)" if dtype.hasobject else str(dtype)
        raise InputError(Problem("wrong dtype", place, found, kind_names))
    needed = offset + math.prod(shape) * dtype.itemsize
    if size < needed:
        raise InputError(
            Problem("the file is cut off", place, f"{size} bytes", f"{needed} bytes for {_shape(shape)}")
        )
    if needed == offset:
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", offset, shape, "F" if fortran_order else "C")


def _read_mask(path: Path, rows: int, horizons: int, root: Path) -> Bool:
    """RUN/valid/SESSION.npy as booleans of shape [T, H]; [T] in the file counts for all horizons."""
    place = shown(path, root)
    mask = open_array(path, root, kinds="biuf", kind_names="bool, or numbers 0 and 1")
    if mask.shape not in {(rows, horizons), (rows,)}:
        raise InputError(
            Problem("wrong shape of the mask", place, _shape(mask.shape), f"[{rows}, {horizons}] or [{rows}]")
        )
    raise_problems(InputError, _not_binary(mask, "mask", place))
    chosen = np.asarray(mask, dtype=bool)
    return np.broadcast_to(chosen[:, None] if mask.ndim == 1 else chosen, (rows, horizons))


def _no_rows(array: NDArray[Any], place: str) -> list[Problem]:
    if len(array):
        return []
    return [Problem("a session of no rows", place, _shape(array.shape), "at least one row")]


def _not_binary(array: NDArray[Any], what: str, place: str) -> list[Problem]:
    if array.dtype.kind == "b" or not array.size:
        return []
    bad = (array != 0) & (array != 1)
    if not bad.any():
        return []
    return [Problem(f"the {what} must be 0 or 1", place, _example(array, bad), "0 or 1 everywhere")]


def _out_of_range(pred: NDArray[Any], valid: Bool, place: str) -> list[Problem]:
    if pred.min() >= 0 and pred.max() <= 1:
        return []
    bad = ~((pred >= 0) & (pred <= 1)) & valid[:, None, :]
    if not bad.any():
        return []
    return [
        Problem(
            "value outside [0, 1] in a valid cell",
            place,
            _example(pred, bad),
            "finite probabilities within [0, 1] wherever mask and recording make the cell valid",
            "mark the cell invalid in valid/, or mend the forecast; nothing is clipped",
        )
    ]


def _wrong_prediction_shape(
    found: tuple[int, ...], expected: tuple[int, int, int], session: str, place: str
) -> Problem:
    rows, classes, horizons = expected
    remedy = ""
    if found == (rows - horizons, horizons, classes):
        remedy = (
            "this looks source-indexed [source row, horizon, class]; convert it: floorkit convert egospeak "
            f"--prediction-root RAW --target-root TARGETS --output-dir RUN --sessions {session}"
        )
    return Problem(
        "wrong shape of the prediction",
        place,
        _shape(found),
        f"{_shape(expected)}: rows, classes, horizons",
        remedy,
    )


def _shape(shape: Iterable[int]) -> str:
    return str(list(shape))


def _example(array: NDArray[Any], bad: Bool) -> str:
    """The first bad value with its index, and how many there are."""
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    count = int(np.count_nonzero(bad))
    more = f" (and {count - 1} more)" if count > 1 else ""
    return f"{float(array[index])!r} at {list(index)}{more}"
