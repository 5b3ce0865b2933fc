"""``floorkit doctor`` names what does not work and what to do, and never fails itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from floorkit import doctor

from .conftest import Floorkit, distribution


def found(text: str, level: str) -> dict[str, tuple[str, str]]:
    findings = json.loads(text)["findings"]
    return {one["subject"]: (one["text"], one["remedy"]) for one in findings if one["level"] == level}


def test_everything_that_is_well_is_listed(floorkit: Floorkit, tmp_path: Path) -> None:
    done = floorkit("doctor", "--json", cwd=tmp_path)
    well = found(done.stdout, "ok")
    assert {"python", "floorkit", "packages", "results folder", "temporary folder", "workers"} <= well.keys()
    text, _ = well["floorkit-toy 1.2.0"]
    assert text.startswith("loads: toy; sha256:")
    assert any(subject.endswith("threads") for subject in well)


def test_a_plugin_that_does_not_load_is_an_error_with_its_remedy(floorkit: Floorkit, tmp_path: Path) -> None:
    distribution(tmp_path, "broken", "import numpy_that_is_not_there\n")
    done = floorkit("doctor", "--json", cwd=tmp_path, sites=(tmp_path,))
    assert done.returncode == 1
    text, remedy = found(done.stdout, "error")["floorkit-broken 0.1.0"]
    assert "No module named 'numpy_that_is_not_there'" in text
    assert "repair or uninstall" in remedy


def test_a_package_that_is_missing_is_named_with_who_needs_it(floorkit: Floorkit, tmp_path: Path) -> None:
    distribution(tmp_path, "needy", "", requires="not-a-real-package>=2")
    done = floorkit("doctor", "--json", cwd=tmp_path, sites=(tmp_path,))
    assert found(done.stdout, "error")["not-a-real-package"] == (
        "floorkit-needy needs it; it is not installed",
        "pip install 'not-a-real-package>=2'",
    )


def test_an_output_folder_with_other_things_is_an_error(floorkit: Floorkit, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("mine", encoding="utf-8")
    done = floorkit("doctor", "--output", "thesis", cwd=tmp_path, COLUMNS="200")
    assert done.returncode == 1
    assert "ERROR   results folder" in done.stdout
    assert "-> choose another folder with --output" in done.stdout
    assert (tmp_path / "thesis" / "chapter.tex").is_file()


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(doctor.tempfile, "TemporaryDirectory", refuse)
    (finding,) = doctor._folder("temporary folder", tmp_path)
    assert finding.level == "error"
    assert "Permission denied" in finding.text and finding.remedy == "set TMPDIR to another"


def test_a_terminal_that_is_not_utf8_is_a_warning(floorkit: Floorkit, tmp_path: Path) -> None:
    done = floorkit("doctor", "--json", cwd=tmp_path, PYTHONIOENCODING="latin-1")
    assert done.returncode == 0
    assert found(done.stdout, "warning")["encoding"][0].startswith("standard output is")


def test_nothing_is_left_behind(floorkit: Floorkit, tmp_path: Path) -> None:
    floorkit("doctor", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
