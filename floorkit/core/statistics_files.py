"""statistics.json: per-unit and resampled figures of every run, kept so that folders can be compared later.

::

    {"format": "floorkit statistics 1", "signature": "...", "seed": 0, "noun": "session",
     "settings": {"resamples": 2000, ...}, "draws": "5f3c...",
     "runs": {"model": {"clusters": ["S1", "S2"],
                        "figures": {KEY: {"figure": {"name": ..., "value": ..., ...},
                                          "units": [0.1, null], "denominators": [10, 0],
                                          "resampled": "AAAA..."}}}}}

``units`` and ``denominators`` go with ``clusters``; null where there is none. ``resampled`` holds the B
resampled figures, in the order of the draws, as base64 of little-endian float64, NaN where the figure
does not exist: ``numpy.frombuffer(base64.b64decode(text), "<f8")``. Two folders with equal ``draws`` have
resampled the same units, so that their figures may be subtracted resample by resample.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import asdict, fields, frozen

from floorkit.core.errors import InputError, Problem
from floorkit.core.statistics import Float, Replicates
from floorkit.core.statistics_settings import Settings
from floorkit.core.values import Comparison, Figure, Interval

FILE = "statistics.json"
FORMAT = "floorkit statistics 1"


@frozen(eq=False)
class Statistics:
    """What statistics.json holds; ``noun`` is what a resampled cluster is called."""

    signature: str
    seed: int
    settings: Settings
    noun: str
    runs: Mapping[str, Replicates]


def statistics_to_plain(
    replicates: Iterable[Replicates], settings: Settings, seed: int, noun: str, signature: str
) -> dict[str, Any]:
    """JSON-able data of statistics.json."""
    runs = list(replicates)
    return {
        "format": FORMAT,
        "signature": signature,
        "seed": seed,
        "noun": noun,
        "settings": asdict(settings),
        "draws": runs[0].draws if runs else "",
        "runs": {run.run: _run_to_plain(run) for run in runs},
    }


def _run_to_plain(run: Replicates) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for key, figure in run.figures.items():
        if key not in run.compared:
            continue
        figures[key] = {"figure": figure_to_plain(figure)}
        if key in run.resampled:
            figures[key] |= {
                "units": _listed(run.units[key]),
                "denominators": _listed(run.denominators[key]),
                "resampled": base64.b64encode(run.resampled[key].astype("<f8").tobytes()).decode("ascii"),
            }
    return {"clusters": list(run.clusters), "figures": figures}


def _listed(values: Float) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def statistics_from_plain(plain: Mapping[str, Any]) -> Statistics:
    """The inverse of :func:`statistics_to_plain`.

    Raises
    ------
    KeyError, TypeError, ValueError, AttributeError
        Where ``plain`` is not such data.
    """
    if plain["format"] != FORMAT:
        raise ValueError(f"format {plain['format']!r}, expected {FORMAT!r}")
    settings = Settings(**plain["settings"])
    draws = str(plain["draws"])
    runs = {
        name: _run_from_plain(name, run, draws, settings.resamples) for name, run in plain["runs"].items()
    }
    return Statistics(str(plain["signature"]), int(plain["seed"]), settings, str(plain["noun"]), runs)


def _run_from_plain(name: str, plain: Mapping[str, Any], draws: str, resamples: int) -> Replicates:
    clusters = tuple(plain["clusters"])
    figures: dict[str, Figure] = {}
    units, denominators, resampled = {}, {}, {}
    for key, entry in plain["figures"].items():
        figures[key] = figure_from_plain(entry["figure"])
        if "resampled" not in entry:
            continue
        units[key] = np.array(entry["units"], dtype=np.float64)
        denominators[key] = np.array(entry["denominators"], dtype=np.float64)
        decoded = np.frombuffer(base64.b64decode(entry["resampled"], validate=True), "<f8")
        resampled[key] = decoded.astype(np.float64)
        shapes = (units[key].shape, denominators[key].shape, resampled[key].shape)
        if shapes != ((len(clusters),), (len(clusters),), (resamples,)):
            raise ValueError(f"run {name}, figure {key}: lengths {shapes} do not fit together")
    return Replicates(name, clusters, figures, units, denominators, resampled, draws)


def figure_to_plain(figure: Figure) -> dict[str, Any]:
    """A figure as plain data, but for what only the running process can use (its rankings)."""
    plain = asdict(figure)
    del plain["rankings"]
    return plain


def figure_from_plain(plain: Mapping[str, Any]) -> Figure:
    """A Figure from ``attrs.asdict`` of one, read from JSON; further keys (``key``) are left aside."""
    return Figure(**{one.name: plain[one.name] for one in fields(Figure) if one.name in plain})


def comparison_from_plain(plain: Mapping[str, Any]) -> Comparison:
    """A Comparison, its interval included, from ``attrs.asdict`` of one, read from JSON."""
    interval = plain["interval"]
    return Comparison(
        **{
            **plain,
            "interval": None if interval is None else Interval(**interval),
            "not_comparable": tuple(plain["not_comparable"]),
            "cautions": tuple(plain["cautions"]),
        }
    )


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object of a results folder.

    Raises
    ------
    InputError
        Where the file cannot be read or holds no JSON object.
    """
    remedy = "run `floorkit run` again"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            Problem("cannot be read", str(path), error.strerror or str(error), remedy=remedy)
        ) from None
    except ValueError as error:
        raise InputError(Problem("is damaged", str(path), str(error), "JSON", remedy)) from None
    if not isinstance(data, dict):
        raise InputError(Problem("is damaged", str(path), type(data).__name__, "a JSON object", remedy))
    return data


def read_statistics(path: Path) -> Statistics:
    """Read statistics.json.

    Raises
    ------
    InputError
        Where the file cannot be read or is not as floorkit wrote it.
    """
    plain = read_json(path)
    try:
        return statistics_from_plain(plain)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        found = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(
            Problem("is damaged", str(path), found, "as floorkit wrote it", "run `floorkit run` again")
        ) from None
