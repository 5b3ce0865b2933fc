"""The hooks of plugin_name: they only call the rooms beside this module, and import them when called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from floorkit.core.hooks import hookimpl
from floorkit.core.sections import Section
from floorkit.core.values import Context, Dataset, Figure, Protocol, Result, Run, Tables

from floorkit_plugin_name.params import Params

if TYPE_CHECKING:
    import numpy as np
    from floorkit.core.pool import Pool
    from numpy.typing import NDArray

    from floorkit_plugin_name.data import Gold

FLOORKIT_API = (1, 0)


@hookimpl
def floorkit_protocols() -> Sequence[Protocol]:
    return [
        Protocol(
            id="plugin_name",
            title="Event onsets within a tolerance",
            params=Params,
            measures="how many event onsets are found within a tolerance, and how many are false",
            caveats=(
                "It measures neither how long events last nor which kind they are.",
                "It does not say how early a decision was possible: predictions may have looked ahead.",
            ),
            unit_noun="recording",
        )
    ]


@hookimpl
def floorkit_dataset(context: Context, table: Mapping[str, Any]) -> Dataset | None:
    from floorkit_plugin_name import data

    return data.dataset(context, table)


@hookimpl
def floorkit_predictions(context: Context, dataset: Dataset, run: str, table: Mapping[str, Any]) -> Run:
    from floorkit_plugin_name import data

    return data.predictions(context, dataset, run, table)


@hookimpl
def floorkit_controls(dataset: Dataset) -> Sequence[Run]:
    from floorkit_plugin_name import data

    return [data.metronome(dataset)]


@hookimpl
def floorkit_score(context: Context, gold: Gold, prediction: NDArray[np.float64]) -> Tables:
    from floorkit_plugin_name import kernel

    return kernel.score(gold, prediction, context.params.tolerance_s)


@hookimpl
def floorkit_measure(pool: Pool) -> Sequence[Figure]:
    from floorkit_plugin_name import measure

    return measure.figures(pool)


@hookimpl
def floorkit_report(result: Result) -> Sequence[Section]:
    from floorkit_plugin_name import report

    return report.sections(result)
