"""Datasets: every form gives the same gold, and every broken one says what and where."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from floorkit_turnbench import load_dataset
from floorkit_turnbench.annotation_files import label_of, read_rttm, read_srt, read_textgrid
from floorkit_turnbench.audio_header import UnknownAudioError, duration_s
from floorkit_turnbench.gold import official_form
from floorkit_turnbench.hub import fetch

from floorkit.core.errors import InputError, Problem

EVENT = {"start_s": 1.0, "end_s": 2.0, "label": "Normal Turn", "text": "hello"}


def problems_of(source: Path, **options: Any) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        load_dataset(source, **options).golds  # noqa: B018 - building the gold reads everything
    return list(caught.value.problems)


# --- JSON ---------------------------------------------------------------------------------------


def write_json(path: Path, conversations: Any) -> Path:
    path.write_text(json.dumps({"conversations": conversations}), encoding="utf-8")
    return path


def annotations(track: Any = ()) -> dict[str, Any]:
    return {speaker: {annotator: list(track) for annotator in "abc"} for speaker in "12"}


def test_a_broken_json_form_is_told_with_every_place(tmp_path: Path) -> None:
    entries: list[Any] = [
        {"conversation_id": "1", "duration_s": 5, "annotations": annotations(), "note": 1},
        {"conversation_id": 2, "duration_s": 5, "annotations": annotations()},
        {"conversation_id": "3", "duration_s": "5", "annotations": annotations()},
        "four",
    ]
    text = "\n".join(map(str, problems_of(write_json(tmp_path / "d.json", entries))))
    for place in (
        "conversations[0]: unknown key 'note'",
        "conversations[1]",
        "conversations[2]",
        "conversations[3]",
    ):
        assert place in text


def test_a_conversation_given_twice_is_told_beside_other_problems(tmp_path: Path) -> None:
    entries: list[Any] = [
        {"conversation_id": "1", "duration_s": 5, "annotations": annotations()},
        {"conversation_id": "1", "duration_s": 0, "annotations": annotations()},
        {"conversation_id": "2", "duration_s": "5", "annotations": annotations()},
    ]
    told = [problem.what for problem in problems_of(write_json(tmp_path / "d.json", entries))]
    assert sorted(told) == ["conversation stands twice", "duration_s is no number", "wrong duration"]


def test_a_dataset_of_no_conversation_is_a_problem(tmp_path: Path) -> None:
    (problem,) = problems_of(write_json(tmp_path / "d.json", []))
    assert problem.what == "no conversations"
    assert "d.json" in problem.where


def test_missing_tracks_and_broken_events_are_told_together(tmp_path: Path) -> None:
    marked = annotations()
    marked["1"]["a"] = [[2, 1, "Filler", ""]]
    del marked["2"]["c"]
    entry = {"conversation_id": "1", "duration_s": 5, "annotations": marked}
    text = "\n".join(map(str, problems_of(write_json(tmp_path / "d.json", [entry]))))
    assert "speaker 1, annotator a, event 0: event ends before it starts" in text
    assert "speaker 2: key 'c' is missing" in text


def test_broken_events_are_told_with_speaker_annotator_and_index(tmp_path: Path) -> None:
    good = annotations([[0.0, 1.0, "Filler", ""]])
    bad = annotations()
    bad["1"]["b"] = [[0.0, 1.0, "Filler", ""], [2.0, 1.5, "Filler", ""], ["1", 2.0, "Filler", ""], [1.0]]
    bad["2"]["c"] = [[0.0, float("nan"), "Filler", ""], [0.0, 1.0, None, ""]]
    entries = [
        {"conversation_id": "1", "duration_s": 5.0, "annotations": good},
        {"conversation_id": "2", "duration_s": 5.0, "annotations": bad},
    ]
    wheres = [problem.where for problem in problems_of(write_json(tmp_path / "d.json", entries))]
    path = tmp_path / "d.json"
    assert wheres == [
        f"{path}: conversation 2, speaker 1, annotator b, event 1",
        f"{path}: conversation 2, speaker 1, annotator b, event 2",
        f"{path}: conversation 2, speaker 1, annotator b, event 3",
        f"{path}: conversation 2, speaker 2, annotator c, event 0",
        f"{path}: conversation 2, speaker 2, annotator c, event 1",
    ]


def test_a_missing_annotator_and_a_conversation_given_twice_are_told(tmp_path: Path) -> None:
    lacking = annotations()
    del lacking["1"]["c"]
    entry = {"conversation_id": "1", "duration_s": 5.0, "annotations": lacking}
    assert "key 'c' is missing" in str(problems_of(write_json(tmp_path / "a.json", [entry]))[0])
    assert "stands twice" in str(problems_of(write_json(tmp_path / "b.json", [entry, entry]))[0])


def test_labels_outside_the_table_are_dropped_and_counted(tmp_path: Path) -> None:
    track = [[0.0, 1.0, "Normal Turn", ""], [2.0, 3.0, "normal turn", ""]]
    entry = {"conversation_id": "1", "duration_s": 5.0, "annotations": annotations(track)}
    dataset = load_dataset(write_json(tmp_path / "d.json", [entry]))
    conversation = dataset.conversation("1")
    assert dict(conversation.dropped_labels) == {"normal turn": 6}
    assert len(conversation.track(1, "a")) == 1
    assert official_form(dataset.golds["1"])["eot_positive_events"] == [
        {"speaker": 1, "time_s": 1.0},
        {"speaker": 2, "time_s": 1.0},
    ]


def test_no_dataset_at_a_path_is_told(tmp_path: Path) -> None:
    assert "cannot be read" in str(problems_of(tmp_path / "nothing.json")[0])
    (tmp_path / "empty").mkdir()
    assert "no annotation files" in str(problems_of(tmp_path / "empty")[0])


# --- parquet ------------------------------------------------------------------------------------


def flac(samples: int, rate: int) -> bytes:
    packed = (rate << 44) | (1 << 41) | (15 << 36) | samples
    return b"fLaC" + struct.pack(">I", 0x80000022) + bytes(10) + struct.pack(">Q", packed) + bytes(16)


def wav(frames: int, rate: int, *, before: bytes = b"", size: int | None = None) -> bytes:
    body = bytes(frames * 4)
    chunk = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 2, rate, rate * 4, 4, 16)
    length = len(body) if size is None else size
    return b"RIFF" + bytes(4) + b"WAVE" + before + chunk + b"data" + struct.pack("<I", length) + body


def write_shard(path: Path, audio: list[bytes | None], track: Any = (EVENT,), **columns: Any) -> Path:
    event = pa.struct(
        [("start_s", pa.float64()), ("end_s", pa.float64()), ("label", pa.string()), ("text", pa.string())]
    )
    made: dict[str, Any] = {"conversation_id": [str(number) for number in range(len(audio))]}
    for speaker in (1, 2):
        made[f"speaker_{speaker}_audio"] = pa.array(
            [{"bytes": one, "path": "x"} for one in audio],
            pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
        )
        for annotator in "abc":
            tracks = [None if track is None else list(track) for _ in audio]
            made[f"speaker_{speaker}_annotation_{annotator}"] = pa.array(tracks, pa.list_(event))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(made | columns), path)
    return path


def test_durations_come_from_audio_headers_of_flac_and_wav(tmp_path: Path) -> None:
    junk = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    shard = write_shard(tmp_path / "x.parquet", [flac(48_000, 16_000), wav(8_000, 16_000, before=junk)])
    assert load_dataset(shard).durations == {"0": 3.0, "1": 0.5}


def test_a_durations_file_replaces_headers(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "data" / "x.parquet", [None, b"ID3 an mp3"])
    durations = tmp_path / "durations.json"
    durations.write_text(json.dumps({"durations": {"0": 7.5, "1": 8}}), encoding="utf-8")
    assert load_dataset(tmp_path, durations=durations).durations == {"0": 7.5, "1": 8.0}
    text = "\n".join(map(str, problems_of(shard)))
    assert "conversation 0, speaker_1_audio: no audio bytes" in text
    assert "conversation 1, speaker_2_audio" in text
    assert "durations" in text


@pytest.mark.parametrize("audio", [b"", b"fLaC", flac(0, 16_000), b"OggS" + bytes(40), wav(4, 0)])
def test_headers_without_duration_are_rejected(audio: bytes) -> None:
    with pytest.raises(UnknownAudioError):
        duration_s(audio)


def test_a_wav_whose_size_was_left_open_is_as_long_as_its_data() -> None:
    assert duration_s(wav(1_600, 16_000, size=0xFFFFFFFF)) == 0.1


def test_removed_labels_of_a_test_split_are_told(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "x.parquet", [flac(16_000, 16_000)], track=None)
    assert "labels removed" in str(problems_of(shard)[0])


def test_missing_columns_are_all_named(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"conversation_id": ["1"], "speaker_1_annotation_a": [[1.0]]}), path)
    text = "\n".join(map(str, problems_of(path)))
    for name in ("speaker_1_annotation_b", "speaker_2_annotation_c", "speaker_2_audio"):
        assert name in text


def test_what_is_no_parquet_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 but not really")
    assert "cannot be read as parquet" in str(problems_of(tmp_path)[0])


def test_a_shard_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    outside = write_shard(tmp_path / "outside" / "x.parquet", [flac(16_000, 16_000)])
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "x.parquet").symlink_to(outside)
    assert "leads out" in str(problems_of(folder)[0])


def test_metadata_stands_in_the_facts(tmp_path: Path) -> None:
    shard = write_shard(
        tmp_path / "x.parquet",
        [flac(16_000, 16_000)],
        metadata=[{"conversation_type": "Debate"}],
        audio_status=["clean"],
    )
    (conversation,) = load_dataset(shard)
    assert dict(conversation.facts) == {"conversation_type": "Debate", "audio_status": "clean"}


# --- annotators' files --------------------------------------------------------------------------

SRT = """1
00:00:01,000 --> 00:00:02,500
Normal Turn: so what
second line

2
01:00:00,125 --> 01:00:01,250
[Laughter] ha

"""
RTTM = """;; a comment
SPEAKER 20 1 1.000 1.500 <NA> <NA> Normal_Turn <NA> <NA>
SPKR-INFO 20 1 <NA> <NA> <NA> unknown x <NA> <NA>
SPEAKER 20 1 3600.125 1.125 <NA> <NA> Laughter <NA> <NA>
"""
LONG_GRID = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 4000.5
tiers? <exists>
size = 1
item []:
    item [1]:
        class = "IntervalTier"
        name = "labels"
        xmin = 0
        xmax = 4000.5
        intervals: size = 4
        intervals [1]:
            xmin = 0
            xmax = 1
            text = ""
        intervals [2]:
            xmin = 1
            xmax = 2.5
            text = "Normal Turn: he said ""so"" 3 times"
        intervals [3]:
            xmin = 2.5
            xmax = 3600.125
            text = " "
        intervals [4]:
            xmin = 3600.125
            xmax = 3601.25
            text = "Laughter"
"""
SHORT_GRID = """File type = "ooTextFile"
Object class = "TextGrid"

0
4000.5
<exists>
1
"IntervalTier"
"labels"
0
4000.5
2
1
2.5
"Normal Turn"
3600.125
3601.25
"Laughter"
"""
EVENTS = [(1.0, 2.5, "Normal Turn"), (3600.125, 3601.25, "Laughter")]


def test_srt_rttm_and_textgrids_are_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(SRT, encoding="utf-8")
    assert read_srt(path) == EVENTS
    path.write_text(RTTM, encoding="utf-8")
    assert read_rttm(path) == EVENTS
    for grid, encoding in ((LONG_GRID, "utf-8"), (LONG_GRID, "utf-16"), (SHORT_GRID, "utf-8-sig")):
        path.write_text(grid, encoding=encoding)
        assert read_textgrid(path) == (EVENTS, 4000.5)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Filler", "Filler"),
        (" Speech, Non-Linguistic: uh ", "Speech, Non-Linguistic"),
        ("[Channel Bleed] x", "Channel Bleed"),
    ],
)
def test_the_label_is_the_head_of_the_text(text: str, label: str) -> None:
    assert label_of(text) == label


def in_form(events: list[tuple[float, float, str]], suffix: str) -> str:
    def clock(seconds: float) -> str:
        milliseconds = round(seconds * 1000)
        hours, rest = divmod(milliseconds, 3_600_000)
        minutes, rest = divmod(rest, 60_000)
        return f"{hours:02}:{minutes:02}:{rest // 1000:02},{rest % 1000:03}"

    if suffix == "srt":
        return "".join(
            f"{number}\n{clock(start)} --> {clock(end)}\n{label}\n\n"
            for number, (start, end, label) in enumerate(events, start=1)
        )
    return "".join(
        f"SPEAKER x 1 {start} {round(end - start, 6)} <NA> <NA> {label.replace(' ', '_')} <NA> <NA>\n"
        for start, end, label in events
    )


@pytest.mark.parametrize("suffix", ["srt", "rttm"])
def test_a_folder_of_files_gives_the_gold_of_the_json_form(
    suffix: str, tmp_path: Path, golden_case: Callable[[str], Any]
) -> None:
    case = golden_case("basic")
    raw = json.loads((case.folder / "conversations.json").read_text(encoding="utf-8"))["conversations"]
    for entry in raw:
        for speaker, tracks in entry["annotations"].items():
            for annotator, events in tracks.items():
                path = tmp_path / f"{entry['conversation_id']}_{speaker}_{annotator}.{suffix}"
                path.write_text(in_form([tuple(event[:3]) for event in events], suffix), encoding="utf-8")
    lengths = {entry["conversation_id"]: entry["duration_s"] for entry in raw}
    (tmp_path / "durations.json").write_text(json.dumps({"durations": lengths}), encoding="utf-8")
    for name, gold in load_dataset(tmp_path).golds.items():
        assert official_form(gold) == case.expected["gold"][name]


def test_a_textgrid_folder_takes_its_durations_from_the_grids(tmp_path: Path) -> None:
    for speaker in "12":
        for annotator in "ab":
            (tmp_path / f"call_7_{speaker}_{annotator}.TextGrid").write_text(SHORT_GRID, encoding="utf-8")
    dataset = load_dataset(tmp_path)
    assert dataset.durations == {"call_7": 4000.5}
    assert len(dataset.golds["call_7"].eot.positives) == 2


def test_problems_of_a_folder_are_told_together(tmp_path: Path) -> None:
    for name, text in {
        "20_1_a.srt": "1\n00:00:01 --> 00:00:02,500\nFiller\n",
        "20_1_b.rttm": "SPEAKER 20 1 one 2 <NA> <NA> Filler <NA> <NA>\n",
        "20_2_b.srt": "",
        "20_3_a.srt": "",
        "notes.txt": "ignored",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    text = "\n".join(map(str, problems_of(tmp_path)))
    assert "20_3_a.srt: file name tells no conversation" in text
    assert "no file of annotator a for speaker 2" in text


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("x_1_a.srt", "1\n00:00:01,000 --> 00:00:02,500\nFiller\n\n2\nno times\nFiller\n", ":6"),
        ("x_1_a.srt", "1\n00:00:01,000 --> 00:00:02,500\n\n", ":2"),
        ("x_1_a.rttm", "\nSPEAKER x 1 1.0\n", ":2"),
        ("x_1_a.TextGrid", SHORT_GRID.replace("\n2\n1\n", "\n3\n1\n"), "2 intervals where 3"),
        ("x_1_a.TextGrid", SHORT_GRID.replace("IntervalTier", "TextTier"), "TextTier"),
        ("x_1_a.TextGrid", "no grid", "not a TextGrid"),
    ],
)
def test_broken_lines_are_named(name: str, text: str, place: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    for other in ("x_2_a.srt", "x_1_b.srt", "x_2_b.srt"):
        (tmp_path / other).write_text("", encoding="utf-8")
    (tmp_path / "durations.json").write_text('{"durations": {"x": 9}}', encoding="utf-8")
    (problem,) = problems_of(tmp_path)
    assert place in str(problem)
    assert name in problem.where


# --- hub ----------------------------------------------------------------------------------------


def hub_error(kind: str, status: int = 404) -> Callable[..., str]:
    import huggingface_hub.errors as hub

    class Response:
        status_code = status
        headers: Mapping[str, str] = {}
        request = None

    def download(*_: Any, **__: Any) -> str:
        error: type[Exception] = getattr(hub, kind)
        if issubclass(error, hub.HfHubHTTPError):
            raise error("refused", response=Response())  # type: ignore[call-arg]
        raise error("refused")

    return download


@pytest.mark.parametrize(
    ("kind", "status", "words"),
    [
        ("GatedRepoError", 401, "not logged in"),
        ("GatedRepoError", 403, "has no access"),
        ("LocalTokenNotFoundError", 0, "not logged in"),
        ("RepositoryNotFoundError", 404, "no such dataset"),
        ("RevisionNotFoundError", 404, "no such revision"),
        ("LocalEntryNotFoundError", 0, "no network"),
        ("OfflineModeIsEnabled", 0, "no network"),
        ("HfHubHTTPError", 500, "refused the request"),
        ("HFValidationError", 0, "no dataset id"),
    ],
)
def test_each_trouble_with_the_hub_has_its_own_error(
    kind: str, status: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.snapshot_download", hub_error(kind, status))
    with pytest.raises(InputError) as caught:
        fetch("owner/name", "v1")
    (problem,) = caught.value.problems
    assert words in problem.what
    assert "owner/name" in problem.where


def test_the_revision_that_was_used_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blob = write_shard(tmp_path / "blobs" / "1.parquet", [flac(32_000, 16_000)])
    commit = "0123456789abcdef0123456789abcdef01234567"
    snapshot = tmp_path / "snapshots" / commit / "data"
    snapshot.mkdir(parents=True)
    (snapshot / "dev-00000-of-00001.parquet").symlink_to(blob)
    asked: dict[str, Any] = {}

    def download(name: str, **options: Any) -> str:
        asked.update(options, name=name)
        return str(snapshot.parent)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    monkeypatch.chdir(tmp_path)
    dataset = load_dataset("owner/name", revision="main")
    assert dataset.durations == {"0": 2.0}
    assert dataset.listing.provenance == {
        "hub": "owner/name",
        "revision_requested": "main",
        "revision": commit,
    }
    assert (asked["name"], asked["repo_type"], asked["revision"]) == ("owner/name", "dataset", "main")
