"""Common support: a candidate that is invalid at a horizon in any run becomes invalid there in all."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from floorkit.core.values import Table, Tables
from floorkit_competing_risk.kernel import INVALID, labelled


def common_support(tables: Mapping[str, Tables]) -> dict[str, Tables]:
    """One unit's tables of all runs with their invalid statuses united; framewise keys stay as they are."""
    candidates = {run: table["candidates"] for run, table in tables.items()}
    invalid = np.logical_or.reduce([table["status"] == INVALID for table in candidates.values()])
    return {
        run: {**tables[run], "candidates": _invalidated(table, invalid)} for run, table in candidates.items()
    }


def _invalidated(table: Table, invalid: np.ndarray) -> Table:
    status = np.where(invalid, INVALID, table["status"]).astype(np.int8)
    return attrs.evolve(table, columns={**table.columns, **labelled(status, table["score"])})
