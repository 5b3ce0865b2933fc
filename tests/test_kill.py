"""Killed at any moment, a run loses nothing: the next one continues, to the bytes of a run left alone."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .conftest import command_environment, result_files

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and process groups")

TABLES = 18
"""Six units of two runs and a control."""

ARGUMENTS = [
    *("run", "protocols.toml", "--quiet"),
    *("--set", "protocols.toy.params.sleep=0.02"),
    *("--set", "protocols.toy.statistics.resamples=100"),
]

FORKS = """
import json, os, signal, sys, time
from floorkit.cli import main

def code(arguments):
    try:
        main(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)

print(code(json.loads(sys.stdin.readline())), flush=True)
for line in sys.stdin:
    arguments, kill_after_s = json.loads(line)
    child = os.fork()
    if child == 0:
        os._exit(code(arguments))
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        os.kill(child, signal.SIGKILL)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Runs a first command line, then forks a process for each further one and kills it after a while: kills hit
the work and not the imports, which the first did.
"""


class Runs:
    """Runs of the command line in one data folder, each in a process of its own."""

    def __init__(self, data: Path, site: Path) -> None:
        self.data = data
        self.cache = data / ".floorkit-cache"
        self.results = data / "results"
        self.environment = command_environment(site)

    def start(self, jobs: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "floorkit", *ARGUMENTS, "--jobs", str(jobs)],
            cwd=self.data,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def finish(self, jobs: int) -> None:
        process = self.start(jobs)
        output, _ = process.communicate(timeout=120)
        assert (process.returncode, output) == (0, "")

    @contextmanager
    def forking(self) -> Iterator[subprocess.Popen[str]]:
        """A process that runs once, and then forks runs (see FORKS)."""
        with subprocess.Popen(
            [sys.executable, "-c", FORKS],
            cwd=self.data,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert self.ask(process, ARGUMENTS) == 0
            yield process

    def ask(self, forking: subprocess.Popen[str], line: object) -> int:
        """Exit code of a run, negative where it was killed."""
        assert forking.stdin is not None
        assert forking.stdout is not None
        forking.stdin.write(json.dumps(line) + "\n")
        forking.stdin.flush()
        return int(forking.stdout.readline())

    def clear(self) -> None:
        shutil.rmtree(self.cache, ignore_errors=True)
        shutil.rmtree(self.results, ignore_errors=True)

    def tables(self) -> dict[str, int]:
        """Stored tables with their inodes; unfinished files are none."""
        return {
            path.name: path.stat().st_ino
            for path in (self.cache / "tables").rglob("*")
            if path.is_file() and not path.name.startswith(".")
        }

    def outcome(self) -> tuple[dict[str, bytes], dict[str, Any]]:
        """Everything that a run writes, but its times."""
        record = json.loads((self.results / "toy/provenance.json").read_text(encoding="utf-8"))
        for key in ("started", "ended", "command"):
            del record[key]
        return result_files(self.results), record


def kill_loop(data: Path, site: Path, kills: int, seed: int) -> list[int]:
    """Kill runs at random moments until ``kills`` were hit; how many tables each left behind.

    A run that comes to its end, after any number of killed ones, must have written what a run that was
    left alone writes; the next begins with nothing.
    """
    draw = random.Random(seed)
    runs = Runs(data, site)
    left: list[int] = []
    with runs.forking() as forking:
        expected = runs.outcome()
        runs.clear()
        started = time.monotonic()
        assert runs.ask(forking, [ARGUMENTS, None]) == 0
        length_s = time.monotonic() - started
        assert runs.outcome() == expected
        runs.clear()
        while len(left) < kills:
            code = runs.ask(forking, [ARGUMENTS, draw.uniform(0.0, length_s)])
            if code == -signal.SIGKILL:
                left.append(len(runs.tables()))
            else:
                assert code == 0
                assert runs.results.exists()
            if runs.results.exists():
                assert runs.outcome() == expected
                runs.clear()
            elif left[-1] == TABLES and draw.random() < 0.5:
                runs.clear()  # or most kills would fall behind the scoring
    return left


def test_fifty_kills_lose_nothing_and_results_are_the_same_bytes(toy_data: Path, toy_site: Path) -> None:
    left = kill_loop(toy_data, toy_site, kills=60, seed=20261130)
    assert len(left) == 60
    amid_scoring = [count for count in left if 0 < count < TABLES]
    assert len(amid_scoring) >= 10, left


@pytest.mark.soak
def test_a_thousand_kills(toy_data: Path, toy_site: Path) -> None:
    seed = time.time_ns()
    print(f"seed {seed}")
    assert len(kill_loop(toy_data, toy_site, kills=1000, seed=seed)) == 1000


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("at", [2, 9])
def test_a_killed_run_continues_where_it_was(toy_data: Path, toy_site: Path, jobs: int, at: int) -> None:
    """Killed with its workers when ``at`` tables are stored, it goes on with another number of them."""
    runs = Runs(toy_data, toy_site)
    process = runs.start(jobs)
    try:
        while len(runs.tables()) < at:
            assert process.poll() is None
            time.sleep(0.005)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    before = runs.tables()
    assert at <= len(before) < TABLES
    assert not runs.results.exists()
    runs.finish(3 - jobs)
    after = runs.tables()
    assert len(after) == TABLES
    assert {name: after[name] for name in before} == before, "what was scored was not scored again"
    continued = runs.outcome()
    shutil.rmtree(runs.cache)
    runs.finish(1)
    assert runs.outcome() == continued
