"""Reading and rewriting manifests."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli

from floorkit.core import manifest
from floorkit.core.errors import ManifestError

GOOD = """\
# Top comment.
[protocols.one]  # first
plugin = "floorkit-a" # the plugin
controls = false

# About the dataset.
[protocols.one.dataset]
targets = "t"

[protocols.one.runs.model]
path = "p"

[protocols.two]
plugin = "floorkit-b"
dataset = { x = 1 }
runs = { m = {} }
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "protocols.toml"
    path.write_bytes(text.encode())
    return path


def read(folder: Path, text: str, *settings: str) -> manifest.Manifest:
    return manifest.read(write(folder, text), settings)


def test_entries_keep_their_order_and_tables(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD)
    assert list(found.document.protocols) == ["one", "two"]
    assert found.document.protocols["one"].dataset == {"targets": "t"}
    assert found.document.protocols["one"].controls is False
    assert found.root == tmp_path


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("controls", "control"), ["protocols.one", "unknown key 'control'", "did you mean 'controls'?"]),
        (('"floorkit-b"', "3"), ["protocols.two.plugin", "3 (integer)", "a string"]),
        (("[protocols.one.runs.model]", '[protocols.one.runs."../x"]'), ["'../x' is not allowed"]),
        (("protocols.one", 'protocols."a/b"'), ["'a/b' is not allowed"]),
        (("runs = { m = {} }", "runs = {}"), ["protocols.two.runs", "no run"]),
        (('plugin = "floorkit-b"\n', ""), ["protocols.two.plugin", "missing key"]),
        (("targets = ", "targets "), ["not valid TOML", "line 8"]),
    ],
)
def test_faults_are_named_with_their_place(
    tmp_path: Path, change: tuple[str, str], expected: list[str]
) -> None:
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, GOOD.replace(*change))
    for text in [*expected, "protocols.toml"]:
        assert text in str(caught.value)


def test_a_missing_binary_or_empty_manifest_is_a_manifest_error(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot be read"):
        manifest.read(tmp_path / "none.toml")
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ManifestError, match="not UTF-8"):
        manifest.read(tmp_path / "x.toml")
    with pytest.raises(ManifestError, match="protocols: missing key"):
        read(tmp_path, "")


def test_set_changes_values_and_takes_bare_words_as_strings(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        GOOD,
        "protocols.one.params.recalls=[0.5, 0.9]",
        "protocols.one.params.window=full",
        "protocols.two.dataset.x=7",
        "floorkit.seed=3",
    )
    assert found.document.protocols["one"].params == {"recalls": [0.5, 0.9], "window": "full"}
    assert found.document.protocols["two"].dataset == {"x": 7}
    assert found.document.floorkit.seed == 3
    assert found.resolved["protocols"]["one"]["params"]["window"] == "full"


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("protocols.one", "KEY=VALUE"),
        ("=3", "KEY=VALUE"),
        ("protocols.on.params.x=1", "did you mean 'one'?"),
        ("floorkit.sed=1", "did you mean 'seed'?"),
        ("a b=1", "--set"),
    ],
)
def test_set_refuses_what_it_does_not_understand(tmp_path: Path, setting: str, expected: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, GOOD, setting)
    assert expected in str(caught.value)


def test_only_selects_and_names_the_nearest(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD)
    assert list(found.select(["two"]).document.protocols) == ["two"]
    assert found.select([]) is found
    with pytest.raises(ManifestError, match="did you mean 'two'"):
        found.select(["tow"])


RECORDED = {"floorkit-a": ("1.0.0", "sha256:aa"), "floorkit-b": ("2.0.0", "sha256:bb")}


@pytest.mark.parametrize(
    "text", [GOOD, GOOD.replace("\n", "\r\n"), '[floorkit]\n# mine\noutput = "r"\n\n' + GOOD]
)
def test_lock_writes_in_place_and_keeps_every_other_line(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    written = manifest.lock(path, ("1.0.0", "sha256:cc"), RECORDED)
    table = tomli.loads(written)
    assert table["floorkit"]["source"] == "sha256:cc"
    assert table["protocols"]["one"]["source"] == "sha256:aa"
    assert table["protocols"]["two"]["version"] == "2.0.0"
    added = ("version = ", "source = ", "[floorkit]")
    kept = [line for line in written.splitlines() if line and not line.startswith(added)]
    before = [line for line in text.splitlines() if line and not line.startswith(added)]
    assert kept == before
    write(tmp_path, written)
    assert manifest.lock(path, ("1.0.0", "sha256:cc"), RECORDED) == written


def test_lock_keeps_a_comment_with_the_table_that_it_stands_above(tmp_path: Path) -> None:
    written = manifest.lock(write(tmp_path, GOOD), ("1.0.0", "sha256:cc"), RECORDED)
    assert "# About the dataset.\n[protocols.one.dataset]" in written
