"""The manifest: TOML to attrs, strictly, and back without losing a comment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from floorkit.core.errors import ManifestError, Problem
from floorkit.core.structure import param, try_structure, unknown_key
from floorkit.core.values import UnitKey

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\Z")


@frozen
class CoreEntry:
    """``[floorkit]``: the core that the manifest was written for, and where results go."""

    version: str = param("", doc="Version of the core; written by `floorkit lock`.")
    source: str = param("", doc="Source hash of the core (`sha256:...`); written by `floorkit lock`.")
    output: str = param("results", doc="Results folder, counted from the manifest's folder.")
    seed: int = param(0, doc="Seed of everything random: intervals, controls, audit draws.", low=0)


@frozen
class PluginEntry:
    """``[plugins.NAME]``: a cross-cutting plugin (a dataset format, another report), by distribution."""

    version: str = param("", doc="Version; written by `floorkit lock`.")
    source: str = param("", doc="Source hash; written by `floorkit lock`.")


@frozen
class ProtocolEntry:
    """``[protocols.NAME]``: one evaluation. NAME is yours; one plugin can appear twice."""

    plugin: str = param(doc="Distribution that ships the protocol (`floorkit-...`).")
    version: str = param("", doc="Version of the plugin; written by `floorkit lock`.")
    source: str = param("", doc="Source hash of the plugin; written by `floorkit lock`.")
    protocol: str = param("", doc="Protocol id, where the plugin ships several.")
    controls: bool = param(True, doc="Score the protocol's input-free controls beside the runs.")
    dataset: dict[str, Any] = param(doc="The dataset; its keys belong to the format.")
    runs: dict[str, dict[str, Any]] = param(
        doc="One table a run; its keys belong to the format, `absent` lists units declared missing."
    )
    params: dict[str, Any] = param({}, doc="The protocol's parameters.")
    statistics: dict[str, Any] = param({}, doc="Intervals and tests: resamples, confidence, cluster.")


@frozen
class CompareEntry:
    """``[compare]``: which runs are compared. Without it the first run of an entry is the baseline."""

    baseline: str = param("", doc="Run that every other run of an entry is compared with.")
    pairs: list[list[str]] = param([], doc="Explicit pairs [A, B] of run names instead.")


@frozen
class Document:
    floorkit: CoreEntry = param(CoreEntry(), doc="The core.")
    plugins: dict[str, PluginEntry] = param({}, doc="Cross-cutting plugins.")
    protocols: dict[str, ProtocolEntry] = param(doc="The evaluations.")
    compare: CompareEntry = param(CompareEntry(), doc="Comparisons.")


@frozen
class Manifest:
    """A manifest as read: its file, its folder (from which relative paths count), and its contents."""

    path: Path
    document: Document
    resolved: Mapping[str, Any]
    """The whole as plain data, with ``--set`` applied: recorded in provenance."""

    @property
    def root(self) -> Path:
        return self.path.parent

    def select(self, only: Iterable[str]) -> Manifest:
        """The manifest with those entries alone; ManifestError for a name that it does not have."""
        wanted = tuple(only)
        entries = self.document.protocols
        problems = [unknown_key(name, tuple(entries), "--only") for name in wanted if name not in entries]
        if problems:
            raise ManifestError(problems)
        if not wanted:
            return self
        kept = {name: entry for name, entry in entries.items() if name in wanted}
        return attrs.evolve(self, document=attrs.evolve(self.document, protocols=kept))


def read(path: Path, settings: Iterable[str] = ()) -> Manifest:
    """Read a manifest.

    Parameters
    ----------
    path
        The TOML file.
    settings
        ``--set`` texts ``protocols.NAME.params.KEY=VALUE``; VALUE is TOML, or else taken as a string.

    Raises
    ------
    ManifestError
        With every problem of the manifest's own keys together. Tables that belong to plugins
        (dataset, runs, params) are checked by them.
    """
    table = _parse(path)
    for setting in settings:
        _apply(table, setting)
    document, problems = try_structure(Document, table, "")
    problems = [attrs.evolve(problem, where=_place(path, problem.where)) for problem in problems]
    problems += _name_problems(table, path)
    if document is None or problems:
        raise ManifestError(problems)
    return Manifest(Path(os.path.abspath(path)), document, table)


def _place(path: Path, where: str) -> str:
    return f"{path}: {where.removeprefix('.')}" if where else str(path)


def _parse(path: Path) -> dict[str, Any]:
    import tomli

    try:
        return tomli.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        problem = Problem(
            "the manifest cannot be read",
            str(path),
            error.strerror or str(error),
            remedy="name a TOML manifest (see README.md)",
        )
    except UnicodeDecodeError as error:
        problem = Problem("the manifest is not UTF-8", str(path), str(error))
    except tomli.TOMLDecodeError as error:
        problem = Problem("the manifest is not valid TOML", str(path), str(error))
    raise ManifestError(problem)


def _apply(table: dict[str, Any], setting: str) -> None:
    import tomli

    key, equals, value = setting.partition("=")
    problem = Problem(
        "cannot be understood",
        "--set",
        setting,
        "KEY=VALUE, for example protocols.NAME.params.KEY=0.8",
    )
    if not equals or not key.strip() or "\n" in setting:
        raise ManifestError(problem)
    try:
        change = tomli.loads(f"{key} = {value}")
    except tomli.TOMLDecodeError:
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        try:
            change = tomli.loads(f'{key} = "{quoted}"')
        except tomli.TOMLDecodeError:
            raise ManifestError(problem) from None
    entry, known = change.get("protocols"), table.get("protocols")
    if isinstance(entry, dict) and isinstance(known, dict):
        unknown = [unknown_key(name, list(known), "--set protocols") for name in entry if name not in known]
        if unknown:
            raise ManifestError(unknown)
    _merge(table, change)


def _merge(table: dict[str, Any], change: Mapping[str, Any]) -> None:
    for key, value in change.items():
        if isinstance(value, dict) and isinstance(table.get(key), dict):
            _merge(table[key], value)
        else:
            table[key] = value


def _name_problems(table: Mapping[str, Any], path: Path) -> list[Problem]:
    """Names of entries and runs become folder names: only what is safe on every file system."""
    problems = []
    entries = table.get("protocols")
    for entry, body in entries.items() if isinstance(entries, dict) else ():
        names = [(entry, f"protocols.{entry}")]
        runs = body.get("runs") if isinstance(body, dict) else None
        if isinstance(runs, dict):
            names += [(run, f"protocols.{entry}.runs.{run}") for run in runs]
            if not runs:
                problems.append(
                    Problem("no run", _place(path, f"protocols.{entry}.runs"), expected="at least one run")
                )
        problems += [
            Problem(
                f"name {name!r} is not allowed",
                _place(path, where),
                expected="letters, digits, '_', '-' and '.', starting with a letter or digit",
            )
            for name, where in names
            if not NAME.match(name)
        ]
    if isinstance(entries, dict) and not entries:
        problems.append(
            Problem("no protocol", _place(path, "protocols"), expected="at least one [protocols.NAME]")
        )
    return problems


def absent_units(table: Mapping[str, Any], where: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Split a run's table into what belongs to the format and the core's own key ``absent``."""
    rest = dict(table)
    absent = rest.pop("absent", [])
    if not isinstance(absent, list) or not all(isinstance(name, str) for name in absent):
        raise ManifestError(Problem("wrong type", f"{where}.absent", repr(absent), "a list of unit names"))
    return rest, tuple(absent)


def is_absent(key: UnitKey, absent: Iterable[str]) -> bool:
    """Whether the manifest declares a unit's prediction missing."""
    return key[1] in absent


Recorded = tuple[str, str]
"""Version and source hash."""


def lock(path: Path, core: Recorded, plugins: Mapping[str, Recorded]) -> str:
    """The manifest's text with versions and source hashes written in, comments and order kept.

    Parameters
    ----------
    path
        A manifest that :func:`read` accepts.
    core
        What to record of the core.
    plugins
        What to record of each plugin, by distribution name as the manifest spells it.

    Raises
    ------
    ManifestError
        Where the text cannot be rewritten; then nothing was.
    """
    import tomli
    import tomlkit

    text = path.read_bytes().decode("utf-8")
    if "floorkit" not in tomli.loads(text):
        newline = "\r\n" if "\r\n" in text else "\n"
        text = f"[floorkit]{newline}{newline}{text}"
    document: Any = tomlkit.parse(text)
    _record(document["floorkit"], core, after="")
    for entry in document["protocols"].values():
        _record(entry, plugins[entry["plugin"]], after="plugin")
    for name, entry in document.get("plugins", {}).items():
        _record(entry, plugins[name], after="")
    written = tomlkit.dumps(document)
    again = tomli.loads(written)
    found = [again["floorkit"], *again["protocols"].values(), *again.get("plugins", {}).values()]
    wanted = [core, *(plugins[entry["plugin"]] for entry in again["protocols"].values())]
    wanted += [plugins[name] for name in again.get("plugins", {})]
    if [(one["version"], one["source"]) for one in found] != wanted:
        raise ManifestError(
            Problem("cannot be rewritten", str(path), remedy="write each protocol as a table of its own")
        )
    return written


def _record(table: Any, recorded: Recorded, after: str) -> None:
    """Set ``version`` and ``source`` in place; new keys follow key ``after``, or stand first."""
    import tomlkit

    container = getattr(table, "value", None)
    for key, value in reversed(list(zip(("version", "source"), recorded, strict=True))):
        if key in table or not isinstance(container, tomlkit.container.Container):
            table[key] = value
        elif after:
            container._insert_after(after, key, tomlkit.item(value))
        else:
            container._insert_at(0, key, tomlkit.item(value))
