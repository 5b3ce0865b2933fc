"""The commands run, check, lock and verify: the whole way of a manifest, step by step."""

from __future__ import annotations

import datetime
import io
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click
from attrs import frozen

import floorkit
from floorkit.core import manifest as manifests
from floorkit.core import registry, results
from floorkit.core.cache import Cache, location
from floorkit.core.errors import FloorkitError, InputError, ManifestError, Problem, SourceDriftError
from floorkit.core.evaluate import evaluate
from floorkit.core.executors import Executor
from floorkit.core.manifest import Manifest
from floorkit.core.paths import is_url, resolve
from floorkit.core.prepare import (
    Findings,
    Hashed,
    Options,
    Prepared,
    check_contents,
    check_sources,
    hash_inputs,
    prepare,
    unverified_mark,
    with_mark,
)
from floorkit.core.provenance import FILE, provenance, verify
from floorkit.core.reuse import Plan, plan
from floorkit.core.sections import Section, to_json
from floorkit.core.statistics import Replicates
from floorkit.core.structure import unknown_key
from floorkit.core.values import Result

if TYPE_CHECKING:
    from rich.console import Console

PAGE = "report.html"


@frozen
class Request:
    """What the command line asks for."""

    manifest: Path
    only: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    jobs: int = 1
    options: Options = Options()
    output: Path | None = None
    quiet: bool = False
    as_json: bool = False
    executor: str = "local"
    fresh: bool = False
    rehash: bool = False
    explain_cache: bool = False


def request_of(options: Mapping[str, Any]) -> Request:
    """The request behind the parsed command-line options of ``run`` or ``check``."""
    given = {key: value for key, value in options.items() if key != "debug"}
    sources = Options(given.pop("frozen"), given.pop("allow_source_drift"))
    return Request(**given, options=sources)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def prepare_all(
    request: Request, manifest: Manifest, cache: Cache, executor: Executor, reuse: bool
) -> tuple[list[Prepared], list[Plan], Findings, dict[str, str]]:
    """Steps 1 to 4 for every entry: registry, dataset, predictions, contents; all problems together.

    Parameters
    ----------
    reuse
        Look up score tables in the cache. Units whose tables are there need no check of their contents:
        the same code has read the same bytes before.

    Returns
    -------
    prepared, findings
        Entries that can be scored where ``findings`` has no problems.
    plans
        What the cache has of each entry; none with ``reuse`` False or with problems.
    states
        For each entry in words, whether its source hash was verified.
    """
    findings = Findings()
    try:
        drift, unrecorded = check_sources(manifest, request.options)
    except FloorkitError as error:
        findings.add(error)
        drift, unrecorded = [], []
    if not request.options.allow_source_drift:
        findings.drift += drift
        if drift:
            return [], [], findings, {}
    hashed: Hashed = {}
    found = [prepare(manifest, name, hashed, findings) for name in manifest.document.protocols]
    prepared = [one for one in found if one is not None]
    findings.manifest += _compare_problems(manifest)
    if drift:
        prepared = [with_mark(one, unverified_mark(drift)) for one in prepared]
    hash_inputs(prepared, hashed, request.jobs, findings, cache.digests)
    plans = [plan(one, cache) for one in prepared] if reuse and not findings.all else []
    runs = [one.missing for one in plans] or [one.all_runs for one in prepared]
    for one, to_check in zip(prepared, runs, strict=True):
        with progress(f"checking {one.context.name}", len(one.dataset.units), request) as told:
            check_contents(one, to_check, executor, cache.work, findings, told)
    states = {one.context.name: _hash_state(one, drift, unrecorded) for one in prepared}
    return prepared, plans, findings, states


def _hash_state(one: Prepared, drift: Sequence[Problem], unrecorded: Sequence[str]) -> str:
    short = one.team.main.source[: len("sha256:") + 8]
    if any(problem.where == f"[protocols.{one.context.name}]" for problem in drift):
        return f"source {short} DIFFERS from the recorded one"
    if one.entry.plugin in unrecorded:
        return f"source {short}, not recorded (floorkit lock records it)"
    return f"source {short}, as recorded"


def _compare_problems(manifest: Manifest) -> list[Problem]:
    """Runs that no entry has, be it selected with ``--only`` or not, and pairs that are none."""
    runs = {run for entry in manifest.resolved["protocols"].values() for run in entry["runs"]}
    comparing = manifest.document.compare
    problems = []
    if comparing.baseline and comparing.pairs:
        problems.append(Problem("baseline and pairs exclude each other", "compare"))
    if comparing.baseline and comparing.baseline not in runs:
        problems.append(unknown_key(comparing.baseline, sorted(runs), "compare.baseline"))
    for index, pair in enumerate(comparing.pairs):
        if len(pair) != 2 or pair[0] == pair[1]:
            problems.append(
                Problem("not a pair", f"compare.pairs[{index}]", repr(pair), "two different run names [A, B]")
            )
        problems += [
            unknown_key(run, sorted(runs), f"compare.pairs[{index}]") for run in pair if run not in runs
        ]
    return problems


def output_folder(manifest: Manifest) -> Path:
    """The results folder that the manifest names."""
    text = manifest.document.floorkit.output
    if is_url(text):
        raise ManifestError(Problem("results are written to a folder, not to a URL", "floorkit.output", text))
    return resolve(manifest.root, text)


def run_manifest(request: Request, command: Sequence[str]) -> None:
    """``floorkit run``: evaluate, print the report, write the results."""
    from floorkit.reports.unit_differences import unit_difference_plots

    started = _now()
    manifest = manifests.read(request.manifest, request.settings).select(request.only)
    output = request.output or output_folder(manifest)
    results.check_output(output)
    with workplace(request, manifest.root) as (cache, executor):
        prepared, plans, findings, states = prepare_all(request, manifest, cache, executor, reuse=True)
        findings.stop()
        tell_reuse(request, cache, plans)
        evaluated: list[results.Evaluated] = []
        for one, its_plan in zip(prepared, plans, strict=True):
            with progress(f"scoring {one.context.name}", len(one.dataset.units), request) as told:
                result, sections, replicates = evaluate(its_plan, manifest.document.compare, executor, told)
            sections += tuple(unit_difference_plots(result, replicates))
            evaluated.append(
                results.Evaluated(result, sections, core_files(one, result, sections, replicates))
            )
        ended = _now()
        for index, one in enumerate(prepared):
            record = provenance(one, manifest, output / one.context.name, command, (started, ended))
            evaluated[index] = attrs.evolve(evaluated[index], files={**evaluated[index].files, FILE: record})
        results.write(output, evaluated, pages(evaluated, manifest), keep=bool(request.only))
        report(request, evaluated, states, output)
        for its_plan in plans:
            its_plan.save()
        if any(its_plan.reasons for its_plan in plans):
            cache.prune()


def core_files(
    one: Prepared, result: Result, sections: Sequence[Section], replicates: Mapping[str, Replicates]
) -> dict[str, Any]:
    """The core's own files of an entry beside summary.json and provenance.json."""
    from floorkit.core.statistics_files import FILE as STATISTICS
    from floorkit.core.statistics_files import statistics_to_plain
    from floorkit.reports.tables_json import FILE as TABLES
    from floorkit.reports.tables_json import write_tables
    from floorkit.reports.timelines_json import FILE as TIMELINES
    from floorkit.reports.timelines_json import write_timelines

    noun = one.team.protocol.unit_noun if one.statistics.cluster == "unit" else one.statistics.cluster
    return {
        STATISTICS: results.mark_flags(result)
        | statistics_to_plain(replicates.values(), one.statistics, one.context.seed, noun, result.signature),
        TABLES: write_tables(result, sections),
        TIMELINES: write_timelines(result, sections),
    }


def pages(evaluated: Sequence[results.Evaluated], manifest: Manifest) -> dict[str, str]:
    """The pages at the top of the results folder."""
    from floorkit.reports.html.page import write_html

    entries = [(one.result, one.sections) for one in evaluated]
    facts = {"manifest": manifest.path.name, "floorkit": floorkit.__version__}
    return {PAGE: write_html(entries, title=f"floorkit: {manifest.path.stem}", facts=facts)}


def report(
    request: Request, evaluated: Sequence[results.Evaluated], states: dict[str, str], output: Path
) -> None:
    """Print the terminal report, or one JSON object."""
    if request.as_json:
        entries = {one.result.context.name: results.summary(one.result, one.sections) for one in evaluated}
        click.echo(to_json({"output": str(output), "entries": entries}), nl=False)
    if request.quiet:
        return
    from floorkit.reports.terminal import print_report

    shown = [(one.result, one.sections) for one in evaluated]
    states_shown = [states[one.result.context.name] for one in evaluated]
    with report_console(stderr=request.as_json) as console:
        print_report(console, shown, states_shown)
        console.print()
        console.print(f"Results: {output} (open {PAGE})", soft_wrap=True)


@contextmanager
def report_console(stderr: bool = False) -> Iterator[Console]:
    """A console for reports; in a pipe, lines end where their text ends."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    buffer = io.StringIO()
    file = stream if stream.isatty() else buffer
    yield Console(file=file, highlight=False, markup=False, emoji=False)
    for line in buffer.getvalue().splitlines():
        click.echo(line.rstrip(), file=stream)


def check_manifest(request: Request) -> None:
    """``floorkit check``: everything up to scoring, every problem listed."""
    manifest = manifests.read(request.manifest, request.settings).select(request.only)
    with workplace(request, manifest.root) as (cache, executor):
        prepared, _, findings, _ = prepare_all(request, manifest, cache, executor, reuse=False)
    if request.as_json:
        problems = [attrs.asdict(problem) for problem in findings.all]
        click.echo(to_json({"manifest": str(request.manifest), "problems": problems}), nl=False)
    if findings.all:
        kinds = [(findings.manifest, 2), (findings.drift, 3), (findings.inputs, 4)]
        error = InputError(findings.all)
        error.headline = f"{len(findings.all)} problem{'s' if len(findings.all) > 1 else ''} found"
        error.exit_code = next(code for problems, code in kinds if problems)
        raise error
    if not request.quiet and not request.as_json:
        for one in prepared:
            splits = [len(one.dataset.split(split)) for split in ("evaluated", "calibration")]
            runs = sum(not run.control for run in one.runs)
            click.echo(
                f"{one.context.name}: {splits[0]} {one.team.protocol.unit_noun}s evaluated, "
                f"{splits[1]} for calibration, {runs} runs, {len(one.files)} files: no problem"
            )


def lock_manifest(path: Path) -> None:
    """``floorkit lock``: record versions and source hashes in the manifest, atomically."""
    manifest = manifests.read(path)
    plugins = registry.discover()
    names = [entry.plugin for entry in manifest.document.protocols.values()]
    names += list(manifest.document.plugins)
    recorded = {}
    for name in dict.fromkeys(names):
        plugin = registry.find(name, str(path), plugins)[0]
        recorded[name] = plugin.version, plugin.source
    text = manifests.lock(path, (floorkit.__version__, registry.core_source()), recorded)
    path = path.resolve()  # the file behind a link is replaced, and the link stays
    partial = path.with_name(f".{path.name}.part")
    partial.write_bytes(text.encode())
    shutil.copymode(path, partial)
    partial.replace(path)
    for name, (version, source) in {
        "floorkit": (floorkit.__version__, registry.core_source()),
        **recorded,
    }.items():
        click.echo(f"{name} {version} {source}")


def verify_results(folder: Path, root: Path | None, as_json: bool) -> None:
    """``floorkit verify``: what differs from provenance.json and from the written files."""
    problems: dict[str, list[Problem]] = {}
    index = results.read_index(folder)
    for name, entry in index["entries"].items():
        place = folder / name / FILE
        try:
            recorded = json.loads(place.read_text(encoding="utf-8"))
            problems[name] = verify(recorded, folder / name, root)
        except (OSError, ValueError, KeyError) as error:
            problems[name] = [Problem("provenance cannot be read", str(place), str(error))]
        problems[name] += results.changed_files(folder / name, entry["files"])
    if as_json:
        plain = {name: [attrs.asdict(one) for one in found] for name, found in problems.items()}
        click.echo(to_json({"results": str(folder), "entries": plain}), nl=False)
    for name, found in problems.items():
        if not as_json and not found:
            click.echo(f"{name}: code, inputs and result files are as recorded")
    changed = [
        attrs.evolve(problem, where=f"{name}: {problem.where}")
        for name, found in problems.items()
        for problem in found
    ]
    if changed:
        difference = SourceDriftError(changed)
        difference.headline = "something changed since the results were made"
        raise difference


@contextmanager
def workplace(request: Request, root: Path) -> Iterator[tuple[Cache, Executor]]:
    """The cache of manifests in ``root``, and where units are computed, for the length of a run."""
    executor = Executor.parse(request.executor, request.jobs)
    with ExitStack() as stack:
        try:
            cache = stack.enter_context(Cache.open(location(root), request.fresh, request.rehash))
        except OSError as error:
            if executor.backend != "local":
                raise
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="floorkit-"))
            cache = stack.enter_context(Cache.open(Path(folder), request.fresh, request.rehash))
            if not request.quiet:
                reason = error.strerror or str(error)
                click.echo(f"floorkit: nothing is cached: {location(root)}: {reason}", err=True)
        yield cache, stack.enter_context(executor)


def tell_reuse(request: Request, cache: Cache, plans: Sequence[Plan]) -> None:
    """Say on standard error what is taken from the cache, and with --explain-cache why not more."""
    for one in plans:
        if request.explain_cache:
            for line in one.explain():
                click.echo(line, err=True)
        if one.reused and not request.quiet:
            count = len(one.prepared.dataset.units)
            click.echo(f"{one.prepared.context.name}: {one.reused} of {count} units reused", err=True)
    if request.rehash and not request.quiet:
        click.echo(f"{len(cache.digests.wrong)} remembered digests were wrong", err=True)
    for path in cache.digests.wrong:
        click.echo(f"{path}: changed, although size, time and inode did not", err=True)


@contextmanager
def progress(title: str, total: int, request: Request) -> Iterator[Callable[[int], None] | None]:
    """A progress bar on standard error: only on a terminal, and not with --quiet."""
    if request.quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task(title, total=total, rate="")

        def told(done: int) -> None:
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            bar.update(task, advance=done, rate=f"{speed:.1f} units/s" if speed else "")

        yield told
