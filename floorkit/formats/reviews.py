"""Reviewed opportunities: JSON Lines to compact NumPy columns (dense spec, "Reviewed opportunities").

One JSON object a line says that something could have happened at a moment or in a region of a session, and
what a reviewer found there: the wearer took the floor (WEARER_ENTRY) or gave it up (INT_YIELD), or did not
although it looked like it (the hard negatives). Frames count at 20 Hz; predictions have rows of 0.2 s (5 Hz).

Conventions: frame // 4 is the row; a region [start, stop) covers the rows start // 4 .. (stop - 1) // 4; a
boundary correction of -0.2, 0.0 or 0.2 s shifts the anchor row or the whole region by -1, 0 or 1 row.
"""

from __future__ import annotations

import gzip
import io
import json
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from floorkit.core.errors import SHOWN_PROBLEMS, InputError, Problem
from floorkit.formats.reviews_line import (
    FRAMES_PER_ROW,
    LABELS,
    ORIGINS,
    REVIEWERS,
    Demands,
    DuplicateKeyError,
    correction_rows,
    faults,
    object_without_twins,
)

FAMILIES = ("entry", "int")
SCORED_LABELS = LABELS[:4]
"""WEARER_ENTRY, INT_YIELD, ENTRY_HARD_NEGATIVE, INT_HARD_NEGATIVE; EXCLUDED and UNREVIEWED never score."""

LONGEST_LINE = 1 << 20
"""Bytes of the longest line that is read; a longer one is no review."""

_DECODER = json.JSONDecoder(object_pairs_hook=object_without_twins)

Int = NDArray[np.integer[Any]]
Bool = NDArray[np.bool_]

_COLUMNS = {
    "line": np.int32,
    "session": np.int32,
    "label": np.int8,
    "origin": np.int8,
    "reviewer": np.int8,
    "correction": np.int8,
    "anchor": np.int32,
    "start": np.int32,
    "stop": np.int32,
}


@frozen(eq=False)
class Reviews:
    """The lines of a reviews file (or some of them) as columns, in file order.

    Parameters
    ----------
    sessions
        Names that the codes of the column ``session`` stand for.
    columns
        Arrays of shape [N]: ``line`` (from 1), ``session``, ``label``, ``origin``, ``reviewer`` (codes of
        LABELS, ORIGINS, REVIEWERS), ``correction`` (rows: -1, 0, 1), ``anchor``, ``start``, ``stop`` (20 Hz
        frames, -1 where the line has none); and the event ids as UTF-8 text ``id_text`` [bytes] with
        ``id_end`` [N], the offset behind each.
    """

    sessions: tuple[str, ...]
    columns: Mapping[str, NDArray[Any]] = field(repr=False)

    def __len__(self) -> int:
        return len(self.columns["line"])

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def event_id(self, index: int) -> str:
        """The event id of line ``index``."""
        ends = self.columns["id_end"]
        start = int(ends[index - 1]) if index else 0
        return bytes(self.columns["id_text"][start : int(ends[index])]).decode("utf-8")

    def event_ids(self) -> list[str]:
        return [self.event_id(index) for index in range(len(self))]

    def session_name(self, index: int) -> str:
        return self.sessions[int(self.columns["session"][index])]

    @property
    def family(self) -> Int:
        """Code of FAMILIES, shape [N]; -1 for EXCLUDED and UNREVIEWED."""
        label = self.columns["label"]
        return np.where(label < len(SCORED_LABELS), label % 2, -1).astype(np.int8)

    @property
    def positive(self) -> Bool:
        return self.columns["label"] < 2

    @property
    def scored(self) -> Bool:
        """True for the four labels that enter scoring, shape [N]."""
        return self.columns["label"] < len(SCORED_LABELS)

    @property
    def mined(self) -> Bool:
        return self._holds("origin", ORIGINS.index("mined"))

    @property
    def provisional(self) -> Bool:
        return self._holds("reviewer", REVIEWERS.index("llm_provisional"))

    def _holds(self, column: str, code: int) -> Bool:
        found: Bool = self.columns[column] == code
        return found

    @property
    def anchor_row(self) -> Int:
        """Corrected anchor row, shape [N]; meaningless where ``anchor`` is -1."""
        anchor = self.columns["anchor"].astype(np.int64)
        return anchor // FRAMES_PER_ROW + self.columns["correction"].astype(np.int64)

    @property
    def region_rows(self) -> tuple[Int, Int]:
        """First corrected row of each region and the row behind its last, shapes [N]; see anchor_row."""
        correction = self.columns["correction"].astype(np.int64)
        first = self.columns["start"] // FRAMES_PER_ROW + correction
        behind = (self.columns["stop"] - 1) // FRAMES_PER_ROW + 1 + correction
        return first, behind

    def take(self, index: Int | Bool) -> Reviews:
        """The lines at ``index`` (positions or a mask), in the order of the index."""
        rows = np.flatnonzero(index) if index.dtype == bool else index
        ends = self.columns["id_end"]
        starts = np.concatenate([[0], ends[:-1]])[rows] if len(ends) else ends
        lengths = ends[rows] - starts
        new_ends = np.cumsum(lengths)
        text = np.arange(int(lengths.sum())) + np.repeat(starts - (new_ends - lengths), lengths)
        columns = {name: self.columns[name][rows] for name in _COLUMNS}
        columns |= {"id_text": self.columns["id_text"][text], "id_end": new_ends}
        return Reviews(self.sessions, columns)

    def of_session(self, session: str) -> Reviews:
        """The lines of one session; the columns alone then say everything (see ``Reviews.of_columns``)."""
        code = self.sessions.index(session) if session in self.sessions else -1
        part = self.take(self.columns["session"] == code)
        columns = dict(part.columns) | {"session": np.zeros(len(part), np.int32)}
        return Reviews((session,), columns)

    @classmethod
    def empty(cls) -> Reviews:
        return _Store().reviews()

    @classmethod
    def of_columns(cls, session: str, columns: Mapping[str, NDArray[Any]]) -> Reviews:
        """The inverse of ``of_session(session).columns``."""
        return cls((session,), columns)


def open_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Line numbers (from 1) and bytes of a text file, gzipped where its first bytes say so.

    A line is cut behind LONGEST_LINE + 1 bytes.
    """
    with open(path, "rb") as raw:
        zipped = raw.peek(2)[:2] == b"\x1f\x8b"
        stream: IO[bytes] = io.BufferedReader(gzip.GzipFile(fileobj=raw)) if zipped else raw
        number = 0
        while line := stream.readline(LONGEST_LINE + 1):
            number += 1
            yield number, line
            while len(line) > LONGEST_LINE and not line.endswith(b"\n"):
                line = stream.readline(LONGEST_LINE + 1)
                if not line:
                    return


def read_reviews(path: Path, name: str, demands: Demands) -> tuple[Reviews, tuple[Problem, ...]]:
    """Read a reviews file (JSON Lines, or the same gzipped) in bounded memory.

    Parameters
    ----------
    path
        The file.
    name
        How messages name it.
    demands
        What the protocol and the sessions demand beyond the format.

    Returns
    -------
    reviews
        The sound lines. Use them only where there is no problem.
    problems
        In the order of the lines; the first 20 in full, every further one by place and name alone, so
        that their number is right and very many cost little memory.
    """
    found = _Findings(name)
    store = _Store()
    try:
        for number, line in open_lines(path):
            text = line.strip()
            if not text:
                continue
            record = _parse(found, number, line)
            if record is not None:
                told = faults(record, demands)
                for fault in told:
                    found.add(number, record.get("event_id"), fault)
                store.add(number, record, sound=not told)
    except (OSError, EOFError, gzip.BadGzipFile) as error:
        found.add(0, None, Problem("the file cannot be read", found=str(error)))
    twins = _Findings(name)
    for number, first, event_id in store.twins():
        twins.add(
            number,
            event_id,
            Problem(
                "duplicate event_id", found=f"{event_id!r}, first used in line {first}", expected="unique ids"
            ),
        )
    problems = sorted(found.kept + twins.kept, key=lambda kept: kept[0])
    return store.reviews(), tuple(problem for _, problem in problems)


def sound_reviews(path: Path, name: str, demands: Demands) -> Reviews:
    """Like :func:`read_reviews`, raising InputError with all problems."""
    reviews, problems = read_reviews(path, name, demands)
    if problems:
        raise InputError(problems)
    return reviews


def _parse(found: _Findings, number: int, line: bytes) -> dict[str, Any] | None:
    """The object of a line, or None with the reason added to ``found``."""
    expected = "one JSON object on the line"
    if len(line) > LONGEST_LINE:
        found.add(
            number, None, Problem("line too long", found=f"over {LONGEST_LINE} bytes", expected=expected)
        )
        return None
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        record = _DECODER.decode(text)
    except DuplicateKeyError as error:
        found.add(number, None, Problem("key given twice", found=str(error), expected="every key once"))
    except json.JSONDecodeError as error:
        # a column of this line: the decoder counts lines from its own start
        told = f"{error.msg} at column {error.pos + 1}"
        found.add(number, None, Problem("broken line", found=told, expected=expected))
    except (ValueError, RecursionError) as error:
        found.add(number, None, Problem("broken line", found=str(error), expected=expected))
    else:
        if isinstance(record, dict):
            return record
        found.add(number, None, Problem("broken line", found=type(record).__name__, expected=expected))
    return None


class _Findings:
    """Problems of a file by line: the first ones in full, the further ones by place and name alone."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.kept: list[tuple[int, Problem]] = []

    def add(self, line: int, event_id: Any, fault: Problem) -> None:
        place = f"{self._name}:{line}" if line else self._name
        if isinstance(event_id, str):
            place += f" (event {event_id[:80]})"
        full = len(self.kept) < SHOWN_PROBLEMS
        told = (fault.found[:300], fault.expected, fault.remedy) if full else ()
        self.kept.append((line, Problem(fault.what, place, *told)))


class _Store:
    """Columns that grow by a line at a time, eight bytes a value and less."""

    def __init__(self) -> None:
        self._values = {name: array("i" if kind is np.int32 else "b") for name, kind in _COLUMNS.items()}
        self._append = [values.append for values in self._values.values()]
        self._codes = [
            {name: code for code, name in enumerate(names)} for names in (LABELS, ORIGINS, REVIEWERS)
        ]
        self._sessions: dict[str, int] = {}
        self._id_text = bytearray()
        self._id_end = array("q")
        # Every line with an id takes part in the search for twins, sound or not.
        self._hashes = array("q")
        self._hash_line = array("i")
        self._faulty_ids: dict[int, str] = {}

    def add(self, number: int, record: Mapping[str, Any], sound: bool) -> None:
        event_id = record.get("event_id")
        if not isinstance(event_id, str):
            return
        self._hashes.append(hash(event_id))
        self._hash_line.append(number)
        if not sound:
            if len(self._faulty_ids) < 100_000:
                self._faulty_ids[number] = event_id
            return
        session = self._sessions.setdefault(record["session"], len(self._sessions))
        anchor = record.get("anchor_frame_20hz")
        start, stop = record.get("region_20hz") or (-1, -1)
        labels, origins, reviewers = self._codes
        row = (
            number,
            session,
            labels[record["label"]],
            origins[record["origin"]],
            reviewers[record["reviewer"]],
            correction_rows(record.get("boundary_correction_s")),
            -1 if anchor is None else anchor,
            start,
            stop,
        )
        for append, value in zip(self._append, row, strict=True):
            append(value)
        self._id_text += event_id.encode("utf-8")
        self._id_end.append(len(self._id_text))

    def reviews(self) -> Reviews:
        columns: dict[str, NDArray[Any]] = {
            name: np.asarray(values, dtype=_COLUMNS[name]) for name, values in self._values.items()
        }
        columns["id_text"] = np.frombuffer(bytes(self._id_text), dtype=np.uint8)
        columns["id_end"] = np.asarray(self._id_end, dtype=np.int64)
        return Reviews(tuple(self._sessions), columns)

    def twins(self) -> Iterator[tuple[int, int, str]]:
        """(line, line of the first use, id) of every id used again.

        Equal hashes only point at candidates; the ids themselves decide.
        """
        hashes = np.asarray(self._hashes, dtype=np.int64)
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        same = np.zeros(len(order), dtype=bool)
        same[1:] = ordered[1:] == ordered[:-1]
        same[:-1] |= same[1:].copy()
        if not same.any():
            return
        reviews = self.reviews()
        first_use: dict[str, int] = {}
        for index in sorted(order[same].tolist()):
            line = self._hash_line[index]
            event_id = self._faulty_ids.get(line)
            if event_id is None:
                place = int(np.searchsorted(reviews["line"], line))
                if place == len(reviews) or reviews["line"][place] != line:
                    continue  # one of very many faulty lines, whose ids are not kept
                event_id = reviews.event_id(place)
            first = first_use.setdefault(event_id, line)
            if first != line:
                yield line, first, event_id
