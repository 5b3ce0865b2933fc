"""The commands ``floorkit compare`` and ``floorkit history``; everything heavy is imported inside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.argument("results_a", type=FOLDER)
@click.argument("results_b", type=FOLDER)
@click.option("--entry", "entries", multiple=True, metavar="NAME", help="Only this entry (repeatable).")
@click.option("--run-a", default="", metavar="RUN", help="The run of RESULTS_A [default: same names].")
@click.option("--run-b", default="", metavar="RUN", help="The run of RESULTS_B [default: same names].")
@click.option("--allow-source-drift", is_flag=True, help="Compare although code differs; the report says so.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def compare(
    results_a: Path,
    results_b: Path,
    entries: Sequence[str],
    run_a: str,
    run_b: str,
    allow_source_drift: bool,
    as_json: bool,
) -> None:
    """Compare headline figures of RESULTS_B against RESULTS_A.

    First checks that protocol, code, parameters and dataset agree; where they do not, says what differs,
    gives no difference, and ends with exit code 3 (code) or 4 (anything else).

    \b
    Examples:
      floorkit compare results_old results_new
      floorkit compare results results --run-a baseline --run-b candidate
    """
    from floorkit.core.compare_folders import Options, compare_folders
    from floorkit.core.errors import InputError, Problem, SourceDriftError

    options = Options(tuple(entries), run_a, run_b, allow_source_drift)
    found = compare_folders(results_a, results_b, options)
    if as_json:
        from floorkit.core.sections import to_json
        from floorkit.reports.compare_text import comparison_data

        data = {one.b.name: comparison_data(one) for one in found}
        click.echo(to_json({"a": results_a.as_posix(), "b": results_b.as_posix(), "entries": data}), nl=False)
    else:
        from floorkit.reports.compare_text import print_entry_comparison
        from floorkit.run import report_console

        with report_console() as console:
            for one in found:
                print_entry_comparison(console, one)
    problems = [
        Problem(f"different {change.kind}", one.b.name, f"B: {change.after}", f"A: {change.before}")
        for one in found
        for change in one.disagreements
    ]
    if problems:
        code = all(change.kind == "code" for one in found for change in one.disagreements)
        error = SourceDriftError(problems) if code else InputError(problems)
        error.headline = "the results are not comparable"
        raise error


@click.command()
@click.argument("results", type=FOLDER, nargs=-1, required=True)
@click.option("--entry", "entries", multiple=True, metavar="NAME", help="Only this entry (repeatable).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def history(results: Sequence[Path], entries: Sequence[str], as_json: bool) -> None:
    """Follow the same entries over several RESULTS folders, in order of their start times.

    Says for each step which headline figures moved, and whether code, parameters, data or predictions
    changed.

    \b
    Example:
      floorkit history results_2026_03 results_2026_04 results
    """
    from floorkit.core.history import history as follow

    found = follow(results, entries)
    if as_json:
        from floorkit.core.sections import to_json
        from floorkit.reports.compare_text import history_data

        click.echo(to_json({"entries": {one.name: history_data(one) for one in found}}), nl=False)
    else:
        from floorkit.reports.compare_text import print_history
        from floorkit.run import report_console

        with report_console() as console:
            for one in found:
                print_history(console, one)
