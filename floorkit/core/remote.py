"""Inputs named by URL: copies in the cache, brought up to date on every run, hashed like any other file.

fsspec reads ``s3://``, ``gs://``, ``hf://``, ``https://`` and what else is installed for it. A URL names one
file, or a folder with everything below it; with ``http(s)://``, which does not tell files from folders, a
folder's URL ends with ``/`` and its server lists it. A copy is taken as it is where the file system gives a
file the same version, checksum or tag as before; where it gives none, the file is fetched again.

Plugins see the copies, under their own names; messages and results show the URLs.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from floorkit.core import cache, sealed
from floorkit.core.errors import FloorkitError, InputError, ManifestError, Problem
from floorkit.core.paths import child

COMPONENT = 200
"""Characters of a quoted URL that go into one folder name; the next folder takes the rest."""

SCHEME_END = quote("://", safe="")

VERSIONS = (
    "ETag", "etag", "VersionId", "version_id", "generation", "md5Hash", "blob_id", "lfs", "content_md5",
    "Content-MD5", "Digest", "checksum", "sha256", "created",
)  # fmt: skip
"""What file systems call that which changes with a file's bytes."""

AT_ONCE = 64
"""Files that are fetched together; what was fetched before an interruption stays."""

_Row = list[Any]
"""Version, size and modification time of the local copy."""


def copy_folder(url: str) -> Path:
    """Where copies of what lies below ``url`` stand, relative to the cache's folder for them."""
    text = quote(url.rstrip("/"), safe="")
    parts = [text[start : start + COMPONENT] for start in range(0, len(text), COMPONENT)]
    return Path(*(f"{part}+" for part in parts[:-1]), parts[-1])


def url_of(path: Path) -> str:
    """The URL behind the path of a copy; "" for any other path."""
    for index, part in enumerate(path.parts):
        if SCHEME_END in part:
            rest = path.parts[index:]
            more = [*takewhile(lambda name: name.endswith("+"), rest)]
            base = unquote("".join(name.removesuffix("+") for name in rest[: len(more) + 1]))
            return "/".join([base, *rest[len(more) + 1 :]])
    return ""


def mirror(folder: Path, url: str) -> Path:
    """Bring the copy of ``url`` in the cache ``folder`` up to date.

    Returns
    -------
    Path
        The local file or folder.

    Raises
    ------
    ManifestError
        The URL cannot be understood, or what reads it is not installed.
    InputError
        It cannot be listed or fetched.
    """
    if "?" in url or "#" in url:
        raise ManifestError(
            Problem("a URL with a query or fragment cannot be an input", url, remedy="name a plain URL")
        )
    cache.ensure(folder)
    with _told(url):
        system, root = _open(url)
        system.invalidate_cache()
        is_folder = url.endswith("/") or system.info(root)["type"] == "directory"
        listed = dict(_listed(system, root)) if is_folder else {_name(root): (root, system.info(root))}
    base = url if is_folder else url.rstrip("/").rpartition("/")[0]
    target = folder / cache.REMOTE / copy_folder(base)
    target.mkdir(parents=True, exist_ok=True)
    _update(folder, url, system, target, listed)
    if is_folder:
        _remove_others(target, listed)
        return target
    return child(target, _name(root))


def hash_url(url: str) -> tuple[str, int]:
    """SHA-256 (hex) and size in bytes of a remote file, read in blocks; InputError where that fails."""
    digest = hashlib.sha256()
    size = 0
    with _told(url):
        system, path = _open(url)
        with system.open(path, "rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
                size += len(block)
    return digest.hexdigest(), size


class _told:
    """Tells whatever a file system raises as a problem of the URL: each has exceptions of its own."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, FloorkitError):
            found = f"{type(error).__name__}: {error}"
            remedy = "check the address, the rights and the network"
            raise InputError(Problem("cannot be fetched", self.url, found, remedy=remedy)) from error


def _open(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs

        system, root = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise ManifestError(
            Problem(
                "nothing that is installed reads this URL",
                url,
                str(error),
                remedy="pip install 'floorkit[remote]'",
            )
        ) from None
    return system, root


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _listed(system: Any, root: str) -> Iterator[tuple[str, tuple[str, Mapping[str, Any]]]]:
    """Every file below ``root``: its relative name, its path in the file system, and what is known of it."""
    start = f"{root.rstrip('/')}/"
    by_url = "http" in system.protocol
    # Listings over HTTP leave out what cannot be listed, unless they are asked not to.
    found = system.find(root, detail=True, **({"on_error": "raise"} if by_url else {}))
    if not found:
        raise FileNotFoundError("no file below it")
    for path, details in sorted(found.items()):
        name = path.removeprefix(start)
        yield unquote(name) if by_url else name, (path, details)


def _update(
    folder: Path, url: str, system: Any, target: Path, listed: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> None:
    """Fetch what is new or changed, and note versions as soon as files stand in their places."""
    record = folder / cache.ENTRIES / f"{cache.REMOTE}-{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"
    known = sealed.read_json(record)
    rows: dict[str, _Row] = known if isinstance(known, dict) else {}
    places = {name: child(target, name) for name in listed}
    wanted = [name for name in listed if not _is_current(places[name], listed[name][1], rows.get(name))]
    for start in range(0, len(wanted), AT_ONCE):
        names = wanted[start : start + AT_ONCE]
        with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder / cache.WORK) as work:
            fetched = [Path(work, str(index)) for index in range(len(names))]
            with _told(url):
                system.get([listed[name][0] for name in names], list(map(str, fetched)))
            _put(names, fetched, places)
        rows |= {name: _row(places[name], listed[name][1]) for name in names}
        sealed.write_json(record, rows)
    for place in places.values():
        os.utime(place, ns=(time.time_ns(), place.stat().st_mtime_ns))  # used now, changed when it was


def _put(names: Sequence[str], fetched: Sequence[Path], places: Mapping[str, Path]) -> None:
    for name, path in zip(names, fetched, strict=True):
        places[name].parent.mkdir(parents=True, exist_ok=True)
        path.replace(places[name])


def _version(details: Mapping[str, Any]) -> str:
    found = {key: details[key] for key in VERSIONS if details.get(key)}
    return repr(sorted(found.items())) if found else ""


def _row(path: Path, details: Mapping[str, Any]) -> _Row:
    stat = path.stat()
    return [_version(details), stat.st_size, stat.st_mtime_ns]


def _is_current(path: Path, details: Mapping[str, Any], row: _Row | None) -> bool:
    """Whether the copy is the one that was fetched, and the remote file still has its version."""
    version = _version(details)
    return bool(version) and row is not None and path.is_file() and row == _row(path, details)


def _remove_others(target: Path, listed: Mapping[str, Any]) -> None:
    """Remove copies of files that are no longer there."""
    for path in target.rglob("*"):
        if path.is_file() and path.relative_to(target).as_posix() not in listed:
            path.unlink(missing_ok=True)
