"""What differs between two provenance records of one entry: code, parameters, data or predictions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from attrs import frozen

Kind = Literal["protocol", "code", "parameters", "data", "statistics", "predictions", "packages", "marks"]

SHORT = 8
"""Hexadecimal digits of a hash that are shown, as in signatures."""


@frozen
class Change:
    """One thing that is not the same; ``before`` and ``after`` are texts, empty where it is absent."""

    kind: Kind
    what: str
    before: str
    after: str

    def __str__(self) -> str:
        """``code: floorkit 1.0.0 (sha256:1a2b3c4d), then 1.0.1 (sha256:5e6f7a8b)``."""
        return f"{self._subject}{self.before or 'none'}, then {self.after or 'none'}"

    def between(self, a: str, b: str) -> str:
        """In words, with the names of the two sides: ``parameters: window "full" in A, "short" in B``."""
        return f"{self._subject}{self.before or 'none'} in {a}, {self.after or 'none'} in {b}"

    @property
    def _subject(self) -> str:
        return f"{self.kind}: " if self.what == self.kind else f"{self.kind}: {self.what} "


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """What differs between two provenance.json records, most fundamental first.

    Times, paths, command line and platform are left aside: they do not say what was computed.

    Raises
    ------
    KeyError, TypeError, AttributeError
        Where a record is not as floorkit writes it.
    """
    pairs: list[tuple[Kind, Mapping[str, str], Mapping[str, str]]] = [
        ("protocol", {"protocol": before["protocol"]}, {"protocol": after["protocol"]}),
        ("code", _code(before), _code(after)),
        ("parameters", dict(_flat(before["params"])), dict(_flat(after["params"]))),
        ("data", _data(before), _data(after)),
        ("statistics", _statistics(before), _statistics(after)),
        ("predictions", _hashes(before["predictions"]), _hashes(after["predictions"])),
        ("packages", _packages(before), _packages(after)),
        ("marks", before["marks"], after["marks"]),
    ]
    return [
        Change(kind, what, one.get(what, ""), other.get(what, ""))
        for kind, one, other in pairs
        for what in {**one, **other}
        if one.get(what, "") != other.get(what, "")
    ]


def _code(record: Mapping[str, Any]) -> dict[str, str]:
    found = {"floorkit": _version(record["floorkit"])}
    found |= {plugin["distribution"]: _version(plugin) for plugin in record["plugins"]}
    return found


def _version(code: Mapping[str, Any]) -> str:
    return f"{code['version']} ({_short(code['source'])})"


def _short(value: str) -> str:
    name, colon, digits = value.rpartition(":")
    return f"{name}{colon}{digits[:SHORT]}"


def _data(record: Mapping[str, Any]) -> dict[str, str]:
    return {"data": _short(record["data_fingerprint"]), **dict(_flat(record["dataset"]))}


def _hashes(record: Mapping[str, str]) -> dict[str, str]:
    return {name: _short(value) for name, value in record.items() if not name.startswith("control:")}


def _statistics(record: Mapping[str, Any]) -> dict[str, str]:
    return {"seed": str(record["seed"]), **dict(_flat(record["statistics"]))}


def _packages(record: Mapping[str, Any]) -> dict[str, str]:
    own = {"floorkit", *(plugin["distribution"] for plugin in record["plugins"])}
    return {"python": record["python"]} | {
        name: version for name, version in record["packages"].items() if name not in own
    }


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Keys with dots, and values as JSON text."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", json.dumps(value, ensure_ascii=False)
