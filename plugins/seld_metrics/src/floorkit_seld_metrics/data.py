"""Dataset and predictions in the official layout: folders to recordings, files to annotations.

Labels lie at ``LABELS/SPLIT/SEQ_std.json``, predictions at ``PREDICTIONS/SEQ_inference.json`` or
``PREDICTIONS/SEQ.json``, each plain or gzip (``.json.gz``). A recording with two files, a prediction
without labels, and a recording without predictions that the manifest does not declare absent are errors.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from floorkit.core.errors import ManifestError, Problem
from floorkit.core.paths import child, resolve, shown
from floorkit.core.sources import hash_file
from floorkit.core.structure import structure
from floorkit.core.values import Context, Dataset, Run, Source, Unit, UnitKey
from floorkit_seld_metrics.documents import Document, read_document
from floorkit_seld_metrics.params import FORMAT, SPLITS, DatasetTable, RunTable
from floorkit_seld_metrics.taxonomy import REVISIONS

LABEL_ENDINGS = ("_std.json", "_std.json.gz")
PREDICTION_ENDINGS = ("_inference.json", "_inference.json.gz", ".json", ".json.gz")
SHIFTED = "control:shifted"
_LARGEST_LOSS = 1e-3


@attrs.frozen(eq=False)
class Gold:
    """One recording's labels."""

    document: Document


def dataset(context: Context, table: Mapping[str, Any]) -> Dataset | None:
    """The hook ``floorkit_dataset``; None for other formats."""
    if table.get("format") != FORMAT:
        return None
    where = f"protocols.{context.name}.dataset"
    parsed = structure(DatasetTable, table, where)
    folder = resolve(context.root, parsed.labels)
    files, problems = label_files(folder, parsed.splits, context.root)
    missing = [name for name in parsed.recordings if name not in files]
    problems += [_no_labels(name, files, f"{where}.recordings") for name in missing]
    names = sorted(set(parsed.recordings or files) & files.keys())
    official = _official_files(parsed.official, context.root, f"{where}.official")
    units = tuple(
        Unit(name, "evaluated", Source({"labels": files[name]}), {"split": files[name].parent.name})
        for name in names
    )
    return Dataset(
        units,
        load_gold,
        files=official,
        problems=tuple(problems),
        provenance={
            "labelled_recordings": sorted(files),
            "official_sha256": {name: hash_file(path)[0] for name, path in official.items()},
        },
    )


def _official_files(named: Mapping[str, str], root: Path, where: str) -> dict[str, Path]:
    unknown = [
        Problem("unknown revision", f"{where}.{name}", repr(name), "one of " + ", ".join(REVISIONS))
        for name in named
        if name not in REVISIONS
    ]
    paths = {name: resolve(root, path) for name, path in named.items()}
    unknown += [
        Problem("no such file", f"{where}.{name}", str(path), "your copy of that revision's evaluate.py")
        for name, path in paths.items()
        if not path.is_file()
    ]
    if unknown:
        raise ManifestError(unknown)
    return paths


def label_files(folder: Path, splits: Sequence[str], root: Path) -> tuple[dict[str, Path], list[Problem]]:
    """The label file of every recording below ``folder``, and what is wrong with the layout."""
    chosen = [child(folder, split) for split in splits or SPLITS]
    present = [split for split in chosen if split.is_dir()]
    problems = []
    if not present or (splits and len(present) < len(chosen)):
        absent = [split.name for split in chosen if split not in present]
        problems.append(
            Problem(
                "no folder of labels",
                shown(folder, root),
                "without " + ", ".join(absent) if folder.is_dir() else "no such folder",
                "one of the folders " + ", ".join(SPLITS) if not splits else "every folder of `splits`",
                "name the folder that holds them (labels_dev) as `labels`, or others as `splits`",
            )
        )
    found, twice = _by_recording((path for split in present for path in split.iterdir()), LABEL_ENDINGS)
    problems += [_two_files(name, paths, root) for name, paths in twice.items()]
    if not found and not problems:
        problems.append(
            Problem("no label file", shown(folder, root), expected="SEQ_std.json below a split's folder")
        )
    return found, problems


def prediction_files(folder: Path, root: Path) -> tuple[dict[str, Path], list[Problem]]:
    """The prediction file of every recording in ``folder``, and what is wrong with it."""
    if not folder.is_dir():
        remedy = "name the folder that holds the SEQ_inference.json files"
        return {}, [Problem("no folder of predictions", shown(folder, root), remedy=remedy)]
    found, twice = _by_recording(folder.iterdir(), PREDICTION_ENDINGS)
    return found, [_two_files(name, paths, root) for name, paths in twice.items()]


def _by_recording(
    paths: Iterable[Path], endings: Sequence[str]
) -> tuple[dict[str, Path], dict[str, list[Path]]]:
    """Files by recording name, and the recordings that have several."""
    found: dict[str, list[Path]] = {}
    for path in sorted(paths):
        ending = next((one for one in endings if path.name.endswith(one)), None)
        if ending is not None and path.is_file():
            found.setdefault(path.name.removesuffix(ending), []).append(child(path.parent, path.name))
    return (
        {name: files[0] for name, files in found.items()},
        {name: files for name, files in found.items() if len(files) > 1},
    )


def _two_files(name: str, paths: Sequence[Path], root: Path) -> Problem:
    return Problem(
        f"two files for recording {name}",
        shown(paths[0], root),
        ", ".join(shown(path, root) for path in paths),
        "one file",
        "remove the one that is not meant",
    )


def _no_labels(name: str, labelled: Iterable[str], where: str) -> Problem:
    near = difflib.get_close_matches(name, list(labelled), n=1)
    return Problem(
        f"recording {name} has no label file",
        where,
        expected=f"{name}{LABEL_ENDINGS[0]} in a split's folder",
        remedy=f"did you mean {near[0]}?" if near else "add its labels, or take the recording out",
    )


def predictions(context: Context, dataset: Dataset, run: str, table: Mapping[str, Any]) -> Run:
    """The hook ``floorkit_predictions``."""
    parsed = structure(RunTable, table, f"protocols.{context.name}.runs.{run}")
    files, problems = prediction_files(resolve(context.root, parsed.predictions), context.root)
    names = {unit.name for unit in dataset.units}
    labelled = {*names, *dataset.provenance.get("labelled_recordings", ())}
    problems += [
        _no_labels(name, labelled, shown(path, context.root))
        for name, path in files.items()
        if name not in labelled
    ]
    sources: dict[UnitKey, Source] = {
        unit.key: Source({"predictions": files[unit.name]}) for unit in dataset.units if unit.name in files
    }
    extra = tuple(name for name in files if name in labelled and name not in names)
    return Run(run, sources, load_prediction, extra=extra, problems=tuple(problems))


def controls(dataset: Dataset) -> list[Run]:
    """``control:shifted``: every recording is predicted by the ground truth of the next one in name order.

    With a single recording there is no other, hence no control.
    """
    units = dataset.units
    if len(units) < 2:
        return []
    following = (*units[1:], units[0])
    sources = {
        unit.key: Source({"labels": other.gold.files["labels"]})
        for unit, other in zip(units, following, strict=True)
    }
    return [Run(SHIFTED, sources, load_shifted, control=True)]


def load_gold(context: Context, unit: Unit) -> Gold:
    """Read and check one recording's labels. Raises InputError."""
    path = unit.gold.files["labels"]
    return Gold(read_document(path, shown(path, context.root), scored=False))


def load_prediction(context: Context, unit: Unit, source: Source, gold: Gold) -> Document:
    """Read and check one recording's predictions. Raises InputError."""
    path = source.files["predictions"]
    return read_document(path, shown(path, context.root), scored=True)


def load_shifted(context: Context, unit: Unit, source: Source, gold: Gold) -> Document:
    """Another recording's labels as predictions: frames cut to length, scores 1 - u, u in [0, 0.001)."""
    path = source.files["labels"]
    other = read_document(path, shown(path, context.root), scored=False)
    last = int(gold.document.annotations.frame.max(initial=-1))
    kept = other.annotations.select(np.flatnonzero(other.annotations.frame <= last))
    seed = int.from_bytes(hashlib.sha256(f"{context.seed} {unit.name}".encode()).digest()[:8], "big")
    score = 1.0 - np.random.default_rng(seed).uniform(0.0, _LARGEST_LOSS, len(kept))
    return attrs.evolve(other, annotations=attrs.evolve(kept, score=score), is_control=True)
