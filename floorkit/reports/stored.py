"""The JSON files that exports read back from a results folder: finding, writing and reading them.

``RESULTS/NAME/tables.json`` and ``RESULTS/NAME/timelines.json`` open alike::

    {"format": "floorkit tables 1", "entry": "demo", "protocol": "competing_risk",
     "signature": "competing_risk@1.0.0 src:...", "marks": [{"name", "text", "level"}, ...],
     "flags": {"exploratory": false, ...}, ...}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs
from attrs import field, frozen

from floorkit.core.errors import EvaluationError, InputError, ManifestError, Problem
from floorkit.core.results import mark_flags
from floorkit.core.values import Mark, Result

T = TypeVar("T")


@frozen
class Origin:
    """Whose numbers a file holds; ``flags`` are the columns of marks that every CSV has."""

    entry: str
    protocol: str
    signature: str
    marks: tuple[Mark, ...] = ()
    flags: Mapping[str, Any] = field(factory=dict)

    @classmethod
    def of(cls, result: Result) -> Origin:
        marks, flags = tuple(result.marks), mark_flags(result)
        return cls(result.context.name, result.protocol.id, result.signature, marks, flags)

    @property
    def warnings(self) -> list[str]:
        """The marks that stand under every table, as sentences."""
        return [f"{mark.name}: {mark.text}" for mark in self.marks if mark.level == "warning"]


def dump(form: str, origin: Origin, contents: Mapping[str, Any], *, indent: int | None = None) -> str:
    """The text of a file of the given format.

    Raises
    ------
    EvaluationError
        Where the contents hold NaN, an infinity or a value that JSON has no form for.
    """
    data = {"format": form, **attrs.asdict(origin), **contents}
    try:
        return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent, default=_plain) + "\n"
    except (ValueError, TypeError) as error:
        place = next(_faults(contents, f"entry {origin.entry}"), f"entry {origin.entry}")
        raise EvaluationError(
            Problem(
                f"a report section holds a value that cannot be stored ({error})",
                place,
                expected="text, finite numbers, booleans and None (missing values are None)",
                remedy="report it to the authors of the plugin",
            )
        ) from error


def _plain(value: Any) -> Any:
    """NumPy scalars and arrays as plain values; paths as text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Path):
        return value.as_posix()
    raise TypeError(f"a {type(value).__name__}")


def _faults(value: Any, place: str) -> Iterator[str]:
    """Places of the values that :func:`dump` refuses."""
    if isinstance(value, Mapping):
        title = f" ({value['title']!r})" if isinstance(value.get("title"), str) else ""
        for key, one in value.items():
            yield from _faults(one, f"{place}{title}, {key}")
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for index, one in enumerate(value):
            yield from _faults(one, f"{place}[{index}]")
    else:
        try:
            json.dumps(value, allow_nan=False, default=_plain)
        except (ValueError, TypeError):
            yield f"{place}: {value!r}"


def find(results: Path, file: str, entry: str = "") -> list[Path]:
    """The files of that name below a results folder, in order of entry names.

    Parameters
    ----------
    results
        A results folder, or one entry's folder in it.
    entry
        The one entry that is wanted, or all.

    Raises
    ------
    ManifestError
        Where there is none, listing the entries that there are.
    """
    own = results / file
    found = {results.resolve().name: own} if own.is_file() else {}
    found |= {path.parent.name: path for path in sorted(results.glob(f"*/{file}"))}
    chosen = [path for name, path in found.items() if not entry or name == entry]
    if not chosen:
        raise ManifestError(
            Problem(
                f"no results of entry {entry!r}" if entry and found else "not a results folder",
                str(results),
                found=", ".join(found) or ("no such folder" if not results.is_dir() else f"no */{file}"),
                expected=f"a folder that `floorkit run` has written, with NAME/{file}",
                remedy="name one of the entries found" if found else "run `floorkit run` first",
            )
        )
    return chosen


def load(path: Path, form: str, kind: type[T]) -> T:
    """Read a file of the given format into the attrs class ``kind`` (whose first field is an Origin).

    Raises
    ------
    InputError
        Where the file is not JSON, of another format, or lacks something.
    """
    try:
        data = json.loads(path.read_bytes().decode("utf-8"))
    except (ValueError, OSError) as error:
        raise InputError(Problem("cannot be read as JSON", str(path), str(error))) from error
    found = data.get("format") if isinstance(data, dict) else None
    if found != form:
        raise InputError(
            Problem("unknown format", str(path), repr(found), repr(form), "run `floorkit run` again")
        )
    import cattrs
    from cattrs.errors import ClassValidationError

    names = [one.name for one in attrs.fields(Origin)]
    plain = {"origin": {name: data.get(name) for name in names}}
    plain |= {key: one for key, one in data.items() if key not in ("format", *names)}
    try:
        return cattrs.structure(plain, kind)
    except ClassValidationError as error:
        problems = [Problem(text, str(path)) for text in cattrs.transform_error(error, path="$")]
        raise InputError(problems) from error
