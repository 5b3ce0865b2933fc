"""Versions of the packages that computed something."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import metadata

from floorkit.core.registry import normalized


def package_versions(distributions: Sequence[str], without: Sequence[str] = ()) -> dict[str, str]:
    """Versions of everything installed that these distributions need, directly or not, sorted by name.

    Those in ``without`` are left out, and what only they need.
    """
    versions: dict[str, str] = {}
    waiting = list(distributions)
    while waiting:
        name = normalized(waiting.pop())
        if name in versions or name in without:
            continue
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # an optional dependency that is not installed computed nothing
        versions[name] = found.version
        waiting += [
            match.group()
            for requirement in found.requires or ()
            if "extra ==" not in requirement and (match := re.match(r"[A-Za-z0-9._-]+", requirement))
        ]
    return dict(sorted(versions.items()))
