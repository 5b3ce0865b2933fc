"""turnbench: end-of-turn and interruption events in two-channel conversations.

The hooks only call the rooms beside this module (protocols/turnbench.spec.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from floorkit.core.hooks import hookimpl
from floorkit.core.sections import Section
from floorkit.core.values import (
    Context,
    Dataset,
    Figure,
    OperatingPoint,
    Protocol,
    Result,
    Run,
    Table,
    Upstream,
)
from floorkit_turnbench.params import TurnbenchParams

if TYPE_CHECKING:
    import click

    from floorkit.core.guess import Guess, Listing
    from floorkit.core.pool import Pool

FLOORKIT_API = (1, 0)


@hookimpl
def floorkit_protocols() -> list[Protocol]:
    return [
        Protocol(
            id="turnbench",
            title="End-of-turn and interruption events in two-channel conversations",
            params=TurnbenchParams,
            measures="Whether a model commits to an event within -0.25 s to +3 s of an annotated end of turn "
            "(EOT) or interruption (INT), how late, and on what share of mid-turn pauses (EOT) and "
            "backchannels (INT) it fires by mistake.",
            caveats=(
                "Only scored regions count: events elsewhere are neither rewarded nor penalised, so fp_rate "
                "is no false-alarm rate over time.",
                "What the annotators disagree on is excluded; conversations with little agreement count "
                "little.",
                "Commit times are taken as submitted: that a time is causal is affirmed by the submitter, "
                "not checked.",
                "A higher recall at a higher false-positive rate is no improvement by itself, nor is a lower "
                "latency at a lower recall.",
            ),
            upstream=(
                Upstream(
                    repository="https://github.com/SesameAILabs/turnbench",
                    commit="a87ffac20d6303a05db3509d6d48dfec91b8d858",
                    path="turnbench/score.py",
                    note="scorer of 2026-09; equality shown by golden cases from the official code, no "
                    "official file was at hand to hash",
                ),
            ),
            marks=("exploratory",),
            unit_noun="conversation",
        )
    ]


@hookimpl
def floorkit_dataset(context: Context, table: Mapping[str, Any]) -> Dataset | None:
    if table.get("format", "turnbench") != "turnbench":
        return None
    from floorkit_turnbench import splits

    return splits.build_dataset(context, table)


@hookimpl
def floorkit_predictions(context: Context, dataset: Dataset, run: str, table: Mapping[str, Any]) -> Run:
    from floorkit_turnbench import runs

    return runs.build_run(context, dataset, run, table)


@hookimpl
def floorkit_controls(dataset: Dataset) -> Sequence[Run]:
    from floorkit_turnbench import runs

    return runs.build_controls(dataset)


@hookimpl
def floorkit_score(gold: Any, prediction: Any) -> dict[str, Table]:
    from floorkit_turnbench.tables import score_unit

    return score_unit(gold.conversation, gold.gold, prediction)


@hookimpl
def floorkit_calibrate(context: Context, pool: Pool, in_sample: bool) -> Sequence[OperatingPoint]:
    from floorkit_turnbench.measure import calibrate

    return calibrate(pool, context.params.fp_budget, in_sample)


@hookimpl
def floorkit_measure(
    pool: Pool, points: Sequence[OperatingPoint], only: Collection[str] | None
) -> list[Figure]:
    from floorkit_turnbench.measure import measure

    return measure(pool, points, only)


@hookimpl
def floorkit_report(result: Result) -> list[Section]:
    from floorkit_turnbench.report import sections

    return sections(result)


@hookimpl
def floorkit_commands() -> list[click.Command]:
    from floorkit_turnbench.commands import turnbench

    return [turnbench]


@hookimpl
def floorkit_guess(listing: Listing) -> list[Guess]:
    from floorkit_turnbench.guess import guess

    return guess(listing)
