"""joblib's Dask backend, connected, and made to tell what would otherwise be waited for without end.

joblib's backend (1.6) does not hand on that Dask gave a task up (its workers died four times, or cannot even
read it), nor that a cluster has no worker left. Both reach the caller here as exceptions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import distributed
from joblib._dask import DaskDistributedBackend
from tornado.ioloop import PeriodicCallback

CONNECT_S = 30
"""How long a scheduler may take to answer."""

WAIT_S = 300
"""How long a cluster may be without any worker."""


@contextmanager
def connect(address: str, jobs: int) -> Iterator[Any]:
    """A client of the cluster at ``address``, or of a new one of ``jobs`` processes on this machine.

    Raises
    ------
    OSError, TimeoutError, ValueError
        It is not there, or has no worker in time.
    """
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.ERROR)
    client_of: Any = distributed.Client
    if address.startswith("/"):
        Path(address).stat()  # distributed would wait for the file to appear
        opened = client_of(scheduler_file=address, timeout=CONNECT_S)
    elif address:
        opened = client_of(address if "://" in address else f"tcp://{address}", timeout=CONNECT_S)
    else:
        cluster_of: Any = distributed.LocalCluster
        cluster = cluster_of(
            n_workers=jobs, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=logging.ERROR
        )
        with cluster, client_of(cluster) as client:
            yield client
        return
    with opened as client:
        client.wait_for_workers(1, timeout=WAIT_S)
        yield client


class Backend(DaskDistributedBackend):  # type: ignore[misc]
    """joblib's Dask backend with failures handed on."""

    def configure(self, n_jobs: int = 1, parallel: Any = None, **options: Any) -> int:
        """The number of tasks at a time; never 1, which would make joblib compute in this process."""
        workers: int = super().configure(n_jobs, parallel, **options)
        return max(2, workers)

    def start_call(self) -> None:
        """Begin a call of ``joblib.Parallel``."""
        super().start_call()
        self._alone_since: float | None = None
        self._watch = PeriodicCallback(self._look_for_workers, 1000)
        self.client.loop.add_callback(self._watch.start)

    def stop_call(self) -> None:
        """End it."""
        self.client.loop.add_callback(self._watch.stop)
        super().stop_call()

    def submit(self, func: Any, callback: Callable[[Any], None] | None = None) -> Future[Any]:
        """Submit a batch; what Dask says of it when it fails goes the way that its result would."""
        future: Future[Any] = super().submit(func, callback)

        def told(done: Future[Any]) -> None:
            error = done.exception()
            if error is not None and callback is not None:
                callback(error)

        future.add_done_callback(told)
        return future

    def retrieve_result_callback(self, out: Any) -> Any:
        """The result of a batch, or its failure, raised."""
        if isinstance(out, BaseException):
            raise out
        return super().retrieve_result_callback(out)

    async def _look_for_workers(self) -> None:
        identity = await self.client.scheduler.identity(n_workers=1)
        if identity["workers"]:
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = time.monotonic()
        elif time.monotonic() - self._alone_since > WAIT_S:
            for future in self._results.values():
                if not future.done():
                    future.set_exception(TimeoutError(f"no worker was left for {WAIT_S} s"))
