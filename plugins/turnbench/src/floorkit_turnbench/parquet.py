"""Parquet shards in the official column layout: one row a conversation.

Columns ``conversation_id``, ``speaker_{1,2}_audio`` (struct of bytes and path),
``speaker_{1,2}_annotation_{a,b,c}`` (list of start_s, end_s, label, text), ``metadata`` and
``audio_status``. Annotations are read without the audio columns; the audio columns one value at a time, and
of each value only the header that gives the duration.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from floorkit.core.errors import InputError, Problem, raise_problems
from floorkit_turnbench.audio_header import UnknownAudioError, duration_s
from floorkit_turnbench.conversation import Conversation
from floorkit_turnbench.labels import ANNOTATORS, SPEAKERS
from floorkit_turnbench.listing import Listed, build_conversation

ANNOTATION_COLUMNS: Final = {
    f"speaker_{speaker}_annotation_{annotator}": (speaker, annotator)
    for speaker in SPEAKERS
    for annotator in ANNOTATORS
}
AUDIO_COLUMNS: Final = tuple(f"speaker_{speaker}_audio" for speaker in SPEAKERS)
DURATION_REMEDY: Final = 'give the durations in a JSON file: durations = "FILE" in the dataset table'


def list_shards(
    shards: list[Path], durations: dict[str, float] | None, where: str
) -> tuple[list[Listed], list[Problem]]:
    """Conversations of all shards, in the order of files and rows.

    Parameters
    ----------
    durations
        Conversation id to seconds; None reads them from the audio headers.
    where
        Name of the dataset, for messages.
    """
    problems: list[Problem] = []
    listed: list[Listed] = []
    for shard in shards:
        try:
            listed += _list_shard(shard, durations)
        except InputError as error:
            problems += error.problems
    if not shards:
        problems.append(Problem("no parquet files", where, expected="*.parquet, or data/*.parquet"))
    return listed, problems


def _open(shard: Path) -> Any:
    import pyarrow
    import pyarrow.parquet

    try:
        # mapped and without read-ahead, which would hold whole audio columns
        return pyarrow.parquet.ParquetFile(shard, memory_map=True, pre_buffer=False)
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(
            Problem("cannot be read as parquet", str(shard), str(error).splitlines()[0], "a parquet file")
        ) from error


def _list_shard(shard: Path, durations: dict[str, float] | None) -> list[Listed]:
    with _open(shard) as file:
        names = file.schema_arrow.names
        wanted = ["conversation_id", *ANNOTATION_COLUMNS, *(() if durations is not None else AUDIO_COLUMNS)]
        raise_problems(
            InputError,
            [
                Problem(f"no column {name!r}", str(shard), expected="the official column layout")
                for name in wanted
                if name not in names
            ],
        )
        facts_columns = [name for name in ("metadata", "audio_status") if name in names]
        ids, facts = [], []
        for row in file.read(columns=["conversation_id", *facts_columns]).to_pylist():
            ids.append(row["conversation_id"])
            facts.append({**(row.get("metadata") or {}), **_status(row)})
        raise_problems(
            InputError,
            [
                Problem("conversation_id is no string", f"{shard}: row {row}", repr(identifier), "a string")
                for row, identifier in enumerate(ids)
                if not isinstance(identifier, str)
            ],
        )
        lengths = (
            _header_durations(file, shard, ids)
            if durations is None
            else [durations.get(identifier) for identifier in ids]
        )
        return [
            Listed(
                identifier,
                length,
                facts[row],
                {"shard": shard},
                {"form": "parquet", "row_group": group, "row": within},
            )
            for row, (identifier, length, (group, within)) in enumerate(
                zip(ids, lengths, _rows(file), strict=True)
            )
        ]


def _status(row: dict[str, Any]) -> dict[str, Any]:
    return {"audio_status": row["audio_status"]} if row.get("audio_status") is not None else {}


def _rows(file: Any) -> Iterator[tuple[int, int]]:
    """(row group, row within it) of every row."""
    for group in range(file.metadata.num_row_groups):
        for row in range(file.metadata.row_group(group).num_rows):
            yield group, row


def _header_durations(file: Any, shard: Path, ids: list[str]) -> list[float]:
    """Duration of every row: that of its longer channel."""
    import pyarrow

    problems: list[Problem] = []
    lengths = [0.0] * len(ids)
    for column in AUDIO_COLUMNS:
        batches = file.iter_batches(batch_size=1, columns=[f"{column}.bytes"], use_threads=False)
        for row, batch in enumerate(batches):
            place = f"{shard}: conversation {ids[row]}, {column}"
            value = batch.column(0).field("bytes")[0]
            if not value.is_valid:
                problems.append(
                    Problem("no audio bytes", place, expected="FLAC or WAV", remedy=DURATION_REMEDY)
                )
                continue
            try:
                lengths[row] = max(lengths[row], duration_s(memoryview(value.as_buffer())))
            except UnknownAudioError as error:
                problems.append(
                    Problem("the audio header tells no duration", place, str(error), remedy=DURATION_REMEDY)
                )
        pyarrow.default_memory_pool().release_unused()
    raise_problems(InputError, problems)
    return lengths


def load_row(shard: Path, row_group: int, row: int, listed: Listed) -> Conversation:
    """The conversation of one row; reads the annotation columns of its row group."""
    with _open(shard) as file:
        table = file.read_row_group(row_group, columns=list(ANNOTATION_COLUMNS)).slice(row, 1)
    place = f"{shard}: conversation {listed.conversation_id}"
    raw: dict[tuple[int, str], Any] = {}
    problems = []
    for column, track in ANNOTATION_COLUMNS.items():
        events = table.column(column)[0].as_py()
        if events is None:
            problems.append(
                Problem(
                    "no annotations",
                    f"{place}, {column}",
                    "null",
                    "a list of events",
                    "the public test split has its labels removed; score it on the benchmark's server",
                )
            )
            continue
        raw[track] = [
            (event.get("start_s"), event.get("end_s"), event.get("label")) if event else event
            for event in events
        ]
    return build_conversation(listed, raw, place, problems)
