"""Parameters, and the manifest's dataset and run tables."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from floorkit.core.structure import param

Reference = Literal["", "gold", "annotator_a", "annotator_b", "annotator_c"]


@frozen
class TurnbenchParams:
    """Parameters of the turnbench protocol. Windows, tolerances and the commit rule are fixed."""

    fp_budget: float = param(
        0.1,
        doc="Highest fp_rate allowed where a threshold is chosen (calibration); inclusive.",
        unit="rate",
        low=0.0,
        high=1.0,
    )
    fp_ceiling: float = param(
        0.15,
        doc="Highest fp_rate with which a run qualifies in the ranking of the report; inclusive.",
        unit="rate",
        low=0.0,
        high=1.0,
    )


@frozen
class SourceTable:
    """Where conversations come from."""

    path: str = param(
        "",
        doc="A JSON file, a parquet file, a folder of parquet shards, or a folder of annotators' files "
        "(CONVERSATION_SPEAKER_ANNOTATOR.srt, .TextGrid or .rttm).",
    )
    hub: str = param("", doc="Instead of path: a dataset id on the hub, OWNER/NAME.")
    revision: str = param("", doc="Branch, tag or commit of the hub dataset; its default branch where empty.")
    durations: str = param(
        "", doc='A JSON file {"durations": {ID: seconds}} instead of the lengths in audio headers.'
    )
    conversations: tuple[str, ...] = param(
        (), doc="Only these, in this order; all, ordered by id, where empty.", distinct=True
    )


@frozen
class DatasetTable(SourceTable):
    """The dataset table: the evaluated split, and the split on which thresholds are chosen."""

    format: Literal["turnbench"] = param("turnbench", doc="Always turnbench; may be left out.")
    calibration: SourceTable | None = param(
        None,
        doc="The split on which thresholds are chosen. Without path and hub its conversations come from the "
        "evaluated source, and are not evaluated there.",
    )


@frozen
class RunTable:
    """A run: one of events, probabilities and reference."""

    events: str = param("", doc="A submission file: the times that the system committed to.")
    probabilities: tuple[str, ...] = param(
        (), doc="Probability files of the evaluated split, at most one a task.", distinct=True
    )
    calibration_probabilities: tuple[str, ...] = param(
        (),
        doc="Probability files of the calibration split, one for each task of probabilities.",
        distinct=True,
    )
    reference: Reference = param(
        "", doc="A predictor that ships with the plugin: the gold itself, or one annotator's track."
    )
