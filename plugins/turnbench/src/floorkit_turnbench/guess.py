"""Recognising turnbench's files for ``floorkit init``: submissions, probability files and conversations."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from floorkit.core.guess import Guess, Listing, Question, counted, run_name

TASK = re.compile(r'"task"\s*:\s*"(eot|int)"')
CALIBRATES = re.compile(r"(?:^|[^a-z])(?:dev|calib)", re.IGNORECASE)
ANNOTATOR = r"(?:.*/)?[^/]+_[12]_[abc]\.(?:srt|TextGrid|rttm)"


def guess(listing: Listing) -> list[Guess]:
    """One entry: a run for each submission, and one for the probability files; empty without either."""
    kinds: dict[str, list[str]] = {"predictions": [], "probs": [], "conversations": []}
    for name in listing.matching(r".*\.json"):
        keys = listing.json_keys(name)
        for kind in kinds.keys() & keys if "schema_version" in keys or "conversations" in keys else ():
            kinds[kind].append(name)
    runs: dict[str, dict[str, Any]] = {}
    for name in kinds["predictions"]:
        runs[run_name(name, listing.root, list(runs))] = {"events": Path(name)}
    tasks = {name: found[1] for name in kinds["probs"] if (found := TASK.search(listing.head(name)))}
    evaluated = _one_a_task([name for name in tasks if not CALIBRATES.search(name)], tasks)
    if evaluated:
        table = {"probabilities": evaluated}
        calibrating = _one_a_task([name for name in tasks if CALIBRATES.search(name)], tasks)
        if calibrating:
            table["calibration_probabilities"] = calibrating
        runs[run_name("probabilities", listing.root, list(runs))] = table
    if not runs:
        return []
    dataset, questions = _dataset(listing, kinds["conversations"])
    files = counted(len(kinds["predictions"]), "submission"), counted(len(tasks), "probability file")
    return [Guess("turnbench", ", ".join(files), dataset, runs, questions=questions)]


def _one_a_task(names: list[str], tasks: dict[str, str]) -> list[Path]:
    chosen: dict[str, Path] = {}
    for name in names:
        chosen.setdefault(tasks[name], Path(name))
    return list(chosen.values())


def _dataset(listing: Listing, files: list[str]) -> tuple[dict[str, Any], tuple[Question, ...]]:
    """Where the conversations come from: the evaluated source, and one whose name says dev or calibration."""
    places = [*listing.by_folder(listing.matching(r".*\.parquet")), *files]
    places += list(listing.by_folder(listing.matching(ANNOTATOR)))
    evaluated = [place for place in places if not CALIBRATES.search(Path(place).name)]
    calibrating = [place for place in places if CALIBRATES.search(Path(place).name)]
    dataset: dict[str, Any] = {"format": "turnbench"}
    if not places:
        text = "Conversations: a JSON file, or a folder of parquet shards or annotators' files"
        return dataset, (Question("dataset.path", text, is_path=True),)
    dataset["path"] = Path((evaluated or calibrating)[0])
    if evaluated and calibrating:
        dataset["calibration"] = {"path": Path(calibrating[0])}
    return dataset, ()
