"""Source hashes: the same for every way of installing the same sources, another for any changed byte."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import numpy as np
import pytest

from floorkit.core.errors import EvaluationError, InputError
from floorkit.core.sources import InputFile, counts_as_source, hash_package, hash_values

from .conftest import TOY, Floorkit, command_environment, install

PACKAGE = "floorkit_toy"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    shutil.copytree(TOY, project, ignore=shutil.ignore_patterns("__pycache__"))
    return project


def test_wheel_zip_and_source_folder_have_one_hash(toy_site: Path, tmp_path: Path) -> None:
    archive = tmp_path / "toy.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for path in (TOY / PACKAGE).rglob("*.py"):
            opened.write(path, f"floorkit_toy-1.2.0/{path.relative_to(TOY).as_posix()}")
    hashes = {
        hash_package(TOY / PACKAGE),
        hash_package(toy_site / PACKAGE),
        hash_package(archive / "floorkit_toy-1.2.0" / PACKAGE),
    }
    assert len(hashes) == 1


def test_editable_install_and_wheel_report_one_hash(
    tmp_path: Path, copy: Path, toy_site: Path, floorkit: Floorkit
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    purelib = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    parent = sysconfig.get_path("purelib")
    (Path(purelib) / "parent.pth").write_text(f"import site; site.addsitedir({parent!r})\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    subprocess.run([*command, "--no-build-isolation", "--editable", copy], check=True, capture_output=True)
    editable = subprocess.run(
        [python, "-m", "floorkit", "plugins", "--json"],
        env=command_environment(),
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    wheel = floorkit("plugins", "--json").stdout
    one, other = (
        next(p for p in json.loads(text)["plugins"] if p["distribution"] == "floorkit-toy")
        for text in (editable, wheel)
    )
    assert one["location"] != other["location"]
    assert one["location"] == str(copy / PACKAGE)
    assert one["source"] == other["source"]


def test_one_changed_byte_changes_the_hash_and_leftovers_do_not(copy: Path) -> None:
    package = copy / PACKAGE
    before = hash_package(package)
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "plugin.cpython-311.pyc").write_bytes(b"x")
    for leftover in ("plugin.py~", ".#plugin.py", "plugin.py.swp", ".DS_Store"):
        (package / leftover).write_bytes(b"x")
    assert hash_package(package) == before
    plugin = package / "plugin.py"
    plugin.write_bytes(plugin.read_bytes().replace(b"Toy detections", b"toy detections"))
    assert hash_package(package) != before


def test_a_new_data_file_or_another_name_changes_the_hash(copy: Path) -> None:
    package = copy / PACKAGE
    before = hash_package(package)
    (package / "labels.json").write_bytes(b"")
    added = hash_package(package)
    (package / "labels.json").rename(package / "names.json")
    assert len({before, added, hash_package(package)}) == 3


def test_leftovers_are_told_by_name() -> None:
    assert counts_as_source("sub/data.json")
    assert not counts_as_source("sub/__pycache__/x.py")
    assert not counts_as_source("plugin.pyc")


def test_a_changed_copy_is_refused_with_exit_code_3(
    tmp_path: Path, copy: Path, toy_data: Path, floorkit: Floorkit
) -> None:
    assert floorkit("lock", "protocols.toml", cwd=toy_data).returncode == 0
    recorded = (toy_data / "protocols.toml").read_bytes()
    assert floorkit("run", "protocols.toml", cwd=toy_data).returncode == 0
    plugin = copy / PACKAGE / "plugin.py"
    plugin.write_text(plugin.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    changed = tmp_path / "changed"
    install(changed, str(_wheel(copy, tmp_path)))
    refused = floorkit("run", "protocols.toml", cwd=toy_data, sites=[changed])
    assert refused.returncode == 3
    assert refused.stdout == ""
    for text in ("[protocols.toy]", "1.2.0", "found:", "expected:", str(changed), "floorkit lock"):
        assert text in refused.stderr
    drifted = floorkit("run", "protocols.toml", "--allow-source-drift", cwd=toy_data, sites=[changed])
    assert drifted.returncode == 0
    assert "UNVERIFIED" in drifted.stdout
    summary = json.loads((toy_data / "results/toy/summary.json").read_text(encoding="utf-8"))
    assert summary["unverified"] is True
    table = (toy_data / "results/toy/summary_figures.csv").read_text(encoding="utf-8").splitlines()
    column = table[0].split(",").index("unverified")
    assert {line.split(",")[column] for line in table[1:]} == {"true"}
    assert (toy_data / "protocols.toml").read_bytes() == recorded


def _wheel(project: Path, folder: Path) -> Path:
    from .conftest import build_wheel

    return build_wheel(project, folder)


def test_values_hash_by_content_not_by_place_or_order() -> None:
    one = {"a": 1, "b": [np.arange(3), Path("/x")]}
    assert hash_values(one) == hash_values({"b": [np.arange(3), Path("/y")], "a": 1})
    assert hash_values(one) != hash_values({"a": 1.0, "b": [np.arange(3), Path("/x")]})
    assert hash_values(["ab", "c"]) != hash_values(["a", "bc"])
    with pytest.raises(EvaluationError, match="not a plain value"):
        hash_values({"a": object()})


def test_a_replaced_input_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"[1]")
    known = InputFile.read(path)
    assert known.changed() is None
    other = tmp_path / "y"
    other.write_bytes(b"[2]")
    other.replace(path)
    problem = known.changed()
    assert problem is not None
    assert str(path) in str(problem)
    with pytest.raises(InputError, match="cannot be read"):
        InputFile.read(tmp_path / "none.json")
