"""Invalid files: taken as the official code takes them, or stricter where that converts; places are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from floorkit_turnbench.checking import check_file
from floorkit_turnbench.probabilities import read_probabilities
from floorkit_turnbench.submission import read_submission

from floorkit.core.errors import InputError, Problem

BAD = Path(__file__).parent / "golden" / "bad"
DURATIONS = json.loads((BAD / "durations.json").read_text(encoding="utf-8"))["durations"]
RESULTS: list[dict[str, Any]] = json.loads((BAD / "results.json").read_text(encoding="utf-8"))

STRICTER = {
    "04_schema_version_true.json",
    "29_string_times.json",
    "30_spaced_string.json",
    "31_underscore_string.json",
    "32_bool_times.json",
    "p08_string.json",
    "p09_bool.json",
    "p15_rate_string.json",
}
"""Files whose strings and booleans the official parser takes for numbers; here they are rejected."""

PLACES = {
    "01_schema_version_2.json": ["schema_version"],
    "06_unknown_top_key.json": ["'model'"],
    "07_unknown_entry_key.json": ["predictions[0]", "'note'"],
    "08_unknown_speaker_key.json": ["conversation 1, speaker_1", "'backchannel'"],
    "09_extra_speaker.json": ["predictions[0]", "'speaker_3'"],
    "10_missing_speaker.json": ["predictions[0]", "'speaker_2'"],
    "11_missing_list.json": ["conversation 1, speaker_1", "'interruption'"],
    "12_missing_conversation.json": ["missing conversation '2'"],
    "13_unknown_conversation.json": ["predictions[2]", "'99'"],
    "14_duplicate_conversation.json": ["predictions[2]", "'1' stands twice"],
    "15_integer_id.json": ["predictions[0]", "conversation_id is no string"],
    "16_padded_id.json": ["unknown conversation '01'"],
    "17_unsorted.json": ["conversation 1, speaker_1, eot[1]", "1.5 after 4.25"],
    "18_equal.json": ["conversation 1, speaker_1, eot[1]", "1.5 after 1.5"],
    "19_negative.json": ["conversation 1, speaker_1, eot[0]", "-0.1"],
    "21_nan_literal.json": ["conversation 1, speaker_1, eot[0]", "NaN"],
    "22_infinity_literal.json": ["conversation 1, speaker_1, eot[1]"],
    "23_overflow_1e400.json": ["conversation 1, speaker_1, eot[1]"],
    "24_nan_string.json": ["conversation 1, speaker_1, eot[0]", '"NaN"'],
    "26_past_end.json": ["conversation 1, speaker_1, eot[1]", "30.001", "30.0"],
    "28_one_ulp_past_end.json": ["conversation 1, speaker_1, eot[1]", "30.000000000000004"],
    "29_string_times.json": ["conversation 1, speaker_1, eot[0]", "conversation 1, speaker_1, eot[1]"],
    "32_bool_times.json": ["conversation 1, speaker_1, eot[0]", "conversation 1, speaker_1, eot[1]"],
    "34_big_integer_time.json": ["conversation 1, speaker_1, eot[0]", "400 characters"],
    "35_null_list.json": ["conversation 1, speaker_1, eot"],
    "36_null_time.json": ["conversation 1, speaker_1, eot[1]", "null"],
    "39_nested_list.json": ["conversation 1, speaker_1, eot[0]"],
    "45_truncated.json": [":1:147"],
    "48_utf16.json": ["position 0", "UTF-8"],
    "52_huge_nesting.json": ["nested"],
    "55_invalid_utf8.json": ["0xe9", "position 27"],
    "p01_one_frame_short.json": ["conversation 1, speaker_1, prob", "374", "375"],
    "p02_one_frame_long.json": ["conversation 2, speaker_2, prob", "257", "256"],
    "p03_above_one.json": ["conversation 1, speaker_1, prob[3]", "1.0000001"],
    "p06_nan.json": ["conversation 1, speaker_1, prob[0]"],
    "p07_null.json": ["conversation 1, speaker_1, prob[3]"],
    "p08_string.json": ["conversation 1, speaker_1, prob[3]"],
    "p11_task_unknown.json": ["task", '"interruption"'],
    "p14_rate_nan.json": ["frame_rate_hz"],
    "p17_missing_conversation.json": ["missing conversation '2'"],
    "p18_duplicate.json": ["probs[2]", "'1' stands twice"],
    "p19_extra_key.json": ["conversation 1, speaker_1", "'eot'"],
    "p20_predictions_file.json": ["'task'", "'frame_rate_hz'", "'probs'", "'predictions'"],
}


def problems_of(result: dict[str, Any]) -> list[Problem]:
    read: Any = read_submission if result["kind"] == "predictions" else read_probabilities
    try:
        read(BAD / result["file"], DURATIONS, result["file"])
    except InputError as error:
        return list(error.problems)
    return []


def test_the_whole_folder_is_tried() -> None:
    files = {path.name for path in BAD.glob("*.json")} - {"durations.json", "results.json"}
    assert {result["file"] for result in RESULTS} == files
    assert len(files) == 77


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: str(result["file"]))
def test_verdict_and_place(result: dict[str, Any]) -> None:
    problems = problems_of(result)
    accepted = result["accepted"] and result["file"] not in STRICTER
    assert bool(problems) != accepted
    text = "\n".join(str(problem) for problem in problems)
    for place in PLACES.get(result["file"], []):
        assert place in text
    for problem in problems:
        assert result["file"] in problem.where


def test_accepted_files_are_parsed_as_the_official_code_parses_them() -> None:
    for result in RESULTS:
        if result["parsed_as"] is None or result["file"] in STRICTER:
            continue
        submission = read_submission(BAD / result["file"], DURATIONS)
        assert str(submission.predictions["1"]["eot"][1].tolist()) == str(result["parsed_as"])


def test_check_tells_the_kind_of_a_file_by_its_keys() -> None:
    for result in RESULTS:
        checked = check_file(BAD / result["file"], DURATIONS)
        accepted = result["accepted"] and result["file"] not in STRICTER
        if result["file"] != "p20_predictions_file.json":  # sound, as the submission that it is
            assert bool(checked.problems) != accepted


def test_a_key_that_stands_twice_is_noted() -> None:
    (note,) = check_file(BAD / "51_duplicate_key.json", DURATIONS).notes
    assert "'eot' stands twice" in note


def test_every_problem_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "submission.json"
    path.write_text(
        json.dumps(
            {
                "schema_version": 3,
                "extra": 1,
                "predictions": [
                    {
                        "conversation_id": "1",
                        "speaker_1": {"eot": [5.0, "6", 4.0, True, 31.0], "interruption": None},
                        "speaker_2": {"eot": [], "interruption": [-1.0, 2.0]},
                    },
                    {"conversation_id": "7", "speaker_1": {}, "speaker_2": 3},
                ],
            }
        ),
        encoding="utf-8",
    )
    with pytest.raises(InputError) as caught:
        read_submission(path, DURATIONS, "s.json")
    wheres = [problem.where for problem in caught.value.problems]
    expected = [
        "s.json",
        "s.json: schema_version",
        "s.json: conversation 1, speaker_1, eot[1]",
        "s.json: conversation 1, speaker_1, eot[2]",
        "s.json: conversation 1, speaker_1, eot[3]",
        "s.json: conversation 1, speaker_1, eot[4]",
        "s.json: conversation 1, speaker_1, interruption",
        "s.json: conversation 1, speaker_2, interruption[0]",
        "s.json: conversation 7, speaker_1",
        "s.json: conversation 7, speaker_2",
        "s.json: predictions[1]",
    ]
    for where in expected:
        assert where in wheres
    assert any("missing conversation '2'" in problem.what for problem in caught.value.problems)


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbf" + b'{"schema_version":1,"task":"eot","frame_rate_hz":1,"probs":[]}',
        b'{"schema_version":1,"task":"eot","frame_rate_hz":0.1,"probs":[{"conversation_id":"1",'
        b'"speaker_1":{"prob":[[0.5],0.5,0.5]},"speaker_2":{"prob":[0,0,0]}}]}',
        b'{"schema_version":1,"task":"eot","frame_rate_hz":0.1,"probs":[{"conversation_id":1,'
        b'"speaker_1":{"prob":[0,0,0]},"speaker_2":{"prob":[0,0,0]}}]}',
    ],
    ids=["byte order mark", "list inside a list", "integer id"],
)
def test_what_the_fast_parser_would_take_is_rejected(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "probs.json"
    path.write_bytes(raw)
    with pytest.raises(InputError):
        read_probabilities(path, None)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.json"):
        read_submission(tmp_path / "nowhere.json", None)
