"""The metric-change gate: golden values are tied to a plugin's version and to its CHANGELOG.

``golden.lock`` beside a plugin's tests records the SHA-256 of every golden file and the version under which
the values came to be what they are::

    version = "1.0.0"

    [files]
    "golden/basic/expected.json" = "sha256:..."

A golden value that moves fails the tests until the plugin's version is raised, its CHANGELOG has, under that
version, a heading ``Metric`` with entries that say what moved, which way and how far, and the lock is
written anew::

    python -m floorkit.testing.golden plugins/NAME/tests

which refuses as long as version or entry are missing. New golden files need only the last step.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from attrs import frozen

from floorkit.core.errors import FloorkitError, InputError, Problem, raise_problems
from floorkit.core.sources import hash_file

MODULE = "floorkit.testing.golden"
LOCK = "golden.lock"
PATTERNS = ("golden/**/expected*",)
METRIC = "Metric"
_RELEASE = re.compile(r"^## \[?v?(?P<version>[0-9][^\]\s]*)\]?")


@frozen
class Lock:
    """What golden.lock records: the version of the values, and each golden file's hash by relative POSIX
    path.
    """

    version: str
    files: Mapping[str, str]


@frozen
class Plugin:
    """What the gate needs of a plugin's folder: its version, and the released versions of its CHANGELOG.

    ``metric`` maps a version to the text below its ``Metric`` heading; ``first`` is the oldest version.
    """

    version: str
    first: str
    metric: Mapping[str, str]


def golden_gate(tests: str | Path, patterns: Iterable[str] = PATTERNS) -> Callable[[], None]:
    """A test function: no golden value moves without a version and a ``Metric`` entry.

    Parameters
    ----------
    tests
        The plugin's folder of tests, with golden.lock; pyproject.toml and CHANGELOG.md lie in the folder
        above.
    patterns
        Which files below it hold golden values.

    Examples
    --------
    >>> test_metric_changes_are_announced = golden_gate(Path(__file__).parent)  # doctest: +SKIP
    """
    folder, wanted = Path(tests).resolve(), tuple(patterns)

    def test_metric_changes_are_announced() -> None:
        import pytest

        try:
            found = problems(folder, wanted)
        except FloorkitError as error:
            found = list(error.problems)
        if found:
            pytest.fail("\n".join(map(str, found)), pytrace=False)

    return test_metric_changes_are_announced


def problems(tests: Path, patterns: Iterable[str] = PATTERNS) -> list[Problem]:
    """What is wrong between golden files, golden.lock, version and CHANGELOG; empty where all fit.

    Raises
    ------
    InputError
        Where one of them cannot be read.
    """
    lock, plugin, files = read_lock(tests / LOCK), read_plugin(tests.parent), golden_files(tests, patterns)
    found = _unannounced(lock, plugin, tests / LOCK)
    moved = _moved(lock, files)
    new = sorted(files.keys() - lock.files.keys())
    if moved:
        found += _missing_announcement(lock, plugin, tests, moved)
    if moved or new:
        found.append(
            Problem(
                "golden files differ from the lock",
                str(tests / LOCK),
                ", ".join([*moved, *(f"{name} (new)" for name in new)]),
                "the recorded ones",
                f"python -m {MODULE} {tests}",
            )
        )
    return found


def _moved(lock: Lock, files: Mapping[str, str]) -> list[str]:
    return sorted(name for name, sha256 in lock.files.items() if files.get(name) != sha256)


def _missing_announcement(lock: Lock, plugin: Plugin, tests: Path, moved: list[str]) -> list[Problem]:
    """Golden values moved: the version must be another one than the lock's, and have a Metric entry."""
    if plugin.version == lock.version:
        return [
            Problem(
                "golden values moved, and the plugin's version did not",
                str(tests.parent / "pyproject.toml"),
                f"version {plugin.version}, moved: {', '.join(moved)}",
                f"a version above {lock.version}",
                f"undo the change, or raise the version and tell it in CHANGELOG.md under '### {METRIC}'",
            )
        ]
    return _metric_problems(plugin, plugin.version, tests.parent / "CHANGELOG.md")


def _unannounced(lock: Lock, plugin: Plugin, place: Path) -> list[Problem]:
    """The lock's version, unless it is the first, must have a Metric entry."""
    if lock.version == plugin.first:
        return []
    return _metric_problems(plugin, lock.version, place.parent.parent / "CHANGELOG.md")


def _metric_problems(plugin: Plugin, version: str, place: Path) -> list[Problem]:
    text = plugin.metric.get(version, "")
    entries = [line for line in text.splitlines() if re.match(r"\s*[-*] .*\S", line)]
    if entries and re.search(r"\d", text):
        return []
    return [
        Problem(
            "golden values moved without being announced",
            str(place),
            f"no numbers below '### {METRIC}'" if entries else f"no entry below '### {METRIC}'",
            f"below '## [{version}]' a heading '### {METRIC}' with entries: what moved, which way, how far",
        )
    ]


def golden_files(tests: Path, patterns: Iterable[str]) -> dict[str, str]:
    """``sha256:...`` of every golden file by relative POSIX path; InputError where there is none."""
    paths = {path for pattern in patterns for path in tests.glob(pattern) if path.is_file()}
    if not paths:
        raise InputError(
            Problem("no golden file", str(tests), expected="files that match " + ", ".join(patterns))
        )
    return {path.relative_to(tests).as_posix(): f"sha256:{hash_file(path)[0]}" for path in sorted(paths)}


def read_lock(path: Path) -> Lock:
    """Read golden.lock; InputError where it is missing or damaged."""
    table = _toml(path, f"python -m {MODULE} {path.parent}")
    version, files = table.get("version"), table.get("files")
    if not isinstance(version, str) or not isinstance(files, dict):
        raise InputError(Problem("not a golden lock", str(path), expected='version = "..." and [files]'))
    return Lock(version, files)


def read_plugin(folder: Path) -> Plugin:
    """Version and CHANGELOG of a plugin's folder; InputError where they cannot be read."""
    project = _toml(folder / "pyproject.toml", "").get("project")
    if not isinstance(project, dict) or not isinstance(project.get("version"), str):
        raise InputError(Problem("no project.version", str(folder / "pyproject.toml")))
    releases = _releases(folder / "CHANGELOG.md")
    if project["version"] not in releases:
        raise InputError(
            Problem(
                "the plugin's version is not in its CHANGELOG",
                str(folder / "CHANGELOG.md"),
                ", ".join(releases) or "no version",
                f"## [{project['version']}]",
            )
        )
    return Plugin(project["version"], list(releases)[-1], releases)


def _toml(path: Path, remedy: str) -> dict[str, object]:
    import tomli

    try:
        return tomli.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            Problem("cannot be read", str(path), error.strerror or str(error), remedy=remedy)
        ) from None
    except ValueError as error:
        raise InputError(Problem("not valid TOML", str(path), str(error))) from None


def _releases(path: Path) -> dict[str, str]:
    """Versions in the order of the file (newest first), each with the text below its Metric heading."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(Problem("cannot be read", str(path), error.strerror or str(error))) from None
    releases: dict[str, str] = {}
    version = heading = ""
    for line in lines:
        if line.startswith("## "):
            release = _RELEASE.match(line)
            version, heading = (release["version"] if release else ""), ""
            if version:
                releases.setdefault(version, "")
        elif line.startswith("### "):
            heading = line.removeprefix("### ").strip()
        elif version and heading.casefold() == METRIC.casefold():
            releases[version] += line + "\n"
    return releases


def write_lock(tests: Path, patterns: Iterable[str] = PATTERNS) -> Lock:
    """Write golden.lock anew where that is allowed.

    Returns
    -------
    Lock
        As written: of the plugin's version where a value moved (or there was no lock), else of the old one.

    Raises
    ------
    InputError
        A golden value moved, and version or CHANGELOG do not say so.
    """
    wanted = tuple(patterns)
    plugin, files = read_plugin(tests.parent), golden_files(tests, wanted)
    version = plugin.version
    if (tests / LOCK).exists():
        old = read_lock(tests / LOCK)
        moved = _moved(old, files)
        found = _unannounced(old, plugin, tests / LOCK)
        found += _missing_announcement(old, plugin, tests, moved) if moved else []
        raise_problems(InputError, found)
        version = plugin.version if moved else old.version
    lock = Lock(version, files)
    lines = [
        f"# Golden values and the version that they belong to, written by python -m {MODULE}.",
        f'version = "{lock.version}"',
        "",
        "[files]",
        *(f'"{name}" = "{sha256}"' for name, sha256 in lock.files.items()),
    ]
    (tests / LOCK).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    return lock


def main(arguments: list[str]) -> int:
    """Write the locks of the folders of tests that are named; returns the exit code."""
    if not arguments:
        sys.stderr.write("usage: python -m floorkit.testing.golden TESTS_FOLDER [PATTERN ...]\n")
        return 2
    tests, patterns = Path(arguments[0]).resolve(), tuple(arguments[1:]) or PATTERNS
    try:
        lock = write_lock(tests, patterns)
    except FloorkitError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"{tests / LOCK}: {len(lock.files)} golden files of version {lock.version}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
