"""``floorkit init``: a manifest for a folder of predictions, guessed from its files by the plugins."""

from __future__ import annotations

import difflib
import os
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import click
from attrs import frozen

from floorkit.core import manifest as manifests
from floorkit.core import registry
from floorkit.core.errors import EvaluationError, ManifestError, Problem
from floorkit.core.guess import Guess, Listing, Question
from floorkit.core.registry import Loaded
from floorkit.core.values import Protocol

MANIFEST = "protocols.toml"


@frozen
class Wish:
    """What the command line says.

    Parameters
    ----------
    folder
        The predictions.
    protocols
        Ids; all that are recognised where empty.
    answers
        ``KEY=VALUE`` texts for keys below an entry: ``dataset.targets=../targets``.
    output
        The manifest to write; ``protocols.toml`` in the folder where None.
    ask
        Whether to ask for what is open.
    force
        Whether to write over an existing manifest.
    """

    folder: Path
    protocols: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    output: Path | None = None
    ask: bool = False
    force: bool = False


@frozen
class Recognised:
    """A guess with the protocol and the distribution that it came from."""

    guess: Guess
    protocol: Protocol
    distribution: str


def write_manifest(wish: Wish) -> tuple[Path, list[Recognised]]:
    """Guess, ask, write.

    Returns
    -------
    Path, list
        The manifest, and what its entries were made of.

    Raises
    ------
    ManifestError
        Nothing was recognised, a key stays open, or the manifest exists.
    """
    output = wish.output or wish.folder / MANIFEST
    if output.exists() and not wish.force:
        remedy = "choose another with --output, or write over it with --force"
        raise ManifestError(Problem("the manifest exists already", str(output), remedy=remedy))
    listing = Listing.of(wish.folder)
    chosen = _choose(recognise(listing), listing, wish)
    answers = dict(_answer(text) for text in wish.answers)
    entries = [_filled(one, answers, wish, output.parent) for one in chosen]
    unused = answers.keys() - {question.key for one in chosen for question in one.guess.questions}
    for key in sorted(unused):
        table, _, name = key.partition(".")
        for entry in entries:
            entry[table][name] = answers[key]
    output.parent.mkdir(parents=True, exist_ok=True)
    text = render(chosen, entries)
    partial = output.with_name(f".{output.name}.part")
    partial.write_text(text, encoding="utf-8", newline="\n")
    manifests.read(partial)
    partial.replace(output)
    return output, chosen


def recognise(listing: Listing) -> list[Recognised]:
    """The guesses of all installed plugins."""
    found = []
    for plugin in registry.discover():
        loaded = registry.load(plugin)
        if not isinstance(loaded, Loaded) or "floorkit_guess" not in loaded.hooks:
            continue
        protocols = {protocol.id: protocol for protocol in loaded.protocols}
        try:
            guesses = loaded.module.floorkit_guess(listing) or ()
        except Exception as error:
            where = f"{plugin.distribution} {plugin.version}, floorkit_guess"
            told = f"{type(error).__name__}: {error}"
            raise EvaluationError(Problem("a hook of the plugin failed", where, told)) from error
        found += [Recognised(guess, protocols[guess.protocol], plugin.distribution) for guess in guesses]
    return found


def _choose(found: Sequence[Recognised], listing: Listing, wish: Wish) -> list[Recognised]:
    ids = [one.protocol.id for one in found]
    if not found:
        kinds = Counter(Path(name).suffix or "no suffix" for name in listing.files)
        text = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(5)) or "no file"
        raise ManifestError(
            Problem(
                "no installed protocol recognises the files",
                str(listing.root),
                text,
                "predictions in the layout of a protocol (see its page in the documentation)",
                "name the folder that holds the runs, or write the manifest by hand",
            )
        )
    problems = []
    for name in wish.protocols:
        if name not in ids:
            near = difflib.get_close_matches(name, ids, n=1)
            remedy = f"did you mean {near[0]!r}?" if near else ""
            expected = "one of those whose files were found: " + ", ".join(ids)
            problems.append(Problem("protocol not recognised", "--protocol", name, expected, remedy))
    if problems:
        raise ManifestError(problems)
    wanted: Sequence[str] = wish.protocols or ids
    if not wish.protocols and len(ids) > 1 and wish.ask:
        for one in found:
            click.echo(f"  {one.protocol.id}: {one.guess.because}")
        text = click.prompt("Protocols (commas between them)", default=", ".join(ids))
        wanted = [name.strip() for name in text.split(",")]
        return _choose(found, listing, attrs.evolve(wish, protocols=tuple(wanted)))
    return [one for one in found if one.protocol.id in wanted]


def _answer(text: str) -> tuple[str, Any]:
    import tomli

    key, equals, value = text.partition("=")
    table, dot, name = key.strip().partition(".")
    if not equals or table not in ("dataset", "params", "statistics") or not dot or not name:
        expected = "dataset.KEY=VALUE, params.KEY=VALUE or statistics.KEY=VALUE"
        raise ManifestError(Problem("cannot be understood", "--set", text, expected))
    try:
        return key.strip(), tomli.loads(f"value = {value}")["value"]
    except tomli.TOMLDecodeError:
        return key.strip(), value


def _filled(one: Recognised, answers: Mapping[str, Any], wish: Wish, place: Path) -> dict[str, Any]:
    """The entry's tables with every open key answered; paths count from ``place``, the manifest's folder."""
    guess = one.guess
    entry: dict[str, Any] = {
        "dataset": _moved(dict(guess.dataset), wish.folder, place),
        "params": dict(guess.params),
        "statistics": {},
        "runs": {name: _moved(dict(run), wish.folder, place) for name, run in guess.runs.items()},
    }
    open_keys = []
    for question in guess.questions:
        if question.key in answers:
            value = answers[question.key]
        elif wish.ask:
            value = _ask(question, one.protocol.id)
        elif question.is_list:
            continue
        else:
            open_keys.append(question)
            continue
        if question.is_list and isinstance(value, str):
            value = [name.strip() for name in value.split(",") if name.strip()]
        if question.is_path:
            value = _relative(Path(value), place)
        table, _, name = question.key.partition(".")
        if value or not question.is_list:
            entry[table][name] = value
    if open_keys:
        raise ManifestError(
            Problem(
                "the files do not tell",
                one.protocol.id,
                f"{question.key}: {question.text}",
                remedy=f"--set {question.key}=...",
            )
            for question in open_keys
        )
    chosen = entry["dataset"].get("calibration_sessions", [])
    if isinstance(entry["dataset"].get("sessions"), list):
        entry["dataset"]["sessions"] = [name for name in entry["dataset"]["sessions"] if name not in chosen]
    return entry


def _ask(question: Question, protocol: str) -> str:
    default = "" if question.is_list else None
    text: str = click.prompt(f"{protocol}: {question.text}", default=default, show_default=False)
    return text


def _moved(value: Any, folder: Path, place: Path) -> Any:
    """The value with every path below ``folder`` as a text that counts from ``place``."""
    if isinstance(value, dict):
        return {key: _moved(one, folder, place) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_moved(one, folder, place) for one in value]
    return _relative(folder / value, place) if isinstance(value, Path) else value


def _relative(path: Path, place: Path) -> str:
    return Path(os.path.relpath(path, place)).as_posix()


def render(chosen: Sequence[Recognised], entries: Iterable[Mapping[str, Any]]) -> str:
    """The manifest's text; parameters at their defaults are there as comments with their meaning."""
    lines = ["# Written by `floorkit init`; `floorkit check` tells what does not fit.", ""]
    for one, entry in zip(chosen, entries, strict=True):
        name = f"protocols.{one.protocol.id}"
        lines += [
            f"# {one.protocol.title}: {one.guess.because}",
            f"[{name}]",
            _line("plugin", one.distribution),
            "",
            f"[{name}.dataset]",
            *(_line(key, value) for key, value in entry["dataset"].items()),
            "",
        ]
        for run, table in entry["runs"].items():
            lines += [f"[{name}.runs.{_key(run)}]", *(_line(key, value) for key, value in table.items()), ""]
        lines += [f"[{name}.params]", *_params(one.protocol, entry["params"])]
        if entry["statistics"]:
            lines += [f"[{name}.statistics]"]
            lines += [*(_line(key, value) for key, value in entry["statistics"].items()), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _params(protocol: Protocol, given: Mapping[str, Any]) -> list[str]:
    lines = [*(_line(key, value) for key, value in given.items()), *([""] if given else [])]
    for field in attrs.fields(protocol.params):
        default = field.default
        if field.name in given or default is attrs.NOTHING:
            continue
        value = default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]
        if value is not None:
            unit = f" Unit: {field.metadata['unit']}." if field.metadata.get("unit") else ""
            lines += textwrap.wrap(
                field.metadata.get("doc", "") + unit, 98, initial_indent="# ", subsequent_indent="# "
            )
            lines += [f"# {_line(field.name, value)}", ""]
    return lines


def _line(key: str, value: Any) -> str:
    import tomlkit

    if isinstance(value, dict):
        inner = ", ".join(_line(name, one) for name, one in value.items())
        return f"{_key(key)} = {{ {inner} }}"
    plain = list(value) if isinstance(value, tuple) else value
    return f"{_key(key)} = {tomlkit.item(plain).as_string()}"


def _key(name: str) -> str:
    """A TOML key; a dot in a run's name must not make a table of its own."""
    import tomlkit

    return tomlkit.key(name).as_string()
