"""A hook that is to go warns for one minor version, with what to use instead, and still works."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from floorkit import doctor
from floorkit.core import hooks, registry
from floorkit.core.manifest import ProtocolEntry
from floorkit.reports import plugins

from .conftest import TOY, distribution


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[registry.Loaded]:
    """The toy's source as a distribution of its own, loaded."""
    source = (TOY / "floorkit_toy" / "plugin.py").read_text(encoding="utf-8")
    monkeypatch.syspath_prepend(str(distribution(tmp_path, "aged", source)))
    (found,) = registry.find("floorkit-aged", "here", registry.discover())
    loaded = registry.load(found)
    assert isinstance(loaded, registry.Loaded)
    yield loaded
    del sys.modules["aged_plugin"]


@pytest.fixture
def deprecated(monkeypatch: pytest.MonkeyPatch) -> None:
    """floorkit_controls and an argument of floorkit_measure are to go."""
    monkeypatch.setitem(
        hooks.floorkit_controls.floorkit_spec,  # type: ignore[attr-defined]
        "warn_on_impl",
        FutureWarning("floorkit_controls goes with API 2.0: use floorkit_baselines"),
    )
    monkeypatch.setitem(
        hooks.floorkit_measure.floorkit_spec,  # type: ignore[attr-defined]
        "warn_on_impl_args",
        {"only": FutureWarning("only goes with API 2.0: use keys")},
    )


@pytest.mark.usefixtures("deprecated")
def test_deprecated_hooks_and_arguments_are_listed_with_what_to_use(plugin: registry.Loaded) -> None:
    assert [(problem.where, problem.found) for problem in registry.deprecations(plugin)] == [
        (
            "floorkit-aged 0.1.0: floorkit_controls",
            "floorkit_controls goes with API 2.0: use floorkit_baselines",
        ),
        ("floorkit-aged 0.1.0: floorkit_measure, argument only", "only goes with API 2.0: use keys"),
    ]


@pytest.mark.usefixtures("deprecated")
def test_doctor_and_plugins_tell_them(plugin: registry.Loaded, capsys: pytest.CaptureFixture[str]) -> None:
    findings = list(doctor._plugins([plugin.plugin]))
    assert [finding.level for finding in findings] == ["ok", "warning", "warning"]
    plugins.print_plugins(as_json=False, debug=False)
    assert "DEPRECATED floorkit-aged 0.1.0: floorkit_controls" in capsys.readouterr().out


@pytest.mark.usefixtures("deprecated")
def test_a_run_warns_and_goes_on(plugin: registry.Loaded) -> None:
    entry = ProtocolEntry(plugin="floorkit-aged", dataset={}, runs={})
    team = registry.team(entry, "protocols.aged")
    with pytest.warns(FutureWarning) as told:
        assert team.implements("floorkit_controls") and team.hook.floorkit_controls
    assert {str(warning.message) for warning in told} == {
        "floorkit_controls goes with API 2.0: use floorkit_baselines",
        "only goes with API 2.0: use keys",
    }


def test_without_deprecations_nothing_is_told(plugin: registry.Loaded) -> None:
    assert registry.deprecations(plugin) == []
