"""Rules about what a plugin declares: hooks, protocol, parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import attrs

from floorkit.core.errors import FloorkitError
from floorkit.core.registry import Failed
from floorkit.core.structure import structure, unstructure
from floorkit.testing.evidence import Evidence
from floorkit.testing.fingerprint import fingerprint
from floorkit.testing.other_process import observed
from floorkit.testing.rules import rule

NEEDED = (
    "floorkit_protocols",
    "floorkit_dataset",
    "floorkit_predictions",
    "floorkit_score",
    "floorkit_measure",
    "floorkit_report",
)


@rule("contract")
def hook_signatures(evidence: Evidence) -> Iterator[str]:
    """The plugin loads, and every hook that it implements has a known name and known arguments without
    defaults.

    pluggy ignores functions that it does not know and never passes an argument that has a default: a
    misspelt hook would silently do nothing.
    """
    if isinstance(evidence.loaded, Failed):
        yield from map(str, evidence.loaded.problems)
        return
    hooks = evidence.prepared.team.members
    for name in NEEDED:
        if not any(name in member.hooks for member in hooks):
            yield f"no plugin of the entry implements {name}"


@rule("contract")
def protocol_declared(evidence: Evidence) -> Iterator[str]:
    """The protocol says what it measures, and what it does not; its id, parameters and marks are as declared.

    Reports print these sentences. A parameter without a description cannot be documented, and a mark that
    is not declared has no column in the files that people's scripts read.
    """
    protocol = evidence.prepared.team.protocol
    if not re.fullmatch(r"[a-z][a-z0-9_]*", protocol.id):
        yield f"protocol id {protocol.id!r}: expected lower-case letters, digits and underscores"
    for name in ("title", "measures"):
        if not getattr(protocol, name).strip():
            yield f"Protocol.{name} is empty"
    if not protocol.caveats:
        yield "Protocol.caveats is empty: a report has to say what the protocol does not measure"
    for field in attrs.fields(protocol.params):
        if not field.metadata.get("doc"):
            yield f"parameter {field.name} has no doc: give floorkit.core.structure.param one"
    marks = {mark.name for mark in evidence.prepared.marks if mark.level == "warning"}
    for name in sorted(marks - set(protocol.marks)):
        yield f"mark {name!r} is set, but not declared in Protocol.marks"
    if protocol.matched_recall is not None and "matched_recalls" not in {
        field.name for field in attrs.fields(protocol.params)
    }:
        yield "Protocol.matched_recall needs a parameter matched_recalls: tuple[float, ...]"


@rule("contract")
def params_round_trip(evidence: Evidence) -> Iterator[str]:
    """Parameters survive being written as TOML and read again, and cannot be changed once made.

    Workers rebuild them from plain values, provenance records them, and the signature's hash covers them: a
    parameter that does not survive makes a number that nobody can make again.
    """
    import tomli
    import tomlkit

    params = evidence.prepared.context.params
    kind = type(params)
    try:
        text = tomlkit.dumps(_without_none(unstructure(params)))
    except (TypeError, ValueError) as error:
        yield f"the parameters cannot be written as TOML: {error}"
        return
    try:
        again = structure(kind, tomli.loads(text), "params")
    except FloorkitError as error:
        yield f"the parameters, written as TOML, are refused:\n{error}\n{text}"
        return
    for field in attrs.fields(kind):
        before, after = getattr(params, field.name), getattr(again, field.name)
        if fingerprint(before) != fingerprint(after):
            yield f"parameter {field.name} is {before!r}, and {after!r} after a round trip through TOML"
    for field in attrs.fields(kind)[:1]:
        try:
            setattr(params, field.name, getattr(params, field.name))
        except attrs.exceptions.FrozenInstanceError:
            continue
        yield f"{kind.__name__} can be changed: make it with attrs.frozen"


def _without_none(value: Any) -> Any:
    """TOML has no null: a key that is None is left out, and must default to None."""
    if isinstance(value, dict):
        return {key: _without_none(one) for key, one in value.items() if one is not None}
    return value


@rule("contract")
def light_import(evidence: Evidence) -> Iterator[str]:
    """Importing the plugin imports no NumPy, SciPy or other heavy library; they are imported where they are
    used.

    Every ``floorkit --help`` and every worker imports all plugins.
    """
    for name in observed(evidence).heavy:
        yield f"importing {evidence.plugin.module} imports {name}"
