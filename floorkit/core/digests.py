"""Digests of input files, remembered, so that gigabytes are read once and not on every run.

A digest is taken for a file's as long as path, size, modification time (ns) and inode are those that it was
computed under. One gap is closed as git closes it for its index ("racy git"): a file that was
written so shortly before it was hashed that a second write could bear the same time is not remembered, and
hashed again on the next run. What remains, a file changed behind a restored time, ``--rehash`` finds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from attrs import define, field

from floorkit.core import sealed
from floorkit.core.errors import InputError
from floorkit.core.sources import FileState, InputFile

FRESH_NS = 2_000_000_000
"""A file is racily fresh for this long after its last change: the tick of the coarsest file system (FAT)."""

REMEMBERED = 500_000
"""Files whose digests are kept; those learnt first are forgotten first."""

_Row = tuple[int, int, int, str]
"""Size, modification time (ns), inode, SHA-256."""


@define
class Digests:
    """The digests remembered in one file.

    Parameters
    ----------
    path
        Where they are kept between runs.
    rows
        By absolute path, the one learnt last at the end.
    clock_ns
        The time that files are compared with: not later than the clock of any file system involved.
    rehash
        Compute every digest anew.
    """

    path: Path
    rows: dict[str, _Row]
    clock_ns: int
    rehash: bool = False
    wrong: list[Path] = field(factory=list)
    """Files whose remembered digest was not that of their bytes although nothing else told of it."""
    _new: dict[str, _Row] = field(factory=dict)

    @classmethod
    def load(cls, path: Path, rehash: bool = False, clock_ns: int | None = None) -> Digests:
        """Read what is remembered; nothing, where the file is missing or not as it was written."""
        data = sealed.read_json(path)
        rows = {name: _row(*row) for name, row in data.items()} if isinstance(data, Mapping) else {}
        now = time.time_ns()
        return cls(path, rows, now if clock_ns is None else min(now, clock_ns), rehash)

    def known(self, paths: Iterable[Path]) -> dict[Path, InputFile]:
        """Those of the files whose digests are remembered."""
        found = {}
        for path in paths if not self.rehash else ():
            row = self.rows.get(str(path))
            if row is None:
                continue
            with suppress(InputError):  # it cannot be read: whoever hashes it will say so
                state = FileState.of(path)
                if row[:3] == (state.size, state.mtime_ns, state.inode):
                    found[path] = InputFile(path, row[3], state.size, state)
        return found

    def learn(self, file: InputFile) -> None:
        """Remember a file that was just hashed, unless it is racily fresh."""
        name, state = str(file.path), file.state
        row = state.size, state.mtime_ns, state.inode, file.sha256
        before = self.rows.get(name)
        if before is not None and before[:3] == row[:3] and before != row:
            self.wrong.append(file.path)
        if state.mtime_ns < self.clock_ns - FRESH_NS:
            self._new[name] = row

    def save(self) -> None:
        """Keep what was learnt. Two processes that do so at once lose digests, never mix them up."""
        if not self._new:
            return
        data = sealed.read_json(self.path)
        kept = data if isinstance(data, dict) else {}
        for name in self._new:
            kept.pop(name, None)
        kept.update(self._new)
        bound = max(REMEMBERED, len(self._new))
        sealed.write_json(self.path, dict(list(kept.items())[-bound:]))


def _row(size: int, mtime_ns: int, inode: int, sha256: str) -> _Row:
    return size, mtime_ns, inode, sha256
