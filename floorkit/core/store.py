"""A unit's tables in one file: safetensors (no pickle), sealed, written atomically, read memory-mapped.

A file is the bytes of a safetensors file followed by their seal under the key that the tables are stored
for (see ``floorkit.core.sealed``).
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from floorkit.core.errors import EvaluationError, Problem
from floorkit.core.sealed import SEAL, appearing, seal
from floorkit.core.values import Table, Tables

SEPARATOR = "/"
TABLES = "tables"
"""The folder of score tables in a cache folder."""

_DTYPES = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4",
    "U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8",
}  # fmt: skip

KEPT = 16 * 1024
"""Files up to this size (bytes) are read once and kept: mapping them would cost more than it saves."""

_Layout = tuple[tuple[str, str, str, tuple[int, ...], int, int], ...]
"""(table, column, NumPy type, shape, first byte, byte after the last) of every column."""


def place(folder: Path, key: str) -> Path:
    """Where tables are stored under a key (64 hexadecimal digits) in a cache folder."""
    return Path(f"{folder}/{TABLES}/{key[:2]}/{key[2:]}")


def write(path: Path, tables: Tables, key: str = "") -> None:
    """Write a unit's tables, sealed for ``key``; the file appears whole or not at all."""
    from safetensors.numpy import save

    columns = {
        f"{name}{SEPARATOR}{column}": array
        for name, table in tables.items()
        for column, array in table.columns.items()
    }
    categories = {name: {k: list(v) for k, v in table.categories.items()} for name, table in tables.items()}
    data = save(columns, metadata={"categories": json.dumps(categories)})
    try:
        _write(path, data, seal(data, key))
    except FileNotFoundError:
        path.parent.mkdir(exist_ok=True)
        _write(path, data, seal(data, key))


def _write(path: Path, *parts: bytes) -> None:
    with appearing(path) as partial, open(partial, "wb") as stream:
        stream.writelines(parts)


def read_small(path: Path) -> bytes | None:
    """The bytes of a file up to ``KEPT`` bytes long, None for a longer one."""
    with path.open("rb", buffering=0) as stream:
        data = stream.read(KEPT + 1)
    return data if len(data) <= KEPT else None


class StoredTables:
    """A unit's tables on disk. ``stored(name)`` gives a Table whose columns are memory-mapped.

    Parameters
    ----------
    path
        A file that :func:`write` wrote.
    data
        Its bytes, where they were read already; the tables are then kept in memory.
    """

    def __init__(self, path: Path, data: bytes | None = None) -> None:
        self.path = path
        self._data = data
        self._tables: dict[str, Table] | None = None

    def intact(self, key: str) -> bool:
        """Whether the file is what :func:`write` wrote for ``key``; OSError where it cannot be read."""
        data = memoryview(self._bytes())
        return len(data) > SEAL and data[-SEAL:] == seal(data[:-SEAL], key)

    def __call__(self, name: str) -> Table:
        return self.read(only=name)[name]

    def read(self, only: str = "") -> dict[str, Table]:
        """All tables, or at least that of one name.

        Raises
        ------
        EvaluationError
            Where the file is not what :func:`write` wrote.
        """
        if self._tables is not None:
            return self._tables
        try:
            tables = _decode(self._bytes(), only if self._data is None else "")
        except (OSError, KeyError, ValueError) as error:
            raise EvaluationError(
                Problem("a stored score table cannot be read", str(self.path), str(error))
            ) from None
        if self._data is not None:
            self._tables, self._data = tables, None
        return tables

    def _bytes(self) -> Any:
        return np.memmap(self.path, np.uint8, "r") if self._data is None else self._data


def _decode(data: bytes | NDArray[np.uint8], only: str) -> dict[str, Table]:
    start = 8 + int.from_bytes(bytes(data[:8]), "little")
    if start > len(data):
        raise ValueError("the header is longer than the file")
    layout, categories = _layout(bytes(data[8:start]))
    body = np.frombuffer(data, np.uint8)[start:]
    columns: dict[str, dict[str, NDArray[Any]]] = {name: {} for name in categories if only in ("", name)}
    for name, column, dtype, shape, low, high in layout:
        if name in columns:
            columns[name][column] = body[low:high].view(dtype).reshape(shape)
    return {name: Table(found, categories[name]) for name, found in columns.items()}


@lru_cache(maxsize=4096)
def _layout(header: bytes) -> tuple[_Layout, dict[str, dict[str, tuple[str, ...]]]]:
    """Where the columns of a safetensors header lie, and the categories of every table."""
    entries: dict[str, Any] = json.loads(header)
    categories = json.loads(entries.pop("__metadata__")["categories"])
    columns = []
    for key, entry in entries.items():
        name, _, column = key.partition(SEPARATOR)
        shape, (low, high) = tuple(entry["shape"]), entry["data_offsets"]
        columns.append((name, column, _DTYPES[entry["dtype"]], shape, low, high))
    return tuple(columns), {
        name: {column: tuple(names) for column, names in coded.items()} for name, coded in categories.items()
    }
