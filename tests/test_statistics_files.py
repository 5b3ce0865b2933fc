"""statistics.json: written, read back, and refused where damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import asdict

from floorkit.core.errors import InputError
from floorkit.core.sections import to_json
from floorkit.core.statistics import Replicates
from floorkit.core.statistics_files import (
    comparison_from_plain,
    figure_from_plain,
    read_statistics,
    statistics_to_plain,
)
from floorkit.core.statistics_settings import Settings
from floorkit.core.values import Comparison, Figure, Interval

FIGURES = {
    "rate[horizon_s=0.2]": Figure(
        "rate",
        1 / 3,
        count=1,
        denominator=3,
        higher_is_better=False,
        at={"horizon_s": 0.2},
        headline=True,
        support={"negatives": 3, "censored": None},
    ),
    "ap": Figure("ap", None, unit="AP", reason="no_positives", headline=True),
}
RUN = Replicates(
    run="model",
    clusters=("S2", "S1"),
    figures=FIGURES,
    units={"rate[horizon_s=0.2]": np.array([0.1, np.nan])},
    denominators={"rate[horizon_s=0.2]": np.array([3.0, 0.0])},
    resampled={"rate[horizon_s=0.2]": np.linspace(0, 1 / 3, 100)},
    draws="abc",
)
SETTINGS = Settings(resamples=100)


def plain() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(to_json(statistics_to_plain([RUN], SETTINGS, 7, "session", "p@1.0.0")))
    return data


def test_statistics_come_back_bit_by_bit(tmp_path: Path) -> None:
    path = tmp_path / "statistics.json"
    path.write_text(to_json(plain()), encoding="utf-8")
    found = read_statistics(path)
    assert (found.signature, found.seed, found.noun, found.settings) == ("p@1.0.0", 7, "session", SETTINGS)
    run = found.runs["model"]
    assert (run.run, run.clusters, run.draws) == ("model", ("S2", "S1"), "abc")
    assert dict(run.figures) == FIGURES
    for name in ("units", "denominators", "resampled"):
        ours, theirs = getattr(RUN, name), getattr(run, name)
        assert {key: array.tobytes() for key, array in ours.items()} == {
            key: array.tobytes() for key, array in theirs.items()
        }


def test_counts_stay_integers_on_the_way() -> None:
    figure = figure_from_plain(json.loads(to_json(asdict(FIGURES["rate[horizon_s=0.2]"]))))
    assert type(figure.count) is int
    assert type(figure.denominator) is int


def test_comparisons_come_back_equal() -> None:
    full = Comparison(
        "rate", "a", "b", 0.1, 0.2, 0.1, -1.0, Interval(0.0, 0.2, remark="r"), 0.5, 1.0, 2, cautions=("c",)
    )
    refused = Comparison("rate", "a", "b", None, 0.2, not_comparable=("x differs: a 1, b 2",))
    for comparison in (full, refused):
        assert comparison_from_plain(json.loads(to_json(asdict(comparison)))) == comparison


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data.pop("seed"), "no 'seed'"),
        (lambda data: data.update(format="floorkit statistics 9"), "floorkit statistics 9"),
        (lambda data: data["settings"].update(x=1), "x"),
        (lambda data: data["runs"]["model"]["figures"]["rate[horizon_s=0.2]"].update(units=[1]), "lengths"),
        (
            lambda data: data["runs"]["model"]["figures"]["rate[horizon_s=0.2]"].update(resampled="AA?"),
            "statistics.json",
        ),
        (lambda data: data.update(runs=[1]), "statistics.json"),
    ],
)
def test_damaged_statistics_are_refused_by_name(
    tmp_path: Path, damage: Callable[[dict[str, Any]], object], words: str
) -> None:
    data = plain()
    damage(data)
    path = tmp_path / "statistics.json"
    path.write_text(to_json(data), encoding="utf-8")
    with pytest.raises(InputError, match=words):
        read_statistics(path)


@pytest.mark.parametrize("text", ["{", "[1]", None])
def test_unreadable_statistics_are_refused_by_name(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "statistics.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"statistics\.json"):
        read_statistics(path)
