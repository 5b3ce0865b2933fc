"""A folder of one file an annotator: SRT, Praat TextGrid or RTTM, for people with their own annotations.

Files are named ``CONVERSATION_SPEAKER_ANNOTATOR.srt`` (``.TextGrid``, ``.rttm``): speaker 1 or 2, annotator
a, b or c. An annotator with a file for one speaker of a conversation must have one for the other too (an
empty one where nothing was marked). At least two annotators are needed, since consensus is between two.

The fine label of an event is the text of a TextGrid interval or the first line of an SRT cue, up to an
optional ``": "`` and free text; in RTTM it is the speaker name field, with ``_`` for spaces. Durations come
from a file ``durations.json`` in the folder, or one that the manifest names, else from a TextGrid's end.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Final

from floorkit.core.errors import InputError, Problem, raise_problems
from floorkit.core.paths import child
from floorkit_turnbench.conversation import Conversation
from floorkit_turnbench.listing import Listed, build_conversation

SUFFIXES: Final = (".srt", ".textgrid", ".rttm")
NAME: Final = re.compile(r"(?P<conversation>.+)_(?P<speaker>[12])_(?P<annotator>[abc])")
RawEvent = tuple[float, float, str]


def list_folder(folder: Path, durations: dict[str, float] | None) -> tuple[list[Listed], list[Problem]]:
    """Conversations of a folder, in the order of names."""
    problems: list[Problem] = []
    found: dict[str, dict[tuple[int, str], Path]] = defaultdict(dict)
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in SUFFIXES:
            continue
        match = NAME.fullmatch(path.stem)
        if match is None:
            problems.append(
                Problem(
                    "file name tells no conversation, speaker and annotator",
                    str(path),
                    expected="CONVERSATION_SPEAKER_ANNOTATOR, as in 20_1_a.srt",
                )
            )
            continue
        try:
            inside = child(folder, path.name)
        except InputError as error:
            problems += error.problems
            continue
        key = int(match["speaker"]), match["annotator"]
        known = found[match["conversation"]].setdefault(key, inside)
        if known is not inside:
            problems.append(
                Problem("two files for the same track", str(path), known.name, "one file a track")
            )
    if not found and not problems:
        problems.append(Problem("no annotation files", str(folder), expected="*.srt, *.TextGrid or *.rttm"))
    listed = []
    for identifier, files in found.items():
        problems += _incomplete(identifier, files, folder)
        listed.append(
            Listed(
                identifier,
                durations.get(identifier) if durations is not None else _grid_end(files, problems),
                {},
                {f"{speaker}_{annotator}": path for (speaker, annotator), path in sorted(files.items())},
                {"form": "folder"},
            )
        )
    return listed, problems


def _incomplete(identifier: str, files: dict[tuple[int, str], Path], folder: Path) -> list[Problem]:
    annotators = sorted({annotator for _, annotator in files})
    problems = [
        Problem(
            f"no file of annotator {annotator} for speaker {speaker}",
            f"{folder}: conversation {identifier}",
            expected=f"{identifier}_{speaker}_{annotator}.*",
            remedy="add an empty file if the annotator marked nothing",
        )
        for speaker in (1, 2)
        for annotator in annotators
        if (speaker, annotator) not in files
    ]
    if len(annotators) < 2:
        problems.append(
            Problem(
                "a single annotator",
                f"{folder}: conversation {identifier}",
                annotators[0],
                "two or three annotators: consensus is between at least two",
            )
        )
    return problems


def _grid_end(files: dict[tuple[int, str], Path], problems: list[Problem]) -> float | None:
    ends = []
    for path in files.values():
        if path.suffix.lower() == ".textgrid":
            try:
                ends.append(read_textgrid(path)[1])
            except InputError as error:
                problems += error.problems
    return max(ends, default=None)


def load_files(listed: Listed) -> Conversation:
    """Read the tracks of one conversation; every broken line of all its files is told."""
    problems: list[Problem] = []
    events: dict[tuple[int, str], list[RawEvent]] = {}
    for key, path in listed.files.items():
        if key == "durations":
            continue
        speaker, annotator = key.split("_")
        try:
            events[int(speaker), annotator] = read_track(path)
        except InputError as error:
            problems += error.problems
    folder = next(iter(listed.files.values())).parent
    return build_conversation(listed, events, f"{folder}: conversation {listed.conversation_id}", problems)


def read_track(path: Path) -> list[RawEvent]:
    """Events of one file, in file order.

    Raises
    ------
    InputError
        With every broken line.
    """
    match path.suffix.lower():
        case ".srt":
            return read_srt(path)
        case ".rttm":
            return read_rttm(path)
        case _:
            return read_textgrid(path)[0]


def label_of(text: str) -> str:
    """The fine label at the head of an annotation text: up to ``": "``, without surrounding brackets."""
    head = text.strip().split(": ", 1)[0].strip()
    return head[1:].split("]", 1)[0].strip() if head.startswith("[") else head


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"  # Praat writes both
        return raw.decode(encoding)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(Problem("cannot be read as text", str(path), str(error), "UTF-8 text")) from error


CLOCK: Final = r"(\d+):(\d\d):(\d\d)[,.](\d{1,6})"
CUE: Final = re.compile(rf"\s*{CLOCK}\s*-->\s*{CLOCK}\s*")


def read_srt(path: Path) -> list[RawEvent]:
    """Cues of a SubRip file: number, ``HH:MM:SS,mmm --> HH:MM:SS,mmm``, text; blank lines between."""
    events: list[RawEvent] = []
    problems: list[Problem] = []
    lines = _text(path).splitlines()
    position = 0
    while position < len(lines):
        if not lines[position].strip():
            position += 1
            continue
        first = position + (1 if lines[position].strip().isdecimal() else 0)
        match = CUE.fullmatch(lines[first]) if first < len(lines) else None
        label = label_of(lines[first + 1]) if first + 1 < len(lines) else ""
        if match is None:
            problems.append(
                Problem(
                    "no cue times",
                    f"{path}:{min(first, len(lines) - 1) + 1}",
                    repr(lines[min(first, len(lines) - 1)][:60]),
                    "00:00:01,250 --> 00:00:02,500",
                )
            )
        elif not label:
            problems.append(Problem("cue without label", f"{path}:{first + 1}", expected="a fine label"))
        else:
            parts = match.groups()
            events.append((_clock(parts[:4]), _clock(parts[4:]), label))
        position = first
        while position < len(lines) and lines[position].strip():
            position += 1
    raise_problems(InputError, problems)
    return events


def _clock(parts: tuple[str, ...]) -> float:
    hours, minutes, seconds, fraction = parts
    # one decimal literal, so that 00:00:01,250 is the number 1.25 and no sum of roundings
    return float(f"{int(hours) * 3600 + int(minutes) * 60 + int(seconds)}.{fraction}")


def read_rttm(path: Path) -> list[RawEvent]:
    """SPEAKER lines of an RTTM file: onset, duration, label (``_`` for spaces) in fields 4, 5 and 8."""
    events: list[RawEvent] = []
    problems: list[Problem] = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        fields = line.split()
        if not fields or fields[0] != "SPEAKER":
            continue
        try:
            onset, duration, label = float(fields[3]), float(fields[4]), fields[7]
        except (IndexError, ValueError):
            problems.append(
                Problem(
                    "broken SPEAKER line",
                    f"{path}:{number}",
                    repr(line[:80]),
                    "SPEAKER FILE 1 ONSET DURATION <NA> <NA> LABEL <NA> <NA>",
                )
            )
            continue
        # annotation tools write milliseconds; the sum of two such decimals is rounded back to one
        events.append((onset, round(onset + duration, 6), label.replace("_", " ")))
    raise_problems(InputError, problems)
    return events


TOKEN: Final = re.compile(r'"((?:[^"]|"")*)"|(?<![\w.])(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w.])|<exists>')


def read_textgrid(path: Path) -> tuple[list[RawEvent], float]:
    """Labelled intervals of the single interval tier of a TextGrid (long or short text form), and its end.

    Source: Praat manual, "TextGrid file formats": only numbers, quoted texts and flags carry meaning.
    """
    text = re.sub(r"\[\d*\]:?", " ", _text(path))  # the indices of the long form
    tokens = [
        match[1].replace('""', '"') if match[1] is not None else match[2] or match[0]
        for match in TOKEN.finditer(text)
    ]

    def broken(found: str) -> InputError:
        return InputError(
            Problem("not a TextGrid with one interval tier", str(path), found, "Praat's text form")
        )

    if tokens[:2] != ["ooTextFile", "TextGrid"] or len(tokens) < 11 or tokens[4] != "<exists>":
        raise broken(f"begins with {tokens[:2]}")
    if tokens[5] != "1" or tokens[6] != "IntervalTier":
        raise broken(f"{tokens[5]} tiers, the first a {tokens[6]}")
    try:
        end, count = float(tokens[3]), int(tokens[10])
        rows = tokens[11:]
        if len(rows) != 3 * count:
            raise broken(f"{len(rows) // 3} intervals where {count} are announced")
        events = [
            (float(rows[row]), float(rows[row + 1]), label_of(rows[row + 2]))
            for row in range(0, len(rows), 3)
            if rows[row + 2].strip()
        ]
    except ValueError as error:
        raise broken(str(error)) from error
    return events, end
