"""Recognising dense forecasts, targets, strata and reviews among the files of a folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from floorkit.core.guess import Guess, Listing, Question, counted, natural, run_name
from floorkit.formats.honesty import DenseParams

SESSION = re.compile(r'"session"\s*:\s*"([^"]+)"')
STRATA_HEAD = "session,start_row,stop_row,stratum"


def guess_dense(
    listing: Listing, protocol: str, *, reviews: bool = False, strata: bool = False
) -> list[Guess]:
    """The entry of a dense protocol for the files of a folder; empty where there are no forecasts.

    Parameters
    ----------
    protocol
        Its id.
    reviews
        Whether it needs reviewed opportunities; without a file of them there is no guess.
    strata
        Whether it reads strata.
    """
    forecasts = _forecasts(listing)
    reviewed = _reviews(listing)
    if not forecasts or (reviews and "reviews" not in reviewed):
        return []
    runs: dict[str, dict[str, Any]] = {}
    for folder in forecasts:
        runs[run_name(folder, listing.root, list(runs))] = {"path": Path(folder)}
    calibrating = reviewed.pop("sessions", set())
    predicted = sorted({name for names in forecasts.values() for name in names}, key=natural)
    targets, questions = _targets(listing, set(predicted), set(forecasts))
    known = targets.pop("sessions", set(predicted))
    sessions = [name for name in predicted if name in known]
    official = [name for name in sessions if name in DenseParams().official_test_sessions]
    others = [name for name in sessions if (name in calibrating if calibrating else name not in official)]
    evaluated = [name for name in sessions if name not in others]
    dataset: dict[str, Any] = {**targets, "sessions": evaluated or sessions}
    if evaluated and others:
        dataset["calibration_sessions"] = others
    else:
        text = "Sessions that choose thresholds and are not evaluated (none: thresholds are exploratory)"
        questions.append(Question("dataset.calibration_sessions", text, is_list=True))
    dataset |= reviewed if reviews else {}
    if strata:
        found = [name for name in listing.matching(r".*\.csv") if listing.head(name).startswith(STRATA_HEAD)]
        dataset |= {"strata": Path(found[0])} if found else {}
    words = f"{counted(len(runs), 'run')} of forecasts, {counted(len(predicted), 'session')}"
    return [Guess(protocol, words, dataset, runs, _shape_params(listing, forecasts), tuple(questions))]


def _forecasts(listing: Listing) -> dict[str, list[str]]:
    """Run folder to its sessions: the .npy files in a folder ``pred`` below it."""
    found = listing.by_folder(listing.matching(r"(?:.*/)?pred/[^/]+\.npy"))
    return {
        Path(folder).parent.as_posix(): [name.removesuffix(".npy") for name in names]
        for folder, names in found.items()
    }


def _targets(listing: Listing, predicted: set[str], runs: set[str]) -> tuple[dict[str, Any], list[Question]]:
    """The folder of targets that covers most sessions, as keys of the dataset, and what is open."""
    arrays = {
        folder: {name.removesuffix(".npy") for name in names}
        for folder, names in listing.by_folder(listing.matching(r".*\.npy")).items()
        if Path(folder).parent.as_posix() not in runs or Path(folder).name not in ("pred", "valid")
    }
    best = max(arrays, key=lambda folder: len(arrays[folder] & predicted), default=None)
    if best is not None and arrays[best] & predicted:
        return {"format": "dense", "targets": Path(best), "sessions": arrays[best]}, []
    segments = listing.by_folder(listing.matching(r".*\.rttm"))
    for folder, names in segments.items():
        sessions = {name.removesuffix(".rttm") for name in names}
        if sessions & predicted:
            question = Question("dataset.wearer", "Name of the wearer's speaker in the RTTM files")
            return {"format": "rttm", "targets": Path(folder), "sessions": sessions}, [question]
    text = "Folder of the targets, SESSION.npy with the activity of each class"
    return {"format": "dense"}, [Question("dataset.targets", text, is_path=True)]


def _reviews(listing: Listing) -> dict[str, Any]:
    """The reviews file and that of the calibration sessions, with the latter's sessions."""
    candidates = []
    for name in listing.matching(r".*\.jsonl(?:\.gz)?"):
        line = listing.head(name).partition("\n")[0]
        if '"event_id"' in line and '"label"' in line:
            candidates.append(name)
    candidates.sort(key=lambda name: ("review" not in Path(name).name.lower(), len(name), name))
    calibrating = [name for name in candidates if "calib" in Path(name).name.lower()]
    reviews = [name for name in candidates if name not in calibrating]
    found: dict[str, Any] = {"reviews": Path(reviews[0])} if reviews else {}
    if reviews and calibrating:
        found["calibration_reviews"] = Path(calibrating[0])
        found["sessions"] = set(SESSION.findall(listing.head(calibrating[0])))
    return found


def _shape_params(listing: Listing, forecasts: Mapping[str, list[str]]) -> dict[str, Any]:
    """The parameters ``classes`` and ``horizons`` where the arrays have others than the default ones."""
    import numpy as np

    folder, names = next(iter(forecasts.items()))
    try:
        path = listing.root / folder / "pred" / f"{names[0]}.npy"
        shape = np.load(path, mmap_mode="r", allow_pickle=False).shape
    except (OSError, ValueError, EOFError):
        return {}  # `floorkit check` tells what is wrong with it
    defaults = DenseParams()
    if len(shape) != 3:
        return {}
    found = {"classes": shape[1], "horizons": shape[2]}
    return {name: size for name, size in found.items() if size != getattr(defaults, name)}
