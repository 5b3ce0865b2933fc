"""Reading pickled dictionaries of arrays without running what a pickle may contain.

A pickle is a program: it can call anything that it can name. This reader knows a handful of names, those
that NumPy writes for an array, and answers them with stand-ins of its own, which hold numbers and do
nothing. Every other name is an error, and so is whatever the stand-ins do not expect. Plain dictionaries,
lists, tuples, texts and numbers need no names.
"""

from __future__ import annotations

import io
import math
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from floorkit.core.errors import InputError, Problem, raise_problems

FLOATS = {"f2", "f4", "f8"}


class _Refused(pickle.UnpicklingError):
    """The pickle holds something else than arrays of floats and plain containers."""


class _Dtype:
    """Stands for ``numpy.dtype``; floats of 2, 4 or 8 bytes alone."""

    def __init__(self, name: Any, *_: Any) -> None:
        if name not in FLOATS:
            raise _Refused(f"an array of dtype {name!r}, not of floats")
        self.dtype = np.dtype(name)

    def __setstate__(self, state: Any) -> None:
        order = state[1] if isinstance(state, tuple) and len(state) > 1 else ""
        if order not in {"<", ">", "|", "="}:
            raise _Refused("a dtype with an unknown byte order")
        self.dtype = self.dtype.newbyteorder(order)


class _Array:
    """Stands for ``numpy.ndarray`` while it is built: shape, dtype and bytes are checked, then kept."""

    def __init__(self) -> None:
        self.array: NDArray[Any] | None = None

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            raise _Refused("an array with an unknown state")
        _, shape, dtype, is_fortran, data = state
        self.fill(data, dtype, shape, "F" if is_fortran else "C")

    def fill(self, data: Any, dtype: Any, shape: Any, order: Any) -> None:
        is_shape = isinstance(shape, tuple) and all(type(size) is int and size >= 0 for size in shape)
        if not is_shape or not isinstance(dtype, _Dtype) or order not in ("C", "F"):
            raise _Refused("an array with an unknown state")
        size = math.prod(shape) * dtype.dtype.itemsize
        if not isinstance(data, bytes | bytearray) or len(data) != size:
            raise _Refused("an array whose bytes do not fit its shape")
        self.array = np.frombuffer(bytes(data), dtype.dtype).reshape(shape, order=order)


def _reconstruct(*_: Any) -> _Array:
    return _Array()


def _from_buffer(data: Any, dtype: Any, shape: Any, order: Any, *_: Any) -> _Array:
    made = _Array()
    made.fill(data, dtype, shape, order)
    return made


def _encode(text: Any, encoding: Any) -> bytes:
    """How old pickle protocols write bytes."""
    if not isinstance(text, str) or encoding != "latin1":
        raise _Refused("bytes in an unknown encoding")
    return text.encode("latin1")


def _no_bytes(*arguments: Any) -> bytes:
    """How old pickle protocols write the bytes of an array without elements."""
    if arguments:
        raise _Refused("bytes that are not written as such")
    return b""


def _is_a_type(*_: Any) -> NoReturn:
    raise _Refused("numpy.ndarray is called, where it may only be named")


_KNOWN: dict[tuple[str, str], Any] = {
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _is_a_type,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy.core.numeric", "_frombuffer"): _from_buffer,
    ("numpy._core.numeric", "_frombuffer"): _from_buffer,
    ("_codecs", "encode"): _encode,
    ("__builtin__", "bytes"): _no_bytes,
    ("collections", "OrderedDict"): OrderedDict,
}


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _KNOWN[module, name]
        except KeyError:
            raise _Refused(f"the name {module}.{name}") from None

    def persistent_load(self, pid: Any) -> Any:
        raise _Refused("a persistent id")


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read a pickled dictionary from session names to float arrays.

    Raises
    ------
    InputError
        Where the file holds anything but NumPy arrays of floats and plain containers, or no such dictionary.
    """
    expected = "a dictionary from session names to NumPy arrays of floats, and nothing else"
    try:
        data = _ArrayUnpickler(io.BytesIO(path.read_bytes())).load()
    except OSError as error:
        raise InputError(Problem("the file cannot be read", str(path), str(error.strerror))) from error
    except (
        pickle.UnpicklingError,
        ValueError,
        TypeError,
        AttributeError,
        KeyError,
        IndexError,
        EOFError,
    ) as error:
        raise InputError(
            Problem("the pickle is refused; it was not run", str(path), str(error), expected)
        ) from error
    if not isinstance(data, dict):
        raise InputError(Problem("not a dictionary of arrays", str(path), type(data).__name__, expected))
    arrays: dict[str, NDArray[Any]] = {}
    problems = []
    for key, value in data.items():
        if isinstance(key, str) and isinstance(value, _Array) and value.array is not None:
            arrays[key] = value.array
        else:
            found = "an array" if isinstance(value, _Array) else f"a {type(value).__name__}"
            problems.append(Problem("not a session with its array", f"{path} ({key!r})", found, expected))
    raise_problems(InputError, problems)
    return arrays
