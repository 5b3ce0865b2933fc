"""What must not change a figure does not, and pools weight whole recordings."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from floorkit_seld_metrics.measure import measure
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from floorkit.core.pool import Pool

FEW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def sides(annotation: Callable[..., Any], blob: Callable[..., Any]) -> tuple[list[Any], list[Any]]:
    """Six frames with up to three sources, found with small errors; every score once."""
    rng = np.random.default_rng(7)
    labels, predictions = [], []
    for frame in range(6):
        for source in range(1 + frame % 3):
            x, y = 100 * source + 7 * frame, 60 + 15 * source
            labels.append(annotation(frame, source, [blob(x, y)], distance=100.0))
            shift = rng.integers(-5, 6, size=2).tolist()
            category = source if frame != 4 else 5
            predictions.append(
                annotation(
                    frame,
                    category,
                    [blob(x + shift[0], y + shift[1], radius=10)],
                    score=round(float(rng.uniform(0.2, 1)), 6),
                    distance=90.0,
                )
            )
        if frame % 2:
            predictions.append(annotation(frame, 1, [blob(250, 120)], score=round(float(rng.uniform()), 6)))
    return labels, predictions


def rotated(annotations: list[Any], degrees: int) -> list[Any]:
    found = copy.deepcopy(annotations)
    for one in found:
        for polygon in one["segmentation"]:
            for point in polygon:
                point[0] = (point[0] + degrees) % 360
    return found


@FEW
@given(degrees=st.integers(1, 359))
def test_turning_everything_by_whole_degrees_leaves_f1_and_coco_ap(
    write_recording: Callable[..., Path],
    evaluate: Callable[..., Any],
    sides: tuple[list[Any], list[Any]],
    degrees: int,
) -> None:
    before = evaluate(write_recording(*sides, into="before"), ["2026-04-02"])
    after = evaluate(
        write_recording(*(rotated(side, degrees) for side in sides), into="after"), ["2026-04-02"]
    )
    for key in ("macro_mAP[revision=2026-04-02]", "macro_mAP[revision=2026-04-02,matching=class-agnostic]"):
        assert 0 < before.figures[key].value < 1
        assert after.figures[key].value == pytest.approx(before.figures[key].value, abs=1e-12)
    assert after.value("matched_class_macro_f1") == before.value("matched_class_macro_f1")


@FEW
@given(seed=st.integers(0, 2**16))
def test_the_order_of_annotations_changes_nothing_without_ties(
    write_recording: Callable[..., Path],
    evaluate: Callable[..., Any],
    sides: tuple[list[Any], list[Any]],
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    before = evaluate(write_recording(*sides, into="before"))
    shuffled = [[side[i] for i in rng.permutation(len(side))] for side in sides]
    after = evaluate(write_recording(*shuffled, into="after"))
    assert before.figures.keys() == after.figures.keys()
    for key, figure in before.figures.items():
        assert after.figures[key].value == pytest.approx(figure.value, abs=1e-12)
        assert not key.endswith("_tie_low")


def test_a_perfect_prediction_has_ap_1_under_every_revision(
    write_recording: Callable[..., Path], evaluate: Callable[..., Any], sides: tuple[list[Any], list[Any]]
) -> None:
    labels = sides[0]
    perfect = [{**one, "score": 1 - 0.01 * number} for number, one in enumerate(labels)]
    run = evaluate(write_recording(labels, perfect))
    for revision in ("2026-04-02", "2026-05-18", "2026-05-28", "2026-06-30"):
        assert run.value("macro_mAP", revision=revision) == pytest.approx(1.0, abs=1e-6)
        assert run.value("macro_mAP", revision=revision, matching="class-agnostic") == pytest.approx(
            1.0, abs=1e-6
        )
    assert run.value("macro_pearson_r", revision="2026-06-30") == pytest.approx(1.0, abs=1e-12)
    assert run.value("distance_mape_percent", revision="2026-04-02") == 0.0
    assert run.value("matched_class_macro_f1") == 1.0


def test_a_class_without_detection_counts_as_zero_only_in_the_newest_revision(
    write_recording: Callable[..., Path], evaluate: Callable[..., Any], sides: tuple[list[Any], list[Any]]
) -> None:
    labels = sides[0]
    without = [{**one, "score": 0.9 - 0.01 * n} for n, one in enumerate(labels) if one["category_id"] != 2]
    run = evaluate(write_recording(labels, without))
    assert run.value("macro_mAP", revision="2026-05-28") == pytest.approx(1.0, abs=1e-6)
    assert run.value("macro_mAP", revision="2026-06-30") == pytest.approx(2 / 3, abs=1e-6)
    figure = run.figures["mAP[revision=2026-05-28,class=Clapping]"]
    assert (figure.value, figure.reason) == (None, "no_detections")
    assert run.value("mAP", revision="2026-06-30", **{"class": "Clapping"}) == 0.0


def test_ties_between_true_and_false_positives_are_bounded(
    write_recording: Callable[..., Path],
    evaluate: Callable[..., Any],
    annotation: Callable[..., Any],
    blob: Any,
) -> None:
    labels = [annotation(frame, 0, [blob(100, 80)]) for frame in range(2)]
    predictions = [
        annotation(0, 0, [blob(300, 80)], score=0.5),
        annotation(1, 0, [blob(100, 80)], score=0.5),
    ]
    run = evaluate(write_recording(labels, predictions))
    low = run.value("macro_mAP_tie_low", revision="2026-06-30")
    high = run.value("macro_mAP_tie_high", revision="2026-06-30")
    assert low == run.value("macro_mAP", revision="2026-06-30")  # frame order puts the false one first
    assert (low, high) == (pytest.approx(51 / 101 / 2, abs=1e-6), pytest.approx(51 / 101, abs=1e-6))


@pytest.mark.parametrize("revisions", [("2026-04-02",), ("2026-04-02", "2026-05-18", "2026-06-30")])
def test_weights_count_recordings_as_often_as_a_pool_that_repeats_them(
    evaluated: Callable[[str], Any], evaluate: Callable[..., Any], revisions: tuple[str, ...]
) -> None:
    run = evaluate(Path(__file__).parent / "golden" / "missing_class", revisions)
    pool, units = run.pool, run.pool.units
    names = list(pool._tables[0].__self__) if hasattr(pool._tables[0], "__self__") else []
    assert names
    tables = [{name: pool.table(index, name) for name in names} for index in (0, 1, 1)]
    repeated = Pool.of([units[0], units[1], units[1]], tables)
    headline = [figure.key for figure in run.figures.values() if figure.headline]
    weighted = measure(run.params, pool.reweighted(np.array([1, 2])), headline)
    plain = {figure.key: figure for figure in measure(run.params, repeated, None)}
    assert {figure.key for figure in weighted} == set(headline)
    for figure in weighted:
        assert figure.value == pytest.approx(plain[figure.key].value, abs=1e-12)


def test_a_pool_without_any_drawn_recording_has_no_figures(evaluated: Callable[[str], Any]) -> None:
    run = evaluated("basic")
    for figure in measure(run.params, run.pool.reweighted(np.array([0, 0])), None):
        assert figure.value is None or figure.value == 0
