"""Writing runs in the dense layout: whole folders or nothing.

A run is written beside its folder and moved there when all its sessions are complete, so that an
interrupted command leaves what was there before.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from floorkit.core.errors import InputError, Problem
from floorkit.core.paths import child
from floorkit.core.sections import to_json
from floorkit.formats.dense import Bool

RECORD = "origin.json"


@attrs.frozen(eq=False)
class WrittenSession:
    """One session to write.

    Parameters
    ----------
    session
        Its name.
    pred, valid
        Shapes [T, C, H] and [T, H].
    record
        Where it came from, as plain data; kept in the run's ``origin.json``.
    """

    session: str
    pred: NDArray[Any]
    valid: Bool
    record: Mapping[str, Any]


def write_run(
    folder: Path, sessions: Iterable[WrittenSession], names: Iterable[str], *, add: bool, tool: str
) -> None:
    """Write ``pred/``, ``valid/`` and ``origin.json`` of a run.

    Parameters
    ----------
    folder
        The run's folder; it appears, or changes, when everything is written.
    sessions
        What to write; may be a generator, so that one session is in memory at a time.
    names
        The names of all ``sessions``.
    add
        Keep other sessions that the folder holds; otherwise they are an error.
    tool
        What wrote the run, for its record.

    Raises
    ------
    InputError
        Where the folder holds other sessions and ``add`` is False, or holds no run at all.
    """
    ours = set(names)
    kept = sorted(_held(folder) - ours)
    if kept and not add:
        raise InputError(
            Problem(
                "the output folder holds other sessions",
                str(folder),
                ", ".join(kept),
                f"an empty folder, or one of {', '.join(sorted(ours))}",
                "name another folder, or add to this one with --add",
            )
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        record = _copy_kept(folder, scratch, kept)
        for one in sessions:
            np.save(child(scratch, f"pred/{one.session}.npy"), one.pred, allow_pickle=False)
            np.save(child(scratch, f"valid/{one.session}.npy"), one.valid, allow_pickle=False)
            record[one.session] = {"tool": tool, **one.record}
        text = to_json({"sessions": dict(sorted(record.items()))})
        (scratch / RECORD).write_text(text, encoding="utf-8", newline="\n")
        scratch.chmod(0o777 & ~_umask())
        _replace(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _held(folder: Path) -> set[str]:
    """Sessions that a run's folder holds."""
    if not folder.exists():
        return set()
    foreign = (
        {path.name for path in folder.iterdir()} - {"pred", "valid", RECORD} if folder.is_dir() else {""}
    )
    if foreign:
        found = "a file" if foreign == {""} else ", ".join(sorted(foreign))
        raise InputError(
            Problem("the output folder is no run's", str(folder), found, f"pred/, valid/ and {RECORD} alone")
        )
    return {path.stem for kind in ("pred", "valid") for path in (folder / kind).glob("*.npy")}


def _copy_kept(folder: Path, scratch: Path, kept: Iterable[str]) -> dict[str, Any]:
    """Hard links to the files of the kept sessions, and their records."""
    for kind in ("pred", "valid"):
        (scratch / kind).mkdir()
    names = list(kept)
    for name in names:
        for kind in ("pred", "valid"):
            source = child(folder, f"{kind}/{name}.npy")
            if source.exists():
                os.link(source, scratch / kind / source.name)
    if not names or not (folder / RECORD).exists():
        return {}
    known = json.loads((folder / RECORD).read_text(encoding="utf-8"))["sessions"]
    return {name: known[name] for name in names if name in known}


def _replace(scratch: Path, folder: Path) -> None:
    """Put ``scratch`` where ``folder`` is; the old folder is whole until the new one stands there."""
    if not folder.exists():
        scratch.rename(folder)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old.", dir=folder.parent))
    folder.rename(old / folder.name)
    try:
        scratch.rename(folder)
    except OSError:
        (old / folder.name).rename(folder)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
