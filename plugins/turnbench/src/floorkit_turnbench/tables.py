"""A unit's tables: the gold that was scored, what fired on it at each threshold, and the counts of a sweep.

A run of committed events has one row of counts a task, with threshold NaN; a probability run one for each
candidate threshold. So one way of calibrating, measuring and reporting serves both.

``gold``
    One row for each event, span and interval of the six sets, in the official order: ``set`` (code, names of
    ``gold.OFFICIAL_SETS``), ``speaker``, ``start_s``, ``end_s``.
``fired``
    One row for each true positive and false positive at each threshold: ``task``, ``positive``,
    ``theta_index``, ``gold_row`` (row of ``gold``), ``time_s``, ``latency_ms`` (NaN for a false positive).
``sweep``
    One row for each task and threshold: ``task``, ``theta_index``, ``theta`` (NaN for committed events),
    ``tp``, ``fp``, ``false_int``.
``consensus``
    One row for each accepted event of the label view: ``label_class`` (code), ``speaker``, ``start_s``,
    ``end_s``; for audit timelines.
``annotations``
    One row: how many annotated events were ``kept``, and how many ``dropped`` for a label outside the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from floorkit.core.values import Table
from floorkit_turnbench.consensus import consensus
from floorkit_turnbench.conversation import TASKS, Conversation, Gold, Spans, Task, Times
from floorkit_turnbench.gold import OFFICIAL_SETS
from floorkit_turnbench.kernel import false_interruptions, score_task
from floorkit_turnbench.labels import CLASSES
from floorkit_turnbench.thresholds import ConversationSweep, latencies_ms, sweep_conversation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from floorkit_turnbench.runs import Prediction

SET_NAMES: Final = tuple(name for name, _, _ in OFFICIAL_SETS)
NO_THETA: Final = np.array([np.nan])


def set_code(task: Task, part: str) -> int:
    """Code of a set in ``gold.set``; ``part`` is positives, negatives or excluded."""
    return next(code for code, (_, of, what) in enumerate(OFFICIAL_SETS) if (of, what) == (task, part))


def score_unit(conversation: Conversation, gold: Gold, prediction: Prediction) -> dict[str, Table]:
    """The tables of one conversation and run."""
    sets: list[Spans] = [getattr(gold.task(task), part) for _, task, part in OFFICIAL_SETS]
    offsets = np.concatenate(([0], np.cumsum([len(spans) for spans in sets])))
    everything = Spans.join(sets)
    agreed = consensus(conversation, "label")
    fired: list[dict[str, NDArray[Any]]] = []
    sweeps: list[dict[str, NDArray[Any]]] = []
    for code, task in enumerate(TASKS):
        if task in prediction.probabilities:
            swept = prediction.probabilities[task]
            thetas = swept.thetas
            part = sweep_conversation(gold, task, swept.values, thetas, swept.frame_rate_hz)
        elif prediction.events is not None:
            thetas = NO_THETA
            part = _as_sweep(gold, task, prediction.events[task])
        else:
            continue
        for is_positive, theta, span, time in (
            (True, part.hit_theta, part.hit_span, part.hit_time),
            (False, part.fire_theta, part.fire_span, part.fire_time),
        ):
            row = span + offsets[set_code(task, "positives" if is_positive else "negatives")]
            latency = latencies_ms(gold.task(task), span, time) if is_positive else np.full(len(span), np.nan)
            fired.append(
                {
                    "task": np.full(len(span), code, np.int8),
                    "positive": np.full(len(span), is_positive),
                    "theta_index": theta.astype(np.int32),
                    "gold_row": row.astype(np.int32),
                    "time_s": time,
                    "latency_ms": latency,
                }
            )
        count = len(thetas)
        sweeps.append(
            {
                "task": np.full(count, code, np.int8),
                "theta_index": np.arange(count, dtype=np.int32),
                "theta": np.asarray(thetas, np.float64),
                "tp": np.bincount(part.hit_theta, minlength=count).astype(np.int32),
                "fp": np.bincount(part.fire_theta, minlength=count).astype(np.int32),
                "false_int": part.false_int.astype(np.int32),
            }
        )
    return {
        "gold": Table(
            {
                "set": np.repeat(np.arange(len(sets), dtype=np.int8), [len(spans) for spans in sets]),
                "speaker": everything.speaker,
                "start_s": everything.start,
                "end_s": everything.end,
            },
            {"set": SET_NAMES},
        ),
        "fired": Table(_stacked(fired, FIRED_COLUMNS), {"task": TASKS}),
        "sweep": Table(_stacked(sweeps, SWEEP_COLUMNS), {"task": TASKS}),
        "consensus": Table(
            {
                "label_class": agreed.label_class,
                "speaker": agreed.accepted.speaker,
                "start_s": agreed.accepted.start,
                "end_s": agreed.accepted.end,
            },
            {"label_class": CLASSES},
        ),
        "annotations": Table(
            {
                "kept": np.array([sum(len(track) for track in conversation.tracks.values())]),
                "dropped": np.array([sum(conversation.dropped_labels.values())]),
            }
        ),
    }


FIRED_COLUMNS: Final[dict[str, type]] = {
    "task": np.int8,
    "positive": np.bool_,
    "theta_index": np.int32,
    "gold_row": np.int32,
    "time_s": np.float64,
    "latency_ms": np.float64,
}
SWEEP_COLUMNS: Final[dict[str, type]] = {
    "task": np.int8,
    "theta_index": np.int32,
    "theta": np.float64,
    "tp": np.int32,
    "fp": np.int32,
    "false_int": np.int32,
}


def _stacked(parts: list[dict[str, NDArray[Any]]], columns: dict[str, type]) -> dict[str, NDArray[Any]]:
    return {
        name: np.concatenate([np.zeros(0, kind), *(part[name] for part in parts)]).astype(kind)
        for name, kind in columns.items()
    }


def _as_sweep(gold: Gold, task: Task, predicted: Times) -> ConversationSweep:
    """Committed events as a sweep over one threshold."""
    score = score_task(gold.task(task), predicted)
    hits = np.flatnonzero(~np.isnan(score.matched_s))
    hits = hits[np.argsort(gold.task(task).positives.start[hits], kind="stable")]
    fires = np.flatnonzero(~np.isnan(score.fired_s))
    return ConversationSweep(
        np.zeros(len(hits), np.int64),
        hits,
        score.matched_s[hits],
        np.zeros(len(fires), np.int64),
        fires,
        score.fired_s[fires],
        np.array([false_interruptions(gold, predicted)]),
    )
