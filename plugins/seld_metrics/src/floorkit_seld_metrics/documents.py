"""Annotation documents: JSON of hundreds of megabytes to number buffers, one annotation at a time.

A document is ``{"annotations": [{...}, ...]}`` (seld_metrics spec, "Data"), plain or gzip. Its text is
cut into annotation objects by their braces and quotes, each object is parsed by simdjson straight
into a float64 buffer, and what is left of the document, its skeleton, is parsed at the end. So memory
holds the points (24 bytes each, about the size of the text) and one block of text, never the document.

Every fault is told with the file and the index of the annotation; faults of single annotations are
collected, a text that is no JSON ends the reading.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from attrs import frozen

from floorkit.core.errors import InputError, Problem
from floorkit_seld_metrics.annotation import AnnotationReader, Annotations

BLOCK_BYTES: Final = 4 << 20
LARGEST_ANNOTATION_BYTES: Final = 64 << 20
"""A full-sphere map with one point a pixel takes about 2 MB; anything near this is no annotation."""
MOST_PROBLEMS: Final = 100
_GZIP_MAGIC: Final = b"\x1f\x8b"
_SEGMENTATION: Final = b'"segmentation"'


@frozen(eq=False)
class Document:
    """A parsed file.

    Parameters
    ----------
    annotations
        In file order.
    file_name, sha256, size
        The file's name without its folder, and SHA-256 (hex) and number of its bytes.
    is_control
        Whether it stands for a control's predictions.
    """

    annotations: Annotations
    file_name: str
    sha256: str
    size: int
    is_control: bool = False


def read_document(path: Path, name: str, *, scored: bool) -> Document:
    """Read one label or prediction file.

    Parameters
    ----------
    path
        A JSON file, plain or gzip (told by its first bytes).
    name
        What messages call the file.
    scored
        True for predictions, whose annotations need a ``score``.

    Raises
    ------
    InputError
        With every faulty annotation (at most 100), or with the place where the text stops being JSON.
    """
    reader = AnnotationReader(name, scored=scored, most_problems=MOST_PROBLEMS)
    try:
        with path.open("rb") as raw:
            before = os.fstat(raw.fileno())
            hashed = _Hashed(raw)
            zipped = raw.read(2) == _GZIP_MAGIC
            raw.seek(0)
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=cast(BinaryIO, hashed))) if zipped else hashed
            annotations = _read_annotations(stream, reader, name)
            while hashed.read(BLOCK_BYTES):  # what may follow the last gzip member, for the hash
                continue
        after = path.stat()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            Problem("not a whole gzip file", name, str(error), "a complete gzip stream", "copy it again")
        ) from error
    except OSError as error:
        raise InputError(Problem("cannot be read", name, error.strerror or str(error))) from error
    if _identity(before) != _identity(after):
        raise InputError(
            Problem(
                "the file was replaced or changed while it was read",
                name,
                f"{after.st_size} bytes at the end, {before.st_size} at the start",
                "an unchanging file",
                "wait until whatever writes it has finished, then run again",
            )
        )
    return Document(annotations, path.name, hashed.digest.hexdigest(), before.st_size)


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class _Hashed:
    """A binary stream that hashes what is read through it."""

    def __init__(self, raw: BinaryIO) -> None:
        self.raw = raw
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        block = self.raw.read(size)
        self.digest.update(block)
        return block


def _read_annotations(stream: Any, reader: AnnotationReader, name: str) -> Annotations:
    splitter = _Splitter(stream, name)
    for text, segmentation in splitter.objects():
        reader.add(text, segmentation)
    return reader.finish(_listed_objects(bytes(splitter.skeleton), name))


class _Splitter:
    """Cuts a document into the objects at brace depth 2 and the skeleton around them.

    Where the object number N stood, the skeleton has ``{"":N}``. Only quotes and braces are looked at,
    each found by one memory search, so that the numbers of a segmentation cost next to nothing.
    """

    def __init__(self, stream: Any, name: str) -> None:
        self.skeleton = bytearray()
        self._stream = stream
        self._name = name
        self._text = b""
        self._start = 0  # of the object, or of skeleton text that is not kept yet
        self._position = 0
        self._marks = dict.fromkeys(b'"{}', -1)  # where the next of each stands, as far as known
        self._cut = 0
        self._depth = 0

    def objects(self) -> Iterator[tuple[bytes, tuple[int, int] | None]]:
        """Yield each object's text and where in it the value of its "segmentation" key lies.

        The value reaches up to the next string or to the end of the object, which is right for a value
        of numbers; of any other the reader makes no use of the place.
        """
        value: list[int] = []
        while mark := self._next_mark():
            here = self._position - self._start
            if mark == ord('"'):
                self._skip_string()
                if self._depth == 2:
                    if len(value) == 1:
                        value.append(here)
                    if self._text[self._start + here : self._position] == _SEGMENTATION:
                        value = [self._position - self._start]
            elif mark == ord("{"):
                self._depth += 1
                if self._depth == 2:
                    self._keep_skeleton()
                    value = []
                self._position += 1
            else:
                self._depth -= 1
                self._position += 1
                if self._depth == 1:
                    value.append(here)
                    yield (
                        self._text[self._start : self._position],
                        (value[0], value[1]) if value[1:] else None,
                    )
                    self.skeleton += b'{"":%d}' % self._cut
                    self._cut += 1
                    self._start = self._position
            if self._depth < 2:
                self._keep_skeleton()
        if self._depth >= 2:
            raise self._broken(f"the text ends inside annotation {self._cut}")
        self._position = len(self._text)
        self._keep_skeleton()

    def _next_mark(self) -> int:
        """Go to the next quote or brace and return it; 0 at the end of the stream."""
        while True:
            for mark, known in self._marks.items():
                if known < self._position:
                    found = self._text.find(mark, self._position)
                    self._marks[mark] = found if found >= 0 else len(self._text)
            mark = min(self._marks, key=self._marks.__getitem__)
            if self._marks[mark] < len(self._text):
                self._position = self._marks[mark]
                return mark
            if not self._read_on():
                return 0

    def _skip_string(self) -> None:
        """Go from an opening quote to behind the closing one."""
        searched = self._position + 1 - self._start
        while True:
            end = self._text.find(b'"', self._start + searched)
            if end >= 0:
                before = end
                while self._text[before - 1] == ord("\\"):
                    before -= 1
                searched = end + 1 - self._start
                if (end - before) % 2 == 0:
                    self._position = end + 1
                    return
            else:
                searched = len(self._text) - self._start
                if not self._read_on():
                    raise self._broken(f"the text ends inside a string, behind annotation {self._cut}")

    def _read_on(self) -> bool:
        """Append the next block to what is still needed; False at the end of the stream."""
        if len(self._text) - self._start > LARGEST_ANNOTATION_BYTES:
            place = f"annotation {self._cut}" if self._depth >= 2 else "text without annotations"
            raise self._broken(f"{place} goes on for more than {LARGEST_ANNOTATION_BYTES >> 20} MiB")
        block = self._stream.read(BLOCK_BYTES)
        if block:
            self._text = self._text[self._start :] + block
            self._position -= self._start
            self._start = 0
            self._marks = dict.fromkeys(self._marks, -1)
        return bool(block)

    def _keep_skeleton(self) -> None:
        self.skeleton += self._text[self._start : self._position]
        self._start = self._position

    def _broken(self, found: str) -> InputError:
        return _no_json(self._name, found)


def _listed_objects(skeleton: bytes, name: str) -> list[int]:
    """The running numbers of the objects that are elements of the document's ``annotations``."""
    expected = '{"annotations": [{...}, ...]}'

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in items]
        if keys.count("annotations") > 1:
            raise InputError(Problem("key 'annotations' stands twice", name, expected=expected))
        return dict(items)

    try:
        content = json.loads(skeleton, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        text = skeleton[max(0, error.pos - 20) : error.pos + 20].decode("utf-8", "replace")
        raise _no_json(name, f"{error.msg} near {text!r}" if skeleton else "an empty file") from error
    except UnicodeDecodeError as error:
        raise _no_json(name, f"no UTF-8: {error}") from error
    except RecursionError as error:
        raise _no_json(name, "lists or objects nested too deeply") from error
    if not isinstance(content, dict):
        raise InputError(Problem("the document is no JSON object", name, type(content).__name__, expected))
    if "annotations" not in content:
        found = ", ".join(map(repr, content))[:80] or "{}"
        raise InputError(Problem("missing key 'annotations'", name, found, expected))
    elements = content["annotations"]
    if not isinstance(elements, list):
        raise InputError(Problem("'annotations' is no list", name, type(elements).__name__, expected))
    for index, element in enumerate(elements):
        if not isinstance(element, dict):
            found = type(element).__name__
            raise InputError(Problem("no JSON object", f"{name}, annotation {index}", found, expected))
    return [element[""] for element in elements]


def _no_json(name: str, found: str) -> InputError:
    return InputError(
        Problem(
            "not a valid JSON document",
            name,
            found,
            "one complete JSON object",
            "the file may be truncated or still being written; write or copy it again",
        )
    )
