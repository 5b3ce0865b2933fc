"""RTTM diarization as a source of dense targets (dense spec, "RTTM as a source of targets").

Row t is active for a speaker when the speaker's segments together cover at least half a row (0.1 s) of
[0.2 t, 0.2 (t + 1)); others = any other speaker than the wearer; background = neither. Segments of one
speaker that overlap cover their time once. Times are rounded to nanoseconds, so that no sum of binary
fractions decides about a row. A session is one recording of T = ceil(last end / 0.2) rows, the end taken
from the UEM where one is given.

Only SPEAKER lines make activity; lines of the other RTTM types (SPKR-INFO, LEXEME, ...) and comments (``;;``)
are skipped.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray

from floorkit.core.errors import InputError, Problem, raise_problems
from floorkit.core.paths import shown
from floorkit.core.values import Context, Unit
from floorkit.formats.dense import BACKGROUND, OTHERS, WEARER, Targets
from floorkit.numerics import ROW_SECONDS

NANO = 1_000_000_000
ROW = round(ROW_SECONDS * NANO)
LONGEST_SECONDS = 1e6

OTHER_TYPES = frozenset(
    {
        *("SEGMENT", "NOSCORE", "NO_RT_METADATA", "LEXEME", "NON-LEX", "NON-SPEECH", "FILLER"),
        *("EDIT", "IP", "SU", "CB", "A/P", "SPKR-INFO"),
    }
)
"""RTTM types that say nothing about activity (NIST Rich Transcription, RTTM format)."""

Segments = NDArray[np.int64]
"""Start and end in nanoseconds, shape [N, 2]."""


@attrs.frozen(eq=False)
class Diarization:
    """One RTTM file: for each session the segments of each speaker, both in order of appearance."""

    sessions: dict[str, dict[str, Segments]]


def load_rttm_targets(context: Context, unit: Unit) -> Targets:
    """Rasterise one session.

    ``unit.gold`` holds the file ``rttm``, perhaps ``uem``, and the value ``wearer``.

    Raises
    ------
    InputError
        With every broken line; where the session or its wearer does not occur.
    """
    path, wearer = unit.gold.files["rttm"], str(unit.gold.values["wearer"])
    place = shown(path, context.root)
    speakers = read_rttm(path, context.root).sessions.get(unit.name)
    if speakers is None:
        raise InputError(Problem(f"no SPEAKER line of session {unit.name}", place, expected="at least one"))
    if wearer not in speakers:
        raise InputError(
            Problem(
                f"the wearer of session {unit.name} has no segment", place, ", ".join(speakers), repr(wearer)
            )
        )
    if "uem" in unit.gold.files:
        end = read_uem(unit.gold.files["uem"], unit.name, context.root)
    else:
        end = max(int(segments[:, 1].max()) for segments in speakers.values())
    rows = -(-end // ROW)
    if not rows:
        raise InputError(Problem(f"session {unit.name} has no rows", place, "it ends at 0 s", "some time"))
    activity = np.zeros((rows, context.params.classes), dtype=bool)
    for speaker, segments in speakers.items():
        activity[:, WEARER if speaker == wearer else OTHERS] |= rasterise(segments, rows)
    activity[:, BACKGROUND] = ~(activity[:, WEARER] | activity[:, OTHERS])
    return Targets(unit.name, activity, np.zeros(1, dtype=np.int64))


def rasterise(segments: Segments, rows: int) -> NDArray[np.bool_]:
    """Rows of which one speaker's segments cover at least half, shape [rows]; what lies past them is cut."""
    ordered = segments[np.argsort(segments[:, 0], kind="stable")]
    latest = np.maximum.accumulate(ordered[:, 1])
    first = np.ones(len(ordered), dtype=bool)
    first[1:] = ordered[1:, 0] > latest[:-1]
    starts = ordered[first, 0]
    stops = latest[np.append(np.flatnonzero(first)[1:] - 1, len(ordered) - 1)]
    before = np.concatenate([[0], np.cumsum(stops - starts)])
    edges = np.arange(rows + 1) * ROW
    index = np.searchsorted(starts, edges, side="right")
    previous = np.maximum(index - 1, 0)
    unspent = np.where(index > 0, np.maximum(stops[previous] - edges, 0), 0)
    covered = before[index] - unspent
    return 2 * np.diff(covered) >= ROW


def read_rttm(path: Path, root: Path) -> Diarization:
    """Read an RTTM file; the last few stay in memory, so that one file of many sessions is read once.

    Raises
    ------
    InputError
        With every broken line: too few fields, times that are no numbers, negative or not finite, no speaker,
        an unknown type.
    """
    state = path.stat()
    return _read_rttm(path, root, state.st_mtime_ns, state.st_size)


def sessions_of(path: Path, root: Path) -> frozenset[str]:
    """Names of the sessions in an RTTM file; empty where the file is broken (loading it tells how)."""
    try:
        return frozenset(read_rttm(path, root).sessions)
    except InputError:
        return frozenset()


@lru_cache(maxsize=2)
def _read_rttm(path: Path, root: Path, _modified: int, _size: int) -> Diarization:
    place = shown(path, root)
    found: dict[str, dict[str, list[tuple[int, int]]]] = {}
    problems: list[Problem] = []
    for number, fields in _lines(path, root):
        where = f"{place}:{number}"
        if fields[0] in OTHER_TYPES:
            continue
        if fields[0] != "SPEAKER":
            problems.append(Problem("unknown RTTM type", where, fields[0], "SPEAKER"))
            continue
        if len(fields) < 8:
            expected = "SPEAKER session channel start duration <NA> <NA> speaker <NA> <NA>"
            problems.append(Problem("a SPEAKER line has too few fields", where, " ".join(fields), expected))
            continue
        start, duration = _nanoseconds(fields[3]), _nanoseconds(fields[4])
        if start is None or duration is None:
            problems.append(
                Problem(
                    "start and duration must be seconds",
                    where,
                    f"{fields[3]} {fields[4]}",
                    "numbers of at least 0",
                )
            )
        elif fields[7] == "<NA>":
            problems.append(Problem("a segment without a speaker", where, fields[7], "a speaker name"))
        else:
            found.setdefault(fields[1], {}).setdefault(fields[7], []).append((start, start + duration))
    raise_problems(InputError, problems)
    return Diarization(
        {
            session: {speaker: np.asarray(segments, dtype=np.int64) for speaker, segments in speakers.items()}
            for session, speakers in found.items()
        }
    )


def read_uem(path: Path, session: str, root: Path) -> int:
    """End of a session in nanoseconds, from a UEM file (``session channel start end`` a line).

    Raises
    ------
    InputError
        Where the session has no region, or not exactly one region from 0: time that was never annotated would
        pass for silence.
    """
    place = shown(path, root)
    regions: list[tuple[int, int]] = []
    for number, fields in _lines(path, root):
        if fields[0] != session:
            continue
        times = [_nanoseconds(field) for field in fields[2:4]]
        if len(times) < 2 or times[0] is None or times[1] is None or times[1] <= times[0]:
            raise InputError(
                Problem(
                    "a broken UEM line",
                    f"{place}:{number}",
                    " ".join(fields),
                    "session channel start end, in seconds",
                )
            )
        regions.append((times[0], times[1]))
    if len(regions) != 1 or regions[0][0] != 0:
        found = ", ".join(f"[{start / NANO}, {end / NANO}]" for start, end in regions) or "no region"
        raise InputError(
            Problem(
                f"session {session} needs exactly one UEM region, from 0",
                place,
                found,
                remedy="rows outside a region would pass for silence; cut the session into such regions",
            )
        )
    return regions[0][1]


def _lines(path: Path, root: Path) -> list[tuple[int, list[str]]]:
    """Line numbers and fields of every line that is neither blank nor a comment."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            Problem("the file cannot be read", shown(path, root), str(error), "UTF-8 text")
        ) from error
    numbered = ((number, line.split()) for number, line in enumerate(text.split("\n"), start=1))
    return [(number, fields) for number, fields in numbered if fields and not fields[0].startswith(";;")]


def _nanoseconds(text: str) -> int | None:
    """A time in seconds as whole nanoseconds; None where it is no finite number of at least 0."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return round(seconds * NANO) if 0 <= seconds <= LONGEST_SECONDS else None
