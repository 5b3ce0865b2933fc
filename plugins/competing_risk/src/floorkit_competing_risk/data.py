"""Targets with strata, and predictions: files to arrays, with every validation.

The strata file is a CSV with the columns session, start_row, stop_row, stratum; ranges are half-open, rows
in no range are ``unspecified``. Lines of sessions that are not in the manifest are checked and otherwise
ignored, provided that these sessions have targets (else the name is taken for a misspelt one).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from floorkit.core.errors import InputError, ManifestError, Problem
from floorkit.core.paths import resolve, shown
from floorkit.core.structure import param, structure
from floorkit.core.values import Context, Dataset, Mark, Unit
from floorkit.formats.dense import Targets, horizon_seconds, load_targets
from floorkit.formats.dense_dataset import FORMATS, DenseTable, build_dataset, has_targets
from floorkit_competing_risk.params import CompetingRiskParams

STRATA_COLUMNS = ("session", "start_row", "stop_row", "stratum")
ALL, UNSPECIFIED = "all", "unspecified"


@attrs.frozen
class CompetingRiskTable(DenseTable):
    """``[protocols.NAME.dataset]`` of competing_risk."""

    strata: str | None = param(None, doc="CSV with the columns session, start_row, stop_row, stratum.")


@attrs.frozen(eq=False)
class Gold:
    """One session's targets, and the stratum of every row.

    Parameters
    ----------
    targets
        Activity and recordings.
    stratum
        Shape [T], indices into ``strata``.
    strata
        Names of the strata, the same for every session; ``unspecified`` comes last.
    """

    targets: Targets
    stratum: NDArray[np.int64]
    strata: tuple[str, ...]


@attrs.frozen
class StrataRange:
    """One line of the strata file: rows start <= t < stop of a session."""

    line: int
    session: str
    start: int
    stop: int
    stratum: str


def dataset(context: Context, table: Mapping[str, Any]) -> Dataset | None:
    """The hook ``floorkit_dataset`` for the formats ``dense`` and ``rttm``; None for others."""
    if table.get("format") not in FORMATS:
        return None
    where = f"protocols.{context.name}"
    parsed = structure(CompetingRiskTable, table, f"{where}.dataset")
    params: CompetingRiskParams = context.params
    longest = horizon_seconds(params.horizons)
    if params.headline_horizon_seconds > longest + 1e-9:
        raise ManifestError(
            Problem(
                "the headline horizon is beyond the arrays' horizons",
                f"{where}.params.headline_horizon_seconds",
                repr(params.headline_horizon_seconds),
                f"at most {longest} s, {params.horizons} horizons of 0.2 s",
            )
        )
    marks = [Mark(name, value, "info") for name, value in params.coordinates.items()]
    if parsed.strata is None:
        return build_dataset(context, parsed, load_gold, marks=marks)
    path = resolve(context.root, parsed.strata)
    ranges, problems = read_strata(path, context.root)
    names = [*sorted({one.stratum for one in ranges}), UNSPECIFIED]
    by_session: dict[str, list[list[int]]] = {}
    for one in ranges:
        by_session.setdefault(one.session, []).append(
            [one.start, one.stop, names.index(one.stratum), one.line]
        )
    file = shown(path, context.root)
    named = {*parsed.sessions, *parsed.calibration_sessions}
    values = {
        session: {"strata": names, "ranges": by_session.get(session, []), "strata_file": file}
        for session in named
    }
    built = build_dataset(
        context, parsed, load_gold, values=values, files={"strata": path}, marks=marks, problems=problems
    )
    unknown = [
        Problem(
            f"stratum of session {one.session}, which has no targets",
            f"{file}:{one.line}",
            remedy="is the session's name misspelt?",
        )
        for one in {one.session: one for one in reversed(ranges)}.values()
        if one.session not in named and not has_targets(context, built, one.session)
    ]
    return attrs.evolve(built, problems=(*built.problems, *unknown))


def load_gold(context: Context, unit: Unit) -> Gold:
    """Read and check one unit's targets, and code its strata by row. Raises InputError."""
    targets = load_targets(context, unit)
    values = unit.gold.values
    names = tuple(values.get("strata", (UNSPECIFIED,)))
    stratum = np.full(targets.rows, len(names) - 1)
    beyond = [one for one in values.get("ranges", ()) if one[1] > targets.rows]
    if beyond:
        raise InputError(
            Problem(
                f"a range past the {targets.rows} rows of session {unit.name}",
                f"{values['strata_file']}:{line}",
                f"[{start}, {stop})",
                f"stop_row at most {targets.rows}",
            )
            for start, stop, _, line in beyond
        )
    for start, stop, code, _ in values.get("ranges", ()):
        stratum[start:stop] = code
    return Gold(targets, stratum, names)


def read_strata(path: Path, root: Path) -> tuple[list[StrataRange], list[Problem]]:
    """Read a strata file.

    Returns
    -------
    ranges
        The sound lines, in the order of the file.
    problems
        Unreadable file, wrong columns, broken lines, reserved names, overlapping ranges.
    """
    place = shown(path, root)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [(number, row) for number, row in _rows(csv.reader(file, strict=True)) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        return [], [Problem("the strata file cannot be read", place, str(error), "a CSV file in UTF-8")]
    expected = ",".join(STRATA_COLUMNS)
    if not lines or sorted(lines[0][1]) != sorted(STRATA_COLUMNS):
        found = ",".join(lines[0][1]) if lines else "an empty file"
        return [], [Problem("wrong columns", f"{place}:1", found, expected)]
    order = [lines[0][1].index(column) for column in STRATA_COLUMNS]
    ranges: list[StrataRange] = []
    problems: list[Problem] = []
    for number, row in lines[1:]:
        where = f"{place}:{number}"
        if len(row) != len(STRATA_COLUMNS):
            problems.append(Problem("wrong number of fields", where, ",".join(row), expected))
            continue
        session, start, stop, stratum = (row[index].strip() for index in order)
        if (
            not re.fullmatch(r"\d{1,15}", start)
            or not re.fullmatch(r"\d{1,15}", stop)
            or int(start) >= int(stop)
        ):
            problems.append(
                Problem(
                    f"not a range of rows (session {session})",
                    where,
                    f"{start},{stop}",
                    "integers with 0 <= start_row < stop_row",
                )
            )
        elif not session or stratum in {"", ALL, UNSPECIFIED}:
            problems.append(
                Problem(
                    "a session and a stratum are needed",
                    where,
                    f"{session},{stratum}",
                    f"any names but {ALL} and {UNSPECIFIED}",
                )
            )
        else:
            ranges.append(StrataRange(number, session, int(start), int(stop), stratum))
    return ranges, problems + _overlaps(ranges, place)


def _rows(reader: Any) -> Any:
    for row in reader:
        yield reader.line_num, row


def _overlaps(ranges: list[StrataRange], place: str) -> list[Problem]:
    ordered = sorted(ranges, key=lambda one: (one.session, one.start, one.stop))
    return [
        Problem(
            f"overlapping ranges of session {after.session}",
            f"{place}:{after.line}",
            f"[{after.start}, {after.stop}) and [{before.start}, {before.stop}) of line {before.line}",
            "every row in at most one range",
        )
        for before, after in pairwise(ordered)
        if before.session == after.session and after.start < before.stop
    ]
