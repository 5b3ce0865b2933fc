"""The manifest's ``dataset`` and ``runs`` tables of the dense protocols, turned into units and runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import attrs

from floorkit.core.errors import ManifestError, Problem, raise_problems
from floorkit.core.paths import child, resolve, shown
from floorkit.core.structure import param, structure
from floorkit.core.values import Context, Dataset, Mark, Run, Source, Split, Unit, UnitKey
from floorkit.formats.dense import MISSING, load_prediction
from floorkit.formats.honesty import session_rules

FORMATS = ("dense", "rttm")
SESSION_NAME = "the name of a file without its suffix"
"""What a session's name must be; :func:`is_session_name` tells."""


@attrs.frozen
class DenseTable:
    """``[protocols.NAME.dataset]``: what every dense protocol reads; protocols add keys in a subclass."""

    format: Literal["dense", "rttm"] = param(doc="Layout of the targets.")
    targets: str = param(
        doc="Folder of SESSION.npy (dense) or SESSION.rttm files, or one RTTM file of all sessions (rttm)."
    )
    sessions: tuple[str, ...] = param(
        doc="Evaluated sessions, in the order of the outputs.", non_empty=True, distinct=True
    )
    calibration_sessions: tuple[str, ...] = param(
        (), doc="Sessions that choose the thresholds.", distinct=True
    )
    wearer: str | dict[str, str] | None = param(
        None, doc="rttm: the wearer's speaker name, or a table from session to speaker."
    )
    uem: str | None = param(
        None, doc="rttm: a UEM file, or a folder of SESSION.uem files, that gives the length."
    )


@attrs.frozen
class RunTable:
    """``[protocols.NAME.runs.RUN]``.

    The calibration predictions belong to the run's own table, so that calibration runs and evaluated
    runs cannot have different names (honesty rule 4).
    """

    path: str = param(doc="Folder with pred/SESSION.npy and perhaps valid/SESSION.npy.")
    calibration: str | None = param(
        None, doc="Folder of the same layout for the calibration sessions; the run's own where left out."
    )


def build_dataset(
    context: Context,
    table: DenseTable,
    load: Callable[[Context, Unit], Any],
    *,
    values: Mapping[str, Mapping[str, Any]] | None = None,
    files: Mapping[str, Path] | None = None,
    marks: Iterable[Mark] = (),
    problems: Iterable[Problem] = (),
) -> Dataset:
    """The evaluated sessions, then the calibration sessions, as units, with the honesty rules applied.

    Parameters
    ----------
    context, table
        The entry and its dataset table; ``context.params`` is a DenseParams.
    load
        Module-level ``load(context, unit)`` of the protocol; by custom it calls ``dense.load_targets``.
    values
        For each session plain facts (its strata, for example); they become ``unit.gold.values`` beside
        those of this module.
    files, marks, problems
        Of the protocol's own; marks and problems of the honesty rules are added.
    """
    where = f"protocols.{context.name}.dataset"
    raise_problems(ManifestError, [*_format_problems(table, where), *_name_problems(table, where)])
    rule_problems, rule_marks = session_rules(
        context.params, table.sessions, table.calibration_sessions, where
    )
    found = [*rule_problems, *problems]
    units = []
    sessions: tuple[tuple[Split, tuple[str, ...]], ...] = (
        ("evaluated", table.sessions),
        ("calibration", table.calibration_sessions),
    )
    for split, names in sessions:
        for name in names:
            source, missing = _gold_source(context, table, name)
            found += missing
            extra = (values or {}).get(name, {})
            units.append(Unit(name, split, attrs.evolve(source, values={**source.values, **extra})))
    return Dataset(
        tuple(units),
        load,
        files=dict(files or {}),
        marks=(*marks, *rule_marks),
        problems=tuple(dict.fromkeys(found)),
    )


def _format_problems(table: DenseTable, where: str) -> list[Problem]:
    if table.format == "rttm":
        expected = "a speaker name, or a table from session to speaker"
        return [] if table.wearer else [Problem("missing key", f"{where}.wearer", expected=expected)]
    return [
        Problem("key of the format rttm only", f"{where}.{key}", expected='format = "rttm"')
        for key in ("wearer", "uem")
        if getattr(table, key) is not None
    ]


def _name_problems(table: DenseTable, where: str) -> list[Problem]:
    return [
        Problem("not a session name", where, repr(name), SESSION_NAME)
        for name in (*table.sessions, *table.calibration_sessions)
        if not is_session_name(name)
    ]


def is_session_name(name: str) -> bool:
    """Whether ``name`` can name the files of a session in one folder."""
    return bool(name) and "/" not in name and "\\" not in name and name not in {".", ".."}


def _gold_source(context: Context, table: DenseTable, session: str) -> tuple[Source, list[Problem]]:
    """The files behind one session's targets, and what is missing."""
    root = resolve(context.root, table.targets)
    if table.format == "dense":
        required, optional = (
            {"targets": child(root, f"{session}.npy")},
            {"recordings": child(root, f"{session}.recordings.json")},
        )
        values: dict[str, Any] = {}
    else:
        required, optional = {"rttm": session_file(root, session, ".rttm")}, {}
        if table.uem is not None:
            required["uem"] = session_file(resolve(context.root, table.uem), session, ".uem")
        speaker = table.wearer if isinstance(table.wearer, str) else (table.wearer or {}).get(session, "")
        values = {"wearer": speaker}
    problems = [
        Problem(
            f"session {session} has no {key}",
            shown(path, context.root),
            found="no such file",
            expected=f"the {key} of every session that the manifest names",
            remedy="add the file, or take the session out of sessions and calibration_sessions",
        )
        for key, path in required.items()
        if not path.is_file()
    ]
    if values.get("wearer") == "":
        where = f"protocols.{context.name}.dataset.wearer"
        problems.append(
            Problem(f"session {session} has no wearer", where, expected="a speaker for every session")
        )
    files = {key: path for key, path in required.items() if path.is_file()}
    # Whatever stands there is read, so that a broken link is an error and not one recording.
    files |= {key: path for key, path in optional.items() if os.path.lexists(path)}
    # Whoever loads the unit tells the same problems, which the core then tells once.
    missing = {MISSING: [attrs.asdict(problem) for problem in problems]} if problems else {}
    return Source(files, values | missing), problems


def session_file(root: Path, session: str, suffix: str) -> Path:
    """``root`` itself where it is a file of all sessions, else the session's file in the folder ``root``."""
    return root if root.is_file() else child(root, session + suffix)


def has_targets(context: Context, dataset: Dataset, session: str) -> bool:
    """Whether a session, named in the manifest or not, has targets where the dataset has its own."""
    files = next((unit.gold.files for unit in dataset.units if MISSING not in unit.gold.values), None)
    if files is None:
        return True  # no session has: one problem of the targets' folder, not one of every session
    if "targets" in files:
        return child(files["targets"].parent, f"{session}.npy").is_file()
    from floorkit.formats.rttm import sessions_of

    path = files["rttm"]
    return child(path.parent, f"{session}.rttm").is_file() or session in sessions_of(path, context.root)


def build_run(context: Context, dataset: Dataset, run: str, table: Mapping[str, Any]) -> Run:
    """One run of the manifest: where its predictions are, and what is wrong with its folders.

    The arguments are those of the hook ``floorkit_predictions``.
    """
    parsed = structure(RunTable, table, f"protocols.{context.name}.runs.{run}")
    own = resolve(context.root, parsed.path)
    folders: dict[Split, Path] = {"evaluated": own, "calibration": own}
    if parsed.calibration is not None:
        folders["calibration"] = resolve(context.root, parsed.calibration)
    problems = []
    if parsed.calibration is not None and not dataset.split("calibration"):
        where = f"protocols.{context.name}.runs.{run}.calibration"
        problems.append(
            Problem(
                "calibration predictions without calibration sessions",
                where,
                remedy="name the sessions in dataset.calibration_sessions, or take the key out",
            )
        )
    used = {folders[unit.split] for unit in dataset.units}
    named = {unit.name for unit in dataset.units}
    extra: set[str] = set()
    for folder in sorted(used):
        predicted, masked = _sessions(folder / "pred"), _sessions(folder / "valid")
        if not (folder / "pred").is_dir():
            problems.append(
                Problem(
                    f"run {run} has no predictions",
                    shown(folder / "pred", context.root),
                    "no such folder",
                    "pred/SESSION.npy",
                )
            )
        if os.path.lexists(folder / "valid") and not (folder / "valid").is_dir():
            problems.append(
                Problem(
                    f"the masks of run {run} cannot be read",
                    shown(folder / "valid", context.root),
                    "not a folder",
                    "valid/SESSION.npy, or nothing where every cell is valid",
                )
            )
        for session in sorted(predicted - named):
            if has_targets(context, dataset, session):
                extra.add(session)
            else:
                problems.append(
                    Problem(
                        f"a prediction for session {session}, which has no targets",
                        shown(folder / "pred" / f"{session}.npy", context.root),
                        expected="predictions of sessions with targets alone",
                        remedy="is the session's name misspelt? Take the file out, or add its targets",
                    )
                )
        for session in sorted(masked - predicted - named):
            problems.append(
                Problem(
                    f"a mask for session {session}, which has no prediction",
                    shown(folder / "valid" / f"{session}.npy", context.root),
                    expected="a mask for sessions with a prediction alone",
                )
            )
    sources: dict[UnitKey, Source] = {}
    for unit in dataset.units:
        pred = child(folders[unit.split], f"pred/{unit.name}.npy")
        mask = child(folders[unit.split], f"valid/{unit.name}.npy")
        if pred.is_file():
            sources[unit.key] = Source({"pred": pred, **({"valid": mask} if os.path.lexists(mask) else {})})
    return Run(run, sources, load_prediction, extra=tuple(sorted(extra)), problems=tuple(problems))


def _sessions(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.npy")}
