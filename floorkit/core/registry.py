"""Finding plugins, checking them, and one plugin manager for each entry of a manifest.

pluggy's traps are met here once: entry points are loaded one by one and their errors kept; duplicate names
are an error; unknown hook names, wrong argument names and arguments with a default (which pluggy
never passes) are errors at load, each with the nearest right name.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
import traceback
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pluggy
from attrs import field, frozen

import floorkit
from floorkit.core import defaults, hooks
from floorkit.core.errors import EvaluationError, ManifestError, Problem, SourceDriftError
from floorkit.core.manifest import ProtocolEntry
from floorkit.core.sources import hash_package, package_location
from floorkit.core.values import Protocol

GROUP = "floorkit"


def normalized(name: str) -> str:
    """A distribution name as the packaging standard compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@frozen(slots=False)
class Plugin:
    """An installed plugin: an entry point of the group ``floorkit``, not yet loaded."""

    name: str
    module: str
    distribution: str
    version: str

    @property
    def package(self) -> str:
        return self.module.split(".")[0]

    @cached_property
    def location(self) -> Path:
        return package_location(self.package)

    @cached_property
    def source(self) -> str:
        """Source hash of the package as it is on disk now."""
        return hash_package(self.location)


@frozen
class Loaded:
    """A plugin with its module, checked against the hook specifications."""

    plugin: Plugin
    module: ModuleType
    hooks: tuple[str, ...]
    protocols: tuple[Protocol, ...] = ()


@frozen
class Failed:
    """A plugin that does not load, and why."""

    plugin: Plugin
    problems: tuple[Problem, ...]
    trace: str = field(default="", repr=False)


def discover() -> list[Plugin]:
    """All installed plugins, sorted by distribution and entry point name. Runs no plugin code."""
    found: dict[tuple[str, str], Plugin] = {}
    for point in metadata.entry_points(group=GROUP):
        if point.dist is None:
            continue
        plugin = Plugin(point.name, point.module, point.dist.name, point.dist.version)
        found.setdefault((plugin.distribution, plugin.name), plugin)
    return [found[key] for key in sorted(found)]


@cache
def core_source() -> str:
    """Source hash of the core as it is on disk."""
    return hash_package(package_location(floorkit.__name__))


def load(plugin: Plugin) -> Loaded | Failed:
    """Import a plugin and check it; whatever goes wrong is returned, never raised."""
    where = f"{plugin.distribution} {plugin.version} ({plugin.name} = {plugin.module})"
    try:
        module = importlib.import_module(plugin.module)
        implemented, problems = _check_hooks(module, where)
        problems += _check_api(module, where)
        protocols = tuple(_declared(module)) if not problems else ()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is told with the plugin's name
        problem = Problem(
            "the plugin fails to load",
            where,
            f"{type(error).__name__}: {error}",
            remedy="repair or uninstall it; --debug shows the traceback",
        )
        return Failed(plugin, (problem,), traceback.format_exc())
    return Failed(plugin, tuple(problems)) if problems else Loaded(plugin, module, implemented, protocols)


def _declared(module: ModuleType) -> Sequence[Protocol]:
    declare = getattr(module, "floorkit_protocols", None)
    return declare() or () if declare is not None else ()


def _check_hooks(module: ModuleType, where: str) -> tuple[tuple[str, ...], list[Problem]]:
    known = {
        name: tuple(inspect.signature(getattr(hooks, name)).parameters)
        for name in dir(hooks)
        if name.startswith("floorkit_")
    }
    marked = {
        name: function
        for name, function in vars(module).items()
        if callable(function) and hasattr(function, f"{hooks.PROJECT}_impl")
    }
    problems = []
    for name, function in marked.items():
        place = f"{where}: {name}"
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            problems.append(
                Problem(
                    "unknown hook",
                    place,
                    name,
                    "one of " + ", ".join(sorted(known)),
                    f"did you mean {near[0]!r}?" if near else "",
                )
            )
            continue
        for argument, parameter in inspect.signature(function).parameters.items():
            near = difflib.get_close_matches(argument, known[name], n=1)
            if argument not in known[name]:
                problems.append(
                    Problem(
                        "unknown hook argument",
                        place,
                        argument,
                        "some of " + (", ".join(known[name]) or "none"),
                        f"did you mean {near[0]!r}?" if near else "",
                    )
                )
            elif parameter.default is not inspect.Parameter.empty:
                problems.append(
                    Problem(
                        "hook argument with a default value, which would never be passed",
                        place,
                        str(parameter),
                        argument,
                        "remove the default",
                    )
                )
    unmarked = [
        name
        for name, value in vars(module).items()
        if name in known and callable(value) and name not in marked
    ]
    problems += [
        Problem("hook without @hookimpl", f"{where}: {name}", remedy="mark it with @hookimpl")
        for name in unmarked
    ]
    return tuple(name for name in known if name in marked), problems


def _check_api(module: ModuleType, where: str) -> list[Problem]:
    wanted = getattr(module, "FLOORKIT_API", hooks.API_VERSION)
    major, minor = hooks.API_VERSION
    if wanted[0] == major and wanted[1] <= minor:
        return []
    found = ".".join(map(str, wanted))
    return [
        Problem(
            "needs another version of the plugin interface",
            where,
            found,
            f"{major}.0 to {major}.{minor}, which floorkit {floorkit.__version__} offers",
            "install a floorkit or a plugin that fit each other",
        )
    ]


def commands(loaded: Loaded) -> tuple[list[Any], list[Problem]]:
    """A plugin's click commands; what goes wrong in making them is returned as problems, never raised."""
    if "floorkit_commands" not in loaded.hooks:
        return [], []
    try:
        return list(loaded.module.floorkit_commands()), []
    except (Exception, SystemExit) as error:  # noqa: BLE001 - told with the plugin's name, others go on
        plugin = loaded.plugin
        return [], [
            Problem(
                "the plugin's commands cannot be made",
                f"{plugin.distribution} {plugin.version}: floorkit_commands",
                f"{type(error).__name__}: {error}",
            )
        ]


def deprecations(loaded: Loaded) -> list[Problem]:
    """Hooks and hook arguments of a plugin that the next minor version of the interface will not have."""
    found = []
    for name in loaded.hooks:
        options = getattr(getattr(hooks, name), f"{hooks.PROJECT}_spec")
        arguments = inspect.signature(getattr(loaded.module, name)).parameters
        told = [(name, options["warn_on_impl"])]
        told += [
            (f"{name}, argument {argument}", warning)
            for argument, warning in (options["warn_on_impl_args"] or {}).items()
            if argument in arguments
        ]
        who = f"{loaded.plugin.distribution} {loaded.plugin.version}"
        found += [Problem("deprecated", f"{who}: {place}", str(text)) for place, text in told if text]
    return found


def conflicts(loaded: Iterable[Loaded]) -> list[Problem]:
    """Protocol ids and entry point names that two distributions claim; both are named."""
    claims: dict[tuple[str, str], list[str]] = {}
    for one in loaded:
        who = f"{one.plugin.distribution} {one.plugin.version}"
        claims.setdefault(("entry point", one.plugin.name), []).append(who)
        for protocol in one.protocols:
            claims.setdefault(("protocol", protocol.id), []).append(who)
    return [
        Problem(f"{kind} {name!r} is claimed twice", found=" and ".join(who), remedy="uninstall one of them")
        for (kind, name), who in sorted(claims.items())
        if len(who) > 1
    ]


@frozen(slots=False)
class Team:
    """The plugins of one manifest entry, checked, with their own pluggy manager.

    pluggy asks the last registered first: cross-cutting plugins, then the protocol's, then the
    core's defaults.
    """

    protocol: Protocol
    main: Plugin
    others: tuple[Plugin, ...]
    members: tuple[Loaded, ...]

    @cached_property
    def manager(self) -> pluggy.PluginManager:
        manager = pluggy.PluginManager(hooks.PROJECT)
        manager.add_hookspecs(hooks)
        manager.register(defaults, "floorkit defaults")
        for member in self.members:
            manager.register(member.module, f"{member.plugin.distribution}:{member.plugin.name}")
        manager.check_pending()
        return manager

    @property
    def hook(self) -> Any:
        return self.manager.hook

    def implements(self, name: str) -> bool:
        """Whether a plugin (not the core's defaults) implements the hook."""
        return any(name in member.hooks for member in self.members)

    def guarded(self, hook: str, unit: str = "", /, **arguments: Any) -> Any:
        """Call a hook; an exception that is not floorkit's own is reported as the plugin's defect."""
        from floorkit.core.errors import FloorkitError

        try:
            return getattr(self.hook, hook)(**arguments)
        except FloorkitError:
            raise
        except Exception as error:
            raise EvaluationError(
                Problem(
                    "a hook of the plugin failed",
                    f"{self.main.distribution} {self.main.version}, {hook}" + (f", {unit}" if unit else ""),
                    f"{type(error).__name__}: {error}",
                    remedy="this is a defect of the plugin; --debug shows the traceback",
                )
            ) from error


def find(distribution: str, where: str, plugins: Sequence[Plugin]) -> list[Plugin]:
    """The entry points of a distribution; ManifestError with the nearest names where there are none."""
    wanted = normalized(distribution)
    found = [plugin for plugin in plugins if normalized(plugin.distribution) == wanted]
    if found:
        return found
    installed = sorted({normalized(plugin.distribution) for plugin in plugins})
    near = difflib.get_close_matches(wanted, installed, n=1)
    raise ManifestError(
        Problem(
            "plugin is not installed",
            where,
            distribution,
            "one of " + ", ".join(installed) if installed else "an installed plugin",
            f"did you mean {near[0]!r}?" if near else f"pip install {distribution}",
        )
    )


def team(entry: ProtocolEntry, where: str, cross: Sequence[str] = ()) -> Team:
    """Load the plugins of a manifest entry.

    Parameters
    ----------
    entry
        The ``[protocols.NAME]`` table.
    where
        Its TOML path.
    cross
        Distribution names of the manifest's cross-cutting plugins.

    Raises
    ------
    ManifestError
        A plugin is not installed, does not load, or does not have the protocol.
    """
    plugins = discover()
    own = find(entry.plugin, f"{where}.plugin", plugins)
    others = [plugin for name in cross for plugin in find(name, f"plugins.{name}", plugins)]
    loaded, problems = [], []
    for plugin in [*own, *others]:
        result = load(plugin)
        if isinstance(result, Failed):
            problems += [attrs.evolve(problem, what=problem.what) for problem in result.problems]
        else:
            loaded.append(result)
    if problems:
        raise ManifestError(problems)
    offered = {
        protocol.id: (protocol, one.plugin)
        for one in loaded
        if one.plugin in own
        for protocol in one.protocols
    }
    wanted = entry.protocol or (next(iter(offered)) if len(offered) == 1 else "")
    if wanted not in offered:
        raise ManifestError(
            Problem(
                "the plugin does not offer the protocol" if entry.protocol else "which protocol?",
                f"{where}.protocol",
                entry.protocol,
                "one of " + ", ".join(offered) if offered else f"a protocol plugin; {entry.plugin} has none",
            )
        )
    protocol, main = offered[wanted]
    return Team(protocol, main, tuple(others), tuple(loaded))


def drift(recorded: tuple[str, str], found: tuple[str, str], where: str, location: Path) -> Problem | None:
    """A problem where recorded version or source hash (each "" if none) differ from the installed."""
    if recorded[0] in ("", found[0]) and recorded[1] in ("", found[1]):
        return None
    return Problem(
        "installed code differs from the manifest",
        where,
        f"{found[0]} {found[1]} at {location}",
        f"{recorded[0] or 'any version'} {recorded[1] or 'any source'}",
        "install the recorded version, or record the new one with `floorkit lock` after reading its "
        "CHANGELOG; --allow-source-drift goes on and marks every output unverified",
    )


def require(problems: Sequence[Problem]) -> None:
    """Raise SourceDriftError for ``problems``, if any."""
    if problems:
        raise SourceDriftError(problems)
