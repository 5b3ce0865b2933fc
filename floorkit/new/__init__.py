"""``floorkit new NAME``: a complete plugin distribution with a working protocol, to change room by room.

``template`` is that distribution itself, under the name ``plugin_name``; writing one means copying it under
another name.
"""

from __future__ import annotations

import keyword
import re
import tempfile
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from floorkit.core.errors import ManifestError, Problem
from floorkit.core.sources import counts_as_source

PLACEHOLDER = "plugin_name"
RENAMED = {"gitignore": ".gitignore"}
"""Files that would act on the template itself under their real name."""


def write_plugin(name: str, parent: Path) -> Path:
    """Write the distribution ``floorkit-NAME`` as a folder of that name below ``parent``.

    Parameters
    ----------
    name
        The protocol's id: lower-case letters, digits and underscores (hyphens become underscores).
    parent
        A folder; made where it does not exist.

    Returns
    -------
    Path
        The new folder.

    Raises
    ------
    ManifestError
        A name that is none, or a folder that exists.
    """
    protocol = name.replace("-", "_").removeprefix("floorkit_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", protocol) or keyword.iskeyword(protocol):
        expected = "lower-case letters, digits and underscores, such as onset_latency"
        raise ManifestError(Problem("not a name for a protocol", "NAME", repr(name), expected))
    folder = parent / f"floorkit-{protocol.replace('_', '-')}"
    if folder.exists():
        remedy = "choose another name, or another place with --into"
        raise ManifestError(Problem("exists already", str(folder), remedy=remedy))
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".floorkit-new-", dir=parent) as scratch:
        staging = Path(scratch) / "plugin"
        for path, text in template_files():
            target = staging / renamed(path, protocol)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(renamed(text, protocol), encoding="utf-8", newline="\n")
        staging.rename(folder)
    return folder


def renamed(text: str, protocol: str) -> str:
    """The template's ``text`` with the protocol's name for the placeholder, in both spellings."""
    return text.replace(PLACEHOLDER, protocol).replace(
        PLACEHOLDER.replace("_", "-"), protocol.replace("_", "-")
    )


def template_files() -> Iterator[tuple[str, str]]:
    """Every file of the template: its path in the distribution and its text."""
    yield from _files(resources.files(__name__) / "template", "")


def _files(folder: Traversable, above: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        path = f"{above}{RENAMED.get(entry.name, entry.name)}"
        if not counts_as_source(path) or entry.name == "results":
            continue
        if entry.is_dir():
            yield from _files(entry, f"{path}/")
        else:
            yield path, entry.read_text(encoding="utf-8")
