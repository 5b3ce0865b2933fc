"""Reading results for the leaderboard: floorkit's own, and the official leaderboard file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from floorkit.core.errors import InputError, Problem, raise_problems
from floorkit_turnbench.conversation import TASKS, Task
from floorkit_turnbench.leaderboard import Entry
from floorkit_turnbench.strict_json import number, read_json, shown

CONTROL: Final = "control:"
EXPECTED: Final = "a results folder with turnbench entries, their summary.json, or the official leaderboard"


@frozen
class _Run:
    """One run of one file: the file, the entry it belongs to, its name, figures by task."""

    place: str
    origin: str
    name: str
    figures: dict[str, Any]


def read_entries(paths: Sequence[Path]) -> dict[Task, list[Entry]]:
    """The runs of all ``paths`` by task, controls left out.

    A run is named by its own name; where two have the same, by entry and name, else by path and name.

    Raises
    ------
    InputError
        With every path that holds no turnbench results, and every figure that is no number.
    """
    found: list[_Run] = []
    problems: list[Problem] = []
    for path in dict.fromkeys(paths):
        try:
            found += _runs(path)
        except InputError as error:
            problems += error.problems
    entries: dict[Task, list[Entry]] = {task: [] for task in TASKS}
    for run, unique in zip(found, _unique_names(found), strict=True):
        for task in TASKS:
            recall, fp_rate, latency = (
                _figure(run, task, names, problems)
                for names in (("recall",), ("fp_rate",), ("latency_p50_ms", "latency_ms.p50"))
            )
            entries[task].append(Entry(unique, recall, fp_rate, latency))
    raise_problems(InputError, problems)
    return entries


def _unique_names(runs: Sequence[_Run]) -> list[str]:
    """Each run's name, as short as tells it from the others: its own, with its entry, with its path."""
    forms = [(one.name, f"{one.origin}/{one.name}", f"{one.place}: {one.name}") for one in runs]
    return [
        next((form[k] for k in range(2) if [other[k] for other in forms].count(form[k]) == 1), form[2])
        for form in forms
    ]


def _figure(run: _Run, task: Task, names: Sequence[str], problems: list[Problem]) -> float | None:
    """The figure under the first of ``names`` that is there (``a.b``: b of the object a), else None."""
    place = f"{run.place}: run {run.name}, {task}"
    for name in names:
        value: Any = run.figures.get(task)
        for key in name.split("."):
            if value is not None and not isinstance(value, dict):
                problems.append(Problem("no object", place, shown(value), f"an object with {name}"))
                return None
            value = (value or {}).get(key)
        if value is None:
            continue
        figure = number(value)
        if figure is None or not math.isfinite(figure):
            problems.append(Problem(f"{name} is no number", place, shown(value), "a number or null"))
            return None
        return figure
    return None


def _runs(path: Path) -> list[_Run]:
    if path.is_dir():
        files = (
            [path / "summary.json"]
            if (path / "summary.json").is_file()
            else sorted(path.glob("*/summary.json"))
        )
        runs = [run for file in files for run in _of_file(file, optional=len(files) > 1)]
        if not runs:
            raise InputError(Problem("no turnbench results", str(path), expected=EXPECTED))
        return runs
    return list(_of_file(path, optional=False))


def _of_file(path: Path, *, optional: bool) -> Iterable[_Run]:
    data, _ = read_json(path)
    if isinstance(data, dict) and data.get("protocol") == "turnbench" and isinstance(data.get("runs"), dict):
        origin = str(data.get("name", path.parent.name))
        runs = {name: of for name, of in data["runs"].items() if not name.startswith(CONTROL)}
        _refuse_others(path, "runs", runs.values())
        return [_Run(str(path), origin, name, figures) for name, figures in runs.items()]
    if isinstance(data, dict) and isinstance(data.get("models"), list):
        _refuse_others(path, "models", data["models"])
        return [_Run(str(path), path.stem, str(model.get("model")), model) for model in data["models"]]
    if optional:
        return []
    raise InputError(Problem("no turnbench results", str(path), shown(data), EXPECTED))


def _refuse_others(path: Path, where: str, runs: Iterable[Any]) -> None:
    problems = [
        Problem("a run is no object", f"{path}: {where}[{index}]", shown(run), "an object of figures by task")
        for index, run in enumerate(runs)
        if not isinstance(run, dict)
    ]
    raise_problems(InputError, problems)
