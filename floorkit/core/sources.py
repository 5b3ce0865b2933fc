"""Hashes: of the code that computes, and of the files that it reads."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from floorkit.core.errors import EvaluationError, InputError, Problem
from floorkit.core.paths import shown

LEFTOVER_FOLDERS = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints"}
LEFTOVER_SUFFIXES = (".pyc", ".pyo", "~", ".swp", ".swo", ".orig", ".rej", ".bak")
LEFTOVER_NAMES = {".DS_Store", "Thumbs.db"}
LEFTOVER_PREFIXES = (".#", "#", "._")


def counts_as_source(path: str) -> bool:
    """Whether a file of a package folder, by relative POSIX path, belongs to its source hash."""
    *folders, name = path.split("/")
    return not (
        LEFTOVER_FOLDERS.intersection(folders)
        or name in LEFTOVER_NAMES
        or name.endswith(LEFTOVER_SUFFIXES)
        or name.startswith(LEFTOVER_PREFIXES)
    )


def hash_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    """``sha256:`` over sorted (relative POSIX path, file SHA-256) pairs, one ``path NUL sha LF`` each."""
    digest = hashlib.sha256()
    for path, sha in sorted(pairs):
        digest.update(f"{path}\0{sha}\n".encode())
    return f"sha256:{digest.hexdigest()}"


def package_location(package: str) -> Path:
    """Where a top-level package (or module) lies, found without running its code.

    Raises
    ------
    EvaluationError
        Where it cannot be found.
    """
    spec = importlib.util.find_spec(package)
    if spec is not None and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    if spec is not None and spec.origin:
        return Path(spec.origin)
    raise EvaluationError(Problem("package not found", package, remedy="install it again"))


def hash_package(location: Path) -> str:
    """Source hash of a package folder, a single module, or a package folder inside a zip archive.

    The same for an editable install, an installed wheel and an archive of the same sources.
    """
    if location.is_file():
        return hash_pairs([(location.name, _sha256(location.read_bytes()))])
    if location.is_dir():
        files = (path for path in location.rglob("*") if path.is_file())
        names = ((path.relative_to(location).as_posix(), path) for path in files)
        return hash_pairs((name, hash_file(path)[0]) for name, path in names if counts_as_source(name))
    return hash_pairs(_zipped(location))


def _zipped(location: Path) -> Iterator[tuple[str, str]]:
    archive = next((parent for parent in location.parents if parent.is_file()), None)
    if archive is None:
        raise EvaluationError(Problem("package folder not found", str(location)))
    inner = location.relative_to(archive).as_posix() + "/"
    with zipfile.ZipFile(archive) as opened:
        for name in opened.namelist():
            relative = name.removeprefix(inner)
            if name.startswith(inner) and not name.endswith("/") and counts_as_source(relative):
                yield relative, _sha256(opened.read(name))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def hash_file(path: Path) -> tuple[str, int]:
    """SHA-256 (hex) and size in bytes of a file, read in blocks.

    Raises
    ------
    InputError
        Where the file cannot be read.
    """
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256")
            return digest.hexdigest(), stream.tell()
    except OSError as error:
        raise InputError(Problem("cannot be read", shown(path), error.strerror or str(error))) from None


def hash_plain(data: Any) -> str:
    """SHA-256 (hex) of plain data as canonical JSON: sorted keys, floats by repr."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _sha256(text.encode())


def hash_values(values: Any) -> str:
    """SHA-256 (hex) of a Source's plain values: text, numbers, lists, tables, attrs values and arrays.

    Paths take no part: what stands in a file counts by its contents, not by its place.
    """
    digest = hashlib.sha256()
    _feed(digest, values)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    if value is None or isinstance(value, str | bytes | int | float):
        digest.update(f"V{type(value).__name__}{value!r};".encode())
    elif isinstance(value, Mapping):
        digest.update(f"M{len(value)}".encode())
        for key in sorted(value, key=repr):
            _feed(digest, key)
            _feed(digest, value[key])
    elif isinstance(value, list | tuple):
        digest.update(f"L{len(value)}".encode())
        for one in value:
            _feed(digest, one)
    elif isinstance(value, Path):
        digest.update(b"P")
    else:
        _feed_object(digest, value)


def _feed_object(digest: Any, value: Any) -> None:
    import numpy as np

    if isinstance(value, np.ndarray):
        digest.update(f"A{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif attrs.has(type(value)):
        _feed(digest, {field.name: getattr(value, field.name) for field in attrs.fields(type(value))})
    else:
        raise EvaluationError(
            Problem("not a plain value", "Source.values", type(value).__name__, "text, numbers, arrays")
        )


@frozen
class FileState:
    """What tells that a file was replaced or written to: size, modification time (ns) and inode."""

    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> FileState:
        try:
            stat = path.stat()
        except OSError as error:
            raise InputError(Problem("cannot be read", shown(path), error.strerror or str(error))) from None
        return cls(stat.st_size, stat.st_mtime_ns, stat.st_ino)


@frozen
class InputFile:
    """An input file as it was when it was hashed."""

    path: Path
    sha256: str
    size: int
    state: FileState

    @classmethod
    def read(cls, path: Path) -> InputFile:
        """Hash ``path``; InputError where it cannot be read."""
        state = FileState.of(path)
        sha256, size = hash_file(path)
        return cls(path, sha256, size, state)

    def changed(self, same_host: bool = True) -> Problem | None:
        """A problem where the file is no longer the one that was hashed.

        Inodes are compared on the same host only: some network file systems number them by client.

        Raises
        ------
        InputError
            Where it cannot be read.
        """
        now = FileState.of(self.path)
        if now == (self.state if same_host else attrs.evolve(self.state, inode=now.inode)):
            return None
        return Problem(
            "changed while the run went on",
            shown(self.path),
            "another size, time or inode than when it was hashed",
            "files that stay as they are until the run ends",
            "run again when nothing writes to it",
        )
