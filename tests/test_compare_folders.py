"""``floorkit compare`` and ``floorkit history`` over real results folders of the toy protocol."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from floorkit.core.changes import changes
from floorkit.core.compare_folders import EntryComparison, Options, compare_folders
from floorkit.core.errors import InputError, ManifestError
from floorkit.core.history import EntryHistory, history
from floorkit.core.sections import to_json

from .conftest import Floorkit, make_toy_data, write_json

KEY = "false_alarm_rate_at_recall_0.8"
SWAPPED = 'protocols.toy.runs.a.path="b"'

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, floorkit: Floorkit) -> Path:
    """Toy data with its results in ``old``, and in ``swapped`` with the predictions of b for run a."""
    folder = make_toy_data(tmp_path_factory.mktemp("compare") / "data")
    for output, more in (("old", ()), ("swapped", ("--set", SWAPPED))):
        ran = floorkit("run", "protocols.toml", "--quiet", "--output", output, *more, cwd=folder)
        assert ran.returncode == 0, ran.stderr
    return folder


def edited(results: Path, target: Path, file: str, edit: Edit) -> Path:
    """A copy of a results folder with one JSON file of its entry changed."""
    shutil.copytree(results, target)
    path = target / "toy" / file
    data = json.loads(path.read_text(encoding="utf-8"))
    edit(data)
    path.write_text(to_json(data), encoding="utf-8")
    return target


def one_entry(a: Path, b: Path, **options: Any) -> EntryComparison:
    (found,) = compare_folders(a, b, Options(**options))
    return found


# --- compare ------------------------------------------------------------------------------------


def test_interval_and_p_across_folders_are_those_of_both_runs_in_one_folder(made: Path) -> None:
    across = one_entry(made / "old", made / "swapped", run_a="a", run_b="a").comparisons[0]
    summary = json.loads((made / "old/toy/summary.json").read_text("utf-8"))
    within = summary["comparisons"][0]
    assert (within["a"], within["b"]) == ("a", "b")
    assert (across.a, across.b) == ("A:a", "B:a")
    assert across.interval is not None
    assert (across.interval.low, across.interval.high) == (
        within["interval"]["low"],
        within["interval"]["high"],
    )
    for name in ("difference", "relative_reduction", "p_value", "smallest_p", "won", "lost", "tied"):
        assert getattr(across, name) == within[name]
    assert across.cautions == ()


def test_runs_of_equal_names_are_paired_and_adjusted_together(made: Path) -> None:
    found = one_entry(made / "old", made / "swapped")
    assert [(one.a, one.b, one.tests) for one in found.comparisons] == [
        ("A:a", "B:a", 2),
        ("A:b", "B:b", 2),
    ]
    assert found.comparisons[1].cautions[0] == "both sides have the same predictions"


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda record: record.update(protocol="other"), "protocol: toy in A, other in B"),
        (lambda record: record["plugins"][0].update(version="9.9"), "floorkit-toy 1.2.0"),
        (lambda record: record["plugins"][0].update(source="sha256:0000000000"), "(sha256:00000000) in B"),
        (lambda record: record["floorkit"].update(source="sha256:0000000000"), "code: floorkit 1.0.0"),
        (
            lambda record: record["params"].update(matched_recalls=[0.9]),
            "parameters: matched_recalls [0.8] in A, [0.9] in B",
        ),
        (lambda record: record["params"].update(new=1), "parameters: new none in A, 1 in B"),
        (lambda record: record.update(data_fingerprint="0000000000"), "00000000 in B"),
    ],
)
def test_entry_that_does_not_agree_gets_values_but_no_difference(
    made: Path, tmp_path: Path, edit: Edit, words: str
) -> None:
    other = edited(made / "old", tmp_path / "other", "provenance.json", edit)
    found = one_entry(made / "old", other)
    assert len(found.disagreements) == 1
    for comparison in found.comparisons:
        assert any(words in reason for reason in comparison.not_comparable)
        assert comparison.a_value is not None
        given = (comparison.difference, comparison.relative_reduction, comparison.interval)
        assert given == (None, None, None)
        assert (comparison.p_value, comparison.tests) == (None, 0)


def test_differing_counts_are_listed_figure_by_figure(made: Path, tmp_path: Path) -> None:
    def drop(data: dict[str, Any]) -> None:
        data["runs"]["a"]["figures"][KEY]["figure"]["support"]["negatives"] -= 1

    other = edited(made / "old", tmp_path / "other", "statistics.json", drop)
    found = one_entry(made / "old", other)
    assert found.disagreements == ()
    assert found.comparisons[0].not_comparable == ("negatives differs: A:a 132, B:a 131",)
    assert found.comparisons[1].not_comparable == ()


def test_code_may_differ_where_it_is_allowed_and_is_told(made: Path, tmp_path: Path) -> None:
    other = edited(
        made / "old",
        tmp_path / "other",
        "provenance.json",
        lambda record: record["floorkit"].update(version="9"),
    )
    found = one_entry(made / "old", other, allow_source_drift=True)
    assert found.disagreements == ()
    assert [change.kind for change in found.remarks] == ["code"]
    assert found.comparisons[0].difference == 0.0


def test_folders_with_another_seed_are_compared_without_a_paired_interval(made: Path, tmp_path: Path) -> None:
    other = edited(
        made / "old", tmp_path / "other", "statistics.json", lambda data: data.update(draws="another")
    )
    interval = one_entry(made / "old", other).comparisons[0].interval
    assert interval is not None
    assert (interval.low, interval.reason) == (None, "the runs were resampled over different units")


def test_figures_of_one_side_only_are_listed(made: Path, tmp_path: Path) -> None:
    def rename(data: dict[str, Any]) -> None:
        figures = data["runs"]["a"]["figures"]
        figures["renamed"] = figures.pop(KEY)
        figures["renamed"]["figure"]["name"] = "renamed"

    other = edited(made / "old", tmp_path / "other", "statistics.json", rename)
    found = one_entry(made / "old", other, run_a="a", run_b="a")
    assert (found.comparisons, found.only_a, found.only_b) == ((), (KEY,), ("renamed",))


def test_unknown_entries_and_runs_are_refused_with_those_that_there_are(made: Path) -> None:
    old = made / "old"
    with pytest.raises(ManifestError, match="one of toy"):
        compare_folders(old, old, Options(entries=("toi",)))
    with pytest.raises(ManifestError, match="one of a, b, control:noise"):
        compare_folders(old, old, Options(run_b="c"))


def test_runs_without_a_common_name_have_to_be_named(made: Path, tmp_path: Path) -> None:
    def rename(data: dict[str, Any]) -> None:
        data["runs"] = {f"new {name}": run for name, run in data["runs"].items()}

    other = edited(made / "old", tmp_path / "other", "statistics.json", rename)
    with pytest.raises(ManifestError, match="--run-a"):
        compare_folders(made / "old", other, Options())
    named = one_entry(made / "old", other, run_a="a", run_b="new b")
    assert [(one.a, one.b) for one in named.comparisons] == [("A:a", "B:new b")]


@pytest.mark.parametrize("file", ["provenance.json", "statistics.json"])
def test_damaged_results_are_refused_by_name(made: Path, tmp_path: Path, file: str) -> None:
    other = edited(made / "old", tmp_path / "other", file, lambda data: data.pop("seed"))
    with pytest.raises(InputError, match=f"{file}.*is damaged"):
        compare_folders(made / "old", other, Options())


def test_command_prints_what_agrees_and_the_table_within_80_columns(made: Path, floorkit: Floorkit) -> None:
    ran = floorkit("compare", "old", "swapped", "--run-a", "a", "--run-b", "a", cwd=made)
    assert (ran.returncode, ran.stderr) == (0, "")
    for words in (
        "Protocol, code, parameters and dataset agree.",
        "A = A:a, B = B:a",
        "−28.8 points",
        "58.5 %",
        "5–0",
    ):
        assert words in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert "\x1b" not in ran.stdout


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (lambda record: record["floorkit"].update(version="9"), 3),
        (lambda record: record["params"].update(matched_recalls=[0.9]), 4),
    ],
)
def test_command_ends_with_the_exit_code_of_what_differs(
    made: Path, tmp_path: Path, floorkit: Floorkit, edit: Edit, code: int
) -> None:
    edited(made / "old", tmp_path / "other", "provenance.json", edit)
    ran = floorkit("compare", made / "old", tmp_path / "other", "--json")
    assert ran.returncode == code
    assert "the results are not comparable" in ran.stderr
    data = json.loads(ran.stdout)["entries"]["toy"]
    assert data["comparable"] is False
    assert data["comparisons"][0]["difference"] is None
    assert len(data["disagreements"]) == 1


def test_folder_without_results_is_refused(made: Path, tmp_path: Path, floorkit: Floorkit) -> None:
    ran = floorkit("compare", made / "old", tmp_path)
    assert ran.returncode == 4
    assert f"{tmp_path}: not a results folder" in ran.stderr


# --- history ------------------------------------------------------------------------------------


def one_history(*folders: Path) -> EntryHistory:
    (found,) = history(folders)
    return found


def dated(day: int, edit: Edit = lambda record: None) -> Edit:
    """An edit of provenance.json that also sets its start."""

    def apply(record: dict[str, Any]) -> None:
        record["started"] = f"2030-01-{day:02}T00:00:00+00:00"
        edit(record)

    return apply


def test_moved_figures_are_explained_by_changed_predictions(made: Path) -> None:
    step = one_history(made / "old", made / "swapped").steps[0]
    assert [(change.kind, change.what) for change in step.changes] == [("predictions", "a")]
    assert [(one.run, one.key, one.explained) for one in step.moved] == [("a", KEY, True)]
    assert step.figures == 3


def test_folders_are_ordered_by_their_start_times(made: Path, tmp_path: Path) -> None:
    folders = [
        edited(made / "old", tmp_path / name, "provenance.json", dated(day))
        for name, day in (("second", 2), ("first", 1), ("third", 3))
    ]
    states = one_history(*folders).states
    assert [state.results.name for state in states] == ["first", "second", "third"]


def test_nothing_changed_moves_nothing(made: Path, tmp_path: Path) -> None:
    later = edited(made / "old", tmp_path / "later", "provenance.json", dated(1))
    step = one_history(made / "old", later).steps[0]
    assert (step.changes, step.moved) == ((), ())


def moved_results(made: Path, target: Path, edit: Edit) -> Path:
    """A later copy of the results in which the figure of run a has another value."""

    def move(summary: dict[str, Any]) -> None:
        summary["headline"]["a"][0]["value"] += 0.1

    edited(made / "old", target, "summary.json", move)
    path = target / "toy/provenance.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    dated(1, edit)(record)
    write_json(path, record)
    return target


@pytest.mark.parametrize(
    ("edit", "explained"),
    [
        (lambda record: None, False),
        (lambda record: record["marks"].update(exploratory="in-sample"), False),
        (lambda record: record["predictions"].update(b="0000"), False),
        (lambda record: record["predictions"].update(a="0000"), True),
        (lambda record: record["plugins"][0].update(version="9.9"), True),
        (lambda record: record["params"].update(matched_recalls=[0.9]), True),
        (lambda record: record.update(data_fingerprint="0000"), True),
        (lambda record: record.update(seed=1), True),
        (lambda record: record["packages"].update(numpy="9.9"), True),
    ],
)
def test_move_is_explained_only_by_what_the_figure_depends_on(
    made: Path, tmp_path: Path, edit: Edit, explained: bool
) -> None:
    later = moved_results(made, tmp_path / "later", edit)
    moved = one_history(made / "old", later).steps[0].moved
    assert [(one.run, one.explained) for one in moved] == [("a", explained)]


def test_figures_that_appear_and_disappear_have_moved(made: Path, tmp_path: Path) -> None:
    def rename(summary: dict[str, Any]) -> None:
        summary["headline"]["a"][0]["key"] = "renamed"

    later = edited(made / "old", tmp_path / "later", "summary.json", rename)
    moved = one_history(made / "old", later).steps[0].moved
    assert [(one.key, one.before is None, one.after is None) for one in moved] == [
        (KEY, False, True),
        ("renamed", True, False),
    ]


def test_command_prints_changes_and_unexplained_moves(made: Path, tmp_path: Path, floorkit: Floorkit) -> None:
    later = moved_results(made, tmp_path / "later", lambda record: record["statistics"].update(resamples=9))
    ran = floorkit("history", later, made / "old", "--entry", "toy")
    assert (ran.returncode, ran.stderr) == (0, "")
    for words in (
        "statistics: resamples 2000, then 9",
        "1 of 3 headline figures moved.",
        "49.2 %  59.2 %  +10.0 points",
        "a moved although code, parameters, data and its predictions did not change",
    ):
        assert words in ran.stdout
    data = json.loads(floorkit("history", made / "old", later, "--json").stdout)
    step = data["entries"]["toy"]["steps"][0]
    assert step["moved"][0]["run"] == "a"
    assert step["moved"][0]["explained"] is False


def test_changes_of_equal_records_are_none_and_paths_and_times_do_not_count(made: Path) -> None:
    record = json.loads((made / "old/toy/provenance.json").read_text("utf-8"))
    other = {**record, "started": "x", "ended": "y", "command": [], "manifest_folder": "z", "platform": "p"}
    assert changes(record, other) == []
