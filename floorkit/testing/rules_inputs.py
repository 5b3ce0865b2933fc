"""Rules about input files: all of them are declared, and a fault in one is told with its name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs

from floorkit.core import manifest as manifests
from floorkit.core.errors import FloorkitError, Problem
from floorkit.core.prepare import Findings
from floorkit.testing.evidence import Evidence, Unprepared, prepare_entry
from floorkit.testing.fingerprint import fingerprint
from floorkit.testing.other_process import key
from floorkit.testing.rules import rule

GARBAGE = b"\x00\xff\xfe not what this file should be \xff\x00" * 8

CORRUPTIONS: Mapping[str, Callable[[Path], object]] = {
    "replaced by garbage": lambda path: path.write_bytes(GARBAGE),
    "emptied": lambda path: path.write_bytes(b""),
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "removed": lambda path: path.unlink(),
}


@attrs.frozen
class Copy:
    """The manifest and the input files of an entry, and nothing else, in a folder of their own."""

    manifest: Path
    files: Mapping[Path, Path]
    """Original to copy."""


def copy(evidence: Evidence) -> Copy:
    """Copy an entry's manifest and declared input files, each where it was relative to the others.

    Raises
    ------
    Unprepared
        Where the manifest names files by absolute paths, so that a copy would read the originals.
    """
    originals = list(evidence.prepared.files)
    above = Path(os.path.commonpath([evidence.manifest.path, *originals])).parent
    base = evidence.scratch("copy")
    files = {path: base / path.relative_to(above) for path in originals}
    manifest = base / evidence.manifest.path.relative_to(above)
    for path, target in {evidence.manifest.path: manifest, **files}.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    copied = Evidence(manifest, evidence.entry)
    outside = [path for path in copied.prepared.files if not path.is_relative_to(base)]
    if outside:
        raise Unprepared(
            Problem(
                "the manifest names files by absolute paths",
                str(evidence.path),
                ", ".join(map(str, outside[:3])),
                "paths relative to the manifest, so that the kit can corrupt a copy",
            )
        )
    return Copy(manifest, files)


@rule("inputs")
def inputs_declared(evidence: Evidence) -> Iterator[str]:
    """Every file that is read is declared in ``Unit.gold``, ``Run.sources`` or ``Dataset.files``.

    Declared files are hashed into the signature and the provenance; a change in another one goes unnoticed.
    """
    moved = Evidence(copy(evidence).manifest, evidence.entry)
    if moved.prepared.data_fingerprint() != evidence.prepared.data_fingerprint():
        yield "with the declared files alone, at another place, the data fingerprint differs"
    for (run, unit_key), tables in evidence.tables.items():
        again = moved.tables.get((run, unit_key))
        if again is None or fingerprint(again) != fingerprint(tables):
            yield f"{key(run, *unit_key)}: with the declared files alone, at another place, its tables differ"


@rule("inputs")
def corrupted_inputs(evidence: Evidence) -> Iterator[str]:
    """A file that is damaged, cut, empty or missing never crashes the plugin, and its fault is told with
    its name.

    Garbage must be told. A missing file may be optional, and an empty or a cut one may happen to be valid;
    where they are not, the fault names the file (a missing one its unit at least).
    """
    whole = copy(evidence)
    for original, role in _one_of_each(evidence).items():
        path = whole.files[original]
        for name, corrupt in CORRUPTIONS.items():
            corrupt(path)
            try:
                yield from _told(whole.manifest, evidence, path, f"{role} ({path.name}), {name}", name)
            finally:
                shutil.copyfile(original, path)


def _one_of_each(evidence: Evidence) -> dict[Path, str]:
    """One file of each role: shared ones, a unit's gold in each split, and the first run's prediction of
    it.
    """
    prepared = evidence.prepared
    chosen: dict[Path, str] = {}
    seen: set[tuple[str, str]] = set()
    units = [*prepared.dataset.split("evaluated")[:1], *prepared.dataset.split("calibration")[:1]]
    for unit in units:
        for role, path in unit.gold.files.items():
            chosen.setdefault(path, f"{role} of {unit.split} unit {unit.name}")
        for run in prepared.runs[:1]:
            for role, path in run.sources[unit.key].files.items() if unit.key in run.sources else ():
                chosen.setdefault(path, f"{role} of {unit.split} unit {unit.name} in run {run.name}")
    for role, path in prepared.dataset.files.items():
        form = ("".join(letter for letter in role if not letter.isdigit()), path.suffix)
        if form not in seen:
            seen.add(form)
            chosen.setdefault(path, f"shared file {role}")
    return chosen


def _told(manifest: Path, evidence: Evidence, path: Path, place: str, name: str) -> Iterator[str]:
    findings = Findings()
    try:
        prepare_entry(manifests.read(manifest), evidence.entry, findings)
    except FloorkitError as error:
        yield f"{place}: crashes instead of telling the fault: {error}"
        return
    names = {path.name} | {unit.name for unit in evidence.prepared.dataset.units if name == "removed"}
    if findings.all:
        if not any(one in str(problem) for problem in findings.all for one in names):
            yield f"{place}: the problem does not name the file: {findings.all[0]}"
    elif name == "replaced by garbage":
        yield f"{place}: goes unnoticed"
