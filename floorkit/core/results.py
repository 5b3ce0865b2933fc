"""Writing results: everything into a new folder, then one exchange, so that a crash leaves the old whole.

RESULTS/index.json  report.html  NAME/summary.json, *.csv, provenance.json, statistics.json, ...
"""

from __future__ import annotations

import csv
import ctypes
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from attrs import asdict, frozen

import floorkit
from floorkit.core.errors import EvaluationError, InputError, ManifestError, Problem
from floorkit.core.paths import child
from floorkit.core.registry import core_source
from floorkit.core.sections import (
    FileSection,
    ImageSection,
    Section,
    SummarySection,
    TableSection,
    TextSection,
    to_json,
)
from floorkit.core.sources import hash_file
from floorkit.core.statistics_files import figure_to_plain
from floorkit.core.structure import unstructure
from floorkit.core.values import Comparison, Mark, Result

INDEX = "index.json"


@frozen(eq=False)
class Evaluated:
    """One evaluated entry, ready to be written: its result, sections, and the core's own files.

    ``files`` maps a name below the entry's folder to JSON-able data, or to text.
    """

    result: Result
    sections: tuple[Section, ...]
    files: Mapping[str, Any]


def check_output(output: Path) -> None:
    """Refuse to write over a folder that holds something else than floorkit's results.

    Raises
    ------
    ManifestError
    """
    if output.is_dir() and any(output.iterdir()) and not (output / INDEX).is_file():
        raise ManifestError(
            Problem(
                "the output folder holds something else than results of floorkit",
                str(output),
                f"no {INDEX} in it",
                "a new or empty folder, or earlier results",
                "choose another folder with --output",
            )
        )
    if output.exists() and not output.is_dir():
        raise ManifestError(Problem("the output is not a folder", str(output)))


def write(output: Path, evaluated: Sequence[Evaluated], pages: Mapping[str, str], keep: bool) -> None:
    """Write the results of a run, replacing earlier ones in one step.

    Parameters
    ----------
    output
        The results folder.
    evaluated
        The entries that were run.
    pages
        Further files at the top (``report.html``), name to text.
    keep
        Keep earlier entries that were not run this time (``--only``). Files that floorkit did not
        write are always kept.
    """
    check_output(output)
    output = output.resolve()  # the folder behind a link is exchanged, and the link stays
    output.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{output.name}-", dir=output.parent))
    try:
        staging.chmod(0o777 & ~_umask())
        entries = _old_entries(output)
        _carry_over(output, staging, entries, keep, {one.result.context.name for one in evaluated}, pages)
        index = {name: entry for name, entry in entries.items() if (staging / name).is_dir()}
        for one in evaluated:
            name = one.result.context.name
            _write_entry(staging / name, one)
            index[name] = _index_entry(one.result, staging / name)
        for name, text in pages.items():
            _write_text(staging / name, text)
        core = {"version": floorkit.__version__, "source": core_source()}
        _write_text(staging / INDEX, to_json({"floorkit": core, "entries": dict(sorted(index.items()))}))
        _exchange(staging, output)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def read_index(output: Path) -> dict[str, Any]:
    """index.json of a results folder.

    Raises
    ------
    InputError
        Where the folder holds no results.
    """
    path = output / INDEX
    try:
        index: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        index["entries"].items()
    except OSError as error:
        raise InputError(
            Problem(
                "not a results folder", str(output), error.strerror or str(error), f"a folder with {INDEX}"
            )
        ) from None
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise InputError(
            Problem("the index is damaged", str(path), str(error), "JSON as floorkit wrote it")
        ) from None
    return index


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _old_entries(output: Path) -> dict[str, Any]:
    entries: dict[str, Any] = read_index(output)["entries"] if (output / INDEX).is_file() else {}
    return entries


def _carry_over(
    output: Path,
    staging: Path,
    entries: Mapping[str, Any],
    keep: bool,
    run: set[str],
    pages: Mapping[str, str],
) -> None:
    for path in sorted(output.iterdir()) if output.is_dir() else ():
        ours = path.name in entries
        if path.name in {INDEX, *pages} or path.name in run or (ours and not keep):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, staging / path.name, symlinks=True, copy_function=_link)
        else:
            _link(path, staging / path.name)


def _link(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def _exchange(staging: Path, output: Path) -> None:
    """Put ``staging`` in the place of ``output`` in one step where the system can, else in two renames."""
    if not output.exists():
        staging.rename(output)
        return
    if _rename_exchange(staging, output):
        return
    old = output.with_name(f".{output.name}-old")
    shutil.rmtree(old, ignore_errors=True)
    output.rename(old)
    try:
        staging.rename(output)
    except OSError:
        old.rename(output)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _rename_exchange(one: Path, other: Path) -> bool:
    """Linux's renameat2 with RENAME_EXCHANGE; False where the system or file system has none."""
    here, exchange = -100, 2
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    return bool(rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _write_entry(folder: Path, one: Evaluated) -> None:
    folder.mkdir()
    result = one.result
    _write_text(folder / "summary.json", to_json(summary(result, one.sections)))
    for name, data in one.files.items():
        _write_text(folder / name, data if isinstance(data, str) else to_json(data))
    for section in one.sections:
        file = getattr(section, "file", "")
        if not file:
            continue
        path = child(folder, file)
        if path.exists():
            raise EvaluationError(
                Problem("two report sections write one file", f"protocols.{result.context.name}", file)
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(section, TableSection):
            write_csv(path, section, result)
        elif isinstance(section, TextSection):
            _write_text(path, text_file(section, result))
        elif isinstance(section, ImageSection):
            path.write_bytes(section.data)
        elif isinstance(section, FileSection):
            if isinstance(section.data, bytes):
                path.write_bytes(section.data)
            else:
                _write_text(path, to_json({**_identity(result), **section.data}))


def mark_flags(result: Result) -> dict[str, bool | str]:
    """The marks as JSON and CSV show them: each declared one true or false, others with their text."""
    set_marks = {mark.name: mark for mark in result.marks}
    flags: dict[str, bool | str] = {name: name in set_marks for name in result.protocol.marks}
    for mark in result.marks:
        flags[mark.name] = True if mark.level == "warning" else mark.text
    return flags


def _identity(result: Result) -> dict[str, Any]:
    return {"signature": result.signature, **mark_flags(result)}


def summary(result: Result, sections: Iterable[Section]) -> dict[str, Any]:
    """What summary.json of an entry holds: identity, marks, figures of the protocol, statistics."""
    protocol = result.protocol
    data: dict[str, Any] = {
        **_identity(result),
        "name": result.context.name,
        "protocol": protocol.id,
        "title": protocol.title,
        "plugin": result.plugin,
        "version": result.version,
        "measures": protocol.measures,
        "caveats": list(protocol.caveats),
        "marks": [asdict(mark) for mark in result.marks],
        "params": unstructure(result.context.params),
        "seed": result.context.seed,
        "upstream": [asdict(reference) for reference in protocol.upstream],
        "notes": list(result.notes),
        "coverage": {name: asdict(run.coverage) for name, run in result.runs.items()},
        "operating_points": {
            name: [asdict(point) for point in run.points] for name, run in result.runs.items()
        },
        "headline": {
            name: [
                {
                    "key": figure.key,
                    **figure_to_plain(figure),
                    "interval": _interval(run.intervals.get(figure.key)),
                }
                for figure in run.figures
                if figure.headline
            ]
            for name, run in result.runs.items()
        },
        "comparisons": [_comparison(one) for one in result.comparisons],
        "controls": [_comparison(one) for one in result.controls],
    }
    for section in sections:
        if isinstance(section, SummarySection):
            twice = data.keys() & section.data.keys()
            if twice:
                raise EvaluationError(
                    Problem("a summary section repeats keys", result.protocol.id, ", ".join(sorted(twice)))
                )
            data.update(section.data)
    return data


def _interval(interval: Any) -> dict[str, Any] | None:
    return None if interval is None else asdict(interval)


def _comparison(one: Comparison) -> dict[str, Any]:
    return asdict(one)


def text_file(section: TextSection, result: Result) -> str:
    """A text file: marks, the text, the signature."""
    marks = "".join(f"{mark.name}: {mark.text}\n" for mark in result.marks if mark.level == "warning")
    body = section.text if section.text.endswith("\n") else section.text + "\n"
    return f"{marks}{body}\n{result.signature}\n"


def csv_columns(section: TableSection, result: Result) -> tuple[list[str], list[Any]]:
    """Column names of a CSV, and the values that the core adds to every row (marks and signature)."""
    names = [column.name for column in section.columns]
    added = {**mark_flags(result), "signature": result.signature}
    extra = {name: value for name, value in added.items() if name not in names}
    return [*names, *extra], list(extra.values())


def write_csv(path: Path, section: TableSection, result: Result) -> None:
    """Write a table's CSV row by row: full precision, an empty field for None."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        write_rows(stream, section, result)


def write_rows(stream: TextIO, section: TableSection, result: Result) -> None:
    names, extra = csv_columns(section, result)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    added = [_cell(value) for value in extra]
    writer.writerows([*map(_cell, row), *added] for row in section.iterate())


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


def to_csv_text(section: TableSection, result: Result) -> str:
    """The CSV as text."""
    stream = io.StringIO()
    write_rows(stream, section, result)
    return stream.getvalue()


def _index_entry(result: Result, folder: Path) -> dict[str, Any]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        "protocol": result.protocol.id,
        "plugin": result.plugin,
        "version": result.version,
        "signature": result.signature,
        "marks": [mark.name for mark in result.marks],
        "runs": list(result.runs),
        "files": {
            path.relative_to(folder).as_posix(): f"sha256:{hash_file(path)[0]}"
            for path in files
            if path.name != "provenance.json"
        },
    }


def changed_files(folder: Path, recorded: Mapping[str, str]) -> list[Problem]:
    """Result files of an entry that are missing or not as they were written."""
    problems: list[Problem] = []
    for name, source in recorded.items():
        try:
            found = f"sha256:{hash_file(child(folder, name))[0]}"
        except InputError as error:
            problems += error.problems
            continue
        if found != source:
            problems.append(Problem("result file changed", str(folder / name), found, source))
    return problems


def warning_marks(result: Result) -> list[Mark]:
    """The marks that a reader must see."""
    return [mark for mark in result.marks if mark.level == "warning"]
