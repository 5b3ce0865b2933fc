"""Seeing what a piece of code does beside returning a value.

Python's audit events tell of files that are opened for writing, of processes and of network; standard
output and error are replaced; global state is compared before and after. What an import does is not
counted: it happens once a process, whoever is first.
"""

from __future__ import annotations

import contextlib
import io
import locale
import os
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType, ModuleType
from typing import Any

from attrs import frozen

from floorkit.testing.fingerprint import fingerprint

WRITES, PRINTS, STATE, NETWORK, PROCESSES = "write", "print", "state", "network", "process"

_EVENTS = {
    **dict.fromkeys(
        (
            "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate",
            "os.chmod", "os.chown", "os.utime", "shutil.copyfile", "shutil.move", "shutil.rmtree",
            "tempfile.mkstemp", "tempfile.mkdtemp", "sqlite3.connect",
        ),
        WRITES,
    ),
    **dict.fromkeys(
        (
            "socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto",
            "socket.sendmsg", "urllib.Request", "ftplib.connect", "smtplib.connect",
        ),
        NETWORK,
    ),
    **dict.fromkeys(
        (
            "subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn",
            "os.startfile", "pty.spawn",
        ),
        PROCESSES,
    ),
}  # fmt: skip
_WRITING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@frozen
class Deed:
    """Something that was done beside returning a value.

    ``kind`` is one of WRITES, PRINTS, STATE, NETWORK, PROCESSES; ``place`` what did it (a hook), ``what``
    tells what was seen.
    """

    kind: str
    place: str
    what: str


class _Audit:
    """The one audit hook of the process: hooks cannot be removed, so it is silent unless someone watches."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] | None = None
        self.installed = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.seen is None:
            return
        if event == "open":
            path, mode, flags = arguments
            writing = any(letter in mode for letter in "wax+") if mode else bool(flags & _WRITING_FLAGS)
            if writing and not isinstance(path, int) and os.fspath(path) != os.devnull and not _importing():
                self.seen.append((WRITES, f"opened {os.fspath(path)!r} for writing"))
        elif event in _EVENTS and not _importing():
            self.seen.append((_EVENTS[event], f"{event} {arguments!r}"))


_audit = _Audit()


def _importing() -> bool:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


@contextlib.contextmanager
def watching(place: str, package: str, deeds: list[Deed]) -> Iterator[None]:
    """Add to ``deeds`` what the body does beside returning a value.

    Parameters
    ----------
    place
        What is watched, for the deeds.
    package
        Package whose module-level values count as global state, beside the interpreter's own.
    deeds
        Extended in place.
    """
    if not _audit.installed:
        sys.addaudithook(_audit)
        _audit.installed = True
    before = global_state(package)
    outer, _audit.seen = _audit.seen, []
    text = io.StringIO()
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            contextlib.redirect_stdout(text),
            contextlib.redirect_stderr(text),
        ):
            warnings.simplefilter("default")
            yield
    finally:
        seen, _audit.seen = _audit.seen, outer
    deeds += [Deed(kind, place, what) for kind, what in seen or ()]
    if text.getvalue():
        deeds.append(Deed(PRINTS, place, repr(text.getvalue()[:200])))
    deeds += [
        Deed(PRINTS, place, f"warned: {one.category.__name__}: {one.message}")
        for one in warned
        if not issubclass(one.category, DeprecationWarning | PendingDeprecationWarning | ImportWarning)
    ]
    after = global_state(package)
    deeds += [
        Deed(STATE, place, f"changed {name}")
        for name in sorted(before.keys() & after.keys())
        if before[name] != after[name]
    ]


def global_state(package: str) -> dict[str, str]:
    """Fingerprints of the interpreter's global state and of the module-level values of ``package``."""
    import numpy as np

    probes: dict[str, Callable[[], Any]] = {
        "os.environ": lambda: dict(os.environ),
        "the working directory": os.getcwd,
        "sys.path": lambda: list(sys.path),
        "random's state": random.getstate,
        "numpy.random's state": lambda: np.random.get_state(legacy=False),
        "numpy's error handling": np.geterr,
        "numpy's print options": np.get_printoptions,
        "the locale": lambda: locale.setlocale(locale.LC_ALL),
        "the recursion limit": sys.getrecursionlimit,
        "the running threads": threading.active_count,
    }
    state = {name: fingerprint(probe()) for name, probe in probes.items()}
    for name, module in sorted(sys.modules.items()):
        if name == package or name.startswith(f"{package}."):
            state.update(_module_state(name, module))
    return state


def _module_state(name: str, module: ModuleType) -> dict[str, str]:
    return {
        f"{name}.{key}": fingerprint(value)
        for key, value in list(vars(module).items())
        if not key.startswith("__")
        and not isinstance(value, ModuleType | FunctionType | type)
        and not callable(value)
    }
