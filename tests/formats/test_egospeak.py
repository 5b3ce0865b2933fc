"""``floorkit convert egospeak``: alignment, checks, atomic writing, and pickles that are not run."""

from __future__ import annotations

import io
import json
import os
import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from floorkit.core.errors import InputError
from floorkit.formats.dense_writer import WrittenSession, write_run
from floorkit.formats.egospeak import Conversion, align, convert
from floorkit.formats.pickled_arrays import read_arrays


def raw(rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((rows - 10, 10, 3), dtype=np.float32)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Targets and raw predictions of the sessions a (30 rows) and b (25 rows)."""
    for kind in ("targets", "raw"):
        (tmp_path / kind).mkdir()
    for seed, (session, rows) in enumerate((("a", 30), ("b", 25))):
        np.save(tmp_path / f"targets/{session}.npy", np.zeros((rows, 3)))
        np.save(tmp_path / f"raw/{session}.npy", raw(rows, seed))
    return tmp_path


def conversion(data: Path, *sessions: str, predictions: str = "raw", add: bool = False) -> Conversion:
    return Conversion(data / predictions, data / "targets", data / "run", sessions, add)


def refusal(function: Callable[..., object], *arguments: Any) -> str:
    with pytest.raises(InputError) as caught:
        function(*arguments)
    return str(caught.value)


def test_every_cell_is_where_the_specification_says() -> None:
    source = raw(30)
    pred, valid = align(source, 30)
    assert pred.shape == (30, 3, 10)
    for t in range(30):
        for h in range(10):
            inside = 0 <= t - 1 - h < 20
            assert valid[t, h] == inside
            for c in range(3):
                cell = pred[t, c, h]
                assert cell == source[t - 1 - h, h, c] if inside else np.isnan(cell)


def test_a_converted_run_holds_arrays_and_the_hashes_of_what_they_came_from(data: Path) -> None:
    import hashlib

    convert(conversion(data, "a", "b"))
    for session, rows, seed in (("a", 30, 0), ("b", 25, 1)):
        pred, valid = align(raw(rows, seed), rows)
        assert np.array_equal(np.load(data / f"run/pred/{session}.npy"), pred, equal_nan=True)
        assert np.array_equal(np.load(data / f"run/valid/{session}.npy"), valid)
    origin = json.loads((data / "run/origin.json").read_text(encoding="utf-8"))["sessions"]
    assert list(origin) == ["a", "b"]
    for kind, folder in (("prediction", "raw"), ("targets", "targets")):
        digest = hashlib.sha256((data / folder / "a.npy").read_bytes()).hexdigest()
        assert origin["a"][kind] == {"file": "a.npy", "sha256": digest}


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((30, 10, 3), np.float32), ["[30, 10, 3]", "[20, 10, 3]"]),
        (np.zeros((20, 3, 10), np.float32), ["[20, 3, 10]", "[20, 10, 3]", "nothing is transposed"]),
        (np.zeros((20, 10, 3), np.int64), ["int64"]),
        (np.full((20, 10, 3), 1.5), ["1.5 at [0, 0, 0]"]),
        (np.full((20, 10, 3), np.nan), ["nan at [0, 0, 0]"]),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(
    array: np.ndarray, words: list[str], data: Path
) -> None:
    np.save(data / "raw/a.npy", array)
    np.save(data / "raw/b.npy", np.zeros((1, 10, 3)))
    told = refusal(convert, conversion(data, "a", "b"))
    for word in [*words, "a.npy", "b.npy", "[15, 10, 3]"]:
        assert word in told, told
    assert not (data / "run").exists()
    assert sorted(path.name for path in data.iterdir()) == ["raw", "targets"]


def test_missing_files_are_told(data: Path) -> None:
    (data / "raw/a.npy").unlink()
    told = refusal(convert, conversion(data, "a", "c"))
    assert "raw/a.npy" in told
    assert "targets/c.npy" in told


def test_other_sessions_are_kept_only_when_told_to(data: Path) -> None:
    convert(conversion(data, "a"))
    before = (data / "run/pred/a.npy").read_bytes()
    assert "--add" in refusal(convert, conversion(data, "b"))
    assert not (data / "run/pred/b.npy").exists()
    convert(conversion(data, "b", add=True))
    assert (data / "run/pred/a.npy").read_bytes() == before
    origin = json.loads((data / "run/origin.json").read_text(encoding="utf-8"))["sessions"]
    assert list(origin) == ["a", "b"]
    np.save(data / "raw/a.npy", raw(30, 7))
    convert(conversion(data, "a", "b"))
    assert (data / "run/pred/a.npy").read_bytes() != before


def test_a_folder_that_is_no_run_is_not_touched(data: Path) -> None:
    (data / "run").mkdir()
    (data / "run" / "thesis.tex").write_text("x", encoding="utf-8")
    assert "thesis.tex" in refusal(convert, conversion(data, "a", add=True))
    assert [path.name for path in (data / "run").iterdir()] == ["thesis.tex"]


def test_an_interruption_leaves_what_was_there(tmp_path: Path) -> None:
    def session(name: str, value: float) -> WrittenSession:
        return WrittenSession(name, np.full((4, 3, 10), value), np.ones((4, 10), bool), {})

    folder = tmp_path / "run"
    write_run(folder, [session("a", 0.25)], ["a"], add=False, tool="test")

    def interrupted() -> Any:
        yield session("a", 0.75)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_run(folder, interrupted(), ["a"], add=False, tool="test")
    assert np.load(folder / "pred/a.npy")[0, 0, 0] == 0.25
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", ">f4"])
def test_pickled_arrays_are_read_from_every_protocol(protocol: int, dtype: str, tmp_path: Path) -> None:
    arrays = {"a": raw(30).astype(dtype), "b": np.asfortranarray(raw(25, 1).astype(dtype))}
    for container in (arrays, OrderedDict(arrays)):
        (tmp_path / "x.pkl").write_bytes(pickle.dumps(container, protocol=protocol))
        found = read_arrays(tmp_path / "x.pkl")
        assert list(found) == ["a", "b"]
        for name, array in arrays.items():
            assert np.array_equal(found[name], array)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_array_without_rows_is_read_from_every_protocol(protocol: int, tmp_path: Path) -> None:
    (tmp_path / "x.pkl").write_bytes(pickle.dumps({"a": np.zeros((0, 10, 3))}, protocol=protocol))
    assert read_arrays(tmp_path / "x.pkl")["a"].shape == (0, 10, 3)


def test_every_entry_of_a_pickle_that_is_no_array_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.pkl").write_bytes(pickle.dumps({"a": raw(30), "b": [0.5], 3: raw(30)}))
    told = refusal(read_arrays, tmp_path / "x.pkl")
    assert "x.pkl ('b'): not a session with its array" in told
    assert "x.pkl (3)" in told
    assert "'a'" not in told


def test_a_pickle_converts_like_a_folder(data: Path) -> None:
    arrays = {"a": raw(30), "b": raw(25, 1)}
    (data / "raw.pkl").write_bytes(pickle.dumps(arrays))
    convert(conversion(data, "a", "b", predictions="raw.pkl"))
    assert np.array_equal(np.load(data / "run/pred/a.npy"), align(raw(30), 30)[0], equal_nan=True)
    assert "no array of session c" in refusal(_convert_unknown, data)


def _convert_unknown(data: Path) -> None:
    np.save(data / "targets/c.npy", np.zeros((30, 3)))
    convert(conversion(data, "c", predictions="raw.pkl", add=True))


class Command:
    """What a hostile pickle does: it calls something."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize(
    "content",
    [
        {"a": Command(os.system, "touch hacked")},
        {"a": Command(eval, "open('hacked', 'w')")},
        {"a": Command(np.ndarray, (2, 2))},
        {"a": np.array([{}], dtype=object)},
        {"a": np.array(["text"])},
        {"a": np.array([1, 2])},
        {"a": np.float64(1)},
        {"a": [0.5]},
        {1: raw(20)},
        [raw(20)],
        Path("x"),
    ],
)
def test_a_pickle_of_anything_else_is_refused_and_not_run(
    content: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(content))
    assert "x.pkl" in refusal(read_arrays, tmp_path / "x.pkl")
    assert [path.name for path in tmp_path.iterdir()] == ["x.pkl"]


def test_broken_pickles_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.pkl"
    whole = pickle.dumps({"a": raw(30)})
    for content in (b"", b"no pickle", whole[:-40], whole.replace(b"f4", b"O8")):
        path.write_bytes(content)
        assert "x.pkl" in refusal(read_arrays, path)
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, protocol=2)
    pickler.persistent_id = lambda value: "id" if value == "me" else None  # type: ignore[method-assign]
    pickler.dump({"a": "me"})
    path.write_bytes(stream.getvalue())
    assert "persistent" in refusal(read_arrays, path)
    assert "cannot be read" in refusal(read_arrays, tmp_path / "none.pkl")


def test_the_command_takes_sessions_as_its_users_write_them(data: Path, floorkit: Any) -> None:
    done = floorkit(
        *("convert", "egospeak", "--prediction-root", "raw", "--target-root", "targets"),
        *("--output-dir", "run", "--sessions", "a", "b"),
        cwd=data,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (data / "run/pred").iterdir()) == ["a.npy", "b.npy"]
    np.save(data / "raw/a.npy", np.zeros((20, 3, 10)))
    done = floorkit(
        *("convert", "egospeak", "--prediction-root", "raw", "--target-root", "targets"),
        *("--output-dir", "run", "--sessions", "a", "b"),
        cwd=data,
    )
    assert done.returncode == 4
    assert "raw/a.npy" in done.stderr
    assert "Traceback" not in done.stderr
