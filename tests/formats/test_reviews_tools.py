"""Mining candidates, agreement of reviewers and the candidate-recall audit, each against plain loops."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floorkit.core.errors import InputError, ManifestError
from floorkit.formats.dense import Targets
from floorkit.formats.reviews import Reviews, sound_reviews
from floorkit.formats.reviews_agreement import JUDGED, Resampling, agreement, candidate_recall, kappa_of
from floorkit.formats.reviews_line import Demands
from floorkit.formats.reviews_template import (
    Mining,
    candidates,
    natural_order,
    read_targets,
    write_lines,
)

HOW = Resampling(resamples=200)


def line(event_id: str, label: str, session: str = "S", **more: Any) -> dict[str, Any]:
    place = {"anchor_frame_20hz": 40, "region_20hz": [40, 60]}
    common = {"event_id": event_id, "session": session, "label": label, "origin": "raw_onset"}
    return {**common, "reviewer": "human", **place, **more}


def reviews_of(folder: Path, lines: Iterable[dict[str, Any]], name: str = "r.jsonl") -> Reviews:
    path = folder / name
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    return sound_reviews(path, name, Demands())


# --- mining -------------------------------------------------------------------------------------


def activity(wearer: str, others: str) -> np.ndarray[Any, Any]:
    lanes = np.array([[letter == "#" for letter in lane] for lane in (wearer, others)]).T
    return np.column_stack([~lanes.any(axis=1), lanes])


def mined(wearer: str, others: str, starts: tuple[int, ...] = (0,), **mining: int) -> list[tuple[str, Any]]:
    targets = Targets("S", activity(wearer, others), np.array(starts))
    return [
        (one["event_id"].removeprefix("S_")[:-7], one.get("anchor_frame_20hz", one.get("region_20hz")))
        for one in candidates(targets, Mining(**mining))
    ]


def test_onsets_and_offsets_of_the_wearer_are_anchored_at_the_first_frame_of_their_row() -> None:
    found = mined("..###.....", "..........")
    assert found == [("raw_onset", 8), ("raw_offset", 20)]


def test_recording_edges_make_no_candidate() -> None:
    assert mined("#####.....", "..........", starts=(0, 5)) == []


def test_silence_after_the_others_is_a_hard_negative_until_they_start_again() -> None:
    assert mined("............", "###....#####") == [("mined_entry", [12, 28])]
    assert mined("............", "###..#######") == [], "shorter than three rows"
    assert mined("." * 30, "###" + "." * 27) == [("mined_entry", [12, 52])], "at most ten rows"


def test_a_region_that_the_wearer_ends_is_no_hard_negative() -> None:
    assert mined("......######", "##..........") == [("raw_onset", 24)]
    assert mined("######......", "..##########") == [("raw_offset", 24)]


def test_going_on_while_the_others_start_is_a_hard_negative() -> None:
    assert mined("############", "....####....") == [("mined_int", [16, 32])]


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_mining_gives_what_plain_loops_give(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, 80))
    array = np.repeat(rng.random((40, 3)) < 0.5, 2, axis=0)[:rows]
    starts = np.array([0, *([rows // 2] if rows > 4 and seed % 2 else [])])
    targets = Targets("S", array, starts)
    expected = set()
    for start, stop in zip(starts, targets.stops, strict=True):
        w, o = array[start:stop, 1], array[start:stop, 2]
        for b in range(1, len(w)):
            if w[b] != w[b - 1]:
                expected.add((("raw_onset" if w[b] else "raw_offset"), 4 * (start + b), None))
            speaking = bool(o[b])
            if o[b] == o[b - 1] or w[b - 1] != speaking or w[b] != speaking:
                continue
            e = b
            while e < min(b + 10, len(w)) and w[e] == speaking and o[e] == o[b]:
                e += 1
            ended_by_wearer = e < min(b + 10, len(w)) and w[e] != speaking
            if e - b >= 3 and not ended_by_wearer:
                expected.add(("mined", 4 * (start + b), 4 * (start + e)))
    found = {
        (one["origin"], one.get("anchor_frame_20hz", one.get("region_20hz", [0])[0]))
        + ((one["region_20hz"][1],) if "region_20hz" in one else (None,))
        for one in candidates(targets, Mining())
    }
    assert found == expected


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
def test_a_template_is_a_sound_reviews_file_of_the_same_bytes_every_time(tmp_path: Path, name: str) -> None:
    array = np.repeat(np.random.default_rng(1).random((40, 3)) < 0.5, 4, axis=0)
    (tmp_path / "targets").mkdir()
    for session in ("S2", "S10"):
        np.save(tmp_path / "targets" / f"{session}.npy", array)
    written = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        lines = (
            one for t in read_targets(tmp_path / "targets", ()) for one in candidates(t, Mining(shortest=1))
        )
        count = write_lines(tmp_path / folder / name, lines, replace=False)
        written.append((tmp_path / folder / name).read_bytes())
    assert written[0] == written[1]
    found = sound_reviews(tmp_path / "a" / name, name, Demands(rows={"S2": 160, "S10": 160}))
    assert len(found) == count > 20
    assert found.sessions == ("S2", "S10")
    assert not found.scored.any()


def test_a_file_that_may_hold_reviews_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "reviews.jsonl"
    path.write_text("precious\n", encoding="utf-8")
    with pytest.raises(ManifestError, match="exists"):
        write_lines(path, iter([]), replace=False)
    assert path.read_text(encoding="utf-8") == "precious\n"
    assert write_lines(path, iter([{"a": 1}]), replace=True) == 1


def test_a_failure_while_writing_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "reviews.jsonl"
    path.write_text("precious\n", encoding="utf-8")

    def lines() -> Any:
        yield {"a": 1}
        raise InputError("broken targets")

    with pytest.raises(InputError):
        write_lines(path, lines(), replace=True)
    assert [one.name for one in tmp_path.iterdir()] == ["reviews.jsonl"]
    assert path.read_text(encoding="utf-8") == "precious\n"


def test_sessions_are_listed_by_their_numbers() -> None:
    names = ["Session_12", "Session_2", "Session_1", "b", "10", "9"]
    assert sorted(names, key=natural_order) == ["9", "10", "Session_1", "Session_2", "Session_12", "b"]


# --- agreement ----------------------------------------------------------------------------------


def test_kappa_is_that_of_a_worked_example() -> None:
    # Two raters, 50 proposals: 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: p_o 0.7, p_e 0.5, kappa 0.4.
    share, kappa = kappa_of(np.array([[20, 5], [10, 15]]))
    assert float(share) == pytest.approx(0.7)
    assert float(kappa) == pytest.approx(0.4)


@settings(max_examples=50, deadline=None)
@given(labels=st.lists(st.tuples(st.sampled_from(JUDGED), st.sampled_from(JUDGED)), min_size=1, max_size=30))
def test_agreement_gives_what_plain_counting_gives(
    tmp_path_factory: pytest.TempPathFactory, labels: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("agreement")
    a = reviews_of(folder, [line(f"e{i}", one, f"S{i % 3}") for i, (one, _) in enumerate(labels)], "a")
    b = reviews_of(folder, [line(f"e{i}", two, f"S{i % 3}") for i, (_, two) in enumerate(labels)][::-1], "b")
    found = agreement(a, b, HOW)
    n = len(labels)
    assert found.matrix.sum() == n
    for i, j in itertools.product(range(5), range(5)):
        assert found.matrix[i, j] == labels.count((JUDGED[i], JUDGED[j]))
    same = sum(one == two for one, two in labels)
    assert found.agreement == pytest.approx(same / n)
    assert len(found.disagreements) == n - same
    chance = sum(
        sum(one == label for one, _ in labels) * sum(two == label for _, two in labels) for label in JUDGED
    )
    if chance == n * n:
        assert found.kappa is None
        assert found.reason == "only one label"
    else:
        assert found.kappa == pytest.approx((same / n - chance / n**2) / (1 - chance / n**2))


def test_events_without_two_judgements_are_counted_and_take_no_part(tmp_path: Path) -> None:
    a = reviews_of(tmp_path, [line("x", "EXCLUDED"), line("y", "UNREVIEWED"), line("z", "INT_YIELD")], "a")
    other = [line("x", "EXCLUDED", boundary_correction_s=0.2), line("y", "EXCLUDED"), line("q", "EXCLUDED")]
    found = agreement(a, reviews_of(tmp_path, other, "b"), HOW)
    assert (int(found.matrix.sum()), found.unreviewed, found.only_a, found.only_b) == (1, 1, 1, 1)
    assert found.corrections == 1
    assert found.kappa_interval.reason == "fewer than two sessions"


def test_the_interval_resamples_whole_sessions(tmp_path: Path) -> None:
    labels = ["WEARER_ENTRY", "ENTRY_HARD_NEGATIVE"] * 10
    lines = [line(f"e{s}{i}", label, f"S{s}") for s in range(9) for i, label in enumerate(labels)]
    flipped = [
        one | {"label": labels[(int(one["event_id"][2:]) + (one["session"] < "S4")) % 2]} for one in lines
    ]
    a, b = reviews_of(tmp_path, lines, "a"), reviews_of(tmp_path, flipped, "b")
    by_session = agreement(a, b, HOW).kappa_interval
    by_event = agreement(a, b, Resampling("event", 200)).kappa_interval
    assert by_session.low is not None
    assert by_session.high is not None
    assert by_event.low is not None
    assert by_event.high is not None
    assert by_session.high - by_session.low > 2 * (by_event.high - by_event.low)
    assert agreement(a, b, HOW).kappa_interval == by_session, "seeded"


def test_files_of_other_events_are_not_compared(tmp_path: Path) -> None:
    a, b = reviews_of(tmp_path, [line("x", "EXCLUDED")]), reviews_of(tmp_path, [line("y", "EXCLUDED")], "b")
    with pytest.raises(InputError, match="share no event_id"):
        agreement(a, b, HOW)
    moved = reviews_of(tmp_path, [line("x", "EXCLUDED", "T")], "c")
    with pytest.raises(InputError, match="event x lies in two sessions"):
        agreement(a, moved, HOW)


# --- candidate recall ---------------------------------------------------------------------------


def test_an_event_is_contained_at_four_frames_and_not_at_five(tmp_path: Path) -> None:
    known = reviews_of(tmp_path, [line("c", "UNREVIEWED", anchor_frame_20hz=100)], "c")
    for frame, found in ((104, 1), (96, 1), (105, 0), (95, 0)):
        events = reviews_of(tmp_path, [line("e", "WEARER_ENTRY", anchor_frame_20hz=frame)], "e")
        entry, yields = candidate_recall(known, events, 4, HOW)
        assert (entry.family, entry.found, entry.events) == ("entry", found, 1)
        assert (yields.family, yields.events, yields.recall) == ("int", 0, None)
    assert entry.missed[0].nearest_s == pytest.approx(0.25)


def test_a_candidate_of_the_other_family_contains_no_event_and_a_mined_one_of_unknown_family_any(
    tmp_path: Path,
) -> None:
    events = reviews_of(tmp_path, [line("e", "INT_YIELD", origin="raw_offset")], "e")
    for changes, found in (
        ({"label": "UNREVIEWED", "origin": "raw_onset"}, 0),
        ({"label": "UNREVIEWED", "origin": "raw_offset"}, 1),
        ({"label": "EXCLUDED", "origin": "mined"}, 1),
        ({"label": "INT_HARD_NEGATIVE", "origin": "raw_onset"}, 1),
        ({"label": "WEARER_ENTRY", "origin": "raw_offset"}, 0),
        ({"label": "UNREVIEWED", "origin": "mined", "anchor_frame_20hz": None}, 0),
        ({"label": "INT_YIELD", "origin": "raw_offset", "session": "T"}, 0),
    ):
        known = reviews_of(tmp_path, [line("c", "EXCLUDED") | changes], "c")
        assert candidate_recall(known, events, 4, HOW)[1].found == found, changes


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_candidate_recall_gives_what_plain_loops_give(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    rng, folder = np.random.default_rng(seed), tmp_path_factory.mktemp("recall")

    def some(kind: str, count: int) -> list[dict[str, Any]]:
        return [
            line(
                f"{kind}{i}",
                str(rng.choice(["WEARER_ENTRY", "INT_YIELD"])),
                f"S{rng.integers(3)}",
                anchor_frame_20hz=int(rng.integers(4, 100)),
                boundary_correction_s=float(rng.choice([-0.2, 0.0, 0.2])),
            )
            for i in range(count)
        ]

    known, events = some("c", int(rng.integers(1, 9))), some("e", int(rng.integers(1, 20)))
    found = candidate_recall(reviews_of(folder, known, "c"), reviews_of(folder, events, "e"), 4, HOW)
    for one, label in zip(found, ("WEARER_ENTRY", "INT_YIELD"), strict=True):
        mine = [event for event in events if event["label"] == label]
        hits = [
            any(
                candidate["session"] == event["session"]
                and candidate["label"] == label
                and abs(
                    candidate["anchor_frame_20hz"]
                    - event["anchor_frame_20hz"]
                    - round(20 * event["boundary_correction_s"])
                )
                <= 4
                for candidate in known
            )
            for event in mine
        ]
        assert (one.found, one.events) == (sum(hits), len(mine))
        missed = [event["event_id"] for event, hit in zip(mine, hits, strict=True) if not hit]
        assert [miss.event_id for miss in one.missed] == missed
