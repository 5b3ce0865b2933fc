"""The example manifest as a newcomer runs it: recorded hashes fit the code, every protocol reports."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import Floorkit

MANIFEST = Path(__file__).parents[1] / "protocols.toml"


def test_the_recorded_versions_and_hashes_are_those_of_this_tree(floorkit: Floorkit) -> None:
    """After a change of source: ``floorkit lock protocols.toml``."""
    checked = floorkit("check", MANIFEST, "--frozen")
    assert (checked.returncode, checked.stderr) == (0, "")


def test_every_protocol_of_the_example_reports_two_runs(tmp_path: Path, floorkit: Floorkit) -> None:
    ran = floorkit("run", MANIFEST, "--output", tmp_path / "results")
    assert ran.returncode == 0, ran.stderr
    index = json.loads((tmp_path / "results/index.json").read_text("utf-8"))["entries"]
    assert len(index) == 5
    for name, entry in index.items():
        summary = json.loads((tmp_path / "results" / name / "summary.json").read_text("utf-8"))
        assert sum(not run.startswith("control:") for run in entry["runs"]) == 2
        assert summary["signature"] in ran.stdout
        assert summary["comparisons"]
        assert not any(summary[mark] for mark in ("exploratory", "unverified") if mark in summary)
    assert (tmp_path / "results/report.html").stat().st_size < 20_000_000
