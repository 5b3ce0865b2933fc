"""Timeline exports, read back by readers that are not ours: praatio, pympi, crowsetta, rttm-manager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floorkit.core.sections import Lane, Section, TimelineEvent, TimelineSection
from floorkit.core.values import Result
from floorkit.reports.timeline_formats import POINT_MS, Tier, audacity_labels, distinct, eaf, rttm, textgrid
from floorkit.reports.timelines import Format, tiers, timeline_files

Make = Callable[..., tuple[Result, list[Section]]]

SPEECH = Tier(
    "wearer", [(0, 1_200_000, 'she said "no"'), (1_200_000, 2_000_000, "b"), (1_500_000, 3_000_001, "c")]
)
ANCHORS = Tier(
    "anchor", [(1_200_000, 1_200_000, "e1"), (1_200_000, 1_200_000, "e2"), (2_500_000, 2_500_000, "e3")]
)


def event(name: str, anchor: float, run: str = "model", **more: object) -> TimelineEvent:
    fields: dict[str, object] = {
        "id": name,
        "unit": "Session 1",
        "run": run,
        "kind": "response",
        "status": "positive",
        "anchor_s": anchor,
        "start_s": anchor,
        "stop_s": anchor + 2.0,
        "triggered": True,
        "score": 0.75,
        "window": (anchor, anchor + 1.0),
    }
    return TimelineEvent(**(fields | more))  # type: ignore[arg-type]


def by_name(made: list[Tier]) -> dict[str, list[tuple[int, int, str]]]:
    return {tier.name: tier.spans for tier in made}


def test_overlapping_excerpts_of_a_lane_are_joined_and_nothing_else_is() -> None:
    first = [Lane("wearer", [(0.0, 1.0, "x"), (1.0, 2.0, "x"), (4.0, 5.0, "x")])]
    second = [Lane("wearer", [(4.5, 6.0, "x"), (5.0, 6.0, "y")])]
    found = by_name(tiers([event("a", 1.0, lanes=first), event("b", 5.0, lanes=second)]))
    assert found["wearer"] == [
        (0, 1_000_000, "x"),
        (1_000_000, 2_000_000, "x"),
        (4_000_000, 6_000_000, "x"),
        (5_000_000, 6_000_000, "y"),
    ]


def test_what_a_run_did_stands_in_tiers_of_the_run_and_events_only_once() -> None:
    lanes = [
        Lane("vad", [(0.0, 1.0, "on")], role="prediction"),
        Lane("gold", [(0.0, 1.0, "on")], role="gold"),
    ]
    events = [event("a", 1.0, run, lanes=lanes, competing_s=2.2, outcome_s=1.4) for run in ("m1", "m2", "m2")]
    found = by_name(tiers(events))
    assert found["response events"] == [(1_000_000, 2_000_000, "a: positive")]
    assert found["response anchor"] == [(1_000_000, 1_000_000, "a")]
    assert found["response competing boundary"] == [(2_200_000, 2_200_000, "a")]
    assert found["response outcome"] == [(1_400_000, 1_400_000, "a")]
    assert found["m2 decisions"] == [(1_000_000, 2_000_000, "a: triggered, score 0.75")]
    assert set(found) >= {"m1: vad", "m2: vad", "gold"}


def test_textgrid_is_read_back_by_praatio(tmp_path: Path) -> None:
    from praatio import textgrid as praat

    path = tmp_path / "a.TextGrid"
    path.write_text(textgrid([SPEECH, ANCHORS]), encoding="utf-8")
    grid = praat.openTextgrid(str(path), includeEmptyIntervals=True)
    assert grid.tierNames == ("wearer", "wearer (2)", "anchor")
    assert (grid.minTimestamp, grid.maxTimestamp) == (0.0, 3.000001)
    filled = [tuple(entry) for entry in grid.getTier("wearer").entries if entry[2]]
    assert filled == [(0.0, 1.2, 'she said "no"'), (1.2, 2.0, "b")]
    assert [tuple(one) for one in grid.getTier("wearer (2)").entries if one[2]] == [(1.5, 3.000001, "c")]
    assert [tuple(one) for one in grid.getTier("anchor").entries] == [(1.2, "e1; e2"), (2.5, "e3")]


def test_elan_is_read_back_by_pympi(tmp_path: Path) -> None:
    from pympi import Eaf

    path = tmp_path / "a.eaf"
    bad = Tier("wearer\x07 & <others>", [(0, 400, "bell \x07 & <b>")])
    path.write_text(eaf([SPEECH, ANCHORS, bad], "p@1 src:1"), encoding="utf-8")
    document = Eaf(str(path))
    assert list(document.get_tier_names()) == [
        *("wearer", "wearer (2)", "anchor", "anchor (2)"),
        "wearer\ufffd & <others>",
    ]
    assert document.get_annotation_data_for_tier("wearer") == [(0, 1200, 'she said "no"'), (1200, 2000, "b")]
    assert document.get_annotation_data_for_tier("anchor") == [
        (1200, 1200 + POINT_MS, "e1"),
        (2500, 2500 + POINT_MS, "e3"),
    ]
    assert document.get_annotation_data_for_tier("wearer\ufffd & <others>") == [(0, 1, "bell \ufffd & <b>")]
    assert ("signature", "p@1 src:1") in document.properties


def test_audacity_labels_are_read_back_by_crowsetta(tmp_path: Path) -> None:
    from crowsetta.formats.seq.audseq import AudSeq

    path = tmp_path / "a.txt"
    path.write_text(
        audacity_labels(Tier("x", [(0, 1_500_000, "a\tb\nc"), (2_000_000, 2_000_000, "e1")])),
        encoding="utf-8",
    )
    labels = AudSeq.from_file(path)
    assert list(labels.start_times) == [0.0, 2.0]
    assert list(labels.end_times) == [1.5, 2.0]
    assert list(labels.labels) == ["a b c", "e1"]


def test_rttm_is_read_back_by_rttm_manager_and_counts_the_points_it_cannot_hold(tmp_path: Path) -> None:
    from rttm_manager import import_rttm

    path = tmp_path / "a.rttm"
    text, left_out = rttm("Session 1", [SPEECH, ANCHORS, Tier("the others", [(0, 500_000, "")])])
    path.write_text(text, encoding="utf-8")
    lines = import_rttm(str(path))
    assert {line.file_id for line in lines} == {"Session_1"}
    assert [(line.turn_onset, line.turn_duration, line.speaker_name) for line in lines] == [
        (0.0, 0.5, "the_others"),
        (0.0, 1.2, "wearer"),
        (1.2, 0.8, "wearer"),
        (1.5, 1.500001, "wearer"),
    ]
    assert left_out == 3


spans = st.lists(
    st.tuples(
        st.integers(0, 5_000_000), st.integers(1000, 2_000_000), st.text('ab"é ', min_size=1, max_size=5)
    ),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(spans)
def test_any_intervals_survive_textgrid_and_elan(drawn: list[tuple[int, int, str]]) -> None:
    import tempfile

    from praatio import textgrid as praat
    from pympi import Eaf

    wanted = [(start, start + length, " ".join(text.split())) for start, length, text in drawn]
    wanted = [span for span in wanted if span[2]]
    tier = Tier("t", sorted(dict.fromkeys(wanted)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.TextGrid"
        path.write_text(textgrid([tier]), encoding="utf-8")
        grid = praat.openTextgrid(str(path), includeEmptyIntervals=False)
        found = [tuple(one) for name in grid.tierNames for one in grid.getTier(name).entries]
        assert sorted(found) == sorted((start / 1e6, stop / 1e6, text) for start, stop, text in tier.spans)
        path = Path(folder) / "a.eaf"
        path.write_text(eaf([tier]), encoding="utf-8")
        document = Eaf(str(path))
        rows = [
            row for name in document.get_tier_names() for row in document.get_annotation_data_for_tier(name)
        ]
        in_ms = [
            (round(start / 1000), max(round(stop / 1000), round(start / 1000) + 1), text)
            for start, stop, text in tier.spans
        ]
        assert sorted(rows) == sorted(in_ms)


def test_names_stay_apart_when_they_become_alike() -> None:
    assert distinct(["a b", "a_b", "A_B", "a_b_2"], lambda text: text.replace(" ", "_")) == [
        "a_b",
        "a_b_2",
        "A_B_3",
        "a_b_2_2",
    ]


@pytest.mark.parametrize("form", ["textgrid", "eaf", "audacity", "rttm"])
def test_every_unit_of_a_report_gets_its_files_whatever_its_name(form: Format, make_result: Make) -> None:
    _, sections = make_result()
    (section,) = [one for one in sections if isinstance(one, TimelineSection)]
    odd = event("odd", 1.0, unit="../../etc/passwd")
    files, _ = timeline_files([*section.events, odd], form, "signature")
    assert all("/" not in name and not name.startswith(".") for name in files)
    units = {name.split(".")[0] for name in files}
    assert units == {"Session_0", "Session_1", "Session_2", "Session_3", "etc_passwd"}
    assert files == timeline_files([*section.events, odd], form, "signature")[0]
