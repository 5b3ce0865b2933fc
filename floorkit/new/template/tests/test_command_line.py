"""The example through the command line, and what is said of wrong input."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "example"


def floorkit(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "floorkit", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / "example", ignore=shutil.ignore_patterns("results"))
    return tmp_path / "example" / "protocols.toml"


def test_the_example_runs(manifest: Path) -> None:
    done = floorkit("run", str(manifest))
    assert done.returncode == 0, done.stderr
    summary = json.loads((manifest.parent / "results/plugin_name/summary.json").read_text(encoding="utf-8"))
    assert set(summary["runs"]) == {"baseline", "candidate", "control:metronome"}


def test_every_wrong_onset_is_named(manifest: Path) -> None:
    path = manifest.parent / "candidate" / "rec_2.json"
    path.write_text('{"onsets_s": [1.0, -1.0, "2.0"]}', encoding="utf-8")
    done = floorkit("check", str(manifest))
    assert done.returncode == 4
    assert "candidate/rec_2.json: onsets_s[1]: not an onset" in done.stderr
    assert "candidate/rec_2.json: onsets_s[2]: not an onset" in done.stderr


def test_a_missing_prediction_is_an_error(manifest: Path) -> None:
    (manifest.parent / "candidate" / "rec_3.json").unlink()
    done = floorkit("run", str(manifest))
    assert done.returncode == 4
    assert "rec_3" in done.stderr
