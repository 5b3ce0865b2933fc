"""Every figure of the golden cases equals that of the official evaluators (README of the cases)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from floorkit_seld_metrics import scores, softmap
from floorkit_seld_metrics.documents import read_document
from floorkit_seld_metrics.gaussian import energy_map
from floorkit_seld_metrics.masks import mask_of
from floorkit_seld_metrics.soft_matching import match_soft_maps
from floorkit_seld_metrics.taxonomy import CLASS_NAMES, SOFT_THRESHOLDS, short_name

from floorkit.testing import golden_gate

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.name for path in GOLDEN.iterdir())
EXACT = 1e-9
OLD_PEARSON = 1e-7
UNTIED = [case for case in CASES if case != "ties"]
Evaluate = Callable[[str], Any]

test_metric_changes_are_announced = golden_gate(Path(__file__).parent)


def expected(case: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / case / "expected.json").read_text(encoding="utf-8"))
    return found


def details(case: str, name: str) -> list[list[Any]]:
    found: list[list[Any]] = json.loads((GOLDEN / case / "details.json").read_text(encoding="utf-8"))[name][
        "rows"
    ]
    return found


def check(found: float | None, wanted: float | None, tolerance: float = EXACT) -> None:
    if wanted is None:
        assert found is None
    else:
        assert found == pytest.approx(wanted, abs=tolerance, rel=0)


@pytest.mark.parametrize("revision", SOFT_THRESHOLDS)
@pytest.mark.parametrize("case", UNTIED)
def test_soft_map_figures_equal_the_official_ones(evaluated: Evaluate, case: str, revision: str) -> None:
    run, wanted = evaluated(case), expected(case)[short_name(revision)]
    check(run.value("macro_mAP", revision=revision), wanted["macro_mAP"])
    check(run.value("micro_mAP", revision=revision), wanted["micro_mAP"])
    check(run.value("macro_pearson_r", revision=revision), wanted["macro_pearson_r"])
    check(run.value("micro_pearson_r", revision=revision), wanted["micro_pearson_r"])
    assert run.figures[f"micro_pearson_r[revision={revision}]"].denominator == wanted["micro_pearson_n"]
    assert wanted["iou_thresholds"] == list(SOFT_THRESHOLDS[revision])
    for number, threshold in enumerate(SOFT_THRESHOLDS[revision]):
        check(run.value("macro_AP", revision=revision, iou=threshold), wanted["macro_AP_per_thr"][number])
        check(run.value("micro_AP", revision=revision, iou=threshold), wanted["micro_AP_per_thr"][number])


@pytest.mark.parametrize("revision", SOFT_THRESHOLDS)
@pytest.mark.parametrize("case", UNTIED)
def test_soft_map_figures_of_every_class_equal_the_official_ones(
    evaluated: Evaluate, case: str, revision: str
) -> None:
    run = evaluated(case)
    for one in expected(case)[short_name(revision)]["per_class"]:
        at = {"revision": revision, "class": CLASS_NAMES[one["class_id"]]}
        assert run.value("n_gt", **at) == one["n_gt"]
        assert run.value("n_det", **at) == one["n_det"]
        check(run.value("mAP", **at), one["mAP"])
        check(run.value("pearson_r", **at), one["pearson_r"])
        for threshold, ap in zip(SOFT_THRESHOLDS[revision], one["AP_per_thr"], strict=True):
            check(run.value("AP", **at, iou=threshold), ap)


@pytest.mark.parametrize("revision", SOFT_THRESHOLDS)
@pytest.mark.parametrize("case", UNTIED)
def test_class_agnostic_figures_equal_the_official_ones(
    evaluated: Evaluate, case: str, revision: str
) -> None:
    run, wanted = evaluated(case), expected(case)[short_name(revision)]["class_agnostic"]
    at = {"revision": revision, "matching": "class-agnostic"}
    check(run.value("macro_mAP", **at), wanted["macro_mAP"])
    check(run.value("macro_pearson_r", **at), wanted["macro_pearson_r"])
    assert run.value("n_gt", **at) == wanted["n_gt"]
    assert run.value("n_det", **at) == wanted["n_det"]
    for threshold, ap in zip(SOFT_THRESHOLDS[revision], wanted["macro_AP_per_thr"], strict=True):
        place = {"revision": revision, "iou": threshold, "matching": "class-agnostic"}
        check(run.value("macro_AP", **place), ap)


@pytest.mark.parametrize("case", CASES)
def test_coco_figures_equal_the_official_ones(evaluated: Evaluate, case: str) -> None:
    run, wanted = evaluated(case), expected(case)["4.2"]
    at = {"revision": "2026-04-02"}
    aware, agnostic = wanted["class_aware"], wanted["class_agnostic"]
    check(run.value("macro_mAP", **at), aware.get("ap"))
    check(run.value("macro_AP", **at, iou=0.5), aware.get("ap50"))
    check(run.value("macro_AP", **at, iou=0.75), aware.get("ap75"))
    check(run.value("macro_mAP", **at, matching="class-agnostic"), agnostic.get("ap"))
    check(run.value("macro_AP", **at, iou=0.5, matching="class-agnostic"), agnostic.get("ap50"))
    check(run.value("macro_AP", **at, iou=0.75, matching="class-agnostic"), agnostic.get("ap75"))
    for name, ap in zip(CLASS_NAMES, aware.get("per_category", {}).values(), strict=False):
        check(run.value("mAP", **at, **{"class": name}), ap)
    check(run.value("pearson_r", **at), wanted["mean_pearson_r_old"], OLD_PEARSON)
    assert run.figures["pearson_r[revision=2026-04-02]"].denominator == wanted["pearson_pairs"]
    check(run.value("distance_mape_percent", **at), wanted["distance_mape_percent"])
    assert run.figures["distance_mape_percent[revision=2026-04-02]"].denominator == wanted["distance_pairs"]
    assert run.value("n_gt", **at, matching="class-agnostic") == wanted["n_gt"]
    assert run.value("n_det", **at, matching="class-agnostic") == wanted["n_det"]
    assert run.value("coco_images") == wanted["n_images"]


@pytest.mark.parametrize("case", CASES)
def test_class_f1_equals_the_reference(evaluated: Evaluate, case: str) -> None:
    run, wanted = evaluated(case), expected(case)["said_class_f1"]
    if "error" in wanted:
        assert run.value("matched_class_macro_f1") is None
        assert run.figures["matched_class_macro_f1"].reason == "annotation_without_points"
        return
    check(run.value("matched_class_macro_f1"), wanted["matched_class_macro_f1"])
    assert scores.confusion(run.pool).tolist() == wanted["confusion_gt_rows"]
    assert scores.class_totals(run.pool, "n_gt")[:13].tolist() == wanted["gt_class_counts"]


@pytest.mark.parametrize("revision", SOFT_THRESHOLDS)
def test_tied_scores_stay_within_bounds_that_equal_the_expected_ones(
    evaluated: Evaluate, revision: str
) -> None:
    run, wanted = evaluated("ties"), expected("ties")[short_name(revision)]
    for part, at in ((wanted, {}), (wanted["class_agnostic"], {"matching": "class-agnostic"})):
        names = ("macro_mAP", "micro_mAP") if not at else ("macro_mAP",)
        for name in names:
            low, high = part["tie_bounds"][name]
            check(run.value(f"{name}_tie_low", revision=revision, **at), low)
            check(run.value(f"{name}_tie_high", revision=revision, **at), high)
            value = run.value(name, revision=revision, **at)
            assert value is not None
            assert low - EXACT <= value <= high + EXACT
        check(run.value("macro_pearson_r", revision=revision, **at), part["macro_pearson_r"])


def files(case: str) -> Iterator[tuple[str, Path, Path]]:
    for labels in sorted((GOLDEN / case / "labels_dev").glob("*/*_std.json"), key=lambda path: path.name):
        name = labels.name.removesuffix("_std.json")
        yield name, labels, GOLDEN / case / "predictions" / f"{name}_inference.json"


@pytest.mark.parametrize("case", CASES)
def test_canvases_and_masks_equal_the_official_ones(case: str) -> None:
    canvases = {tuple(row[:3]): row[3:] for row in details(case, "canvas_630")}
    masks = {tuple(row[:4]): row[4:] for row in details(case, "mask_42")}
    seen = 0
    for name, labels, predictions in files(case):
        for kind, path in (("gt", labels), ("pred", predictions)):
            annotations = read_document(path, path.name, scored=kind == "pred").annotations
            in_frame: dict[int, int] = {}
            for index, polygons in enumerate(annotations.polygons):
                canvas = softmap.render_annotation([softmap.to_canvas(polygon) for polygon in polygons])
                total, nonzero, highest = canvases[name, kind, index]
                assert float(canvas.sum()) == pytest.approx(total, abs=EXACT)
                assert np.count_nonzero(canvas) == nonzero
                assert float(canvas.max()) == pytest.approx(highest, abs=EXACT)
                if not annotations.in_range[index]:
                    continue
                frame = int(annotations.frame[index])
                place = in_frame.setdefault(frame, 0)
                in_frame[frame] += 1
                mask = mask_of(energy_map(polygons), polygons)
                seen += 1
                if mask is None:
                    assert masks[name, frame, kind, place] == [None, 0, None]
                    continue
                rows, columns = np.nonzero(mask)
                box = [columns.min(), rows.min(), np.ptp(columns) + 1, np.ptp(rows) + 1]
                assert masks[name, frame, kind, place] == [annotations.category[index], len(rows), box]
    assert seen == len(masks)


@pytest.mark.parametrize("case", CASES)
def test_pairs_equal_the_official_ones(case: str) -> None:
    wanted = sorted(details(case, "pairs_630"), key=lambda row: (*row[:4], row[4]))
    found = []
    for name, labels, predictions in files(case):
        gold = read_document(labels, labels.name, scored=False).annotations
        predicted = read_document(predictions, predictions.name, scored=True).annotations
        matches = match_soft_maps(gold, predicted)
        for index in np.flatnonzero(matches.iou > 0).tolist():
            r = float(matches.pearson[index])
            found.append(
                [
                    name,
                    int(predicted.frame[index]),
                    int(predicted.category[index]),
                    float(predicted.score[index]),
                    float(matches.iou[index]),
                    None if math.isnan(r) else r,
                ]
            )
    found.sort(key=lambda row: (*row[:4], row[4]))
    overlapping = [row for row in wanted if row[4] > 0]
    assert len(found) == len(overlapping)
    for ours, theirs in zip(found, overlapping, strict=True):
        assert ours[:4] == theirs[:4]
        assert ours[4] == pytest.approx(theirs[4], abs=1e-7)
        check(ours[5], theirs[5])
