"""Reviewed opportunities as the dataset of a protocol: files, units, and one unit's gold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from floorkit.core.errors import InputError, Problem
from floorkit.core.paths import resolve, shown
from floorkit.core.structure import param, structure
from floorkit.core.values import Context, Dataset, Mark, Unit
from floorkit.formats.dense import Targets, load_targets
from floorkit.formats.dense_dataset import DenseTable, build_dataset
from floorkit.formats.reviews import Reviews, read_reviews
from floorkit.formats.reviews_line import Demands

PROVISIONAL = Mark(
    "provisional",
    "The reviews hold lines of the reviewer llm_provisional, which no person has confirmed "
    "(allow_provisional_llm_reviews): not a result to report.",
)


@attrs.frozen
class ReviewsTable(DenseTable):
    """``[protocols.NAME.dataset]`` of the protocols on reviewed opportunities."""

    reviews: str = param(doc="Reviewed opportunities, JSON Lines, plain or gzipped.")
    calibration_reviews: str | None = param(
        None, doc="Those of the calibration sessions; the lines of `reviews` where left out."
    )


@attrs.frozen(eq=False)
class ReviewedTargets(Targets):
    """A session's targets with its reviewed opportunities, in file order."""

    reviews: Reviews


def reviewed_dataset(context: Context, table: Mapping[str, Any], demands: Demands) -> Dataset:
    """The dataset of a protocol on reviewed opportunities, with every problem of the reviews files.

    Parameters
    ----------
    context, table
        As the hook ``floorkit_dataset`` receives them.
    demands
        What the protocol demands of its reviews; the sessions' rows are filled in here.

    Notes
    -----
    An evaluated unit has its session's lines of ``reviews``, a calibration unit those of
    ``calibration_reviews``, or of ``reviews`` where there is no such file. The columns travel as
    ``unit.gold.values["reviews"]``.
    """
    parsed = structure(ReviewsTable, table, f"protocols.{context.name}.dataset")
    dataset = build_dataset(context, parsed, load_reviewed)
    split_files = {"evaluated": parsed.reviews, "calibration": parsed.calibration_reviews or parsed.reviews}
    problems = list(dataset.problems)
    marks = list(dataset.marks)
    files = dict(dataset.files)
    read: dict[str, Reviews] = {}
    for key, text in (("reviews", parsed.reviews), ("calibration_reviews", parsed.calibration_reviews)):
        if text is None:
            continue
        path = resolve(context.root, text)
        if not path.is_file():
            where = f"protocols.{context.name}.dataset.{key}"
            problems.append(Problem("no such file", where, shown(path, context.root), "a reviews file"))
            continue
        files[key] = path
        if text in read:
            continue
        rows = {unit.name: _rows(context, unit) for unit in dataset.units if split_files[unit.split] == text}
        known = {name: count for name, count in rows.items() if count}
        reviews, found = read_reviews(path, shown(path, context.root), attrs.evolve(demands, rows=known))
        problems += found
        read[text] = reviews
        if reviews.provisional.any() and PROVISIONAL not in marks:
            marks.append(PROVISIONAL)
    units = []
    for unit in dataset.units:
        reviews = read.get(split_files[unit.split], Reviews.empty()).of_session(unit.name)
        values = {**unit.gold.values, "reviews": reviews.columns}
        units.append(attrs.evolve(unit, gold=attrs.evolve(unit.gold, values=values)))
    return attrs.evolve(
        dataset, units=tuple(units), files=files, marks=tuple(marks), problems=tuple(problems)
    )


def _rows(context: Context, unit: Unit) -> int:
    """Rows of a session, 0 where its targets cannot be read (which the check of its contents tells)."""
    if not all(path.is_file() for path in unit.gold.files.values()):
        return 0
    try:
        return load_targets(context, unit).rows
    except InputError:
        return 0


def reviews_of(unit: Unit) -> Reviews:
    """The reviewed opportunities of a unit of :func:`reviewed_dataset`, in file order."""
    return Reviews.of_columns(unit.name, unit.gold.values["reviews"])


def load_reviewed(context: Context, unit: Unit) -> ReviewedTargets:
    """Read one unit's gold. Raises InputError with every problem of its targets."""
    targets = load_targets(context, unit)
    return ReviewedTargets(targets.session, targets.activity, targets.starts, reviews_of(unit))
