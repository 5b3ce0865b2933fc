"""Reading JSON the strict way: what stands in a file, or one problem that says where it breaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from floorkit.core.errors import InputError, Problem


def parse_json(raw: bytes, where: str) -> tuple[Any, list[str]]:
    """Parse UTF-8 JSON.

    Parameters
    ----------
    raw
        The file's bytes.
    where
        The file's name, for messages.

    Returns
    -------
    value, notes
        NaN, Infinity and huge integers come through as Python has them, for the caller to reject with
        their place. ``notes`` names keys that stand twice in one object; the last one counts.

    Raises
    ------
    InputError
        For bytes that are no UTF-8, a byte order mark, anything that is no JSON, and nesting too deep to
        be one of our files; with line and column.
    """
    notes: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        if len(made) < len(items):
            names = [key for key, _ in items]
            twice = sorted({key for key in names if names.count(key) > 1})
            notes.extend(
                f"{where}: key {key!r} stands twice in one object; the last one counts" for key in twice
            )
        return made

    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _broken(
            where,
            f"byte {raw[error.start]:#04x} at position {error.start}",
            "UTF-8 text",
            "save the file as UTF-8",
        ) from error
    if text.startswith("\ufeff"):
        raise _broken(where, "a byte order mark", "plain UTF-8", "save the file as UTF-8 without BOM")
    try:
        return json.loads(text, object_pairs_hook=pairs), notes
    except json.JSONDecodeError as error:
        place = f"{where}:{error.lineno}:{error.colno}"
        raise _broken(place, f"{error.msg} at character {error.pos}", "one JSON value") from error
    except RecursionError as error:
        raise _broken(where, "brackets nested hundreds of levels deep", "a file of this format") from error
    except ValueError as error:  # an integer of more digits than Python converts
        raise _broken(where, str(error), "numbers in seconds") from error


def read_json(path: Path, where: str = "") -> tuple[Any, list[str]]:
    """Parse a file; see :func:`parse_json`."""
    return parse_json(read_bytes(path, where), where or str(path))


def read_bytes(path: Path, where: str = "") -> bytes:
    """The bytes of a file, or an InputError that names it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            Problem("cannot be read", where or str(path), error.strerror or str(error), "a readable file")
        ) from error


def _broken(where: str, found: str, expected: str, remedy: str = "") -> InputError:
    return InputError(Problem("not valid JSON", where, found, expected, remedy))


def shown(value: Any) -> str:
    """A JSON value as messages show it: its JSON text, cut when long."""
    if isinstance(value, dict):
        return f"an object with keys {', '.join(map(repr, list(value)[:6]))}" if value else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:40]}... ({len(text)} characters)"


def fields(
    value: Any, required: tuple[str, ...], where: str, problems: list[Problem], what: str
) -> dict[str, Any]:
    """The object's required fields that are there; everything missing or unknown becomes a problem."""
    if not isinstance(value, dict):
        problems.append(
            Problem(f"{what} is no object", where, shown(value), f"an object with {_listed(required)}")
        )
        return {}
    for key in required:
        if key not in value:
            problems.append(Problem(f"key {key!r} is missing", where, expected=_listed(required)))
    for key in value:
        if key not in required:
            problems.append(Problem(f"unknown key {key!r}", where, expected=f"only {_listed(required)}"))
    return {key: value[key] for key in required if key in value}


def _listed(keys: tuple[str, ...]) -> str:
    return ", ".join(map(repr, keys))


def number(value: Any) -> float | None:
    """The value as a float where it is a JSON number (a bool or a string is none), else None.

    An integer beyond the range of floats becomes infinity.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def check_schema_version(value: Any, where: str, problems: list[Problem]) -> None:
    """``schema_version`` must be the number 1."""
    if number(value) != 1.0:
        problems.append(Problem("wrong schema_version", where, shown(value), "1"))


def check_entries(
    ids: list[tuple[int, Any]],
    durations: dict[str, float] | None,
    list_name: str,
    where: str,
    problems: list[Problem],
    *,
    complete: bool,
) -> None:
    """Ids of a file's entries: strings, known, once each and, where ``complete``, none missing.

    ``ids`` holds (index of the entry, id); ``durations`` the known conversations, None for any.
    """
    seen: dict[str, int] = {}
    for index, identifier in ids:
        place = f"{where}: {list_name}[{index}]"
        if not isinstance(identifier, str):
            problems.append(
                Problem("conversation_id is no string", place, shown(identifier), f'"{identifier}"')
            )
            continue
        if identifier in seen:
            problems.append(
                Problem(
                    f"conversation {identifier!r} stands twice",
                    place,
                    f"first at {list_name}[{seen[identifier]}]",
                    "one entry a conversation",
                )
            )
        elif durations is not None and identifier not in durations:
            problems.append(
                Problem(
                    f"unknown conversation {identifier!r}",
                    place,
                    expected=f"one of {_some(sorted(durations))}",
                )
            )
        seen.setdefault(identifier, index)
    missing = [identifier for identifier in durations or () if identifier not in seen]
    if complete and missing:
        problems.append(
            Problem(
                f"missing conversation{'s' if len(missing) > 1 else ''} {_some(missing)}",
                where,
                f"{len(durations or ()) - len(missing)} of {len(durations or ())} conversations",
                "exactly one entry a conversation of the dataset",
                "add an entry with empty lists where nothing was predicted"
                if list_name == "predictions"
                else "",
            )
        )


def _some(names: list[str], most: int = 8) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more
