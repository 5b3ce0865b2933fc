"""Golden cases from the official scorer, loaded once."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from floorkit_turnbench import AnnotatedDataset, load_dataset

GOLDEN = Path(__file__).parent / "golden"
CASES = ("basic", "dense_overlap", "disputed", "empty", "exact_boundaries", "long")


@frozen(eq=False)
class Case:
    """One golden case: its folder, dataset, expectations and consensus."""

    folder: Path
    dataset: AnnotatedDataset
    expected: dict[str, Any]
    consensus: dict[str, Any]


@cache
def _case(name: str) -> Case:
    folder = GOLDEN / name
    return Case(
        folder,
        load_dataset(folder / "conversations.json"),
        json.loads((folder / "expected.json").read_text(encoding="utf-8")),
        json.loads((folder / "consensus.json").read_text(encoding="utf-8")),
    )


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    """Every golden case in turn."""
    return _case(request.param)


@pytest.fixture
def golden_case() -> Callable[[str], Case]:
    """A golden case by name."""
    return _case


def same(found: Any, expected: Any) -> bool:
    """None exactly, floats to 1e-12, everything else exactly."""
    if expected is None or found is None:
        return found is expected
    if isinstance(expected, float):
        return bool(np.isclose(found, expected, rtol=0.0, atol=1e-12))
    return bool(found == expected)


@pytest.fixture
def agrees() -> Callable[[Any, Any], bool]:
    """Comparison of golden figures."""
    return same
