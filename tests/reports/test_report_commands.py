"""`floorkit export` and `floorkit timelines` on a results folder."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from click.testing import CliRunner
from click.testing import Result as Outcome

from floorkit.core.errors import FloorkitError
from floorkit.core.sections import Section
from floorkit.core.values import Result
from floorkit.reports import tables_json, timelines_json
from floorkit.reports.commands import export_command, timelines_command

Make = Callable[..., tuple[Result, list[Section]]]


@pytest.fixture
def results(make_result: Make, tmp_path: Path) -> Path:
    """A results folder with the stored tables and timelines of two entries."""
    for name in ("demo", "other"):
        folder = tmp_path / "results" / name
        folder.mkdir(parents=True)
        made = make_result(name, events=9)
        (folder / tables_json.FILE).write_text(tables_json.write_tables(*made), encoding="utf-8")
        (folder / timelines_json.FILE).write_text(timelines_json.write_timelines(*made), encoding="utf-8")
    return tmp_path / "results"


def export(*arguments: str | Path) -> Outcome:
    return CliRunner().invoke(export_command, [str(one) for one in arguments])


def timelines(*arguments: str | Path) -> Outcome:
    return CliRunner().invoke(timelines_command, [str(one) for one in arguments])


def test_one_table_is_printed_as_csv(results: Path) -> None:
    done = export(results, "--format", "csv", "--entry", "demo", "--table", "Recall by horizon")
    assert done.exit_code == 0
    rows = list(csv.DictReader(io.StringIO(done.output)))
    assert [row["run"] for row in rows] == ["baseline", "model", "model", "control:noise"]
    assert rows[1]["recall"] == repr(1 / 3)


def test_a_table_is_named_by_number_title_part_or_file(results: Path) -> None:
    arguments = (results, "--format", "csv", "--entry", "demo", "--table")
    listing = export(results, "--format", "csv", "--entry", "demo", "--list").output
    (number,) = [line.split()[0] for line in listing.splitlines() if "Recall by horizon" in line]
    outputs = {export(*arguments, name).output for name in (number, "recall BY", "summary_recall.csv")}
    assert outputs == {export(*arguments, "Recall by horizon").output}


def test_an_unknown_table_lists_those_that_there_are(results: Path) -> None:
    done = export(results, "--format", "latex", "--table", "nonsense")
    assert isinstance(done.exception, FloorkitError)
    assert done.exception.exit_code == 2
    assert "'demo: Recall by horizon'" in str(done.exception)


def test_several_tables_do_not_go_into_one_csv(results: Path) -> None:
    done = export(results, "--format", "csv")
    assert isinstance(done.exception, FloorkitError)
    assert "--output" in str(done.exception)


def test_all_tables_go_into_a_folder(results: Path, tmp_path: Path) -> None:
    done = export(results, "--format", "markdown", "--output", tmp_path / "out")
    assert done.exit_code == 0
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert len(written) == 14
    assert "demo_Recall_by_horizon.md" in written
    assert sorted(done.output.split()) == [str(tmp_path / "out" / name) for name in written]


def test_timelines_go_into_a_folder_an_entry_with_their_signature(results: Path, tmp_path: Path) -> None:
    done = timelines(results, "--format", "textgrid", "--output", tmp_path / "out")
    assert done.exit_code == 0, done.exception
    written = sorted(path.name for path in (tmp_path / "out" / "demo").iterdir())
    assert written == [*(f"Session_{number}.TextGrid" for number in range(4)), "signature.txt"]
    text = (tmp_path / "out" / "demo" / "signature.txt").read_text(encoding="utf-8")
    assert text.splitlines()[0].startswith("demo_protocol@1.2.0 src:")
    assert "exploratory: Thresholds were chosen on the evaluated sessions." in text
    assert "9 of 5000 events" in text


def test_timelines_of_one_run_and_unit(results: Path, tmp_path: Path) -> None:
    arguments = ("--run", "model", "--unit", "Session_1", "--entry", "demo")
    done = timelines(results, "--format", "audacity", "--output", tmp_path / "out", *arguments)
    assert done.exit_code == 0, done.exception
    names = {path.name for path in (tmp_path / "out" / "demo").iterdir()}
    assert "Session_1.model_decisions.txt" in names
    assert not any("baseline" in name or "Session_2" in name for name in names)


def test_points_that_rttm_cannot_hold_are_counted(results: Path, tmp_path: Path) -> None:
    done = timelines(results, "--format", "rttm", "--output", tmp_path / "out", "--entry", "demo")
    assert "points left out" in done.output


def test_unknown_runs_and_units_are_told_together(results: Path, tmp_path: Path) -> None:
    done = timelines(results, "--format", "rttm", "--output", tmp_path, "--run", "modle", "--run", "x")
    assert isinstance(done.exception, FloorkitError)
    assert "'modle'" in str(done.exception)
    assert "'x'" in str(done.exception)
    assert "baseline, model" in str(done.exception)


def test_tables_of_a_real_run_are_exported_by_the_command_line(
    floorkit: Callable[..., CompletedProcess[str]], toy_data: Path
) -> None:
    done = floorkit("run", toy_data / "protocols.toml", "--output", toy_data / "results", "--quiet")
    assert done.returncode == 0, done.stderr
    page = (toy_data / "results" / "report.html").read_text(encoding="utf-8")
    done = floorkit("export", toy_data / "results", "--format", "csv", "--table", "Headline figures")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {"a", "b"} <= {row["run"] for row in rows}
    assert rows[0]["signature"] in page
    done = floorkit("export", toy_data, "--format", "csv")
    assert done.returncode == 2
    assert "not a results folder" in done.stderr
