"""What ``floorkit init`` shows to plugins, and what they make of it: a folder's files, and a guess at a
manifest.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen

HEAD = 1 << 16
"""Bytes of a file that are looked at."""
MOST_FILES = 200_000
SKIPPED_FOLDERS = {"__pycache__", "node_modules", "results"}


@frozen
class Question:
    """A key of an entry that the files do not tell.

    Parameters
    ----------
    key
        Its place below the entry: ``"dataset.targets"``.
    text
        What to ask, without a question mark.
    is_path
        A path: it is asked from where the person stands, and written relative to the manifest.
    is_list
        A list of names, asked with commas between them; empty leaves the key out.
    """

    key: str
    text: str
    is_path: bool = False
    is_list: bool = False


@frozen
class Guess:
    """One entry of a manifest, as far as the files tell.

    Parameters
    ----------
    protocol
        Its id.
    because
        What was recognised, for the person to check: ``"2 runs with 9 forecasts each"``.
    dataset, runs, params
        Tables of the entry; what names a file or folder is a Path, relative to the listed folder.
    questions
        Keys that are still open.
    """

    protocol: str
    because: str
    dataset: Mapping[str, Any]
    runs: Mapping[str, Mapping[str, Any]]
    params: Mapping[str, Any] = field(factory=dict)
    questions: tuple[Question, ...] = ()


@frozen
class Listing:
    """The files below a folder, by relative POSIX path, in the order in which people count (2 before 10)."""

    root: Path
    files: tuple[str, ...]

    @classmethod
    def of(cls, root: Path) -> Listing:
        """Every file below ``root`` but hidden ones and results, MOST_FILES at most."""
        found: list[str] = []
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if name[0] != "." and name not in SKIPPED_FOLDERS)
            place = Path(folder).relative_to(root)
            found += [(place / name).as_posix() for name in names if name[0] != "."]
            if len(found) > MOST_FILES:
                break
        return cls(root, tuple(sorted(found[:MOST_FILES], key=natural)))

    def matching(self, pattern: str) -> list[str]:
        """The files whose path fits the regular expression ``pattern`` from start to end."""
        return [name for name in self.files if re.fullmatch(pattern, name)]

    def by_folder(self, files: Sequence[str]) -> dict[str, list[str]]:
        """Folder (``"."`` for the root) to the names of ``files`` in it."""
        folders: dict[str, list[str]] = {}
        for name in files:
            path = Path(name)
            folders.setdefault(path.parent.as_posix(), []).append(path.name)
        return folders

    def head(self, name: str) -> str:
        """The first part of a file as text, unzipped where it is gzip; empty where it cannot be read."""
        path = self.root / name
        try:
            with gzip.open(path) if name.endswith(".gz") else path.open("rb") as stream:
                return stream.read(HEAD).decode("utf-8", "replace")
        except (OSError, EOFError):
            return ""

    def json_keys(self, name: str) -> set[str]:
        """The keys of a JSON object that the first part of the file shows, at its outermost level."""
        return set(top_level_keys(self.head(name)))


def natural(text: str) -> list[tuple[int, str]]:
    """A key that sorts numbers by value: ``Session_2`` before ``Session_10``."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text)]


def top_level_keys(text: str) -> list[str]:
    """Keys at depth one of a JSON object of which ``text`` is the beginning."""
    keys: list[str] = []
    depth = position = 0
    token = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]')
    while (found := token.search(text, position)) is not None:
        position = found.end()
        mark = found.group()
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
        elif depth == 1 and text[position:].lstrip()[:1] == ":":
            keys.append(json.loads(mark))
    return keys if text.lstrip()[:1] == "{" else []


def counted(count: int, noun: str) -> str:
    """``1 run``, ``2 runs``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def run_name(path: str, root: Path, taken: Sequence[str] = ()) -> str:
    """A run's name for a file or folder: its last part, longer where that is taken, only allowed
    characters.
    """
    parts = [part for part in Path(re.sub(r"\.json(\.gz)?$", "", path)).parts if part != "."]
    parts = parts or [root.resolve().name]
    for count in range(1, len(parts) + 1):
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", "_".join(parts[-count:])).lstrip("_.-") or "run"
        if name not in taken:
            return name
    return f"{name}_{len(taken)}"
