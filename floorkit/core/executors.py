"""Where units are computed: in this process, in local processes, or on a cluster, by joblib's backends.

    local             --jobs 1: this process; more: loky's worker processes
    dask              a Dask cluster of --jobs worker processes on this machine
    dask://HOST:PORT  a running Dask scheduler (also dask://tls://..., dask:///path/to/scheduler-file.json)
    ray               Ray on this machine, with --jobs worker processes
    ray://HOST:PORT   a running Ray cluster of which this machine is a node (ray://auto finds it)

Whatever the place, outcomes come in the order of the tasks, and tables are the same to the byte: each unit
is computed alone, by one thread. Results cross through the cache folder, which all workers must see; what
crosses the network are a unit's names and paths, and its problems.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from attrs import define, field

from floorkit.core.engine import Outcome, Task, cannot_store, refusals
from floorkit.core.errors import EvaluationError, ManifestError, Problem, SourceDriftError

Work = Callable[[Task], Outcome]
Progress = Callable[[int], None]
"""Called with the number of units that were finished."""

BACKENDS = ("local", "dask", "ray")

LIST = 256
"""Tasks that a backend without generators is given at a time."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


@define
class Executor:
    """Computes tasks somewhere; a context manager, which ends what it started.

    Parameters
    ----------
    backend, address
        ``local``, ``dask`` or ``ray``, and the cluster's address, empty for one on this machine.
    jobs
        Worker processes on this machine; a cluster that runs already has its own number.
    """

    backend: str = "local"
    address: str = ""
    jobs: int = 1
    _started: ExitStack = field(factory=ExitStack, repr=False)
    _client: Any = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str, jobs: int) -> Executor:
        """The executor of ``--executor TEXT``; ManifestError for one that does not exist."""
        backend, _, address = text.partition("://")
        if backend not in BACKENDS or (backend == "local" and address):
            raise ManifestError(
                Problem("unknown executor", "--executor", text, "local, dask, dask://HOST:PORT or ray")
            )
        return cls(backend, address, jobs)

    def __enter__(self) -> Executor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._started.close()
        self._client = None

    def map(
        self, work: Work, tasks: Sequence[Task], scratch: Path, progress: Progress | None = None
    ) -> Generator[Outcome, None, None]:
        """Outcomes of ``work``, in the order of ``tasks``.

        Parameters
        ----------
        work
            ``check_unit`` or ``score_unit``.
        scratch
            A folder that workers can write to: they note there what they are at.
        progress
            Told of every finished unit.

        Raises
        ------
        SourceDriftError
            Workers have other code.
        EvaluationError
            The cluster cannot be reached, or workers died; the units that they were at are named.
        """
        if not tasks:
            return
        outcomes = self._here(work, tasks) if self._is_here(tasks) else self._there(work, tasks, scratch)
        with closing(outcomes):
            for outcome in outcomes:
                yield outcome
                if progress is not None:
                    progress(1)

    def _is_here(self, tasks: Sequence[Task]) -> bool:
        return self.backend == "local" and (self.jobs == 1 or len(tasks) == 1)

    def _here(self, work: Work, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        with one_thread():
            yield from map(work, tasks)

    def _there(self, work: Work, tasks: Sequence[Task], scratch: Path) -> Generator[Outcome, None, None]:
        import joblib

        backend = self._backend(tasks)
        noted = [(task, scratch / f"{index}.running") for index, task in enumerate(tasks)]
        finished = False
        try:
            calls = [joblib.delayed(_noted)(work, task, note) for task, note in noted]
            streams = self.backend != "ray"  # Ray's backend returns lists only
            with joblib.parallel_config(**backend):
                parallel = joblib.Parallel(
                    return_as="generator" if streams else "list", pre_dispatch="4*n_jobs"
                )
            outcomes = parallel(calls) if streams else _in_lists(parallel, calls)
            with _ended_quietly(outcomes):
                yield from outcomes
            finished = True
        except Exception as error:
            running = [f"unit {task.unit.name}" for task, note in noted if note.exists()]
            first = (str(error).splitlines() or [""])[0]
            raise EvaluationError(
                Problem(
                    "a worker process died" if _is_death(error) else "a worker failed",
                    ", ".join(running),
                    f"{type(error).__name__}: {first}",
                    remedy="if memory ran out, use fewer --jobs",
                )
            ) from error
        finally:
            if not finished and self.backend == "local":
                from joblib.externals.loky import get_reusable_executor

                get_reusable_executor().shutdown(wait=True, kill_workers=True)

    def _backend(self, tasks: Sequence[Task]) -> dict[str, Any]:
        """Arguments of ``joblib.parallel_config``."""
        if self.backend == "local":
            return {"backend": "loky", "n_jobs": self.jobs, "inner_max_num_threads": 1}
        where = f"--executor {self.backend}" + (f"://{self.address}" if self.address else "")
        try:
            if self._client is None:
                self._client = self._connect()
        except ImportError as error:
            remedy = f"pip install 'floorkit[{self.backend}]'"
            raise ManifestError(
                Problem(f"{self.backend} is not installed", where, str(error), remedy=remedy)
            ) from None
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:
            expected = "a cluster that is running and has workers"
            raise EvaluationError(
                Problem("no cluster with a worker there", where, str(error), expected)
            ) from None
        if self.backend == "ray":
            return {"backend": "ray", "n_jobs": -1 if self.address else self.jobs}
        from floorkit.core.dask_backend import Backend

        self._refuse(self._client.run(refusals, tasks[0].recipe, on_error="return"))
        return {"backend": Backend(client=self._client)}

    def _connect(self) -> Any:
        """What stands for the cluster; ended with the executor."""
        if self.backend == "dask":
            from floorkit.core.dask_backend import connect

            return self._started.enter_context(connect(self.address, self.jobs))
        import ray
        from ray.util.joblib import register_ray

        register_ray()
        options = {"address": self.address} if self.address else {"num_cpus": self.jobs}
        self._started.callback(ray.shutdown)
        return ray.init(include_dashboard=None if self.address else False, log_to_driver=False, **options)

    def _refuse(self, answers: dict[str, Any]) -> None:
        """Raise what the workers say against computing here, all of them, before any of them does."""
        problems: list[Problem] = []
        for worker, answer in sorted(answers.items()):
            if isinstance(answer, BaseException):
                found = f"{type(answer).__name__}: {answer}"
                problems.append(
                    Problem(
                        "a worker cannot run floorkit",
                        worker,
                        found,
                        remedy="install floorkit on the workers",
                    )
                )
            else:
                problems += answer
        if problems:
            raise SourceDriftError(problems)


def _in_lists(parallel: Any, calls: Sequence[Any]) -> Generator[Outcome, None, None]:
    """Outcomes of a backend that returns lists only, some hundred at a time."""
    with parallel:
        for start in range(0, len(calls), LIST):
            yield from parallel(calls[start : start + LIST])


@contextmanager
def _ended_quietly(outcomes: Generator[Outcome, None, None]) -> Iterator[None]:
    """End joblib's generator in any case, without its remarks on the work that is then given up.

    loky's manager thread, which is killed with its workers, may stumble over a task that is gone.
    """
    usual = threading.excepthook

    def hook(told: threading.ExceptHookArgs) -> None:
        if not (told.exc_type is KeyError and type(told.thread).__name__ == "_ExecutorManagerThread"):
            usual(told)

    threading.excepthook = hook
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "[0-9]+ tasks ", UserWarning)
            outcomes.close()
        threading.excepthook = usual


def _is_death(error: Exception) -> bool:
    return type(error).__name__ in {
        "TerminatedWorkerError",
        "BrokenProcessPool",
        "KilledWorker",
        "ActorDiedError",
    }


def _noted(work: Work, task: Task, note: Path) -> Outcome:
    """Work in a worker, with a note of the unit for as long as it takes."""
    _single_thread()
    try:
        note.touch()
    except OSError as error:
        return Outcome(failure=cannot_store(note.parent, error))
    try:
        return work(task)
    finally:
        note.unlink(missing_ok=True)


_limited = False


def _single_thread() -> None:
    """Let this worker process compute with one thread from now on."""
    global _limited  # noqa: PLW0603 - the state of the process
    if not _limited:
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)
        os.environ.update(dict.fromkeys(_THREADS, "1"))
        _limited = True


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread meanwhile, also in libraries that are loaded only then."""
    from threadpoolctl import threadpool_limits

    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        with threadpool_limits(1):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
