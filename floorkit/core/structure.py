"""TOML tables to attrs classes, strictly, with every problem told at its TOML path.

A parameter class is an attrs class whose fields are made by :func:`param`; cattrs builds it. Nothing is
coerced, except that a whole number is taken where a float is wanted.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

import attrs
from attrs import NOTHING, Attribute, Factory

from floorkit.core.errors import ManifestError, Problem

T = TypeVar("T")

_TYPE_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}


def param(
    default: Any = NOTHING,
    *,
    doc: str,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    below: float | None = None,
    multiple_of: float | None = None,
    choices: Sequence[Any] = (),
    non_empty: bool = False,
    distinct: bool = False,
) -> Any:
    """A field of a parameter class.

    Parameters
    ----------
    default
        Default value; required where left out. Lists and tables get a fresh copy.
    doc, unit
        What it means and in which unit; go into the manifest reference.
    low, high
        Inclusive bounds, of every element where the value is a list.
    above, below
        Exclusive bounds, likewise.
    multiple_of
        The value must be a whole multiple of it (within 1e-9).
    choices
        The allowed values where a ``Literal`` type does not give them.
    non_empty, distinct
        For lists: at least one element; no element twice.
    """
    allowed = _allowed(low, high, above, below, multiple_of, choices, non_empty, distinct)

    def validate(_: Any, __: Attribute[Any], value: Any) -> None:
        elements = list(value) if isinstance(value, list | tuple) else [value]
        if value is None:
            return
        for element in elements:
            if isinstance(element, bool | str) or not isinstance(element, int | float):
                if choices and element not in choices:
                    raise ValueError(allowed)
                continue
            if (
                not math.isfinite(element)
                or (low is not None and element < low)
                or (high is not None and element > high)
                or (above is not None and element <= above)
                or (below is not None and element >= below)
                or (choices and element not in choices)
                or (multiple_of and abs(round(element / multiple_of) * multiple_of - element) > 1e-9)
            ):
                raise ValueError(allowed)
        if isinstance(value, list | tuple) and (
            (non_empty and not elements) or (distinct and len(set(elements)) != len(elements))
        ):
            raise ValueError(allowed)

    if isinstance(default, list | dict):
        mutable = default
        default = Factory(lambda: type(mutable)(mutable))
    return attrs.field(
        default=default,
        validator=validate,
        kw_only=True,
        metadata={"doc": doc, "unit": unit, "allowed": allowed},
    )


def _allowed(
    low: float | None,
    high: float | None,
    above: float | None,
    below: float | None,
    multiple_of: float | None,
    choices: Sequence[Any],
    non_empty: bool,
    distinct: bool,
) -> str:
    parts = []
    if choices:
        parts.append("one of " + ", ".join(map(repr, choices)))
    for bound, word in ((low, "at least"), (above, "above"), (high, "at most"), (below, "below")):
        if bound is not None:
            parts.append(f"{word} {bound}")
    if multiple_of:
        parts.append(f"a whole multiple of {multiple_of}")
    if non_empty:
        parts.append("not empty")
    if distinct:
        parts.append("no value twice")
    return ", ".join(parts) or "a finite number"


def structure(cls: type[T], table: Mapping[str, Any], where: str) -> T:
    """Build ``cls`` from a TOML table.

    Parameters
    ----------
    cls
        An attrs class with fields made by :func:`param`.
    table
        The table as the TOML reader gives it.
    where
        Its TOML path, for messages (``"protocols.demo.params"``).

    Raises
    ------
    ManifestError
        With every unknown key (and the nearest known one), missing key, wrong type and value out of
        range.
    """
    instance, problems = try_structure(cls, table, where)
    if instance is None:
        raise ManifestError(problems)
    return instance


def try_structure(cls: type[T], table: Any, where: str) -> tuple[T | None, list[Problem]]:
    """Like :func:`structure`, but return ``(None, problems)`` instead of raising."""
    from cattrs.errors import ClassValidationError

    if not isinstance(table, Mapping):
        return None, [_wrong_type(where, table, "a table")]
    try:
        with attrs.validators.disabled():
            instance = _converter().structure(dict(table), cls)
    except ClassValidationError as error:
        problems = list(_problems(error, where, cls))
        names = {attribute.name for attribute in attrs.fields(cast("type[attrs.AttrsInstance]", cls))}
        partial = {key: value for key, value in table.items() if key in names}
        problems += _range_problems_of_valid(cls, partial, where)
        return None, problems
    problems = list(_range_problems(instance, where))
    return (None, problems) if problems else (instance, [])


def _range_problems(instance: Any, where: str) -> Iterator[Problem]:
    for attribute in attrs.fields(type(instance)):
        value = getattr(instance, attribute.name)
        if attrs.has(type(value)):
            yield from _range_problems(value, f"{where}.{attribute.name}")
        elif attribute.validator is not None:
            try:
                attribute.validator(instance, attribute, value)
            except (ValueError, TypeError) as error:
                yield Problem(
                    "value out of range",
                    f"{where}.{attribute.name}",
                    repr(list(value) if isinstance(value, tuple) else value),
                    attribute.metadata.get("allowed", str(error)),
                )


def _range_problems_of_valid(cls: type, table: Mapping[str, Any], where: str) -> list[Problem]:
    """Range problems of those keys whose types are right, when others are wrong."""
    problems = []
    for attribute in attrs.fields(cls):
        if attribute.name not in table or attribute.validator is None:
            continue
        try:
            value = _converter().structure(table[attribute.name], attribute.type)
        except (TypeError, ExceptionGroup):
            continue  # a wrong type, which cattrs has reported already
        try:
            attribute.validator(None, attribute, value)
        except ValueError:
            problems.append(
                Problem(
                    "value out of range",
                    f"{where}.{attribute.name}",
                    repr(table[attribute.name]),
                    attribute.metadata.get("allowed", ""),
                )
            )
    return problems


def _problems(error: Any, where: str, cls: type) -> Iterator[Problem]:
    from cattrs.errors import ClassValidationError, ForbiddenExtraKeysError, IterableValidationError

    grouped, rest = error.group_exceptions()
    for inner, note in grouped:
        place = _toml_path(where, note.index if isinstance(error, IterableValidationError) else note.name)
        if isinstance(inner, ClassValidationError | IterableValidationError):
            yield from _problems(inner, place, inner.cl if isinstance(inner, ClassValidationError) else cls)
        elif isinstance(inner, KeyError):
            yield Problem("missing key", place, expected=describe(note.type))
        else:
            yield _told(inner, place, note.type)
    for inner in rest:
        if isinstance(inner, ForbiddenExtraKeysError):
            known = [attribute.name for attribute in attrs.fields(inner.cl or cls)]
            for key in sorted(inner.extra_fields):
                yield unknown_key(key, known, where)
        else:
            yield _told(inner, where, None)


def _toml_path(where: str, step: str | int) -> str:
    """``where.key`` for a table's key (quoted where TOML needs it), ``where[index]`` for a list's element."""
    if isinstance(step, int):
        return f"{where}[{step}]"
    bare = re.fullmatch(r"[A-Za-z0-9_-]+", step)
    return f"{where}.{step}" if bare else f'{where}."{step}"'


def _told(error: Exception, place: str, kind: Any) -> Problem:
    if isinstance(error, _WrongType):
        return _wrong_type(place, error.value, error.expected)
    return Problem(str(error), place, expected=describe(kind) if kind is not None else "")


def unknown_key(key: str, known: Sequence[str], where: str) -> Problem:
    """The problem of a key that no class knows, with the nearest known one."""
    near = difflib.get_close_matches(key, known, n=1)
    return Problem(
        f"unknown key {key!r}",
        where,
        expected="one of " + ", ".join(known) if known else "no keys",
        remedy=f"did you mean {near[0]!r}?" if near else "",
    )


def _wrong_type(where: str, value: Any, expected: str) -> Problem:
    return Problem("wrong type", where, f"{value!r} ({_toml_type(value)})", expected)


def _toml_type(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "list", dict: "table"}
    return names.get(type(value), type(value).__name__)


class _WrongType(TypeError):
    def __init__(self, value: Any, expected: str) -> None:
        super().__init__(expected)
        self.value = value
        self.expected = expected


def describe(kind: Any) -> str:
    """A type in words, for messages and the manifest reference."""
    origin, args = get_origin(kind), get_args(kind)
    if kind in _TYPE_NAMES:
        return _TYPE_NAMES[kind]
    if origin is Literal:
        return "one of " + ", ".join(map(repr, args))
    if origin in (tuple, list, Sequence):
        return f"a list of {describe(args[0]).removeprefix('a ').removeprefix('an ')}s"
    if origin in (dict, Mapping):
        return "a table"
    if origin is Union or str(origin) == "<class 'types.UnionType'>":
        return " or ".join(describe(arg) for arg in args if arg is not type(None))
    if attrs.has(kind) if isinstance(kind, type) else False:
        return "a table"
    return str(getattr(kind, "__name__", kind))


def _strict(kind: type) -> Callable[[Any, Any], Any]:
    def hook(value: Any, _: Any) -> Any:
        fits = type(value) is kind or (kind is float and type(value) is int)
        if not fits:
            raise _WrongType(value, _TYPE_NAMES[kind])
        return kind(value)

    return hook


@cache
def _converter() -> Any:
    import cattrs

    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    for kind in _TYPE_NAMES:
        converter.register_structure_hook(kind, _strict(kind))

    def is_literal(kind: Any) -> bool:
        return get_origin(kind) is Literal

    def literal(value: Any, kind: Any) -> Any:
        if not any(value == arg and type(value) is type(arg) for arg in get_args(kind)):
            raise _WrongType(value, describe(kind))
        return value

    def is_union(kind: Any) -> bool:
        return get_origin(kind) is Union or str(get_origin(kind)) == "<class 'types.UnionType'>"

    def union(value: Any, kind: Any) -> Any:
        if value is None and type(None) in get_args(kind):
            return None
        for arg in get_args(kind):
            if arg is type(None):
                continue
            try:
                return converter.structure(value, arg)
            except (TypeError, ValueError, AttributeError, ExceptionGroup):
                continue  # AttributeError: cattrs calls .items() of what should be a table
        raise _WrongType(value, describe(kind))

    def is_list(kind: Any) -> bool:
        return get_origin(kind) in (tuple, list)

    def as_list(kind: Any) -> Callable[[Any, Any], Any]:
        plain = converter.get_structure_hook(get_args(kind)[0])
        element = get_args(kind)[0]
        build = get_origin(kind)

        def hook(value: Any, _: Any) -> Any:
            from cattrs.errors import IterableValidationError, IterableValidationNote

            if not isinstance(value, list | tuple):
                raise _WrongType(value, describe(kind))
            made, errors = [], []
            for index, one in enumerate(value):
                try:
                    made.append(plain(one, element))
                except Exception as error:  # noqa: BLE001 - collected with its index, raised below
                    error.add_note(IterableValidationNote(f"element {index}", index, element))
                    errors.append(error)
            if errors:
                raise IterableValidationError("a list with wrong elements", errors, kind)
            return build(made)

        return hook

    converter.register_structure_hook_func(is_literal, literal)
    converter.register_structure_hook_func(is_union, union)
    converter.register_structure_hook_factory(is_list, as_list)
    return converter


def unstructure(instance: Any) -> dict[str, Any]:
    """Every parameter of an attrs instance as plain data, defaults included, for hashes and provenance."""
    plain: dict[str, Any] = attrs.asdict(
        instance,
        value_serializer=lambda _, __, value: list(value) if isinstance(value, tuple) else value,
    )
    return plain
