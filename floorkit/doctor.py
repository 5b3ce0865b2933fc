"""``floorkit doctor``: what is installed, whether it works here, and what to do where it does not."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Literal

import click
from attrs import asdict, frozen

import floorkit
from floorkit.core import registry
from floorkit.core.environment import package_versions
from floorkit.core.errors import FloorkitError, Problem
from floorkit.core.registry import Failed, Plugin
from floorkit.core.results import check_output
from floorkit.core.sections import to_json
from floorkit.core.sources import package_location

Level = Literal["ok", "warning", "error"]
NEEDED_PYTHON = (3, 11)
LITTLE_SPACE = 1_000_000_000
"""Bytes; below it a warning."""


@frozen
class Finding:
    """One thing that was looked at: whether it is well, what it is, and what to do."""

    level: Level
    subject: str
    text: str
    remedy: str = ""


def examine(output: Path) -> list[Finding]:
    """Look at everything; never raises for what is wrong with the environment.

    Parameters
    ----------
    output
        The results folder to try; it need not exist.
    """
    plugins = registry.discover()
    return [
        *_python(),
        *_core(),
        *_plugins(plugins),
        *_packages(plugins),
        *_folder("results folder", output),
        *_folder("temporary folder", Path(tempfile.gettempdir())),
        *_workers(),
        *_threads(),
        *_encoding(),
    ]


def _python() -> Iterator[Finding]:
    text = f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}"
    if sys.version_info < NEEDED_PYTHON:
        yield Finding("error", "python", text, "install Python 3.11 or newer")
    else:
        yield Finding("ok", "python", text)
    yield Finding("ok", "platform", platform.platform())
    command = shutil.which("floorkit")
    if command is None:
        yield Finding(
            "warning", "command", "floorkit is not on PATH", f"add {Path(sys.executable).parent} to PATH"
        )
    elif Path(command).parent.resolve() != Path(sys.executable).parent.resolve():
        yield Finding(
            "warning",
            "command",
            f"the floorkit on PATH, {command}, belongs to another environment",
            f"call {Path(sys.executable).parent / 'floorkit'}, or activate its environment",
        )


def _core() -> Iterator[Finding]:
    source = _short(registry.core_source())
    text = f"{floorkit.__version__} {source} at {package_location('floorkit')}"
    installed = metadata.version("floorkit")
    if installed != floorkit.__version__:
        remedy = "install it again, so that its metadata are those of its sources"
        yield Finding("warning", "floorkit", f"{text}; its metadata say {installed}", remedy)
    else:
        yield Finding("ok", "floorkit", text)


def _plugins(plugins: Sequence[Plugin]) -> Iterator[Finding]:
    loaded = []
    for plugin in plugins:
        subject = f"{plugin.distribution} {plugin.version}"
        result = registry.load(plugin)
        if isinstance(result, Failed):
            for problem in result.problems:
                yield Finding("error", subject, _line(problem), problem.remedy)
            continue
        loaded.append(result)
        names = ", ".join(protocol.id for protocol in result.protocols) or "no protocol"
        yield Finding("ok", subject, f"loads: {names}; {_short(plugin.source)} at {plugin.location}")
        for problem in registry.deprecations(result):
            yield Finding("warning", subject, f"{problem.where} is deprecated: {problem.found}")
    if not plugins:
        yield Finding("warning", "plugins", "none is installed", "pip install a protocol: floorkit-NAME")
    for problem in registry.conflicts(loaded):
        yield Finding("error", "plugins", _line(problem), problem.remedy)


def _line(problem: Problem) -> str:
    return f"{problem.what}: {problem.found}" if problem.found else problem.what


def _short(source: str) -> str:
    """A source hash as signatures show it; ``floorkit plugins`` prints the whole."""
    return source[: len("sha256:") + 8]


def _packages(plugins: Sequence[Plugin]) -> Iterator[Finding]:
    names = ["floorkit", *dict.fromkeys(plugin.distribution for plugin in plugins)]
    for name in names:
        try:
            requirements = metadata.requires(name) or ()
        except metadata.PackageNotFoundError:
            yield Finding("error", name, "its metadata have another name", "install it again")
            continue
        for requirement in requirements:
            match = re.match(r"[A-Za-z0-9._-]+", requirement)
            if match is None or ";" in requirement:
                continue  # an extra, or a package for other platforms
            try:
                metadata.version(match.group())
            except metadata.PackageNotFoundError:
                remedy = f"pip install '{requirement}'"
                yield Finding("error", match.group(), f"{name} needs it; it is not installed", remedy)
    known = {registry.normalized(name) for name in names}
    versions = {name: found for name, found in package_versions(names).items() if name not in known}
    yield Finding("ok", "packages", ", ".join(f"{name} {found}" for name, found in versions.items()))


def _folder(subject: str, folder: Path) -> Iterator[Finding]:
    existing = folder.absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    try:
        check_output(folder) if subject == "results folder" else None
        with tempfile.TemporaryDirectory(prefix=".floorkit-doctor-", dir=existing):
            free = shutil.disk_usage(existing).free
    except FloorkitError as error:
        problem = error.problems[0]
        yield Finding("error", subject, f"{folder}: {_line(problem)}", problem.remedy)
    except OSError as error:
        text = f"{existing} cannot be written: {error.strerror}"
        remedy = "choose another with --output" if subject == "results folder" else "set TMPDIR to another"
        yield Finding("error", subject, text, remedy)
    else:
        text = f"{folder} can be written, {free / 1e9:.1f} GB free"
        little = free < LITTLE_SPACE
        yield Finding("warning" if little else "ok", subject, text, "make room" if little else "")


def _workers() -> Iterator[Finding]:
    """Start two worker processes as --jobs does: containers without shared memory cannot."""
    import joblib

    try:
        joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(os.getpid)() for _ in range(2))
    except (OSError, RuntimeError) as error:
        yield Finding(
            "error", "workers", f"cannot be started: {error}", "use --jobs 1, or give the machine a /dev/shm"
        )
        return
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield Finding(
        "ok", "workers", f"processes start; {usable} of {os.cpu_count()} processors usable: --jobs {usable}"
    )


def _threads() -> Iterator[Finding]:
    import numpy  # noqa: F401 - loads the BLAS that is asked for below
    from threadpoolctl import threadpool_info

    for library in threadpool_info():
        name = f"{library['internal_api']} {library.get('version') or ''}".strip()
        yield Finding(
            "ok",
            f"{library['user_api']} threads",
            f"{library['num_threads']} of {name}; floorkit computes with one in every process",
        )


def _encoding() -> Iterator[Finding]:
    found = (sys.stdout.encoding or "").lower().replace("_", "-")
    if found in ("utf-8", "utf8"):
        yield Finding("ok", "encoding", "standard output is UTF-8")
    else:
        remedy = "set PYTHONIOENCODING=utf-8 or a UTF-8 locale; files are UTF-8 in any case"
        yield Finding("warning", "encoding", f"standard output is {found or 'unknown'}", remedy)


def _wrapped(text: str, width: int, indent: str) -> str:
    return textwrap.fill(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def print_findings(findings: Sequence[Finding], as_json: bool) -> int:
    """Print the findings; returns the exit code, 1 where one of them is an error."""
    errors = sum(finding.level == "error" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    if as_json:
        click.echo(to_json({"findings": [asdict(finding) for finding in findings]}), nl=False)
        return int(errors > 0)
    indent = " " * (max(len(finding.subject) for finding in findings) + len("WARNING") + 3)
    width = max(shutil.get_terminal_size().columns, len(indent) + 30)
    for finding in findings:
        mark = finding.level if finding.level == "ok" else finding.level.upper()
        head = f"{mark:<7} {finding.subject}".ljust(len(indent))
        click.echo(_wrapped(head + finding.text, width, indent))
        if finding.remedy:
            click.echo(_wrapped(f"{indent}-> {finding.remedy}", width, indent + "   "))
    click.echo(
        "nothing to fix"
        if not errors + warnings
        else f"{errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}"
    )
    return int(errors > 0)
