"""The files of each run beside the core's: metrics.json, evaluator.json, evaluation_manifest.json.

Field names at the top of metrics.json are those of the upstream document (seld_metrics.upstream.md): the
``official_*`` fields are the revision 2026-06-30, the ``paper_*`` fields 2026-04-02; each is absent where
its revision was not asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from floorkit.core.sections import FileSection
from floorkit.core.sources import hash_package, package_location
from floorkit.core.values import Coordinate, Result, RunResult
from floorkit_seld_metrics.kernel import ENDINGS
from floorkit_seld_metrics.measure import (
    AGNOSTIC,
    CLASS_F1,
    COCO_COUNTED,
    COUNTED,
    MACRO_MAP,
    MACRO_PEARSON,
    MICRO_MAP,
    MICRO_PEARSON,
)
from floorkit_seld_metrics.params import SeldMetricsParams
from floorkit_seld_metrics.scores import RevisionScores, confusion
from floorkit_seld_metrics.taxonomy import (
    CLASS_NAMES,
    COCO_REVISION,
    CURRENT_REVISION,
    REPOSITORY,
    REVISIONS,
)

UPSTREAM_FIELDS = {
    "official_macro_map": (CURRENT_REVISION, MACRO_MAP, {}),
    "official_class_agnostic_ap": (CURRENT_REVISION, MACRO_MAP, AGNOSTIC),
    "official_macro_pearson_r": (CURRENT_REVISION, MACRO_PEARSON, {}),
    "matched_class_macro_f1": ("", CLASS_F1, {}),
    "paper_coco_macro_map": (COCO_REVISION, MACRO_MAP, {}),
    "paper_coco_mask_ap": (COCO_REVISION, MACRO_MAP, AGNOSTIC),
}


class RunFigures:
    """A run's figures by key, for looking them up."""

    def __init__(self, run: RunResult) -> None:
        self.run = run
        self.by_key = {figure.key: figure for figure in run.figures}

    def value(self, name: str, **at: Coordinate) -> float | None:
        """Value of the figure with exactly these coordinates; None also where there is no such figure."""
        inner = ",".join(f"{axis}={value}" for axis, value in at.items())
        figure = self.by_key.get(f"{name}[{inner}]" if inner else name)
        return None if figure is None else figure.value

    def bounds(self, name: str, **at: Coordinate) -> list[float | None] | None:
        """[lowest, highest] over the orders of tied scores, where that matters."""
        low, high = self.value(f"{name}_tie_low", **at), self.value(f"{name}_tie_high", **at)
        return None if low is None else [low, high]

    def count(self, name: str, **at: Coordinate) -> int:
        return int(self.value(name, **at) or 0)


def files(result: Result) -> list[FileSection]:
    """The three files of every user run."""
    evaluator = _evaluator(result)
    made = []
    for run in result.user_runs:
        made += [
            FileSection(f"{run.name}/metrics.json", metrics(run, result.context.params)),
            FileSection(f"{run.name}/evaluator.json", evaluator),
            FileSection(f"{run.name}/evaluation_manifest.json", _evaluation_manifest(result, run)),
        ]
    return made


def metrics(run: RunResult, params: SeldMetricsParams) -> dict[str, Any]:
    """Every figure of one run, by revision."""
    figures = RunFigures(run)
    top: dict[str, Any] = {}
    for field, (revision, name, agnostic) in UPSTREAM_FIELDS.items():
        if not revision:
            top[field] = figures.value(name)
        elif revision in params.revisions:
            top[field] = figures.value(name, revision=revision, **agnostic)
    reason = figures.by_key[CLASS_F1].reason if CLASS_F1 in figures.by_key else ""
    return {
        **top,
        "revisions": {
            revision: _revision(figures, revision) for revision in REVISIONS if revision in params.revisions
        },
        "class_f1": {
            "macro": figures.value(CLASS_F1),
            "reason": reason,
            "per_class": {name: figures.value("matched_class_f1", **{"class": name}) for name in CLASS_NAMES},
            "confusion_rows_ground_truth": confusion(run.pool).tolist(),
        },
        "counts": {
            name: figures.count(name) for name in (*COUNTED, *(COCO_COUNTED if params.has_coco else ()))
        },
    }


def _revision(figures: RunFigures, revision: str) -> dict[str, Any]:
    scores = RevisionScores(figures.run.pool, revision)
    thresholds = [round(threshold, 2) for threshold in scores.thresholds]
    aware: dict[str, Any] = {
        "macro_mAP": figures.value(MACRO_MAP, revision=revision),
        "macro_AP_per_thr": [figures.value("macro_AP", revision=revision, iou=iou) for iou in thresholds],
    }
    agnostic: dict[str, Any] = {
        "AP": figures.value(MACRO_MAP, revision=revision, **AGNOSTIC),
        "AP_per_thr": [
            figures.value("macro_AP", revision=revision, iou=iou, **AGNOSTIC) for iou in thresholds
        ],
        "n_gt": figures.count("n_gt", revision=revision, **AGNOSTIC),
        "n_det": figures.count("n_det", revision=revision, **AGNOSTIC),
    }
    if scores.is_coco:
        aware["pearson_r"] = figures.value("pearson_r", revision=revision)
        aware["distance_mape_percent"] = figures.value("distance_mape_percent", revision=revision)
    else:
        aware |= {
            "micro_mAP": figures.value(MICRO_MAP, revision=revision),
            "micro_AP_per_thr": [figures.value("micro_AP", revision=revision, iou=iou) for iou in thresholds],
            "macro_pearson_r": figures.value(MACRO_PEARSON, revision=revision),
            "micro_pearson_r": figures.value(MICRO_PEARSON, revision=revision),
            "ap_tie_range": figures.bounds(MACRO_MAP, revision=revision),
            "micro_ap_tie_range": figures.bounds(MICRO_MAP, revision=revision),
        }
        agnostic |= {
            "pearson_r": figures.value(MACRO_PEARSON, revision=revision, **AGNOSTIC),
            "ap_tie_range": figures.bounds(MACRO_MAP, revision=revision, **AGNOSTIC),
        }
    aware["per_class"] = [
        {"class_id": number, **class_row(figures, revision, name, thresholds)}
        for number, name in enumerate(CLASS_NAMES)
    ]
    return {
        "commit": REVISIONS[revision],
        "iou_thresholds": thresholds,
        "class_aware": aware,
        "class_agnostic": agnostic,
    }


def class_row(figures: RunFigures, revision: str, name: str, thresholds: list[float]) -> dict[str, Any]:
    """One class's figures under one revision."""
    at: dict[str, Coordinate] = {"revision": revision, "class": name}
    r = figures.by_key[f"pearson_r[revision={revision},class={name}]"]
    return {
        "class_name": name,
        "n_gt": figures.count("n_gt", **at),
        "n_det": figures.count("n_det", **at),
        "mAP": figures.value("mAP", **at),
        "AP_per_thr": [figures.value("AP", **at, iou=iou) for iou in thresholds],
        "ap_tie_range": figures.bounds("mAP", **at),
        "pearson_r": r.value,
        "pearson_n": r.denominator,
    }


def _evaluator(result: Result) -> dict[str, Any]:
    official: Mapping[str, str] = result.dataset.provenance.get("official_sha256", {})
    return {
        "reference": {
            "repository": REPOSITORY,
            "file": "evaluate.py",
            "revisions": {
                revision: {"commit": commit, "official_sha256": official.get(revision)}
                for revision, commit in REVISIONS.items()
                if revision in result.context.params.revisions
            },
        },
        "evaluator": {
            "plugin": result.plugin,
            "version": result.version,
            "source": hash_package(package_location("floorkit_seld_metrics")),
        },
        "class_f1": "SAID diagnostic, no part of the official evaluator",
    }


def _evaluation_manifest(result: Result, run: RunResult) -> dict[str, Any]:
    recordings = []
    for number, unit in enumerate(run.pool.units):
        table = run.pool.table(number, "recording")
        row = {"recording": unit.name, "split": unit.info.get("split", "")}
        for side in ("labels", "predictions"):
            row[side] = {
                "file": unit.name + ENDINGS[int(table[f"{side}_ending"][0])],
                "bytes": int(table[f"{side}_size"][0]),
                "sha256": table[f"{side}_sha256"][0].astype("uint8").tobytes().hex(),
            }
        recordings.append(row)
    return {
        "run": run.name,
        "revisions": [one for one in REVISIONS if one in result.context.params.revisions],
        "absent": list(run.coverage.missing),
        "recordings": recordings,
    }
