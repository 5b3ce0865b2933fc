"""Paths of the manifest, and names of the data, kept inside the folders that the manifest names."""

from __future__ import annotations

import os
import re
from pathlib import Path

from floorkit.core.errors import InputError, Problem


def is_url(text: str) -> bool:
    """Whether a text of the manifest is a URL (``s3://...``) and not a path."""
    return re.match(r"[a-z][a-z0-9+.-]*://", text) is not None


def resolve(root: Path, text: str) -> Path:
    """A path of the manifest: relative ones count from the manifest's folder ``root``.

    A URL gives the path of its copy in the cache, which is brought up to date.
    """
    if is_url(text):
        from floorkit.core.cache import location
        from floorkit.core.remote import mirror

        return mirror(location(root), text)
    return Path(os.path.normpath(root / os.path.expanduser(text)))


def shown(path: Path, root: Path | None = None) -> str:
    """A path as messages and results name it: a copy by its URL, others relative to ``root`` if below it."""
    if "%3A%2F%2F" in (text := path.as_posix()):
        from floorkit.core.remote import url_of

        return url_of(path)
    if root is not None and path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return text


def child(folder: Path, name: str) -> Path:
    """The path of a data-given ``name`` inside ``folder``.

    Raises
    ------
    InputError
        Where the name, or a symbolic link behind it, leads out of ``folder``.
    """
    path = folder / name
    plain = name not in ("", ".", "..") and not any(character in name for character in "/\\:\0")
    inside = (plain and not path.is_symlink()) or path.resolve().is_relative_to(folder.resolve())
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
