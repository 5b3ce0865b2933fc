"""The hooks: everything that a protocol plugin can implement, in the order in which they are called.

A plugin is a module named by an entry point of the group ``floorkit``. It implements hooks as
module-level functions marked ``@hookimpl``, and takes of each hook's arguments only those that it
needs, by name and without defaults:

    from floorkit.core.hooks import hookimpl

    @hookimpl
    def floorkit_score(context, gold, prediction):
        return kernel.score(gold, prediction, context.params)

The way of a run::

    floorkit_protocols      what is there                        once, in the main process
    floorkit_dataset        units, files, how to load gold       once an entry of the manifest
    floorkit_predictions    files, how to load a prediction      once a run
    floorkit_controls       input-free predictors                once an entry
    (Dataset.load, Run.load: contents are checked)               once a unit and run, in workers
    floorkit_score          gold, prediction -> tables           once a unit and run, in workers
    floorkit_align          tables of all runs together          once a unit, where implemented
    floorkit_calibrate      calibration tables -> thresholds     once a run
    floorkit_measure        tables, thresholds -> figures        once a run, then thousands of times
    floorkit_report         figures -> sections                  once an entry
    floorkit_commands       own sub-commands                     when the command line is built
    floorkit_guess          files -> a manifest's entry          in ``floorkit init``

A hook starts no process, writes no file and prints nothing. What it raises:

- ``InputError`` for invalid files, with every problem at once (exit code 4);
- ``ManifestError`` for a table that asks for something wrong (exit code 2);
- anything else is a defect of the plugin; the core reports it with plugin, version, hook and unit.

Everything heavy (NumPy, SciPy, readers) is imported inside the functions that use it, so that
``floorkit --help`` stays quick.
"""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

from floorkit.core.sections import Section
from floorkit.core.values import (
    Context,
    Dataset,
    Figure,
    OperatingPoint,
    Protocol,
    Result,
    Run,
    Tables,
    Unit,
)

if TYPE_CHECKING:
    import click

    from floorkit.core.guess import Guess, Listing
    from floorkit.core.pool import Pool

PROJECT = "floorkit"
API_VERSION = (1, 0)
"""Version of this contract. A plugin module may state ``FLOORKIT_API = (1, 0)``: the one it needs.

A new hook or argument raises the second number. One that is to go is marked with
``warn_on_impl=FutureWarning("use ... instead")`` (an argument with ``warn_on_impl_args``), warns for one
minor version, and is then removed, which raises the first number.
"""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def floorkit_protocols() -> Sequence[Protocol]:
    """Declare the protocols of this plugin.

    Called when a manifest entry or ``floorkit plugins`` needs to know; must be cheap.
    A plugin that only adds dataset formats or reports returns nothing or leaves it out.
    """


@hookspec(firstresult=True)
def floorkit_dataset(context: Context, table: Mapping[str, Any]) -> Dataset | None:
    """Turn the entry's ``[dataset]`` table into units.

    Called once an entry, before anything is read. The first plugin that does not return None wins;
    return None for a ``format`` that is not yours.

    Parameters
    ----------
    context
        The entry, with its parameters.
    table
        The ``[protocols.NAME.dataset]`` table as TOML gives it. Build your attrs class from it with
        ``floorkit.core.structure.structure(Class, table, f"protocols.{context.name}.dataset")``, which
        reports wrong types, unknown keys and ranges together. Paths count from ``context.root``; turn
        them into paths with ``floorkit.core.paths``.

    Returns
    -------
    Dataset
        Units in the manifest's order. Cheap checks (existence, shapes by header, honesty rules) belong
        here, as ``problems``; checks of contents into ``Dataset.load``.

    Raises
    ------
    ManifestError, InputError
    """


@hookspec(firstresult=True)
def floorkit_predictions(
    context: Context, dataset: Dataset, run: str, table: Mapping[str, Any]
) -> Run | None:
    """Turn one ``[protocols.NAME.runs.RUN]`` table into a Run.

    Called once a run, after ``floorkit_dataset``. ``table`` lacks the core's own key ``absent``.
    Every problem that can be seen without reading contents is reported at once, as ``problems``.

    Raises
    ------
    ManifestError, InputError
    """


@hookspec(firstresult=True)
def floorkit_controls(context: Context, dataset: Dataset) -> Sequence[Run] | None:
    """Yield the protocol's input-free predictors (numerics spec, "Controls").

    Called once an entry unless ``controls = false``. Runs named ``control:NAME`` with
    ``control=True``, scored by the same path as the user's. Random ones are seeded by
    ``context.seed`` and the unit's name, never by order.
    """


@hookspec(firstresult=True)
def floorkit_score(context: Context, unit: Unit, gold: Any, prediction: Any) -> Tables:
    """Score one unit: a pure function of its arguments.

    Called in worker processes, once a unit and run, evaluated and calibration units alike.
    ``gold`` and ``prediction`` are what ``Dataset.load`` and ``Run.load`` returned.

    Returns
    -------
    Mapping of table name to Table
        The unit's sufficient statistics: all that calibrate, measure and report need, so that
        thresholds, figures and bootstraps never read the inputs again. The same tables, columns and
        categories for every unit.
    """


@hookspec(firstresult=True)
def floorkit_align(context: Context, tables: Mapping[str, Tables]) -> Mapping[str, Tables] | None:
    """Change one unit's tables with all user runs seen together (a common support, for example).

    Called once a unit after all its runs are scored; controls are not included. ``tables`` maps run
    name to its tables. Return only the runs that changed, or None for "as they are".
    """


@hookspec(firstresult=True)
def floorkit_calibrate(
    context: Context, protocol: Protocol, pool: Pool, in_sample: bool
) -> Sequence[OperatingPoint]:
    """Choose a run's operating points.

    Called once a run with the pooled tables of its calibration units, or, where there are none, of the
    evaluated units themselves (``in_sample`` True; the points then say so). The core's default chooses
    matched-recall thresholds as ``Protocol.matched_recall`` says, and none where that is None.
    """


@hookspec(firstresult=True)
def floorkit_measure(
    context: Context,
    pool: Pool,
    points: Sequence[OperatingPoint],
    only: Collection[str] | None,
) -> Sequence[Figure]:
    """Turn pooled tables and operating points into figures.

    Called once a run with ``only`` None and weights None; then, for intervals and comparisons, some
    thousand times with ``only`` the keys of the headline figures and ``pool.weights`` the multiplicity
    of each unit. Pure and cheap: with ``only`` given compute nothing else (extra figures are ignored), and
    keep what does not depend on the weights (sorted scores) in ``pool.cached``.

    Every count must honour ``pool.row_weights(table)``. A value that does not exist is None with a
    reason, never NaN.
    """


@hookspec
def floorkit_report(context: Context, result: Result) -> Sequence[Section]:
    """Turn a result into sections: tables, plots, timelines, files.

    Called once an entry, on every plugin of the entry: the protocol's own sections come first, then
    those of cross-cutting plugins (another reporter returns FileSections or TextSections). The core
    itself adds header, headline, comparisons, coverage, warnings and signature, and writes everything.
    """


@hookspec
def floorkit_guess(listing: Listing) -> Sequence[Guess]:
    """Recognise predictions of this plugin's protocols among the files of a folder, for ``floorkit init``.

    Called once with the paths of all files below the folder. Look at names, and at the heads of few
    files (``listing.head``, ``listing.json_keys``); return a guess for each protocol whose predictions are
    there, with a question for each key that the files do not tell. It need not be right: the person reads the
    manifest, and ``floorkit check`` reads the files.
    """


@hookspec
def floorkit_commands() -> Sequence[click.Command]:
    """Add sub-commands to ``floorkit``, by custom one click group named like the protocol.

    Called when the command line is built. Import click inside, and everything heavy inside the
    commands themselves.
    """
