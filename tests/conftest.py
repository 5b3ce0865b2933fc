"""Fixtures of the core's tests: the toy plugin, really installed, and the real command line."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

TOY = Path(__file__).parent / "toy"

Floorkit = Callable[..., "subprocess.CompletedProcess[str]"]


def build_wheel(project: Path, folder: Path) -> Path:
    """Build a wheel of ``project`` with the installed build backend, without network."""
    before = set(folder.glob("*.whl"))
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(folder),
        str(project),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = set(folder.glob("*.whl")) - before
    return wheel


def install(target: Path, *what: str) -> None:
    """Install wheels into a folder that tests put on PYTHONPATH."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*command, str(target), *what], check=True, capture_output=True)


def clean_environment(folder: Path) -> Path:
    """A virtual environment with our dependencies and nothing of ours; returns its Python.

    The dependencies are links to those of the running environment, so that no network is needed.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for place in [Path(one) for one in sys.path if one.endswith(("site-packages", "dist-packages"))]:
        for entry in place.iterdir():
            ours = (
                entry.name.lower().startswith(("floorkit", "_floorkit", "__editable__", "_editable_impl"))
                or entry.suffix == ".pth"
            )
            if not ours and not (site / entry.name).exists():
                (site / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def distribution(site: Path, name: str, code: str, version: str = "0.1.0", requires: str = "") -> Path:
    """A distribution with one module ``{name}_plugin`` and its entry point, as an installer leaves it."""
    package = site / f"{name}_plugin"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(code, encoding="utf-8")
    info = site / f"floorkit_{name}-{version}.dist-info"
    info.mkdir()
    lines = ["Metadata-Version: 2.1", f"Name: floorkit-{name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {requires}"] if requires else []
    (info / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[floorkit]\n{name} = {name}_plugin\n", encoding="utf-8")
    return site


@pytest.fixture(scope="session")
def toy_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the toy plugin."""
    return build_wheel(TOY, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def toy_site(toy_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the toy plugin installed; read-only for tests."""
    site = tmp_path_factory.mktemp("site")
    install(site, str(toy_wheel))
    return site


def command_environment(*sites: Path, **variables: str) -> dict[str, str]:
    """The environment of a floorkit process that also sees the distributions in ``sites``."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FLOORKIT_")}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, sites))
    environment.setdefault("COLUMNS", "80")
    return environment | variables


@pytest.fixture(scope="session")
def floorkit(toy_site: Path) -> Floorkit:
    """Run the command line in a process of its own, with the toy plugin installed."""

    def run(
        *arguments: str | Path,
        cwd: Path | None = None,
        sites: Sequence[Path] = (toy_site,),
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "floorkit", *map(str, arguments)],
            cwd=cwd,
            env=command_environment(*sites, **variables),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    return run


TOY_MANIFEST = """\
# A comment that must survive.
[protocols.toy]
plugin = "floorkit-toy"  # the plugin

# About the data.
[protocols.toy.dataset]
gold = "gold"
units = ["u0", "u1", "u2", "u3", "u4"]
calibration_units = ["u5"]

[protocols.toy.runs.a]
path = "a"

[protocols.toy.runs.b]
path = "b"
"""


@pytest.fixture
def toy_data(tmp_path: Path) -> Path:
    """A folder with a manifest ``protocols.toml``, gold of six units and predictions of two runs."""
    return make_toy_data(tmp_path / "data")


def make_toy_data(folder: Path) -> Path:
    draw = random.Random(1)
    for name in ("gold", "a", "b"):
        (folder / name).mkdir(parents=True)
    for unit in range(6):
        gold = [draw.randint(0, 1) for _ in range(50)]
        write_json(folder / "gold" / f"u{unit}.json", gold)
        for run, noise in (("a", 1.2), ("b", 0.6)):
            scores = [min(1.0, max(0.0, (label + draw.gauss(0, noise) + 0.5) / 2)) for label in gold]
            write_json(folder / run / f"u{unit}.json", scores)
    (folder / "protocols.toml").write_text(TOY_MANIFEST, encoding="utf-8")
    return folder


def write_json(path: Path, data: object) -> None:
    path.write_text(json.dumps(data), encoding="utf-8")


def result_files(folder: Path) -> dict[str, bytes]:
    """Every result file but what holds times or the command line."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "provenance.json"
    }
