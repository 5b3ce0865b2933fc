"""The golden case two_runs and altered copies of it through the real command line: compared, or refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GOLDEN = Path(__file__).parent / "golden"

MANIFEST = """\
[protocols.demo]
plugin = "floorkit-competing-risk"

[protocols.demo.dataset]
format = "dense"
targets = "targets"
sessions = ["Session_3", "Session_1"]
calibration_sessions = ["Session_12"]

[protocols.demo.runs.baseline]
path = "runs/baseline"

[protocols.demo.runs.candidate]
path = "runs/candidate"

[protocols.demo.statistics]
resamples = 200
"""


def floorkit(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "floorkit", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """two_runs with results in ``whole``; in ``altered`` the candidate marks rows as invalid; ``full`` is the
    other window."""
    folder = tmp_path_factory.mktemp("two_runs") / "case"
    shutil.copytree(GOLDEN / "two_runs", folder)
    (folder / "protocols.toml").write_text(MANIFEST, encoding="utf-8")
    shutil.copytree(folder / "runs/candidate", folder / "runs/altered")
    mask = folder / "runs/altered/valid/Session_3.npy"
    valid = np.load(mask)
    valid[50:200] = 0
    np.save(mask, valid)
    for output, change in (
        ("whole", ()),
        ("altered", ("--set", 'protocols.demo.runs.candidate.path="runs/altered"')),
        ("full", ("--set", 'protocols.demo.params.window="full"')),
    ):
        ran = floorkit("run", "protocols.toml", "--quiet", "--output", output, *change, cwd=folder)
        assert ran.returncode == 0, ran.stderr
    return folder


def comparisons(folder: Path) -> dict[str, Any]:
    summary = json.loads((folder / "demo/summary.json").read_text(encoding="utf-8"))
    return {one["key"]: one for one in summary["comparisons"]}


def expected_events(run: str) -> dict[str, Any]:
    """The golden figures of a run at 2.0 s, by family."""
    expected = json.loads((GOLDEN / "two_runs/expected.json").read_text(encoding="utf-8"))
    return {one["family"]: one for one in expected["runs"][run]["events"] if one["horizon"] == 10}


def test_differences_are_those_of_the_golden_figures(made: Path) -> None:
    baseline, candidate = expected_events("baseline"), expected_events("candidate")
    found = comparisons(made / "whole")
    for key, family, name in (
        ("response_ap", "response", ""),
        ("yield_ap", "yield", ""),
        ("no_response_trigger_rate_at_recall_0.8", "response", "trigger_rate"),
        ("short_resume_trigger_rate_at_recall_0.8", "response", "short_resume_trigger_rate"),
        ("continue_false_stop_rate_at_recall_0.8", "yield", "trigger_rate"),
    ):
        a, b = (
            run[family]["at_recall"]["0.8"][name] if name else run[family]["ap"]
            for run in (baseline, candidate)
        )
        one = found[f"{key}[horizon_s=2.0]"]
        assert one["difference"] == pytest.approx(b - a, abs=1e-9)
        assert one["not_comparable"] == []
        if name:
            assert one["relative_reduction"] == pytest.approx((a - b) / a, abs=1e-9)


def test_lower_false_stop_rate_bought_with_lower_recall_is_said(made: Path) -> None:
    one = comparisons(made / "whole")["continue_false_stop_rate_at_recall_0.8[horizon_s=2.0]"]
    recalls = [
        expected_events(run)["yield"]["at_recall"]["0.8"]["recall"] for run in ("candidate", "baseline")
    ]
    numbers = f"{recalls[0]:.2f} vs {recalls[1]:.2f}"
    assert any("bought with lower" in caution and numbers in caution for caution in one["cautions"])


def test_candidate_with_more_invalid_cells_is_refused_in_words_and_without_a_reduction(made: Path) -> None:
    found = comparisons(made / "altered")
    assert found
    for one in found.values():
        assert any("response invalid differs: baseline" in reason for reason in one["not_comparable"])
        assert [one[name] for name in ("difference", "relative_reduction", "interval", "p_value")] == [
            None
        ] * 4


def test_folders_are_refused_figure_by_figure_where_counts_differ(made: Path) -> None:
    ran = floorkit("compare", "whole", "altered", "--json", cwd=made)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)["entries"]["demo"]["comparisons"]
    refused = {one["b"]: bool(one["not_comparable"]) for one in found}
    assert refused == {"B:baseline": False, "B:candidate": True}
    assert [one["relative_reduction"] for one in found if one["b"] == "B:candidate"] == [None] * 5


def test_another_window_is_never_compared(made: Path) -> None:
    ran = floorkit("compare", "whole", "full", cwd=made)
    assert ran.returncode == 4
    assert 'parameters: window "observable" in A, "full" in B' in ran.stdout
    assert "the results are not comparable" in ran.stderr
