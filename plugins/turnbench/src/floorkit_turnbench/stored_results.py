"""Reading results for the leaderboard: floorkit's own, and the official leaderboard file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from floorkit.core.errors import InputError, Problem, raise_problems
from floorkit_turnbench.conversation import TASKS, Task
from floorkit_turnbench.leaderboard import Entry
from floorkit_turnbench.strict_json import number, read_json, shown

CONTROL: Final = "control:"
EXPECTED: Final = "a results folder with turnbench entries, their summary.json, or the official leaderboard"


def read_entries(paths: Sequence[Path]) -> dict[Task, list[Entry]]:
    """The runs of all ``paths`` by task, controls left out.

    A run is named by its own name; where two have the same, by entry and name, or path and name.

    Raises
    ------
    InputError
        With every path that holds no turnbench results.
    """
    found: list[tuple[str, str, dict[str, Any]]] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            found += _runs(path)
        except InputError as error:
            problems += error.problems
    raise_problems(InputError, problems)
    names = [name for _, name, _ in found]
    entries: dict[Task, list[Entry]] = {task: [] for task in TASKS}
    for origin, name, figures in found:
        unique = name if names.count(name) == 1 else f"{origin}/{name}"
        for task in TASKS:
            of = figures.get(task) or {}
            latency = of.get("latency_p50_ms", (of.get("latency_ms") or {}).get("p50"))
            entries[task].append(
                Entry(unique, number(of.get("recall")), number(of.get("fp_rate")), number(latency))
            )
    return entries


def _runs(path: Path) -> list[tuple[str, str, dict[str, Any]]]:
    """(origin, run, figures by task) of one path."""
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


def _of_file(path: Path, *, optional: bool) -> Iterable[tuple[str, str, dict[str, Any]]]:
    data, _ = read_json(path)
    if isinstance(data, dict) and data.get("protocol") == "turnbench" and isinstance(data.get("runs"), dict):
        origin = str(data.get("name", path.parent.name))
        return [
            (origin, name, figures) for name, figures in data["runs"].items() if not name.startswith(CONTROL)
        ]
    if isinstance(data, dict) and isinstance(data.get("models"), list):
        return [(path.stem, str(model.get("model")), model) for model in data["models"]]
    if optional:
        return []
    raise InputError(Problem("no turnbench results", str(path), shown(data), EXPECTED))
