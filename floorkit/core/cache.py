"""The cache: a folder with every unit's score tables, each under the hash of all that it depended on.

    CACHE/CACHEDIR.TAG           what the folder is; backup programs leave it out
    CACHE/tables/ab/cdef...      one unit's tables of one run, sealed with their key
    CACHE/entries/HASH.json      what each table of an entry depended on at last, for --explain-cache
    CACHE/digests.json           digests of input files by path, size, time and inode
    CACHE/remote/SCHEME/...      copies of inputs that are named by URL
    CACHE/work/run-...           a running process's own folder

There is no lock and no server. Files appear whole, under names that say what they hold, so that any number of
processes, also on several machines, can share the folder: the worst that can happen is that two
of them compute the same. A damaged file is found by its seal and computed again.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from attrs import frozen

from floorkit.core import sealed
from floorkit.core.digests import Digests
from floorkit.core.errors import ManifestError, Problem
from floorkit.core.store import TABLES, StoredTables, place, read_small

FOLDER = ".floorkit-cache"
VARIABLE = "FLOORKIT_CACHE"
LIMIT_VARIABLE = "FLOORKIT_CACHE_LIMIT"
LIMIT = 20 * 10**9
"""Bytes that the cache is pruned to after a run."""

TAG = "CACHEDIR.TAG"
_TAG_TEXT = (
    "Signature: 8a477f597d28d172789f06886806bc55\n# The cache of floorkit; it can be deleted at any time.\n"
)
ENTRIES, DIGESTS, REMOTE, WORK = "entries", "digests.json", "remote", "work"

LEFT_BEHIND_S = 2 * 24 * 3600
"""Working folders and unfinished files of killed processes are removed when they are this old."""

Absent = Literal["not in the cache", "its stored tables were damaged"]


def location(root: Path) -> Path:
    """The cache folder of manifests in ``root``: $FLOORKIT_CACHE, or ``.floorkit-cache`` beside them."""
    named = os.environ.get(VARIABLE, "")
    return Path(os.path.abspath(os.path.expanduser(named))) if named else root / FOLDER


def ensure(folder: Path) -> None:
    """Make ``folder`` a cache folder, if it is not one.

    Raises
    ------
    ManifestError
        Where it holds something else.
    OSError
        Where it cannot be made.
    """
    if not _is_cache(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if any(not path.name.endswith(sealed.PART) for path in folder.iterdir()):
            require(folder)  # another process may just have made it one
        with sealed.appearing(folder / TAG) as tag:
            tag.write_text(_TAG_TEXT, encoding="utf-8", newline="\n")
        (folder / ".gitignore").write_text("*\n", encoding="utf-8", newline="\n")
    for name in (TABLES, ENTRIES, REMOTE, WORK):
        (folder / name).mkdir(exist_ok=True)


def _is_cache(folder: Path) -> bool:
    try:
        return (folder / TAG).read_text(encoding="utf-8") == _TAG_TEXT
    except (OSError, UnicodeDecodeError):
        return False


def require(folder: Path) -> None:
    """Refuse a folder that is not a cache (ManifestError), so that nothing else is ever deleted."""
    if not _is_cache(folder):
        raise ManifestError(
            Problem(
                "not a cache folder of floorkit",
                str(folder),
                f"no {TAG} of floorkit in it" if folder.exists() else "it does not exist",
                "a cache, or a new or empty folder",
                f"name another folder in ${VARIABLE}",
            )
        )


@frozen(eq=False)
class Cache:
    """The cache as one run uses it.

    Parameters
    ----------
    folder
        The cache folder.
    work
        This process's own folder in it, gone when the run ends.
    digests
        The remembered digests of input files.
    fresh
        Take nothing from it; what is computed is stored all the same.
    started_ns
        When the run began, by the clock of the folder's file system.
    """

    folder: Path
    work: Path
    digests: Digests
    fresh: bool
    started_ns: int

    @classmethod
    @contextmanager
    def open(cls, folder: Path, fresh: bool = False, rehash: bool = False) -> Iterator[Cache]:
        """Use ``folder``, made where it is missing, for the length of a run.

        Parameters
        ----------
        fresh
            As if the folder were empty.
        rehash
            Hash every input file again, and fetch every remote one.

        Raises
        ------
        ManifestError, OSError
            See :func:`ensure`.
        """
        ensure(folder)
        with tempfile.TemporaryDirectory(
            prefix="run-", dir=folder / WORK, ignore_cleanup_errors=True
        ) as work:
            yield cls.within(folder, Path(work), fresh, rehash)

    @classmethod
    def within(cls, folder: Path, work: Path, fresh: bool = False, rehash: bool = False) -> Cache:
        """Like :meth:`open`, with a working folder that the caller removes."""
        ensure(folder)
        if fresh or rehash:
            for record in (folder / ENTRIES).glob(f"{REMOTE}-*"):
                record.unlink(missing_ok=True)
        started_ns = work.stat().st_mtime_ns
        digests = Digests.load(folder / DIGESTS, fresh or rehash, started_ns)
        return cls(folder, work, digests, fresh, started_ns)

    def fetch(self, key: str) -> StoredTables | Absent:
        """The tables stored under ``key``, checked byte by byte, or why there are none.

        What was fetched stays readable until the run ends, whatever happens to the cache meanwhile: small
        files are kept in memory, others get a second name in ``work``.
        """
        path = place(self.folder, key)
        try:
            data = read_small(path)
            stored = StoredTables(path if data is not None else _second_name(path, self.work / key), data)
            if stored.intact(key):
                with suppress(PermissionError):  # another user's file, in a cache that several share
                    os.utime(path)
                return stored
        except FileNotFoundError:
            return "not in the cache"
        path.unlink(missing_ok=True)
        return "its stored tables were damaged"

    def entry_record(self, name: str) -> Path:
        """Where the last dependencies of an entry are kept; ``name`` tells it from all others."""
        return self.folder / ENTRIES / f"{sealed.seal(name.encode()).hex()[:32]}.json"

    def prune(self, limit: int | None = None) -> tuple[int, int]:
        """Remove what was used longest ago until the cache is within ``limit``, but nothing of this run.

        Returns
        -------
        files, size
            What was removed.
        """
        return prune(self.folder, limit_bytes() if limit is None else limit, self.started_ns)


def _second_name(path: Path, name: Path) -> Path:
    name.unlink(missing_ok=True)
    try:
        os.link(path, name)
    except FileNotFoundError:
        raise
    except OSError:  # a file system without hard links
        shutil.copyfile(path, name)
    return name


# --- size -----------------------------------------------------------------------------------------


Item = tuple[int, int, str]
"""Something in the cache: when it was used (ns), its size in bytes, and its path."""


def limit_bytes() -> int:
    """The bound of $FLOORKIT_CACHE_LIMIT (``20GB``), or the default."""
    text = os.environ.get(LIMIT_VARIABLE, "")
    return parse_size(text, f"${LIMIT_VARIABLE}") if text else LIMIT


def parse_size(text: str, where: str) -> int:
    """Bytes of a size such as ``500MB`` or ``20 GB`` (powers of 1000); ManifestError for anything else."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMGT]?)B?\s*", text, re.ASCII)
    if match is None:
        raise ManifestError(Problem("not a size", where, text, "a number with kB, MB, GB or TB: 20GB"))
    return int(float(match[1]) * 1000 ** " kMGT".index(match[2] or " "))


def shown_size(size: int) -> str:
    """Bytes for people: ``1.2 GB``."""
    for power, name in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "kB")):
        if size >= 1000**power:
            return f"{size / 1000**power:.1f} {name}"
    return f"{size} bytes"


def items(folder: Path, *kinds: str) -> Iterator[Item]:
    """What the cache holds, by kind (``tables``, ``entries``, ``remote``; all without any)."""
    waiting = [str(folder / kind) for kind in kinds or (TABLES, ENTRIES, REMOTE)]
    while waiting:
        with suppress(FileNotFoundError), os.scandir(waiting.pop()) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    with suppress(FileNotFoundError):  # removed by another process meanwhile
                        stat = entry.stat(follow_symlinks=False)
                        yield max(stat.st_atime_ns, stat.st_mtime_ns), stat.st_size, entry.path


def prune(folder: Path, limit: int, since_ns: int) -> tuple[int, int]:
    """Remove what was used longest ago, and not after ``since_ns``, until ``limit`` holds.

    What killed processes left behind goes too. Copies of remote inputs that were used within two days
    stay: another process may be reading them.
    """
    _sweep(folder)
    copies, read_ns = f"{folder / REMOTE}{os.sep}", time.time_ns() - LEFT_BEHIND_S * 10**9
    held = sorted(items(folder))
    excess = sum(size for _, size, _ in held) - limit
    files = removed = 0
    for used_ns, size, path in held:
        if removed >= excess or used_ns >= since_ns:
            break
        if used_ns < read_ns or not path.startswith(copies):
            Path(path).unlink(missing_ok=True)
            files, removed = files + 1, removed + size
    return files, removed


def _sweep(folder: Path) -> None:
    """Remove working folders and unfinished files that nobody has touched for two days."""
    old = time.time() - LEFT_BEHIND_S
    for path in [*(folder / WORK).glob("*"), *(folder / TABLES).glob(f"*/.*{sealed.PART}")]:
        try:
            if path.stat().st_mtime < old:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        except FileNotFoundError:
            continue


def clear(folder: Path) -> tuple[int, int]:
    """Remove everything from the cache but the folders of running processes; returns files and bytes."""
    require(folder)
    held = list(items(folder))
    for kind in (TABLES, ENTRIES, REMOTE):
        shutil.rmtree(folder / kind, ignore_errors=True)
        (folder / kind).mkdir(exist_ok=True)
    (folder / DIGESTS).unlink(missing_ok=True)
    _sweep(folder)
    return len(held), sum(size for _, size, _ in held)


def info(folder: Path) -> dict[str, Any]:
    """What the cache holds: files and bytes of every kind, and its bound."""
    require(folder)
    kinds: dict[str, Any] = {}
    for kind in (TABLES, ENTRIES, REMOTE):
        sizes = [size for _, size, _ in items(folder, kind)]
        kinds[kind] = {"files": len(sizes), "bytes": sum(sizes)}
    digests = folder / DIGESTS
    known = sealed.read_json(digests)
    kinds["digests"] = {
        "files": len(known) if isinstance(known, dict) else 0,
        "bytes": digests.stat().st_size if digests.is_file() else 0,
    }
    return {"folder": str(folder), "limit": limit_bytes(), **kinds}
