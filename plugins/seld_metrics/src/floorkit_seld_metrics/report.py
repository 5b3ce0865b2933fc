"""Figures to sections: the files whose columns are a contract, tables for reading, pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from floorkit.core.sections import (
    ColumnSpec,
    ImageSection,
    Section,
    SummarySection,
    TableSection,
    TextSection,
)
from floorkit.core.values import Result, RunResult
from floorkit_seld_metrics import outputs
from floorkit_seld_metrics.measure import AGNOSTIC, MACRO_MAP, MACRO_PEARSON, MICRO_MAP
from floorkit_seld_metrics.outputs import RunFigures
from floorkit_seld_metrics.params import SeldMetricsParams
from floorkit_seld_metrics.scores import RevisionScores, confusion
from floorkit_seld_metrics.taxonomy import (
    CLASS_NAMES,
    COCO_REVISION,
    FRAMES_PER_SECOND,
    N_CLASSES,
    REVISIONS,
    short_name,
)

Row = list[Any]
AGNOSTIC_NAME = "all classes as one"


def sections(result: Result) -> list[Section]:
    """Every section of an entry."""
    params: SeldMetricsParams = result.context.params
    runs = [RunFigures(run) for run in result.runs.values()]
    if not runs:
        return []
    return [
        SummarySection({"runs": {one.run.name: outputs.metrics(one.run, params) for one in runs}}),
        *outputs.files(result),
        _revision_table(runs, params),
        _class_table(runs, params),
        _classes_file(runs, params),
        _confusion_file(runs),
        _count_table(runs),
        *_tie_text(runs, params),
        *_pictures(result, runs, params),
    ]


def _revisions(params: SeldMetricsParams) -> list[str]:
    return [one for one in REVISIONS if one in params.revisions]


def shown_revision(params: SeldMetricsParams) -> str:
    """The revision whose classes are shown: the newest asked for."""
    return _revisions(params)[-1]


# --- tables -------------------------------------------------------------------------------------


def _revision_table(runs: Sequence[RunFigures], params: SeldMetricsParams) -> TableSection:
    columns = [
        ColumnSpec("run"),
        ColumnSpec("revision"),
        ColumnSpec("macro_map", "macro mAP", "float"),
        ColumnSpec("micro_map", "micro mAP", "float"),
        ColumnSpec("agnostic_ap", "agnostic AP", "float"),
        ColumnSpec("pearson_r", "Pearson r", "float"),
    ]
    rows = []
    for one in runs:
        for revision in _revisions(params):
            r = "pearson_r" if revision == COCO_REVISION else MACRO_PEARSON
            rows.append(
                [
                    one.run.name,
                    revision,
                    one.value(MACRO_MAP, revision=revision),
                    one.value(MICRO_MAP, revision=revision),
                    one.value(MACRO_MAP, revision=revision, **AGNOSTIC),
                    one.value(r, revision=revision),
                ]
            )
    note = "Pearson r is macro-averaged over classes"
    note += "; that of 2026-04-02 is another quantity, a mean over pairs." if params.has_coco else "."
    return TableSection("By revision", columns, rows, note=note)


def _class_table(runs: Sequence[RunFigures], params: SeldMetricsParams) -> TableSection:
    revision = shown_revision(params)
    columns = [ColumnSpec("class"), ColumnSpec("n_gt", "labels", "integer")]
    columns += [ColumnSpec(f"ap_{one.run.name}", one.run.name, "float") for one in runs]
    rows = []
    for name in CLASS_NAMES:
        at = {"revision": revision, "class": name}
        if any(one.count("n_gt", **at) for one in runs):
            aps = [one.value("mAP", **at) for one in runs]
            rows.append([name, max(one.count("n_gt", **at) for one in runs), *aps])
    return TableSection(
        f"AP by class, revision {revision}", columns, rows, note="Classes that the ground truth has."
    )


def _classes_file(runs: Sequence[RunFigures], params: SeldMetricsParams) -> TableSection:
    thresholds = {
        revision: [round(one, 2) for one in RevisionScores(runs[0].run.pool, revision).thresholds]
        for revision in _revisions(params)
    }
    union = sorted({threshold for found in thresholds.values() for threshold in found})
    columns = [
        ColumnSpec("run"),
        ColumnSpec("revision"),
        ColumnSpec("agnostic", kind="flag"),
        ColumnSpec("class_id", kind="integer"),
        ColumnSpec("class_name"),
        ColumnSpec("n_gt", kind="integer"),
        ColumnSpec("n_det", kind="integer"),
        ColumnSpec("ap", kind="float"),
        *(ColumnSpec(f"ap_at_{threshold:.2f}", kind="float") for threshold in union),
        ColumnSpec("pearson_r", kind="float"),
        ColumnSpec("pearson_n", kind="integer"),
    ]

    def rows() -> Iterator[Row]:
        for one in runs:
            for revision, found in thresholds.items():
                for number, name in enumerate(CLASS_NAMES):
                    row = outputs.class_row(one, revision, name, found)
                    at = dict(zip(found, row["AP_per_thr"], strict=True))
                    yield [
                        one.run.name,
                        revision,
                        False,
                        number,
                        name,
                        row["n_gt"],
                        row["n_det"],
                        row["mAP"],
                        *(at.get(threshold) for threshold in union),
                        row["pearson_r"],
                        row["pearson_n"],
                    ]
                yield _agnostic_row(one, revision, union)

    return TableSection("Classes", columns, rows, file="summary_classes.csv", shown=False)


def _agnostic_row(one: RunFigures, revision: str, union: Sequence[float]) -> Row:
    at = {"revision": revision, **AGNOSTIC}
    r = one.by_key.get(f"{MACRO_PEARSON}[revision={revision},matching=class-agnostic]")
    return [
        one.run.name,
        revision,
        True,
        None,
        AGNOSTIC_NAME,
        one.count("n_gt", **at),
        one.count("n_det", **at),
        one.value(MACRO_MAP, **at),
        *(one.value("macro_AP", revision=revision, iou=threshold, **AGNOSTIC) for threshold in union),
        None if r is None else r.value,
        None if r is None else r.denominator,
    ]


def _confusion_file(runs: Sequence[RunFigures]) -> TableSection:
    columns = [
        ColumnSpec("run"),
        ColumnSpec("class_id", kind="integer"),
        ColumnSpec("class_name"),
        *(ColumnSpec(f"predicted_{number}", name, "integer") for number, name in enumerate(CLASS_NAMES)),
    ]
    rows = [
        [one.run.name, number, CLASS_NAMES[number], *counts]
        for one in runs
        for number, counts in enumerate(confusion(one.run.pool).tolist())
    ]
    return TableSection("Spatially matched pairs by class", columns, rows, file="confusion.csv", shown=False)


def _count_table(runs: Sequence[RunFigures]) -> TableSection:
    columns = [
        ColumnSpec("run"),
        ColumnSpec("labels", kind="integer"),
        ColumnSpec("predictions", kind="integer"),
    ]
    odd = {
        "labels_out_of_range": "labels, other",
        "predictions_out_of_range": "predicted, other",
        "labels_empty": "labels, empty",
        "predictions_empty": "predicted, empty",
    }
    shown = [name for name in odd if any(one.count(name) for one in runs)]
    columns += [ColumnSpec(name, odd[name], "integer") for name in shown]
    rows = [[one.run.name, *(one.count(name) for name in ("labels", "predictions", *shown))] for one in runs]
    notes = []
    if any("out_of_range" in name for name in shown):
        notes.append(
            "Other: a category outside 0 .. 12; it counts class-agnostic only (in 2026-04-02 not at all)."
        )
    if any("empty" in name for name in shown):
        notes.append(
            "Empty: without any point; such a label stays in the denominator, such a prediction is a false "
            "positive (2026-04-02 drops both)."
        )
    return TableSection("Annotations", columns, rows, note=" ".join(notes))


def _tie_text(runs: Sequence[RunFigures], params: SeldMetricsParams) -> list[TextSection]:
    lines = []
    for one in runs:
        for revision in params.soft_revisions:
            for words, name, at in (
                ("macro mAP", MACRO_MAP, {}),
                ("micro mAP", MICRO_MAP, {}),
                ("class-agnostic AP", MACRO_MAP, AGNOSTIC),
            ):
                bounds = one.bounds(name, revision=revision, **at)
                if bounds is not None:
                    low, high = (f"{bound:.4f}" for bound in bounds if bound is not None)
                    value = one.value(name, revision=revision, **at)
                    lines.append(
                        f"{one.run.name}, ({short_name(revision)}) {words}: {value:.4f} in [{low}, {high}]"
                    )
    if not lines:
        return []
    intro = (
        "Equal scores stand for true and for false positives. The official order of ties is undefined; here "
        "it is recording, frame, class, file order. Other orders give anything in the brackets."
    )
    return [TextSection("Tied scores", "\n".join([intro, *lines]))]


# --- pictures -----------------------------------------------------------------------------------


def _pictures(
    result: Result, runs: Sequence[RunFigures], params: SeldMetricsParams
) -> Iterator[ImageSection]:
    from floorkit_seld_metrics import pictures

    kind = params.picture_format
    media: Any = "image/png" if kind == "png" else "image/svg+xml"
    revision = shown_revision(params)
    values = {
        one.run.name: [one.value("mAP", revision=revision, **{"class": name}) for name in CLASS_NAMES]
        for one in runs
    }
    yield ImageSection(
        f"AP by class, revision {revision}",
        pictures.class_bars(values, f"AP, revision {revision}", kind),
        media,
        f"Bars: AP of each of the {N_CLASSES} classes for {', '.join(values)}. "
        "The numbers stand in summary_classes.csv.",
        file=f"pictures/classes.{kind}",
        note="A cross stands where a class has no ground truth.",
    )
    for one in runs:
        if one.run.control:
            continue
        matrix = confusion(one.run.pool)
        yield ImageSection(
            f"Class confusion of matched pairs, {one.run.name}",
            pictures.confusion_matrix(matrix, kind),
            media,
            f"Matrix of {int(matrix.sum())} spatially matched pairs of {one.run.name} by ground-truth and "
            f"predicted class, {int(matrix.trace())} on the diagonal; see confusion.csv.",
            file=f"pictures/{one.run.name}_confusion.{kind}",
        )
        frames = chosen_frames(one.run, params)
        if frames:
            drawn = [(title, gold, predicted) for title, _, gold, predicted in frames]
            listed = "; ".join(f"{title}, mean IoU {iou:.3f}" for title, iou, _, _ in frames)
            yield ImageSection(
                f"Frames of {one.run.name}",
                pictures.frame_maps(drawn, kind),
                media,
                f"Ground-truth and predicted soft maps of single frames: {listed}.",
                file=f"pictures/{one.run.name}_frames.{kind}",
                note="Best and worst by the mean class-aware soft IoU of a frame; random ones are seeded.",
            )


def chosen_frames(run: RunResult, params: SeldMetricsParams) -> list[tuple[str, float, Any, Any]]:
    """(title, mean IoU, ground-truth map, predicted map) of the frames to draw, at most
    ``params.pictures`` of each kind over all recordings.
    """
    if not params.soft_revisions or not params.pictures:
        return []
    candidates: dict[str, list[tuple[float, int, int, int]]] = {}
    for number in range(len(run.pool.units)):
        table = run.pool.table(number, "pictures")
        kinds = table.categories["kind"]
        for row, (kind, frame, iou) in enumerate(
            zip(table["kind"], table["frame"], table["iou"], strict=True)
        ):
            candidates.setdefault(kinds[int(kind)], []).append((float(iou), number, int(frame), row))
    chosen = []
    for kind, found in candidates.items():
        if kind == "random":  # one of every recording first, in an order that does not follow IoU
            ordered = sorted(found, key=lambda one: (one[3], one[1]))
        else:
            sign = -1 if kind == "best" else 1
            ordered = sorted(found, key=lambda one: (sign * one[0], one[1], one[2]))
        for iou, number, frame, row in ordered[: params.pictures]:
            table = run.pool.table(number, "pictures")
            place = f"{run.pool.units[number].name}, {frame / FRAMES_PER_SECOND:.1f} s"
            chosen.append((f"{kind}, {place}", iou, table["gold"][row], table["predicted"][row]))
    return chosen
