"""The commands ``floorkit export`` and ``floorkit timelines``: results in the formats of other tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from floorkit.core.sections import TimelineEvent
    from floorkit.reports import timelines
    from floorkit.reports.export import Format
    from floorkit.reports.stored import Origin
    from floorkit.reports.tables_json import StoredTable
    from floorkit.reports.timelines_json import TimelinesFile

    Found = list[tuple[Origin, StoredTable]]


@click.command("export")
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "--format", "form", required=True, type=click.Choice(["latex", "markdown", "csv"]), help="Format."
)
@click.option("--entry", default="", help="Only this entry of the manifest.")
@click.option(
    "--table",
    "wanted",
    multiple=True,
    metavar="TABLE",
    help="Only this table: its number in --list, its title, a part of its title, or its file. Repeatable.",
)
@click.option("--list", "listing", is_flag=True, help="List the tables instead.")
@click.option(
    "--shown", is_flag=True, help="Round as reports do, rates as percent, instead of full precision."
)
@click.option("--output", type=click.Path(path_type=Path), help="Write a file a table into this folder.")
def export_command(
    results: Path,
    form: Format,
    entry: str,
    wanted: Sequence[str],
    listing: bool,
    shown: bool,
    output: Path | None,
) -> None:
    """Print any table of the results folder RESULTS as LaTeX, Markdown or CSV.

    Values are those that the run recorded, at full precision unless --shown is given.

    \b
    Examples:
      floorkit export results --format markdown --list
      floorkit export results --format latex --table headline --shown
    """
    from floorkit.core.errors import ManifestError, Problem
    from floorkit.reports.export import SUFFIXES, export_table

    found = _found_tables(results, entry)
    if listing:
        for number, (origin, table) in enumerate(found, 1):
            click.echo(
                f"{number:3}  {origin.entry}: {table.title}" + (f" ({table.file})" if table.file else "")
            )
        return
    chosen = _chosen(found, wanted)
    texts = [export_table(table, origin, form, shown=shown) for origin, table in chosen]
    if output is not None:
        names = [f"{origin.entry} {table.title}" for origin, table in chosen]
        _write_files(output, names, SUFFIXES[form], texts)
    elif form == "csv" and len(texts) > 1:
        raise ManifestError(
            Problem(
                "several tables do not fit into one CSV",
                str(results),
                _titles(chosen),
                remedy="choose one with --table, or a folder for all with --output",
            )
        )
    else:
        click.echo("\n".join(texts), nl=False)


def _found_tables(results: Path, entry: str) -> Found:
    from floorkit.reports import stored, tables_json

    files = [tables_json.read_tables(path) for path in stored.find(results, tables_json.FILE, entry)]
    return [(file.origin, table) for file in files for table in file.tables]


def _titles(tables: Found) -> str:
    return ", ".join(repr(f"{origin.entry}: {table.title}") for origin, table in tables)


def _chosen(found: Found, wanted: Sequence[str]) -> Found:
    """The tables that ``--table`` names, in the order of the report; all where it is not given."""
    from floorkit.core.errors import ManifestError, Problem

    if not wanted:
        return found
    chosen: set[int] = set()
    problems = []
    for text in wanted:
        exact = {
            index
            for index, (_, table) in enumerate(found)
            if text in (str(index + 1), table.title, table.file)
        }
        part = {index for index, (_, table) in enumerate(found) if text.casefold() in table.title.casefold()}
        if not (exact or part):
            problems.append(Problem("no such table", "--table", repr(text), f"one of {_titles(found)}"))
        chosen |= exact or part
    if problems:
        raise ManifestError(problems)
    return [found[index] for index in sorted(chosen)]


def _write_files(folder: Path, names: Iterable[str], suffix: str, texts: Iterable[str]) -> None:
    from floorkit.reports.timeline_formats import distinct, file_name

    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip(distinct(names, file_name), texts, strict=True):
        path = folder / f"{name}{suffix}"
        path.write_text(text, encoding="utf-8", newline="\n")
        click.echo(path)


@click.command("timelines")
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    required=True,
    type=click.Choice(["textgrid", "eaf", "audacity", "rttm"]),
    help="Praat TextGrid, ELAN document, Audacity label tracks or RTTM.",
)
@click.option(
    "--output", required=True, type=click.Path(path_type=Path), help="Folder for the files, made if needed."
)
@click.option("--entry", default="", help="Only this entry of the manifest.")
@click.option("--run", "runs", multiple=True, metavar="RUN", help="Only this run's events. Repeatable.")
@click.option("--unit", "units", multiple=True, metavar="UNIT", help="Only this unit. Repeatable.")
def timelines_command(
    results: Path,
    form: timelines.Format,
    output: Path,
    entry: str,
    runs: Sequence[str],
    units: Sequence[str],
) -> None:
    """Write the audit timelines of RESULTS (events, lanes, decisions) for annotation tools.

    The files of entry NAME go to OUTPUT/NAME, with the signature in signature.txt. They hold the events that
    the audit timelines show: a sample, where there were many.

    \b
    Example:
      floorkit timelines results --format textgrid --output audit --run candidate
    """
    from floorkit.reports import stored, timelines_json

    found = stored.find(results, timelines_json.FILE, entry)
    files = [timelines_json.read_timelines(path) for path in found]
    events = [event for file in files for event in file.events]
    _check_names("--run", runs, {event.run for event in events})
    _check_names("--unit", units, {event.unit for event in events})
    written = 0
    for file in files:
        chosen = [
            event
            for event in file.events
            if (not runs or event.run in runs) and (not units or event.unit in units)
        ]
        if chosen:
            written += _write_timelines(file, chosen, form, output / file.origin.entry)
    click.echo(f"{written} files in {output}")


def _write_timelines(
    file: TimelinesFile, events: Sequence[TimelineEvent], form: timelines.Format, folder: Path
) -> int:
    from floorkit.reports.timelines import timeline_files

    texts, left_out = timeline_files(events, form, file.origin.signature)
    total = sum(section.total for section in file.sections)
    sample = (
        f"{len(file.events)} of {total} events stand in the audit timelines; these files hold {len(events)}."
    )
    texts["signature.txt"] = "\n".join([file.origin.signature, *file.origin.warnings, sample, ""])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    if left_out:
        click.echo(
            f"{file.origin.entry}: {left_out} points left out, since RTTM holds only stretches", err=True
        )
    return len(texts)


def _check_names(option: str, wanted: Sequence[str], known: set[str]) -> None:
    from floorkit.core.errors import ManifestError, Problem, raise_problems

    problems = [
        Problem("no events of that name", option, repr(name), f"one of {', '.join(sorted(known))}")
        for name in wanted
        if name not in known
    ]
    raise_problems(ManifestError, problems)
