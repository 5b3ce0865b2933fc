"""The documentation: its code runs, its generated parts are whole, and the site builds without a warning."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import floorkit

from .conftest import build_wheel, clean_environment

REPOSITORY = Path(floorkit.__file__).parents[1]
DOCS = REPOSITORY / "docs"
FENCE = re.compile(
    r'^```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL
)


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = load_generator()


def pages() -> list[str]:
    return sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def page(name: str) -> str:
    """A page as readers see it."""
    return str(generate.expand((DOCS / name).read_text(encoding="utf-8")))


# --- the tutorial ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """An empty folder, and an environment in which floorkit is installed and pip needs no network."""
    python = clean_environment(tmp_path_factory.mktemp("clean"))
    wheel = build_wheel(REPOSITORY, tmp_path_factory.mktemp("wheels"))
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    shim = python.parent / "pip"
    offline = "--no-deps --no-index --no-build-isolation"
    shim.write_text(f'#!/bin/sh\nexec {" ".join(pip)} "$@" {offline}\n', encoding="utf-8")
    shim.chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"PATH": f"{python.parent}{os.pathsep}{environment['PATH']}", "COLUMNS": "80"}
    return tmp_path_factory.mktemp("tutorial"), environment


def test_the_tutorial_runs_from_an_empty_folder_to_a_report(workshop: tuple[Path, dict[str, str]]) -> None:
    folder, environment = workshop
    text = (DOCS / "write-a-plugin.md").read_text(encoding="utf-8")
    printed = ""
    ran = 0
    for block in FENCE.finditer(text):
        if block["title"] == "output":
            missing = [line for line in block["text"].splitlines() if line.strip() and line not in printed]
            assert not missing, f"not printed: {missing}\n{printed}"
        elif block["title"]:
            path = folder / block["title"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block["text"], encoding="utf-8")
        elif block["kind"] == "bash":
            done = subprocess.run(
                ["bash", "-e", "-c", block["text"]],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                check=False,
            )
            printed = done.stdout
            assert done.returncode == 0, f"{block['text']}\n{printed}"
            ran += 1
    assert ran == len(re.findall("^```bash$", text, re.MULTILINE)) > 0
    assert (folder / "data" / "results" / "stops" / "summary.json").is_file()
    assert (folder / "data" / "results" / "report.html").is_file()
