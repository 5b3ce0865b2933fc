"""Probability files: one value a frame and speaker for one task, read without a Python float for each.

    {"schema_version": 1, "task": "eot"|"int", "frame_rate_hz": 12.5, "probs": [
        {"conversation_id": "20", "speaker_1": {"prob": [0.01, ...]}, "speaker_2": {"prob": [...]}}]}

A sound file goes from bytes to arrays through simdjson. Only a file that it, or a check of whole arrays,
rejects is read again value by value, to say everything that is wrong with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attrs import field, frozen

from floorkit.core.errors import InputError, Problem, raise_problems
from floorkit_turnbench.conversation import TASKS, Task, floats
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

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOP_KEYS: Final = ("schema_version", "task", "frame_rate_hz", "probs")


@frozen(eq=False)
class Probabilities:
    """One task's probabilities.

    Parameters
    ----------
    task, frame_rate_hz
        Frame i covers the time up to (i + 1) / frame_rate_hz.
    values
        Conversation id to speaker to probability of each frame, shape [F], in the order of the file.
    """

    task: Task
    frame_rate_hz: float
    values: Mapping[str, Mapping[int, NDArray[np.float64]]] = field(factory=dict)

    @classmethod
    def of(cls, task: Task, frame_rate_hz: float, values: Mapping[str, Mapping[int, Any]]) -> Probabilities:
        """Probabilities from lists or arrays in memory, without validation."""
        return cls(
            task,
            float(frame_rate_hz),
            {
                identifier: {speaker: np.asarray(of_speaker[speaker], np.float64) for speaker in SPEAKERS}
                for identifier, of_speaker in values.items()
            },
        )

    def to_json(self) -> dict[str, Any]:
        """The official form, as JSON-able data."""
        return {
            "schema_version": 1,
            "task": self.task,
            "frame_rate_hz": self.frame_rate_hz,
            "probs": [
                {
                    "conversation_id": identifier,
                    **{f"speaker_{speaker}": {"prob": of[speaker].tolist()} for speaker in SPEAKERS},
                }
                for identifier, of in self.values.items()
            ],
        }


def expected_frames(duration_s: float, frame_rate_hz: float) -> int:
    """Frames that a conversation must have: floor(duration * frame_rate_hz), in floating point."""
    return math.floor(duration_s * frame_rate_hz)


def check_probabilities(
    probabilities: Probabilities,
    durations: Mapping[str, float] | None,
    where: str,
    *,
    complete: bool = True,
) -> list[Problem]:
    """What is wrong with probabilities in memory, or read from a sound file: ids, frame counts, values."""
    problems: list[Problem] = []
    ids: list[tuple[int, Any]] = list(enumerate(probabilities.values))
    known = None if durations is None else dict(durations)
    check_entries(ids, known, "probs", where, problems, complete=complete)
    for identifier, of_speaker in probabilities.values.items():
        for speaker, values in of_speaker.items():
            place = f"{where}: conversation {identifier}, speaker_{speaker}, prob"
            duration = (known or {}).get(identifier)
            _check_frames(len(values), duration, probabilities.frame_rate_hz, place, problems)
            for index in np.flatnonzero(~((values >= 0.0) & (values <= 1.0))).tolist():
                problems.append(_out_of_range(float(values[index]), f"{place}[{index}]"))
    return problems


def _check_frames(
    found: int, duration_s: float | None, frame_rate_hz: float | None, where: str, problems: list[Problem]
) -> None:
    if duration_s is None or frame_rate_hz is None:
        return
    expected = expected_frames(duration_s, frame_rate_hz)
    if found != expected:
        problems.append(
            Problem(
                "wrong number of frames",
                where,
                f"{found} frames",
                f"{expected} (= floor({duration_s!r} s * {frame_rate_hz!r} Hz))",
            )
        )


def _out_of_range(value: Any, where: str) -> Problem:
    return Problem("probability is not in [0, 1]", where, shown(value), "a finite number from 0 to 1")


def parse_probabilities(
    raw: bytes, durations: Mapping[str, float] | None, where: str, *, complete: bool = True
) -> tuple[Probabilities | None, list[Problem]]:
    """Parse and validate a probability file's bytes.

    Parameters
    ----------
    durations
        Conversation id to duration in seconds; None checks neither ids nor frame counts.
    complete
        Whether every conversation must have an entry.

    Returns
    -------
    probabilities, problems
        None where anything is wrong.
    """
    sound = _parse_sound(raw)
    if sound is not None:
        problems = check_probabilities(sound, durations, where, complete=complete)
        return (None if problems else sound), problems
    try:
        data, _ = parse_json(raw, where)
    except InputError as error:
        return None, list(error.problems)
    return _parse_slowly(data, durations, where, complete=complete)


def _parse_sound(raw: bytes) -> Probabilities | None:
    """The file's arrays where everything but ids and frame counts is as it must be, else None."""
    import simdjson

    try:
        top = _members(simdjson.Parser().parse(raw), TOP_KEYS)
        rate = number(top["frame_rate_hz"])
        if number(top["schema_version"]) != 1.0 or top["task"] not in TASKS or rate is None:
            return None
        values: dict[str, dict[int, NDArray[np.float64]]] = {}
        for entry in top["probs"]:
            parts = _members(entry, ("conversation_id", "speaker_1", "speaker_2"))
            values[parts["conversation_id"]] = {
                speaker: _array(_members(parts[f"speaker_{speaker}"], ("prob",))["prob"])
                for speaker in SPEAKERS
            }
        count = len(top["probs"])
    except (ValueError, TypeError, KeyError, AttributeError, RuntimeError):
        return None  # told in full by _parse_slowly
    # simdjson takes a byte order mark, and flattens a list inside a list
    flat = raw.count(b"[") == 1 + len(SPEAKERS) * count and not raw.startswith(b"\xef\xbb\xbf")
    unique = len(values) == count and all(isinstance(identifier, str) for identifier in values)
    if not (flat and unique and math.isfinite(rate) and rate > 0.0):
        return None
    return Probabilities(top["task"], rate, values)


def _members(value: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    """Exactly these members of a simdjson object; its arrays stay unconverted."""
    if sorted(value.keys()) != sorted(keys):
        raise KeyError(keys)
    return {key: value[key] for key in keys}


def _array(values: Any) -> NDArray[np.float64]:
    array = np.frombuffer(values.as_buffer(of_type="d"), dtype=np.float64) if len(values) else np.zeros(0)
    if not ((array >= 0.0) & (array <= 1.0)).all():
        raise ValueError("out of range")
    return array


def _parse_slowly(
    data: Any, durations: Mapping[str, float] | None, where: str, *, complete: bool
) -> tuple[Probabilities | None, list[Problem]]:
    """Validate value by value, with every problem; also takes what the fast way is too strict for."""
    problems: list[Problem] = []
    top = fields(data, TOP_KEYS, where, problems, "a probability file")
    if "schema_version" in top:
        check_schema_version(top["schema_version"], f"{where}: schema_version", problems)
    task = top.get("task")
    if "task" in top and task not in TASKS:
        problems.append(Problem("unknown task", f"{where}: task", shown(task), "'eot' or 'int'"))
    rate = _frame_rate(top, where, problems)
    entries = top.get("probs", [])
    if not isinstance(entries, list):
        problems.append(Problem("probs is no list", where, shown(entries), "a list of entries"))
        return None, problems

    known = None if durations is None else dict(durations)
    ids: list[tuple[int, Any]] = []
    values: dict[str, dict[int, NDArray[np.float64]]] = {}
    for index, entry in enumerate(entries):
        place = f"{where}: probs[{index}]"
        parts = fields(entry, ("conversation_id", "speaker_1", "speaker_2"), place, problems, "an entry")
        identifier = parts.get("conversation_id")
        if "conversation_id" in parts:
            ids.append((index, identifier))
        named = isinstance(identifier, str)
        name = f"conversation {identifier}" if named else f"probs[{index}]"
        duration = (known or {}).get(identifier) if isinstance(identifier, str) else None
        of_speaker: dict[int, NDArray[np.float64]] = {}
        for speaker in SPEAKERS:
            if f"speaker_{speaker}" not in parts:
                continue
            at = f"{where}: {name}, speaker_{speaker}"
            lists = fields(parts[f"speaker_{speaker}"], ("prob",), at, problems, "a speaker")
            if "prob" in lists:
                of_speaker[speaker] = _values(lists["prob"], duration, rate, f"{at}, prob", problems)
        if isinstance(identifier, str):
            values[identifier] = of_speaker
    if "probs" in top:
        check_entries(ids, known, "probs", where, problems, complete=complete)
    if problems or rate is None or task not in TASKS:
        return None, problems
    return Probabilities(task, rate, values), []


def _frame_rate(top: dict[str, Any], where: str, problems: list[Problem]) -> float | None:
    if "frame_rate_hz" not in top:
        return None
    rate = number(top["frame_rate_hz"])
    if rate is None or not math.isfinite(rate) or rate <= 0.0:
        problems.append(
            Problem(
                "frame_rate_hz is not finite and above 0",
                f"{where}: frame_rate_hz",
                shown(top["frame_rate_hz"]),
                "frames a second, above 0",
            )
        )
        return None
    return rate


def _values(
    values: Any, duration_s: float | None, rate: float | None, where: str, problems: list[Problem]
) -> NDArray[np.float64]:
    if not isinstance(values, list):
        problems.append(Problem("not a list of probabilities", where, shown(values), "a list of numbers"))
        return np.zeros(0)
    _check_frames(len(values), duration_s, rate, where, problems)
    numbers = []
    for index, value in enumerate(values):
        as_number = number(value)
        if as_number is None:
            problems.append(
                Problem(
                    "probability is no number", f"{where}[{index}]", shown(value), "a JSON number from 0 to 1"
                )
            )
        elif not 0.0 <= as_number <= 1.0:
            problems.append(_out_of_range(value, f"{where}[{index}]"))
        else:
            numbers.append(as_number)
    return floats(numbers)


def read_probabilities(
    path: Path, durations: Mapping[str, float] | None, where: str = "", *, complete: bool = True
) -> Probabilities:
    """Read and validate a probability file.

    Raises
    ------
    InputError
        With every problem of the file.
    """
    where = where or str(path)
    probabilities, problems = parse_probabilities(
        read_bytes(path, where), durations, where, complete=complete
    )
    raise_problems(InputError, problems)
    assert probabilities is not None
    return probabilities
