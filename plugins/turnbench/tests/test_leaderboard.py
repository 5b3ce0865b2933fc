"""Rankings: the official order on the official leaderboard, ties, ceilings, and the older view."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from floorkit_turnbench.leaderboard import Entry, rank, rank_by_latency
from floorkit_turnbench.stored_results import read_entries

from floorkit.core.errors import InputError


def names(ranked: list[object]) -> list[str]:
    return [one.entry.name for one in ranked]  # type: ignore[attr-defined]


ENTRIES = [
    Entry("over", 0.99, 0.5, 10.0),
    Entry("edge", 0.7, 0.15, 900.0),
    Entry("slow", 0.8, 0.1, 800.0),
    Entry("fast", 0.8, 0.1, 200.0),
    Entry("also fast", 0.8, 0.1, 200.0),
    Entry("silent", 0.0, 0.0, None),
    Entry("no task", None, 0.0, None),
    Entry("just over", 0.5, 0.150001, 100.0),
]


def test_qualifiers_come_first_by_recall_then_latency_then_name() -> None:
    ranked = rank(ENTRIES)
    assert names(list(ranked)) == [
        "also fast",
        "fast",
        "slow",
        "edge",
        "silent",
        "over",
        "just over",
        "no task",
    ]
    assert [one.rank for one in ranked] == [1, 2, 3, 4, 5, 6, 7, None]
    assert [one.qualifies for one in ranked] == [True] * 5 + [False] * 3


def test_the_older_view_ranks_by_latency_within_budget_and_floor() -> None:
    ranked = rank_by_latency(ENTRIES, fp_budget=0.1, recall_floor=0.5)
    assert names(list(ranked))[:3] == ["also fast", "fast", "slow"]
    assert [one.qualifies for one in ranked] == [True] * 3 + [False] * 5
    assert names(list(ranked))[3:] == ["over", "edge", "just over", "silent", "no task"]


def test_runs_of_one_name_are_told_apart_by_entry(tmp_path: Path) -> None:
    figures = {"recall": 0.5, "fp_rate": 0.1, "latency_p50_ms": 100.0}
    for entry in ("first", "second"):
        folder = tmp_path / entry
        folder.mkdir()
        runs = {"model": {"eot": figures, "int": figures}, "control:silent": {"eot": figures, "int": figures}}
        data = {"protocol": "turnbench", "name": entry, "runs": runs}
        (folder / "summary.json").write_text(json.dumps(data), encoding="utf-8")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "summary.json").write_text('{"protocol": "toy", "runs": {}}', encoding="utf-8")
    entries = read_entries([tmp_path])
    assert [one.name for one in entries["eot"]] == ["first/model", "second/model"]


def test_runs_of_one_entry_name_in_two_folders_are_told_apart_by_path(tmp_path: Path) -> None:
    data = {"protocol": "turnbench", "name": "tb", "runs": {"model": {"eot": {"recall": 0.5}}}}
    paths = []
    for folder in ("monday", "tuesday"):
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / "summary.json")
        paths[-1].write_text(json.dumps(data), encoding="utf-8")
    entries = read_entries([*paths, paths[0]])
    assert [one.name for one in entries["eot"]] == [f"{path}: model" for path in paths]


def test_a_run_without_negatives_ranks_below_the_qualifiers_by_its_recall() -> None:
    ranked = rank([Entry("null", 0.9, None, 5.0), Entry("in", 0.1, 0.0, 5.0), Entry("over", 0.8, 0.5, 5.0)])
    assert [(one.entry.name, one.rank, one.qualifies) for one in ranked] == [
        ("in", 1, True),
        ("null", 2, False),
        ("over", 3, False),
    ]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"protocol": "turnbench", "runs": {"a": {"eot": {"recall": "x"}}}}, ["run a, eot", "recall", '"x"']),
        ({"protocol": "turnbench", "runs": {"a": {"int": 5}}}, ["run a, int: no object"]),
        ({"protocol": "turnbench", "runs": {"a": 3}}, ["runs[0]: a run is no object"]),
        ({"models": [{"model": "m", "eot": {"latency_ms": 5}}]}, ["run m, eot: no object", "latency_ms"]),
        ({"models": [{"model": "m", "eot": {"fp_rate": float("nan")}}]}, ["run m, eot", "fp_rate", "NaN"]),
        ({"models": [1]}, ["models[0]: a run is no object"]),
    ],
)
def test_stored_figures_that_are_none_are_told_with_run_and_task(
    data: object, words: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_entries([path])
    assert all(word in str(caught.value) for word in [*words, str(path)])


def test_paths_without_results_are_all_named(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[]", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_entries([tmp_path, tmp_path / "x.json"])
    assert len(caught.value.problems) == 2


@pytest.mark.skipif("FLOORKIT_REAL_DATA" not in os.environ, reason="FLOORKIT_REAL_DATA names no folder")
def test_the_official_leaderboard_is_ranked_as_its_policy_says() -> None:
    folder = Path(os.environ["FLOORKIT_REAL_DATA"]) / "conformance/turnbench/real/results"
    expected = json.loads((folder / "ranking.json").read_text(encoding="utf-8"))
    entries = read_entries([folder / "leaderboard-test.json"])
    for task in ("eot", "int"):
        ranked = rank(entries[task])
        assert [(one.rank, one.entry.name, one.qualifies) for one in ranked if one.rank is not None] == [
            (one["rank"], one["model"], one["qualifies"]) for one in expected[task]
        ]
        assert [one.entry.name for one in ranked if one.rank is None] == expected[f"{task}_unranked"]
