"""Recognising acoustic maps and their labels for ``floorkit init``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from floorkit.core.guess import Guess, Listing, Question, counted, run_name
from floorkit_seld_metrics.params import FORMAT, SPLITS

PREDICTIONS = r"(?:.*/)?[^/]+_inference\.json(?:\.gz)?"
LABELS = r"(?:.*/)?[^/]+_std\.json(?:\.gz)?"


def guess(listing: Listing) -> list[Guess]:
    """One entry with a run for each folder of predictions; empty where there is none."""
    folders = listing.by_folder(listing.matching(PREDICTIONS))
    if not folders:
        return []
    runs: dict[str, dict[str, Any]] = {}
    for folder in folders:
        runs[run_name(folder, listing.root, list(runs))] = {"predictions": Path(folder)}
    dataset: dict[str, Any] = {"format": FORMAT}
    questions = []
    labelled = [Path(folder) for folder in listing.by_folder(listing.matching(LABELS))]
    if labelled:
        dataset["labels"] = labelled[0].parent
        splits = [folder.name for folder in labelled if folder.parent == labelled[0].parent]
        if not set(splits) <= set(SPLITS):
            dataset["splits"] = splits
    else:
        text = "Folder of the labels (labels_dev, with SPLIT/SEQ_std.json)"
        questions.append(Question("dataset.labels", text, is_path=True))
    recordings = sum(map(len, folders.values()))
    words = f"{counted(recordings, 'file')} of acoustic maps in {counted(len(folders), 'folder')}"
    return [Guess("seld_metrics", words, dataset, runs, questions=tuple(questions))]
