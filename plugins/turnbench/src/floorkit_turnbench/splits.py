"""The manifest's dataset table, turned into units of the evaluated and the calibration split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from floorkit.core.errors import ManifestError, Problem, raise_problems
from floorkit.core.paths import resolve
from floorkit.core.structure import structure
from floorkit.core.values import Context, Dataset, Source, Split, Unit
from floorkit_turnbench.conversation import Conversation, Gold
from floorkit_turnbench.data import Listing, load_conversation, open_source
from floorkit_turnbench.gold import build_gold
from floorkit_turnbench.listing import Listed, official_order
from floorkit_turnbench.params import DatasetTable, SourceTable

NOT_SELECTED = "conversations_not_selected"


@frozen(eq=False)
class UnitGold:
    """What ``Dataset.load`` gives: a conversation, and the gold built from it."""

    conversation: Conversation
    gold: Gold


def build_dataset(context: Context, table: Mapping[str, Any]) -> Dataset:
    """Units of both splits, from the ``[dataset]`` table."""
    where = f"protocols.{context.name}.dataset"
    parsed = structure(DatasetTable, table, where)
    raise_problems(ManifestError, _revision_problems(parsed, where))
    if bool(parsed.path) == bool(parsed.hub):
        raise ManifestError(Problem("one of path and hub is needed", where, expected="path or hub"))
    whole = _open(context, parsed)
    evaluated = whole.select(parsed.conversations) if parsed.conversations else whole
    kept = evaluated.conversations
    calibration = None
    if parsed.calibration is not None:
        calibration = _calibration(context, parsed.calibration, whole, f"{where}.calibration")
        if not _has_source(parsed.calibration):
            chosen = {one.conversation_id for one in calibration.conversations}
            _refuse_overlap(chosen.intersection(parsed.conversations), where)
            kept = tuple(one for one in kept if one.conversation_id not in chosen)
    units = [_unit(one, "evaluated") for one in kept]
    provenance: dict[str, Any] = {"evaluated": dict(evaluated.provenance)}
    if parsed.conversations:
        provenance[NOT_SELECTED] = {
            one.conversation_id: one.duration_s
            for one in whole.conversations
            if one.conversation_id not in parsed.conversations
        }
    files = dict(evaluated.files)
    problems = list(evaluated.problems)
    if calibration is not None:
        _refuse_overlap(_in_both(kept, calibration.conversations), where)
        units += [_unit(one, "calibration") for one in calibration.conversations]
        provenance["calibration"] = dict(calibration.provenance)
        files |= {f"calibration_{role}": path for role, path in calibration.files.items()}
        problems += calibration.problems
    return Dataset(
        tuple(units),
        load_unit,
        files=files,
        problems=tuple(dict.fromkeys(problems)),
        provenance=provenance,
    )


def _in_both(evaluated: Iterable[Listed], calibration: Iterable[Listed]) -> set[str]:
    """Names of conversations that both splits read from the same place, however the manifest spells it."""
    places = {one.conversation_id: _place(one) for one in evaluated}
    return {one.conversation_id for one in calibration if places.get(one.conversation_id) == _place(one)}


def _place(listed: Listed) -> dict[str, Path]:
    return {role: path.resolve() for role, path in listed.files.items()}


def _refuse_overlap(names: set[str], where: str) -> None:
    if names:
        raise ManifestError(
            Problem(
                "a conversation stands in both splits",
                where,
                ", ".join(official_order(names)),
                "thresholds are chosen on conversations that are not evaluated",
                "name other conversations, or take the calibration table out: thresholds are then chosen "
                "in-sample, and every output is marked exploratory",
            )
        )


def _revision_problems(table: DatasetTable, where: str) -> list[Problem]:
    places: list[tuple[str, SourceTable | None]] = [
        (where, table),
        (f"{where}.calibration", table.calibration),
    ]
    return [
        Problem("key of a hub dataset only", f"{place}.revision", one.revision, "hub beside it")
        for place, one in places
        if one is not None and one.revision and not one.hub
    ]


def _has_source(table: SourceTable) -> bool:
    return bool(table.path or table.hub)


def _calibration(context: Context, table: SourceTable, whole: Listing, where: str) -> Listing:
    if table.path and table.hub:
        raise ManifestError(Problem("path and hub exclude each other", where))
    if not (_has_source(table) or table.conversations):
        raise ManifestError(
            Problem(
                "no calibration source",
                where,
                expected="path, hub, or the conversations of the evaluated source to choose thresholds on",
            )
        )
    source = _open(context, table) if _has_source(table) else whole
    return source.select(table.conversations) if table.conversations else source


def _open(context: Context, table: SourceTable) -> Listing:
    return open_source(
        resolve(context.root, table.path) if table.path else None,
        hub=table.hub,
        revision=table.revision,
        durations=resolve(context.root, table.durations) if table.durations else None,
    )


def _unit(listed: Listed, split: Split) -> Unit:
    return Unit(
        listed.conversation_id,
        split,
        Source(listed.files, {**listed.values, "duration_s": listed.duration_s}),
        {**listed.facts, "duration_s": listed.duration_s},
    )


def load_unit(context: Context, unit: Unit) -> UnitGold:
    """Load one conversation and build its gold."""
    values = dict(unit.gold.values)
    duration = values.pop("duration_s")
    conversation = load_conversation(Listed(unit.name, duration, unit.info, unit.gold.files, values))
    return UnitGold(conversation, build_gold(conversation))
