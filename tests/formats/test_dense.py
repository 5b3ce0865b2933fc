"""Dense arrays: what is read, and what is refused with file, found and expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from floorkit.core.errors import InputError
from floorkit.core.values import Context, Source, Unit
from floorkit.formats.dense import (
    Prediction,
    Targets,
    horizon_seconds,
    load_prediction,
    load_targets,
    open_array,
    read_activity,
    read_recordings,
)
from floorkit.formats.honesty import DenseParams

ROWS = 16


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context("case", "dense", DenseParams(), tmp_path)


def targets(starts: tuple[int, ...] = (0,)) -> Targets:
    return Targets("s", np.zeros((ROWS, 3), dtype=bool), np.array(starts, dtype=np.int64))


def load(context: Context, pred: Any, valid: Any = None, gold: Targets | None = None) -> Prediction:
    files = {"pred": context.root / "pred.npy"}
    np.save(files["pred"], pred)
    if valid is not None:
        files["valid"] = context.root / "valid.npy"
        np.save(files["valid"], valid)
    return load_prediction(context, Unit("s", "evaluated", Source()), Source(files), gold or targets())


def refusal(function: Any, *arguments: Any) -> str:
    with pytest.raises(InputError) as caught:
        function(*arguments)
    return str(caught.value)


def sound(dtype: Any = np.float32) -> np.ndarray:
    return np.full((ROWS, 3, 10), 0.5, dtype=dtype)


@pytest.mark.parametrize("dtype", ["u1", "i4", "f2", "f8", "?", ">i2"])
def test_targets_are_read_in_any_numeric_dtype(dtype: str, tmp_path: Path) -> None:
    activity = np.tile([[0, 1, 1], [1, 0, 0]], (3, 1))
    np.save(tmp_path / "s.npy", activity.astype(dtype))
    assert np.array_equal(read_activity(tmp_path / "s.npy", 3, tmp_path), activity.astype(bool))


def test_fortran_ordered_arrays_are_read(tmp_path: Path) -> None:
    activity = np.asfortranarray(np.arange(30).reshape(10, 3) % 2)
    np.save(tmp_path / "s.npy", activity)
    assert np.array_equal(read_activity(tmp_path / "s.npy", 3, tmp_path), activity)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((16, 2)), ["[16, 2]", "[T, 3]"]),
        (np.zeros(16), ["[16]", "[T, 3]"]),
        (np.zeros((0, 3)), ["a session of no rows", "[0, 3]"]),
        (np.full((4, 3), 0.5), ["0.5 at [0, 0] (and 11 more)"]),
        (np.full((4, 3), np.nan), ["nan at [0, 0]"]),
        (np.full((4, 3), "1"), ["wrong dtype", "<U1", "numbers"]),
    ],
)
def test_wrong_targets_are_refused(array: np.ndarray, words: list[str], tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", array)
    told = refusal(read_activity, tmp_path / "s.npy", 3, tmp_path)
    for word in ["s.npy", *words]:
        assert word in told, told


def test_recordings_divide_the_rows(context: Context) -> None:
    np.save(context.root / "s.npy", np.zeros((ROWS, 3)))
    (context.root / "s.recordings.json").write_text("[0, 4, 10]", encoding="utf-8")
    files = {"targets": context.root / "s.npy", "recordings": context.root / "s.recordings.json"}
    found = load_targets(context, Unit("s", "evaluated", Source(files)))
    assert found.stops.tolist() == [4, 10, 16]
    assert found.recording.tolist() == [0] * 4 + [1] * 6 + [2] * 6
    inside = found.inside(10)
    for row in range(ROWS):
        start = max(start for start in (0, 4, 10) if start <= row)
        assert inside[row].tolist() == [row - (h + 1) >= start for h in range(10)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[3, 5]", ["must start at row 0", "3"]),
        ("[0, 9, 9]", ["index 2", "9 after 9"]),
        ("[0, 16]", ["past the session's 16 rows", "16"]),
        ("[0, 5.0]", ["not a list of start rows"]),
        ("[0, true]", ["not a list of start rows"]),
        ("[]", ["not a list of start rows"]),
        ('{"starts": [0]}', ["not a list of start rows"]),
        ("[0, 5", ["cannot be read"]),
        ("[" * 100_000, ["cannot be read"]),
        ("[2, 20, 20]", ["must start at row 0", "index 2", "16 rows"]),
    ],
)
def test_wrong_recordings_are_refused_with_every_problem(text: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(text, encoding="utf-8")
    told = refusal(read_recordings, tmp_path / "r.json", 16, tmp_path)
    for word in ["r.json", *words]:
        assert word in told, told


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_predictions_are_mapped_not_read(dtype: Any, context: Context) -> None:
    found = load(context, sound(dtype))
    assert isinstance(found.pred, np.memmap)
    assert found.pred.dtype == dtype
    assert found.wearer.dtype == np.float64


def test_without_a_mask_cells_inside_the_recording_are_valid(context: Context) -> None:
    gold = targets((0, 5))
    assert np.array_equal(load(context, sound(), gold=gold).valid, gold.inside(10))


def test_a_mask_of_rows_counts_for_all_horizons_and_the_recording_rule_wins(context: Context) -> None:
    gold = targets((0, 5))
    mask = np.arange(ROWS) % 3 != 0
    expected = gold.inside(10) & mask[:, None]
    assert np.array_equal(load(context, sound(), mask, gold).valid, expected)
    assert np.array_equal(
        load(context, sound(), np.tile(mask[:, None], 10).astype("i8"), gold).valid, expected
    )


def test_cells_that_are_not_valid_may_hold_anything(context: Context) -> None:
    gold = targets((0, 5))
    pred = sound()
    pred[np.broadcast_to(~gold.inside(10)[:, None], pred.shape)] = np.nan
    pred[7] = 17.0
    mask = np.arange(ROWS) != 7
    assert not load(context, pred, mask, gold).valid[7].any()


@pytest.mark.parametrize(
    ("value", "shown"), [(1.25, "1.25"), (-0.5, "-0.5"), (np.nan, "nan"), (np.inf, "inf")]
)
@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_valid_cell_of_any_class_must_be_a_probability(
    value: float, shown: str, index: int, context: Context
) -> None:
    pred = sound()
    pred[12, index, 3] = value
    told = refusal(load, context, pred)
    assert f"{shown} at [12, {index}, 3]" in told
    assert "pred.npy" in told


@pytest.mark.parametrize(
    ("pred", "words"),
    [
        (np.zeros((15, 3, 10)), ["[15, 3, 10]", "[16, 3, 10]"]),
        (np.zeros((16, 10, 3)), ["[16, 10, 3]", "[16, 3, 10]"]),
        (np.zeros((6, 10, 3)), ["[6, 10, 3]", "floorkit convert egospeak", "--sessions s"]),
        (np.zeros((16, 3, 10), dtype=np.int32), ["int32", "float16, float32 or float64"]),
        (np.zeros((16, 3, 10), dtype=np.longdouble), ["wrong dtype", "float"]),
        (np.zeros((16, 3, 10), dtype=np.complex64), ["complex64"]),
    ],
)
def test_wrong_predictions_are_refused(pred: np.ndarray, words: list[str], context: Context) -> None:
    told = refusal(load, context, pred)
    for word in ["pred.npy", *words]:
        assert word in told, told


def test_problems_of_mask_and_prediction_are_told_together(context: Context) -> None:
    told = refusal(load, context, np.zeros((15, 3, 10)), np.full((16, 10), 2))
    assert "pred.npy" in told
    assert "2.0 at [0, 0] (and 159 more)" in told
    assert "valid.npy" in told


@pytest.mark.parametrize("mask", [np.ones(15), np.ones((16, 9)), np.ones((16, 10, 1)), np.full(16, "x")])
def test_wrong_masks_are_refused(mask: np.ndarray, context: Context) -> None:
    assert "valid.npy" in refusal(load, context, sound(), mask)


def test_files_that_are_no_arrays_are_refused_without_unpickling(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert "object (needs pickle" in refusal(open_array, path, tmp_path, "f", "floats")
    np.save(path, np.zeros((100, 3, 10)))
    path.write_bytes(path.read_bytes()[:500])
    assert "cut off" in refusal(open_array, path, tmp_path, "f", "floats")
    for content in (b"", b"\x80\x04N.", b"PK\x03\x04", b"\x93NUMPY\x01\x00\x02\x00{}"):
        path.write_bytes(content)
        assert "x.npy: not a NumPy .npy file" in refusal(open_array, path, tmp_path, "f", "floats")
    path.unlink()
    assert "cannot be read" in refusal(open_array, path, tmp_path, "f", "floats")


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (-5, 3, 10), }", "not a NumPy .npy file"),
        ("{'descr': [('a', '<f4'], 'fortran_order': (", "not a NumPy .npy file"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 300, 10), }", "cut off"),
    ],
)
def test_headers_that_no_array_has_are_refused(header: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    text = header.ljust(117).encode() + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
    told = refusal(open_array, path, tmp_path, "f", "floats")
    assert "x.npy" in told
    assert words in told


def test_horizons_are_named_as_people_write_them() -> None:
    assert [horizon_seconds(k) for k in range(1, 11)] == [0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0]
    assert json.dumps(horizon_seconds(3)) == "0.6"
