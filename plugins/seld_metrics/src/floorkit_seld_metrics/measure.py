"""Pooled tables to figures (seld_metrics spec).

Coordinates are ``revision``, then ``class`` (a class's name), ``matching`` (``class-agnostic``, where it is
not class-aware) and ``iou`` (a threshold). The headline figures are those of the newest requested
revision with soft maps, of 2026-04-02, and Macro Class-F1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from attrs import define, field

from floorkit.core.pool import Pool
from floorkit.core.values import Coordinate, Figure, figure_key
from floorkit_seld_metrics.params import SeldMetricsParams
from floorkit_seld_metrics.scores import (
    ALL,
    MICRO,
    Group,
    RevisionScores,
    class_totals,
    confusion,
    macro_class_f1,
    mean,
)
from floorkit_seld_metrics.taxonomy import CLASS_NAMES, COCO_REVISION, N_CLASSES, short_name

At = Mapping[str, Coordinate]

AGNOSTIC: Final[dict[str, Coordinate]] = {"matching": "class-agnostic"}
MACRO_MAP, MICRO_MAP = "macro_mAP", "micro_mAP"
MACRO_PEARSON, MICRO_PEARSON = "macro_pearson_r", "micro_pearson_r"
CLASS_F1 = "matched_class_macro_f1"
NO_GOLD, NO_DETECTION, NO_PAIR = "no_ground_truth", "no_detections", "no_pairs"
COUNTED: Final = (
    "labels",
    "predictions",
    "labels_out_of_range",
    "predictions_out_of_range",
    "labels_empty",
    "predictions_empty",
)
COCO_COUNTED: Final = ("coco_images", "coco_labels_dropped", "coco_predictions_dropped")


def measure(params: SeldMetricsParams, pool: Pool, only: Collection[str] | None) -> list[Figure]:
    """The figures of one run; with ``only`` those of these keys alone.

    Reasons of figures without a value: ``no_ground_truth``, ``no_detections`` (before 2026-06-30, and
    2026-04-02 without any), ``no_pairs``, ``annotation_without_points``.
    """
    found = _Figures(only)
    newest = params.soft_revisions[-1] if params.soft_revisions else ""
    revisions = [*params.soft_revisions, *([COCO_REVISION] if params.has_coco else [])]
    for revision in revisions:
        scores = RevisionScores(pool, revision)
        _headline_figures(found, scores, scores.is_coco or revision == newest)
        if only is None:
            _threshold_figures(found, scores)
            _class_figures(found, scores)
            _tie_figures(found, scores)
    _class_f1_figures(found, pool)
    if only is None:
        for name in (*COUNTED, *(COCO_COUNTED if params.has_coco else ())):
            found.count(name, {}, int(pool.total("recording", pool.column("recording", name))))
    return found.made


@define
class _Figures:
    """Figures of one pool, each made only where it is wanted."""

    only: Collection[str] | None
    made: list[Figure] = field(factory=list)

    def wants(self, name: str, at: At) -> bool:
        return self.only is None or figure_key(name, at) in self.only

    def count(self, name: str, at: At, count: int) -> None:
        self.made.append(Figure(name, count, "count", count=count, at=at))

    def ap(
        self, name: str, at: At, value: float | None, scores: RevisionScores, group: Group, **facts: Any
    ) -> None:
        """An AP, out of as many ground-truth annotations as its group has."""
        n_gold = scores.n_gold(group)
        reason = NO_DETECTION if n_gold else NO_GOLD
        self._add(name, at, value, reason, unit="AP", denominator=n_gold, higher_is_better=True, **facts)

    def pearson(
        self, name: str, at: At, found: tuple[float | None, int], reason: str = NO_PAIR, **facts: Any
    ) -> None:
        """A Pearson r and the number of pairs behind it."""
        value, pairs = found
        self._add(name, at, value, reason, unit="r", denominator=pairs, higher_is_better=True, **facts)

    def f1(self, name: str, at: At, value: float | None, pairs: int, reason: str, **facts: Any) -> None:
        """An F1 and the number of matched pairs behind it."""
        self._add(name, at, value, reason, unit="F1", denominator=pairs, higher_is_better=True, **facts)

    def error(self, name: str, at: At, found: tuple[float | None, int]) -> None:
        """An error in percent and the number of pairs behind it."""
        value, pairs = found
        self._add(name, at, value, NO_PAIR, unit="%", denominator=pairs, higher_is_better=False)

    def _add(self, name: str, at: At, value: float | None, reason: str, **facts: Any) -> None:
        self.made.append(Figure(name, value, at=at, reason=reason if value is None else "", **facts))


def _headline_figures(found: _Figures, scores: RevisionScores, headline: bool) -> None:
    """Macro and class-agnostic AP, and the revision's Pearson r and distance error."""
    at: At = {"revision": scores.revision}
    agnostic: At = {**at, **AGNOSTIC}
    short = f"({short_name(scores.revision)})"
    facts: dict[str, Any] = {"headline": headline}
    if headline:
        facts["support"] = {"n_gt": scores.n_gold(MICRO), "n_gt_agnostic": scores.n_gold(ALL)}
    if found.wants(MACRO_MAP, at):
        found.ap(MACRO_MAP, at, scores.macro_map(), scores, MICRO, label=f"{short} macro mAP", **facts)
    if found.wants(MACRO_MAP, agnostic):
        found.ap(MACRO_MAP, agnostic, scores.mean_ap(ALL), scores, ALL, label=f"{short} agnostic AP", **facts)
    if scores.is_coco:
        if found.only is None:
            found.pearson("pearson_r", at, scores.pearson(MICRO))
            found.error("distance_mape_percent", at, scores.distance_error())
        return
    if found.wants(MACRO_PEARSON, at):
        macro = scores.macro_pearson(), scores.pearson(MICRO)[1]
        found.pearson(MACRO_PEARSON, at, macro, label=f"{short} macro r", **facts)
    if found.only is None:
        found.pearson(MACRO_PEARSON, agnostic, scores.pearson(ALL))
        found.ap(MICRO_MAP, at, scores.mean_ap(MICRO), scores, MICRO)
        found.pearson(MICRO_PEARSON, at, scores.pearson(MICRO))


def _threshold_figures(found: _Figures, scores: RevisionScores) -> None:
    macro = scores.macro_aps()
    for number, threshold in enumerate(scores.thresholds):
        at: At = {"revision": scores.revision, "iou": round(threshold, 2)}
        found.ap("macro_AP", at, macro[number], scores, MICRO)
        if not scores.is_coco:
            found.ap("micro_AP", at, _at(scores, MICRO, number), scores, MICRO)
        found.ap("macro_AP", {**at, **AGNOSTIC}, _at(scores, ALL, number), scores, ALL)


def _at(scores: RevisionScores, group: Group, number: int) -> float | None:
    found = scores.average_precisions(group)
    return None if found is None else found[number]


def _class_figures(found: _Figures, scores: RevisionScores) -> None:
    """Counts, AP and Pearson r of every class, and the counts class-agnostic."""
    for category, name in enumerate(CLASS_NAMES):
        at: At = {"revision": scores.revision, "class": name}
        n_gold = scores.n_gold(category)
        found.count("n_gt", at, n_gold)
        found.count("n_det", at, scores.n_detections(category))
        found.ap("mAP", at, scores.mean_ap(category), scores, category)
        for number, threshold in enumerate(scores.thresholds):
            where: At = {**at, "iou": round(threshold, 2)}
            found.ap("AP", where, _at(scores, category, number), scores, category)
        r = scores.pearson(category) if n_gold else (None, 0)
        found.pearson("pearson_r", at, r, NO_PAIR if n_gold else NO_GOLD)
    agnostic: At = {"revision": scores.revision, **AGNOSTIC}
    found.count("n_gt", agnostic, scores.n_gold(ALL))
    found.count("n_det", agnostic, scores.n_detections(ALL))


def _tie_figures(found: _Figures, scores: RevisionScores) -> None:
    """``NAME_tie_low`` and ``NAME_tie_high`` of the APs that the order of tied scores can change."""
    at: At = {"revision": scores.revision}
    by_class = [scores.tie_bounds(category) for category in range(N_CLASSES)]
    macro = mean([low for low, _ in by_class]), mean([high for _, high in by_class])
    bounds: list[tuple[str, At, Group, tuple[float | None, float | None]]] = [
        (MACRO_MAP, at, MICRO, macro),
        (MICRO_MAP, at, MICRO, scores.tie_bounds(MICRO)),
        (MACRO_MAP, {**at, **AGNOSTIC}, ALL, scores.tie_bounds(ALL)),
        *(("mAP", {**at, "class": CLASS_NAMES[c]}, c, bound) for c, bound in enumerate(by_class)),
    ]
    for name, place, group, (low, high) in bounds:
        if low is not None and low != high:
            found.ap(f"{name}_tie_low", place, low, scores, group)
            found.ap(f"{name}_tie_high", place, high, scores, group)


def _class_f1_figures(found: _Figures, pool: Pool) -> None:
    if not found.wants(CLASS_F1, {}):
        return
    macro, by_class, reason = macro_class_f1(pool)
    matrix = confusion(pool)
    support = {"n_gt": int(class_totals(pool, "n_gt").sum())}
    pairs = int(matrix.sum())
    found.f1(CLASS_F1, {}, macro, pairs, reason, headline=True, label="class F1", support=support)
    if found.only is None:
        for number, (name, value) in enumerate(zip(CLASS_NAMES, by_class, strict=True)):
            of_class = int(matrix[number].sum())
            found.f1("matched_class_f1", {"class": name}, value, of_class, reason or NO_GOLD)
