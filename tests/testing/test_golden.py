"""The metric-change gate, tried on a copy of a plugin's folder."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import floorkit
from floorkit.core.errors import InputError
from floorkit.testing import golden

CHANGELOG = """# Changelog

## [1.0.0] - 2026-11-30

### Added

- The protocol.
"""

ANNOUNCED = """
## [1.1.0] - 2026-12-01

### Metric

- `recall` falls from 0.75 to 0.5 where an outcome lies on the last row, which used to count.
"""


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    """The tests folder of a plugin of version 1.0.0 with two golden files and their lock."""
    for case, value in (("basic", "0.75"), ("ties", "0.5")):
        folder = tmp_path / "tests" / "golden" / case
        folder.mkdir(parents=True)
        (folder / "expected.json").write_text(f'{{"recall": {value}}}', encoding="utf-8")
    set_version(tmp_path / "tests", "1.0.0")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG, encoding="utf-8")
    golden.write_lock(tmp_path / "tests")
    return tmp_path / "tests"


def set_version(tests: Path, version: str) -> None:
    (tests.parent / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\n', encoding="utf-8")


def add_release(tests: Path, text: str) -> None:
    path = tests.parent / "CHANGELOG.md"
    before, after = path.read_text(encoding="utf-8").split("\n## ", 1)
    path.write_text(f"{before}{text}\n## {after}", encoding="utf-8")


def move_a_value(tests: Path) -> None:
    (tests / "golden" / "basic" / "expected.json").write_text('{"recall": 0.5}', encoding="utf-8")


def whats(tests: Path) -> list[str]:
    return [problem.what for problem in golden.problems(tests)]


def test_untouched_values_pass(tests: Path) -> None:
    assert golden.problems(tests) == []
    golden.golden_gate(tests)()


def test_a_moved_value_fails_and_the_file_is_named(tests: Path) -> None:
    move_a_value(tests)
    first, second = golden.problems(tests)
    assert first.what == "golden values moved, and the plugin's version did not"
    assert "golden/basic/expected.json" in first.found
    assert second.what == "golden files differ from the lock"
    with pytest.raises(pytest.fail.Exception, match="golden/basic/expected"):
        golden.golden_gate(tests)()


def test_a_moved_value_cannot_be_locked_under_the_same_version(tests: Path) -> None:
    move_a_value(tests)
    before = (tests / golden.LOCK).read_bytes()
    with pytest.raises(InputError, match="the plugin's version did not"):
        golden.write_lock(tests)
    assert (tests / golden.LOCK).read_bytes() == before


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("\n### Changed\n\n- Faster by 10 %.\n", "no entry"),
        ("\n### Metric\n\n- Recall is lower.\n", "no numbers"),
        ("\n### Metric\n\n0.75 to 0.5\n", "no entry"),
    ],
)
def test_a_raised_version_needs_a_metric_entry_with_numbers(tests: Path, entry: str, found: str) -> None:
    move_a_value(tests)
    set_version(tests, "1.1.0")
    add_release(tests, f"\n## [1.1.0] - 2026-12-01\n{entry}")
    assert "golden values moved without being announced" in whats(tests)
    with pytest.raises(InputError, match=found):
        golden.write_lock(tests)


def test_a_raised_version_without_a_changelog_section_fails(tests: Path) -> None:
    move_a_value(tests)
    set_version(tests, "1.1.0")
    with pytest.raises(InputError, match="not in its CHANGELOG"):
        golden.problems(tests)


def test_an_announced_change_passes_once_it_is_locked(tests: Path) -> None:
    move_a_value(tests)
    set_version(tests, "1.1.0")
    add_release(tests, ANNOUNCED)
    assert whats(tests) == ["golden files differ from the lock"]
    assert golden.main([str(tests)]) == 0
    assert golden.problems(tests) == []
    assert golden.read_lock(tests / golden.LOCK).version == "1.1.0"


def test_an_announcement_that_is_removed_later_fails(tests: Path) -> None:
    move_a_value(tests)
    set_version(tests, "1.1.0")
    add_release(tests, ANNOUNCED)
    golden.write_lock(tests)
    (tests.parent / "CHANGELOG.md").write_text(
        CHANGELOG.replace("\n## ", "\n## [1.1.0]\n\n- Small things.\n\n## "), encoding="utf-8"
    )
    assert whats(tests) == ["golden values moved without being announced"]


def test_a_second_move_under_an_announced_version_fails(tests: Path) -> None:
    move_a_value(tests)
    set_version(tests, "1.1.0")
    add_release(tests, ANNOUNCED)
    golden.write_lock(tests)
    (tests / "golden" / "ties" / "expected.json").write_text('{"recall": 1}', encoding="utf-8")
    assert "golden values moved, and the plugin's version did not" in whats(tests)


def test_a_version_without_moved_values_needs_no_metric_entry(tests: Path) -> None:
    set_version(tests, "1.0.1")
    add_release(tests, "\n## [1.0.1] - 2026-12-01\n\n### Fixed\n\n- A message.\n")
    assert golden.problems(tests) == []


def test_a_new_golden_file_needs_only_the_lock(tests: Path) -> None:
    (tests / "golden" / "new").mkdir()
    (tests / "golden" / "new" / "expected.json").write_text("{}", encoding="utf-8")
    assert whats(tests) == ["golden files differ from the lock"]
    golden.write_lock(tests)
    assert golden.problems(tests) == []


def test_a_removed_golden_file_counts_as_moved(tests: Path) -> None:
    (tests / "golden" / "ties" / "expected.json").unlink()
    assert "golden values moved, and the plugin's version did not" in whats(tests)


def test_without_a_lock_the_command_that_writes_it_is_named(tests: Path) -> None:
    (tests / golden.LOCK).unlink()
    with pytest.raises(InputError, match="python -m floorkit"):
        golden.problems(tests)


def test_a_folder_without_golden_files_is_an_error(tests: Path) -> None:
    with pytest.raises(InputError, match="no golden file"):
        golden.problems(tests, ["other/*"])


PLUGINS = sorted(Path(floorkit.__file__).parents[1].glob("plugins/*/pyproject.toml"))


@pytest.mark.parametrize("project", PLUGINS, ids=lambda path: path.parent.name)
def test_every_plugin_fails_when_one_of_its_golden_values_moves(project: Path, tmp_path: Path) -> None:
    source, copied = project.parent / "tests", tmp_path / "tests"
    lock = golden.read_lock(source / golden.LOCK)
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copyfile(project.with_name(name), tmp_path / name)
    for name in (golden.LOCK, *lock.files):
        (copied / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, copied / name)
    assert golden.problems(copied, tuple(lock.files)) == []
    moved = copied / next(name for name in lock.files if re.search(r"[1-9]", (copied / name).read_text()))
    text = moved.read_text(encoding="utf-8")
    moved.write_text(re.sub(r"[1-9]", "0", text, count=1), encoding="utf-8")
    first, *_ = golden.problems(copied, tuple(lock.files))
    assert first.what == "golden values moved, and the plugin's version did not"
    assert moved.relative_to(copied).as_posix() in first.found
    with pytest.raises(InputError):
        golden.write_lock(copied, tuple(lock.files))


def test_all_five_plugins_are_gated_and_run_the_kit() -> None:
    assert len(PLUGINS) == 5
    for project in PLUGINS:
        text = "".join(path.read_text(encoding="utf-8") for path in project.parent.glob("tests/test_*.py"))
        assert "= golden_gate(Path(__file__).parent)" in text, project
        assert "test_conformance = conformance(" in text, project
