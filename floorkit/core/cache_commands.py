"""The commands ``floorkit cache info``, ``prune`` and ``clear``; everything heavy is imported inside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

MANIFEST = click.argument(
    "manifest", type=click.Path(path_type=Path, dir_okay=False), default="protocols.toml"
)


def _folder(manifest: Path) -> Path:
    from floorkit.core.cache import location

    return location(manifest.absolute().parent)


@click.group()
def cache() -> None:
    """Show, shrink or empty the cache of score tables.

    It lies in .floorkit-cache beside MANIFEST, or in $FLOORKIT_CACHE. After a run it is pruned to 20 GB, or
    to $FLOORKIT_CACHE_LIMIT.
    """


@cache.command()
@MANIFEST
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def info(manifest: Path, as_json: bool) -> None:
    """Say what the cache of MANIFEST holds.

    \b
    Examples:
      floorkit cache info
      floorkit cache info protocols.toml --json
    """
    from floorkit.core import cache as caches
    from floorkit.core.sections import to_json

    found = caches.info(_folder(manifest))
    if as_json:
        click.echo(to_json(found), nl=False)
        return
    names = {
        "tables": "score tables",
        "entries": "records of entries",
        "remote": "copies of remote inputs",
        "digests": "remembered digests",
    }
    click.echo(found["folder"])
    for key, name in names.items():
        held: dict[str, Any] = found[key]
        click.echo(f"  {name + ':':25}{held['files']:>9,}  {caches.shown_size(held['bytes']):>12}")
    click.echo(f"  {'pruned after a run to:':25}{'':>9}  {caches.shown_size(found['limit']):>12}")


@cache.command()
@MANIFEST
@click.option(
    "--limit", metavar="SIZE", help="What may stay, e.g. 5GB [default: $FLOORKIT_CACHE_LIMIT or 20GB]."
)
def prune(manifest: Path, limit: str | None) -> None:
    """Remove what was used longest ago from the cache of MANIFEST, until it is within a size.

    \b
    Examples:
      floorkit cache prune --limit 5GB
    """
    import time

    from floorkit.core import cache as caches

    folder = _folder(manifest)
    caches.require(folder)
    size = caches.parse_size(limit, "--limit") if limit is not None else caches.limit_bytes()
    _removed(*caches.prune(folder, size, time.time_ns()))


@cache.command()
@MANIFEST
def clear(manifest: Path) -> None:
    """Remove everything from the cache of MANIFEST. Results are not touched.

    \b
    Example:
      floorkit cache clear protocols.toml
    """
    from floorkit.core import cache as caches

    _removed(*caches.clear(_folder(manifest)))


def _removed(files: int, size: int) -> None:
    from floorkit.core.cache import shown_size

    click.echo(f"removed {files:,} files, {shown_size(size)}")
