"""The commands ``floorkit reviews ...``: count, prepare, compare and audit reviewed opportunities."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from floorkit.core.values import Interval
    from floorkit.formats.reviews import Reviews
    from floorkit.formats.reviews_agreement import Resampling

FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.group()
def reviews() -> None:
    """Count, prepare, compare and audit reviewed opportunities (JSON Lines, plain or gzipped)."""


def _resampling_options(command: Any) -> Any:
    for decorator in reversed(
        [
            click.option(
                "--cluster",
                type=click.Choice(["session", "event"]),
                default="session",
                show_default=True,
                help="What intervals resample; events of one session are not independent.",
            ),
            click.option(
                "--resamples", type=click.IntRange(100), default=2000, show_default=True, metavar="B"
            ),
            click.option("--seed", type=click.IntRange(0), default=0, show_default=True),
            click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output."),
        ]
    ):
        command = decorator(command)
    return command


@reviews.command()
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def stats(file: Path, as_json: bool) -> None:
    """Count the lines of FILE by session, label, origin, reviewer and boundary correction.

    \b
    Example:
      floorkit reviews stats reviews.jsonl.gz
    """
    from floorkit.core.sections import to_json
    from floorkit.formats.reviews_counts import counts

    found = _read(file)
    tables = counts(found)
    if as_json:
        click.echo(to_json({"file": str(file), "lines": len(found), **tables}), nl=False)
        return
    click.echo(f"{file}: {len(found)} lines")
    for name, table in tables.items():
        click.echo(f"\n{name.replace('_', ' ')}")
        width = max((len(key) for key in table), default=0)
        for key, value in table.items():
            cells = value if isinstance(value, dict) else {"": value}
            told = "  ".join(f"{inner} {number}".strip() for inner, number in cells.items())
            click.echo(_wrapped(f"  {key:<{width}}  ", told))


@reviews.command()
@click.argument("targets", type=FOLDER)
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
@click.option("--session", "sessions", multiple=True, metavar="SESSION", help="Only this one (repeatable).")
@click.option(
    "--shortest", type=float, default=0.6, show_default=True, metavar="S", help="Shortest region, s."
)
@click.option("--longest", type=float, default=2.0, show_default=True, metavar="S", help="Longest region, s.")
@click.option("--replace", is_flag=True, help="Write over FILE; it may hold reviews.")
def template(
    targets: Path, output: Path, sessions: tuple[str, ...], shortest: float, longest: float, replace: bool
) -> None:
    """Mine TARGETS (SESSION.npy activity arrays) into an UNREVIEWED file for annotators.

    Lists the wearer's onsets and offsets, and regions in which the wearer could have entered or yielded
    but did not. Annotators set label, reviewer and boundary_correction_s.

    \b
    Example:
      floorkit reviews template targets --session Session_4 --output session4.jsonl
    """
    from collections import Counter

    from floorkit.core.errors import ManifestError, Problem
    from floorkit.formats.reviews_template import Mining, candidates, read_targets, write_lines
    from floorkit.numerics import whole_rows

    rows = {name: whole_rows(value) for name, value in (("shortest", shortest), ("longest", longest))}
    first, last = rows["shortest"], rows["longest"]
    if not first or not last or not 0 < first <= last:
        expected = "whole multiples of 0.2 s, 0 < shortest <= longest"
        raise ManifestError(
            Problem("wrong region lengths", "--shortest, --longest", f"{shortest}, {longest}", expected)
        )
    mined: Counter[str] = Counter()

    def lines() -> Any:
        for one in read_targets(targets, sessions):
            for line in candidates(one, Mining(first, last)):
                mined[line["origin"]] += 1
                yield line

    count = write_lines(output, lines(), replace)
    told = ", ".join(f"{number} {origin}" for origin, number in sorted(mined.items()))
    click.echo(f"{output}: {count} UNREVIEWED lines ({told})")


@reviews.command()
@click.argument("a", type=FILE)
@click.argument("b", type=FILE)
@_resampling_options
def agreement(a: Path, b: Path, cluster: Any, resamples: int, seed: int, as_json: bool) -> None:
    """Compare two reviewers' labels of the same events: A and B, joined by event_id.

    Prints the confusion matrix, percent agreement and Cohen's kappa with bootstrap intervals, and every
    disagreement. Events that one of the two has not reviewed are counted, and take no part.

    \b
    Example:
      floorkit reviews agreement anna.jsonl bert.jsonl
    """
    from attrs import asdict

    from floorkit.core.sections import to_json
    from floorkit.formats.reviews_agreement import JUDGED, Resampling
    from floorkit.formats.reviews_agreement import agreement as agree

    how = Resampling(cluster, resamples, seed)
    found = agree(_read(a), _read(b), how)
    total = int(found.matrix.sum())
    if as_json:
        data = asdict(found, value_serializer=_plain)
        click.echo(
            to_json({"a": str(a), "b": str(b), "labels": JUDGED, "resampling": asdict(how), **data}), nl=False
        )
        return
    click.echo(f"A {a}\nB {b}\n")
    click.echo(
        f"{total} events reviewed by both; {found.unreviewed} shared events not reviewed by both\n"
        f"only in A {found.only_a}, only in B {found.only_b}"
    )
    width = max(map(len, JUDGED)) + 4
    cell = max(4, len(str(found.matrix.max()))) + 2
    click.echo(
        f"\n{'A (rows), B (columns)':<{width}}" + "".join(f"{k:>{cell}}" for k in range(1, len(JUDGED) + 1))
    )
    for k, (label, row) in enumerate(zip(JUDGED, found.matrix.tolist(), strict=True), start=1):
        click.echo(f"{k} {label:<{width - 2}}" + "".join(f"{number:>{cell}}" for number in row))
    same = int(found.matrix.trace())
    percent = "none" if found.agreement is None else f"{100 * found.agreement:.1f} % ({same}/{total})"
    kappa = f"none ({found.reason})" if found.kappa is None else f"{found.kappa:.3f}"
    click.echo(f"\nagreement      {percent}  {_interval(found.agreement_interval, 100)}")
    click.echo(f"Cohen's kappa  {kappa}  {_interval(found.kappa_interval, 1)}")
    click.echo(_how(how))
    click.echo(f"equal labels with another boundary correction: {found.corrections}")
    click.echo(f"\n{len(found.disagreements)} disagreements")
    for one in found.disagreements:
        click.echo(
            f"  {one.event_id}  {one.session}  A {one.label_a} (line {one.line_a})  "
            f"B {one.label_b} (line {one.line_b})"
        )


@reviews.command("recall-audit")
@click.argument("candidates", type=FILE)
@click.argument("events", type=FILE)
@click.option(
    "--tolerance", type=float, default=0.2, show_default=True, metavar="S", help="Seconds, inclusive."
)
@_resampling_options
def recall_audit(
    candidates: Path,
    events: Path,
    tolerance: float,
    cluster: Any,
    resamples: int,
    seed: int,
    as_json: bool,
) -> None:
    """Share of EVENTS that the list CANDIDATES contains, per family, with interval.

    EVENTS are WEARER_ENTRY and INT_YIELD lines that a person found by annotating whole segments without
    seeing the candidates. An event counts as contained where a candidate of its session and family has
    its anchor within the tolerance.

    \b
    Example:
      floorkit reviews recall-audit reviews.jsonl continuous.jsonl
    """
    from attrs import asdict

    from floorkit.core.errors import ManifestError, Problem
    from floorkit.core.sections import to_json
    from floorkit.formats.reviews_agreement import Resampling, candidate_recall

    frames = round(tolerance * 20) if math.isfinite(tolerance) else -1
    if frames < 0 or abs(frames - tolerance * 20) > 1e-9:
        expected = "a whole number of 20 Hz frames (0.05 s), from 0"
        raise ManifestError(Problem("wrong tolerance", "--tolerance", repr(tolerance), expected))
    how = Resampling(cluster, resamples, seed)
    results = candidate_recall(_read(candidates), _read(events), frames, how)
    if as_json:
        data = [{**asdict(one, value_serializer=_plain), "recall": one.recall} for one in results]
        head = {"candidates": str(candidates), "events": str(events), "tolerance_s": tolerance}
        click.echo(to_json({**head, "resampling": asdict(how), "families": data}), nl=False)
        return
    click.echo(f"candidates {candidates}\nevents     {events}\n")
    for one in results:
        share = (
            "none (no events)"
            if one.recall is None
            else f"{100 * one.recall:.1f} % ({one.found}/{one.events})"
        )
        click.echo(f"{one.family:<6} contained within {tolerance} s: {share}  {_interval(one.interval, 100)}")
    click.echo(_how(how))
    missed = [miss for one in results for miss in one.missed]
    click.echo(f"\n{len(missed)} events without a candidate")
    for miss in missed:
        near = (
            "no candidate of its session and family"
            if miss.nearest_s is None
            else f"nearest {miss.nearest_s:.2f} s off"
        )
        click.echo(f"  {miss.event_id}  {miss.session}  {miss.family}  {miss.time_s:.2f} s  {near}")


def _read(path: Path) -> Reviews:
    from floorkit.formats.reviews import sound_reviews
    from floorkit.formats.reviews_line import Demands

    return sound_reviews(path, str(path), Demands())


def _wrapped(head: str, text: str) -> str:
    """``text`` behind ``head``, folded between its double spaces at the width of the terminal."""
    room = max(20, shutil.get_terminal_size().columns - len(head))
    lines = [""]
    for part in text.split("  "):
        joined = f"{lines[-1]}  {part}" if lines[-1] else part
        if len(joined) <= room:
            lines[-1] = joined
        else:
            lines.append(part)
    return head + ("\n" + " " * len(head)).join(lines)


def _plain(_: Any, __: Any, value: Any) -> Any:
    """Arrays as lists, for attrs.asdict."""
    return value.tolist() if hasattr(value, "tolist") else value


def _interval(interval: Interval, scale: float) -> str:
    if interval.low is None or interval.high is None:
        return f"no interval: {interval.reason}"
    decimals = 1 if scale > 1 else 3
    remark = f" ({interval.remark})" if interval.remark else ""
    return f"[{scale * interval.low:.{decimals}f}, {scale * interval.high:.{decimals}f}]{remark}"


def _how(how: Resampling) -> str:
    return (
        f"{100 * how.level:.0f} % bootstrap over {how.cluster}s, {how.resamples} resamples, seed {how.seed}"
    )
