"""Fixtures for the plugins of the dense protocols: cases (see tests/golden) run as manifests."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from attrs import frozen


@frozen
class Outcome:
    """What a run of floorkit did: exit code, both streams, and the entry's results folder."""

    code: int
    out: str
    err: str
    results: Path

    @property
    def summary(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.results / "summary.json").read_text(encoding="utf-8"))
        return data

    def rows(self, name: str) -> list[dict[str, str]]:
        """A CSV of the results as dictionaries."""
        with (self.results / name).open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))


RunCase = Callable[..., Outcome]


def entry_of(case: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The manifest entry of a case folder."""
    optional = {
        key: name
        for key, name in (
            ("reviews", "reviews.jsonl"),
            ("calibration_reviews", "calibration_reviews.jsonl"),
            ("strata", "strata.csv"),
        )
        if (folder / name).exists()
    }
    return {
        "plugin": f"floorkit-{case['protocol'].replace('_', '-')}",
        "controls": False,
        "dataset": {
            "format": "dense",
            "targets": "targets",
            "sessions": case["sessions"],
            "calibration_sessions": case["calibration_sessions"],
            **optional,
        },
        "runs": {run: {"path": f"runs/{run}"} for run in case["runs"]},
        "params": {"matched_recalls": case["matched_recalls"], **case["params"]},
        "statistics": {"resamples": 100},
    }


@pytest.fixture
def run_case(tmp_path: Path) -> RunCase:
    """Run a case folder through ``floorkit run``.

    ``change`` edits the manifest entry, ``edit`` the copied folder; ``process`` starts a process of its
    own instead of calling the command line's main function; ``command`` is ``run`` or ``check``.
    """
    runs = iter(range(1000))

    def run(
        case: Path,
        *,
        change: Callable[[dict[str, Any]], object] = lambda entry: None,
        edit: Callable[[Path], object] = lambda folder: None,
        process: bool = False,
        command: str = "run",
        arguments: tuple[str, ...] = (),
    ) -> Outcome:
        folder = tmp_path / f"case{next(runs)}"
        shutil.copytree(case, folder, copy_function=shutil.copyfile)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        edit(folder)
        entry = entry_of(json.loads((folder / "case.json").read_text(encoding="utf-8")), folder)
        change(entry)
        manifest = folder / "protocols.toml"
        manifest.write_text(tomlkit.dumps({"protocols": {"case": entry}}), encoding="utf-8")
        line = [command, str(manifest), *arguments]
        code, out, err = _in_process_of_its_own(line) if process else _in_this_process(line)
        return Outcome(code, out, err, folder / "results" / "case")

    return run


def assert_same_figures(found: Any, expected: Any, where: str = "") -> None:
    """Compare tables and lists of golden figures: texts, counts and thresholds exactly, AP (and its mean)
    to 1e-9, other figures to 1e-12."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key, value in expected.items():
            assert_same_figures(found[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for index, (one, value) in enumerate(zip(found, expected, strict=True)):
            assert_same_figures(one, value, f"{where}[{index}]")
    elif isinstance(expected, float) and found is not None and not where.endswith(".threshold"):
        assert found == pytest.approx(expected, abs=1e-9 if where.endswith("ap") else 1e-12, rel=0), where
    else:
        assert found == expected, where


@pytest.fixture
def same_figures() -> Callable[..., None]:
    return assert_same_figures


def _in_process_of_its_own(line: list[str]) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "floorkit", *line], capture_output=True, encoding="utf-8", check=False
    )
    return done.returncode, done.stdout, done.stderr


def _in_this_process(line: list[str]) -> tuple[int, str, str]:
    from floorkit.cli import main

    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(line)
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()
