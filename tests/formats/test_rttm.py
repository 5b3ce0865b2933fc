"""RTTM targets: rows by at least half a row of speech, lengths, and broken lines."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floorkit.core.errors import InputError
from floorkit.core.values import Context, Source, Unit
from floorkit.formats.dense import Targets
from floorkit.formats.honesty import DenseParams
from floorkit.formats.rttm import NANO, rasterise, read_rttm

MILLI = NANO // 1000


def line(session: str, start: float | str, duration: float | str, speaker: str) -> str:
    return f"SPEAKER {session} 1 {start} {duration} <NA> <NA> {speaker} <NA> <NA>\n"


def load(folder: Path, text: str, *, uem: str = "", wearer: str = "w") -> Targets:
    path = folder / "s.rttm"
    path.write_text(text, encoding="utf-8")
    files = {"rttm": path}
    if uem:
        files["uem"] = folder / "s.uem"
        files["uem"].write_text(uem, encoding="utf-8")
    context = Context("case", "dense", DenseParams(), folder)
    from floorkit.formats.dense import load_targets

    return load_targets(context, Unit("s", "evaluated", Source(files, {"wearer": wearer})))


def rows(targets: Targets) -> list[str]:
    """Each row as one letter a class: background, wearer, others."""
    return ["".join(name for name, on in zip("bwo", row, strict=True) if on) for row in targets.activity]


def test_a_row_is_active_from_half_a_row_of_speech_on(tmp_path: Path) -> None:
    text = line("s", 0.0, 0.1, "w") + line("s", 0.2, 0.099, "w") + line("s", 0.5, 0.2, "w")
    # Rows: 0.1 s of speech; 0.099 s; 0.1 s at the row's end; 0.1 s at the row's start.
    assert rows(load(tmp_path, text)) == ["w", "b", "w", "w"]


def test_pieces_of_speech_add_up_and_overlapping_ones_count_once(tmp_path: Path) -> None:
    pieces = line("s", 0.0, 0.05, "w") + line("s", 0.1, 0.05, "w")
    same = line("s", 0.2, 0.06, "w") + line("s", 0.2, 0.06, "w")
    assert rows(load(tmp_path, pieces + same + line("s", 0.4, 0.2, "x"))) == ["w", "b", "o"]


def test_others_are_single_speakers_who_each_speak_for_half_a_row(tmp_path: Path) -> None:
    two_short = line("s", 0.0, 0.06, "x") + line("s", 0.1, 0.06, "y")
    text = two_short + line("s", 0.2, 0.2, "x") + line("s", 0.2, 0.4, "w") + line("s", 0.6, 0.2, "y")
    assert rows(load(tmp_path, text)) == ["b", "wo", "w", "o"]


def test_the_length_is_the_last_end_whatever_binary_fractions_say(tmp_path: Path) -> None:
    # 1.1 + 0.1 is 1.2000000000000002 in binary: still six rows.
    assert load(tmp_path, line("s", 1.1, 0.1, "w")).rows == 6
    assert load(tmp_path, line("s", 1.1, 0.101, "w")).rows == 7
    assert load(tmp_path, line("s", 0.0, 0.15, "w")).rows == 1


def test_the_uem_gives_the_length_where_there_is_one(tmp_path: Path) -> None:
    text = line("s", 0.0, 2.0, "w")
    assert rows(load(tmp_path, text, uem="s 1 0.000 0.5\nother 1 3 4\n")) == ["w"] * 3
    assert rows(load(tmp_path, text, uem=";; comment\ns 1 0 2.5\n")) == ["w"] * 10 + ["b"] * 3


@pytest.mark.parametrize(
    ("uem", "words"),
    [
        ("other 1 0 4\n", ["no region"]),
        ("s 1 0.5 4\n", ["exactly one UEM region", "[0.5, 4.0]"]),
        ("s 1 0 4\ns 1 5 6\n", ["exactly one UEM region", "[5.0, 6.0]"]),
        ("s 1 4 4\n", ["s.uem:1", "broken"]),
        ("s 1 x 4\n", ["s.uem:1", "broken"]),
        ("s 1\n", ["s.uem:1", "broken"]),
    ],
)
def test_a_uem_that_leaves_time_without_annotation_is_refused(
    uem: str, words: list[str], tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, line("s", 0.0, 2.0, "w"), uem=uem)
    for word in words:
        assert word in str(caught.value)


def test_all_broken_lines_are_told_together_and_other_types_are_skipped(tmp_path: Path) -> None:
    text = (
        ";; comment\n\nSPKR-INFO s 1 <NA> <NA> <NA> unknown w <NA> <NA>\n"
        + line("s", "x", 1, "w")
        + line("s", 1, -1, "w")
        + line("s", "nan", 1, "w")
        + line("s", 1, 1, "<NA>")
        + "SPEAKER s 1 0 1\nspeaker s 1 0 1 <NA> <NA> w <NA> <NA>\n"
    )
    with pytest.raises(InputError) as caught:
        load(tmp_path, text)
    told = str(caught.value)
    for number in range(4, 10):
        assert f"s.rttm:{number}: " in told
    assert len(caught.value.problems) == 6


@pytest.mark.parametrize(
    ("text", "wearer", "words"),
    [
        (line("t", 0, 1, "w"), "w", ["no SPEAKER line of session s"]),
        (line("s", 0, 1, "x"), "w", ["wearer of session s has no segment", "x", "'w'"]),
        ("", "w", ["no SPEAKER line of session s"]),
    ],
)
def test_missing_sessions_and_wearers_are_told(
    text: str, wearer: str, words: list[str], tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, text, wearer=wearer)
    for word in ["s.rttm", *words]:
        assert word in str(caught.value)


def test_a_session_without_any_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="session s has no rows"):
        load(tmp_path, line("s", 0.0, 0.0, "w"))


def test_one_file_of_many_sessions_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "all.rttm"
    path.write_text(line("a", 0, 1, "w") + line("b", 0, 1, "w"), encoding="utf-8")
    assert sorted(read_rttm(path, tmp_path).sessions) == ["a", "b"]
    path.write_text(line("a", 0, 1, "w") + line("longer_name", 0, 1, "w"), encoding="utf-8")
    assert sorted(read_rttm(path, tmp_path).sessions) == ["a", "longer_name"]


@given(
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 900)), min_size=1, max_size=8), st.integers(1, 14)
)
@settings(deadline=None, max_examples=150, derandomize=True)
def test_rasterising_equals_a_count_of_milliseconds(pieces: list[tuple[int, int]], count: int) -> None:
    segments = np.array([(start * MILLI, (start + length) * MILLI) for start, length in pieces])
    covered = {ms for start, length in pieces for ms in range(start, start + length)}
    expected = [sum(ms in covered for ms in range(200 * t, 200 * t + 200)) >= 100 for t in range(count)]
    assert rasterise(segments, count).tolist() == expected


def test_a_manifest_reads_rttm_as_a_folder_or_one_file_and_a_wearer_a_session(tmp_path: Path) -> None:
    from floorkit.formats.dense_dataset import DenseTable, build_dataset, has_targets

    (tmp_path / "one").mkdir()
    both = {name: line(name, 0, float(Fraction(4, 5)), f"w_{name}") for name in ("a", "b")}
    for name, text in both.items():
        (tmp_path / "one" / f"{name}.rttm").write_text(text, encoding="utf-8")
    (tmp_path / "all.rttm").write_text("".join(both.values()), encoding="utf-8")
    context = Context("case", "dense", DenseParams(matched_recalls=()), tmp_path)

    def dataset(targets: str, wearer: Any) -> Any:
        from floorkit.formats.dense import load_targets

        table = DenseTable(format="rttm", targets=targets, sessions=("a", "b"), wearer=wearer)
        return build_dataset(context, table, load_targets)

    for targets in ("one", "all.rttm"):
        built = dataset(targets, {"a": "w_a", "b": "w_b"})
        assert not built.problems
        assert [rows(built.load(context, unit)) for unit in built.units] == [["w"] * 4] * 2
        assert has_targets(context, built, "b")
        assert not has_targets(context, built, "c")
    assert "session b has no wearer" in str(dataset("one", {"a": "w_a"}).problems[0])
