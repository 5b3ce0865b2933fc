"""Parameter classes from TOML tables: strict, and all problems at once."""

from __future__ import annotations

from typing import Literal

import pytest
from attrs import frozen

from floorkit.core.errors import ManifestError
from floorkit.core.structure import param, structure, unstructure


@frozen
class Inner:
    count: int = param(1, doc="Count.", low=1)


@frozen
class Params:
    window: Literal["observable", "full"] = param("observable", doc="Window.")
    recalls: tuple[float, ...] = param((0.8,), doc="Recalls.", above=0, high=1, distinct=True)
    pause: float = param(2.0, doc="Pause.", unit="s", multiple_of=0.2)
    strict: bool = param(False, doc="Strict.")
    label: str | None = param(None, doc="Label.")
    inner: Inner = param(Inner(), doc="Inner.")
    needed: int = param(doc="Needed.")


def problems_of(table: dict[str, object]) -> str:
    with pytest.raises(ManifestError) as caught:
        structure(Params, table, "protocols.x.params")
    return str(caught.value)


def test_valid_table_becomes_the_class_and_whole_numbers_pass_as_floats() -> None:
    params = structure(Params, {"needed": 3, "recalls": [1, 0.5], "inner": {"count": 4}}, "x")
    assert params.recalls == (1.0, 0.5)
    assert isinstance(params.recalls[0], float)
    assert params.inner.count == 4


def test_parameters_round_trip_through_plain_data() -> None:
    params = structure(Params, {"needed": 3, "recalls": [0.1], "label": "x"}, "x")
    assert structure(Params, unstructure(params), "x") == params


def test_all_problems_are_told_together_each_at_its_path() -> None:
    text = problems_of(
        {"window": "ful", "recalls": [0.5, "a", 2], "pause": 0.5, "strict": 1, "inner": {"count": 0, "z": 1}}
    )
    for place in ("window", "recalls[1]", "pause", "strict", "needed"):
        assert f"protocols.x.params.{place}" in text
    assert "protocols.x.params.inner: unknown key 'z'" in text
    assert "'observable', 'full'" in text
    assert "a whole multiple of 0.2" in text


def test_unknown_key_names_the_nearest_known_one() -> None:
    assert "did you mean 'window'?" in problems_of({"windw": "full", "needed": 1})


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ({"needed": True}, "needed"),
        ({"needed": 1.0}, "needed"),
        ({"needed": "1"}, "needed"),
        ({"needed": 1, "pause": "2.0"}, "pause"),
        ({"needed": 1, "pause": float("nan")}, "pause"),
        ({"needed": 1, "pause": float("inf")}, "pause"),
        ({"needed": 1, "recalls": 0.8}, "recalls"),
        ({"needed": 1, "recalls": [0.0]}, "recalls"),
        ({"needed": 1, "recalls": [0.5, 0.5]}, "recalls"),
        ({"needed": 1, "inner": 3}, "inner"),
        ({"needed": 1, "inner": {"count": 0}}, "inner.count"),
        ({"needed": 1, "label": 3}, "label"),
    ],
)
def test_wrong_value_is_refused_at_its_path(table: dict[str, object], place: str) -> None:
    assert f"protocols.x.params.{place}" in problems_of(table)
