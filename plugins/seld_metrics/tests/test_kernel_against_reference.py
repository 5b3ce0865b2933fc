"""The kernel gives what plain loops over the spec's formulas give, on random recordings."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from floorkit_seld_metrics import reference, softmap
from floorkit_seld_metrics.average_precision import Ranking, coco_average_precision, soft_average_precision
from floorkit_seld_metrics.documents import read_document
from floorkit_seld_metrics.gaussian import energy_map
from floorkit_seld_metrics.masks import cap_of, mask_of
from floorkit_seld_metrics.soft_matching import match_soft_maps
from floorkit_seld_metrics.taxonomy import CLASS_NAMES, SOFT_THRESHOLDS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Points = list[list[float]]
SLOW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
FIELDS = settings(max_examples=60, deadline=None)

intensity = st.one_of(st.floats(0.001, 1.0), st.sampled_from([0.0, -0.3, 1.0]))
whole_points = st.tuples(st.integers(0, 360), st.integers(0, 180))
any_points = st.tuples(st.floats(0, 360), st.floats(0, 180))


def with_intensity(points: list[tuple[float, float]], values: list[float]) -> Points:
    return [[x, y, value] for (x, y), value in zip(points, values, strict=True)]


@st.composite
def lattices(draw: st.DrawFn) -> Points:
    """A rectangle of a lattice with some points missing, across the seam or at a pole too."""
    left, top = draw(st.integers(0, 359)), draw(st.integers(0, 170))
    stride = draw(st.sampled_from([1, 2, 4, 9]))
    width, height = draw(st.integers(1, 9)), draw(st.integers(1, 7))
    places = [
        ((left + stride * column) % 360, top + stride * row)
        for row in range(height)
        for column in range(width)
        if top + stride * row <= 180
    ]
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    kept = [place for place in places if rng.random() < 0.9] or places[:1]
    rng.shuffle(kept)
    return [[x, y, round(float(rng.uniform(0.05, 1)), 4)] for x, y in kept]


scattered = st.lists(st.tuples(any_points, intensity), min_size=1, max_size=30).map(
    lambda found: with_intensity([point for point, _ in found], [value for _, value in found])
)
on_grid = st.lists(st.tuples(whole_points, intensity), min_size=1, max_size=30).map(
    lambda found: with_intensity([point for point, _ in found], [value for _, value in found])
)
polygons = st.one_of(lattices(), scattered, on_grid)
segmentations = st.lists(polygons, min_size=0, max_size=2)


def arrays(segmentation: list[Points]) -> list[np.ndarray[Any, Any]]:
    return [np.array(points, dtype=np.float64) for points in segmentation]


@FIELDS
@given(segmentations)
def test_canvases_equal_those_of_griddata(segmentation: list[Points]) -> None:
    ours = softmap.render_annotation([softmap.to_canvas(points) for points in arrays(segmentation)])
    plain = reference.soft_map({"segmentation": segmentation})
    np.testing.assert_allclose(ours, plain, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(ours > 0, plain > 0)
    assert ours.dtype == plain.dtype
    kept = softmap.SparseCanvas.of(ours).dense()
    np.testing.assert_array_equal(kept, ours)
    assert kept.dtype == ours.dtype


@FIELDS
@given(polygons, polygons)
def test_annotations_that_cannot_overlap_do_not(one: Points, other: Points) -> None:
    scaled = [[softmap.to_canvas(points)] for points in arrays([one, other])]
    if not softmap.can_overlap(*map(softmap.extents_of, scaled)):
        first, second = map(softmap.render_annotation, scaled)
        assert softmap.soft_iou(first, second) == 0.0
        assert math.isnan(softmap.pearson(first, second))


@FIELDS
@given(segmentations, segmentations)
def test_no_iou_exceeds_its_bound(gold: list[Points], predicted: list[Points]) -> None:
    one, other = ([softmap.to_canvas(points) for points in arrays(side)] for side in (gold, predicted))
    canvas = softmap.render_annotation(one)
    iou = softmap.soft_iou(canvas, softmap.render_annotation(other))
    assert iou <= softmap.overlap_bound(canvas, softmap.extents_of(other)) + 1e-12


@FIELDS
@given(segmentations)
def test_a_mask_lies_within_its_cap(segmentation: list[Points]) -> None:
    points = arrays(segmentation)
    cap = cap_of(points)
    if cap is None:
        return
    mask = mask_of(energy_map(points), points)
    assert mask is not None
    rows, columns = np.nonzero(mask)
    elevation, azimuth = np.radians(90 - rows / 179 * 180), np.radians(columns - 180.0)
    pixels = np.stack(
        (np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation))
    )
    farthest = math.acos(min(1.0, float((cap.centre @ pixels).min())))
    assert farthest <= cap.radius + 1e-6
    assert cap.radius >= math.radians(14)


def test_annotations_that_touch_in_one_node_can_overlap() -> None:
    left = np.array([[0, 0, 1.0], [18, 0, 1.0], [0, 18, 1.0], [18, 18, 1.0]])
    right = left + np.array([18, 0, 0])
    scaled = [[softmap.to_canvas(points)] for points in (left, right)]
    assert softmap.can_overlap(*map(softmap.extents_of, scaled))
    assert softmap.soft_iou(*map(softmap.render_annotation, scaled)) > 0


@FIELDS
@given(segmentations)
def test_gaussian_maps_and_masks_equal_the_sum_over_points(segmentation: list[Points]) -> None:
    points = arrays(segmentation)
    energy = energy_map(points)
    plain = reference.gaussian_map({"segmentation": segmentation})
    scale = sum(float(np.abs(part[:, 2]).sum()) for part in points)
    np.testing.assert_allclose(energy, plain, rtol=0, atol=3e-6 * scale + 1e-12)
    mask = mask_of(energy, points)
    if plain.max() < 1e-9:
        assert mask is None
    elif all((part[:, 2] >= 0).all() for part in points):
        assert mask is not None
        np.testing.assert_array_equal(mask, plain >= 0.1 * plain.max())


@given(
    st.lists(st.tuples(st.integers(0, 20), st.floats(0, 1, width=32)), min_size=1, max_size=60),
    st.integers(1, 60),
    st.sampled_from([0.25, 0.5, 0.75]),
)
def test_soft_ap_equals_the_plain_loop(
    detections: list[tuple[int, float]], n_gold: int, threshold: float
) -> None:
    score = np.array([one / 20 for one, _ in detections])
    iou = np.array([one for _, one in detections], dtype=np.float32)
    ranking = Ranking.of(np.arange(len(iou)), score, iou.astype(np.float64)[:, None] >= [threshold])
    (ap,) = ranking.average_precisions(soft_average_precision, n_gold)
    rows = [(float(s), float(i), math.nan) for s, i in zip(score, iou, strict=True)]
    assert ap == reference.soft_ap(rows, threshold, n_gold)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans(), st.integers(0, 3)), min_size=1, max_size=40),
    st.integers(1, 60),
    st.sampled_from([soft_average_precision, coco_average_precision]),
)
def test_weighted_ap_equals_that_of_repeated_detections(
    detections: list[tuple[float, bool, int]], n_gold: int, formula: Any
) -> None:
    score, hit, weight = (np.array(column) for column in zip(*detections, strict=True))
    weighted = Ranking.of(np.arange(len(score)), score, hit[:, None])
    rows = np.repeat(np.arange(len(score)), weight)
    repeated = Ranking.of(np.arange(len(rows)), score[rows], hit[rows][:, None])
    assert weighted.average_precisions(formula, n_gold, weight) == repeated.average_precisions(
        formula, n_gold
    )


@st.composite
def recordings(draw: st.DrawFn) -> tuple[list[Any], list[Any]]:
    """A few frames with near and far annotations on both sides; every score once."""
    sides: tuple[list[Any], list[Any]] = [], []
    scores = draw(st.permutations(range(1, 25)))
    for frame in range(draw(st.integers(1, 3))):
        for side in sides:
            for _ in range(draw(st.integers(0, 3))):
                facts: dict[str, Any] = {"metadata_frame_index": frame}
                facts["category_id"] = draw(st.sampled_from([0, 1, 1, 2, 13, -1]))
                facts["segmentation"] = draw(segmentations)
                if side is sides[1]:
                    facts["score"] = scores[len(side)] / 25
                if draw(st.booleans()):
                    facts["distance"] = draw(st.sampled_from([0.0, 1.5, 20.0]))
                side.append(facts)
    return sides


def same(found: float | None, wanted: float, tolerance: float = 1e-9) -> bool:
    return found is None if math.isnan(wanted) else found is not None and abs(found - wanted) <= tolerance


@SLOW
@given(recordings())
def test_figures_of_random_recordings_equal_the_reference(
    evaluate: Callable[..., Any], recording: tuple[list[Any], list[Any]]
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        paths = folder / "labels_dev/dev-test-tau/r_std.json", folder / "predictions/r_inference.json"
        for path, annotations in zip(paths, recording, strict=True):
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps({"annotations": annotations}), encoding="utf-8")
        run = evaluate(folder)
    for revision in SOFT_THRESHOLDS:
        aware = reference.soft_figures([recording], revision, False)
        agnostic = reference.soft_figures([recording], revision, True)
        at = {"revision": revision}
        assert same(run.value("macro_mAP", **at), aware["macro_mAP"])
        assert same(run.value("micro_mAP", **at), aware["micro_mAP"])
        assert same(run.value("macro_pearson_r", **at), aware["macro_pearson_r"])
        assert same(run.value("macro_mAP", **at, matching="class-agnostic"), agnostic["macro_mAP"])
        assert same(
            run.value("macro_pearson_r", **at, matching="class-agnostic"), agnostic["macro_pearson_r"]
        )
        for category, name in enumerate(CLASS_NAMES[:3]):
            assert run.value("n_gt", **at, **{"class": name}) == aware["n_gt"][category]
            assert same(run.value("pearson_r", **at, **{"class": name}), aware["pearson_r"][category])
    coco = reference.coco_figures([recording])
    at = {"revision": "2026-04-02"}
    assert run.value("n_det", **at, matching="class-agnostic") == coco["n_det"]
    assert run.value("coco_images") == coco["n_images"]
    assert same(run.value("macro_mAP", **at), coco["class_aware"][-1])
    assert same(run.value("macro_mAP", **at, matching="class-agnostic"), coco["class_agnostic"][-1])
    assert same(run.value("distance_mape_percent", **at), coco["distance_mape_percent"])
    assert same(run.value("matched_class_macro_f1"), reference.class_f1_figures([recording])["macro_f1"])


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[Any], list[Any]]:
    """One frame in which everything overlaps: up to four ground truths, six predictions, two classes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sides: tuple[list[Any], list[Any]] = [], []
    for side, most in zip(sides, (4, 6), strict=True):
        for number in range(draw(st.integers(1, most))):
            x, y = rng.integers(330, 390), rng.integers(60, 110)
            rows, columns = np.mgrid[-24:25:6, -24:25:6].reshape(2, -1)
            energy = np.exp(-(rows**2 + columns**2) / rng.uniform(100, 400)) * rng.uniform(
                0.8, 1.2, len(rows)
            )
            points = zip(((x + columns) % 360).tolist(), (y + rows).tolist(), energy.tolist(), strict=True)
            category = int(rng.integers(2))
            facts = {"metadata_frame_index": 0, "category_id": category, "score": (number + 1) / 10}
            side.append({**facts, "segmentation": [[list(point) for point in points]]})
    return sides


@settings(max_examples=40, deadline=None)
@given(crowds())
def test_bounds_on_iou_do_not_change_an_assignment(crowd: tuple[list[Any], list[Any]]) -> None:
    with TemporaryDirectory() as name:
        sides = []
        for number, side in enumerate(crowd):
            path = Path(name) / f"{number}.json"
            path.write_text(json.dumps({"annotations": side}), encoding="utf-8")
            sides.append(read_document(path, path.name, scored=True).annotations)
    matches = match_soft_maps(*sides)
    found = zip(matches.agnostic_iou.tolist(), matches.agnostic_pearson.tolist(), strict=True)
    for (_, iou, r), ours in zip(reference.soft_pairs(*crowd), found, strict=True):
        assert ours == pytest.approx((iou, r), abs=1e-7, nan_ok=True)
    rows = list(zip(matches.iou.tolist(), matches.pearson.tolist(), strict=True))
    for category in (0, 1):
        chosen = [[one for one in side if one["category_id"] == category] for side in crowd]
        wanted = iter(reference.soft_pairs(*chosen))
        for one, ours in zip(crowd[1], rows, strict=True):
            if one["category_id"] == category:
                assert ours == pytest.approx(next(wanted)[1:], abs=1e-7, nan_ok=True)


def test_a_node_whose_value_rounding_decides_is_left_to_scipy() -> None:
    """All intensities along an edge through nodes are 0: which triangle a node falls in would decide
    whether it belongs to the support.
    """
    points = np.array(
        [[0, 36, 0.0], [36, 36, 0.0], [72, 36, 0.0], [18, 72, 0.7], [54, 72, 0.4], [36, 0, 0.3]]
    )
    plain = reference.soft_map({"segmentation": [points.tolist()]})
    ours = softmap.render_annotation([softmap.to_canvas(points)])
    np.testing.assert_array_equal(ours > 0, plain > 0)


def test_duplicated_points_take_the_first_intensity(tmp_path: Path) -> None:
    corners = [[0, 0, 0.5], [36, 0, 0.5], [0, 36, 0.5], [36, 36, 0.5]]
    for first, second in ((1.0, 0.2), (0.2, 1.0)):
        polygon = np.array([[18, 18, first], [18, 18, second], *corners])
        canvas = softmap._render_wide(softmap.to_canvas(polygon))
        assert canvas[5, 5] == pytest.approx(first, abs=1e-6)


def test_reading_and_the_reference_see_the_same_points(tmp_path: Path) -> None:
    path = tmp_path / "rec_inference.json"
    polygon = [[0.5, 1e-3, 1], [360, 180, 5e-1], [3, 4, -0.25]]
    found = {
        "metadata_frame_index": 1,
        "category_id": 2,
        "score": 0.5,
        "segmentation": [polygon, [], polygon],
    }
    path.write_text(json.dumps({"annotations": [found]}), encoding="utf-8")
    read = read_document(path, path.name, scored=True).annotations
    assert [part.tolist() for part in read.polygons[0]] == [polygon, polygon]
    assert reference.load(path)[0]["segmentation"] == [polygon, [], polygon]
