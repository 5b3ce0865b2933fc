"""The reviews reader: every fault with its line, whatever the file; sound lines as columns."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floorkit.core.errors import InputError, Problem
from floorkit.formats import reviews
from floorkit.formats.reviews import Reviews, read_reviews, sound_reviews
from floorkit.formats.reviews_line import Demands

ENTRY: dict[str, Any] = {
    "event_id": "r1",
    "session": "S",
    "label": "WEARER_ENTRY",
    "origin": "raw_onset",
    "anchor_frame_20hz": 20,
    "reviewer": "human",
}
MINED: dict[str, Any] = {
    "event_id": "r2",
    "session": "S",
    "label": "ENTRY_HARD_NEGATIVE",
    "origin": "mined",
    "region_20hz": [8, 20],
    "reviewer": "human",
}
DEMANDS = Demands(rows={"S": 16})


def write(folder: Path, lines: Iterable[dict[str, Any] | str]) -> Path:
    path = folder / "reviews.jsonl"
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return path


def problems_of(
    folder: Path, lines: Iterable[dict[str, Any] | str], demands: Demands = DEMANDS
) -> tuple[Problem, ...]:
    return read_reviews(write(folder, lines), "reviews.jsonl", demands)[1]


@pytest.mark.parametrize(
    ("change", "what", "names"),
    [
        ({"anchor_frame_5hz": 5}, "unknown key 'anchor_frame_5hz'", "did you mean 'anchor_frame_20hz'?"),
        ({"label": "WEARER_EXIT"}, "unknown label", "'WEARER_EXIT'"),
        ({"label": None}, "unknown label", "None"),
        ({"label": ["INT_YIELD"]}, "unknown label", "['INT_YIELD']"),
        ({"origin": "guessed"}, "unknown origin", "'guessed'"),
        ({"reviewer": "llm"}, "unknown reviewer", "'llm'"),
        ({"event_id": ""}, "wrong event_id", "''"),
        ({"event_id": 7}, "wrong event_id", "7"),
        ({"event_id": "\ud800"}, "wrong event_id", "ud800"),
        ({"session": None}, "wrong session", "None"),
        ({"anchor_frame_20hz": -4}, "wrong anchor_frame_20hz", "-4"),
        ({"anchor_frame_20hz": 20.0}, "wrong anchor_frame_20hz", "20.0"),
        ({"anchor_frame_20hz": True}, "wrong anchor_frame_20hz", "True"),
        ({"anchor_frame_20hz": "20"}, "wrong anchor_frame_20hz", "'20'"),
        ({"anchor_frame_20hz": 10**30}, "wrong anchor_frame_20hz", "1000"),
        ({"anchor_frame_20hz": 64}, "anchor_frame_20hz past the session", "frames below 64"),
        ({"anchor_frame_20hz": None}, "missing anchor_frame_20hz", "WEARER_ENTRY"),
        ({"region_20hz": [20, 8]}, "reversed region_20hz", "[20, 8]"),
        ({"region_20hz": [8, 8]}, "empty region_20hz", "[8, 8]"),
        ({"region_20hz": [-1, 8]}, "wrong region_20hz", "[-1, 8]"),
        ({"region_20hz": [8]}, "wrong region_20hz", "[8]"),
        ({"region_20hz": {"start": 8}}, "wrong region_20hz", "start"),
        ({"region_20hz": [8, 65]}, "region_20hz past the session", "[8, 65]"),
        ({"boundary_correction_s": 0.1}, "wrong boundary_correction_s", "0.1"),
        ({"boundary_correction_s": False}, "wrong boundary_correction_s", "False"),
        ({"boundary_correction_s": float("nan")}, "wrong boundary_correction_s", "nan"),
        ({"note": 5}, "wrong note", "5"),
        (
            {"anchor_frame_20hz": 3, "boundary_correction_s": -0.2},
            "anchor_frame_20hz outside the session after correction",
            "rows -1 .. -1",
        ),
        (
            {"anchor_frame_20hz": 60, "boundary_correction_s": 0.2},
            "anchor_frame_20hz outside the session after correction",
            "rows 16 .. 16",
        ),
    ],
)
def test_a_fault_of_a_line_is_told_with_file_line_event_and_value(
    tmp_path: Path, change: dict[str, Any], what: str, names: str
) -> None:
    wrong = {key: value for key, value in (ENTRY | change).items() if value is not None or key != "note"}
    (problem,) = problems_of(tmp_path, [MINED, "", wrong])
    assert problem.what == what
    assert problem.where.startswith("reviews.jsonl:3")
    if isinstance(wrong["event_id"], str):
        assert f"(event {wrong['event_id']})" in problem.where
    assert names in f"{problem.found} {problem.expected} {problem.remedy}"


@pytest.mark.parametrize("key", ["event_id", "session", "label", "origin", "reviewer"])
def test_a_missing_key_is_a_fault(tmp_path: Path, key: str) -> None:
    line = {name: value for name, value in ENTRY.items() if name != key}
    (problem,) = problems_of(tmp_path, [line])
    assert problem.what == f"missing key {key!r}"


@pytest.mark.parametrize(
    "text",
    ['{"event_id": "r3", "sess', "[1, 2]", '"text"', "nonsense", "{} {}", "[" * 100_000],
)
def test_a_broken_line_is_told_with_its_number_and_does_not_hide_others(tmp_path: Path, text: str) -> None:
    broken, other = problems_of(tmp_path, [ENTRY, text, MINED | {"label": "X"}])
    assert (broken.what, broken.where) == ("broken line", "reviews.jsonl:2")
    assert other.where == "reviews.jsonl:3 (event r2)"


def test_a_broken_line_is_told_with_its_column(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, ['{"event_id": "a"'])
    assert problem.where == "reviews.jsonl:1"
    assert problem.found == "Expecting ',' delimiter at column 17"


def test_bytes_that_are_no_utf_8_are_a_broken_line(tmp_path: Path) -> None:
    path = tmp_path / "reviews.jsonl"
    path.write_bytes(json.dumps(ENTRY).encode() + b'\n{"event_id": "\xff"}\n')
    ((problem,)) = read_reviews(path, "reviews.jsonl", DEMANDS)[1]
    assert (problem.what, problem.where) == ("broken line", "reviews.jsonl:2")


def test_a_key_given_twice_is_a_fault(tmp_path: Path) -> None:
    text = json.dumps(ENTRY)[:-1] + ', "label": "EXCLUDED"}'
    (problem,) = problems_of(tmp_path, [text])
    assert (problem.what, problem.found) == ("key given twice", "'label'")


def test_a_line_of_a_megabyte_is_refused_without_being_parsed(tmp_path: Path) -> None:
    text = json.dumps(ENTRY | {"note": "x" * (1 << 20)})
    long, other = problems_of(tmp_path, [text, MINED | {"label": "X"}])
    assert (long.what, long.where) == ("line too long", "reviews.jsonl:1")
    assert other.where == "reviews.jsonl:2 (event r2)"


def test_duplicate_ids_are_told_with_both_lines_in_the_order_of_the_file(tmp_path: Path) -> None:
    faulty = MINED | {"event_id": "r1", "label": "X"}
    problems = problems_of(tmp_path, [ENTRY, faulty, MINED, ENTRY, MINED | {"session": "other"}])
    told = [(problem.where, problem.what) for problem in problems]
    assert told == [
        ("reviews.jsonl:2 (event r1)", "unknown label"),
        ("reviews.jsonl:2 (event r1)", "duplicate event_id"),
        ("reviews.jsonl:4 (event r1)", "duplicate event_id"),
        ("reviews.jsonl:5 (event r2)", "duplicate event_id"),
    ]
    assert "line 3" in problems[-1].found


def test_equal_hashes_alone_make_no_duplicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviews, "hash", lambda _: 5, raising=False)
    path = write(tmp_path, [ENTRY, MINED, ENTRY | {"event_id": "r3"}])
    assert read_reviews(path, "reviews.jsonl", DEMANDS)[1] == ()


def test_all_faults_are_counted_and_the_first_twenty_told_in_full(tmp_path: Path) -> None:
    lines = [ENTRY | {"event_id": f"m{number:03d}", "anchor_frame_20hz": -1} for number in range(120)]
    with pytest.raises(InputError) as caught:
        sound_reviews(write(tmp_path, lines), "reviews.jsonl", DEMANDS)
    assert len(set(caught.value.problems)) == 120
    text = str(caught.value)
    assert "(event m019)" in text
    assert "(event m020)" not in text
    assert text.count("found:") == 20
    assert text.endswith("... and 100 more (120 in all)")


def test_two_faults_of_one_line_are_both_told(tmp_path: Path) -> None:
    problems = problems_of(tmp_path, [ENTRY | {"origin": "x", "boundary_correction_s": 1, "extra": 0}])
    assert [problem.what for problem in problems] == [
        "unknown key 'extra'",
        "unknown origin",
        "wrong boundary_correction_s",
    ]


def test_a_hard_negative_needs_its_anchor_or_region_as_the_protocol_scores_it(tmp_path: Path) -> None:
    raw = {key: value for key, value in MINED.items() if key != "region_20hz"} | {"origin": "raw_onset"}
    assert [one.what for one in problems_of(tmp_path, [raw])] == ["missing anchor_frame_20hz"]
    anchored = raw | {"anchor_frame_20hz": 8}
    assert problems_of(tmp_path, [anchored]) == ()
    every = Demands(rows={"S": 16}, every_region=True)
    assert [one.what for one in problems_of(tmp_path, [anchored], every)] == ["missing region_20hz"]
    assert [one.what for one in problems_of(tmp_path, [raw], every)] == [
        "missing region_20hz",
        "missing anchor_frame_20hz",
    ]
    regioned = raw | {"region_20hz": [8, 20]}
    assert [one.what for one in problems_of(tmp_path, [regioned], every)] == ["missing anchor_frame_20hz"]
    mined = {key: value for key, value in MINED.items() if key != "region_20hz"}
    assert [one.what for one in problems_of(tmp_path, [mined])] == ["missing region_20hz"]


@pytest.mark.parametrize("label", ["EXCLUDED", "UNREVIEWED"])
def test_lines_that_never_score_need_no_place(tmp_path: Path, label: str) -> None:
    bare = {key: value for key, value in ENTRY.items() if key != "anchor_frame_20hz"} | {"label": label}
    assert problems_of(tmp_path, [bare]) == ()
    assert (
        problems_of(
            tmp_path, [ENTRY | {"label": label, "anchor_frame_20hz": 3, "boundary_correction_s": -0.2}]
        )
        == ()
    ), "a place that is not scored may leave the session after correction"
    (past,) = problems_of(tmp_path, [ENTRY | {"label": label, "anchor_frame_20hz": 64}])
    assert past.what == "anchor_frame_20hz past the session"


def test_only_the_scored_place_must_stay_inside_after_correction(tmp_path: Path) -> None:
    line = MINED | {"origin": "raw_onset", "anchor_frame_20hz": 0, "boundary_correction_s": -0.2}
    (by_anchor,) = problems_of(tmp_path, [line])
    assert by_anchor.what == "anchor_frame_20hz outside the session after correction"
    assert problems_of(tmp_path, [line], Demands(rows={"S": 16}, every_region=True)) == ()
    end = MINED | {"region_20hz": [40, 64], "boundary_correction_s": 0.2}
    (by_region,) = problems_of(tmp_path, [end])
    assert by_region.what == "region_20hz outside the session after correction"
    assert "rows 11 .. 16" in by_region.found


def test_lines_of_other_sessions_are_checked_for_form_alone(tmp_path: Path) -> None:
    far = ENTRY | {"session": "other", "anchor_frame_20hz": 10_000_000}
    assert problems_of(tmp_path, [far]) == ()
    assert len(problems_of(tmp_path, [far | {"label": "X"}, far | {"event_id": "b", "origin": "X"}])) == 2


def test_provisional_lines_are_faults_where_they_are_not_allowed(tmp_path: Path) -> None:
    line = ENTRY | {"reviewer": "llm_provisional", "session": "other"}
    assert problems_of(tmp_path, [line]) == ()
    demands = Demands(allow_provisional=False, provisional_remedy="review it")
    (problem,) = problems_of(tmp_path, [line], demands)
    assert "llm_provisional" in problem.found
    assert problem.remedy == "review it"


def test_gzip_byte_order_marks_windows_line_ends_and_blank_lines_are_read(tmp_path: Path) -> None:
    plain = sound_reviews(write(tmp_path, [ENTRY, MINED]), "r", DEMANDS)
    text = "\ufeff" + json.dumps(ENTRY) + "\r\n\r\n   \n" + json.dumps(MINED)
    path = tmp_path / "other.jsonl.gz"
    path.write_bytes(gzip.compress(text.encode("utf-8")))
    zipped = sound_reviews(path, "r", DEMANDS)
    assert zipped["line"].tolist() == [1, 4]
    assert zipped.event_ids() == plain.event_ids() == ["r1", "r2"]
    for name in ("label", "origin", "anchor", "start", "stop", "correction"):
        assert zipped[name].tolist() == plain[name].tolist()


def test_an_archive_that_is_cut_off_is_a_fault_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "reviews.jsonl.gz"
    lines = "".join(json.dumps(ENTRY | {"event_id": f"e{i}"}) + "\n" for i in range(2000))
    path.write_bytes(gzip.compress(lines.encode())[:-400])
    problems = read_reviews(path, "reviews.jsonl.gz", DEMANDS)[1]
    assert [(one.what, one.where) for one in problems] == [("the file cannot be read", "reviews.jsonl.gz")]


def test_an_empty_file_has_no_line_and_no_fault(tmp_path: Path) -> None:
    found, problems = read_reviews(write(tmp_path, []), "r", DEMANDS)
    assert (len(found), problems, found.event_ids()) == (0, (), [])
    assert len(found.of_session("S")) == 0


def test_nulls_stand_for_keys_that_are_left_out(tmp_path: Path) -> None:
    found = sound_reviews(
        write(tmp_path, [ENTRY | {"region_20hz": None, "boundary_correction_s": None, "note": None}]),
        "r",
        DEMANDS,
    )
    assert (found["start"][0], found["correction"][0]) == (-1, 0)


@given(
    anchors=st.lists(
        st.tuples(st.integers(4, 59), st.sampled_from([-0.2, 0.0, 0.2]), st.integers(1, 20)),
        min_size=1,
        max_size=12,
    )
)
def test_rows_follow_the_frame_rule_of_plain_loops(
    tmp_path_factory: pytest.TempPathFactory, anchors: list[tuple[int, float, int]]
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    lines = [
        MINED
        | {
            "event_id": f"ä{i}",
            "session": f"S{i % 3}",
            "anchor_frame_20hz": frame,
            "region_20hz": [frame, frame + length],
            "boundary_correction_s": correction,
        }
        for i, (frame, correction, length) in enumerate(anchors)
    ]
    found = sound_reviews(write(folder, lines), "r", Demands())
    first, behind = found.region_rows
    for i, (frame, correction, length) in enumerate(anchors):
        shift = round(correction / 0.2)
        rows = sorted({f // 4 + shift for f in range(frame, frame + length)})
        assert list(range(first[i], behind[i])) == rows
        assert found.anchor_row[i] == frame // 4 + shift
    for session in ("S0", "S1", "S2"):
        part = found.of_session(session)
        mine = [i for i in range(len(lines)) if lines[i]["session"] == session]
        assert part.event_ids() == [f"ä{i}" for i in mine]
        assert part["anchor"].tolist() == [anchors[i][0] for i in mine]
        again = Reviews.of_columns(session, part.columns)
        assert again.event_ids() == part.event_ids()
        assert {again.session_name(i) for i in range(len(again))} <= {session}


def test_many_lines_cost_a_few_bytes_each(tmp_path: Path) -> None:
    count = 20_000
    lines = (ENTRY | {"event_id": f"e{i:06d}", "note": "x" * 200} for i in range(count))
    found = sound_reviews(write(tmp_path, lines), "r", DEMANDS)
    assert len(found) == count
    assert sum(column.nbytes for column in found.columns.values()) < 60 * count
    assert found.event_id(count - 1) == f"e{count - 1:06d}"
    assert np.array_equal(found["line"], np.arange(1, count + 1))


@pytest.mark.soak
def test_a_million_lines_are_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "million.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as stream:
        for number in range(1_000_000):
            stream.write(json.dumps(ENTRY | {"event_id": f"e{number:07d}", "note": "x" * 100}) + "\n")
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from floorkit.formats.reviews import sound_reviews\n"
        "from floorkit.formats.reviews_line import Demands\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "found = sound_reviews(Path(sys.argv[1]), 'million', Demands(rows={'S': 16}))\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(len(found), (after - before) // 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, encoding="utf-8", check=True
    )
    lines, megabytes = map(int, done.stdout.split())
    assert lines == 1_000_000
    assert megabytes < 250
