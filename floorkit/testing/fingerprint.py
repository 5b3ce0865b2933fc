"""One text for the content of a value: equal contents give equal texts, in any process."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from collections.abc import Mapping, Sequence, Set
from pathlib import PurePath
from types import FunctionType, ModuleType
from typing import Any


def fingerprint(value: Any) -> str:
    """SHA-256 (hex) of the content of plain values, arrays, attrs values, dataclasses and objects.

    Order counts in sequences, not in mappings and sets. Functions and classes count by their name, so that
    a value that holds one can still be told apart from another.
    """
    digest = hashlib.sha256()
    _feed(digest, value, ())
    return digest.hexdigest()


def _feed(digest: Any, value: Any, above: tuple[int, ...]) -> None:
    import attrs
    import numpy as np

    kind = type(value)
    if isinstance(value, str | bytes | bytearray | int | float | complex | bool | type(None)):
        digest.update(f"V{kind.__name__}{value!r};".encode())
    elif isinstance(value, PurePath):
        digest.update(f"P{value};".encode())
    elif isinstance(value, FunctionType | type):
        digest.update(f"F{value.__module__}.{value.__qualname__};".encode())
    elif isinstance(value, ModuleType):
        digest.update(f"N{value.__name__};".encode())
    elif isinstance(value, np.generic):
        digest.update(f"G{value.dtype.str}".encode() + value.tobytes())
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        digest.update(f"A{value.dtype.str}{value.shape}".encode() + value.tobytes())
    elif id(value) in above:
        digest.update(b"R;")
    else:
        _feed_parts(digest, value, (*above, id(value)), attrs.has(kind))


def _feed_parts(digest: Any, value: Any, above: tuple[int, ...], is_attrs: bool) -> None:
    import attrs

    if isinstance(value, Mapping):
        pairs = sorted((fingerprint(key), key) for key in value)
        digest.update(f"M{len(pairs)}".encode())
        for name, key in pairs:
            digest.update(name.encode())
            _feed(digest, value[key], above)
    elif isinstance(value, Set):
        digest.update(f"S{len(value)}{sorted(map(fingerprint, value))}".encode())
    elif isinstance(value, Sequence):
        digest.update(f"L{len(value)}".encode())
        for one in value:
            _feed(digest, one, above)
    elif is_attrs:
        digest.update(f"T{type(value).__qualname__}".encode())
        for field in attrs.fields(type(value)):
            _feed(digest, getattr(value, field.name), above)
    elif hasattr(value, "__dict__"):
        digest.update(f"O{type(value).__qualname__}".encode())
        for name in sorted(vars(value)):
            digest.update(name.encode())
            _feed(digest, vars(value)[name], above)
    else:
        digest.update(f"O{type(value).__qualname__}".encode())
        with contextlib.suppress(TypeError, AttributeError, pickle.PicklingError):  # a lock has no content
            digest.update(pickle.dumps(value, protocol=5))
