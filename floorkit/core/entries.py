"""Entries of results folders, read back: what `floorkit compare` and `floorkit history` work on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from floorkit.core.changes import Change, changes
from floorkit.core.errors import InputError, ManifestError, Problem
from floorkit.core.paths import child
from floorkit.core.provenance import FILE as PROVENANCE
from floorkit.core.results import read_index
from floorkit.core.statistics_files import FILE as STATISTICS
from floorkit.core.statistics_files import Statistics, figure_from_plain, read_json, read_statistics
from floorkit.core.values import Figure

SUMMARY = "summary.json"


@frozen(eq=False)
class Entry:
    """One entry of a results folder.

    Parameters
    ----------
    results, name
        The results folder, as the command line names it, and the entry's name in it.
    provenance
        provenance.json.
    """

    results: Path
    name: str
    provenance: dict[str, Any]

    @property
    def folder(self) -> Path:
        return child(self.results, self.name)

    @property
    def signature(self) -> str:
        return str(self.provenance["signature"])

    @property
    def marks(self) -> tuple[str, ...]:
        """Names of its marks."""
        return tuple(self.provenance["marks"])

    @property
    def started(self) -> str:
        return str(self.provenance["started"])

    def statistics(self) -> Statistics:
        """statistics.json; InputError where it cannot be read."""
        return read_statistics(self.folder / STATISTICS)

    def headline(self) -> dict[str, dict[str, Figure]]:
        """The headline figures by run and key, from summary.json; InputError where it cannot be read."""
        path = self.folder / SUMMARY
        summary = read_json(path)
        try:
            return {
                run: {plain["key"]: figure_from_plain(plain) for plain in figures}
                for run, figures in summary["headline"].items()
            }
        except (KeyError, TypeError, AttributeError) as error:
            raise _damaged(path, error) from None


def read_entries(results: Path) -> dict[str, Entry]:
    """Every entry of a results folder, by name.

    Raises
    ------
    InputError
        Where the folder holds no results, or an entry's provenance is damaged.
    """
    entries = {}
    for name in read_index(results)["entries"]:
        path = child(results, name) / PROVENANCE
        entry = Entry(results, name, read_json(path))
        try:
            _ = differences(entry, entry), entry.signature, entry.started
        except (KeyError, TypeError, AttributeError) as error:
            raise _damaged(path, error) from None
        entries[name] = entry
    return entries


def _damaged(path: Path, error: Exception) -> InputError:
    found = f"no {error}" if isinstance(error, KeyError) else str(error)
    return InputError(Problem("is damaged", str(path), found, "as floorkit wrote it"))


def differences(a: Entry, b: Entry) -> list[Change]:
    """What differs between the provenance of two entries."""
    return changes(a.provenance, b.provenance)


def chosen(entries: dict[str, Entry], names: Sequence[str]) -> dict[str, Entry]:
    """The entries of these names, or all where none is named.

    Raises
    ------
    ManifestError
        Where a name is not among them.
    """
    unknown = [name for name in names if name not in entries]
    if unknown:
        raise ManifestError(
            Problem(
                f"no entry {unknown[0]!r} in the results", "--entry", expected="one of " + ", ".join(entries)
            )
        )
    return {name: entry for name, entry in entries.items() if not names or name in names}
