"""Runs and controls of the dense protocols: what is missing, extra, or input-free."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from floorkit.core.errors import InputError, ManifestError
from floorkit.core.values import Context, Dataset, Run
from floorkit.formats.dense import WEARER, load_targets
from floorkit.formats.dense_controls import build_controls
from floorkit.formats.dense_dataset import DenseTable, build_dataset, build_run
from floorkit.formats.honesty import DenseParams

ROWS = {"a": 40, "b": 30, "c": 50}


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """Targets of a, b and c; a run with predictions of a and b, another one with those of c."""
    (tmp_path / "targets").mkdir()
    rng = np.random.default_rng(3)
    for session, rows in ROWS.items():
        np.save(tmp_path / f"targets/{session}.npy", rng.integers(0, 2, (rows, 3)))
    for run, sessions in (("run", "ab"), ("calibration", "c")):
        for kind in ("pred", "valid"):
            (tmp_path / run / kind).mkdir(parents=True)
        for session in sessions:
            np.save(tmp_path / run / "pred" / f"{session}.npy", np.zeros((ROWS[session], 3, 10)))
    return Context("case", "dense", DenseParams(), tmp_path, seed=5)


def dataset(context: Context, **changes: Any) -> Dataset:
    table = {"format": "dense", "targets": "targets", "sessions": ("a", "b"), "calibration_sessions": ("c",)}
    return build_dataset(context, DenseTable(**{**table, **changes}), load_targets)


def run(context: Context, data: Dataset, **table: str) -> Run:
    return build_run(context, data, "model", {"path": "run", **table})


def problems(one: Any) -> str:
    return "\n".join(map(str, one.problems))


def test_units_are_the_evaluated_sessions_then_the_calibration_sessions(context: Context) -> None:
    assert [unit.key for unit in dataset(context).units] == [
        ("evaluated", "a"),
        ("evaluated", "b"),
        ("calibration", "c"),
    ]


def test_calibration_predictions_come_from_the_runs_calibration_folder(context: Context) -> None:
    data = dataset(context)
    found = run(context, data, calibration="calibration")
    assert not found.problems
    assert found.sources["calibration", "c"].files["pred"] == context.root / "calibration/pred/c.npy"
    assert ("calibration", "c") not in run(context, data).sources


def test_a_calibration_folder_without_calibration_sessions_is_a_problem(context: Context) -> None:
    found = run(context, dataset(context, calibration_sessions=()), calibration="calibration")
    assert "protocols.case.runs.model.calibration" in problems(found)


def test_predictions_of_sessions_with_targets_are_extra_and_others_a_problem(context: Context) -> None:
    np.save(context.root / "run/pred/c.npy", np.zeros((50, 3, 10)))
    found = run(context, dataset(context), calibration="calibration")
    assert not found.problems
    assert found.extra == ()  # c is in the manifest, and its calibration prediction lies elsewhere
    found = run(context, dataset(context, calibration_sessions=()))
    assert (found.extra, found.problems) == (("c",), ())
    np.save(context.root / "run/pred/d.npy", np.zeros((50, 3, 10)))
    found = run(context, dataset(context), calibration="calibration")
    assert "a prediction for session d, which has no targets" in problems(found)
    assert "run/pred/d.npy" in problems(found)


def test_a_mask_without_a_prediction_is_a_problem(context: Context) -> None:
    np.save(context.root / "run/valid/A.npy", np.ones(40))
    assert "a mask for session A" in problems(run(context, dataset(context), calibration="calibration"))


def test_the_mask_of_a_session_of_the_manifest_is_no_problem_of_its_own(context: Context) -> None:
    (context.root / "run/pred/a.npy").unlink()
    found = run(context, dataset(context), calibration="calibration")
    assert ("evaluated", "a") not in found.sources  # which the core tells, unless it is declared absent
    assert not found.problems


def test_masks_and_recordings_that_cannot_be_read_are_not_taken_for_absent(context: Context) -> None:
    root = context.root
    (root / "run/valid/a.npy").symlink_to(root / "run/valid/nowhere.npy")
    (root / "targets/b.recordings.json").symlink_to("nowhere.json")
    data = dataset(context)
    first, second, _ = data.units
    gold = data.load(context, first)
    found = run(context, data, calibration="calibration")
    with pytest.raises(InputError, match=r"valid/a\.npy"):
        found.load(context, first, found.sources[first.key], gold)
    with pytest.raises(InputError, match=r"b\.recordings\.json"):
        data.load(context, second)
    (root / "run/valid/a.npy").unlink()
    (root / "run/valid").rmdir()
    (root / "run/valid").write_text("")
    assert "run/valid: the masks of run model cannot be read" in problems(
        run(context, data, calibration="calibration")
    )


def test_missing_folders_and_targets_are_told(context: Context) -> None:
    assert "nowhere/pred" in problems(run(context, dataset(context), path="nowhere"))
    without = dataset(context, sessions=("a", "d"))
    assert "session d has no targets" in problems(without)
    with pytest.raises(InputError) as caught:
        without.load(context, without.units[1])
    assert caught.value.problems == without.problems


def test_links_out_of_the_named_folders_are_not_followed(context: Context, tmp_path_factory: Any) -> None:
    outside = tmp_path_factory.mktemp("outside") / "a.npy"
    np.save(outside, np.zeros((40, 3, 10)))
    (context.root / "run/pred/a.npy").unlink()
    (context.root / "run/pred/a.npy").symlink_to(outside)
    with pytest.raises(InputError, match="leads out of the folder"):
        run(context, dataset(context))


@pytest.mark.parametrize("name", ["", ".", "..", "x/a", "../a", "x\\a"])
def test_session_names_are_plain_file_names(name: str, context: Context) -> None:
    with pytest.raises(ManifestError, match="not a session name"):
        dataset(context, sessions=(name,))


def control_predictions(context: Context, data: Dataset) -> dict[tuple[str, str, str], np.ndarray]:
    found = {}
    for control in build_controls(context, data):
        assert control.control
        for unit in data.units:
            gold = data.load(context, unit)
            prediction = control.load(context, unit, control.sources[unit.key], gold)
            assert np.array_equal(prediction.valid, gold.inside(10))
            found[control.name, *unit.key] = np.array(prediction.pred)
    return found


def test_controls_are_noise_ramp_and_the_wearers_rate(context: Context) -> None:
    data = dataset(context)
    found = control_predictions(context, data)
    assert {key[0] for key in found} == {"control:noise", "control:ramp", "control:prior"}
    for unit in data.units:
        ramp = found["control:ramp", *unit.key]
        assert np.array_equal(ramp, np.broadcast_to(np.arange(1, 11) / 20, ramp.shape))
        rate = np.load(context.root / "targets/c.npy")[:, WEARER].mean()
        assert (found["control:prior", *unit.key] == rate).all()
        noise = found["control:noise", *unit.key]
        assert len(np.unique(noise)) == noise.size
        assert 0 <= noise.min() < 0.05
        assert 0.95 < noise.max() <= 1


def test_the_prior_comes_from_the_evaluated_targets_where_none_calibrate(context: Context) -> None:
    data = dataset(context, calibration_sessions=())
    active = np.concatenate([np.load(context.root / f"targets/{name}.npy")[:, WEARER] for name in "ab"])
    found = control_predictions(context, data)
    assert found["control:prior", "evaluated", "a"][0, 0, 0] == active.mean()


def test_noise_depends_on_seed_and_session_and_not_on_the_order(context: Context) -> None:
    first = control_predictions(context, dataset(context))
    other_order = control_predictions(context, dataset(context, sessions=("b", "a")))
    other_seed = control_predictions(attrs.evolve(context, seed=6), dataset(context))
    for name in "ab":
        key = ("control:noise", "evaluated", name)
        assert np.array_equal(first[key], other_order[key])
        assert not np.array_equal(first[key], other_seed[key])
    a, b = first["control:noise", "evaluated", "a"], first["control:noise", "evaluated", "b"]
    assert not np.array_equal(a[:30], b)
    assert not np.array_equal(a[:, 0], a[:, 1])


def test_the_reference_to_a_broken_target_is_left_to_the_check_of_contents(context: Context) -> None:
    np.save(context.root / "targets/c.npy", np.zeros((50, 2)))
    assert len(build_controls(context, dataset(context))) == 3
