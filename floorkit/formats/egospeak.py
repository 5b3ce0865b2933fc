"""EgoSpeak MiniROADA's source-indexed predictions to the dense layout (dense spec).

RAW/SESSION.npy has the shape [T - H, H, C]: row i is the forecast made at source row i, entry j (0 .. H - 1)
forecasts row i + 1 + j. The aligned array is

    pred[t, c, h] = raw[t - 1 - h, h, c]   valid where 0 <= t - 1 - h < T - H, else NaN and invalid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from floorkit.core.errors import InputError, Problem, raise_problems
from floorkit.core.paths import child
from floorkit.core.sources import hash_file
from floorkit.formats.dense import Bool, open_array, read_activity
from floorkit.formats.dense_writer import WrittenSession, write_run
from floorkit.formats.honesty import DenseParams


@attrs.frozen
class Conversion:
    """What to convert.

    Parameters
    ----------
    predictions
        A folder of SESSION.npy files, or one ``.pkl`` file, a dictionary from session to array.
    targets
        Folder of the targets SESSION.npy, which give the lengths.
    output
        The run's folder to write.
    sessions
        Names of the sessions.
    add
        Keep other sessions of the output folder.
    """

    predictions: Path
    targets: Path
    output: Path
    sessions: Sequence[str]
    add: bool = False


def convert(conversion: Conversion) -> None:
    """Check every session, then write all of them.

    Raises
    ------
    InputError
        With the problems of all sessions: missing files, wrong shape, length, dtype or range. Nothing is
        written then.
    """
    layout = DenseParams()
    pickled = _pickled(conversion.predictions)
    problems: list[Problem] = []
    for session in conversion.sessions:
        try:
            _load(conversion, pickled, session, layout)
        except InputError as error:
            problems += error.problems
    raise_problems(InputError, problems)

    def written() -> Iterator[WrittenSession]:
        for session in conversion.sessions:
            raw, rows, record = _load(conversion, pickled, session, layout)
            pred, valid = align(raw, rows)
            yield WrittenSession(session, pred, valid, record)

    write_run(
        conversion.output,
        written(),
        conversion.sessions,
        add=conversion.add,
        tool="floorkit convert egospeak",
    )


def align(raw: NDArray[Any], rows: int) -> tuple[NDArray[Any], Bool]:
    """Target-indexed forecasts from source-indexed ones.

    Parameters
    ----------
    raw
        Shape [T - H, H, C]: source row, horizon, class.
    rows
        T, the rows of the targets.

    Returns
    -------
    pred
        Shape [T, C, H], the dtype of ``raw``; NaN where there is no forecast.
    valid
        Shape [T, H].
    """
    sources, horizons, classes = raw.shape
    pred = np.full((rows, classes, horizons), np.nan, dtype=raw.dtype.newbyteorder("="))
    valid = np.zeros((rows, horizons), dtype=bool)
    for index in range(horizons):
        target = slice(1 + index, 1 + index + sources)
        pred[target, :, index] = raw[:, index]
        valid[target, index] = True
    return pred, valid


def _pickled(path: Path) -> Mapping[str, NDArray[Any]] | None:
    if path.suffix != ".pkl":
        return None
    from floorkit.formats.pickled_arrays import read_arrays

    return read_arrays(path)


def _load(
    conversion: Conversion, pickled: Mapping[str, NDArray[Any]] | None, session: str, layout: DenseParams
) -> tuple[NDArray[Any], int, dict[str, Any]]:
    """One session's raw array, checked, the rows of its targets, and the record of both files."""
    root = Path()
    targets = child(conversion.targets, f"{session}.npy")
    rows = len(read_activity(targets, layout.classes, root))
    if pickled is None:
        source = child(conversion.predictions, f"{session}.npy")
        raw = open_array(source, root, kinds="f", kind_names="float16, float32 or float64")
    elif session in pickled:
        source, raw = conversion.predictions, pickled[session]
    else:
        raise InputError(
            Problem(
                f"no array of session {session}", str(conversion.predictions), ", ".join(pickled) or "none"
            )
        )
    place = str(source) if pickled is None else f"{source} (session {session})"
    expected = (rows - layout.horizons, layout.horizons, layout.classes)
    if raw.shape != expected:
        raise InputError(
            Problem(
                "wrong shape of the source-indexed prediction",
                place,
                str(list(raw.shape)),
                f"{list(expected)}: source rows ({rows} less {layout.horizons}), horizons, classes",
                "nothing is transposed or padded; check that prediction and targets belong together",
            )
        )
    bad = ~((raw >= 0) & (raw <= 1))
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InputError(
            Problem(
                "value outside [0, 1]",
                place,
                f"{float(raw[index])!r} at {list(index)}",
                "finite probabilities",
            )
        )
    record = {
        "prediction": {"file": source.name, "sha256": hash_file(source)[0]},
        "targets": {"file": targets.name, "sha256": hash_file(targets)[0]},
    }
    return raw, rows, record
