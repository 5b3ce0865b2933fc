"""``floorkit new``: what it writes works in an environment that knows nothing of this repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import floorkit
from floorkit.core.errors import ManifestError
from floorkit.new import PLACEHOLDER, template_files, write_plugin

from .conftest import build_wheel, clean_environment

REPOSITORY = Path(floorkit.__file__).parents[1]


def run(*command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def succeed(*command: str | Path, cwd: Path | None = None) -> str:
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a plugin that ``floorkit new`` wrote."""
    folder = tmp_path_factory.mktemp("new")
    text = succeed(sys.executable, "-m", "floorkit", "new", "onset_latency", "--into", folder)
    assert "floorkit run" in text
    return folder / "floorkit-onset-latency"


@pytest.fixture(scope="module")
def clean(generated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of a clean environment with wheels of the core and of the generated plugin."""
    wheels = tmp_path_factory.mktemp("wheels")
    built = [build_wheel(project, wheels) for project in (REPOSITORY, generated)]
    python = clean_environment(tmp_path_factory.mktemp("clean"))
    pip = (sys.executable, "-m", "pip", "--python", python)
    succeed(*pip, "install", "--quiet", "--no-deps", "--no-index", *built, cwd=wheels)
    return python


def test_the_clean_environment_sees_wheels_and_no_repository(clean: Path, tmp_path: Path) -> None:
    code = "import floorkit, floorkit_onset_latency, sys; print(floorkit.__file__, *sys.path, sep='\\n')"
    paths = succeed(clean, "-c", code, cwd=tmp_path).splitlines()
    assert paths[0].startswith(str(clean.parents[1]))
    assert not any(Path(path).resolve().is_relative_to(REPOSITORY / "floorkit") for path in paths)
    assert str(REPOSITORY) not in paths


def test_the_generated_plugin_runs_in_a_clean_environment(
    clean: Path, generated: Path, tmp_path: Path
) -> None:
    output = tmp_path / "results"
    text = succeed(
        clean, "-m", "floorkit", "run", generated / "example/protocols.toml", "--output", output, cwd=tmp_path
    )
    assert "control:metronome" in text
    summary = json.loads((output / "onset_latency" / "summary.json").read_text(encoding="utf-8"))
    assert summary["plugin"] == "floorkit-onset-latency"
    headline = {figure["key"]: figure for figure in summary["headline"]["candidate"]}
    assert (headline["recall"]["count"], headline["recall"]["denominator"]) == (68, 76)


def test_the_tests_of_the_generated_plugin_pass_in_a_clean_environment(clean: Path, generated: Path) -> None:
    text = succeed(clean, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", cwd=generated)
    assert " passed" in text
    assert "failed" not in text and "skipped" not in text


def test_the_clean_environment_needs_nothing_to_fix(clean: Path, tmp_path: Path) -> None:
    done = run(clean, "-m", "floorkit", "doctor", "--json", cwd=tmp_path)
    assert done.returncode == 0
    findings = json.loads(done.stdout)["findings"]
    assert not [finding for finding in findings if finding["level"] == "error"]
    assert any(finding["subject"] == "floorkit-onset-latency 1.0.0" for finding in findings)


def test_the_wheel_of_the_core_writes_the_same_plugin(clean: Path, tmp_path: Path) -> None:
    succeed(clean, "-m", "floorkit", "new", "floor_share", "--into", tmp_path / "wheel", cwd=tmp_path)
    ours = write_plugin("floor_share", tmp_path / "sources")
    theirs = tmp_path / "wheel" / "floorkit-floor-share"
    names = sorted(path.relative_to(ours) for path in ours.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(theirs) for path in theirs.rglob("*") if path.is_file())
    assert all((ours / name).read_bytes() == (theirs / name).read_bytes() for name in names)


def test_the_generated_plugin_is_typed_linted_and_formatted(generated: Path, tmp_path: Path) -> None:
    succeed(sys.executable, "-m", "ruff", "check", "--no-cache", generated, cwd=generated)
    succeed(sys.executable, "-m", "ruff", "format", "--no-cache", "--check", generated, cwd=generated)
    succeed(sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, "src", cwd=generated)


def test_a_moved_golden_value_of_the_generated_plugin_fails(tmp_path: Path) -> None:
    from floorkit.testing import golden

    tests = write_plugin("moved", tmp_path) / "tests"
    assert golden.problems(tests) == []
    path = tests / "golden" / "basic" / "expected.json"
    path.write_text(path.read_text(encoding="utf-8").replace("0.6, 3, 5", "0.4, 2, 5", 1), encoding="utf-8")
    assert golden.problems(tests)[0].what == "golden values moved, and the plugin's version did not"


def test_no_placeholder_is_left(tmp_path: Path) -> None:
    folder = write_plugin("floor_share", tmp_path)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) == len(list(template_files()))
    for path in files:
        text = str(path.relative_to(folder)) + path.read_text(encoding="utf-8")
        assert PLACEHOLDER not in text and PLACEHOLDER.replace("_", "-") not in text, path


@pytest.mark.parametrize("name", ["", "9lives", "Turn", "a b", "../up", "class"])
def test_what_is_no_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="not a name for a protocol"):
        write_plugin(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "floorkit-mine").mkdir()
    (tmp_path / "floorkit-mine" / "work.py").write_text("work", encoding="utf-8")
    with pytest.raises(ManifestError, match="exists already"):
        write_plugin("mine", tmp_path)
    assert [path.name for path in (tmp_path / "floorkit-mine").iterdir()] == ["work.py"]


def test_hyphens_and_the_prefix_are_understood(tmp_path: Path) -> None:
    assert write_plugin("floorkit-turn-share", tmp_path).name == "floorkit-turn-share"
