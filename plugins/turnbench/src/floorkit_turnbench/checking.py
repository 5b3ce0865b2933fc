"""Checking one file of either kind: what ``floorkit turnbench check`` does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from floorkit.core.errors import InputError, Problem
from floorkit_turnbench.conversation import TASKS
from floorkit_turnbench.labels import SPEAKERS
from floorkit_turnbench.probabilities import parse_probabilities
from floorkit_turnbench.strict_json import parse_json, read_bytes
from floorkit_turnbench.submission import check_submission


@frozen
class Checked:
    """What a file holds in one line, and what is wrong with it."""

    summary: str = ""
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def check_file(path: Path, durations: Mapping[str, float] | None) -> Checked:
    """Check a submission or a probability file, whichever its keys say it is.

    Parameters
    ----------
    durations
        Conversation id to seconds; None checks neither ids, ends nor frame counts.
    """
    where = str(path)
    try:
        raw = read_bytes(path, where)
        probabilities, problems = parse_probabilities(raw, durations, where)
        if probabilities is not None:
            frames = sum(len(of[speaker]) for of in probabilities.values.values() for speaker in SPEAKERS)
            return Checked(
                f"probabilities of task {probabilities.task} at {probabilities.frame_rate_hz:g} Hz, "
                f"{len(probabilities.values)} conversations, {frames} frames"
            )
        data, notes = parse_json(raw, where)
    except InputError as error:
        return Checked(problems=error.problems)
    if _looks_like_probabilities(data):
        return Checked(problems=tuple(problems), notes=tuple(notes))
    submission, problems = check_submission(data, durations, where)
    counts = {
        task: sum(
            len(events[task][speaker]) for events in submission.predictions.values() for speaker in SPEAKERS
        )
        for task in TASKS
    }
    summary = (
        f"submission, {len(submission.predictions)} conversations, {counts['eot']} EOT and "
        f"{counts['int']} interruption events"
    )
    return Checked(summary, tuple(problems), tuple(notes))


def _looks_like_probabilities(data: Any) -> bool:
    return isinstance(data, dict) and "predictions" not in data and bool({"probs", "task"} & data.keys())
