"""Fixtures for the plugins of the dense protocols: cases (see tests/golden) run as manifests."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
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


def make_session(
    seed: int, *, every_region: bool, rows: int | None = None, lines: int | None = None
) -> tuple[Any, Any]:
    """A random session of sound reviews, with ties, recordings and invalid cells: gold and prediction.

    Cells that must not be used hold NaN or plausible numbers.
    """
    from floorkit.formats.dense import Prediction
    from floorkit.formats.reviews import read_reviews
    from floorkit.formats.reviews_dataset import ReviewedTargets
    from floorkit.formats.reviews_line import Demands

    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 60)) if rows is None else rows
    starts = [0, *sorted(set(rng.integers(1, count, size=rng.integers(0, 3)).tolist()) if count > 1 else ())]
    activity = rng.random((count, 3)) < 0.5
    many = int(rng.integers(0, 25)) if lines is None else lines
    made = [make_line(rng, f"e{i}", count, every_region=every_region) for i in range(many)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reviews.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in made), encoding="utf-8")
        demands = Demands(rows={"s": count}, every_region=every_region)
        reviews, problems = read_reviews(path, "reviews.jsonl", demands)
    assert not problems, problems
    gold = ReviewedTargets("s", activity, np.array(starts), reviews.of_session("s"))
    pred = rng.integers(0, 9, (count, 3, 10)).astype(rng.choice(["f2", "f4", "f8"])) / 8
    if rng.random() < 0.5:
        pred = rng.random((count, 3, 10)).astype("f4")
    valid = gold.inside(10) & (rng.random((count, 10)) < rng.choice([1.0, 0.97, 0.8]))
    pred[np.broadcast_to(~valid[:, None] & (rng.random((count, 1, 10)) < 0.5), pred.shape)] = np.nan
    return gold, Prediction(pred, valid)


def make_line(rng: np.random.Generator, event_id: str, rows: int, *, every_region: bool) -> dict[str, Any]:
    """A sound line of a session of ``rows`` rows; its scored place lies inside after correction."""
    label = str(
        rng.choice(["WEARER_ENTRY", "INT_YIELD", "ENTRY_HARD_NEGATIVE", "INT_HARD_NEGATIVE", "EXCLUDED"])
    )
    origin = str(rng.choice(["raw_onset", "raw_offset", "mined"]))
    correction = int(rng.integers(-1, 2)) if rows > 2 else 0
    low, high = 4 * max(0, -correction), 4 * (rows - max(0, correction))
    start = int(rng.integers(low, high))
    line = {"event_id": event_id, "session": "s", "label": label, "origin": origin, "reviewer": "human"}
    line["boundary_correction_s"] = 0.2 * correction
    hard = label.endswith("HARD_NEGATIVE")
    if not hard or origin != "mined" or rng.random() < 0.3:
        line["anchor_frame_20hz"] = int(rng.integers(low, high))
    if (hard and (origin == "mined" or every_region)) or rng.random() < 0.2:
        line["region_20hz"] = [start, int(rng.integers(start + 1, min(high, start + 40) + 1))]
    return line


@pytest.fixture(scope="session")
def random_session() -> Callable[..., tuple[Any, Any]]:
    return make_session


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
