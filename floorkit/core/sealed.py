"""Files that tell by themselves whether they are as they were written, and that appear whole or not at all.

A sealed file ends with the SHA-256 of what precedes it, salted with what the file stands for: truncation,
alteration and a file in another's place are all found.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SEAL = 32
"""Length of a seal in bytes."""

PART = ".part"
"""Suffix of a file that is still being written."""


def seal(data: bytes | memoryview, salt: str = "") -> bytes:
    """The seal of ``data``: SHA-256 over the salt and the data."""
    digest = hashlib.sha256(salt.encode())
    digest.update(data)
    return digest.digest()


@contextlib.contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """A name beside ``path`` to write to; what stands there in the end replaces ``path`` in one step.

    The name is of this call alone, so that processes, also on other machines, do not meet.
    """
    partial = path.with_name(f".{path.name}.{os.urandom(8).hex()}{PART}")
    try:
        yield partial
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_json(path: Path, data: Any) -> None:
    """Write plain data as sealed JSON."""
    text = json.dumps(data, separators=(",", ":")).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with appearing(path) as partial:
        partial.write_bytes(text + seal(text, path.name))


def read_json(path: Path) -> Any:
    """What :func:`write_json` wrote; None where there is no such file or it is not as it was written."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    text = data[:-SEAL]
    return json.loads(text) if data[-SEAL:] == seal(text, path.name) else None
