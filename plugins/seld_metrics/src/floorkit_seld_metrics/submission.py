"""``check``: is a folder of predictions a valid submission? Size limit, schema, coverage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from floorkit.core.errors import InputError, Problem
from floorkit_seld_metrics.data import label_files, prediction_files
from floorkit_seld_metrics.documents import read_document
from floorkit_seld_metrics.taxonomy import SUBMISSION_LIMIT_BYTES

DEVELOPMENT_TEST_RECORDINGS = 78
"""30 recordings of dev-test-sony and 48 of dev-test-tau."""


@frozen
class Checked:
    """What was looked at, and every problem of it."""

    files: int
    annotations: int
    largest: int
    problems: tuple[Problem, ...]


def check(predictions: Path, labels: Path | None, recordings: Sequence[str]) -> Checked:
    """Check every file of a folder.

    Parameters
    ----------
    labels
        Folder of labels: the recordings to cover are those that have labels.
    recordings
        Names of the recordings to cover instead. Without either, 78 files are expected.
    """
    found, problems = prediction_files(predictions, predictions.parent)
    problems += _coverage(found, predictions, labels, recordings)
    annotations, largest = 0, 0
    for path in found.values():
        size = path.stat().st_size
        largest = max(largest, size)
        if size > SUBMISSION_LIMIT_BYTES:
            problems.append(
                Problem(
                    "larger than the submission limit",
                    str(path),
                    f"{size:,} bytes",
                    f"at most {SUBMISSION_LIMIT_BYTES:,} bytes (20 MiB)",
                    "floorkit seld-metrics compress makes it smaller",
                )
            )
        if path.name.endswith(".gz"):
            problems.append(
                Problem("compressed", str(path), "gzip", "plain JSON in a submission", "gunzip it")
            )
        try:
            annotations += len(read_document(path, str(path), scored=True).annotations)
        except InputError as error:
            problems += error.problems
    return Checked(len(found), annotations, largest, tuple(problems))


def _coverage(
    found: dict[str, Path], predictions: Path, labels: Path | None, recordings: Sequence[str]
) -> list[Problem]:
    if not recordings and labels is None:
        if len(found) == DEVELOPMENT_TEST_RECORDINGS or not predictions.is_dir():
            return []
        return [
            Problem(
                "not every recording of the development test",
                str(predictions),
                f"{len(found)} files",
                f"{DEVELOPMENT_TEST_RECORDINGS} files",
                "name the recordings that are meant with --recording, or their labels with --labels",
            )
        ]
    problems: list[Problem] = []
    expected = set(recordings)
    if not expected and labels is not None:
        labelled, problems = label_files(labels, (), labels.parent)
        expected = set(labelled)
    missing, extra = sorted(expected - found.keys()), sorted(found.keys() - expected)
    problems += [
        Problem(f"no predictions of recording {name}", str(predictions), expected=f"{name}_inference.json")
        for name in missing
    ]
    problems += [
        Problem(f"predictions of recording {name}, which is not asked for", str(found[name]))
        for name in extra
    ]
    return problems
