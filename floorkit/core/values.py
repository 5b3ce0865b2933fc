"""The typed values that pass between the core and a protocol's hooks.

They are frozen and hold plain data (text, numbers, paths, NumPy arrays) and module-level functions,
never live objects, so that they can cross to a worker by value and be told apart by content.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import field, frozen
from attrs.converters import optional

if TYPE_CHECKING:
    import numpy as np

    from floorkit.core.pool import Pool

Split = Literal["evaluated", "calibration"]
UnitKey = tuple[Split, str]
"""(split, unit name): what a unit is told by, since one session may stand in both splits."""


# --- what a protocol is -------------------------------------------------------------------------


@frozen
class Upstream:
    """A reference that the protocol was checked against; goes into every result.

    ``sha256`` is that of the official file, empty where no official file was at hand.
    """

    repository: str
    commit: str = ""
    path: str = ""
    sha256: str = ""
    note: str = ""


@frozen
class MatchedRecall:
    """Where the core's default ``floorkit_calibrate`` finds positives and their scores.

    Parameters
    ----------
    table
        Name of the table with one row per opportunity.
    group
        Column of codes with named categories (for example the family); one set of operating
        points a category.
    label
        Column of shape [N] or [N, H]: 1 positive, 0 negative, -1 takes no part.
    score
        Column of the same shape; a higher score triggers first.
    axis
        Name of the second axis where there is one (``"horizon"``: points carry 1 .. H), else "".
    """

    table: str
    group: str
    label: str = "label"
    score: str = "score"
    axis: str = ""


@frozen
class Protocol:
    """What a plugin declares about one protocol.

    Parameters
    ----------
    id
        Name in results and signatures, ``[a-z][a-z0-9_]*``.
    title
        One line for report headers.
    params
        attrs class of the parameters (see ``floorkit.core.structure``); every field has a default
        or is required, and documents unit and range.
    measures, caveats
        What it measures, and what it does not, as sentences that reports print.
    upstream
        References; see Upstream.
    marks
        Names of the marks its results may carry; every CSV has a column for each.
    matched_recall
        For protocols that calibrate by the core's default; None for others. The parameter class
        then has ``matched_recalls: tuple[float, ...]``.
    clusters
        Names of columns, present in all its tables, by which ``cluster = "NAME"`` may resample
        instead of by unit.
    unit_noun
        What a unit is called in reports ("session", "conversation", "recording").
    """

    id: str
    title: str
    params: type
    measures: str
    caveats: tuple[str, ...] = ()
    upstream: tuple[Upstream, ...] = ()
    marks: tuple[str, ...] = ()
    matched_recall: MatchedRecall | None = None
    clusters: tuple[str, ...] = ()
    unit_noun: str = "unit"


@frozen
class Context:
    """What every hook may know: the manifest's entry, resolved. Crosses to workers.

    ``name`` is the user's name of the entry, ``params`` an instance of ``Protocol.params``,
    ``root`` the manifest's folder, and ``seed`` the one seed of everything random.
    """

    name: str
    protocol: str
    params: Any
    root: Path
    seed: int = 0


@frozen
class Mark:
    """A property that every output of a result must show.

    ``exploratory``, ``provisional`` and ``unverified`` are warnings; a protocol may add its own,
    also of level "info" (``Mark("window", "full", "info")``).
    """

    name: str
    text: str
    level: Literal["info", "warning"] = "warning"


# --- what goes in -------------------------------------------------------------------------------


@frozen
class Source:
    """Where something is loaded from: named files (hashed by the core) and plain values."""

    files: Mapping[str, Path] = field(factory=dict)
    values: Mapping[str, Any] = field(factory=dict)


@frozen
class Unit:
    """One session, conversation or recording: the unit of scoring, caching and resampling.

    ``info`` holds plain facts for reports (``{"conversation_type": "casual"}``).
    """

    name: str
    split: Split
    gold: Source
    info: Mapping[str, Any] = field(factory=dict)

    @property
    def key(self) -> UnitKey:
        return self.split, self.name


@frozen
class Dataset:
    """The ordered units and how to load one unit's gold.

    Parameters
    ----------
    units
        Evaluated units and calibration units, in the order of the manifest; reports and files
        keep it.
    load
        Module-level function ``load(context, unit) -> gold``. Runs in workers. Validates contents;
        raises InputError with all problems of the unit.
    files
        Files behind the whole (reviews, strata), by name; hashed into the data fingerprint.
    marks, problems
        Marks of every result on it; problems found so far (the core goes on to check the runs, then
        stops with all problems together).
    """

    units: tuple[Unit, ...]
    load: Callable[[Context, Unit], Any]
    files: Mapping[str, Path] = field(factory=dict)
    marks: tuple[Mark, ...] = ()
    problems: tuple[Any, ...] = ()
    provenance: Mapping[str, Any] = field(factory=dict)
    """Further facts for provenance.json (a hub revision, for example)."""

    def split(self, split: Split) -> tuple[Unit, ...]:
        return tuple(unit for unit in self.units if unit.split == split)


@frozen
class Run:
    """One set of predictions: a model's, or a control's.

    Parameters
    ----------
    name
        The user's name, or ``control:NAME``.
    sources
        For each unit key the files and values behind its prediction. A unit of the dataset without
        one is missing: an error unless the manifest lists it under the run's ``absent``.
    load
        Module-level function ``load(context, unit, source, gold) -> prediction``. Runs in workers,
        raises InputError with all problems of the unit.
    control
        True for input-free predictors.
    extra
        Units that have predictions but do not take part.
    """

    name: str
    sources: Mapping[UnitKey, Source]
    load: Callable[[Context, Unit, Source, Any], Any]
    control: bool = False
    extra: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    problems: tuple[Any, ...] = ()


# --- what is computed ---------------------------------------------------------------------------


def _checked_columns(columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
    import numpy as np

    arrays = {name: np.ascontiguousarray(column) for name, column in columns.items()}
    lengths = {name: len(array) if array.ndim else -1 for name, array in arrays.items()}
    if len(set(lengths.values())) > 1 or -1 in lengths.values():
        raise ValueError(f"the columns of a table must be equally long, found {lengths}")
    kinds = {name: array.dtype.str for name, array in arrays.items() if array.dtype.kind not in "biuf"}
    if kinds:
        raise ValueError(f"table columns hold booleans, integers or floats, found {kinds}")
    return arrays


@frozen(eq=False)
class Table:
    """Equally long NumPy columns: what ``floorkit_score`` returns for a unit.

    Parameters
    ----------
    columns
        Name to array of shape [N] or [N, ...], bool, integer or float. Text is coded: see
        ``categories``. Missing floats are NaN, missing integers -1.
    categories
        For columns of codes: the names that 0, 1, ... stand for. The same in every unit.
    """

    columns: Mapping[str, np.ndarray] = field(converter=_checked_columns)
    categories: Mapping[str, tuple[str, ...]] = field(factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]


Tables = Mapping[str, Table]
"""A unit's tables by name. Names, columns and categories are the same in every unit."""

Coordinate = str | int | float


@frozen
class OperatingPoint:
    """A threshold that was chosen once, on calibration data, and stays fixed.

    Parameters
    ----------
    at
        What it is for: ``{"family": "response", "horizon": 3, "recall": "0.8"}``. Recalls are named
        by Python's repr of the number.
    threshold
        An event triggers at score >= threshold (or as the protocol says); None with a reason.
    positives
        Calibration positives it was chosen from.
    in_sample
        True where it was chosen on the evaluated units themselves.
    """

    at: Mapping[str, Coordinate]
    threshold: float | None
    positives: int | None = None
    in_sample: bool = False
    reason: str = ""
    details: Mapping[str, Any] = field(factory=dict)


@frozen
class Figure:
    """One number of a result, with what is needed to read it.

    Parameters
    ----------
    name
        The field's name, as in the protocol's output files.
    value
        The number, or None with ``reason`` (``zero_denominator``, ``no_positives``, ...). Never NaN.
    unit
        ``"rate"`` (0 .. 1, shown as percent), ``"AP"``, ``"count"``, ``"ms"``, ``"per minute"``, ...
    count, denominator
        What a rate or mean is made of; a count figure has only ``count``.
    higher_is_better
        None where neither is.
    at
        Coordinates (``{"family": "response", "horizon_s": 0.2, "recall": "0.8"}``).
    headline
        Shown first, with interval and comparison.
    label
        Short column heading for reports; the name where empty.
    support
        Counts that two runs must share to be compared on this figure. Without any their denominators
        must agree: name counts where the denominator depends on the run (precision, a mean latency).
    read_with
        Key of the figure that this one must be read beside (an error rate's achieved recall): a
        better value here with a worse one there is said in words.
    interval
        Give it an interval although it is no headline figure (a curve over horizons).
    rankings
        For an average precision taken by ``Pool.average_precision``: the (table, key) it was taken under,
        or several whose mean it is. The core then resamples it without calling the measure hook again.
    """

    name: str
    value: float | None = field(converter=optional(float))
    unit: str = "rate"
    count: float | int | None = None
    denominator: float | int | None = None
    higher_is_better: bool | None = None
    reason: str = ""
    at: Mapping[str, Coordinate] = field(factory=dict)
    headline: bool = False
    label: str = ""
    support: Mapping[str, int | None] = field(factory=dict)
    read_with: str = ""
    interval: bool = False
    rankings: tuple[tuple[str, Hashable], ...] = ()

    @property
    def key(self) -> str:
        """Name and coordinates as one text, unique in a run."""
        return figure_key(self.name, self.at)

    @property
    def words(self) -> str:
        """Label (or name) and coordinates for sentences: ``false entry @ 0.8 (horizon_s 2.0)``."""
        inner = ", ".join(f"{axis} {value}" for axis, value in self.at.items())
        words = self.label or self.name.replace("_", " ")
        return f"{words} ({inner})" if inner else words


def figure_key(name: str, at: Mapping[str, Coordinate]) -> str:
    """``name[coordinate=value,...]``, coordinates in their given order; the bare name without any."""
    inner = ",".join(f"{axis}={value}" for axis, value in at.items())
    return f"{name}[{inner}]" if inner else name


@frozen
class Interval:
    """A percentile bootstrap interval, or why there is none (``reason``); ``remark`` cautions."""

    low: float | None
    high: float | None
    level: float = 0.95
    resamples: int = 0
    clusters: int = 0
    reason: str = ""
    remark: str = ""


@frozen
class Comparison:
    """Run B against run A on one headline figure (numerics spec, "Paired comparison").

    ``difference`` is B - A in the figure's unit, ``relative_reduction`` (A - B) / A of the error (1 - rate
    where a higher rate is better).
    ``p_value`` is the sign-flip permutation p over ``clusters`` units (``excluded`` took no part),
    ``p_adjusted`` Holm's over ``tests`` tests, ``smallest_p`` what this many units can give.
    ``not_comparable`` lists in words what differs; the numbers are then None. ``cautions`` are
    sentences to print beside the number.
    """

    key: str
    a: str
    b: str
    a_value: float | None
    b_value: float | None
    difference: float | None = None
    relative_reduction: float | None = None
    interval: Interval | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    tests: int = 0
    smallest_p: float | None = None
    clusters: int = 0
    excluded: int = 0
    won: int = 0
    lost: int = 0
    tied: int = 0
    not_comparable: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


@frozen
class Coverage:
    """Units expected, scored, missing (declared absent by the manifest) and extra, for one run."""

    expected: int
    scored: int
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()


@frozen(eq=False)
class RunResult:
    """Everything computed for one run.

    ``pool`` holds the evaluated units' tables, ``calibration`` those of the calibration units
    (None in-sample).
    """

    name: str
    control: bool
    coverage: Coverage
    points: tuple[OperatingPoint, ...]
    figures: tuple[Figure, ...]
    pool: Pool
    calibration: Pool | None = None
    intervals: Mapping[str, Interval] = field(factory=dict)

    def figure(self, name: str, **at: Coordinate) -> Figure:
        """The figure of that name whose coordinates include ``at``; KeyError where there is none."""
        for figure in self.figures:
            if figure.name == name and all(figure.at.get(k) == v for k, v in at.items()):
                return figure
        raise KeyError(figure_key(name, at))


@frozen(eq=False)
class Result:
    """One manifest entry, evaluated: what ``floorkit_report`` receives."""

    context: Context
    protocol: Protocol
    plugin: str
    version: str
    signature: str
    dataset: Dataset
    runs: Mapping[str, RunResult]
    marks: tuple[Mark, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    controls: tuple[Comparison, ...] = ()
    """Each run against its best control, per headline figure."""
    notes: tuple[str, ...] = ()
    """Sentences of the core for the reader (a run not above its best control, for example)."""

    @property
    def user_runs(self) -> tuple[RunResult, ...]:
        return tuple(run for run in self.runs.values() if not run.control)
