"""``floorkit init``: what it recognises, what it asks, and that what it writes is right."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import click.testing
import numpy as np
import pytest

import floorkit
from floorkit.cli import cli
from floorkit.core import manifest
from floorkit.core.errors import EvaluationError, ManifestError
from floorkit.core.guess import Listing, natural, run_name, top_level_keys
from floorkit.init import Wish, recognise, write_manifest

from .conftest import Floorkit, distribution

EXAMPLES = Path(floorkit.__file__).parents[1] / "examples"

Dense = Callable[..., Path]


@pytest.fixture
def dense(tmp_path: Path) -> Dense:
    """``dense(sessions, targets="targets")``: two runs of forecasts, and their targets elsewhere if asked."""

    def make(*sessions: str, targets: str = "targets") -> Path:
        folder = tmp_path / "mine"
        draw = np.random.default_rng(0)
        for session in sessions:
            for run in ("base", "new"):
                path = folder / "runs" / run / "pred" / f"{session}.npy"
                path.parent.mkdir(parents=True, exist_ok=True)
                np.save(path, draw.random((60, 3, 10), dtype=np.float32))
            path = folder / targets / f"{session}.npy"
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, draw.integers(0, 2, (60, 3), dtype=np.int8))
        return folder

    return make


def entry(path: Path, name: str) -> manifest.ProtocolEntry:
    return manifest.read(path).document.protocols[name]


@pytest.mark.parametrize(
    ("folder", "protocols"),
    [
        ("dense", {"competing_risk"}),
        ("turnbench", {"turnbench"}),
        ("seld_metrics", {"seld_metrics"}),
        (".", {"annotated", "competing_risk", "event_proxy", "seld_metrics", "turnbench"}),
    ],
)
def test_the_examples_are_recognised_and_their_manifests_pass_the_check(
    folder: str, protocols: set[str], tmp_path: Path, floorkit: Floorkit
) -> None:
    output = tmp_path / "protocols.toml"
    done = floorkit("init", EXAMPLES / folder, "--output", output)
    assert done.returncode == 0, done.stderr
    assert manifest.read(output).document.protocols.keys() == protocols
    checked = floorkit("check", output)
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.count("no problem") == len(protocols)


def test_calibration_is_taken_from_the_files_that_say_so(tmp_path: Path) -> None:
    output = tmp_path / "protocols.toml"
    write_manifest(Wish(EXAMPLES, ("annotated", "turnbench"), output=output))
    dataset = entry(output, "annotated").dataset
    assert dataset["sessions"] == ["demo_1", "demo_2", "demo_3", "demo_4"]
    assert dataset["calibration_sessions"] == ["demo_5"]
    assert dataset["reviews"].endswith("reviews/reviews.jsonl")
    assert entry(output, "turnbench").dataset["calibration"]["path"].endswith("turnbench/dev")


def test_official_test_sessions_are_calibrated_on_the_others(dense: Dense, tmp_path: Path) -> None:
    path, _ = write_manifest(Wish(dense("Session_10", "Session_9", "Session_2", "Session_1")))
    dataset = entry(path, "competing_risk").dataset
    assert dataset["sessions"] == ["Session_1", "Session_2"]
    assert dataset["calibration_sessions"] == ["Session_9", "Session_10"]


def test_paths_count_from_the_manifest(dense: Dense, tmp_path: Path, floorkit: Floorkit) -> None:
    folder = dense("a", "b")
    output = tmp_path / "elsewhere" / "m.toml"
    write_manifest(Wish(folder, output=output))
    assert entry(output, "competing_risk").runs["new"]["path"] == "../mine/runs/new"
    assert floorkit("check", output).returncode == 0


def test_what_the_files_do_not_tell_is_an_error_with_the_flag(dense: Dense, tmp_path: Path) -> None:
    folder = dense("a", targets="../far/targets")
    with pytest.raises(ManifestError, match="the files do not tell") as caught:
        write_manifest(Wish(folder))
    assert "--set dataset.targets=..." in str(caught.value)
    assert not (folder / "protocols.toml").exists()


def test_flags_answer_what_the_files_do_not_tell(dense: Dense, tmp_path: Path, floorkit: Floorkit) -> None:
    folder = dense("a", "b", "c", targets="../far/targets")
    answers = (
        f"dataset.targets={tmp_path / 'far' / 'targets'}",
        'dataset.calibration_sessions=["c"]',
        "params.matched_recalls=[0.5]",
        "statistics.resamples=500",
    )
    path, _ = write_manifest(Wish(folder, answers=answers))
    found = entry(path, "competing_risk")
    assert found.dataset["targets"] == "../far/targets"
    assert (found.dataset["sessions"], found.dataset["calibration_sessions"]) == (["a", "b"], ["c"])
    assert found.params == {"matched_recalls": [0.5]}
    assert found.statistics == {"resamples": 500}
    assert floorkit("check", path).returncode == 0


def test_questions_are_few_and_their_answers_are_written(
    dense: Dense, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = dense("a", "b", "c", targets="../far/targets")
    monkeypatch.chdir(tmp_path)
    answers = "far/targets\nb, c\n"
    done = click.testing.CliRunner().invoke(cli, ["init", "mine", "--ask"], input=answers)
    assert done.exit_code == 0, done.output
    assert done.output.count("competing_risk: ") == 3
    dataset = entry(folder / "protocols.toml", "competing_risk").dataset
    assert dataset["targets"] == "../far/targets"
    assert (dataset["sessions"], dataset["calibration_sessions"]) == (["a"], ["b", "c"])


def test_several_protocols_can_be_chosen_from(tmp_path: Path) -> None:
    output = tmp_path / "m.toml"
    done = click.testing.CliRunner().invoke(
        cli, ["init", str(EXAMPLES), "--output", str(output), "--ask"], input="turnbench, seld_metrics\n"
    )
    assert done.exit_code == 0, done.output
    assert manifest.read(output).document.protocols.keys() == {"turnbench", "seld_metrics"}


def test_arrays_of_another_size_set_the_parameters(tmp_path: Path) -> None:
    for place, shape in (("model/pred", (30, 5, 4)), ("gold", (30, 5))):
        (tmp_path / place).mkdir(parents=True)
        np.save(tmp_path / place / "s.npy", np.zeros(shape, dtype=np.float32))
    path, _ = write_manifest(Wish(tmp_path))
    assert entry(path, "competing_risk").params == {"classes": 5, "horizons": 4}


def test_a_folder_that_is_a_run_itself_is_a_run(dense: Dense, tmp_path: Path) -> None:
    folder = dense("a") / "runs" / "base"
    targets = tmp_path / "mine" / "targets"
    path, _ = write_manifest(Wish(folder, answers=(f"dataset.targets={targets}",)))
    assert entry(path, "competing_risk").runs == {"base": {"path": "."}}


def test_rttm_targets_ask_for_the_wearer(dense: Dense, tmp_path: Path) -> None:
    folder = dense("a")
    shutil.rmtree(folder / "targets")
    (folder / "rttm").mkdir()
    (folder / "rttm" / "a.rttm").write_text("SPEAKER a 1 0 12 <NA> <NA> anna <NA> <NA>\n", encoding="utf-8")
    with pytest.raises(ManifestError, match=r"dataset\.wearer"):
        write_manifest(Wish(folder))
    path, _ = write_manifest(Wish(folder, answers=("dataset.wearer=anna",)))
    dataset = entry(path, "competing_risk").dataset
    assert (dataset["format"], dataset["targets"], dataset["wearer"]) == ("rttm", "rttm", "anna")


def test_parameters_stand_there_as_comments_with_their_meaning(dense: Dense) -> None:
    path, _ = write_manifest(Wish(dense("a")))
    text = path.read_text(encoding="utf-8")
    assert "# common_support = false\n" in text
    assert "# Negatives of response whose competing row follows within this time" in text
    assert max(map(len, text.splitlines())) <= 100
    commented = text.replace("# common_support", "common_support")
    path.write_text(commented, encoding="utf-8")
    assert entry(path, "competing_risk").params == {"common_support": False}


def test_an_existing_manifest_is_kept(dense: Dense) -> None:
    folder = dense("a")
    (folder / "protocols.toml").write_text("# mine", encoding="utf-8")
    with pytest.raises(ManifestError, match="exists already"):
        write_manifest(Wish(folder))
    assert (folder / "protocols.toml").read_text(encoding="utf-8") == "# mine"
    write_manifest(Wish(folder, force=True))
    assert entry(folder / "protocols.toml", "competing_risk")
    assert [path.name for path in folder.iterdir() if path.name.endswith(".part")] == []


def test_files_that_nobody_recognises_are_listed(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    with pytest.raises(ManifestError, match="no installed protocol recognises the files") as caught:
        write_manifest(Wish(tmp_path))
    assert "1 .wav" in str(caught.value)


def test_a_protocol_that_was_not_recognised_names_the_nearest(dense: Dense) -> None:
    with pytest.raises(ManifestError, match="did you mean 'competing_risk'") as caught:
        write_manifest(Wish(dense("a"), ("competing_risks",)))
    assert "protocol not recognised" in str(caught.value)


@pytest.mark.parametrize("text", ["targets=x", "dataset.targets", "runs.a=1", "dataset.=1"])
def test_answers_that_are_none_are_refused(text: str, dense: Dense) -> None:
    with pytest.raises(ManifestError, match="cannot be understood"):
        write_manifest(Wish(dense("a"), answers=(text,)))


def test_a_plugin_that_fails_to_guess_is_named(
    dense: Dense, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "from floorkit.core.hooks import hookimpl\n"
        "@hookimpl\n"
        "def floorkit_guess(listing):\n"
        "    return 1 / 0\n"
    )
    monkeypatch.syspath_prepend(str(distribution(tmp_path / "site", "guesser", code)))
    with pytest.raises(EvaluationError, match="floorkit-guesser") as caught:
        recognise(Listing.of(dense("a")))
    assert "0.1.0, floorkit_guess: a hook of the plugin failed" in str(caught.value)
    assert "ZeroDivisionError" in str(caught.value)
    del sys.modules["guesser_plugin"]


def test_hidden_files_and_results_are_not_looked_at(tmp_path: Path) -> None:
    for name in (".git/a.npy", "results/b.npy", "runs/c.npy", ".hidden.npy"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert Listing.of(tmp_path).files == ("runs/c.npy",)


def test_files_come_in_the_order_in_which_people_count() -> None:
    assert sorted(["s10", "s9", "s2", "a"], key=natural) == ["a", "s2", "s9", "s10"]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ('{"a": 1, "b": {"c": 2}, "d": ["e", {"f": 1}], "g', ["a", "b", "d"]),
        ('{"a": "x: y", "b\\"c": [', ["a", 'b"c']),
        ('[{"a": 1}]', []),
        ("", []),
        ('{"a": "not, \\"b\\": closed', ["a"]),
    ],
)
def test_keys_of_the_beginning_of_a_json_file(text: str, keys: list[str]) -> None:
    assert top_level_keys(text) == keys


def test_names_of_runs_are_told_apart_and_allowed(tmp_path: Path) -> None:
    assert run_name("runs/a", tmp_path) == "a"
    assert run_name("old/a", tmp_path, ["a"]) == "old_a"
    assert run_name("my model!", tmp_path) == "my_model_"
    assert run_name("runs/v1.2", tmp_path) == "v1.2"
    assert run_name("events.json", tmp_path) == "events"
    assert run_name(".", tmp_path) == tmp_path.name


def test_a_head_that_cannot_be_read_is_empty(tmp_path: Path) -> None:
    (tmp_path / "broken.json.gz").write_bytes(b"no gzip")
    (tmp_path / "folder.json").mkdir()
    listing = Listing.of(tmp_path)
    assert listing.head("broken.json.gz") == ""
    assert listing.json_keys("folder.json") == set()


def test_the_listing_does_not_follow_links_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x.npy").write_bytes(b"")
    (tmp_path / "in").mkdir()
    os.symlink(tmp_path / "out", tmp_path / "in" / "link")
    assert Listing.of(tmp_path / "in").files == ()
