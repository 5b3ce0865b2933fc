"""Throw-away plugins: the toy's source with one thing changed, installed for one test."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..conftest import TOY, distribution, write_json

MANIFEST = """
[protocols.{entry}]
plugin = "floorkit-{entry}"
statistics = {{ resamples = 100, permutations = 1000 }}

[protocols.{entry}.dataset]
gold = "gold"
units = ["u0", "u1", "u2"]
calibration_units = ["u3"]

[protocols.{entry}.runs.a]
path = "a"

[protocols.{entry}.runs.b]
path = "b"
"""


def write_data(folder: Path, entry: str) -> Path:
    """A manifest with data for the toy's format; returns the manifest's path."""
    for index in range(4):
        gold = [(index + i) % 3 == 0 for i in range(7)]
        for name, values in (
            ("gold", [int(label) for label in gold]),
            ("a", [round(0.1 * ((3 * i + index) % 10), 1) for i in range(7)]),
            ("b", [0.9 if label else 0.05 * (i + index) for i, label in enumerate(gold)]),
        ):
            path = folder / name / f"u{index}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, values)
    (folder / "undeclared.txt").write_text("no input of the toy", encoding="utf-8")
    manifest = folder / "protocols.toml"
    manifest.write_text(MANIFEST.format(entry=entry), encoding="utf-8")
    return manifest


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """``install(name, *changes)``: a plugin floorkit-NAME made of the toy's source; returns its manifest.

    Each change is a pair (old text, new text); old text must be there.
    """
    site = tmp_path / "site"
    names: list[str] = []

    def make(name: str, *changes: tuple[str, str], source: str = "") -> Path:
        text = source or (TOY / "floorkit_toy" / "plugin.py").read_text(encoding="utf-8")
        for old, new in changes:
            assert old in text, f"the toy no longer contains {old!r}"
            text = text.replace(old, new, 1)
        text = text.replace(
            '"toy",\n            "Toy detections"', f'"{name}",\n            "Toy detections"'
        )
        distribution(site, name, text)
        names.append(f"{name}_plugin")
        importlib.invalidate_caches()
        return write_data(tmp_path / name, name)

    monkeypatch.syspath_prepend(str(site))
    yield make
    for loaded in [one for one in sys.modules if one.split(".")[0] in names]:
        del sys.modules[loaded]
