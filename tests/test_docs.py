"""The documentation: its code runs, its generated parts are whole, and the site builds without a warning."""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import attrs
import click
import pytest

import floorkit
from floorkit.cli import cli
from floorkit.core import hooks, manifest
from floorkit.core.statistics_settings import Settings
from floorkit.testing.checklist import RULES

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


# --- the pages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in pages() if ">>> " in (DOCS / name).read_text("utf-8")])
def test_worked_examples_give_the_numbers_that_they_show(name: str) -> None:
    found = doctest.testfile(str(DOCS / name), module_relative=False, encoding="utf-8", report=True)
    assert found.attempted > 0
    assert found.failed == 0


def test_every_protocol_has_a_page_with_a_worked_example() -> None:
    folders = [path.parent for path in sorted((REPOSITORY / "plugins").glob("*/pyproject.toml"))]
    assert len(folders) == 5
    for folder in folders:
        source = (DOCS / "protocols" / f"{folder.name}.md").read_text(encoding="utf-8")
        text = page(f"protocols/{folder.name}.md")
        assert ">>> " in text
        for heading in (
            "## What it does not measure",
            "## Definition",
            "## Formulas",
            "## Parameters",
            "## Differences from the upstream",
        ):
            assert heading in text, folder.name
        assert f"<!-- generate: params {folder.name} -->" in source


@pytest.mark.parametrize(
    "cls", [manifest.CoreEntry, manifest.ProtocolEntry, manifest.PluginEntry, manifest.CompareEntry, Settings]
)
def test_the_manifest_reference_has_every_key_with_its_meaning(cls: type) -> None:
    text = page("manifest.md")
    for field in attrs.fields(cls):
        doc = field.metadata["doc"].rstrip(".")
        assert f"| `{field.name}` | {doc[0].upper()}{doc[1:]}." in text


def test_every_table_of_a_manifest_stands_in_the_reference() -> None:
    text = page("manifest.md")
    for field in attrs.fields(manifest.Document):
        assert f"`[{field.name}" in text


def test_every_hook_stands_in_the_reference_with_its_arguments() -> None:
    text = page("hooks.md")
    names = [name for name in dir(hooks) if name.startswith("floorkit_")]
    assert len(names) == 11
    for name in names:
        assert f"\n## {name}\n" in text


def test_every_rule_of_the_kit_stands_in_the_documentation() -> None:
    text = page("conformance.md")
    for rule in RULES.values():
        assert f"**`{rule.name}`**" in text


def test_every_command_stands_in_the_reference_with_its_help() -> None:
    text = page("command-line.md")
    for name in cli.commands:
        assert f"\n## floorkit {name}\n" in text


def test_no_directive_is_left_or_misspelt() -> None:
    for name in pages():
        assert "<!-- generate" not in page(name), name
    with pytest.raises(KeyError):
        generate.expand("<!-- generate: nothing_of_that_name -->")


def test_toml_examples_are_manifests(tmp_path: Path) -> None:
    checked = 0
    for name in pages():
        for block in FENCE.finditer((DOCS / name).read_text(encoding="utf-8")):
            if block["kind"] == "toml" and "[protocols." in block["text"]:
                path = tmp_path / "protocols.toml"
                path.write_text(block["text"], encoding="utf-8")
                manifest.read(path)
                checked += 1
    assert checked >= 2


def test_commands_that_pages_name_exist() -> None:
    """``floorkit NAME`` in any page is a command of the core or of a plugin."""
    known = set(cli.list_commands(click.Context(cli)))
    for name in pages():
        text = page(name)
        named = re.findall(r"`floorkit ([a-z][a-z-]*)", text)
        for block in FENCE.finditer(text):
            named += re.findall(r"^floorkit ([a-z][a-z-]*)", block["text"], re.MULTILINE)
        assert set(named) <= known, name


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=REPOSITORY,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    for name in pages():
        built = (tmp_path / "site" / name).with_suffix(".html")
        text = built.read_text(encoding="utf-8")
        assert "generate: " not in text
        assert not re.search(r'(?:src|href)="https?://(?!github\.com|pypi\.org|squidfunk)', text), name


def test_every_page_stands_in_the_navigation() -> None:
    navigation = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    named = re.findall(r"[\w/-]+\.md", navigation)
    assert sorted(named) == pages(), "add new pages to nav in mkdocs.yml"
