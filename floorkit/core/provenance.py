"""provenance.json: which code, inputs and environment made a result, and whether they are still the same."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict

import floorkit
from floorkit.core import registry
from floorkit.core.environment import package_versions
from floorkit.core.errors import InputError, Problem
from floorkit.core.evaluate import params_hash, signature
from floorkit.core.manifest import Manifest
from floorkit.core.paths import is_url, shown
from floorkit.core.prepare import Prepared
from floorkit.core.registry import core_source
from floorkit.core.remote import hash_url
from floorkit.core.sources import hash_file
from floorkit.core.structure import unstructure

FILE = "provenance.json"


def provenance(
    prepared: Prepared, manifest: Manifest, folder: Path, command: Sequence[str], times: tuple[str, str]
) -> dict[str, Any]:
    """What provenance.json of an entry holds. Everything but ``started`` and ``ended`` is reproducible.

    Parameters
    ----------
    folder
        The entry's final results folder; the manifest's folder is recorded relative to it.
    command
        The command line.
    times
        Start and end, ISO 8601 in UTC.
    """
    team = prepared.team
    plugins = [member.plugin for member in team.members]
    return {
        "signature": signature(prepared),
        "floorkit": {"version": floorkit.__version__, "source": core_source()},
        "plugins": [
            {
                "distribution": plugin.distribution,
                "entry_point": plugin.name,
                "version": plugin.version,
                "source": plugin.source,
            }
            for plugin in plugins
        ],
        "protocol": team.protocol.id,
        "upstream": [asdict(reference) for reference in team.protocol.upstream],
        "params": unstructure(prepared.context.params),
        "params_sha256": params_hash(prepared),
        "statistics": unstructure(prepared.statistics),
        "seed": prepared.context.seed,
        "data_fingerprint": prepared.data_fingerprint(),
        "dataset": dict(prepared.dataset.provenance),
        "predictions": {run.name: prepared.run_fingerprint(run) for run in prepared.runs},
        "inputs": [
            {"path": shown(path, manifest.root), "sha256": file.sha256, "size": file.size}
            for path, file in prepared.files.items()
        ],
        "marks": {mark.name: mark.text for mark in prepared.marks},
        "manifest": {"file": manifest.path.name, "resolved": manifest.resolved},
        "manifest_folder": Path(os.path.relpath(manifest.root, folder)).as_posix(),
        "packages": package_versions(["floorkit", *(plugin.distribution for plugin in plugins)]),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}, {sys.implementation.name}",
        "command": list(command),
        "started": times[0],
        "ended": times[1],
    }


def verify(recorded: Mapping[str, Any], folder: Path, root: Path | None = None) -> list[Problem]:
    """Compare a provenance record with what is installed and on disk now.

    Parameters
    ----------
    recorded
        provenance.json of an entry.
    folder
        The entry's results folder.
    root
        The manifest's folder, where it moved relative to the results.

    Returns
    -------
    list of Problem
        One for each difference: core, plugins, and input files missing or changed.
    """
    core = recorded["floorkit"]
    problems = [
        *_difference("floorkit", (core["version"], core["source"]), (floorkit.__version__, core_source()))
    ]
    plugins = {(plugin.distribution, plugin.name): plugin for plugin in registry.discover()}
    for one in recorded["plugins"]:
        plugin = plugins.get((one["distribution"], one["entry_point"]))
        found = (plugin.version, plugin.source) if plugin else ("not installed", "")
        problems += _difference(one["distribution"], (one["version"], one["source"]), found)
    base = root if root is not None else folder / recorded["manifest_folder"]
    for file in recorded["inputs"]:
        name = file["path"]
        path = name if is_url(name) else os.path.normpath(base / name)
        try:
            sha256, size = hash_url(name) if is_url(name) else hash_file(Path(path))
        except InputError as error:
            problems += error.problems
            continue
        if sha256 != file["sha256"]:
            problems.append(
                Problem(
                    "input file changed",
                    path,
                    f"{size} bytes, sha256 {sha256}",
                    f"{file['size']} bytes, sha256 {file['sha256']}",
                )
            )
    return problems


def _difference(name: str, recorded: tuple[str, str], found: tuple[str, str]) -> list[Problem]:
    if recorded == found:
        return []
    return [Problem("source code changed", name, " ".join(found), " ".join(recorded))]
