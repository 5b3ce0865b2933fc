"""The Python interface: score and sweep what lies in memory or in files, with the gold built once.

Everything is validated as strictly as a file given to ``floorkit run``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from floorkit.core.errors import InputError, Problem, raise_problems
from floorkit.numerics import percentiles, rate
from floorkit_turnbench.conversation import TASKS, Gold, Task
from floorkit_turnbench.data import AnnotatedDataset, load_dataset
from floorkit_turnbench.kernel import TaskScore, committed_times, score_task
from floorkit_turnbench.labels import ANNOTATORS, SPEAKERS
from floorkit_turnbench.predictors import annotator_events, gold_events, within_audio
from floorkit_turnbench.probabilities import Probabilities, check_probabilities, read_probabilities
from floorkit_turnbench.strict_json import read_json
from floorkit_turnbench.submission import Submission, check_submission
from floorkit_turnbench.thresholds import LATENCY_PERCENTS, Sweep, sweep_probabilities

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

IN_MEMORY = "submission"


@frozen
class TaskFigures:
    """Counts and figures of one task; None where a denominator is 0.

    ``latencies_ms`` are those of the true positives, by conversation, in order of time.
    """

    tp: int
    fn: int
    fp: int
    tn: int
    latencies_ms: tuple[float, ...]

    @property
    def recall(self) -> float | None:
        return rate(self.tp, self.tp + self.fn)

    @property
    def fp_rate(self) -> float | None:
        return rate(self.fp, self.fp + self.tn)

    def _latency(self, percent: int) -> float | None:
        return percentiles(self.latencies_ms, LATENCY_PERCENTS)[LATENCY_PERCENTS.index(percent)]

    @property
    def latency_p10_ms(self) -> float | None:
        return self._latency(10)

    @property
    def latency_p50_ms(self) -> float | None:
        return self._latency(50)

    @property
    def latency_p90_ms(self) -> float | None:
        return self._latency(90)


@frozen
class Scores:
    """Both tasks' figures, pooled over ``conversations`` and one by one."""

    eot: TaskFigures
    int: TaskFigures
    conversations: Mapping[str, Mapping[Task, TaskFigures]]


Dataset = AnnotatedDataset | str | Path


def _dataset(dataset: Dataset) -> AnnotatedDataset:
    return dataset if isinstance(dataset, AnnotatedDataset) else load_dataset(dataset)


def score_events(submission: Submission | Mapping[str, Any] | str | Path, dataset: Dataset) -> Scores:
    """Score committed events.

    Parameters
    ----------
    submission
        A Submission (``Submission.of`` makes one from lists), the official JSON form as a dict, or a file.
    dataset
        From ``load_dataset``; a path works too, but then the gold is built anew on every call.

    Raises
    ------
    InputError
        With every problem of the submission or the dataset.
    """
    known = _dataset(dataset)
    if isinstance(submission, Submission):
        data: Any = submission.to_json()
        where = IN_MEMORY
    elif isinstance(submission, Mapping):
        data, where = dict(submission), IN_MEMORY
    else:
        data, where = read_json(Path(submission))[0], str(submission)
    checked, problems = check_submission(data, known.durations, where)
    raise_problems(InputError, problems)
    conversations = {
        name: {
            task: _figures(gold, task, score_task(gold.task(task), checked.predictions[name][task]))
            for task in TASKS
        }
        for name, gold in known.golds.items()
    }
    eot, interruption = (_pooled([figures[task] for figures in conversations.values()]) for task in TASKS)
    return Scores(eot, interruption, conversations)


def _figures(gold: Gold, task: Task, score: TaskScore) -> TaskFigures:
    order = np.argsort(gold.task(task).positives.start, kind="stable")
    latency = score.latency_ms[order]
    return TaskFigures(score.tp, score.fn, score.fp, score.tn, tuple(latency[~np.isnan(latency)].tolist()))


def _pooled(figures: list[TaskFigures]) -> TaskFigures:
    return TaskFigures(
        sum(one.tp for one in figures),
        sum(one.fn for one in figures),
        sum(one.fp for one in figures),
        sum(one.tn for one in figures),
        tuple(latency for one in figures for latency in one.latencies_ms),
    )


def sweep(probs: Probabilities | str | Path, dataset: Dataset, thetas: ArrayLike | None = None) -> Sweep:
    """Score probabilities at every candidate threshold, or at ``thetas``.

    Parameters
    ----------
    probs
        ``Probabilities.of`` from arrays, or a file.
    dataset
        From ``load_dataset``.

    Returns
    -------
    Sweep
        Counts by threshold; ``operating_point(fp_budget)`` chooses one.

    Raises
    ------
    InputError
        With every problem of the probabilities or the dataset.
    """
    known = _dataset(dataset)
    if isinstance(probs, Probabilities):
        raise_problems(InputError, check_probabilities(probs, known.durations, "probabilities"))
    else:
        probs = read_probabilities(Path(probs), known.durations)
    tried = None if thetas is None else np.atleast_1d(np.asarray(thetas, np.float64))
    if tried is not None and not np.isfinite(tried).all():
        raise InputError(Problem("a threshold is no finite number", "thetas", str(tried.tolist())))
    return sweep_probabilities(probs.task, known.golds, probs.values, probs.frame_rate_hz, tried)


def commit(*chosen: tuple[Probabilities, float]) -> Submission:
    """The events that probabilities commit to at chosen thresholds, as a submission.

    Parameters
    ----------
    chosen
        (probabilities, threshold) of each task; a task left out has no events.
    """
    events: dict[str, dict[str, dict[Any, Any]]] = {}
    for probabilities, theta in chosen:
        for name, of_speaker in probabilities.values.items():
            events.setdefault(name, {})[probabilities.task] = {
                speaker: committed_times(of_speaker[speaker], theta, probabilities.frame_rate_hz)
                for speaker in SPEAKERS
            }
    return Submission.of(events)


def gold_submission(dataset: AnnotatedDataset) -> Submission:
    """The gold's own events as a submission: the best that can be scored.

    Gold past the end of the audio, where no submission may have a time, is moved to the end.
    """
    return Submission(
        {name: within_audio(gold_events(gold), gold.duration_s) for name, gold in dataset.golds.items()}
    )


def annotator_submission(dataset: AnnotatedDataset, annotator: str) -> Submission:
    """What one annotator (a, b or c) alone would submit: a person's score; the end as in the gold's."""
    if annotator not in ANNOTATORS:
        raise ValueError(f"annotator must be one of {', '.join(ANNOTATORS)}, found {annotator!r}")
    return Submission(
        {
            one.conversation_id: within_audio(annotator_events(one, annotator), one.duration_s)
            for one in dataset
        }
    )
