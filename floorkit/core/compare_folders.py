"""Runs of two results folders against each other: what must agree first, then paired figures.

Values are compared only where protocol, code (versions and source hashes of the core and the plugins),
parameters and dataset fingerprint agree; counts behind each figure are then checked like those of two runs
in one folder. The folders hold every run's resampled figures (``floorkit.core.statistics_files``): where
seed, number of resamples and units agree, both have drawn the same units, and the paired interval is exactly
the one that a single run of both would give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import evolve, frozen

from floorkit.core.changes import Change
from floorkit.core.compare import compare, holm_adjusted, shared_headline
from floorkit.core.entries import Entry, chosen, differences, read_entries
from floorkit.core.errors import ManifestError, Problem
from floorkit.core.statistics import Replicates
from floorkit.core.statistics_files import Statistics
from floorkit.core.values import Comparison, Figure

A, B = "A", "B"


@frozen
class Options:
    """What the command line asks for: entries, the run of each folder, and whether code may differ."""

    entries: tuple[str, ...] = ()
    run_a: str = ""
    run_b: str = ""
    allow_source_drift: bool = False


@frozen(eq=False)
class EntryComparison:
    """One entry of two folders, compared.

    Parameters
    ----------
    disagreements
        Differences for which the figures are not compared.
    remarks
        Differences that a reader must know and that do not forbid the comparison.
    comparisons
        For every pair of runs and headline figure that both have; Holm-adjusted together.
    figures
        By key, the figures that were compared, as B has them.
    only_a, only_b
        Keys of headline figures that only one side has.
    """

    a: Entry
    b: Entry
    disagreements: tuple[Change, ...]
    remarks: tuple[Change, ...]
    comparisons: tuple[Comparison, ...]
    figures: Mapping[str, Figure]
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()


def compare_folders(a: Path, b: Path, options: Options) -> list[EntryComparison]:
    """Compare the entries that two results folders share.

    Raises
    ------
    InputError
        Where a folder's files cannot be read.
    ManifestError
        Where entries or runs cannot be matched; the message lists those that there are.
    """
    pairs = _entry_pairs(read_entries(a), read_entries(b), options)
    return [_compare_entries(one, other, options) for one, other in pairs]


def _entry_pairs(a: dict[str, Entry], b: dict[str, Entry], options: Options) -> list[tuple[Entry, Entry]]:
    """Entries of the same name; two single ones whatever their names."""
    ours, theirs = chosen(a, options.entries), chosen(b, options.entries)
    shared = [name for name in ours if name in theirs]
    if not shared and len(ours) == len(theirs) == 1:
        return list(zip(ours.values(), theirs.values(), strict=True))
    if not shared:
        found = f"{', '.join(ours) or 'none'} in {A}; {', '.join(theirs) or 'none'} in {B}"
        raise ManifestError(
            Problem("the folders share no entry", found=found, expected="an entry of the same name in both")
        )
    return [(ours[name], theirs[name]) for name in shared]


def _is_blocking(change: Change, options: Options) -> bool:
    if change.kind == "code":
        return not options.allow_source_drift
    return change.kind in ("protocol", "parameters") or (change.kind, change.what) == ("data", "data")


def _compare_entries(a: Entry, b: Entry, options: Options) -> EntryComparison:
    found = [change for change in differences(a, b) if change.kind != "predictions"]
    disagreements = tuple(change for change in found if _is_blocking(change, options))
    obstacles = tuple(change.between(A, B) for change in disagreements)
    ours, theirs = a.statistics(), b.statistics()
    comparisons: list[Comparison] = []
    figures: dict[str, Figure] = {}
    only_a: dict[str, None] = {}
    only_b: dict[str, None] = {}
    for run_a, run_b in _run_pairs(ours, theirs, a.name, options):
        one, other = _labelled(ours.runs[run_a], A), _labelled(theirs.runs[run_b], B)
        keys = shared_headline(one, other)
        same = a.provenance["predictions"].get(run_a) == b.provenance["predictions"].get(run_b, "")
        only_a |= dict.fromkeys(figure.key for figure in one.headline if figure.key not in keys)
        only_b |= dict.fromkeys(figure.key for figure in other.headline if figure.key not in keys)
        for key in keys:
            figures[key] = other.figures[key]
            comparisons.append(_compare(one, other, key, theirs, obstacles, same))
    return EntryComparison(
        a,
        b,
        disagreements,
        tuple(change for change in found if change not in disagreements),
        holm_adjusted(comparisons),
        figures,
        tuple(only_a),
        tuple(only_b),
    )


def _compare(
    a: Replicates, b: Replicates, key: str, statistics: Statistics, obstacles: Sequence[str], same: bool
) -> Comparison:
    found = compare(a, b, key, statistics.settings, statistics.seed, statistics.noun)
    if not obstacles:
        told = ("both sides have the same predictions",) if same else ()
        return evolve(found, cautions=(*told, *found.cautions))
    return Comparison(
        key, a.run, b.run, found.a_value, found.b_value, not_comparable=(*obstacles, *found.not_comparable)
    )


def _labelled(run: Replicates, side: str) -> Replicates:
    return evolve(run, run=f"{side}:{run.run}")


def _run_pairs(a: Statistics, b: Statistics, entry: str, options: Options) -> list[tuple[str, str]]:
    """The runs that were asked for, else those of the same name, else the only ones."""
    ours, theirs = (
        [name for name in statistics.runs if not name.startswith("control:")] for statistics in (a, b)
    )
    for names, name, side, option in (
        (list(a.runs), options.run_a, A, "--run-a"),
        (list(b.runs), options.run_b, B, "--run-b"),
    ):
        if name and name not in names:
            raise ManifestError(
                Problem(
                    f"no run {name!r} in entry {entry} of {side}",
                    option,
                    expected="one of " + ", ".join(names),
                )
            )
    if options.run_a or options.run_b:
        ours = [options.run_a] if options.run_a else ours
        theirs = [options.run_b] if options.run_b else theirs
        return [(one, other) for one in ours for other in theirs]
    shared = [(name, name) for name in ours if name in theirs]
    if not shared and len(ours) == len(theirs) == 1:
        return [(ours[0], theirs[0])]
    if not shared:
        raise ManifestError(
            Problem(
                f"entry {entry}: no run has the same name in both folders",
                found=f"{', '.join(ours)} in {A}; {', '.join(theirs)} in {B}",
                remedy="name the two runs with --run-a and --run-b",
            )
        )
    return shared
