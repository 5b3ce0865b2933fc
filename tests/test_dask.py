"""On a real Dask cluster of separate processes: the same bytes, refusals by name, nothing waited for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .conftest import TOY, Floorkit, build_wheel, command_environment, install, result_files

pytest.importorskip("distributed")

SLOW = ("--set", "protocols.toy.params.sleep=0.2")


class Cluster:
    """A Dask scheduler on loopback, and workers that are started and killed one by one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self.scheduler = self._start("scheduler", [], "--port", "0", "--scheduler-file", str(self.file))
        self._wait(self.file.exists)

    @property
    def executor(self) -> tuple[str, str]:
        return "--executor", f"dask://{self.file}"

    def _start(
        self, what: str, sites: list[Path], *arguments: str, name: str = ""
    ) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--host", "127.0.0.1", *arguments]
        with (self.folder / f"{name or what}.log").open("wb") as log:
            return subprocess.Popen(
                [*command, "--no-dashboard"],
                cwd=self.folder,
                env=command_environment(*sites),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_worker(self, name: str, *sites: Path, nanny: bool = False) -> None:
        options = [f"--{'' if nanny else 'no-'}nanny", "--nthreads", "1", "--death-timeout", "60"]
        self.workers[name] = self._start(
            *("worker", list(sites), "--scheduler-file", str(self.file), "--name", name),
            *(*options, "--local-directory", str(self.folder / name)),
            name=name,
        )
        log = self.folder / f"{name}.log"
        self._wait(lambda: b"Starting established connection" in log.read_bytes())

    def kill_worker(self, name: str) -> None:
        process = self.workers.pop(name)
        os.killpg(process.pid, 9)
        process.wait()

    def _wait(self, condition: object, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not condition():  # type: ignore[operator]
            assert time.monotonic() < deadline, "the cluster does not start"
            time.sleep(0.05)

    def close(self) -> None:
        for name in list(self.workers):
            self.kill_worker(name)
        os.killpg(self.scheduler.pid, 9)
        self.scheduler.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, toy_site: Path) -> Iterator[Cluster]:
    """A cluster of two workers that have the toy plugin."""
    one = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        one.start_worker("first", toy_site)
        one.start_worker("second", toy_site)
        yield one
    finally:
        one.close()


@contextmanager
def another_worker(cluster: Cluster, name: str, *sites: Path, nanny: bool = False) -> Iterator[None]:
    cluster.start_worker(name, *sites, nanny=nanny)
    try:
        yield
    finally:
        if name in cluster.workers:
            cluster.kill_worker(name)


def test_a_cluster_gives_the_same_bytes_as_one_job(
    toy_data: Path, floorkit: Floorkit, cluster: Cluster
) -> None:
    alone = floorkit("run", "protocols.toml", "--quiet", "--output", "alone", cwd=toy_data)
    shutil.rmtree(toy_data / ".floorkit-cache")
    there = floorkit(
        *("run", "protocols.toml", "--quiet", "--output", "there"), *cluster.executor, cwd=toy_data
    )
    assert (alone.returncode, there.returncode) == (0, 0), there.stderr
    assert (there.stdout, there.stderr) == ("", "")
    assert result_files(toy_data / "there") == result_files(toy_data / "alone")
    again = floorkit("run", "protocols.toml", *cluster.executor, cwd=toy_data)
    assert again.stderr == "toy: 6 of 6 units reused\n"


def test_a_cluster_of_this_machine_is_started_and_ended(toy_data: Path, floorkit: Floorkit) -> None:
    alone = floorkit("run", "protocols.toml", "--quiet", "--output", "alone", cwd=toy_data)
    arguments = ("--fresh", "--executor", "dask", "--jobs", "2", "--output", "there")
    there = floorkit("run", "protocols.toml", "--quiet", *arguments, cwd=toy_data)
    assert (alone.returncode, there.returncode, there.stderr) == (0, 0, "")
    assert result_files(toy_data / "there") == result_files(toy_data / "alone")


def test_a_worker_killed_amid_scoring_is_survived(
    toy_data: Path, toy_site: Path, floorkit: Floorkit, cluster: Cluster
) -> None:
    alone = floorkit("run", "protocols.toml", "--quiet", *SLOW, "--output", "alone", cwd=toy_data)
    assert alone.returncode == 0
    shutil.rmtree(toy_data / ".floorkit-cache")
    with another_worker(cluster, "victim", toy_site):
        process = subprocess.Popen(
            [sys.executable, "-m", "floorkit", "run", "protocols.toml", "--quiet", *SLOW, *cluster.executor],
            cwd=toy_data,
            env=command_environment(toy_site),
            stderr=subprocess.PIPE,
            text=True,
        )
        tables = toy_data / ".floorkit-cache" / "tables"
        while not any(tables.glob("*/*")):
            assert process.poll() is None
            time.sleep(0.01)
        cluster.kill_worker("victim")
        assert process.poll() is None, "it went on without the worker"
        _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert result_files(toy_data / "results") == result_files(toy_data / "alone")


def test_a_unit_that_kills_every_worker_is_named(
    toy_data: Path, toy_site: Path, floorkit: Floorkit, tmp_path: Path
) -> None:
    """A cluster whose nanny starts workers anew gives the task up after four; nothing waits for ever."""
    own = Cluster(tmp_path)
    try:
        own.start_worker("reborn", toy_site, nanny=True)
        die = ("--set", "protocols.toy.params.die_on=u3")
        ran = floorkit("run", "protocols.toml", "--quiet", *die, *own.executor, cwd=toy_data)
    finally:
        own.close()
    assert ran.returncode == 1
    assert "unit u3: a worker process died" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (toy_data / "results").exists()


def impatient(data: Path, site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``floorkit run`` that waits a second where it would wait minutes."""
    code = (
        "import sys\n"
        "from floorkit.cli import main\n"
        "from floorkit.core import dask_backend\n"
        "dask_backend.CONNECT_S = dask_backend.WAIT_S = 1\n"
        "main(sys.argv[1:])\n"
    )
    return subprocess.run(
        [sys.executable, "-c", code, "run", "protocols.toml", "--quiet", *arguments],
        cwd=data,
        env=command_environment(site),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_cluster_that_loses_its_last_worker_is_not_waited_for(
    toy_data: Path, toy_site: Path, tmp_path: Path
) -> None:
    own = Cluster(tmp_path)
    try:
        own.start_worker("only", toy_site)
        die = ("--set", "protocols.toy.params.die_on=u3")
        ran = impatient(toy_data, toy_site, *die, *own.executor)
    finally:
        own.close()
    assert ran.returncode == 1
    assert "unit u3" in ran.stderr
    assert "no worker was left for 1 s" in ran.stderr


def test_a_scheduler_that_does_not_answer_is_told(toy_data: Path, toy_site: Path) -> None:
    ran = impatient(toy_data, toy_site, "--executor", "dask://127.0.0.1:9")
    assert ran.returncode == 1
    assert "--executor dask://127.0.0.1:9: no cluster with a worker there" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_failing_hook_names_plugin_hook_unit_and_run(
    toy_data: Path, floorkit: Floorkit, cluster: Cluster
) -> None:
    fail = ("--set", "protocols.toy.params.fail_on=u3")
    ran = floorkit("run", "protocols.toml", "--quiet", *fail, *cluster.executor, cwd=toy_data)
    assert ran.returncode == 1
    assert "floorkit-toy 1.2.0, floorkit_score, unit u3, run a: a hook of the plugin failed" in ran.stderr
    assert "RuntimeError: asked to fail" in ran.stderr
    assert "Traceback" not in ran.stderr


def other_toy(folder: Path, remark: str = "", rename: str = "") -> Path:
    """A site folder with another plugin made of the toy one: with a remark, or under another name."""
    project = folder / "project"
    shutil.copytree(TOY, project)
    if rename:
        (project / "floorkit_toy").rename(project / f"floorkit_{rename}")
        text = (project / "pyproject.toml").read_text(encoding="utf-8")
        text = text.replace("floorkit-toy", f"floorkit-{rename}").replace(
            "floorkit_toy", f"floorkit_{rename}"
        )
        text = text.replace("\ntoy =", f"\n{rename} =")
        (project / "pyproject.toml").write_text(text, encoding="utf-8")
        plugin = project / f"floorkit_{rename}" / "plugin.py"
        code = plugin.read_text(encoding="utf-8").replace('            "toy",', f'            "{rename}",')
        plugin.write_text(code, encoding="utf-8")
    else:
        with (project / "floorkit_toy" / "plugin.py").open("a", encoding="utf-8") as stream:
            stream.write(f"\n# {remark}\n")
    install(folder / "site", str(build_wheel(project, folder)))
    return folder / "site"


def test_a_worker_with_another_source_is_refused_by_name_before_it_scores(
    toy_data: Path, floorkit: Floorkit, cluster: Cluster, tmp_path: Path
) -> None:
    with another_worker(cluster, "drifted", other_toy(tmp_path / "other", remark="drifted")):
        pid = cluster.workers["drifted"].pid
        ran = floorkit("run", "protocols.toml", "--quiet", *cluster.executor, cwd=toy_data)
    assert ran.returncode == 3
    assert f"process {pid} on " in ran.stderr
    assert "a worker has other code: floorkit-toy" in ran.stderr
    assert ran.stderr.count("sha256:") == 2
    assert not list((toy_data / ".floorkit-cache" / "tables").glob("*/*")), "nothing was scored"


def test_a_worker_without_the_plugin_is_refused_by_name_before_it_scores(
    toy_data: Path, toy_site: Path, floorkit: Floorkit, cluster: Cluster, tmp_path: Path
) -> None:
    manifest = toy_data / "protocols.toml"
    text = manifest.read_text(encoding="utf-8").replace("floorkit-toy", "floorkit-faraway")
    manifest.write_text(text, encoding="utf-8")
    site = other_toy(tmp_path / "other", rename="faraway")
    ran = floorkit("run", "protocols.toml", *cluster.executor, cwd=toy_data, sites=[toy_site, site])
    assert ran.returncode == 3
    assert ran.stderr.count("a worker has other code: floorkit-faraway") == 2
    assert ran.stderr.count("not installed") == 2
    assert not list((toy_data / ".floorkit-cache" / "tables").glob("*/*")), "nothing was scored"


def test_a_worker_that_joins_late_checks_hashes_itself(
    toy_data: Path, floorkit: Floorkit, cluster: Cluster, toy_site: Path, tmp_path: Path
) -> None:
    """Nobody asked it before the run: it is the worker that refuses, when its first task comes."""
    site = other_toy(tmp_path / "other", remark="late")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "floorkit", "run", "protocols.toml", "--quiet"),
            *("--set", "protocols.toy.params.sleep=1.5", *cluster.executor),
        ],
        cwd=toy_data,
        env=command_environment(toy_site),
        stderr=subprocess.PIPE,
        text=True,
    )
    tables = toy_data / ".floorkit-cache" / "tables"
    work = toy_data / ".floorkit-cache" / "work"
    while not list(work.glob("run-*/*.running")):
        assert process.poll() is None
        time.sleep(0.01)
    with another_worker(cluster, "late", site):
        _, err = process.communicate(timeout=120)
    assert process.returncode == 3, err
    assert "a worker has other code: floorkit-toy" in err
    assert len(list(tables.glob("*/*"))) < 18


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="a path that each process sees elsewhere")
def test_inputs_that_a_worker_cannot_see_are_told(
    toy_data: Path, floorkit: Floorkit, cluster: Cluster
) -> None:
    """The workers' own working folder has no such files."""
    ran = floorkit(
        *("run", "protocols.toml", "--quiet", "--set", "protocols.toy.dataset.gold=/proc/self/cwd/gold"),
        *cluster.executor,
        cwd=toy_data,
    )
    assert ran.returncode == 4
    assert "/proc/self/cwd/gold/u0.json: a worker cannot read an input file" in ran.stderr
    assert "inputs under the same path wherever units are computed" in ran.stderr
    for worker in cluster.workers.values():
        assert f"process {worker.pid} on " in ran.stderr


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="a path that each process sees elsewhere")
def test_a_cache_that_a_worker_cannot_see_is_told(
    toy_data: Path, floorkit: Floorkit, cluster: Cluster
) -> None:
    ran = floorkit(
        *("run", "protocols.toml", "--quiet"),
        *cluster.executor,
        cwd=toy_data,
        FLOORKIT_CACHE="/proc/self/cwd/cache",
    )
    assert ran.returncode == 1
    assert "a worker cannot write to the cache" in ran.stderr
    assert "name another one in $FLOORKIT_CACHE" in ran.stderr


def test_an_address_where_nothing_listens_and_an_executor_that_does_not_exist(
    toy_data: Path, floorkit: Floorkit
) -> None:
    missing = str(toy_data / "no.json")
    nobody = floorkit("run", "protocols.toml", "--executor", f"dask://{missing}", cwd=toy_data)
    assert nobody.returncode == 1
    assert f"--executor dask://{missing}: no cluster with a worker there" in nobody.stderr
    assert "No such file" in nobody.stderr
    unknown = floorkit("run", "protocols.toml", "--executor", "slurm", cwd=toy_data)
    assert unknown.returncode == 2
    assert "local, dask, dask://HOST:PORT or ray" in unknown.stderr
