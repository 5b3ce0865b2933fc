"""Remembered digests: what is not read again, and what must be."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from floorkit.core import sealed
from floorkit.core.digests import FRESH_NS, REMEMBERED, Digests
from floorkit.core.errors import InputError
from floorkit.core.sources import InputFile

from .conftest import Floorkit, result_files, write_json


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An input file of an hour ago."""
    path = tmp_path / "input.bin"
    path.write_bytes(b"first")
    hour_ago = time.time_ns() - 3600 * 10**9
    os.utime(path, ns=(hour_ago, hour_ago))
    return path


def remember(store: Path, *files: Path, rehash: bool = False) -> Digests:
    digests = Digests.load(store, rehash)
    for path in files:
        digests.learn(InputFile.read(path))
    digests.save()
    return digests


def known(store: Path, path: Path, rehash: bool = False) -> InputFile | None:
    return Digests.load(store, rehash).known([path]).get(path)


def rewrite_behind_its_time(path: Path, data: bytes) -> None:
    """Change bytes, and bring size, time and inode back."""
    before = path.stat()
    assert len(data) == before.st_size
    with path.open("r+b") as stream:
        stream.write(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_file_that_did_not_change_is_known(tmp_path: Path, file: Path) -> None:
    remember(tmp_path / "digests.json", file)
    found = known(tmp_path / "digests.json", file)
    assert found == InputFile.read(file)
    assert found is not None
    assert found.sha256 == hashlib.sha256(b"first").hexdigest()


@pytest.mark.parametrize("change", ["size", "time", "inode", "gone"])
def test_a_file_that_changed_in_any_way_is_not_known(tmp_path: Path, file: Path, change: str) -> None:
    remember(tmp_path / "digests.json", file)
    stat = file.stat()
    if change == "size":
        file.write_bytes(b"first!")
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    elif change == "time":
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    elif change == "inode":
        other = tmp_path / "other"
        other.write_bytes(b"FIRST")
        os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        other.replace(file)
    else:
        file.unlink()
    assert known(tmp_path / "digests.json", file) is None


def test_a_racily_fresh_file_is_not_remembered(tmp_path: Path, file: Path) -> None:
    """Written within the coarsest tick before it is hashed, it could change again under the same time."""
    now = time.time_ns()
    for age_ns, remembered in ((0, False), (FRESH_NS - 10**8, False), (FRESH_NS + 10**9, True)):
        os.utime(file, ns=(now - age_ns, now - age_ns))
        store = tmp_path / f"{age_ns}.json"
        remember(store, file)
        assert (known(store, file) is not None) == remembered


def test_a_file_from_the_future_is_not_remembered(tmp_path: Path, file: Path) -> None:
    later = time.time_ns() + 3600 * 10**9
    os.utime(file, ns=(later, later))
    remember(tmp_path / "digests.json", file)
    assert known(tmp_path / "digests.json", file) is None


def test_a_file_system_whose_clock_is_behind_decides_what_is_fresh(tmp_path: Path, file: Path) -> None:
    digests = Digests.load(tmp_path / "digests.json", clock_ns=file.stat().st_mtime_ns + FRESH_NS // 2)
    digests.learn(InputFile.read(file))
    digests.save()
    assert known(tmp_path / "digests.json", file) is None


def test_rehash_finds_what_changed_behind_its_time(tmp_path: Path, file: Path) -> None:
    store = tmp_path / "digests.json"
    remember(store, file)
    rewrite_behind_its_time(file, b"other")
    stale = known(store, file)
    assert stale is not None
    assert stale.sha256 == hashlib.sha256(b"first").hexdigest()
    assert known(store, file, rehash=True) is None
    assert remember(store, file, rehash=True).wrong == [file]
    found = known(store, file)
    assert found is not None
    assert found.sha256 == hashlib.sha256(b"other").hexdigest()


def test_two_processes_keep_what_both_learnt(tmp_path: Path, file: Path) -> None:
    other = file.with_name("other.bin")
    other.write_bytes(b"other")
    os.utime(other, ns=(1, 1))
    store = tmp_path / "digests.json"
    one, two = Digests.load(store), Digests.load(store)
    one.learn(InputFile.read(file))
    two.learn(InputFile.read(other))
    one.save()
    two.save()
    assert Digests.load(store).known([file, other]).keys() == {file, other}


def test_the_oldest_digests_are_forgotten_beyond_the_bound(tmp_path: Path, file: Path) -> None:
    store = tmp_path / "digests.json"
    sealed.write_json(store, {f"/gone/{index}": [0, 0, 0, ""] for index in range(REMEMBERED)})
    remember(store, file)
    rows = Digests.load(store).rows
    assert len(rows) == REMEMBERED
    assert str(file) in rows
    assert "/gone/0" not in rows


def test_a_file_that_cannot_be_read_is_told_by_whoever_hashes_it(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    store = tmp_path / "digests.json"
    sealed.write_json(store, {str(missing): [1, 2, 3, "4"]})
    assert known(store, missing) is None
    with pytest.raises(InputError, match="missing"):
        InputFile.read(missing)


def test_the_command_line_reads_files_once_and_rehash_checks_them(toy_data: Path, floorkit: Floorkit) -> None:
    """A change behind a file's time goes unseen until --rehash, which names it and then scores it."""
    path = toy_data / "a" / "u1.json"
    write_json(path, [0.25] * 50)
    for each in toy_data.rglob("*.json"):
        os.utime(each, (1e9, 1e9))
    floorkit("run", "protocols.toml", "--quiet", cwd=toy_data)
    before = result_files(toy_data / "results")
    rewrite_behind_its_time(path, path.read_bytes().replace(b"0.25", b"0.75"))
    unseen = floorkit("run", "protocols.toml", cwd=toy_data)
    assert "toy: 6 of 6 units reused" in unseen.stderr
    assert result_files(toy_data / "results") == before
    seen = floorkit("run", "protocols.toml", "--rehash", cwd=toy_data)
    assert "1 remembered digests were wrong" in seen.stderr
    assert f"{path}: changed, although size, time and inode did not" in seen.stderr
    assert "toy: 5 of 6 units reused" in seen.stderr
    after = result_files(toy_data / "results")
    assert after != before
    floorkit("run", "protocols.toml", "--fresh", cwd=toy_data)
    assert result_files(toy_data / "results") == after
