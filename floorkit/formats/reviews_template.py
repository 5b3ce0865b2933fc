"""Candidates for review, mined from activity arrays into an UNREVIEWED reviews file.

- raw_onset, raw_offset: every row in which the wearer starts, or stops, inside a recording.
- mined, candidate ENTRY_HARD_NEGATIVE: the others stop while the wearer is silent, and the wearer stays
  silent until the others start again or the longest region is over.
- mined, candidate INT_HARD_NEGATIVE: the others start while the wearer speaks, and the wearer goes on until
  the others stop or the longest region is over.

A region that is shorter than the shortest one, or that the wearer's own change ends, is no candidate. The
label of every line is UNREVIEWED: what happened is for a person to say; the note says what to look for.
"""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from floorkit.core.errors import InputError, ManifestError, Problem, raise_problems
from floorkit.core.paths import child
from floorkit.formats.dense import OTHERS, WEARER, Targets, read_activity, read_recordings
from floorkit.formats.dense_dataset import SESSION_NAME, is_session_name
from floorkit.formats.reviews_line import FRAMES_PER_ROW

CLASSES = 3


@frozen
class Mining:
    """Shortest and longest mined region, in rows of 0.2 s (both inclusive)."""

    shortest: int = 3
    longest: int = 10


def read_targets(folder: Path, sessions: Sequence[str]) -> Iterator[Targets]:
    """The sessions named, or every SESSION.npy of the folder in the order of their names and numbers.

    Raises
    ------
    InputError
        With every problem of the files.
    """
    names = list(sessions) or sorted((path.stem for path in folder.glob("*.npy")), key=natural_order)
    if not names:
        raise InputError(Problem("no targets", str(folder), "no SESSION.npy in it", "activity arrays"))
    problems: list[Problem] = []
    targets = []
    for name in names:
        if not is_session_name(name):
            problems.append(Problem("not a session name", repr(name), expected=SESSION_NAME))
            continue
        try:
            activity = read_activity(child(folder, f"{name}.npy"), CLASSES, folder.parent)
            recordings = child(folder, f"{name}.recordings.json")
            starts = np.zeros(1, dtype=np.int64)
            if os.path.lexists(recordings):
                starts = read_recordings(recordings, len(activity), folder.parent)
            targets.append(Targets(name, activity, starts))
        except InputError as error:
            problems += error.problems
    raise_problems(InputError, problems)
    return iter(targets)


def natural_order(name: str) -> list[tuple[int, int, str]]:
    """Sorts Session_2 before Session_12."""
    parts: list[str] = []
    for letter in name:
        if parts and letter.isdigit() == parts[-1].isdigit():
            parts[-1] += letter
        else:
            parts.append(letter)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def candidates(targets: Targets, mining: Mining) -> list[dict[str, Any]]:
    """The UNREVIEWED lines of one session, by frame."""
    found: list[tuple[int, dict[str, Any]]] = []
    for start, stop in zip(targets.starts.tolist(), targets.stops.tolist(), strict=True):
        wearer = targets.activity[start:stop, WEARER].astype(np.int8)
        others = targets.activity[start:stop, OTHERS].astype(np.int8)
        for origin, step, note in (
            ("raw_onset", 1, "the wearer starts: WEARER_ENTRY?"),
            ("raw_offset", -1, "the wearer stops: INT_YIELD?"),
        ):
            for row in np.flatnonzero(np.diff(wearer) == step) + 1:
                frame = int(start + row) * FRAMES_PER_ROW
                found.append(
                    (frame, _line(targets.session, origin, note, frame, {"anchor_frame_20hz": frame}))
                )
        for family, state, step, note in (
            ("entry", 0, -1, "the others stop, the wearer stays silent: ENTRY_HARD_NEGATIVE?"),
            ("int", 1, 1, "the others start, the wearer goes on: INT_HARD_NEGATIVE?"),
        ):
            for row in np.flatnonzero(np.diff(others) == step) + 1:
                length = _region(wearer, others, int(row), state, mining)
                if length:
                    frame = int(start + row) * FRAMES_PER_ROW
                    region = [frame, frame + length * FRAMES_PER_ROW]
                    kind = f"mined_{family}"
                    found.append((frame, _line(targets.session, kind, note, frame, {"region_20hz": region})))
    return [line for _, line in sorted(found, key=lambda one: (one[0], one[1]["event_id"]))]


def _region(
    wearer: np.ndarray[Any, np.dtype[np.int8]],
    others: np.ndarray[Any, np.dtype[np.int8]],
    row: int,
    state: int,
    mining: Mining,
) -> int:
    """Rows from ``row`` on in which the wearer keeps ``state`` and the others theirs; 0 for no candidate."""
    if wearer[row - 1] != state or wearer[row] != state:
        return 0
    stop = min(row + mining.longest, len(wearer))
    changes = np.flatnonzero((wearer[row:stop] != state) | (others[row:stop] != others[row]))
    length = int(changes[0]) if len(changes) else stop - row
    ended_by_wearer = bool(len(changes)) and wearer[row + length] != state
    return 0 if ended_by_wearer or length < mining.shortest else length


def _line(session: str, kind: str, note: str, frame: int, place: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "event_id": f"{session}_{kind}_{frame:06d}",
        "session": session,
        "label": "UNREVIEWED",
        "origin": "mined" if kind.startswith("mined") else kind,
        **place,
        "boundary_correction_s": 0.0,
        "reviewer": "human",
        "note": note,
    }


def write_lines(path: Path, lines: Iterator[dict[str, Any]], replace: bool) -> int:
    """Write a reviews file, gzipped where it is named ``.gz``; it appears whole or not at all.

    Returns
    -------
    int
        The number of lines.

    Raises
    ------
    ManifestError
        Where the file exists and is not to be replaced (it may hold a person's reviews), is no plain file,
        or its folder does not exist.
    """
    if not path.parent.is_dir():
        raise ManifestError(Problem("no such folder", str(path.parent), expected="a folder for the file"))
    if path.exists() and not path.is_file():
        raise ManifestError(Problem("not a plain file", str(path), expected="a file's name"))
    if path.exists() and not replace:
        remedy = "choose another --output, or say --replace to lose what stands in it"
        raise ManifestError(Problem("the file exists", str(path), expected="a new file", remedy=remedy))
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    count = 0
    try:
        with partial.open("wb") as raw:
            # No name and no time inside the archive: the same candidates give the same bytes.
            zipped = path.suffix == ".gz"
            stream = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if zipped else raw
            with io.TextIOWrapper(stream, encoding="utf-8", newline="\n") as text:
                for line in lines:
                    text.write(json.dumps(line, ensure_ascii=False) + "\n")
                    count += 1
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return count
