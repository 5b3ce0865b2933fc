"""``floorkit plugins``: what is installed, and what of it does not load."""

from __future__ import annotations

from typing import Any

import click

import floorkit
from floorkit.core import registry
from floorkit.core.errors import EvaluationError
from floorkit.core.registry import Failed
from floorkit.core.sections import to_json
from floorkit.core.sources import package_location


def describe() -> list[dict[str, Any]]:
    """Every installed plugin as plain data; one that fails has ``problems`` and no protocols."""
    described = []
    for plugin in registry.discover():
        loaded = registry.load(plugin)
        try:
            source, location = plugin.source, str(plugin.location)
        except EvaluationError as error:
            source, location = "", str(error)
        entry: dict[str, Any] = {
            "distribution": plugin.distribution,
            "version": plugin.version,
            "entry_point": f"{plugin.name} = {plugin.module}",
            "source": source,
            "location": location,
            "protocols": [],
            "hooks": [],
            "deprecations": [],
            "problems": [],
            "trace": "",
        }
        if isinstance(loaded, Failed):
            entry["problems"] = [str(problem) for problem in loaded.problems]
            entry["trace"] = loaded.trace
        else:
            entry["protocols"] = [
                {"id": protocol.id, "title": protocol.title} for protocol in loaded.protocols
            ]
            entry["hooks"] = list(loaded.hooks)
            entry["deprecations"] = [str(problem) for problem in registry.deprecations(loaded)]
            entry["problems"] = [str(problem) for problem in registry.commands(loaded)[1]]
        described.append(entry)
    return described


def print_plugins(as_json: bool, debug: bool) -> None:
    """Print the list, or one JSON object."""
    described = describe()
    loaded = [
        found for plugin in registry.discover() if not isinstance(found := registry.load(plugin), Failed)
    ]
    conflicts = [str(problem) for problem in registry.conflicts(loaded)]
    core = {
        "version": floorkit.__version__,
        "source": registry.core_source(),
        "location": str(package_location("floorkit")),
    }
    if as_json:
        click.echo(to_json({"floorkit": core, "plugins": described, "conflicts": conflicts}), nl=False)
        return
    click.echo(f"floorkit {core['version']} (core)")
    click.echo(f"  source     {core['source']}")
    click.echo(f"  location   {core['location']}")
    for entry in described:
        click.echo(f"\n{entry['distribution']} {entry['version']} ({entry['entry_point']})")
        click.echo(f"  source     {entry['source']}")
        click.echo(f"  location   {entry['location']}")
        for protocol in entry["protocols"]:
            click.echo(f"  protocol   {protocol['id']}: {protocol['title']}")
        if entry["hooks"]:
            click.echo("  hooks      " + ", ".join(entry["hooks"]))
        for problem in entry["deprecations"]:
            click.echo("  DEPRECATED " + problem.replace("\n", "\n             "))
        for problem in entry["problems"]:
            click.echo("  FAILED     " + problem.replace("\n", "\n             "))
        if debug and entry["trace"]:
            click.echo(entry["trace"])
    for conflict in conflicts:
        click.echo(f"\nCONFLICT   {conflict}")
    if not described:
        click.echo("\nno plugin is installed")
