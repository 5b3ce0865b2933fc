"""``pytest protocols.toml`` runs the kit, in a real pytest process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from floorkit.testing.checklist import RULES


def run_pytest(manifest: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", str(manifest)]
    if "floorkit" not in {point.name for point in _pytest_plugins()}:
        command += ["-p", "floorkit.testing.pytest_plugin"]
    return subprocess.run(
        [*command, *arguments],
        env=environment,
        cwd=manifest.parent,
        capture_output=True,
        text=True,
        check=False,
    )


def _pytest_plugins() -> list[object]:
    from importlib import metadata

    return list(metadata.entry_points(group="pytest11"))


def test_a_manifest_on_the_command_line_is_checked(install: Callable[..., Path]) -> None:
    done = run_pytest(install("sound"), "--conformance-off", "no-network: only here")
    assert done.returncode == 0, done.stdout
    assert f"{len(RULES) - 1} passed, 1 skipped" in done.stdout
    assert "no-network is off: only here" in done.stdout


def test_a_breach_is_told_without_a_traceback(install: Callable[..., Path]) -> None:
    done = run_pytest(install("wrong", ("denominator=negatives,", "")))
    assert done.returncode == 1
    assert "figures-have-counts: Every figure says out of how many" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_rule_that_does_not_exist_stops_the_collection(install: Callable[..., Path]) -> None:
    done = run_pytest(install("sound"), "--conformance-off", "no-netwrk: typo")
    assert done.returncode == 2
    assert "did you mean 'no-network'?" in done.stdout
