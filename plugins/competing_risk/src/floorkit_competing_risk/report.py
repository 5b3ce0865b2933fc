"""Figures to sections: the CSV files whose columns are a contract, plots by horizon, audit timelines.

Controls stand in every table and plot of figures; summary_scored_events.csv holds the user's runs alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from typing import Any

from floorkit.core.sections import (
    ColumnSpec,
    PlotSection,
    Section,
    Series,
    SummarySection,
    TableSection,
    TextSection,
)
from floorkit.core.values import Figure, Result, RunResult, figure_key
from floorkit.formats.dense import horizon_seconds
from floorkit.formats.recall_curves import recall_curves
from floorkit.numerics import recall_name
from floorkit_competing_risk.counts import strata
from floorkit_competing_risk.data import ALL
from floorkit_competing_risk.kernel import FAMILIES, INELIGIBLE, NO_ROW, STATUSES
from floorkit_competing_risk.measure import COMPARED, COUNT_NAMES, FRAMEWISE, NAMES, Place, places
from floorkit_competing_risk.params import CompetingRiskParams
from floorkit_competing_risk.timelines import timeline_sections

Row = list[Any]


def sections(result: Result) -> list[Section]:
    """Everything that competing_risk adds to the core's report."""
    params: CompetingRiskParams = result.context.params
    runs = [FigureRows(run, params, _exploratory(result)) for run in result.runs.values()]
    found: list[Section] = [
        *_count_table(runs, params),
        *_strata_table(runs, params),
        *_comparability(result, params),
        _events_table(runs, params),
        _framewise_table(runs),
        _scored_events_table(result, params),
        *recall_curves(result, params.headline_horizon, f"at {params.headline_horizon_seconds} s"),
        *_plots(runs, params),
        *timeline_sections(result, params),
        SummarySection({"runs": {one.run.name: one.summary() for one in runs}}),
    ]
    return found


def _exploratory(result: Result) -> bool:
    return any(mark.name == "exploratory" for mark in result.marks)


# --- figures by place ---------------------------------------------------------------------------


def event_names(params: CompetingRiskParams) -> list[str]:
    """Names of the event figures, in the order of the columns of summary_events.csv."""
    names = [f"{family}_{name}" for family in FAMILIES for name in (*COUNT_NAMES, "ap")]
    at_recall = [
        f"{prefix}recall_{recall_name(recall)}"
        for recall in params.matched_recalls
        for family in NAMES
        for prefix in family.in_order
    ]
    return [*names, "response_short_resume", *at_recall]


def framewise_names() -> list[str]:
    """Names of the framewise figures, in the order of the columns of summary_framewise.csv."""
    (rows, positive, ap), *others = FRAMEWISE
    return [rows, ap, *chain(*others), "brier", positive]


class FigureRows:
    """The figures of one run, by horizon and stratum."""

    def __init__(self, run: RunResult, params: CompetingRiskParams, exploratory: bool) -> None:
        self.run = run
        self.params = params
        self.exploratory = exploratory
        self.places = places(strata(run.pool), params)
        self.figures = {figure.key: figure for figure in run.figures}

    def figure(self, name: str, place: Place) -> Figure | None:
        return self.figures.get(name + place.suffix)

    def value(self, name: str, place: Place) -> float | int | None:
        """The figure's value; counts as integers."""
        figure = self.figure(name, place)
        if figure is None:
            return None
        return figure.count if figure.unit == "count" else figure.value

    @property
    def wholes(self) -> list[Place]:
        """The places that are no single stratum, by horizon."""
        return [place for place in self.places if place.is_whole]

    @property
    def headline(self) -> Place:
        return next(place for place in self.wholes if place.headline)

    def event_rows(self) -> Iterator[Row]:
        for place in self.places:
            yield [
                self.run.name,
                place.at["horizon_s"],
                place.at.get("stratum", ALL),
                self.params.decision_timing,
                self.exploratory,
                *(self.value(name, place) for name in event_names(self.params)),
            ]

    def framewise_rows(self) -> Iterator[Row]:
        *first, positive = framewise_names()
        for place in self.wholes:
            values = [self.value(name, place) for name in first]
            last = self.value(positive, place)
            yield [self.run.name, place.at["horizon_s"], *values, self.exploratory, last]

    def summary(self) -> dict[str, Any]:
        """The figures as data: one object for each row of the two CSV files."""
        return {
            "events": [dict(zip(event_columns(self.params), row, strict=True)) for row in self.event_rows()],
            "framewise": [dict(zip(framewise_columns(), row, strict=True)) for row in self.framewise_rows()],
        }


def event_columns(params: CompetingRiskParams) -> list[str]:
    """Columns of summary_events.csv: a contract."""
    return ["run", "horizon_s", "stratum", "decision_timing", "exploratory", *event_names(params)]


def framewise_columns() -> list[str]:
    """Columns of summary_framewise.csv: a contract."""
    *first, positive = framewise_names()
    return ["run", "horizon_s", *first, "exploratory", positive]


# --- files --------------------------------------------------------------------------------------


def _events_table(runs: Sequence[FigureRows], params: CompetingRiskParams) -> TableSection:
    return TableSection(
        "Events by run, horizon and stratum",
        [_column(name) for name in event_columns(params)],
        lambda: chain.from_iterable(one.event_rows() for one in runs),
        file="summary_events.csv",
        shown=False,
    )


def _framewise_table(runs: Sequence[FigureRows]) -> TableSection:
    return TableSection(
        "Framewise endpoints by run and horizon (secondary)",
        [_column(name) for name in framewise_columns()],
        lambda: chain.from_iterable(one.framewise_rows() for one in runs),
        file="summary_framewise.csv",
        shown=False,
    )


def _column(name: str) -> ColumnSpec:
    if name in {"run", "stratum", "decision_timing"}:
        return ColumnSpec(name)
    if name == "exploratory":
        return ColumnSpec(name, kind="flag")
    is_count = (
        "_count_" in name or name.rpartition("_")[2] in {*COUNT_NAMES, "rows", "resume"} or name == "rows"
    )
    return ColumnSpec(name, kind="integer" if is_count else "float")


def _scored_events_table(result: Result, params: CompetingRiskParams) -> TableSection:
    recalls = [recall_name(recall) for recall in params.matched_recalls]
    columns = [
        *map(ColumnSpec, ("run", "session")),
        ColumnSpec("recording", kind="integer"),
        *map(ColumnSpec, ("family", "stratum")),
        *(
            ColumnSpec(f"{name}_row", kind="integer")
            for name in ("boundary", "source", "outcome", "competing")
        ),
        ColumnSpec("horizon_s", kind="float"),
        ColumnSpec("status"),
        ColumnSpec("label", kind="integer"),
        ColumnSpec("score", kind="float"),
        *(ColumnSpec(f"trigger_at_recall_{recall}", kind="flag") for recall in recalls),
    ]
    return TableSection(
        "Scored candidates",
        columns,
        lambda: chain.from_iterable(_scored_rows(run, params, recalls) for run in result.user_runs),
        file="summary_scored_events.csv",
        shown=False,
    )


def _scored_rows(run: RunResult, params: CompetingRiskParams, recalls: Sequence[str]) -> Iterator[Row]:
    """One row a candidate and horizon; an ineligible candidate has one row, at no horizon."""
    thresholds = {(p.at["family"], p.at["horizon"], p.at["recall"]): p.threshold for p in run.points}
    chosen = {
        (family, k): [thresholds.get((family, k, recall)) for recall in recalls]
        for family in FAMILIES
        for k in range(1, params.horizons + 1)
    }
    seconds = [horizon_seconds(k) for k in range(1, params.horizons + 1)]
    nothing: Row = [None] * len(recalls)
    for index, unit in enumerate(run.pool.units):
        table = run.pool.table(index, "candidates")
        columns = [
            table[name].tolist()
            for name in ("recording", "family", "stratum", "boundary", "source", "outcome", "competing")
        ]
        values = [table[name].tolist() for name in ("status", "label", "score")]
        for recording, family, stratum, b, s, w, c, statuses, labels, scores in zip(
            *columns, *values, strict=True
        ):
            name = FAMILIES[family]
            rows = [b, s, None if w == NO_ROW else w, None if c == NO_ROW else c]
            start = [run.name, unit.name, recording, name, table.categories["stratum"][stratum], *rows]
            if statuses[0] == INELIGIBLE:
                yield [*start, None, STATUSES[INELIGIBLE], None, None, *nothing]
                continue
            for k, (status, label, score) in enumerate(zip(statuses, labels, scores, strict=True), start=1):
                if label < 0:
                    yield [*start, seconds[k - 1], STATUSES[status], None, None, *nothing]
                else:
                    fired = [None if at is None else score >= at for at in chosen[name, k]]
                    yield [*start, seconds[k - 1], STATUSES[status], label, score, *fired]


# --- shown --------------------------------------------------------------------------------------


def _count_table(runs: Sequence[FigureRows], params: CompetingRiskParams) -> list[TableSection]:
    names = (*COUNT_NAMES, "short_resume")
    headings = ("cand.", "inel.", "pos.", "neg.", "cens.", "unobs.", "inv.", "short")
    rows = [
        [one.run.name, family, *(one.value(f"{family}_{name}", one.headline) for name in names)]
        for one in runs
        if one.places
        for family in FAMILIES
    ]
    columns = [
        ColumnSpec("run"),
        ColumnSpec("family"),
        *(ColumnSpec(name, heading, "integer") for name, heading in zip(names, headings, strict=True)),
    ]
    note = (
        "Candidates are boundaries of the others; positives and negatives alone are scored. Ineligible: the "
        "wearer's state at the source row does not fit. Short resumes: response negatives whose competing "
        f"boundary follows within {params.midturn_pause_max_seconds} s."
    )
    return [TableSection(f"Candidates at {params.headline_horizon_seconds} s", columns, rows, note=note)]


def _strata_table(runs: Sequence[FigureRows], params: CompetingRiskParams) -> list[TableSection]:
    recall = params.headline_recall
    if recall is None or not any(strata(one.run.pool) for one in runs):
        return []
    suffix = f"recall_{recall_name(recall)}"
    response, stop = NAMES
    rates = {
        "false entry": response.rate + suffix,
        "short resume": response.short_rate + suffix,
        "false stop": stop.rate + suffix,
    }
    columns = [ColumnSpec("run"), ColumnSpec("stratum")]
    for heading, name in rates.items():
        count, denominator = f"{name}_count", f"{name}_denominator"
        columns += [
            ColumnSpec(name, heading, "rate", count, denominator),
            ColumnSpec(count, kind="integer"),
            ColumnSpec(denominator, kind="integer"),
        ]
    rows = []
    for one in runs:
        for place in one.places:
            if place.horizon == one.headline.horizon and not place.is_whole:
                figures = [one.figures[name + place.suffix] for name in rates.values()]
                cells = [(figure.value, figure.count, figure.denominator) for figure in figures]
                rows.append([one.run.name, place.at["stratum"], *chain(*cells)])
    title = f"Strata at {params.headline_horizon_seconds} s, recall {recall_name(recall)}"
    return [TableSection(title, columns, rows, note="Thresholds are those of the whole.")]


def _comparability(result: Result, params: CompetingRiskParams) -> list[TextSection]:
    """Says at which horizons the counts of two runs differ, so that their figures cannot be compared."""
    paragraphs = []
    runs = [FigureRows(run, params, False) for run in result.user_runs]
    for a, b in combinations(runs, 2):
        differing = {
            place.at["horizon_s"]: words for place in a.wholes if (words := _differences(a, b, place))
        }
        if differing:
            horizons = ", ".join(map(str, differing))
            last = list(differing)[-1]
            paragraphs.append(
                f"{a.run.name} and {b.run.name} are not comparable at {horizons} s. "
                f"At {last} s: {', '.join(differing[last])}."
            )
    if not paragraphs:
        return []
    paragraphs.append(
        "With common_support = true, candidates that are invalid in one run are left out of all."
    )
    return [TextSection("Runs with different counts", "\n".join(paragraphs), file="comparability.txt")]


def _differences(a: FigureRows, b: FigureRows, place: Place) -> list[str]:
    """In words, the counts at one horizon that two runs do not share."""
    names = [f"{family}_{name}" for family in FAMILIES for name in COMPARED] + ["response_short_resume"]
    pairs = [(name, a.value(name, place), b.value(name, place)) for name in names]
    return [f"{name.replace('_', ' ')} {x} and {y}" for name, x, y in pairs if x != y]


def _plots(runs: Sequence[FigureRows], params: CompetingRiskParams) -> list[PlotSection]:
    """One plot by horizon for each rate at the headline recall, the achieved recalls, and the APs."""
    plots = []
    if params.headline_recall is not None:
        suffix = f"recall_{recall_name(params.headline_recall)}"
        response, stop = NAMES
        for title, prefix in (
            ("False entries", response.rate),
            ("False entries in short resumes", response.short_rate),
            ("False stops", stop.rate),
            ("Achieved response recall", response.recall),
            ("Achieved yield recall", stop.recall),
        ):
            at = recall_name(params.headline_recall)
            plots.append(_plot(f"{title} at requested recall {at}", "rate", prefix + suffix, runs))
    for family in FAMILIES:
        plots.append(_plot(f"Event AP, {family}", "average precision", f"{family}_ap", runs))
    for _, _, ap in FRAMEWISE:
        title = ap.removesuffix("_ap").replace("_", " ")
        plots.append(_plot(f"Framewise AP, {title} (secondary)", "average precision", ap, runs))
    return plots


def _plot(title: str, y_label: str, name: str, runs: Sequence[FigureRows]) -> PlotSection:
    series = []
    for one in runs:
        x = [float(place.at["horizon_s"]) for place in one.wholes]
        y = [one.value(name, place) for place in one.wholes]
        known = [one.run.intervals.get(figure_key(name, place.at)) for place in one.wholes]
        band = [interval for interval in known if interval is not None and interval.low is not None]
        low, high = [interval.low for interval in band], [interval.high for interval in band]
        whole = len(band) == len(x)
        series.append(
            Series(one.run.name, x, y, low if whole else (), high if whole else (), control=one.run.control)
        )
    return PlotSection(title, "horizon (s)", y_label, series)
