"""What one line of a reviews file may hold, and every fault of it in words."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from floorkit.core.errors import Problem

LABELS = (
    "WEARER_ENTRY",
    "INT_YIELD",
    "ENTRY_HARD_NEGATIVE",
    "INT_HARD_NEGATIVE",
    "EXCLUDED",
    "UNREVIEWED",
)
ORIGINS = ("raw_onset", "raw_offset", "mined")
REVIEWERS = ("human", "llm_provisional")
CORRECTIONS_S = (-0.2, 0.0, 0.2)

KEYS = (
    "event_id",
    "session",
    "label",
    "origin",
    "anchor_frame_20hz",
    "region_20hz",
    "boundary_correction_s",
    "reviewer",
    "note",
)
_REQUIRED = ("event_id", "session", "label", "origin", "reviewer")
_CODED = {"label": LABELS, "origin": ORIGINS, "reviewer": REVIEWERS}
_KEY_SET = frozenset(KEYS)
POSITIVE_LABELS = ("WEARER_ENTRY", "INT_YIELD")
_HARD_NEGATIVE = ("ENTRY_HARD_NEGATIVE", "INT_HARD_NEGATIVE")
_LAST_FRAME = 2**31 - 5
FRAMES_PER_ROW = 4
"""20 Hz frames in a row of 0.2 s; the 20 Hz to 5 Hz rule is frame // FRAMES_PER_ROW."""


@frozen
class Demands:
    """What a reviews file must fulfil beyond the format.

    Parameters
    ----------
    rows
        Rows (0.2 s) of the sessions whose lines are used; lines of other sessions are checked for form.
    every_region
        A hard negative of any origin is scored by its region, and so needs one (annotated). Otherwise
        only mined ones are, and those of origin raw_* by their anchor (event_proxy).
    allow_provisional
        Lines of the reviewer ``llm_provisional`` are accepted.
    provisional_remedy
        What to do about them where they are not.
    """

    rows: Mapping[str, int] = field(factory=dict)
    every_region: bool = False
    allow_provisional: bool = True
    provisional_remedy: str = ""


class DuplicateKeyError(ValueError):
    """A JSON object that gives one key twice, so that nobody can say which one counts."""


def object_without_twins(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """``object_pairs_hook`` of json.loads that refuses keys given twice."""
    made = dict(pairs)
    if len(made) != len(pairs):
        keys = [key for key, _ in pairs]
        raise DuplicateKeyError(repr(next(key for key in keys if keys.count(key) > 1)))
    return made


def correction_rows(seconds: float | None) -> int:
    """Rows that a boundary correction shifts by: -1, 0 or 1 (None: not corrected)."""
    return 0 if seconds is None else CORRECTIONS_S.index(seconds) - 1


def faults(record: Mapping[str, Any], demands: Demands) -> list[Problem]:
    """Every fault of one line's object; the problems have a key of the line, or nothing, as place."""
    found = list(_form_faults(record))
    broken = {fault.where for fault in found}
    if not demands.allow_provisional and record.get("reviewer") == "llm_provisional":
        found.append(
            Problem(
                "provisional review", "", "reviewer 'llm_provisional'", "'human'", demands.provisional_remedy
            )
        )
    if not broken & {"label", "origin"}:
        scored_by = _scored_by(record, demands)
        if scored_by:
            found += _missing(record, scored_by)
        if not broken & {"session", "anchor_frame_20hz", "region_20hz", "boundary_correction_s"}:
            found += _outside(record, demands, scored_by)
    return found


def _form_faults(record: Mapping[str, Any]) -> Iterator[Problem]:
    """Faults of single keys, each with the key as ``where``."""
    if not record.keys() <= _KEY_SET:
        for key in sorted(record.keys() - _KEY_SET):
            yield Problem(f"unknown key {key!r}", key, "", "one of " + ", ".join(KEYS), _near(key, KEYS))
    for key in _REQUIRED:
        if key not in record:
            yield Problem(f"missing key {key!r}", key, "", f"the keys {', '.join(_REQUIRED)} on every line")
    for key in ("event_id", "session"):
        value = record.get(key, " ")
        if not isinstance(value, str) or not value or not _is_unicode(value):
            yield Problem(f"wrong {key}", key, repr(value), "text that is not empty")
    for key, names in _CODED.items():
        if key in record and record[key] not in names:
            value = record[key]
            yield Problem(
                f"unknown {key}", key, repr(value), "one of " + ", ".join(names), _near(str(value), names)
            )
    anchor = record.get("anchor_frame_20hz")
    if anchor is not None and not _is_frame(anchor):
        expected = "a whole number of 20 Hz frames from 0"
        yield Problem("wrong anchor_frame_20hz", "anchor_frame_20hz", repr(anchor), expected)
    region = record.get("region_20hz")
    if region is not None:
        yield from _region_faults(region)
    correction = record.get("boundary_correction_s")
    if isinstance(correction, bool) or (correction is not None and correction not in CORRECTIONS_S):
        key = "boundary_correction_s"
        yield Problem(f"wrong {key}", key, repr(correction), "-0.2, 0.0 or 0.2 seconds")
    if "note" in record and not isinstance(record["note"], str | None):
        yield Problem("wrong note", "note", repr(record["note"]), "text")


def _near(value: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(value, names, n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _is_frame(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LAST_FRAME


def _region_faults(region: Any) -> Iterator[Problem]:
    expected = "[start, stop) as two whole numbers of 20 Hz frames, 0 <= start < stop"
    if not (isinstance(region, list) and len(region) == 2 and all(map(_is_frame, region))):
        yield Problem("wrong region_20hz", "region_20hz", repr(region), expected)
    elif region[0] == region[1]:
        yield Problem("empty region_20hz", "region_20hz", repr(region), expected)
    elif region[0] > region[1]:
        yield Problem("reversed region_20hz", "region_20hz", repr(region), expected)


def _scored_by(record: Mapping[str, Any], demands: Demands) -> str:
    """The key of the place that a line is scored by, or "" for a label that never is."""
    label = record.get("label")
    if label in POSITIVE_LABELS:
        return "anchor_frame_20hz"
    if label in _HARD_NEGATIVE:
        by_region = demands.every_region or record.get("origin") == "mined"
        return "region_20hz" if by_region else "anchor_frame_20hz"
    return ""


def _missing(record: Mapping[str, Any], scored_by: str) -> Iterator[Problem]:
    label, origin = record["label"], record.get("origin")
    if record.get("region_20hz") is None and scored_by == "region_20hz":
        found = f"none in {label} of origin {origin}"
        yield Problem("missing region_20hz", "region_20hz", found, "[start, stop) of 20 Hz frames")
    if record.get("anchor_frame_20hz") is None and (scored_by != "region_20hz" or origin != "mined"):
        found = f"none in {label} of origin {origin}"
        yield Problem("missing anchor_frame_20hz", "anchor_frame_20hz", found, "the frame of the behaviour")


def _outside(record: Mapping[str, Any], demands: Demands, scored_by: str) -> Iterator[Problem]:
    """Frames past the session, and scored rows outside it after correction."""
    rows = demands.rows.get(record.get("session", ""))
    if rows is None:
        return
    places = {}
    if (anchor := record.get("anchor_frame_20hz")) is not None:
        places["anchor_frame_20hz"] = (anchor, anchor)
    if (region := record.get("region_20hz")) is not None:
        places["region_20hz"] = (region[0], region[1] - 1)
    correction = correction_rows(record.get("boundary_correction_s"))
    for key, (first, last) in places.items():
        first_row, last_row = first // FRAMES_PER_ROW + correction, last // FRAMES_PER_ROW + correction
        if last >= rows * FRAMES_PER_ROW:
            yield Problem(
                f"{key} past the session",
                key,
                repr(record[key]),
                f"frames below {rows * FRAMES_PER_ROW}: {record['session']} has {rows} rows",
            )
        elif key == scored_by and (first_row < 0 or last_row >= rows):
            corrected = f"corrected by {record['boundary_correction_s']} s: rows {first_row} .. {last_row}"
            yield Problem(
                f"{key} outside the session after correction",
                key,
                f"{record[key]!r} {corrected}",
                f"rows 0 .. {rows - 1} of {record['session']}",
                "take the correction back, or label the opportunity EXCLUDED",
            )
