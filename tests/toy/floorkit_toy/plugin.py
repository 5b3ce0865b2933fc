"""A small real protocol for the core's tests: detections against 0/1 labels, one JSON list a unit."""

from __future__ import annotations

import hashlib
import json
import os
import time
from typing import Any

from attrs import frozen

from floorkit.core.errors import InputError, Problem
from floorkit.core.hooks import hookimpl
from floorkit.core.paths import child, resolve, shown
from floorkit.core.sections import ColumnSpec, SummarySection, TableSection
from floorkit.core.structure import param, structure
from floorkit.core.values import Dataset, Figure, Mark, MatchedRecall, Protocol, Run, Source, Table, Unit


@frozen
class Params:
    """Parameters of toy."""

    matched_recalls: tuple[float, ...] = param((0.8,), doc="Requested recalls.", above=0, high=1)
    fail_on: str = param("", doc="Unit on which scoring raises.")
    die_on: str = param("", doc="Unit on which the worker dies.")
    sleep: float = param(0.0, doc="Pause in scoring a unit.", unit="s", low=0)


@frozen
class DatasetTable:
    """The dataset table of toy."""

    format: str = param("toy", doc="Format.")
    gold: str = param(doc="Folder of NAME.json.")
    units: tuple[str, ...] = param(doc="Evaluated units.", non_empty=True, distinct=True)
    calibration_units: tuple[str, ...] = param((), doc="Calibration units.")


@frozen
class RunTable:
    """A run's table of toy."""

    path: str = param(doc="Folder of NAME.json.")


@hookimpl
def floorkit_protocols() -> list[Protocol]:
    return [
        Protocol(
            "toy",
            "Toy detections",
            Params,
            measures="whether labels are detected",
            caveats=("It measures nothing real.",),
            marks=("exploratory",),
            matched_recall=MatchedRecall("events", "kind"),
        )
    ]


@hookimpl
def floorkit_dataset(context: Any, table: Any) -> Dataset | None:
    if table.get("format", "toy") != "toy":
        return None
    config = structure(DatasetTable, table, f"protocols.{context.name}.dataset")
    folder = resolve(context.root, config.gold)
    units = [
        Unit(name, split, Source({"gold": child(folder, f"{name}.json")}))
        for split, names in (("evaluated", config.units), ("calibration", config.calibration_units))
        for name in names
    ]
    marks = () if config.calibration_units else (Mark("exploratory", "thresholds chosen in-sample"),)
    return Dataset(tuple(units), load_gold, marks=marks)


def read(context: Any, path: Any, high: float) -> list[float]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(Problem("cannot be read", shown(path, context.root), str(error))) from None
    bad = [
        Problem("not a number in range", f"{shown(path, context.root)}[{i}]", repr(v), f"0 to {high}")
        for i, v in enumerate(values)
        if not isinstance(v, int | float) or not 0 <= v <= high
    ]
    if bad:
        raise InputError(bad)
    return list(values)


def load_gold(context: Any, unit: Unit) -> list[float]:
    return read(context, unit.gold.files["gold"], 1)


@hookimpl
def floorkit_predictions(context: Any, dataset: Dataset, run: str, table: Any) -> Run:
    config = structure(RunTable, table, f"protocols.{context.name}.runs.{run}")
    folder = resolve(context.root, config.path)
    sources = {
        unit.key: Source({"prediction": path})
        for unit in dataset.units
        if (path := child(folder, f"{unit.name}.json")).is_file()
    }
    return Run(run, sources, load_prediction)


def load_prediction(context: Any, unit: Unit, source: Source, gold: Any) -> list[float]:
    values = read(context, source.files["prediction"], 1)
    if len(values) != len(gold):
        where = shown(source.files["prediction"], context.root)
        raise InputError(Problem("wrong length", where, str(len(values)), str(len(gold))))
    return values


@hookimpl
def floorkit_controls(context: Any, dataset: Dataset) -> list[Run]:
    return [Run("control:noise", {u.key: Source() for u in dataset.units}, load_noise, control=True)]


def load_noise(context: Any, unit: Unit, source: Source, gold: Any) -> list[float]:
    return [
        int(hashlib.sha256(f"{context.seed} {unit.name} {i}".encode()).hexdigest()[:8], 16) / 2**32
        for i in range(len(gold))
    ]


@hookimpl
def floorkit_score(context: Any, unit: Unit, gold: Any, prediction: Any) -> dict[str, Table]:
    time.sleep(context.params.sleep)
    if unit.name == context.params.fail_on:
        raise RuntimeError("asked to fail")
    if unit.name == context.params.die_on:
        os._exit(7)
    columns = {
        "label": [int(value) for value in gold],
        "score": [float(value) for value in prediction],
        "kind": [0] * len(gold),
    }
    return {"events": Table(columns, {"kind": ("all",)})}


@hookimpl
def floorkit_measure(context: Any, pool: Any, points: Any, only: Any) -> list[Figure]:
    label, score = pool.column("events", "label"), pool.column("events", "score")
    figures = []
    for point in points:
        negatives = pool.count("events", label == 0)
        fired = (score >= point.threshold) if point.threshold is not None else label < 0
        alarms = pool.count("events", (label == 0) & fired)
        figures.append(
            Figure(
                f"false_alarm_rate_at_recall_{point.at['recall']}",
                alarms / negatives if negatives and point.threshold is not None else None,
                count=alarms,
                denominator=negatives,
                higher_is_better=False,
                reason="" if negatives and point.threshold is not None else "zero_denominator",
                headline=True,
                label="false alarms",
                support={"negatives": negatives},
            )
        )
    return figures


@hookimpl
def floorkit_report(context: Any, result: Any) -> list[Any]:
    def rows() -> Any:
        for run in result.runs.values():
            for figure in run.figures:
                yield run.name, figure.name, figure.value, figure.count, figure.denominator

    columns = [
        ColumnSpec("run"),
        ColumnSpec("figure"),
        ColumnSpec("value", kind="rate", count="count", denominator="denominator"),
        ColumnSpec("count", kind="integer"),
        ColumnSpec("denominator", kind="integer"),
    ]
    runs = {name: {f.name: f.value for f in run.figures} for name, run in result.runs.items()}
    return [
        TableSection("Figures", columns, rows, file="summary_figures.csv"),
        SummarySection({"runs": runs}),
    ]
