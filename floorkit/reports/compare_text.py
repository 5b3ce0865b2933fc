"""What ``floorkit compare`` and ``floorkit history`` print and give as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from attrs import asdict
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from floorkit.core.compare_folders import A, B, EntryComparison
from floorkit.core.entries import Entry
from floorkit.core.history import EntryHistory, Moved, Step
from floorkit.core.values import Figure
from floorkit.reports import cells
from floorkit.reports.console import plain_table, print_cautions, print_comparisons, print_title

AGREED = "Protocol, code, parameters and dataset agree."


def _rule(console: Console, name: str) -> None:
    console.print()
    console.print(Rule(Text(name, style="bold"), align="left", characters="━", style=""))


def _states(console: Console, named: Sequence[tuple[str, Entry]]) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, entry in named:
        grid.add_row(name, Text(f"{entry.results.as_posix()}, started {entry.started}"))
        marks = f" [{' '.join(entry.marks)}]" if entry.marks else ""
        grid.add_row("", Text(entry.signature + marks, style="dim"))
    console.print(grid)


# --- compare ------------------------------------------------------------------------------------


def print_entry_comparison(console: Console, entry: EntryComparison) -> None:
    """Where the two came from, what does not agree, and the comparison of their headline figures."""
    same_name = entry.a.name == entry.b.name
    _rule(console, entry.a.name if same_name else f"{entry.a.name} and {entry.b.name}")
    _states(console, [(A, entry.a), (B, entry.b)])
    if entry.disagreements:
        print_title(console, "Not comparable: these do not agree")
        print_cautions(console, [change.between(A, B) for change in entry.disagreements])
    else:
        allowed = any(change.kind == "code" for change in entry.remarks)
        console.print(Text("UNVERIFIED: the code differs" if allowed else AGREED))
    if entry.remarks:
        print_title(console, "Also different")
        print_cautions(console, [change.between(A, B) for change in entry.remarks])
    print_title(console, "Headline figures (B against A)")
    if entry.comparisons:
        print_comparisons(console, entry.comparisons, lambda one: entry.figures.get(one.key))
    else:
        console.print(Text("The runs share no headline figure."))
    for side, keys in ((A, entry.only_a), (B, entry.only_b)):
        if keys:
            console.print(Text(f"Only in {side}: {', '.join(keys)}."))


def comparison_data(entry: EntryComparison) -> dict[str, Any]:
    """An entry's comparison as JSON-able data."""
    return {
        "a": _entry_data(entry.a),
        "b": _entry_data(entry.b),
        "comparable": not entry.disagreements,
        "disagreements": [asdict(change) for change in entry.disagreements],
        "remarks": [asdict(change) for change in entry.remarks],
        "comparisons": [asdict(comparison) for comparison in entry.comparisons],
        "only_a": list(entry.only_a),
        "only_b": list(entry.only_b),
    }


def _entry_data(entry: Entry) -> dict[str, Any]:
    return {
        "results": entry.results.as_posix(),
        "entry": entry.name,
        "signature": entry.signature,
        "marks": list(entry.marks),
        "started": entry.started,
    }


# --- history ------------------------------------------------------------------------------------


def print_history(console: Console, history: EntryHistory) -> None:
    """The states of an entry in order of time, and for each step what changed and which figures moved."""
    _rule(console, history.name)
    _states(console, [(str(number), entry) for number, entry in enumerate(history.states, 1)])
    if not history.steps:
        console.print(Text("One folder has this entry: there is nothing to follow."))
    for number, step in enumerate(history.steps, 1):
        print_title(console, f"From {number} to {number + 1}")
        _print_step(console, step)


def _print_step(console: Console, step: Step) -> None:
    if not step.changes:
        console.print(Text("Nothing changed: same code, parameters, data, predictions and packages."))
    for change in step.changes:
        console.print(Text(str(change)))
    console.print(Text(f"{len(step.moved)} of {step.figures} headline figures moved."))
    if step.moved:
        console.print(_moved_table(step.moved))
    print_cautions(console, list(unexplained_words(step)))


def _moved_table(moved: Sequence[Moved]) -> Table:
    table = plain_table()
    table.add_column("run", overflow="fold")
    table.add_column("figure", overflow="fold")
    for heading in ("before", "after", "change"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in moved:
        figure = one.after or one.before
        unit = figure.unit if figure else ""
        values = [None if side is None else side.value for side in (one.before, one.after)]
        change = values[1] - values[0] if values[0] is not None and values[1] is not None else None
        table.add_row(
            Text(one.run),
            Text(cells.figure_words(figure) if figure else one.key),
            _value(one.before, unit),
            _value(one.after, unit),
            cells.difference_text(change, unit),
        )
    return table


def _value(figure: Figure | None, unit: str) -> str:
    return "absent" if figure is None else cells.value_text(figure.value, unit)


def unexplained_words(step: Step) -> Iterator[str]:
    """Says which runs' figures moved although nothing that they depend on is known to have changed."""
    for run in dict.fromkeys(one.run for one in step.moved if not one.explained):
        reason = (
            "those of other runs did, which moves it only under a common support of all runs"
            if any(change.kind == "predictions" for change in step.changes)
            else "look for what is not recorded, such as code that is not deterministic"
        )
        yield f"{run} moved although code, parameters, data and its predictions did not change: {reason}."


def history_data(history: EntryHistory) -> dict[str, Any]:
    """An entry's history as JSON-able data."""
    return {
        "states": [_entry_data(entry) for entry in history.states],
        "steps": [
            {
                "changes": [asdict(change) for change in step.changes],
                "moved": [
                    {
                        "run": one.run,
                        "key": one.key,
                        "before": one.before.value if one.before else None,
                        "after": one.after.value if one.after else None,
                        "explained": one.explained,
                    }
                    for one in step.moved
                ],
                "figures": step.figures,
            }
            for step in history.steps
        ],
    }
