"""Plugins that do not load, do not fit, or claim what another has: named, and the rest still works."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Floorkit, distribution

GOOD_HOOK = """
from floorkit.core.hooks import hookimpl
@hookimpl
def floorkit_commands():
    return []
"""


def listed(floorkit: Floorkit, *sites: Path) -> dict[str, dict[str, object]]:
    found = floorkit("plugins", "--json", sites=sites)
    assert found.returncode == 0, found.stderr
    return {plugin["distribution"]: plugin for plugin in json.loads(found.stdout)["plugins"]}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise RuntimeError('no such library')", ["RuntimeError: no such library"]),
        ("import module_that_is_not_there", ["ModuleNotFoundError", "module_that_is_not_there"]),
        ("raise SystemExit(5)", ["SystemExit: 5"]),
        ("def f(:", ["SyntaxError"]),
        (
            GOOD_HOOK + "@hookimpl\ndef floorkit_scores(unit): ...\n",
            ["unknown hook", "did you mean 'floorkit_score'?"],
        ),
        (
            GOOD_HOOK + "@hookimpl\ndef floorkit_score(unit, gould): ...\n",
            ["floorkit_score", "gould", "did you mean 'gold'?"],
        ),
        (
            GOOD_HOOK + "@hookimpl\ndef floorkit_score(unit, gold=None): ...\n",
            ["default value, which would never be passed", "gold=None"],
        ),
        (GOOD_HOOK + "def floorkit_score(unit): ...\n", ["hook without @hookimpl", "floorkit_score"]),
        ("FLOORKIT_API = (2, 0)\n" + GOOD_HOOK, ["another version of the plugin interface", "2.0"]),
        ("FLOORKIT_API = (1, 99)\n" + GOOD_HOOK, ["another version of the plugin interface", "1.99"]),
    ],
)
def test_a_broken_plugin_names_itself_and_the_rest_still_works(
    tmp_path: Path, toy_site: Path, toy_data: Path, floorkit: Floorkit, code: str, expected: list[str]
) -> None:
    site = distribution(tmp_path / "broken", "broken", code)
    found = listed(floorkit, toy_site, site)
    problems = " ".join(found["floorkit-broken"]["problems"])  # type: ignore[arg-type]
    for text in [*expected, "floorkit-broken 0.1.0"]:
        assert text in problems
    assert found["floorkit-toy"]["problems"] == []
    shown = floorkit("plugins", sites=[toy_site, site])
    assert shown.returncode == 0
    assert "FAILED" in shown.stdout
    assert floorkit("--help", sites=[toy_site, site]).returncode == 0
    assert floorkit("run", "protocols.toml", cwd=toy_data, sites=[toy_site, site]).returncode == 0


def test_commands_that_fail_do_not_break_the_command_line(
    tmp_path: Path, toy_site: Path, floorkit: Floorkit
) -> None:
    site = distribution(tmp_path / "broken", "broken", GOOD_HOOK.replace("return []", "raise KeyError('x')"))
    assert floorkit("--help", sites=[toy_site, site]).returncode == 0
    assert "KeyError" in str(listed(floorkit, toy_site, site)["floorkit-broken"]["problems"])


def test_a_manifest_that_names_a_broken_plugin_stops(
    tmp_path: Path, toy_data: Path, toy_site: Path, floorkit: Floorkit
) -> None:
    site = distribution(tmp_path / "broken", "broken", "raise RuntimeError('gone')")
    manifest = toy_data / "protocols.toml"
    text = manifest.read_text(encoding="utf-8").replace("floorkit-toy", "floorkit-broken")
    manifest.write_text(text, encoding="utf-8")
    stopped = floorkit("run", manifest, sites=[toy_site, site])
    assert stopped.returncode == 2
    assert "floorkit-broken 0.1.0" in stopped.stderr
    assert "RuntimeError: gone" in stopped.stderr
    assert "Traceback" not in stopped.stderr


def test_a_plugin_that_is_not_installed_names_the_nearest(toy_data: Path, floorkit: Floorkit) -> None:
    manifest = toy_data / "protocols.toml"
    text = manifest.read_text(encoding="utf-8").replace("floorkit-toy", "floorkit-tyo")
    manifest.write_text(text, encoding="utf-8")
    stopped = floorkit("run", manifest)
    assert stopped.returncode == 2
    assert "did you mean 'floorkit-toy'?" in stopped.stderr


def test_two_plugins_that_claim_one_protocol_are_both_named(
    tmp_path: Path, toy_site: Path, floorkit: Floorkit
) -> None:
    code = (toy_site / "floorkit_toy" / "plugin.py").read_text(encoding="utf-8")
    site = distribution(tmp_path / "twin", "twin", code)
    found = json.loads(floorkit("plugins", "--json", sites=[toy_site, site]).stdout)
    (conflict,) = found["conflicts"]
    assert "protocol 'toy' is claimed twice" in conflict
    assert "floorkit-toy 1.2.0 and floorkit-twin 0.1.0" in conflict


def test_plugins_lists_version_hash_location_protocols_and_hooks(toy_site: Path, floorkit: Floorkit) -> None:
    shown = floorkit("plugins").stdout
    for text in (
        "floorkit-toy 1.2.0 (toy = floorkit_toy.plugin)",
        "sha256:",
        str(toy_site / "floorkit_toy"),
        "toy: Toy detections",
        "floorkit_score",
    ):
        assert text in shown


FORMAT_PLUGIN = """
import json
from floorkit.core.hooks import hookimpl
from floorkit.core.sections import FileSection
from floorkit.core.values import Dataset, Source, Unit

@hookimpl
def floorkit_dataset(context, table):
    if table.get("format") != "inline":
        return None
    units = [Unit(n, "evaluated", Source({}, {"gold": g})) for n, g in table["gold"].items()]
    return Dataset(tuple(units), load)

def load(context, unit):
    return unit.gold.values["gold"]

@hookimpl
def floorkit_report(context, result):
    lines = [
        json.dumps({"run": run.name, "figure": figure.key, "value": figure.value})
        for run in result.runs.values() for figure in run.figures
    ]
    return [FileSection("figures.jsonl", ("\\n".join(lines) + "\\n").encode())]
"""


def test_a_cross_cutting_plugin_adds_a_dataset_format_and_a_report(
    tmp_path: Path, toy_site: Path, toy_data: Path, floorkit: Floorkit
) -> None:
    site = distribution(tmp_path / "extra", "extra", FORMAT_PLUGIN)
    gold = {f"u{i}": json.loads((toy_data / f"gold/u{i}.json").read_text("utf-8")) for i in range(2)}
    manifest = toy_data / "inline.toml"
    manifest.write_text(
        f"""
[plugins.floorkit-extra]

[protocols.toy]
plugin = "floorkit-toy"
[protocols.toy.dataset]
format = "inline"
gold = {{ u0 = {gold["u0"]}, u1 = {gold["u1"]} }}
[protocols.toy.runs.a]
path = "a"
""",
        encoding="utf-8",
    )
    ran = floorkit("run", manifest, "--jobs", "2", sites=[toy_site, site])
    assert ran.returncode == 0, ran.stderr
    lines = (toy_data / "results/toy/figures.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["run"] for line in lines] == ["a", "control:noise"]
    assert floorkit("lock", manifest, sites=[toy_site, site]).returncode == 0
    assert manifest.read_text("utf-8").count("sha256:") == 3
