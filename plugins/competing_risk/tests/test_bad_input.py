"""Bad input: one fault a folder (bad/bad.json). Each stops before a result is written and names its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BAD = Path(__file__).parent / "bad"
GOLDEN = Path(__file__).parent / "golden"
FOLDERS = json.loads((BAD / "bad.json").read_text(encoding="utf-8"))

EARLIER = ("index.json", "case/summary.json")

RunCase = Callable[..., Any]
Entry = dict[str, Any]


def results_before(folder: Path) -> None:
    """Earlier results, as they must still stand afterwards."""
    (folder / "results" / "case").mkdir(parents=True)
    for name in EARLIER:
        (folder / "results" / name).write_text(f"before: {name}", encoding="utf-8")


def check_results_untouched(outcome: Any) -> None:
    folder = outcome.results.parent
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == set(EARLIER)
    for name in EARLIER:
        assert (folder / name).read_text(encoding="utf-8") == f"before: {name}"


def test_there_are_bad_folders() -> None:
    assert len(FOLDERS) == 25


@pytest.mark.parametrize("fault", FOLDERS, ids=lambda fault: fault["path"])
@pytest.mark.parametrize("command", ["run", "check"])
def test_bad_input_is_refused_with_its_place(fault: dict[str, Any], command: str, run_case: RunCase) -> None:
    outcome = run_case(BAD / fault["path"], edit=results_before, command=command)
    assert outcome.code == (2 if fault["path"] == "pause_no_whole_rows" else 4), outcome.err
    for spellings in fault["must_name"]:
        assert any(text in outcome.err for text in spellings.split("|")), (spellings, outcome.err)
    assert "Traceback" not in outcome.err
    check_results_untouched(outcome)


def test_a_source_indexed_prediction_is_told_with_the_conversion_command(run_case: RunCase) -> None:
    outcome = run_case(BAD / "pred_source_indexed", process=True)
    assert outcome.code == 4
    assert "floorkit convert egospeak --prediction-root" in outcome.err
    assert "--sessions Session_5" in outcome.err


def test_every_problem_of_every_file_is_told_at_once(run_case: RunCase) -> None:
    def spoil(folder: Path) -> None:
        results_before(folder)
        (folder / "targets/Session_1.recordings.json").write_text("[0, 5, 5, 1000000]", encoding="utf-8")
        (folder / "runs/model/pred/Session_3.npy").write_bytes(b"no array")
        (folder / "runs/model/valid/Session_12.npy").unlink()
        (folder / "runs/model/pred/Session_12.npy").unlink()

    outcome = run_case(GOLDEN / "basic", edit=spoil, command="check")
    assert outcome.code == 4
    for place in ("index 2 is not above", "1000000", "pred/Session_3.npy", "Session_12 (calibration)"):
        assert place in outcome.err, place


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (
            {"params": {"headline_horizon_seconds": 2.2}},
            2,
            ["headline_horizon_seconds", "2.2", "at most 2.0 s"],
        ),
        ({"params": {"window": "open"}}, 2, ["window", "'open'", "'observable', 'full'"]),
        ({"params": {"matched_recalls": [0.8, 1.2]}}, 2, ["matched_recalls", "1.2", "at most 1"]),
        ({"params": {"comon_support": True}}, 2, ["comon_support", "did you mean 'common_support'?"]),
        ({"dataset": {"wearer": "x"}}, 2, ["dataset.wearer", "rttm"]),
        ({"dataset": {"format": "wav"}}, 2, ["dataset.format", "'wav'"]),
        ({"dataset": {"sessions": ["../Session_3"]}}, 2, ["'../Session_3'"]),
        ({"dataset": {"strata": "none.csv"}}, 4, ["none.csv"]),
        ({"dataset": {"calibration_sessions": []}}, 4, ["calibration_sessions", "Session_3, Session_1"]),
        ({"dataset": {"calibration_sessions": ["Session_1"]}}, 4, ["Session_1 in both"]),
        ({"runs": {"model": {"path": "runs/model", "calibration": "runs/none"}}}, 4, ["runs/none/pred"]),
    ],
)
def test_a_wrong_manifest_names_the_key(
    change: dict[str, Entry], code: int, words: list[str], run_case: RunCase
) -> None:
    def edit(entry: Entry) -> None:
        for key, value in change.items():
            entry[key].update(value)

    outcome = run_case(GOLDEN / "basic", change=edit, edit=results_before)
    assert outcome.code == code, outcome.err
    for text in words:
        assert text in outcome.err, (text, outcome.err)
    check_results_untouched(outcome)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("session,start_row,stop_row\n", ["strata.csv:1", "session,start_row,stop_row,stratum"]),
        ("", ["strata.csv:1", "an empty file"]),
        ("session,start_row,stop_row,stratum\nSession_1,9,5,a\n", ["strata.csv:2", "9,5", "Session_1"]),
        ("session,start_row,stop_row,stratum\nSession_1,0.5,5,a\n", ["strata.csv:2", "0.5"]),
        ("session,start_row,stop_row,stratum\nSession_1,1,5\n", ["strata.csv:2", "number of fields"]),
        ("session,start_row,stop_row,stratum\nSession_1,1,5,all\n", ["strata.csv:2", "all"]),
        ("session,start_row,stop_row,stratum\nSession_1,1,99999,a\n", ["strata.csv:2", "99999"]),
        ("session,start_row,stop_row,stratum\nSesion_1,1,5,a\n", ["strata.csv:2", "Sesion_1", "misspelt"]),
    ],
)
def test_a_broken_strata_file_names_the_line(text: str, words: list[str], run_case: RunCase) -> None:
    def spoil(folder: Path) -> None:
        results_before(folder)
        (folder / "strata.csv").write_text(text, encoding="utf-8")

    outcome = run_case(GOLDEN / "strata", edit=spoil)
    assert outcome.code == 4
    for word in words:
        assert word in outcome.err, (word, outcome.err)
    check_results_untouched(outcome)
