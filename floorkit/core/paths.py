"""Paths of the manifest, and names of the data, kept inside the folders that the manifest names."""

from __future__ import annotations

import os
from pathlib import Path

from floorkit.core.errors import InputError, Problem


def resolve(root: Path, text: str) -> Path:
    """A path of the manifest: relative ones count from the manifest's folder ``root``."""
    return Path(os.path.normpath(root / os.path.expanduser(text)))


def shown(path: Path, root: Path) -> str:
    """A path as messages and results name it: relative to ``root`` where it lies below it."""
    try:
        return path.relative_to(root).as_posix()
    except ValueError:
        return path.as_posix()


def child(folder: Path, name: str) -> Path:
    """The path of a data-given ``name`` inside ``folder``.

    Raises
    ------
    InputError
        Where the name, or a symbolic link behind it, leads out of ``folder``.
    """
    path = folder / name
    inside = path.resolve().is_relative_to(folder.resolve())
    if not inside or name.startswith(("/", "~")) or "\\" in name or "\0" in name:
        raise InputError(
            Problem(
                "path leads out of the folder that the manifest names",
                str(path),
                found=str(path.resolve()),
                expected=f"a path inside {folder}",
                remedy="copy the file into the folder, or name its folder in the manifest",
            )
        )
    return path
