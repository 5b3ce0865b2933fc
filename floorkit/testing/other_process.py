"""The same entry in a process of its own, under other circumstances, watched.

The child gets another hash seed, locale, time zone and working directory, scores the units in reverse
order, and writes down the fingerprints of everything it computed, what its hooks did beside returning
values, and what importing the plugin imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from floorkit.testing.evidence import Evidence
    from floorkit.testing.watch import Deed

HEAVY = (
    "numpy", "scipy", "pandas", "polars", "pyarrow", "torch", "tensorflow", "jax", "sklearn", "matplotlib",
    "plotly", "pycocotools", "huggingface_hub", "requests", "httpx", "joblib", "dask", "soundfile",
    "librosa", "h5py",
)  # fmt: skip
"""Libraries that take a noticeable time to import."""


@frozen
class Observed:
    """What the child saw.

    ``tables`` are fingerprints of every run's and unit's tables (see ``key``), ``files`` those of the entry's
    result files, ``heavy`` what importing the plugin imported, ``printed`` what reached the standard streams
    below Python's own, ``failure`` why there is nothing else.
    """

    tables: Mapping[str, str]
    files: Mapping[str, str]
    deeds: tuple[Deed, ...]
    heavy: tuple[str, ...]
    printed: str = ""
    failure: str = ""


def key(run: str, split: str, unit: str) -> str:
    """How a run's unit is named in ``Observed.tables``."""
    return f"run {run}, {split} unit {unit}"


def observed(evidence: Evidence) -> Observed:
    """Run the child once for an entry.

    Raises
    ------
    EvaluationError
        Where the child ends without an answer.
    """
    return _ask(evidence.path, evidence.entry)


@cache
def _ask(path: Path, entry: str) -> Observed:
    from floorkit.core.errors import EvaluationError, Problem
    from floorkit.testing.watch import Deed

    with tempfile.TemporaryDirectory(prefix="floorkit-") as folder:
        answer = Path(folder) / "answer.json"
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(one or os.getcwd() for one in sys.path),
            "PYTHONHASHSEED": "4711",
            "PYTHONWARNINGS": "ignore",
            "LC_ALL": "C",
            "TZ": "Pacific/Chatham",
        }
        child = subprocess.run(
            [sys.executable, "-m", __name__, str(path.resolve()), entry, str(answer)],
            env=environment,
            cwd=folder,
            capture_output=True,
            check=False,
        )
        printed = (child.stdout + child.stderr).decode("utf-8", "replace")
        if child.returncode or not answer.is_file():
            raise EvaluationError(
                Problem(
                    "the conformance kit's child process failed",
                    f"{path}, {entry}",
                    f"exit code {child.returncode}: {printed[-2000:].strip()}",
                )
            )
        found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    found["deeds"] = tuple(Deed(*one) for one in found["deeds"])
    return Observed(**{**found, "heavy": tuple(found["heavy"])}, printed=printed)


def main(arguments: list[str]) -> None:
    """The child: see the module's text."""
    path, entry, answer = Path(arguments[0]), arguments[1], Path(arguments[2])
    heavy = _imported_by(path, entry)
    from floorkit.core.errors import FloorkitError
    from floorkit.testing.evidence import Evidence

    evidence = Evidence(path, entry, watched=True, backwards=True)
    report: dict[str, Any] = {"tables": {}, "files": {}, "deeds": [], "heavy": heavy, "failure": ""}
    try:
        report["tables"] = _tables(evidence)
        _other_hooks(evidence)
        report["files"] = evidence.written_hashes()
    except FloorkitError as error:
        report["failure"] = str(error)
    report["deeds"] = [(deed.kind, deed.place, deed.what) for deed in evidence.deeds]
    answer.write_text(json.dumps(report), encoding="utf-8", newline="\n")


def _imported_by(path: Path, entry: str) -> list[str]:
    from floorkit.core import manifest, registry

    wanted = manifest.read(path).document.protocols[entry].plugin
    plugin = registry.find(wanted, entry, registry.discover())[0]
    before = set(sys.modules)
    registry.load(plugin)
    return [name for name in HEAVY if name in sys.modules and name not in before]


def _tables(evidence: Evidence) -> dict[str, str]:
    from floorkit.testing.fingerprint import fingerprint

    return {
        key(run, split, unit): fingerprint(tables) for (run, (split, unit)), tables in evidence.tables.items()
    }


def _other_hooks(evidence: Evidence) -> None:
    from floorkit.core.manifest import absent_units

    prepared = evidence.prepared
    context = prepared.context
    evidence.call("floorkit_protocols")
    evidence.call("floorkit_dataset", context=context, table=prepared.entry.dataset)
    for name, table in prepared.entry.runs.items():
        rest, _ = absent_units(table, name)
        evidence.call("floorkit_predictions", context=context, dataset=prepared.dataset, run=name, table=rest)
    evidence.call("floorkit_controls", context=context, dataset=prepared.dataset)
    figures = evidence.figures
    for run in prepared.runs:
        headline = {figure.key for figure in figures[run.name] if figure.headline}
        evidence.measure(evidence.pool(run), evidence.points(run), headline)
    for sections in evidence.call("floorkit_report", context=context, result=evidence.result):
        evidence.read_rows(sections)


if __name__ == "__main__":
    main(sys.argv[1:])
