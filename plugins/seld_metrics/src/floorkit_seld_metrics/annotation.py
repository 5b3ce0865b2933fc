"""One annotation object of a document: from JSON text to checked numbers (seld_metrics spec, "Data").

An annotation is ``{"metadata_frame_index": int, "category_id": int, "segmentation": [polygon, ...],
"score": number (predictions), "distance"?: number}``, a polygon being a list of [x, y, intensity] with
x in [0, 360], y in [0, 180]. Further keys are ignored. Categories outside 0 .. 12, empty polygons and
empty segmentations are accepted (the official code scores them); everything else that is not as said
is a problem.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
import simdjson
from attrs import define, field, frozen
from numpy.typing import NDArray

from floorkit.core.errors import InputError, Problem
from floorkit_seld_metrics.taxonomy import HEIGHT, N_CLASSES, WIDTH

Polygon = NDArray[np.float64]
"""Points of one polygon, shape [P, 3]: x in degrees from the left edge, y from the top, intensity."""

_LARGEST_INTENSITY: Final = float(np.finfo(np.float32).max)
_LARGEST_INDEX: Final = 2**53
_NUMBER_CHARACTERS: Final = b"0123456789+-.eE \t\r\n"
_POINT: Final = b"[,,],"


@frozen(eq=False)
class Annotations:
    """The annotations of one file, in file order.

    Parameters
    ----------
    frame, category
        int64, shape [N].
    score, distance
        float64, shape [N]; NaN where the file has none.
    polygons
        For each annotation its polygons that have points, each of shape [P, 3].
    """

    frame: NDArray[np.int64]
    category: NDArray[np.int64]
    score: NDArray[np.float64]
    distance: NDArray[np.float64]
    polygons: tuple[tuple[Polygon, ...], ...]

    def __len__(self) -> int:
        return len(self.frame)

    def select(self, indices: NDArray[np.intp]) -> Annotations:
        """The annotations at ``indices``, in that order."""
        return Annotations(
            self.frame[indices],
            self.category[indices],
            self.score[indices],
            self.distance[indices],
            tuple(self.polygons[index] for index in indices.tolist()),
        )

    def by_frame(self) -> dict[int, list[int]]:
        """Indices of the annotations of every frame, in file order."""
        frames: dict[int, list[int]] = {}
        for index, frame in enumerate(self.frame.tolist()):
            frames.setdefault(frame, []).append(index)
        return frames

    @property
    def in_range(self) -> NDArray[np.bool_]:
        """Whether the category is one of the task's classes, shape [N]."""
        return (self.category >= 0) & (self.category < N_CLASSES)


@frozen(eq=False)
class _Annotation:
    frame: int
    category: int
    score: float
    distance: float
    polygons: tuple[Polygon, ...]


class _Fault(Exception):
    """What is wrong with an annotation, before its file and index are known."""

    def __init__(self, what: str, found: str = "", expected: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.parts = (found, expected, remedy)


@define
class AnnotationReader:
    """Collects the annotations of one file, and what is wrong with them.

    ``scored`` says whether a ``score`` is needed. Of the faults the first ``most_problems`` are kept.
    """

    name: str
    scored: bool
    most_problems: int
    _parser: simdjson.Parser = field(factory=simdjson.Parser, init=False)
    _made: list[_Annotation | _Fault | None] = field(factory=list, init=False)
    _faults: int = field(default=0, init=False)

    def add(self, text: bytes, segmentation: tuple[int, int] | None) -> None:
        """Parse one object; ``segmentation`` is where its value of that key lies in ``text``."""
        try:
            self._made.append(self._parse(text, segmentation))
        except _Fault as fault:
            self._faults += 1
            self._made.append(fault if self._faults <= self.most_problems else None)

    def finish(self, objects: Sequence[int]) -> Annotations:
        """The annotations, of all objects those that stand in the document's list.

        Raises
        ------
        InputError
            With every faulty annotation.
        """
        made = [self._made[index] for index in objects]
        problems = [
            Problem(str(one), f"{self.name}, annotation {index}", *one.parts)
            for index, one in enumerate(made)
            if isinstance(one, _Fault)
        ]
        annotations = [one for one in made if isinstance(one, _Annotation)]
        if problems:
            hidden = len(made) - len(annotations) - len(problems)
            if hidden:
                problems.append(Problem(f"{hidden} further annotations are faulty", self.name))
            raise InputError(problems)
        return Annotations(
            np.array([one.frame for one in annotations], dtype=np.int64),
            np.array([one.category for one in annotations], dtype=np.int64),
            np.array([one.score for one in annotations], dtype=np.float64),
            np.array([one.distance for one in annotations], dtype=np.float64),
            tuple(one.polygons for one in annotations),
        )

    def _parse(self, text: bytes, segmentation: tuple[int, int] | None) -> _Annotation:
        parsed: Any = None
        try:
            parsed = self._parser.parse(text)
            keys = list(parsed.keys())
            twice = sorted({key for key in keys if keys.count(key) > 1})
            if twice:
                raise _Fault(f"key {twice[0]!r} stands twice", expected="every key once")
            missing = [key for key in self._needed() if key not in keys]
            if missing:
                raise _Fault(
                    f"missing key {missing[0]!r}",
                    ", ".join(map(repr, keys)) or "no keys",
                    ", ".join(map(repr, self._needed())),
                )
            shape = _polygon_lengths(text, segmentation)
            polygons = _polygons(parsed["segmentation"], shape) if shape else None
            values = {key: parsed[key] for key in keys if key in _SCALARS}
        except (ValueError, TypeError, RuntimeError) as error:
            raise _json_fault(text, error) from error
        finally:
            parsed = None  # the parser refuses to go on while one of its objects lives
        return _Annotation(
            _index(values, "metadata_frame_index", low=0),
            _index(values, "category_id"),
            _number(values, "score") if self.scored else np.nan,
            _number(values, "distance") if "distance" in values else np.nan,
            _slow_polygons(text) if polygons is None else polygons,
        )

    def _needed(self) -> tuple[str, ...]:
        keys = ("metadata_frame_index", "category_id", "segmentation")
        return (*keys, "score") if self.scored else keys


_SCALARS: Final = frozenset({"metadata_frame_index", "category_id", "score", "distance"})


def _index(values: dict[str, Any], key: str, low: int | None = None) -> int:
    value = values[key]
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    if not whole or abs(value) > _LARGEST_INDEX or (low is not None and value < low):
        expected = "a whole number" if low is None else f"a whole number of at least {low}"
        raise _Fault(f"wrong value of {key!r}", _shown(value), expected)
    return int(value)


def _number(values: dict[str, Any], key: str) -> float:
    value = values[key]
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _Fault(f"wrong value of {key!r}", _shown(value), "a finite number")
    return float(value)


def _shown(value: Any) -> str:
    text = repr(value) if value is None or isinstance(value, str | bool | int | float) else str(type(value))
    return text if len(text) <= 60 else text[:57] + "..."


def _polygon_lengths(text: bytes, segmentation: tuple[int, int] | None) -> list[int] | None:
    """Points in each polygon where the text is plainly a list of lists of triplets, else None.

    Without its numbers and blanks such a text is ``:[[[,,],[,,]],[[,,]]]``, which is compared whole.
    That the places between commas hold numbers is for the JSON parser to say.
    """
    if segmentation is None:
        return None
    begin, end = segmentation
    structure = text[begin:end].translate(None, _NUMBER_CHARACTERS).rstrip(b",")
    if not (structure.startswith(b":[[[") and structure.endswith(b"]]]")):
        return None
    count = _point_count(structure[3:-2])
    if count is not None:
        return [count]
    first, *others = structure[3:-2].split(b"],[[")
    counts = [_point_count(first), *(_point_count(b"[" + other) for other in others)]
    lengths = [count for count in counts if count is not None]
    return lengths if len(lengths) == len(counts) else None


def _point_count(structure: bytes) -> int | None:
    """N where the structure of a polygon is that of N triplets, ``[,,],[,,]``; else None."""
    count, rest = divmod(len(structure) + 1, len(_POINT))
    return count if not rest and structure == (_POINT * count)[:-1] else None


def _polygons(segmentation: Any, lengths: list[int]) -> tuple[Polygon, ...]:
    # A copy has exactly the size that it needs; the parser's buffer has room to grow.
    values = np.frombuffer(segmentation.as_buffer(of_type="d"), dtype=np.float64).copy()
    values.flags.writeable = False
    bounds = np.cumsum([0, *lengths])
    polygons = tuple(values[3 * start : 3 * stop].reshape(-1, 3) for start, stop in pairwise(bounds))
    if not _all_within(values):
        _check_ranges(polygons)
    return polygons


def _all_within(values: NDArray[np.float64]) -> bool:
    """Whether all of x, y, intensity, x, y, ... lie in their ranges; flat, so that it runs at full speed."""
    low, high = _bounds(1 << (len(values) // 3).bit_length())
    return bool((values >= low[: len(values)]).all() and (values <= high[: len(values)]).all())


@lru_cache(maxsize=4)
def _bounds(points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    low = np.tile([0.0, 0.0, -_LARGEST_INTENSITY], points)
    return low, np.tile([WIDTH, HEIGHT, _LARGEST_INTENSITY], points)


def _check_ranges(polygons: Sequence[Polygon]) -> None:
    for number, polygon in enumerate(polygons):
        for column, axis, high in ((0, "x", WIDTH), (1, "y", HEIGHT)):
            outside = np.flatnonzero((polygon[:, column] < 0) | (polygon[:, column] > high))
            if len(outside):
                raise _Fault(
                    f"polygon {number}: {axis} of {len(outside)} points lies outside the sphere",
                    f"{axis} = {polygon[outside[0], column]:g} at point {outside[0]}",
                    f"{axis} in [0, {high}]",
                )
        huge = np.flatnonzero(np.abs(polygon[:, 2]) > _LARGEST_INTENSITY)
        if len(huge):
            raise _Fault(
                f"polygon {number}: an intensity is no finite single-precision number",
                f"{polygon[huge[0], 2]:g} at point {huge[0]}",
                f"at most {_LARGEST_INTENSITY:.4g}",
            )


def _slow_polygons(text: bytes) -> tuple[Polygon, ...]:
    """The polygons of an unusual segmentation (an empty polygon, say), or what is wrong with it."""
    segmentation = json.loads(text)["segmentation"]
    expected = "a list of polygons, each a list of [x, y, intensity]"
    if not isinstance(segmentation, list):
        raise _Fault("the segmentation is no list", _shown(segmentation), expected)
    polygons = []
    for number, polygon in enumerate(segmentation):
        if not isinstance(polygon, list):
            raise _Fault(f"polygon {number} is no list", _shown(polygon), expected)
        for index, point in enumerate(polygon):
            if not isinstance(point, list) or len(point) != 3:
                found = f"{len(point)} values" if isinstance(point, list) else _shown(point)
                raise _Fault(f"polygon {number}: point {index} is no triplet", found, expected)
            for value in point:
                if not isinstance(value, int | float) or isinstance(value, bool):
                    raise _Fault(
                        f"polygon {number}: point {index} holds something else than a finite number",
                        _shown(value),
                        expected,
                    )
        if polygon:
            polygons.append(np.array(polygon, dtype=np.float64))
    _check_ranges(polygons)
    return tuple(polygons)


def _json_fault(text: bytes, error: Exception) -> _Fault:
    """Why simdjson refused ``text``: numbers that no float64 holds are told as such."""
    odd: list[str] = []

    def remember(literal: str) -> float:
        value = float(literal)
        if not np.isfinite(value):
            odd.append(literal)
        return value

    def remember_integer(literal: str) -> int | float:
        return remember(literal) if len(literal) > 300 else int(literal)

    try:
        json.loads(text, parse_float=remember, parse_int=remember_integer, parse_constant=remember)
    except json.JSONDecodeError as detail:
        return _Fault("no valid JSON", f"{detail.msg} at character {detail.pos} of the annotation")
    except UnicodeDecodeError as detail:
        return _Fault("no valid UTF-8", str(detail))
    except RecursionError:
        return _Fault("nested too deeply", expected="three levels of lists")
    if odd:
        return _Fault("a number is not finite", odd[0][:40], "a finite number")
    return _Fault("refused by the JSON parser", f"{error}", "finite numbers, whole ones below 2^64")
