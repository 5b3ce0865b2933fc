"""tables.json and timelines.json: written, read back, and refused where they are broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from floorkit.core.errors import EvaluationError, InputError, ManifestError
from floorkit.core.sections import ColumnSpec, Section, TableSection, TimelineSection
from floorkit.core.values import Result
from floorkit.reports import stored, tables_json, timelines_json

Make = Callable[..., tuple[Result, list[Section]]]


def test_tables_come_back_with_values_as_recorded(make_result: Make, tmp_path: Path) -> None:
    result, sections = make_result()
    path = tmp_path / tables_json.FILE
    path.write_text(tables_json.write_tables(result, sections), encoding="utf-8")
    file = tables_json.read_tables(path)
    assert file.origin.signature == result.signature
    assert file.origin.flags == {"exploratory": True, "window": "full"}
    shown = next(one for one in sections if isinstance(one, TableSection) and one.shown)
    (table,) = [one for one in file.tables if one.title == shown.title]
    assert list(table.rows) == list(shown.iterate())
    assert list(table.columns) == list(shown.columns)
    assert "Every event" not in [one.title for one in file.tables], "tables that are not shown stay out"


def test_numpy_values_are_stored_as_plain_ones(make_result: Make, tmp_path: Path) -> None:
    result, _ = make_result()
    rows = [(np.int64(3), np.float32(0.5), np.bool_(True))]
    table = TableSection("Typed", [ColumnSpec("a"), ColumnSpec("b"), ColumnSpec("c")], rows)
    data = json.loads(tables_json.write_tables(result, [table]))
    assert data["tables"][-1]["rows"] == [[3, 0.5, True]]


def test_a_value_that_is_not_finite_is_refused_with_its_place(make_result: Make) -> None:
    result, _ = make_result()
    table = TableSection("Broken", [ColumnSpec("a"), ColumnSpec("b")], [(1, 2.0), (1, float("nan"))])
    with pytest.raises(EvaluationError, match=r"entry demo.*'Broken'.*rows\[1\]\[1\]: nan"):
        tables_json.write_tables(result, [table])


def test_timelines_come_back_as_they_were(make_result: Make, tmp_path: Path) -> None:
    result, sections = make_result()
    path = tmp_path / timelines_json.FILE
    path.write_text(timelines_json.write_timelines(result, sections), encoding="utf-8")
    (section,) = timelines_json.read_timelines(path).sections
    (original,) = [one for one in sections if isinstance(one, TimelineSection)]
    assert (section.title, section.total) == (original.title, original.total)
    for found, wanted in zip(section.events, original.events, strict=True):
        assert timelines_json.plain_event(found)["facts"] == wanted.facts
        assert (found.id, found.window, found.score, found.triggered) == (
            wanted.id,
            wanted.window,
            wanted.score,
            wanted.triggered,
        )
        assert [list(lane.intervals) for lane in found.lanes] == [
            list(lane.intervals) for lane in wanted.lanes
        ]
        assert [list(lane.path) for lane in found.lanes] == [list(lane.path) for lane in wanted.lanes]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "{", "cannot be read as JSON"),
        (lambda text: text.replace("floorkit tables 1", "floorkit tables 9"), "unknown format"),
        (lambda text: text.replace('"rows"', '"rwos"'), "rows"),
    ],
)
def test_a_broken_file_is_named(
    change: Callable[[str], str], message: str, make_result: Make, tmp_path: Path
) -> None:
    path = tmp_path / tables_json.FILE
    path.write_text(change(tables_json.write_tables(*make_result())), encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        tables_json.read_tables(path)
    assert str(path) in str(caught.value)


def test_files_are_found_in_a_results_folder_and_in_an_entry_folder(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tables.json").touch()
    assert [path.parent.name for path in stored.find(tmp_path, "tables.json")] == ["a", "b"]
    assert stored.find(tmp_path / "a", "tables.json") == [tmp_path / "a" / "tables.json"]
    assert stored.find(tmp_path, "tables.json", "b") == [tmp_path / "b" / "tables.json"]


def test_a_missing_entry_lists_those_that_there_are(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "tables.json").touch()
    with pytest.raises(ManifestError, match=r"no results of entry 'dmeo'(.|\n)*demo"):
        stored.find(tmp_path, "tables.json", "dmeo")
    with pytest.raises(ManifestError, match=r"not a results folder(.|\n)*no such folder"):
        stored.find(tmp_path / "nowhere", "tables.json")
