"""What a worker refuses, what it names when it fails, and where units are computed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from floorkit.core import engine
from floorkit.core.engine import Outcome, function_name, refusals, resolve_function
from floorkit.core.errors import EvaluationError, ManifestError
from floorkit.core.executors import Executor, one_thread
from floorkit.core.registry import core_source

from .conftest import Floorkit, command_environment, result_files, write_json


class Recipe:
    """As much of a recipe as refusals look at."""

    def __init__(self, *sources: tuple[str, str]) -> None:
        self.sources = sources


def test_a_process_refuses_other_code_missing_code_and_code_that_it_imported_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cluster's workers live on while their code is changed under them: what they imported counts."""
    assert refusals(Recipe(("floorkit", core_source()))) == []  # type: ignore[arg-type]
    other, missing = refusals(Recipe(("floorkit", "sha256:0"), ("floorkit-nowhere", "sha256:1")))  # type: ignore[arg-type]
    assert other.what == "a worker has other code: floorkit"
    assert (other.found, other.expected) == (core_source(), "sha256:0")
    assert other.where == f"process {os.getpid()} on {os.uname().nodename}"
    assert (missing.what, missing.found) == ("a worker has other code: floorkit-nowhere", "not installed")
    monkeypatch.setitem(engine._imported, "floorkit", "sha256:old")
    (stale,) = refusals(Recipe(("floorkit", core_source())))  # type: ignore[arg-type]
    assert stale.what == "a worker still runs older code: floorkit"
    assert (stale.found, stale.remedy) == ("sha256:old", "start the workers anew")


def test_functions_cross_to_workers_by_name_alone() -> None:
    assert resolve_function(function_name(function_name, "it")) is function_name
    assert resolve_function(function_name(Outcome.stop, "it")) is Outcome.stop
    with pytest.raises(EvaluationError, match="not a module-level function"):
        function_name(lambda: None, "Dataset.load")


@pytest.mark.parametrize(
    ("text", "backend", "address"),
    [
        ("local", "local", ""),
        ("dask", "dask", ""),
        ("dask://head:8786", "dask", "head:8786"),
        ("dask:///shared/scheduler.json", "dask", "/shared/scheduler.json"),
        ("dask://tls://head:8786", "dask", "tls://head:8786"),
        ("ray", "ray", ""),
    ],
)
def test_executors_are_named_on_the_command_line(text: str, backend: str, address: str) -> None:
    executor = Executor.parse(text, 3)
    assert (executor.backend, executor.address, executor.jobs) == (backend, address, 3)


@pytest.mark.parametrize("text", ["", "slurm", "local://here", "Dask", "dask:head"])
def test_unknown_executors_are_refused(text: str) -> None:
    with pytest.raises(ManifestError, match="unknown executor"):
        Executor.parse(text, 1)


def test_threads_are_limited_meanwhile_and_not_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with one_thread():
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "5"
    assert "MKL_NUM_THREADS" not in os.environ


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_failing_hook_is_told_with_plugin_version_hook_unit_and_run(
    toy_data: Path, floorkit: Floorkit, jobs: str
) -> None:
    fail = ("--set", "protocols.toy.params.fail_on=u2")
    ran = floorkit("run", "protocols.toml", "--jobs", jobs, *fail, cwd=toy_data)
    assert ran.returncode == 1
    assert "floorkit-toy 1.2.0, floorkit_score, unit u2, run a: a hook of the plugin failed" in ran.stderr


def test_units_scored_before_a_failure_are_kept(toy_data: Path, floorkit: Floorkit) -> None:
    fail = ("--set", "protocols.toy.params.fail_on=u2")
    assert floorkit("run", "protocols.toml", *fail, cwd=toy_data).returncode == 1
    again = floorkit("run", "protocols.toml", *fail, "--explain-cache", cwd=toy_data)
    assert again.stderr.count(": reused") == 2


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_file_that_changes_while_the_run_goes_on_is_told_and_nothing_of_it_is_cached(
    toy_data: Path, toy_site: Path, floorkit: Floorkit, jobs: str
) -> None:
    slow = ("--set", "protocols.toy.params.sleep=0.15", "--jobs", jobs)
    process = subprocess.Popen(
        [sys.executable, "-m", "floorkit", "run", "protocols.toml", "--quiet", *slow],
        cwd=toy_data,
        env=command_environment(toy_site),
        stderr=subprocess.PIPE,
        text=True,
    )
    tables = toy_data / ".floorkit-cache" / "tables"
    while not any(tables.glob("*/*")):
        assert process.poll() is None
        time.sleep(0.01)
    original = (toy_data / "a/u5.json").read_bytes()
    write_json(toy_data / "a/u5.json", [0.5] * 50)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "a/u5.json: changed while the run went on" in err
    assert not (toy_data / "results").exists()
    (toy_data / "a/u5.json").write_bytes(original)
    told = floorkit("run", "protocols.toml", *slow, "--explain-cache", cwd=toy_data).stderr
    assert told.count(": reused") == 5
    assert "u5 (calibration): computed" in told
    continued = result_files(toy_data / "results")
    floorkit("run", "protocols.toml", *slow, "--fresh", cwd=toy_data)
    assert result_files(toy_data / "results") == continued


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_an_interrupted_run_keeps_what_it_scored(toy_data: Path, toy_site: Path, floorkit: Floorkit) -> None:
    slow = ("--set", "protocols.toy.params.sleep=0.2")
    process = subprocess.Popen(
        [sys.executable, "-m", "floorkit", "run", "protocols.toml", "--quiet", *slow],
        cwd=toy_data,
        env=command_environment(toy_site),
        stderr=subprocess.PIPE,
        text=True,
    )
    while not any((toy_data / ".floorkit-cache" / "tables").glob("*/*")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert list((toy_data / ".floorkit-cache" / "work").iterdir()) == []
    told = floorkit("run", "protocols.toml", *slow, cwd=toy_data).stderr
    assert "of 6 units reused" in told
