"""The parts of the documentation that are made from the code, so that they cannot drift from it.

MkDocs calls :func:`on_page_markdown` for every page (``hooks`` in mkdocs.yml); a line
``<!-- generate: NAME ARGUMENT -->`` is replaced by what the function of that name below returns.
"""

from __future__ import annotations

import importlib
import inspect
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import click
from attrs import NOTHING, Attribute

from floorkit.core import hooks, registry
from floorkit.core.structure import describe
from floorkit.core.values import Protocol

PLUGINS = Path(__file__).parents[1] / "plugins"

DIRECTIVE = re.compile(r"^<!-- generate: (?P<name>\w+)(?: (?P<argument>.+?))? -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """MkDocs' event: the page's text with every directive replaced."""
    return expand(markdown)


def expand(markdown: str) -> str:
    """``markdown`` with every directive replaced; KeyError for one that does not exist."""
    return DIRECTIVE.sub(lambda found: GENERATORS[found["name"]](found["argument"] or ""), markdown)


def table(path: str) -> str:
    """The keys of an attrs class ``module:Class`` as a table: key, meaning, type, default, allowed values."""
    module, _, name = path.partition(":")
    return _keys(getattr(importlib.import_module(module), name))


def params(protocol: str) -> str:
    """The parameters of an installed protocol."""
    return _keys(_protocol(protocol).params)


def _protocol(name: str) -> Protocol:
    for plugin in registry.discover():
        loaded = registry.load(plugin)
        for one in loaded.protocols if isinstance(loaded, registry.Loaded) else ():
            if one.id == name:
                return one
    raise KeyError(f"protocol {name} is not installed")


def caveats(protocol: str) -> str:
    """What a protocol measures and what it does not, as its reports say it."""
    declared = _protocol(protocol)
    unmeasured = "\n".join(f"- {sentence}" for sentence in declared.caveats)
    measures = declared.measures.rstrip(".")
    measures = f"{measures[:1].lower()}{measures[1:]}"
    return f"**It measures** {measures}.\n\n## What it does not measure\n\n{unmeasured}"


def readme(argument: str) -> str:
    """The section of that heading of a plugin's README: ``PLUGIN HEADING``."""
    plugin, _, heading = argument.partition(" ")
    text = (PLUGINS / plugin / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(heading)}\n.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise KeyError(f"the README of {plugin} has no section {heading!r}")
    return found.group().rstrip()


def _keys(cls: type) -> str:
    rows = ["| key | meaning | type | default |", "|---|---|---|---|"]
    types = typing.get_type_hints(cls)
    for field in attrs.fields(cls):
        doc = field.metadata["doc"].rstrip(".")
        unit = field.metadata.get("unit")
        allowed = field.metadata.get("allowed", "")
        words = f"{doc[:1].upper()}{doc[1:]}." + (f" Unit: {unit}." if unit else "")
        words += f" Allowed: {allowed}." if allowed and allowed != "a finite number" else ""
        cells = (f"`{field.name}`", words, describe(types[field.name]), _default(field))
        rows.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(rows)


def _default(field: Attribute[Any]) -> str:
    default: Any = field.default
    if default is NOTHING:
        return "**required**"
    default = getattr(default, "factory", lambda: default)()
    if default is None or default in ({}, [], ()) or attrs.has(type(default)):
        return "none"
    return f"`{_toml(default)}`"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def hook_reference(_: str) -> str:
    """Every hook with its arguments and docstring."""
    parts = []
    for name in hook_names():
        function = getattr(hooks, name)
        arguments = ", ".join(inspect.signature(function).parameters)
        first = " First result that is not None wins." if function.floorkit_spec["firstresult"] else ""
        parts.append(f"## {name}\n\n`{name}({arguments})`{first}\n\n{from_numpydoc(function.__doc__)}")
    return "\n\n".join(parts)


def hook_names() -> list[str]:
    """The hooks in the order of their definition, which is that of a run."""
    names = [name for name in vars(hooks) if name.startswith("floorkit_")]
    return sorted(names, key=lambda name: getattr(hooks, name).__code__.co_firstlineno)


def hook_overview(_: str) -> str:
    """The module's own text: how hooks are written and called."""
    return from_numpydoc(hooks.__doc__ or "")


def all_values(_: str) -> str:
    """The classes of floorkit.core.values and sections, in the order of their definition."""
    modules = [importlib.import_module(f"floorkit.core.{name}") for name in ("values", "sections")]
    classes = [
        one
        for module in modules
        for one in vars(module).values()
        if isinstance(one, type) and one.__module__ == module.__name__
    ]
    return "\n\n".join(_value(one) for one in classes)


def _value(cls: type) -> str:
    fields = ", ".join(f"`{field.name}`" for field in attrs.fields(cls))
    return f"### {cls.__name__}\n\n{from_numpydoc(cls.__doc__)}\n\nFields: {fields}."


def from_numpydoc(text: str | None) -> str:
    """A numpydoc docstring as Markdown: sections in bold, their entries as lists, ``code`` as `code`."""
    lines = inspect.cleandoc(text or "").splitlines()
    shown: list[str] = []
    section = ""
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        if line and following and set(following) == {"-"}:
            section = line
            shown += ["", f"**{section}**", ""]
        elif set(line) == {"-"} and section:
            continue
        elif section and line and not line.startswith(" "):
            shown.append(f"- {line}" if section == "Raises" else f"- `{line}`:")
        elif section and line:
            shown.append(f"    {line.strip()}")
        else:
            shown.append(line)
    return re.sub(r"``(.+?)``", r"`\1`", "\n".join(shown)).replace("::\n", ":\n")


def rules(_: str) -> str:
    """Every rule of the conformance kit."""
    from floorkit.testing.checklist import RULES

    parts, group = [], ""
    for rule in RULES.values():
        if rule.group != group:
            group = rule.group
            parts.append(f"### {group.capitalize()}")
        text = f"**`{rule.name}`**: {rule.sentence}\n\n*Why:* {rule.why}"
        parts.append(re.sub(r"``(.+?)``", r"`\1`", text))
    return "\n\n".join(parts)


def commands(_: str) -> str:
    """The help text of every command of the core."""
    from floorkit.cli import cli

    context = click.Context(cli, info_name="floorkit", max_content_width=100, terminal_width=100)
    parts = []
    for name in sorted(cli.commands):
        parts += _help(cli.commands[name], context, f"floorkit {name}")
    return "\n\n".join(parts)


def _help(command: click.Command, above: click.Context, title: str) -> list[str]:
    context = click.Context(
        command,
        info_name=title.rsplit(maxsplit=1)[-1],
        parent=above,
        max_content_width=100,
        terminal_width=100,
    )
    parts = [f"## {title}\n\n```text\n{command.get_help(context)}\n```"]
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            parts += _help(command.commands[name], context, f"{title} {name}")
    return parts


GENERATORS: dict[str, Callable[[str], str]] = {
    "table": table,
    "params": params,
    "caveats": caveats,
    "readme": readme,
    "hook_reference": hook_reference,
    "hook_overview": hook_overview,
    "all_values": all_values,
    "rules": rules,
    "commands": commands,
}
