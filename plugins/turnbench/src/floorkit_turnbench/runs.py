"""The manifest's runs tables, turned into runs and their loaders, and the control runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrs import field, frozen

from floorkit.core.errors import InputError, ManifestError, Problem
from floorkit.core.paths import resolve, shown
from floorkit.core.structure import structure
from floorkit.core.values import Context, Dataset, Mark, Run, Source, Split, Unit, UnitKey
from floorkit_turnbench.conversation import TASKS, Events, Task
from floorkit_turnbench.labels import SPEAKERS
from floorkit_turnbench.listing import official_order
from floorkit_turnbench.params import RunTable
from floorkit_turnbench.predictors import annotator_events, gold_events, metronome_events, silent_events
from floorkit_turnbench.probabilities import Probabilities, parse_probabilities, read_probabilities
from floorkit_turnbench.splits import NOT_SELECTED, UnitGold
from floorkit_turnbench.strict_json import parse_json, read_bytes
from floorkit_turnbench.submission import Submission, check_submission, read_submission
from floorkit_turnbench.thresholds import candidate_thetas

EXPLORATORY = Mark(
    "exploratory",
    "a threshold was chosen on the evaluated conversations themselves (no calibration split): its figures "
    "are not a confirmatory result, do not report them as one",
)


@frozen(eq=False)
class SweptProbabilities:
    """One conversation's probabilities of one task, and the thresholds to try."""

    values: Mapping[int, Any]
    frame_rate_hz: float
    thetas: Any


@frozen(eq=False)
class Prediction:
    """What ``Run.load`` gives: committed events, or probabilities by task, or neither (takes no part)."""

    events: Events | None = None
    probabilities: Mapping[Task, SweptProbabilities] = field(factory=dict)


def build_run(context: Context, dataset: Dataset, run: str, table: Mapping[str, Any]) -> Run:
    """One run, from its ``[runs.RUN]`` table; prediction files are read whole and every problem is told."""
    where = f"protocols.{context.name}.runs.{run}"
    parsed = structure(RunTable, table, where)
    given = [name for name in ("events", "probabilities", "reference") if getattr(parsed, name)]
    if len(given) != 1:
        raise ManifestError(
            Problem(
                "a run is one of events, probabilities and reference",
                where,
                ", ".join(given) or "none of them",
                "exactly one",
            )
        )
    if parsed.events:
        return _events_run(context, dataset, run, resolve(context.root, parsed.events))
    if parsed.probabilities:
        return _probability_run(context, dataset, run, parsed, where)
    values = {"kind": "reference", "reference": parsed.reference}
    return Run(run, {unit.key: Source({}, values) for unit in dataset.units}, load_prediction)


def build_controls(dataset: Dataset) -> tuple[Run, ...]:
    """Runs that never listen: a metronome and silence."""
    return tuple(
        Run(
            f"control:{name}",
            {unit.key: Source({}, {"kind": "control", "control": name}) for unit in dataset.units},
            load_prediction,
            control=True,
        )
        for name in ("metronome", "silent")
    )


def known_durations(dataset: Dataset, first: Split) -> dict[str, float]:
    """Conversation id to seconds, of every conversation that a file may speak of; ``first`` wins."""
    durations: dict[str, float] = {}
    order: tuple[Split, ...] = ("evaluated", "calibration")
    for split in sorted(order, key=lambda one: one != first):
        for unit in dataset.split(split):
            durations.setdefault(unit.name, unit.info["duration_s"] or 0.0)
    for name, duration in dataset.provenance.get(NOT_SELECTED, {}).items():
        durations.setdefault(name, duration or 0.0)
    return durations


def _events_run(context: Context, dataset: Dataset, run: str, path: Path) -> Run:
    place = shown(path, context.root)
    durations = known_durations(dataset, "evaluated") or None  # a broken dataset knows no conversation
    # A calibration unit has nothing to choose in a run of events: it takes part with no prediction.
    sources: dict[UnitKey, Source] = {
        unit.key: Source({}, {"kind": "unused"}) for unit in dataset.split("calibration")
    }
    try:
        data, _ = parse_json(read_bytes(path, place), place)
    except InputError as error:
        return Run(run, _unused(dataset), load_prediction, problems=error.problems)
    submission, problems = check_submission(data, durations, place, complete=False)
    if problems:
        return Run(run, _unused(dataset), load_prediction, problems=tuple(problems))
    for unit in dataset.split("evaluated"):
        if unit.name in submission.predictions:
            sources[unit.key] = Source({"events": path}, {"kind": "events"})
    used = {unit.name for unit in dataset.units}
    extra = tuple(name for name in submission.predictions if name not in used)
    return Run(run, sources, load_prediction, extra=extra)


def _unused(dataset: Dataset) -> dict[UnitKey, Source]:
    """Sources of a run whose file is broken: its problems are told, not every unit as missing."""
    return {unit.key: Source({}, {"kind": "unused"}) for unit in dataset.units}


def _probability_run(context: Context, dataset: Dataset, run: str, table: RunTable, where: str) -> Run:
    problems: list[Problem] = []
    in_sample = not dataset.split("calibration")
    evaluated = _probability_files(context, dataset, table.probabilities, "evaluated", where, problems)
    calibration = evaluated
    twice = {unit.name for unit in dataset.split("evaluated")} & {
        unit.name for unit in dataset.split("calibration")
    }
    if twice and not table.calibration_probabilities:
        problems.append(
            Problem(
                "calibration_probabilities is missing",
                where,
                f"conversations {', '.join(official_order(twice))} in both splits, from different sources",
                "the probability files of the calibration split: one file cannot hold both",
            )
        )
    if table.calibration_probabilities:
        if in_sample:
            problems.append(
                Problem(
                    "calibration_probabilities without a calibration split",
                    where,
                    expected="a table dataset.calibration",
                )
            )
        calibration = _probability_files(
            context, dataset, table.calibration_probabilities, "calibration", where, problems
        )
        if not problems and set(calibration) != set(evaluated):
            problems.append(
                Problem(
                    "the tasks of probabilities and calibration_probabilities differ",
                    where,
                    f"{', '.join(sorted(evaluated))} and {', '.join(sorted(calibration))}",
                    "the same tasks in both",
                )
            )
    if problems:
        return Run(run, _unused(dataset), load_prediction, problems=tuple(problems))
    chosen_on = dataset.split("evaluated" if in_sample else "calibration")
    thetas = {
        task: candidate_thetas(
            file.values[unit.name][speaker]
            for unit in chosen_on
            if unit.name in file.values
            for speaker in SPEAKERS
        ).tolist()
        for task, (_, file) in calibration.items()
    }
    sources: dict[UnitKey, Source] = {}
    for unit in dataset.units:
        files = evaluated if unit.split == "evaluated" else calibration
        if all(unit.name in file.values for _, file in files.values()):
            sources[unit.key] = Source(
                {task: path for task, (path, _) in files.items()},
                {"kind": "probabilities", "thetas": thetas},
            )
    used = {unit.name for unit in dataset.units}
    extra = {name for _, file in evaluated.values() for name in file.values if name not in used}
    marks = (EXPLORATORY,) if in_sample else ()
    return Run(run, sources, load_prediction, extra=tuple(sorted(extra)), marks=marks)


def _probability_files(
    context: Context,
    dataset: Dataset,
    names: tuple[str, ...],
    split: Split,
    where: str,
    problems: list[Problem],
) -> dict[Task, tuple[Path, Probabilities]]:
    durations = known_durations(dataset, split) or None
    files: dict[Task, tuple[Path, Probabilities]] = {}
    for name in names:
        path = resolve(context.root, name)
        place = shown(path, context.root)
        try:
            raw = read_bytes(path, place)
        except InputError as error:
            problems += error.problems
            continue
        file, found = parse_probabilities(raw, durations, place, complete=False)
        problems += found
        if file is None:
            continue
        if file.task in files:
            problems.append(
                Problem(
                    f"two files of task {file.task!r}",
                    where,
                    f"{shown(files[file.task][0], context.root)} and {place}",
                    "one file a task and split",
                )
            )
        files[file.task] = path, file
    return files


@lru_cache(maxsize=4)
def _submission_file(path: Path, _modified: int, _size: int) -> Submission:
    return read_submission(path, None)


@lru_cache(maxsize=4)
def _probability_file(path: Path, _modified: int, _size: int) -> Probabilities:
    return read_probabilities(path, None)


def load_prediction(context: Context, unit: Unit, source: Source, gold: UnitGold) -> Prediction:
    """Load one conversation's prediction; a file is parsed once a process."""
    values = source.values
    match values["kind"]:
        case "events":
            path = source.files["events"]
            file = _submission_file(path, *_version(path))
            return Prediction(file.predictions[unit.name])
        case "probabilities":
            return Prediction(None, _swept(unit, source))
        case "reference":
            if values["reference"] == "gold":
                return Prediction(gold_events(gold.gold))
            annotator = values["reference"].removeprefix("annotator_")
            return Prediction(annotator_events(gold.conversation, annotator))
        case "control":
            if values["control"] == "metronome":
                return Prediction(metronome_events(gold.gold.duration_s))
            return Prediction(silent_events())
        case _:
            return Prediction()


def _swept(unit: Unit, source: Source) -> dict[Task, SweptProbabilities]:
    import numpy as np

    swept: dict[Task, SweptProbabilities] = {}
    for task in TASKS:
        if task not in source.files:
            continue
        path = source.files[task]
        file = _probability_file(path, *_version(path))
        thetas = np.asarray(source.values["thetas"][task], np.float64)
        swept[task] = SweptProbabilities(file.values[unit.name], file.frame_rate_hz, thetas)
    return swept


def _version(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size
