"""Submissions: the times that a system committed to, in the official JSON form.

    {"schema_version": 1, "predictions": [
        {"conversation_id": "20", "speaker_1": {"eot": [12.84], "interruption": []}, "speaker_2": {...}}]}

Strict: unknown keys, wrong types, non-finite, negative or past-the-end times, lists that do not strictly
increase, and missing, unknown or duplicate conversations are problems, all told together. Stricter than the
official parser in that strings and booleans are never numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from attrs import field, frozen

from floorkit.core.errors import InputError, Problem, raise_problems
from floorkit_turnbench.conversation import TASKS, Events, Task, floats
from floorkit_turnbench.labels import SPEAKERS
from floorkit_turnbench.strict_json import (
    check_entries,
    check_schema_version,
    fields,
    number,
    parse_json,
    read_bytes,
    shown,
)

SCHEMA_VERSION: Final = 1
LIST_NAMES: Final[dict[Task, str]] = {"eot": "eot", "int": "interruption"}


@frozen(eq=False)
class Submission:
    """Committed events by conversation id, in the order of the file.

    Build one from lists in memory with :meth:`of`.
    """

    predictions: Mapping[str, Events] = field(factory=dict)

    @classmethod
    def of(cls, predictions: Mapping[str, Mapping[str, Mapping[int, Iterable[float]]]]) -> Submission:
        """A submission from lists or arrays in memory, without validation.

        Parameters
        ----------
        predictions
            Conversation id to task ("eot", "int") to speaker (1, 2) to times in seconds. What is left out
            is empty.
        """
        return cls(
            {
                identifier: {
                    task: {speaker: floats(tasks.get(task, {}).get(speaker, ())) for speaker in SPEAKERS}
                    for task in TASKS
                }
                for identifier, tasks in predictions.items()
            }
        )

    def to_json(self) -> dict[str, Any]:
        """The official form, as JSON-able data."""
        return {
            "schema_version": SCHEMA_VERSION,
            "predictions": [
                {
                    "conversation_id": identifier,
                    **{
                        f"speaker_{speaker}": {
                            LIST_NAMES[task]: np.asarray(events[task][speaker]).tolist() for task in TASKS
                        }
                        for speaker in SPEAKERS
                    },
                }
                for identifier, events in self.predictions.items()
            ],
        }


def check_submission(
    data: Any,
    durations: Mapping[str, float] | None,
    where: str,
    *,
    complete: bool = True,
) -> tuple[Submission, list[Problem]]:
    """Validate a submission's data.

    Parameters
    ----------
    data
        What the JSON file holds.
    durations
        Conversation id to duration in seconds; None checks neither ids nor ends.
    where
        Name of the file, for messages.
    complete
        Whether every conversation must have an entry.

    Returns
    -------
    submission, problems
        The submission holds what is sound; use it only when there are no problems.
    """
    problems: list[Problem] = []
    top = fields(data, ("schema_version", "predictions"), where, problems, "a submission")
    if "schema_version" in top:
        check_schema_version(top["schema_version"], f"{where}: schema_version", problems)
    if "predictions" not in top:
        return Submission(), problems
    if not isinstance(top["predictions"], list):
        problems.append(
            Problem("predictions is no list", where, shown(top["predictions"]), "a list of entries")
        )
        return Submission(), problems

    known = None if durations is None else dict(durations)
    ids: list[tuple[int, Any]] = []
    predictions: dict[str, Events] = {}
    for index, entry in enumerate(top["predictions"]):
        place = f"{where}: predictions[{index}]"
        parts = fields(entry, ("conversation_id", "speaker_1", "speaker_2"), place, problems, "an entry")
        identifier = parts.get("conversation_id")
        if "conversation_id" in parts:
            ids.append((index, identifier))
        name = f"conversation {identifier}" if isinstance(identifier, str) else f"predictions[{index}]"
        end = (known or {}).get(identifier) if isinstance(identifier, str) else None
        times: dict[Task, dict[int, Any]] = {task: {} for task in TASKS}
        for speaker in SPEAKERS:
            if f"speaker_{speaker}" not in parts:
                continue
            at = f"{where}: {name}, speaker_{speaker}"
            lists = fields(parts[f"speaker_{speaker}"], tuple(LIST_NAMES.values()), at, problems, "a speaker")
            for task, key in LIST_NAMES.items():
                if key in lists:
                    times[task][speaker] = _times(lists[key], end, f"{at}, {key}", problems)
        if isinstance(identifier, str) and all(len(times[task]) == len(SPEAKERS) for task in TASKS):
            predictions[identifier] = times
    check_entries(ids, known, "predictions", where, problems, complete=complete)
    return Submission(predictions), problems


def _times(values: Any, duration_s: float | None, where: str, problems: list[Problem]) -> Any:
    if not isinstance(values, list):
        problems.append(Problem("not a list of times", where, shown(values), "a list of seconds"))
        return np.zeros(0)
    previous = -math.inf
    for index, value in enumerate(values):
        place = f"{where}[{index}]"
        time = number(value)
        if time is None:
            problems.append(Problem("time is no number", place, shown(value), "seconds as a JSON number"))
            continue
        if not math.isfinite(time) or time < 0.0:
            problems.append(
                Problem("time is not finite and at least 0", place, shown(value), "seconds, 0 or later")
            )
        elif duration_s is not None and time > duration_s:
            problems.append(
                Problem(
                    "time is past the end of the audio", place, f"{time!r} s", f"at most {duration_s!r} s"
                )
            )
        if time <= previous:
            problems.append(
                Problem(
                    "times do not strictly increase",
                    place,
                    f"{time!r} after {previous!r}",
                    "each time later than the one before",
                )
            )
        previous = time
    numbers = [number(value) for value in values]
    return floats(value for value in numbers if value is not None)


def read_submission(path: Path, durations: Mapping[str, float] | None, where: str = "") -> Submission:
    """Read and validate a submission file.

    Raises
    ------
    InputError
        With every problem of the file.
    """
    where = where or str(path)
    data, _ = parse_json(read_bytes(path, where), where)
    submission, problems = check_submission(data, durations, where)
    raise_problems(InputError, problems)
    return submission
