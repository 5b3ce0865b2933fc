"""The turnbench protocol as a floorkit plugin, and its Python interface.

    import floorkit_turnbench as tb

    dataset = tb.load_dataset("dev.json")
    scores = tb.score_events("predictions.json", dataset)
    print(scores.eot.recall, scores.eot.fp_rate, scores.eot.latency_p50_ms)

The names below are imported on first use, so that the command line starts quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from floorkit_turnbench.api import (
        Scores,
        TaskFigures,
        annotator_submission,
        commit,
        gold_submission,
        score_events,
        sweep,
    )
    from floorkit_turnbench.conversation import make_conversation
    from floorkit_turnbench.data import AnnotatedDataset, load_dataset
    from floorkit_turnbench.probabilities import Probabilities
    from floorkit_turnbench.submission import Submission
    from floorkit_turnbench.thresholds import Sweep

__all__ = [
    "AnnotatedDataset",
    "Probabilities",
    "Scores",
    "Submission",
    "Sweep",
    "TaskFigures",
    "annotator_submission",
    "commit",
    "gold_submission",
    "load_dataset",
    "make_conversation",
    "score_events",
    "sweep",
]

_HOMES = {
    "AnnotatedDataset": "data",
    "Probabilities": "probabilities",
    "Submission": "submission",
    "Sweep": "thresholds",
    "make_conversation": "conversation",
    "load_dataset": "data",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'api')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
