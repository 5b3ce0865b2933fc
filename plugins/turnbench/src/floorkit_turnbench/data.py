"""Datasets: where conversations come from, and one in memory with its gold built once.

Four forms: a JSON file, parquet shards in the official layout (a folder or one file), a hub dataset id, and
a folder of annotators' SRT, TextGrid or RTTM files. Each lists its conversations cheaply and loads one at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from attrs import define, evolve, field, frozen

from floorkit.core.errors import InputError, Problem, raise_problems
from floorkit.core.paths import child
from floorkit_turnbench.conversation import Conversation, Gold
from floorkit_turnbench.gold import build_gold
from floorkit_turnbench.labels import ANNOTATORS, SPEAKERS
from floorkit_turnbench.listing import Listed, build_conversation, check_listed, official_order
from floorkit_turnbench.strict_json import fields, number, read_json, shown

DURATIONS_FILE: Final = "durations.json"


@frozen
class Listing:
    """Conversations of one source, which messages call ``where``, and facts for provenance."""

    where: str
    conversations: tuple[Listed, ...]
    files: Mapping[str, Path] = field(factory=dict)
    provenance: Mapping[str, Any] = field(factory=dict)
    problems: tuple[Problem, ...] = ()

    def select(self, names: Iterable[str]) -> Listing:
        """Only these conversations, in this order; those that do not exist become problems."""
        by_id = {one.conversation_id: one for one in self.conversations}
        wanted = list(names)
        unknown = [
            Problem(f"no conversation {name!r}", self.where, expected=f"one of {', '.join(by_id)}")
            for name in wanted
            if by_id and name not in by_id
        ]
        chosen = tuple(by_id[name] for name in wanted if name in by_id)
        return evolve(self, conversations=chosen, problems=(*self.problems, *unknown))


def open_source(
    path: Path | None = None,
    *,
    hub: str = "",
    revision: str = "",
    durations: Path | None = None,
) -> Listing:
    """List the conversations of a source, reading no annotations of parquet shards and no audio samples.

    Parameters
    ----------
    path
        A JSON file, a parquet file, a folder of parquet shards (or with ``data/*.parquet``), or a folder of
        annotators' files.
    hub, revision
        Instead of ``path``: a dataset id on the hub, and a branch, tag or commit of it.
    durations
        A JSON file ``{"durations": {conversation_id: seconds}}`` instead of audio headers.

    Returns
    -------
    Listing
        In the official order (ids by value), with every problem found.
    """
    lengths = None if durations is None else read_durations(durations)
    files: dict[str, Path] = {} if durations is None else {"durations": durations}
    provenance: dict[str, Any] = {}
    if hub:
        from floorkit_turnbench.hub import fetch
        from floorkit_turnbench.parquet import list_shards

        folder, used = fetch(hub, revision)
        provenance = {"hub": hub, "revision_requested": revision, "revision": used}
        listed, problems = list_shards(_shards(folder, fetched=True), lengths, f"hub dataset {hub}")
        where = f"{hub}@{used[:12]}"
    elif path is None:
        raise InputError(Problem("no dataset", expected="a path or a hub dataset id"))
    else:
        listed, problems = _list_path(path, lengths, files)
        where = str(path)
    if listed or not problems:
        problems += check_listed(listed, where)
    by_id = {one.conversation_id: one for one in listed}
    order = official_order(by_id)
    return Listing(where, tuple(by_id[name] for name in order), files, provenance, tuple(problems))


def _list_path(
    path: Path, durations: dict[str, float] | None, files: dict[str, Path]
) -> tuple[list[Listed], list[Problem]]:
    if path.is_dir():
        shards = _shards(path, fetched=False)
        if shards:
            from floorkit_turnbench.parquet import list_shards

            return list_shards(shards, durations, str(path))
        from floorkit_turnbench.annotation_files import list_folder

        if durations is None and (path / DURATIONS_FILE).is_file():
            files["durations"] = child(path, DURATIONS_FILE)
            durations = read_durations(files["durations"])
        return list_folder(path, durations)
    if path.suffix.lower() == ".parquet" and path.is_file():
        from floorkit_turnbench.parquet import list_shards

        return list_shards([path], durations, str(path))
    return _list_json(path, durations)


def _shards(folder: Path, *, fetched: bool) -> list[Path]:
    """Parquet files of a folder, or of its ``data``. In the hub's cache they are links to its blobs."""
    for place in (folder, folder / "data"):
        names = sorted(path.name for path in place.glob("*.parquet"))
        if names:
            return [place / name if fetched else child(place, name) for name in names]
    return []


def read_durations(path: Path) -> dict[str, float]:
    """Read ``{"durations": {conversation_id: seconds}}``."""
    data, _ = read_json(path)
    problems: list[Problem] = []
    table = fields(data, ("durations",), str(path), problems, "a durations file").get("durations", {})
    if not isinstance(table, dict):
        problems.append(Problem("durations is no object", str(path), shown(table), "id: seconds"))
        table = {}
    durations = {}
    for name, value in table.items():
        seconds = number(value)
        if seconds is None or not 0.0 < seconds < float("inf"):
            problems.append(
                Problem("wrong duration", f"{path}: {name}", shown(value), "seconds, a number above 0")
            )
        else:
            durations[name] = seconds
    raise_problems(InputError, problems)
    return durations


# --- the JSON form -------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _json_entries(path: Path, _modified: int, _size: int) -> list[Any]:
    data, _ = read_json(path)
    problems: list[Problem] = []
    entries = fields(data, ("conversations",), str(path), problems, "a dataset").get("conversations", [])
    if not isinstance(entries, list):
        problems.append(Problem("conversations is no list", str(path), shown(entries), "a list"))
    raise_problems(InputError, problems)
    return list(entries)


def _entries(path: Path) -> list[Any]:
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(
            Problem("cannot be read", str(path), error.strerror or str(error), "a dataset file or folder")
        ) from error
    return _json_entries(path, status.st_mtime_ns, status.st_size)


def _list_json(path: Path, durations: dict[str, float] | None) -> tuple[list[Listed], list[Problem]]:
    """Conversations of ``{"conversations": [{conversation_id, duration_s, annotations, metadata?}]}``."""
    listed: list[Listed] = []
    problems: list[Problem] = []
    required = ("conversation_id", "annotations", *(() if durations is not None else ("duration_s",)))
    for index, entry in enumerate(_entries(path)):
        place = f"{path}: conversations[{index}]"
        optional = {"metadata", "duration_s"} - set(required)
        known = (
            {key: value for key, value in entry.items() if key not in optional}
            if isinstance(entry, dict)
            else entry
        )
        parts = fields(known, required, place, problems, "a conversation")
        identifier = parts.get("conversation_id")
        if not isinstance(identifier, str):
            if "conversation_id" in parts:
                problems.append(Problem("conversation_id is no string", place, shown(identifier), "a string"))
            continue
        length = number(parts.get("duration_s")) if durations is None else durations.get(identifier)
        if durations is None and length is None:
            if "duration_s" in parts:
                problems.append(
                    Problem("duration_s is no number", place, shown(parts["duration_s"]), "seconds")
                )
            continue
        metadata = entry.get("metadata", {})
        if not isinstance(metadata, dict):
            problems.append(Problem("metadata is no object", place, shown(metadata), "an object"))
            metadata = {}
        listed.append(
            Listed(identifier, length, metadata, {"dataset": path}, {"form": "json", "index": index})
        )
    return listed, problems


def _load_json(listed: Listed) -> Conversation:
    path = listed.files["dataset"]
    place = f"{path}: conversation {listed.conversation_id}"
    problems: list[Problem] = []
    annotations = _entries(path)[listed.values["index"]]["annotations"]
    speakers = fields(annotations, tuple(map(str, SPEAKERS)), place, problems, "annotations")
    events: dict[tuple[int, str], Any] = {}
    for speaker, tracks in speakers.items():
        at = f"{place}, speaker {speaker}"
        for annotator, track in fields(tracks, ANNOTATORS, at, problems, "a speaker").items():
            if isinstance(track, list):
                events[int(speaker), annotator] = track
            else:
                problems.append(
                    Problem("track is no list", f"{at}, annotator {annotator}", shown(track), "a list")
                )
    return build_conversation(listed, events, place, problems)


def _load_parquet(listed: Listed) -> Conversation:
    from floorkit_turnbench.parquet import load_row

    return load_row(listed.files["shard"], listed.values["row_group"], listed.values["row"], listed)


def _load_folder(listed: Listed) -> Conversation:
    from floorkit_turnbench.annotation_files import load_files

    return load_files(listed)


LOADERS: Final[dict[str, Callable[[Listed], Conversation]]] = {
    "json": _load_json,
    "parquet": _load_parquet,
    "folder": _load_folder,
}


def load_conversation(listed: Listed) -> Conversation:
    """Read one conversation's annotations.

    Raises
    ------
    InputError
        With every problem of the conversation.
    """
    return LOADERS[listed.values["form"]](listed)


# --- in memory -----------------------------------------------------------------------------------


@define(eq=False)
class AnnotatedDataset:
    """Conversations whose gold is built on first use and kept.

    Make one with :func:`load_dataset`, or with ``AnnotatedDataset.of`` from conversations in memory.
    """

    listing: Listing
    _conversations: dict[str, Conversation] = field(factory=dict)
    _golds: dict[str, Gold] = field(factory=dict)

    @classmethod
    def of(cls, conversations: Iterable[Conversation]) -> AnnotatedDataset:
        made = {one.conversation_id: one for one in conversations}
        listed = tuple(Listed(name, one.duration_s, one.facts) for name, one in made.items())
        return cls(Listing("memory", listed), made)

    @property
    def durations(self) -> dict[str, float]:
        """Conversation id to duration in seconds, in the dataset's order."""
        return {one.conversation_id: float(one.duration_s or 0.0) for one in self.listing.conversations}

    def conversation(self, identifier: str) -> Conversation:
        """One conversation with its tracks; read again on each call where it comes from a file."""
        if identifier in self._conversations:
            return self._conversations[identifier]
        for one in self.listing.conversations:
            if one.conversation_id == identifier:
                return load_conversation(one)
        raise KeyError(identifier)

    def __iter__(self) -> Iterator[Conversation]:
        return (self.conversation(name) for name in self.durations)

    @property
    def golds(self) -> Mapping[str, Gold]:
        """Conversation id to gold, built once.

        Raises
        ------
        InputError
            With the problems of all conversations.
        """
        problems: list[Problem] = []
        for name in self.durations:
            if name not in self._golds:
                try:
                    self._golds[name] = build_gold(self.conversation(name))
                except InputError as error:
                    problems += error.problems
        raise_problems(InputError, problems)
        return self._golds


def load_dataset(
    source: str | Path, *, revision: str = "", durations: str | Path | None = None
) -> AnnotatedDataset:
    """Open a dataset for use in Python.

    Parameters
    ----------
    source
        A path (see :func:`open_source`), or a hub id OWNER/NAME where no such path exists.
    revision
        Branch, tag or commit of a hub dataset.
    durations
        A durations JSON instead of audio headers.

    Raises
    ------
    InputError
        With every problem.
    """
    path = Path(source)
    lengths = None if durations is None else Path(durations)
    if not path.exists() and str(source).count("/") == 1 and not path.suffix:
        listing = open_source(hub=str(source), revision=revision, durations=lengths)
    else:
        listing = open_source(path, durations=lengths)
    raise_problems(InputError, listing.problems)
    return AnnotatedDataset(listing)
