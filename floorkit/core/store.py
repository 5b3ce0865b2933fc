"""A unit's tables in one file: safetensors (no pickle), written atomically, read memory-mapped."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from floorkit.core.errors import EvaluationError, Problem
from floorkit.core.values import Table, Tables

SEPARATOR = "/"
_DTYPES = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4",
    "U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8",
}  # fmt: skip


def write(path: Path, tables: Tables) -> None:
    """Write a unit's tables; the file appears whole or not at all."""
    from safetensors.numpy import save

    columns = {
        f"{name}{SEPARATOR}{column}": array
        for name, table in tables.items()
        for column, array in table.columns.items()
    }
    categories = {name: {k: list(v) for k, v in table.categories.items()} for name, table in tables.items()}
    data = save(columns, metadata={"categories": json.dumps(categories)})
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    partial.write_bytes(data)
    partial.replace(path)


class StoredTables:
    """A unit's tables on disk. ``stored(name)`` gives a Table whose columns are memory-mapped."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, name: str) -> Table:
        return self.read(only=name)[name]

    def read(self, only: str = "") -> dict[str, Table]:
        """All tables, or that of one name.

        Raises
        ------
        EvaluationError
            Where the file is not what :func:`write` wrote.
        """
        try:
            header, start = _header(self.path)
            categories = json.loads(header.pop("__metadata__")["categories"])
            # numpy.memmap refuses an empty file body; a unit without rows is then plain empty arrays.
            size = self.path.stat().st_size - start
            body = np.memmap(self.path, np.uint8, "r", start, (size,)) if size else np.empty(0, np.uint8)
            columns: dict[str, dict[str, NDArray[Any]]] = {name: {} for name in categories}
            for key, entry in header.items():
                name, _, column = key.partition(SEPARATOR)
                if only and name != only:
                    continue
                low, high = entry["data_offsets"]
                columns[name][column] = body[low:high].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
        except (OSError, KeyError, ValueError) as error:
            raise EvaluationError(
                Problem("a stored score table cannot be read", str(self.path), str(error))
            ) from None
        return {
            name: Table(columns[name], {k: tuple(v) for k, v in categories[name].items()})
            for name in ([only] if only else categories)
        }


def _header(path: Path) -> tuple[dict[str, Any], int]:
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if length > path.stat().st_size:
            raise ValueError("the header is longer than the file")
        header: dict[str, Any] = json.loads(stream.read(length))
    return header, 8 + length
