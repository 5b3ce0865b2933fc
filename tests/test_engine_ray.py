"""On Ray, where it is installed: the same bytes as one job, and a dead worker's unit by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Floorkit, result_files

pytest.importorskip("ray")

RAY = ("--executor", "ray", "--jobs", "2")


def test_ray_gives_the_same_bytes_as_one_job(toy_data: Path, floorkit: Floorkit) -> None:
    alone = floorkit("run", "protocols.toml", "--quiet", "--output", "alone", cwd=toy_data)
    there = floorkit(
        *("run", "protocols.toml", "--quiet", "--fresh", "--output", "there", *RAY),
        cwd=toy_data,
        RAY_AUTH_MODE="disabled",
    )
    assert (alone.returncode, there.returncode) == (0, 0), there.stderr
    assert result_files(toy_data / "there") == result_files(toy_data / "alone")


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("fail_on", "floorkit-toy 1.2.0, floorkit_score, unit u3, run a: a hook of the plugin failed"),
        ("die_on", "unit u3: a worker process died"),
    ],
)
def test_failures_on_ray_name_the_unit(toy_data: Path, floorkit: Floorkit, setting: str, told: str) -> None:
    ran = floorkit(
        *("run", "protocols.toml", "--quiet", "--set", f"protocols.toy.params.{setting}=u3", *RAY),
        cwd=toy_data,
        RAY_AUTH_MODE="disabled",
    )
    assert ran.returncode == 1
    assert told in ran.stderr
