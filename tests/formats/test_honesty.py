"""The rules that keep thresholds honest (dense spec, "Sessions and honesty rules")."""

from __future__ import annotations

import attrs
import pytest

from floorkit.formats.honesty import EXPLORATORY, DenseParams, session_rules

PARAMS = DenseParams()
TEST = ("Session_3", "Session_1")
OTHER = ("Session_5", "Session_6")


def told(params: DenseParams, evaluated: tuple[str, ...], calibration: tuple[str, ...]) -> tuple[str, bool]:
    problems, marks = session_rules(params, evaluated, calibration, "protocols.case.dataset")
    assert set(marks) <= {EXPLORATORY}
    return "\n".join(map(str, problems)), bool(marks)


@pytest.mark.parametrize(
    ("evaluated", "calibration", "words"),
    [
        (TEST, (), ["Session_3, Session_1", "calibration sessions"]),
        (TEST, ("Session_1", "Session_12"), ["Session_1 in both"]),
        (("Session_1",), ("Session_2",), ["Session_2 for Session_1"]),
        (OTHER, ("Session_5", "Session_12"), ["Session_5 in both"]),
        (
            ("Session_1", "Session_5"),
            ("Session_5", "Session_2"),
            ["Session_5 in both", "Session_2 for Session_1"],
        ),
    ],
)
def test_thresholds_that_flatter_are_refused(
    evaluated: tuple[str, ...], calibration: tuple[str, ...], words: list[str]
) -> None:
    text, _ = told(PARAMS, evaluated, calibration)
    for word in [*words, "protocols.case.dataset.calibration_sessions", "remedy"]:
        assert word in text, text


@pytest.mark.parametrize(
    ("evaluated", "calibration", "exploratory"),
    [(TEST, ("Session_12",), False), (OTHER, ("Session_12",), False), (OTHER, (), True)],
)
def test_disjoint_calibration_is_sound_and_none_at_all_is_exploratory(
    evaluated: tuple[str, ...], calibration: tuple[str, ...], exploratory: bool
) -> None:
    assert told(PARAMS, evaluated, calibration) == ("", exploratory)


@pytest.mark.parametrize("calibration", [(), ("Session_1",), ("Session_2",), ("Session_12",)])
def test_the_switch_lifts_the_rules_and_marks_the_result(calibration: tuple[str, ...]) -> None:
    lifted = attrs.evolve(PARAMS, allow_in_sample_thresholds=True)
    assert told(lifted, TEST, calibration) == ("", True)


@pytest.mark.parametrize("calibration", [(), ("Session_1",), ("Session_12",)])
def test_a_run_without_recalls_needs_no_calibration(calibration: tuple[str, ...]) -> None:
    assert told(attrs.evolve(PARAMS, matched_recalls=()), TEST, calibration) == ("", False)


def test_the_official_test_sessions_are_a_parameter() -> None:
    other = attrs.evolve(PARAMS, official_test_sessions=("Session_5",))
    assert told(other, TEST, ()) == ("", True)
    assert "Session_5" in told(other, ("Session_5",), ())[0]


@pytest.mark.parametrize(
    ("recalls", "headline"), [((0.7, 0.8, 0.9), 0.8), ((0.5, 0.9), 0.5), ((), None), ((1.0, 0.8), 0.8)]
)
def test_the_headline_recall_is_08_or_the_first(recalls: tuple[float, ...], headline: float | None) -> None:
    assert attrs.evolve(PARAMS, matched_recalls=recalls).headline_recall == headline
